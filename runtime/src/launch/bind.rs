//! Binding: a kernel's declared parameters to the operands and extents of one pass.

use crate::error::{Error, Result};
use crate::operand::Place;
use crate::program::{Prepared, Variant};
use gemm_dsl::ir::{Expr, Extent, Operand, ParamKind, Requirement, Source, Ty};

/// The most blocks of a grid along x and along y.
const GRID_LIMITS: [u64; 2] = [i32::MAX as u64, u16::MAX as u64];

/// The extents of one problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extents {
    /// The elements of a reduction.
    Length(u64),
    /// The sizes of a product.
    Product { m: u64, n: u64, k: u64 },
}

impl Extents {
    pub(crate) fn get(self, extent: Extent) -> Option<u64> {
        match (self, extent) {
            (Extents::Length(length), Extent::Length) => Some(length),
            (Extents::Product { m, .. }, Extent::M) => Some(m),
            (Extents::Product { n, .. }, Extent::N) => Some(n),
            (Extents::Product { k, .. }, Extent::K) => Some(k),
            _ => None,
        }
    }
}

/// An operand of a pass: where it lies and the distance between its rows.
pub(crate) struct Bound {
    /// What the caller calls it.
    name: &'static str,
    place: Place,
    /// Elements from one row to the next.
    stride: u64,
    /// Whether a row follows directly on the one before.
    packed: bool,
}

impl Bound {
    /// A matrix without padding, or a vector as its only row.
    pub(crate) fn packed(name: &'static str, place: Place, cols: u64) -> Self {
        Self { name, place, stride: cols, packed: true }
    }

    /// A matrix whose rows are `stride` elements apart.
    pub(crate) fn pitched(name: &'static str, place: Place, cols: u64, stride: u64) -> Self {
        Self { name, place, stride, packed: stride == cols }
    }
}

/// One argument of a launch.
pub(crate) enum Argument {
    I32(i32),
    U64(u64),
    Buffer(Place),
}

/// The blocks of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Grid {
    pub(crate) x: u32,
    pub(crate) y: u32,
}

/// What the parameters of one pass are bound to.
pub(crate) struct Slots<'a> {
    pub(crate) inputs: &'a [Bound],
    pub(crate) outputs: &'a [Bound],
    pub(crate) scratch: &'a [Bound],
    pub(crate) extents: Extents,
}

/// The variant that a pass runs, with the values of its scalar parameters.
pub(crate) struct Chosen<'p> {
    pub(crate) index: usize,
    pub(crate) variant: &'p Variant,
    /// Values by parameter; none for a buffer.
    scalars: Vec<Option<u64>>,
}

