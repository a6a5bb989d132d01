//! Parts of a [`SimError`](crate::sim::SimError): the fault and its position in the kernel. Needs
//! the feature `sim`.

pub use gemm_dsl::ir::{BinaryOp, Elem, HostError, RegisterLimit, Scope, Space, Ty};
pub use gemm_sim::{
    EarlierAccess, Fault, FaultKind, MbarrierFault, Position, Reach, RefusedAccess, WaitReason,
    WaitingWarp,
};
