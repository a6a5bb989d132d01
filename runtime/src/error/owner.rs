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
    /// A `cudarc` context other than the context of the device.
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
        Owner::Device { is_simulator: true, .. } => "Each Device::simulator() has its own memory: \
            clone the operand's device for this call, or upload the operand to this device"
            .to_owned(),
        Owner::Device { .. } => {
            format!(
                "Run the call on the operand's device, create the other device from it with \
                 Device::on_new_stream, or upload the operand to {device}"
            )
        }
        Owner::Context => "Upload the operand to this device, or build the device from the \
            operand's context with Device::from_cudarc"
            .to_owned(),
    }
}
