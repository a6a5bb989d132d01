//! Owner of an operand, and the remedy for an operand of another device.

use std::fmt;

/// Device or context that owns an operand.
///
/// ```
/// use gemm_runtime::error::Owner;
/// use gemm_runtime::{Device, Error};
///
/// let x = Device::simulator().upload(&[1.0])?;
/// let error = Device::simulator().download(&x).unwrap_err();
/// assert!(matches!(
///     error,
///     Error::WrongDevice { belongs: Owner::Device { is_simulator: true, .. }, .. }
/// ));
/// # Ok::<(), gemm_runtime::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Another device of this process.
    Device {
        /// Name of the device, as returned by [`Device::name`](crate::Device::name).
        name: String,
        /// True if the device is a simulator.
        is_simulator: bool,
    },
    /// `cudarc` context that the device was not built from.
    Context,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Device { is_simulator: true, .. } => f.write_str("another simulator"),
            Owner::Device { name, .. } => write!(f, "another device, {name}"),
            Owner::Context => f.write_str("another cudarc context"),
        }
    }
}

pub(super) fn remedy(owner: &Owner, device: &str) -> String {
    match owner {
        Owner::Device { is_simulator: true, .. } => "Each Device::simulator() has memory of its \
             own: clone the handle that the operand was made with, or upload it to this one"
            .to_owned(),
        Owner::Device { .. } => {
            format!("Clone the handle that it was made with, or upload it to {device}")
        }
        Owner::Context => "Upload it there, or make the device from the operand's own context \
             with Device::from_cudarc"
            .to_owned(),
    }
}
