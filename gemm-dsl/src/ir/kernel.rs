//! A kernel: its tables of declarations and its body.

use super::{
    Buffer, BufferId, BufferLayout, Const, Expr, Function, Geometry, MbarrierDecl, MbarrierId,
    Operand, Requirement, Scalar, Source, Stmt, TensorMap, Ty, Var, Variant,
};

/// The declaration of a variable.
#[derive(Clone, Debug, PartialEq)]
pub struct VarDecl {
    /// Its name in the text.
    pub name: String,
    /// The type of its value.
    pub ty: Ty,
}

/// The declaration of a named compile-time constant (`constexpr` in the text).
#[derive(Clone, Debug, PartialEq)]
pub struct ConstDecl {
    /// Its name in the text.
    pub name: String,
    /// The type of its value.
    pub ty: Ty,
    /// Its value, over literals and constants declared before it.
    pub value: Expr,
    /// What it is, for the comment beside it; may be empty.
    pub meaning: String,
}

/// What a kernel parameter is, and where a launch takes it from.
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Its name in the text.
    pub name: String,
    /// What is passed.
    pub kind: ParamKind,
}

/// The kinds of kernel parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamKind {
    /// The base address of a global buffer.
    Buffer {
        /// The buffer declared for it.
        buffer: BufferId,
        /// What the launch binds to it.
        operand: Operand,
    },
    /// A description of a global buffer for the hardware that copies boxes of it (`CUtensorMap`), passed by value.
    TensorMap {
        /// The buffer declared for it, which only a [`TensorCopy`](super::TensorCopy) reads.
        buffer: BufferId,
        /// What the launch binds to it.
        operand: Operand,
        /// What else the description says.
        map: TensorMap,
    },
    /// A number passed by value.
    Scalar {
        /// Its type: one number that is computed with.
        ty: Ty,
        /// Where the launch takes its value from.
        source: Source,
    },
}

/// One kernel. Built by [`KernelBuilder`](super::KernelBuilder), checked into a [`VerifiedKernel`](super::VerifiedKernel).
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name: that of the `extern "C"` function.
    pub name: String,
    /// What it does, line by line, for the head of the text.
    pub title: Vec<String>,
    /// Which of the kernels that compute the same it is.
    pub variant: Variant,
    /// Parameters in the order of the launch.
    pub params: Vec<Param>,
    /// Named constants in the order of the text.
    pub consts: Vec<ConstDecl>,
    /// All variables.
    pub vars: Vec<VarDecl>,
    /// All buffers.
    pub buffers: Vec<Buffer>,
    /// Barriers in shared memory.
    pub mbarriers: Vec<MbarrierDecl>,
    /// Functions, each after those that it applies.
    pub functions: Vec<Function>,
    /// Grid, block and occupancy.
    pub geometry: Geometry,
    /// Blocks of a cluster, neighbours along x: the grid along x is a multiple. Without clusters 1.
    pub cluster: u32,
    /// The number of threads as an expression over the constants, for `__launch_bounds__`.
    pub launch_bounds: Option<Expr>,
    /// What a launch must satisfy.
    pub requires: Vec<Requirement>,
    /// The body.
    pub body: Vec<Stmt>,
}

/// Handles resolve in the kernel that made them; verification has seen to it that they do.
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
    /// The buffer that a launch binds and that an access of this one goes to: what a pointer points into, the
    /// list that an array was chosen of.
    pub fn memory_of(&self, buffer: BufferId) -> BufferId {
        match self.buffers.get(buffer.id).map(|b| &b.layout) {
            Some(BufferLayout::Pointer { into: of } | BufferLayout::OfList { list: of, .. }) => {
                self.memory_of(*of)
            }
            _ => buffer,
        }
    }

    /// For each variable, whether it is the kernel's own and no function's.
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

    /// What the tensor map of a buffer says, if a parameter is one.
    pub fn tensor_map(&self, buffer: BufferId) -> Option<&TensorMap> {
        self.params.iter().find_map(|param| match &param.kind {
            ParamKind::TensorMap { buffer: of, map, .. } if of.id == buffer.id => Some(map),
            _ => None,
        })
    }
}
