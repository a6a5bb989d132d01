//! The spec of an elementwise kernel.

use super::epilogue::{Along, ArgSlot, EpilogueArg};
use super::expression::Elementwise;
use super::table::{Follow, derived_name, given_name, spec};
use super::{DataType, Spec};
use crate::expr::{Closure, ClosureParam, ClosureResult};
use crate::ir::Elem;

spec! {
    /// Elementwise kernel: each element of the results is computed from the operands' elements at
    /// the same index.
    MapSpec for "map_kernel", functions "map_" {
        /// Expression of the results. Its parameters are the operands: matrices `x[m, n]`, vectors
        /// `v[n]` with an element for each column, vectors `v[m]` with an element for each row, and
        /// numbers. It may use four integers: the index `row` and `col`, and the extents `m` and
        /// `n`. Several results are a tuple.
        map(Elementwise): Option<Elementwise> = None::<Elementwise>, "{}", bare true,
            what(Inputs, Results);
        /// Element type of the operands and results that state none. A number of a narrow type is
        /// passed as the type in which it is computed: `f32` for `f16` and `bf16`, `i32` for `i8`
        /// and `u8`.
        element(DataType): DataType = DataType::F32, "{}", called "type", what(Inputs, Results);
        /// Number of threads of a block: a multiple of 32, up to 1024.
        block(u32): u32 = 256, "block{}";
        /// Number of items of a thread. An item is a vector of 16 bytes of each array, or several
        /// vectors of the wider arrays if the element types differ in size. More items keep more
        /// loads in flight and cost registers. Without the key: as many as load 64 bytes, at most
        /// 4.
        items(u32): Option<u32> = None::<u32>, "items{}",
            least 1 "a thread computes at least one item";
    }
}

/// Operand of an elementwise kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MapOperand {
    /// Name, axes and position among the arguments of a launch.
    pub arg: EpilogueArg,
    /// Element type; of a number, the type of the argument.
    pub elem: Elem,
}

/// Result of an elementwise kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MapResult {
    /// Name in messages and in calls by name: `output`, or `output_0`, `output_1` and so on.
    pub name: &'static str,
    pub elem: Elem,
    /// [`Along::Mn`], or [`Along::M`] for one value for each row.
    pub along: Along,
}

impl Follow for MapSpec {}

impl MapSpec {
    /// Macro of the specs that fold over rows.
    pub const ROWS: &'static str = "row_kernel";

    /// Returns the kernel's name: `map_` with the user's name, or a name derived from the spec. A
    /// kernel that folds over rows has `row_` in place of `map_`.
    pub fn kernel_name(&self) -> String {
        let (prefix, stem) =
            if self.has_folds() { ("row_", "row") } else { (<Self as Spec>::PREFIX, "map") };
        match &self.name {
            Some(name) => given_name(prefix, name),
            None => derived_name(stem.to_owned(), self),
        }
    }

    fn closure(&self) -> Option<&Closure> {
        self.map.as_ref().map(Elementwise::closure)
    }

    /// Returns the operands that a call passes, in order.
    pub fn operands(&self) -> Vec<MapOperand> {
        let (mut arrays, mut numbers) = (0.., 0..);
        let params = self.closure().map_or(&[][..], Closure::params);
        let operands = params.iter().filter_map(|param| {
            let along = along_of(param);
            let slot = match along {
                Along::Nothing => numbers.next().map(ArgSlot::Number)?,
                _ => arrays.next().map(ArgSlot::Array)?,
            };
            let arg = EpilogueArg { name: param.name.clone().into(), along, slot };
            Some(MapOperand { arg, elem: self.elem_of(param) })
        });
        operands.collect()
    }

    /// Returns the element type of an operand.
    pub(crate) fn elem_of(&self, param: &ClosureParam) -> Elem {
        let elem = param.elem.unwrap_or(self.element.elem());
        match (along_of(param), param.elem, elem) {
            (Along::Nothing, None, Elem::F16 | Elem::Bf16) => Elem::F32,
            (Along::Nothing, None, Elem::I8 | Elem::U8) => Elem::I32,
            (_, _, elem) => elem,
        }
    }

    /// Returns the results in order.
    pub fn results(&self) -> Vec<MapResult> {
        const NAMES: [&str; 4] = ["output_0", "output_1", "output_2", "output_3"];
        let stated = self.closure().map_or(&[][..], Closure::result_types);
        let result = |(nth, name): (usize, &'static str)| match stated.get(nth) {
            None => MapResult { name, elem: self.element.elem(), along: Along::Mn },
            Some(ClosureResult { elem, per_row }) => {
                MapResult { name, elem: *elem, along: if *per_row { Along::M } else { Along::Mn } }
            }
        };
        match self.closure().map_or(1, |closure| closure.values().len()) {
            1 => vec![result((0, "output"))],
            count => NAMES.into_iter().take(count).enumerate().map(result).collect(),
        }
    }

    /// Returns true if the expression folds over rows.
    pub fn has_folds(&self) -> bool {
        self.closure().is_some_and(|closure| closure.first_fold().is_some())
    }

    /// Returns the macro for the spec: `row_kernel` if the expression folds over rows, otherwise
    /// `map_kernel`.
    pub fn macro_name(&self) -> &'static str {
        if self.has_folds() { Self::ROWS } else { <Self as Spec>::MACRO }
    }

    /// Returns true if no element depends on its row or column, so that a matrix of any shape may
    /// be computed as one row of all its elements.
    pub fn is_flat(&self) -> bool {
        let is_flat =
            |operand: &MapOperand| matches!(operand.arg.along, Along::Nothing | Along::Mn);
        self.operands().iter().all(is_flat) && !self.reads_integers() && !self.has_folds()
    }

    /// Returns true if the expression reads an index or an extent. Each is then less than 2^31, so
    /// that products of two fit in 64 bits.
    pub(crate) fn reads_integers(&self) -> bool {
        let reads =
            |closure: &Closure| ["m", "n", "row", "col"].iter().any(|name| closure.reads(name));
        self.closure().is_some_and(reads)
    }
}

/// Axes along which an operand has elements.
fn along_of(param: &ClosureParam) -> Along {
    Along::indexed_by(&param.index)
        .unwrap_or_else(|| unreachable!("parse: no operand is indexed as `{param}`"))
}
