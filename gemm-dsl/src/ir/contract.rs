//! The contract of a kernel: what a launch binds to it and what must then hold, as data.
//!
//! A [`VerifiedKernel`](super::VerifiedKernel) carries its contract. [`Contract::bind`] is the one
//! place where arguments meet it, for the runtime and the simulator alike. Four rules hold for
//! every kernel, beside the requirements that its generator states:
//!
//! * **Elements.** An array holds what the kernel reads and writes there.
//! * **Spans.** Of a buffer with extents `d` and strides `s`, element `sum of (d - 1) * s` is the last
//!   one that a kernel may touch: it must belong to the array that is bound. Where an extent is 0
//!   nothing is touched.
//! * **Strides.** An array whose shape is known lies as the kernel's strides say, along every
//!   dimension in which it has more than one element.
//! * **Grids** are within the limits of CUDA.

mod bind;
mod rule;
mod unmet;

pub use bind::{Array, Axis, Call, Given};
pub use unmet::{Need, Subject, Unmet};

use super::{Elem, Expr, Kernel, Layout, ParamKind, Scalar, Stmt, Ty};
use rule::Rule;
use std::fmt;

/// An array that a launch binds to a buffer parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The n-th array that the kernel only reads (A = 0 and B = 1 of a product).
    Input(usize),
    /// The n-th array that the kernel computes (C of a product; the value of a reduction).
    Output(usize),
    /// The n-th array that the kernel needs for itself, to write and to read.
    Temp(usize),
}

/// An extent of a problem, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Extent(pub &'static str);

impl Extent {
    /// The number of elements of a reduction.
    pub const LENGTH: Extent = Extent("len");
    /// Rows of A and C.
    pub const M: Extent = Extent("m");
    /// Columns of B and C.
    pub const N: Extent = Extent("n");
    /// Columns of A, rows of B.
    pub const K: Extent = Extent("k");
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Where the value of a scalar parameter comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// An extent of the problem.
    Extent(Extent),
    /// The distance between neighbours of an operand along one dimension, in elements. Along the
    /// rows of a matrix it is the leading dimension.
    Stride {
        /// The operand.
        operand: Operand,
        /// The dimension, outermost first.
        dim: usize,
    },
    /// The n-th number that the caller passes.
    Argument(usize),
}

/// What a launch must satisfy before the kernel may run.
#[derive(Clone, Debug, PartialEq)]
pub enum Requirement {
    /// The base address of a buffer parameter is a multiple of `bytes`.
    Aligned {
        /// The operand.
        operand: Operand,
        /// The alignment.
        bytes: u32,
    },
    /// A scalar parameter is a multiple of `of`.
    Multiple {
        /// The parameter.
        scalar: Scalar,
        /// The divisor.
        of: u64,
    },
    /// A scalar parameter lies between two bounds, both included.
    Range {
        /// The parameter.
        scalar: Scalar,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
}

/// Grid and block of a kernel. The grid is in expressions over its scalar parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Geometry {
    /// Threads of a block along x and y.
    pub block: (u32, u32),
    /// Blocks of the grid along x, y and z, of type [`Ty::U64`]; nothing is launched where one is 0.
    pub grid: [Expr; 3],
    /// Blocks that shall fit on a multiprocessor at once (`__launch_bounds__`).
    pub blocks_per_sm: u32,
}

impl Geometry {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.0 * self.block.1
    }
}

/// Which of the kernels that compute the same a kernel is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// There is no other.
    #[default]
    Only,
    /// The one with 16-byte accesses.
    Vector,
    /// The one for arguments that cannot be accessed 16 bytes at a time.
    Scalar,
    /// The one with guards at the edges, where the others have none.
    Guarded,
}

/// In lower case; nothing where there is but one.
impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Variant::Only => "",
            Variant::Vector => "vector",
            Variant::Scalar => "scalar",
            Variant::Guarded => "guarded",
        })
    }
}

