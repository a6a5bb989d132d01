//! Where an operand lives, and what to do about an operand of another device.

use std::fmt;

/// Where an operand lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Another device of this process, by its name.
    Device {
        /// Its name.
        name: String,
        /// Whether it is a simulator.
        is_simulator: bool,
    },
    /// A `cudarc` context that is not the device's.
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