impl Slots<'_> {
    /// The first variant whose requirements are met.
    ///
    /// # Errors
    /// What the last variant, the least demanding one, is lacking.
    pub(crate) fn choose<'p>(&self, program: &'p Prepared) -> Result<Chosen<'p>> {
        let mut unmet = Error::Internal("a program has no kernel".to_owned());
        for (index, variant) in program.variants.iter().enumerate() {
            let scalars = self.scalars(variant)?;
            match self.check(variant, &scalars) {
                Ok(()) => return Ok(Chosen { index, variant, scalars }),
                Err(error) => unmet = error,
            }
        }
        Err(unmet)
    }

    /// The arguments in the order of the kernel's parameters.
    pub(crate) fn arguments(&self, chosen: &Chosen<'_>) -> Result<Vec<Argument>> {
        let params = chosen.variant.kernel.params.iter().zip(&chosen.scalars);
        params
            .map(|(param, scalar)| match (&param.kind, scalar) {
                (ParamKind::Buffer { operand, .. }, _) => {
                    Ok(Argument::Buffer(self.operand(*operand)?.place.clone()))
                }
                (ParamKind::Scalar { ty: Ty::U64, .. }, Some(value)) => Ok(Argument::U64(*value)),
                (ParamKind::Scalar { ty: Ty::I32, .. }, Some(value)) => {
                    let value = i32::try_from(*value);
                    value.map(Argument::I32).map_err(|_| internal("an unchecked extent"))
                }
                (ParamKind::Scalar { ty, .. }, _) => {
                    Err(internal(&format!("parameter {} of type {ty:?}", param.name)))
                }
            })
            .collect()
    }

    fn operand(&self, operand: Operand) -> Result<&Bound> {
        let found = match operand {
            Operand::Input(n) => self.inputs.get(n),
            Operand::Output(n) => self.outputs.get(n),
            Operand::Scratch(n) => self.scratch.get(n),
        };
        found.ok_or_else(|| internal(&format!("the launch has no {operand:?}")))
    }

    /// The values of the scalar parameters, each within its type.
    fn scalars(&self, variant: &Variant) -> Result<Vec<Option<u64>>> {
        let params = variant.kernel.params.iter();
        let value = |kind: &ParamKind| {
            let ParamKind::Scalar { ty, source } = kind else {
                return Ok(None);
            };
            let (value, name) = match *source {
                Source::Extent(extent) => {
                    let value = self.extents.get(extent);
                    (value.ok_or_else(|| internal("an extent is not given"))?, extent_name(extent))
                }
                Source::RowStride(operand) => {
                    let bound = self.operand(operand)?;
                    (bound.stride, format!("the row stride of `{}`", bound.name))
                }
            };
            if *ty == Ty::I32 && i32::try_from(value).is_err() {
                return Err(Error::TooLarge {
                    what: format!("{name} is {value}"),
                    limit: i32::MAX as u64,
                    remedy: "Split the problem along it",
                });
            }
            Ok(Some(value))
        };
        params.map(|param| value(&param.kind)).collect()
    }

    fn check(&self, variant: &Variant, scalars: &[Option<u64>]) -> Result<()> {
        let kernel = &variant.kernel;
        let unmet = |need: String, has: String, remedy: &'static str| {
            Err(Error::Unmet { kernel: kernel.name.clone(), need, has, remedy })
        };
        for param in &kernel.params {
            let ParamKind::Buffer {
                operand: operand @ (Operand::Input(_) | Operand::Output(_)),
                ..
            } = param.kind
            else {
                continue;
            };
            let bound = self.operand(operand)?;
            let takes_stride = kernel.params.iter().any(|p| {
                matches!(p.kind, ParamKind::Scalar { source: Source::RowStride(o), .. }
                    if o == operand)
            });
            if !bound.packed && !takes_stride {
                return unmet(
                    format!("packed rows of `{}`", bound.name),
                    format!("its rows are {} elements apart", bound.stride),
                    "Add `pitched` to the kernel, or use a matrix without padding",
                );
            }
        }
        let scalar = |s: &gemm_dsl::ir::Scalar| {
            let value = scalars.get(s.param).copied().flatten();
            let name = kernel.params.get(s.param).map_or("", |p| &p.name);
            value.map(|v| (v, name)).ok_or_else(|| internal("a requirement on no scalar"))
        };
        for requirement in &kernel.requires {
            match requirement {
                // The device aligns its own allocations to 256 bytes.
                Requirement::Aligned { operand: Operand::Scratch(_), .. } => {}
                Requirement::Aligned { operand, bytes } => {
                    let bound = self.operand(*operand)?;
                    if !bound.place.is_aligned(*bytes) {
                        return unmet(
                            format!("`{}` aligned to {bytes} bytes", bound.name),
                            "it is not".to_owned(),
                            "Start a view at a multiple of 4 elements",
                        );
                    }
                }
                Requirement::Multiple { scalar: s, of } => {
                    let (value, name) = scalar(s)?;
                    if !value.is_multiple_of(*of) {
                        return unmet(
                            format!("{name} to be a multiple of {of}"),
                            format!("it is {value} = {}·{of} + {}", value / of, value % of),
                            "Pad the operands, or use a kernel with `bounds: guarded`",
                        );
                    }
                }
                Requirement::Range { scalar: s, min, max } => {
                    let (value, name) = scalar(s)?;
                    if !(min..=max).contains(&&value) {
                        return unmet(
                            format!("{name} between {min} and {max}"),
                            format!("it is {value}"),
                            "Split the problem along it",
                        );
                    }
                }
            }
        }
        Ok(())
    }
}

impl Chosen<'_> {
    /// The value of a rule over the scalar parameters.
    pub(crate) fn eval(&self, rule: &Expr) -> Result<u64> {
        let value = self.variant.kernel.eval(rule, &self.scalars)?;
        u64::try_from(value).map_err(|_| internal(&format!("a launch rule gives {value}")))
    }

    /// The grid; none where there is nothing to launch.
    pub(crate) fn grid(&self) -> Result<Option<Grid>> {
        let kernel = &self.variant.kernel;
        let mut blocks = [0; 2];
        for (axis, (rule, limit)) in kernel.geometry.grid.iter().zip(GRID_LIMITS).enumerate() {
            let value = self.eval(rule)?;
            if value > limit {
                let axis = if axis == 0 { 'x' } else { 'y' };
                return Err(Error::TooLarge {
                    what: format!("kernel `{}` needs {value} blocks along {axis}", kernel.name),
                    limit,
                    remedy: "Use larger tiles, or more items per thread, or split the problem",
                });
            }
            blocks[axis] = u32::try_from(value).unwrap_or(u32::MAX);
        }
        let [x, y] = blocks;
        Ok((x > 0 && y > 0).then_some(Grid { x, y }))
    }
}

fn extent_name(extent: Extent) -> String {
    match extent {
        Extent::Length => "the length",
        Extent::M => "m",
        Extent::N => "n",
        Extent::K => "k",
    }
    .to_owned()
}

fn internal(what: &str) -> Error {
    Error::Internal(format!("binding the arguments failed: {what}"))
}
