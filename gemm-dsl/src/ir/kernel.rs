//! A kernel: tables of declarations and a body.

use super::{
    Buffer, BufferId, BufferLayout, Const, Expr, Function, Geometry, MbarrierDecl, MbarrierId,
    Operand, Requirement, Scalar, Source, Stmt, TensorMap, Ty, Var, Variant,
};

#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    pub name: String,
    pub ty: Ty,
    /// True for an `I32` that CUDA declares as `unsigned int`: a coordinate. The compiler then
    /// knows that it is not negative, and divides it by a power of two with one shift.
    pub is_unsigned: bool,
}

/// Declaration of a named compile-time constant (`constexpr` in CUDA).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstDecl {
    pub name: String,
    pub ty: Ty,
    /// Value, over literals and previously declared constants.
    pub value: Expr,
    /// Description for the comment beside it; may be empty.
    pub meaning: String,
}

/// A kernel parameter and its source in a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    pub name: String,
    pub kind: ParamKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// Base address of a global buffer.
    Buffer { buffer: BufferId, operand: Operand },
    /// Tensor map of a global buffer (`CUtensorMap`), passed by value.
    TensorMap {
        /// Buffer declared for it; only a [`TensorCopy`](super::TensorCopy) reads it.
        buffer: BufferId,
        operand: Operand,
        map: TensorMap,
    },
    Scalar {
        /// Type: one scalar with arithmetic.
        ty: Ty,
        /// Part of the launch that supplies its value.
        source: Source,
    },
}

/// A kernel. Built by [`KernelBuilder`](super::KernelBuilder), checked into a
/// [`VerifiedKernel`](super::VerifiedKernel).
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the `extern "C"` function.
    pub name: String,
    /// Description, line by line, for the head comment of the source.
    pub title: Vec<String>,
    /// Variant among the kernels that compute the same result.
    pub variant: Variant,
    pub params: Vec<Param>,
    /// Named constants in source order.
    pub consts: Vec<ConstDecl>,
    pub vars: Vec<VarDecl>,
    pub buffers: Vec<Buffer>,
    pub mbarriers: Vec<MbarrierDecl>,
    /// Functions, each after the functions that it calls.
    pub functions: Vec<Function>,
    pub geometry: Geometry,
    /// Blocks of a cluster, neighbours along x; the grid along x is a multiple of it. 1 without
    /// clusters.
    pub cluster: u32,
    /// The same number as an expression over the constants, for `__cluster_dims__`.
    pub cluster_name: Option<Expr>,
    /// True if asynchronous copies pass shared addresses as 32-bit words, and not as pointers. It
    /// affects the compiler's use of registers alone.
    pub narrow_addresses: bool,
    /// Number of threads as an expression over the constants, for `__launch_bounds__`.
    pub launch_bounds: Option<Expr>,
    pub requires: Vec<Requirement>,
    pub body: Vec<Stmt>,
}

/// Handles resolve in the kernel that created them; verification has checked that they do.
macro_rules! resolved {
    ($handle:ty, $decl:ty, $table:ident, $index:ident) => {
        impl std::ops::Index<$handle> for Kernel {
            type Output = $decl;
            fn index(&self, handle: $handle) -> &$decl {
                &self.$table[handle.$index]
            }
        }
    };
}
resolved!(Var, VarDecl, vars, id);
resolved!(Const, ConstDecl, consts, id);
resolved!(Scalar, Param, params, param);
resolved!(BufferId, Buffer, buffers, id);
resolved!(MbarrierId, MbarrierDecl, mbarriers, id);

impl Kernel {
    /// Returns the bound buffer that an access to this one reaches: the target of a pointer, or the
    /// list of a chosen array.
    pub fn memory_of(&self, buffer: BufferId) -> BufferId {
        match self.buffers.get(buffer.id).map(|b| &b.layout) {
            Some(BufferLayout::Pointer { into: of } | BufferLayout::OfList { list: of, .. }) => {
                self.memory_of(*of)
            }
            _ => buffer,
        }
    }

    /// For each variable, true if it belongs to the kernel and not to a function.
    pub fn own_variables(&self) -> Vec<bool> {
        let mut own = vec![true; self.vars.len()];
        for function in &self.functions {
            let declared = function.body.iter().filter_map(|stmt| match stmt {
                Stmt::Let { var, .. } | Stmt::Mut { var, .. } => Some(var),
                _ => None,
            });
            for var in function.params.iter().chain(declared) {
                if let Some(own) = own.get_mut(var.id) {
                    *own = false;
                }
            }
        }
        own
    }

    /// Tensor map of a buffer, if a parameter declares one.
    pub fn tensor_map(&self, buffer: BufferId) -> Option<&TensorMap> {
        self.params.iter().find_map(|param| match &param.kind {
            ParamKind::TensorMap { buffer: of, map, .. } if of.id == buffer.id => Some(map),
            _ => None,
        })
    }
}
