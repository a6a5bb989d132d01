//! A kernel: tables of declarations and a body.

use super::{
    Buffer, BufferId, BufferLayout, Const, Expr, Function, Geometry, MbarrierDecl, MbarrierId,
    Operand, Requirement, Scalar, Source, Stmt, TensorMap, Ty, Var, Variant,
};

#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    pub name: String,
    pub ty: Ty,
    /// True for an `I32` coordinate that CUDA declares as `unsigned int`. The compiler then knows
    /// that it is not negative, and divides it by a power of two with one shift.
    pub is_unsigned: bool,
}

/// Declaration of a named compile-time constant (`constexpr` in CUDA).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstDecl {
    pub name: String,
    pub ty: Ty,
    /// Value, an expression of literals and constants declared earlier.
    pub value: Expr,
    /// Description for the comment next to the declaration; may be empty.
    pub meaning: String,
}

/// Kernel parameter, and the argument of a launch that supplies its value.
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
        /// Buffer that the tensor map describes. Only a [`TensorCopy`](super::TensorCopy) reads it.
        buffer: BufferId,
        operand: Operand,
        map: TensorMap,
    },
    Scalar {
        /// Type of the parameter: a scalar that supports arithmetic.
        ty: Ty,
        /// Part of the launch that supplies its value.
        source: Source,
    },
}

/// Family of a kernel, as far as messages about its launches differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KernelFamily {
    /// GEMM, whose specs have the keys `layout` and `batch`.
    Gemm,
    /// Reduction, whose specs have the key `over`.
    Reduction,
    /// Elementwise kernel, scan, or kernel without a spec.
    #[default]
    Other,
}

/// Kernel. A [`KernelBuilder`](super::KernelBuilder) builds it, and the verifier checks it and
/// returns a [`VerifiedKernel`](super::VerifiedKernel).
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Name of the `extern "C"` function.
    pub name: String,
    /// Description for the comment at the head of the source, line by line.
    pub title: Vec<String>,
    /// Family, for messages that name keys of its specs.
    pub family: KernelFamily,
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
    /// Number of blocks of a cluster, neighbours along x; 1 without clusters. The grid along x must
    /// be a multiple of it.
    pub cluster: u32,
    /// Number of blocks of a cluster as an expression of constants, for `__cluster_dims__`.
    pub cluster_name: Option<Expr>,
    /// True if a launch skips the kernel on a GPU that cannot run it.
    pub is_optional: bool,
    /// True if asynchronous copies pass shared-memory addresses as 32-bit words instead of
    /// pointers. This affects only the compiler's register allocation.
    pub narrow_addresses: bool,
    /// True if a launch may bind the same array to an input and an output. A thread then reads all
    /// elements of the inputs before it writes, and accesses no element that another thread writes.
    /// Pointers are not `__restrict__`.
    pub in_place: bool,
    /// Number of threads as an expression of constants, for `__launch_bounds__`.
    pub launch_bounds: Option<Expr>,
    pub requires: Vec<Requirement>,
    pub body: Vec<Stmt>,
}

/// Handles must be used with the kernel that created them. The verifier checks this.
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
    /// Returns the buffer whose memory an access to `buffer` reaches. It is the target of a
    /// pointer, or the list of a chosen array.
    pub fn memory_of(&self, buffer: BufferId) -> BufferId {
        match self.buffers.get(buffer.id).map(|b| &b.layout) {
            Some(BufferLayout::Pointer { into: of } | BufferLayout::OfList { list: of, .. }) => {
                self.memory_of(*of)
            }
            _ => buffer,
        }
    }

    /// Returns for each variable whether it belongs to the kernel itself and not to a function.
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

    /// Returns the tensor map of a buffer, if a parameter declares it.
    pub fn tensor_map(&self, buffer: BufferId) -> Option<&TensorMap> {
        self.params.iter().find_map(|param| match &param.kind {
            ParamKind::TensorMap { buffer: of, map, .. } if of.id == buffer.id => Some(map),
            _ => None,
        })
    }
}
