//! The contract of a kernel: what a launch binds to it and what must then hold, as data.
//!
//! A [`VerifiedKernel`](super::VerifiedKernel) carries its contract. Arguments meet it
//! in one check: by name through [`Contract::bind`], in order through [`Contract::bind_in_order`]. Seven rules hold for
//! every kernel, beside the requirements that its generator states:
//!
//! * **Elements.** An array holds what the kernel reads and writes there.
//! * **Lists.** A list of arrays is bound to a parameter that is an array of pointers, and to no other: as
//!   many as the kernel goes through. What follows holds of each of them.
//! * **Spans.** Of a buffer with extents `d` and strides `s`, element `sum of (d - 1) * s` is the last
//!   one that a kernel may touch: it must belong to the array that is bound. Where an extent is 0
//!   nothing is touched.
//! * **Strides.** An array whose shape is known lies as the kernel's strides say, along every
//!   dimension in which it has more than one element, unless the kernel touches none of it.
//! * **Writes.** No two elements of an array that a kernel writes are one: sorted by stride, every
//!   dimension passes all that lies along those before it. Whether two arrays share memory, of a list too, is
//!   for whoever knows where they were allocated.
//! * **Tensor maps.** An array that a tensor map stands for starts on 16 bytes, each of its extents is 1 to 2^32, and the
//!   distance between neighbours along each dimension but the last is a multiple of 16 bytes, less than 2^40; unless
//!   nothing is launched.
//! * **Grids** are within the limits of CUDA, and along x a multiple of the blocks of a cluster.

mod arguments;
mod bind;
mod error;
mod host_expr;
mod ranges;
#[cfg(test)]
mod tests;

pub use arguments::{Arguments, ArrayAxis, ArrayPlace, BoundArray, Call, MappedArray, Region};
pub use error::{Between, ContractError, Need, Subject};
pub use ranges::{meet, united};

use super::{
    Atomic, BufferId, BufferLayout, Elem, Expr, Kernel, Operand, ParamKind, Requirement, Source,
    Stmt, TensorMap, Ty, Variant,
};
use host_expr::{HostExpr, is_bound};

/// All that a launch has to know of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    kernel: String,
    variant: Variant,
    params: Vec<Parameter>,
    requires: Vec<Requirement>,
    block: (u32, u32),
    grid: [HostExpr; 3],
    cluster: u32,
    shared_bytes: u64,
    shared_is_dynamic: bool,
    min_arch: u32,
    is_specific: bool,
}

/// A parameter of a kernel, with what a launch must know of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// The base address of a global buffer.
    Array(ArrayParameter),
    /// A number passed by value.
    Scalar {
        /// Its name in the text.
        name: String,
        /// Its type.
        ty: Ty,
        /// Where the launch takes its value from.
        source: Source,
    },
}

/// A buffer parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ArrayParameter {
    /// Its name in the text.
    pub name: String,
    /// What the launch binds to it.
    pub operand: Operand,
    /// What its elements are.
    pub elem: Elem,
    /// Whether the kernel reads it.
    pub is_read: bool,
    /// Whether the kernel writes it.
    pub is_written: bool,
    /// Whether the kernel has an atomic on it, which reads what lies there before it writes.
    pub is_atomic: bool,
    /// What a tensor map says of it, where the parameter is one.
    pub map: Option<TensorMap>,
    /// How many arrays there are, of a list: the parameter is an array of pointers to them.
    count: Option<HostExpr>,
    /// Its logical extents; of a list, those of each array.
    dims: Vec<HostExpr>,
    /// The distance between neighbours along each of them.
    strides: Vec<HostExpr>,
}

impl ArrayParameter {
    /// Whether an array of these elements may be bound to it. What a kernel reads as `tf32` lies in
    /// memory as `f32`.
    pub fn takes(&self, elem: Elem) -> bool {
        self.elem == elem || (self.elem, elem) == (Elem::Tf32, Elem::F32)
    }

    /// The dimension along which neighbours lie next to one another.
    pub fn contiguous_dim(&self) -> usize {
        let dim = self.strides.iter().position(|stride| *stride == HostExpr::Number(1));
        dim.unwrap_or_else(|| unreachable!("verify: one stride is 1"))
    }

    /// The number of its dimensions; of a list, of those of each array.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Whether it is a list of arrays, each wherever its pointer says.
    pub fn is_list(&self) -> bool {
        self.count.is_some()
    }
}

