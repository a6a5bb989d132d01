//! Handles in expressions and statements. Each is an index into a table of the kernel.

use super::{Elem, Ty};

/// Handle of a variable, with the variable's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Index into [`Kernel::vars`](super::Kernel::vars).
    pub id: usize,
    pub ty: Ty,
}

/// Handle of a named compile-time constant, with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Const {
    /// Index into [`Kernel::consts`](super::Kernel::consts).
    pub id: usize,
    pub ty: Ty,
}

/// Handle of a scalar parameter, with its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Index into [`Kernel::params`](super::Kernel::params).
    pub param: usize,
    pub ty: Ty,
}

/// Handle of a buffer in global, shared or register memory, with its element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId {
    /// Index into [`Kernel::buffers`](super::Kernel::buffers).
    pub id: usize,
    pub elem: Elem,
}

/// Handle of a function, with its result type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId {
    /// Index into [`Kernel::functions`](super::Kernel::functions).
    pub id: usize,
    pub result: Ty,
}

/// Handle of an array of mbarriers in shared memory. Only [`Mbarrier`](super::Mbarrier) statements
/// access it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MbarrierId {
    /// Index into [`Kernel::mbarriers`](super::Kernel::mbarriers).
    pub id: usize,
}
