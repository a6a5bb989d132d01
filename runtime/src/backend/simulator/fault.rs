//! What a [`SimError`](crate::SimError) is made of: where in a kernel what went wrong. It needs the feature `sim`.

pub use gemm_dsl::ir::{BinaryOp, Elem, HostError, RegisterLimit, Scope, Space, Ty};
pub use gemm_sim::{
    EarlierAccess, Fault, FaultKind, MbarrierFault, Position, Reach, RefusedAccess, WaitReason,
    WaitingWarp,
};