impl Contract {
    /// The contract of a kernel that satisfies every other rule of the IR.
    pub(super) fn new(k: &Kernel, shared: (u64, bool), min_arch: u32) -> Result<Self, String> {
        let host_expr =
            |expr: &Expr, what: &str| HostExpr::new(k, expr).map_err(|e| format!("{what}: {e}"));
        let specific = k.has_warpgroups();
        let [read, written, atomic] = accessed(k);
        let mut params = Vec::with_capacity(k.params.len());
        for param in &k.params {
            let name = param.name.clone();
            params.push(match &param.kind {
                ParamKind::Scalar { ty, source } => {
                    Parameter::Scalar { name, ty: *ty, source: *source }
                }
                ParamKind::Buffer { buffer, operand }
                | ParamKind::TensorMap { buffer, operand, .. } => {
                    let map = k.tensor_map(*buffer).cloned();
                    let buffer_id = buffer.id;
                    let buffer = k.buffers.get(buffer_id).ok_or("a parameter has no buffer")?;
                    let (listed, strides) = match &buffer.layout {
                        BufferLayout::Strided { strides } => (0, strides),
                        BufferLayout::Listed { strides } => (1, strides),
                        _ => return Err(format!("parameter {name} is not strided")),
                    };
                    let (count, dims) = buffer.dims.split_at(listed);
                    let count = count.first().map(|count| host_expr(count, &name));
                    let dims = dims.iter().map(|d| host_expr(d, &name));
                    let strides = strides.iter().map(|s| host_expr(s, &name));
                    Parameter::Array(ArrayParameter {
                        operand: *operand,
                        elem: buffer.elem,
                        is_read: read[buffer_id],
                        is_written: written[buffer_id],
                        is_atomic: atomic[buffer_id],
                        map,
                        count: count.transpose()?,
                        dims: dims.collect::<Result<_, _>>()?,
                        strides: strides.collect::<Result<_, _>>()?,
                        name,
                    })
                }
            });
        }
        for requirement in &k.requires {
            let sound = match requirement {
                Requirement::Aligned { operand, bytes } => {
                    let bound =
                        |p: &Parameter| matches!(p, Parameter::Array(a) if a.operand == *operand);
                    *bytes > 0 && params.iter().any(bound)
                }
                Requirement::Multiple { scalar, of } => *of > 0 && is_bound(k, *scalar),
                Requirement::Range { scalar, min, max } => min <= max && is_bound(k, *scalar),
                Requirement::Piece { first, len, total, of } => {
                    *of > 0 && [first, len, total].into_iter().all(|scalar| is_bound(k, *scalar))
                }
            };
            if !sound {
                return Err(format!("the requirement {requirement:?} on no such parameter"));
            }
        }
        let [x, y, z] = &k.geometry.grid;
        Ok(Self {
            kernel: k.name.clone(),
            variant: k.variant,
            params,
            requires: k.requires.clone(),
            block: k.geometry.block,
            grid: [
                host_expr(x, "the grid along x")?,
                host_expr(y, "the grid along y")?,
                host_expr(z, "the grid along z")?,
            ],
            cluster: k.cluster,
            shared_bytes: shared.0,
            shared_is_dynamic: shared.1,
            min_arch,
            is_specific: specific,
        })
    }

    /// The name of the kernel.
    pub fn kernel(&self) -> &str {
        &self.kernel
    }

    /// Which of the kernels that compute the same it is.
    pub fn variant(&self) -> Variant {
        self.variant
    }

    /// The parameters in the order of the launch.
    pub fn params(&self) -> &[Parameter] {
        &self.params
    }

    /// The buffer parameters in the order of the launch.
    pub fn arrays(&self) -> impl Iterator<Item = &ArrayParameter> {
        self.params.iter().filter_map(|p| match p {
            Parameter::Array(array) => Some(array),
            Parameter::Scalar { .. } => None,
        })
    }

    /// Threads of a block along x and y.
    pub fn block(&self) -> (u32, u32) {
        self.block
    }

    /// Blocks of a cluster, along x; 1 where there is none.
    pub fn cluster(&self) -> u32 {
        self.cluster
    }

    /// Bytes of shared memory that a block needs.
    pub fn shared_bytes(&self) -> u64 {
        self.shared_bytes
    }

    /// The part of the shared memory that a launch asks for: all or none.
    pub fn dynamic_shared_bytes(&self) -> u64 {
        if self.shared_is_dynamic { self.shared_bytes } else { 0 }
    }

    /// The oldest architecture that can run it, as in `sm_80`.
    pub fn min_arch(&self) -> u32 {
        self.min_arch
    }

    /// Whether it has instructions of that architecture which no other has, so that it is compiled for that alone, as
    /// `sm_90a`.
    pub fn is_specific(&self) -> bool {
        self.is_specific
    }

    /// Whether the rows of the caller's matrices, or their columns, may lie apart: the kernel takes the
    /// distance. That between the matrices of a batch is none of these.
    pub fn takes_pitches(&self) -> bool {
        let is_inside =
            |array: &ArrayParameter, of, dim| array.operand == of && dim + 2 >= array.rank();
        self.params.iter().any(|param| match *param {
            Parameter::Scalar { source: Source::Stride { operand, dim }, .. } => {
                self.arrays().any(|array| is_inside(array, operand, dim))
            }
            _ => false,
        })
    }
}

/// Which buffers the body reads, which it writes, through pointers too, and which have atomics on them.
fn accessed(k: &Kernel) -> [Vec<bool>; 3] {
    let [mut read, mut written, mut atomic] = [const { Vec::new() }; 3];
    for buffers in [&mut read, &mut written, &mut atomic] {
        buffers.resize(k.buffers.len(), false);
    }
    let whole = |id: BufferId| k.memory_of(id).id;
    k.visit(&mut |stmt| {
        stmt.visit_exprs(&mut |e| {
            if let Expr::Load(access) = e {
                read[whole(access.buffer)] = true;
            }
        });
        match stmt {
            Stmt::Store { target, .. } => written[whole(target.buffer)] = true,
            Stmt::CopyAsync { target, source, .. } => {
                written[whole(target.buffer)] = true;
                read[whole(source.buffer)] = true;
            }
            Stmt::TensorCopy(copy) => {
                written[whole(copy.to.buffer)] = true;
                read[whole(copy.from)] = true;
            }
            Stmt::Atomic(Atomic { target, .. }) => {
                read[whole(target.buffer)] = true;
                written[whole(target.buffer)] = true;
                atomic[whole(target.buffer)] = true;
            }
            _ => {}
        }
    });
    [read, written, atomic]
}
