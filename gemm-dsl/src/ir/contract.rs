//! Contract of a kernel: the arguments of a launch and the requirements on them, as data.
//!
//! A [`VerifiedKernel`](super::VerifiedKernel) contains its contract. [`Contract::bind`] checks
//! arguments that are bound by name, and [`Contract::bind_in_order`] checks arguments in parameter
//! order. Both apply the same rules. Seven rules hold for every kernel, in addition to the
//! requirements that its generator states:
//!
//! * **Elements.** An array has the element type that the kernel reads and writes.
//! * **Lists.** A list of arrays may only be bound to a parameter that is an array of pointers. The
//!   list must have as many arrays as the kernel visits. The rules below apply to each array of the
//!   list.
//! * **Spans.** For a buffer with extents `d` and strides `s`, element `sum of (d - 1) * s` is the
//!   last one that a kernel may access. It must lie inside the bound array. If an extent is 0, the
//!   kernel accesses nothing.
//! * **Strides.** If an array is bound with its shape, it must have the kernel's strides along
//!   every dimension with more than one element. Arrays that the kernel does not access are exempt.
//! * **Writes.** No two elements of an array that a kernel writes may share an address. If
//!   dimensions are sorted by stride, each stride must be at least the span of the previous
//!   dimensions. Overlap between two arrays, including arrays of one list, is checked by the
//!   caller, which knows their allocations.
//! * **Tensor maps.** The array of a tensor map must be aligned to 16 bytes, and each of its
//!   extents must be from 1 to 2^32. The stride of each dimension except the last must be a
//!   multiple of 16 bytes and less than 2^40 bytes. It may be 0 only if the extent is 1, because
//!   the driver accepts no stride of 0. An empty launch is exempt.
//! * **Grids.** A grid must be within the limits of CUDA, and its extent along x must be a multiple
//!   of the cluster size.

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
    Atomic, BufferId, BufferLayout, Elem, Expr, Extent, HostExpr, Kernel, KernelFamily, List,
    Operand, ParamKind, Requirement, Source, Stmt, TensorMap, Ty, Variant,
};
use crate::target::release::Release;
use host_expr::{host_expr, is_bound};
use std::borrow::Cow;

/// Facts about a kernel that a launch needs. Part of a [`VerifiedKernel`](super::VerifiedKernel)
/// and of the constants of a macro call.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    pub kernel: Cow<'static, str>,
    /// Family, for the remedies of errors.
    pub family: KernelFamily,
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
    /// Oldest release of CUDA whose compiler knows the kernel's instructions.
    pub min_release: Release,
    /// True if it uses instructions that only this architecture has, so that it must be compiled
    /// for exactly that one, as `sm_90a`.
    pub is_specific: bool,
    /// True if a launch skips the kernel on a GPU that cannot run it. A later kernel of the launch
    /// then computes the same bits.
    pub is_optional: bool,
}

/// A kernel parameter and the facts about it that a launch needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Parameter {
    /// Base address of a global buffer.
    Array(ArrayParameter),
    Scalar {
        name: Cow<'static, str>,
        ty: Ty,
        /// Part of the launch that supplies the value.
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
    /// True if the kernel accesses the array by atomics, which read the previous content before
    /// they write.
    pub is_atomic: bool,
    /// True if the last two dimensions are those of the operand in reverse order.
    pub is_transposed: bool,
    /// Tensor map, if the parameter is a tensor map.
    pub map: Option<TensorMap>,
    /// Number of arrays if the parameter is a list, which is an array of pointers.
    pub count: Option<HostExpr>,
    /// Logical extents; for a list, the extents of each of its arrays.
    pub dims: List<HostExpr>,
    /// Stride along each dimension, in elements.
    pub strides: List<HostExpr>,
}

impl ArrayParameter {
    /// Returns true if an array with this element type may be bound to the parameter. Operands that
    /// a kernel reads as `tf32` are stored as `f32`.
    pub fn takes(&self, elem: Elem) -> bool {
        self.elem == elem || (self.elem, elem) == (Elem::Tf32, Elem::F32)
    }

    /// Index of the dimension with stride 1.
    pub fn contiguous_dim(&self) -> usize {
        let dim = self.strides.iter().position(|stride| *stride == HostExpr::Number(1));
        dim.unwrap_or_else(|| unreachable!("verify: one stride is 1"))
    }

    /// Axis of the operand for a dimension.
    pub fn axis_of(&self, dim: usize) -> usize {
        let rank = self.rank();
        if self.is_transposed && dim + 2 >= rank { 2 * rank - 3 - dim } else { dim }
    }

    /// Number of dimensions; for a list, the number of dimensions of each of its arrays.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns true if the parameter is a list of arrays, each with its own pointer.
    pub fn is_list(&self) -> bool {
        self.count.is_some()
    }
}

impl Contract {
    /// Derives the contract of a kernel that obeys all other rules of the IR.
    pub(super) fn new(
        k: &Kernel,
        shared: (u64, bool),
        min_arch: u32,
        min_release: Release,
    ) -> Result<Self, String> {
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
                        is_transposed: buffer.transposed,
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
                return Err(format!("the requirement {requirement:?} names no such parameter"));
            }
        }
        let [x, y, z] = &k.geometry.grid;
        Ok(Self {
            kernel: k.name.clone().into(),
            family: k.family,
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
            min_release,
            is_specific: specific,
            is_optional: k.is_optional,
        })
    }

    /// Returns true if GPUs of this architecture, such as 90 for `sm_90`, have the kernel's
    /// instructions.
    pub fn runs_on(&self, arch: u32) -> bool {
        if self.is_specific { self.min_arch == arch } else { self.min_arch <= arch }
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

    /// Returns true if the kernel has a parameter for the extent.
    pub fn takes_extent(&self, extent: Extent) -> bool {
        self.params.iter().any(|parameter| match *parameter {
            Parameter::Scalar { source: Source::Extent(of), .. } => of == extent,
            _ => false,
        })
    }

    /// Returns true if the rows or columns of the caller's matrices may be padded, because the
    /// kernel takes leading dimensions. A stride between the matrices of a batch does not count.
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

/// Returns the buffers that the body reads, the buffers that it writes (including through
/// pointers), and the buffers with atomics.
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
            Stmt::Store { target, .. } | Stmt::StoreRemote { target, .. } => {
                written[whole(target.buffer)] = true
            }
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
