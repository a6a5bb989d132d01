//! Contract of a kernel: what a launch binds to it and what must then hold, as data.
//!
//! A [`VerifiedKernel`](super::VerifiedKernel) carries its contract. [`Contract::bind`] checks
//! arguments bound by name, [`Contract::bind_in_order`] those in parameter order; both run the same
//! check. Seven rules hold for every kernel, besides the requirements that its generator states:
//!
//! * **Elements.** An array has the element type that the kernel reads and writes.
//! * **Lists.** A list of arrays is bound only to a parameter that is an array of pointers. Its
//!   length is the number of arrays that the kernel visits. The following rules hold for each of
//!   them.
//! * **Spans.** For a buffer with extents `d` and strides `s`, element `sum of (d - 1) * s` is the
//!   last one that a kernel may touch. It must lie inside the bound array. If an extent is 0,
//!   nothing is touched.
//! * **Strides.** An array of known shape has the kernel's strides along every dimension with more
//!   than one element, unless the kernel touches none of it.
//! * **Writes.** No two elements of an array that a kernel writes share an address: with dimensions
//!   sorted by stride, each stride is at least the span of the dimensions before it. Overlap
//!   between two arrays, also of a list, is checked by the caller that knows their allocations.
//! * **Tensor maps.** The array of a tensor map starts on 16 bytes, and each of its extents is 1 to
//!   2^32. The stride of each dimension but the last is a multiple of 16 bytes and less than 2^40
//!   bytes. An empty launch is exempt.
//! * **Grids** are within the limits of CUDA, and along x a multiple of the cluster size.

mod arguments;
mod bind;
mod error;
mod host_expr;
mod ranges;
#[cfg(test)]
mod tests;

pub use arguments::{
    Arguments, ArrayAxis, ArrayPlace, BoundArray, Call, MappedArray, Region, ScalarBits,
};
pub use error::{Between, ContractError, Need, Subject};
pub use ranges::{meet, united};

use super::{
    Atomic, BufferId, BufferLayout, Elem, Expr, HostExpr, Kernel, List, Operand, ParamKind,
    Requirement, Source, Stmt, TensorMap, Ty, Variant,
};
use host_expr::{host_expr, is_bound};
use std::borrow::Cow;

/// Facts about a kernel that a launch needs. A [`VerifiedKernel`](super::VerifiedKernel) has it, and
/// the constants of a macro call contain it.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    pub kernel: Cow<'static, str>,
    /// Variant among the kernels that compute the same result.
    pub variant: Variant,
    pub params: List<Parameter>,
    pub requires: List<Requirement>,
    /// Threads of a block along x and y.
    pub block: (u32, u32),
    /// Blocks of the grid along x, y and z.
    pub grid: [HostExpr; 3],
    /// Blocks of a cluster, along x; 1 without clusters.
    pub cluster: u32,
    /// Shared memory of a block, in bytes.
    pub shared_bytes: u64,
    /// True if a launch requests the shared memory, false if the kernel declares it.
    pub shared_is_dynamic: bool,
    /// Oldest compute capability that can run the kernel, as in `sm_80`.
    pub min_arch: u32,
    /// True if it uses instructions that only this architecture has, so that it must be compiled
    /// for exactly that one, as `sm_90a`.
    pub is_specific: bool,
}

/// A kernel parameter and the facts about it that a launch needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// Base address of a global buffer.
    Array(ArrayParameter),
    Scalar {
        name: Cow<'static, str>,
        ty: Ty,
        /// Part of the launch that supplies its value.
        source: Source,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArrayParameter {
    /// Name in the CUDA source.
    pub name: Cow<'static, str>,
    /// Operand that the launch binds to it.
    pub operand: Operand,
    pub elem: Elem,
    pub is_read: bool,
    pub is_written: bool,
    /// True if the kernel has an atomic on it, which reads the previous content before it writes.
    pub is_atomic: bool,
    /// Tensor map, if the parameter is one.
    pub map: Option<TensorMap>,
    /// Number of arrays, for a list: the parameter is an array of pointers to them.
    pub count: Option<HostExpr>,
    /// Logical extents; for a list, those of each array.
    pub dims: List<HostExpr>,
    /// Stride along each dimension, in elements.
    pub strides: List<HostExpr>,
}

impl ArrayParameter {
    /// Returns true if an array of these elements may be bound to it. Operands that a kernel reads
    /// as `tf32` are stored as `f32`.
    pub fn takes(&self, elem: Elem) -> bool {
        self.elem == elem || (self.elem, elem) == (Elem::Tf32, Elem::F32)
    }

    /// Index of the dimension with stride 1.
    pub fn contiguous_dim(&self) -> usize {
        let dim = self.strides.iter().position(|stride| *stride == HostExpr::Number(1));
        dim.unwrap_or_else(|| unreachable!("verify: one stride is 1"))
    }

    /// Number of dimensions; for a list, those of each array.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns true if it is a list of arrays, each with its own pointer.
    pub fn is_list(&self) -> bool {
        self.count.is_some()
    }
}

impl Contract {
    /// Derives the contract of a kernel that satisfies every other rule of the IR.
    pub(super) fn new(k: &Kernel, shared: (u64, bool), min_arch: u32) -> Result<Self, String> {
        let host_expr =
            |expr: &Expr, what: &str| host_expr(k, expr).map_err(|e| format!("{what}: {e}"));
        let specific = k.has_warpgroups();
        let [read, written, atomic] = accessed(k);
        let mut params = Vec::with_capacity(k.params.len());
        for param in &k.params {
            let name = Cow::Owned(param.name.clone());
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
            kernel: k.name.clone().into(),
            variant: k.variant,
            params: params.into(),
            requires: k.requires.clone().into(),
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

    /// Buffer parameters in launch order.
    pub fn arrays(&self) -> impl Iterator<Item = &ArrayParameter> {
        self.params.iter().filter_map(|p| match p {
            Parameter::Array(array) => Some(array),
            Parameter::Scalar { .. } => None,
        })
    }

    /// Dynamic shared memory that a launch requests, in bytes: all of it or none.
    pub fn dynamic_shared_bytes(&self) -> u64 {
        if self.shared_is_dynamic { self.shared_bytes } else { 0 }
    }

    /// Returns true if the rows or columns of the caller's matrices may be padded: the kernel takes
    /// the leading dimension. The distance between the matrices of a batch does not count.
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

/// Buffers that the body reads, buffers that it writes (through pointers too), and buffers with
/// atomics.
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