/// All that a launch has to know of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Contract {
    kernel: String,
    variant: Variant,
    params: Vec<Parameter>,
    requires: Vec<Requirement>,
    block: (u32, u32),
    grid: [Rule; 3],
    shared_bytes: u64,
    shared_is_dynamic: bool,
    min_arch: u32,
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
    /// Its logical extents.
    dims: Vec<Rule>,
    /// The distance between neighbours along each of them.
    strides: Vec<Rule>,
}

impl ArrayParameter {
    /// Whether an array of these elements may be bound to it. What a kernel reads as `tf32` lies in
    /// memory as `f32`.
    pub fn takes(&self, elem: Elem) -> bool {
        self.elem == elem || (self.elem, elem) == (Elem::Tf32, Elem::F32)
    }

    /// The number of its dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }
}

impl Contract {
    /// The contract of a kernel that satisfies every other rule of the IR.
    pub(super) fn new(k: &Kernel, shared: (u64, bool), min_arch: u32) -> Result<Self, String> {
        let rule = |expr: &Expr, what: &str| Rule::new(k, expr).map_err(|e| format!("{what}: {e}"));
        let (read, written) = accessed(k);
        let mut params = Vec::with_capacity(k.params.len());
        for param in &k.params {
            let name = param.name.clone();
            params.push(match &param.kind {
                ParamKind::Scalar { ty, source } => {
                    Parameter::Scalar { name, ty: *ty, source: *source }
                }
                ParamKind::Buffer { buffer, operand } => {
                    let buffer_id = buffer.id;
                    let buffer = k.buffers.get(buffer_id).ok_or("a parameter has no buffer")?;
                    let Layout::Strided { strides } = &buffer.layout else {
                        return Err(format!("parameter {name} is not strided"));
                    };
                    let dims = buffer.dims.iter().map(|d| rule(d, &name));
                    let strides = strides.iter().map(|s| rule(s, &name));
                    Parameter::Array(ArrayParameter {
                        operand: *operand,
                        elem: buffer.elem,
                        is_read: read[buffer_id],
                        is_written: written[buffer_id],
                        dims: dims.collect::<Result<_, _>>()?,
                        strides: strides.collect::<Result<_, _>>()?,
                        name,
                    })
                }
            });
        }
        let known = |scalar: &Scalar| match k.params.get(scalar.param).map(|p| &p.kind) {
            Some(ParamKind::Scalar { ty, source: Source::Extent(_) | Source::Stride { .. } }) => {
                *ty == scalar.ty && ty.is_index()
            }
            _ => false,
        };
        for requirement in &k.requires {
            let sound = match requirement {
                Requirement::Aligned { operand, bytes } => {
                    let bound =
                        |p: &Parameter| matches!(p, Parameter::Array(a) if a.operand == *operand);
                    *bytes > 0 && params.iter().any(bound)
                }
                Requirement::Multiple { scalar, of } => *of > 0 && known(scalar),
                Requirement::Range { scalar, min, max } => min <= max && known(scalar),
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
                rule(x, "the grid along x")?,
                rule(y, "the grid along y")?,
                rule(z, "the grid along z")?,
            ],
            shared_bytes: shared.0,
            shared_is_dynamic: shared.1,
            min_arch,
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

    /// Whether the caller's arrays need not be packed: the kernel takes their strides.
    pub fn takes_strides(&self) -> bool {
        let is_stride =
            |p: &Parameter| matches!(p, Parameter::Scalar { source: Source::Stride { .. }, .. });
        self.params.iter().any(is_stride)
    }
}

/// Which buffers the body reads and which it writes, through pointers too.
fn accessed(k: &Kernel) -> (Vec<bool>, Vec<bool>) {
    let (mut read, mut written) = (vec![false; k.buffers.len()], vec![false; k.buffers.len()]);
    let whole = |id: super::BufferId| match k.buffers.get(id.id).map(|b| &b.layout) {
        Some(Layout::Pointer { into }) => into.id,
        _ => id.id,
    };
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
            _ => {}
        }
    });
    (read, written)
}
