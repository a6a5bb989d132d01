//! Handles: what expressions and statements name, each an index into a table of the kernel.

use super::{Elem, Ty};

/// A variable: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Var {
    /// Index into [`Kernel::vars`](super::Kernel::vars).
    pub id: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A named compile-time constant: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Const {
    /// Index into [`Kernel::consts`](super::Kernel::consts).
    pub id: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A scalar parameter: a handle that carries its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scalar {
    /// Index into [`Kernel::params`](super::Kernel::params).
    pub param: usize,
    /// The type of its value.
    pub ty: Ty,
}

/// A buffer: a handle that carries its element type. Global, shared or register memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferId {
    /// Index into [`Kernel::buffers`](super::Kernel::buffers).
    pub id: usize,
    /// What its elements are.
    pub elem: Elem,
}

/// A function: a handle that carries the type of its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FunctionId {
    /// Index into [`Kernel::functions`](super::Kernel::functions).
    pub id: usize,
    /// The type of its value.
    pub result: Ty,
}

/// Barriers in shared memory, one beside the other: a handle. No access goes to them, only a [`Mbarrier`](super::Mbarrier).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MbarrierId {
    /// Index into [`Kernel::mbarriers`](super::Kernel::mbarriers).
    pub id: usize,
}
