//! Rules of a program.

use super::{Expr, KernelId, Launch, Program, Slot, Step, TempFill};
use crate::ir::contract::{Contract, Parameter};
use crate::ir::eval;
use crate::ir::{Elem, Operand, Source, Ty, VerifiedKernel};
use std::collections::HashSet;
use std::hash::Hash;

type CheckResult<T = ()> = Result<T, String>;

pub(super) fn program(program: &Program) -> CheckResult {
    let mut check = ProgramCheck {
        p: program,
        used: HashSet::new(),
        read: HashSet::new(),
        numbers: HashSet::new(),
        values: HashSet::new(),
        launched: HashSet::new(),
    };
    check.declarations()?;
    let mut written = HashSet::new();
    let filled =
        program.temps.iter().enumerate().filter(|(_, t)| t.fill != TempFill::Uninitialised);
    written.extend(filled.map(|(n, _)| Slot::Temp(n)));
    written.extend((0..program.inputs.len()).map(Slot::Input));
    check.steps(&program.steps, &mut written)?;
    for (n, output) in program.outputs.iter().enumerate() {
        require(written.contains(&Slot::Output(n)), || {
            format!("`{}` is not written whichever way the steps go", output.name)
        })?;
    }
    for (n, temp) in program.temps.iter().enumerate() {
        require(check.used.contains(&Slot::Temp(n)), || format!("`{}` is not used", temp.name))?;
    }
    for (n, input) in program.inputs.iter().enumerate() {
        require(check.used.contains(&Slot::Input(n)), || format!("`{}` is not used", input.name))?;
    }
    for (n, output) in program.outputs.iter().enumerate().filter(|(_, output)| output.is_given) {
        let is_read = check.read.contains(&Slot::Output(n));
        require(is_read, || format!("`{}` is given and not read", output.name))?;
    }
    program.temps.iter().flat_map(|temp| &temp.dims).for_each(|dim| check.count(dim));
    // Values are visited from the last to the first: a used value marks the values that it depends
    // on as used.
    for (n, value) in program.values.iter().enumerate().rev() {
        require(check.values.contains(&n), || format!("value {n} is not used"))?;
        check.count(&value.expr);
    }
    for (n, argument) in program.arguments.iter().enumerate() {
        require(check.numbers.contains(&n), || format!("`{}` is not used", argument.name))?;
    }
    for (n, kernel) in program.kernels.iter().enumerate() {
        require(check.launched.contains(&KernelId(n)), || {
            format!("kernel {n}, `{}`, is never launched", kernel.name)
        })?;
    }
    Ok(())
}

fn require(ok: bool, rule: impl FnOnce() -> String) -> CheckResult {
    if ok { Ok(()) } else { Err(rule()) }
}

fn distinct<T: Hash + Eq>(items: impl IntoIterator<Item = T>) -> bool {
    let mut seen = HashSet::new();
    items.into_iter().all(|item| seen.insert(item))
}

struct ProgramCheck<'p> {
    p: &'p Program,
    /// Arrays that some launch uses.
    used: HashSet<Slot>,
    /// Arrays that some kernel reads.
    read: HashSet<Slot>,
    /// Numbers of the caller that a kernel takes, or that decide which kernels are launched.
    numbers: HashSet<usize>,
    /// Values that some expression depends on.
    values: HashSet<usize>,
    launched: HashSet<KernelId>,
}

/// Kind of a parameter in an expression: an extent, or a number or value with its index.
enum Handle {
    Extent,
    Argument(usize),
    Value(usize),
}

impl ProgramCheck<'_> {
    fn declarations(&self) -> CheckResult {
        let p = self.p;
        require(!p.kernels.is_empty(), || "it has no kernel".to_owned())?;
        require(distinct(&p.extents), || "an extent is declared twice".to_owned())?;
        let arrays = p.inputs.iter().chain(&p.outputs);
        let names = arrays.clone().map(|a| &a.name).chain(p.arguments.iter().map(|a| &a.name));
        require(distinct(names), || "two inputs of the caller have one name".to_owned())?;
        require(distinct(arrays.clone().map(|a| a.operand)), || {
            "two arrays of the caller are one operand".to_owned()
        })?;
        for array in arrays.clone() {
            let typed =
                |count| self.typed(count, Ty::U64, &format!("the length of `{}`", array.name));
            array.count.iter().try_for_each(typed)?;
        }
        let declared = arrays.map(|a| (&*a.name, &a.dims));
        for (name, dims) in declared.chain(p.temps.iter().map(|t| (t.name, &t.dims))) {
            require(!dims.is_empty(), || format!("`{name}` has no dimensions"))?;
            for dim in dims {
                self.typed(dim, Ty::U64, &format!("an extent of `{name}`"))?;
            }
        }
        for (n, value) in p.values.iter().enumerate() {
            require(value.behind == p.extents.len() + p.arguments.len(), || {
                format!("an extent or a number was added after value {n}")
            })?;
            self.typed_over(n, &value.expr, Ty::U64, &format!("value {n}"))?;
        }
        Ok(())
    }

    /// Checks the type of an expression, which may contain extents, the caller's numbers and all
    /// values.
    fn typed(&self, expr: &Expr, ty: Ty, what: &str) -> CheckResult {
        self.typed_over(self.p.values.len(), expr, ty, what)
    }

    /// Checks the type of an expression, which may contain only the first `values` values.
    fn typed_over(&self, values: usize, expr: &Expr, ty: Ty, what: &str) -> CheckResult {
        let found = eval::check(expr, &[], &|param| {
            let ty = match self.kind(param.param) {
                Handle::Extent => Some(Ty::U64),
                Handle::Argument(n) => Some(self.p.arguments[n].ty),
                Handle::Value(n) => (n < values).then_some(Ty::U64),
            };
            require(ty == Some(param.ty), || format!("it is over an unknown number {param:?}"))
        });
        let found = found.map_err(|e| format!("{what}: {e}"))?;
        require(found == ty, || format!("{what} is of type {found}, not {ty}"))
    }

    fn kind(&self, param: usize) -> Handle {
        let (extents, arguments) = (self.p.extents.len(), self.p.arguments.len());
        match param.checked_sub(extents) {
            None => Handle::Extent,
            Some(n) if n < arguments => Handle::Argument(n),
            Some(n) => Handle::Value(n - arguments),
        }
    }

    /// Marks the caller's numbers and the values that an expression uses.
    fn count(&mut self, expr: &Expr) {
        expr.visit(&mut |e| {
            let Expr::Param(p) = e else { return };
            match self.kind(p.param) {
                Handle::Extent => {}
                Handle::Argument(n) => _ = self.numbers.insert(n),
                Handle::Value(n) => _ = self.values.insert(n),
            }
        });
    }

    fn steps(&mut self, steps: &[Step], written: &mut HashSet<Slot>) -> CheckResult {
        for step in steps {
            match step {
                Step::Launch(launch) => self.launch(launch, written)?,
                Step::If { cond, then, otherwise } => {
                    self.typed(cond, Ty::Bool, "a condition")?;
                    self.count(cond);
                    let mut other = written.clone();
                    self.steps(then, written)?;
                    self.steps(otherwise, &mut other)?;
                    written.retain(|slot| other.contains(slot));
                }
            }
        }
        Ok(())
    }

    fn launch(&mut self, launch: &Launch, written: &mut HashSet<Slot>) -> CheckResult {
        require(!launch.choose.is_empty(), || "a launch of no kernel".to_owned())?;
        let last = launch.choose.last().and_then(|id| self.p.kernels.get(id.0));
        require(!last.is_some_and(|kernel| kernel.is_optional), || {
            "the last kernel of a launch is optional".to_owned()
        })?;
        require(distinct(launch.bind.iter().map(|b| b.0)), || {
            "a launch binds an operand twice".to_owned()
        })?;
        require(distinct(launch.extents.iter().map(|e| e.0)), || {
            "a launch gives an extent twice".to_owned()
        })?;
        for (extent, value) in &launch.extents {
            self.typed(value, Ty::U64, &format!("{extent} of a launch"))?;
            self.count(value);
        }
        for (_, slot) in &launch.bind {
            self.array(*slot)?;
            self.used.insert(*slot);
        }
        let mut writes = Vec::new();
        for (nth, id) in launch.choose.iter().enumerate() {
            let program = self.p;
            let kernel = program.kernels.get(id.0).ok_or_else(|| format!("there is no {id:?}"))?;
            self.launched.insert(*id);
            let writes_too = self.kernel(kernel, launch, written)?;
            // Scratch arrays of one kernel need not be those of another.
            let lasting = |slots: &[Slot]| {
                let slots = slots.iter().copied();
                slots.filter(|slot| !matches!(slot, Slot::Temp(_))).collect::<Vec<Slot>>()
            };
            require(nth == 0 || lasting(&writes) == lasting(&writes_too), || {
                format!("`{}` does not write what the kernels before it write", kernel.name)
            })?;
            match nth {
                0 => writes = writes_too,
                _ => writes.retain(|slot| writes_too.contains(slot)),
            }
        }
        written.extend(writes);
        self.takes_all(launch)
    }

    /// Checks that each array and each extent of a launch belongs to one of its kernels.
    fn takes_all(&self, launch: &Launch) -> CheckResult<()> {
        let kernels = launch.choose.iter().filter_map(|id| self.p.kernels.get(id.0));
        let kernels: Vec<&VerifiedKernel> = kernels.collect();
        let Some(first) = kernels.first() else { return Ok(()) };
        let contracts = kernels.iter().map(|kernel| kernel.contract());
        for (operand, _) in &launch.bind {
            let has = |contract: &Contract| contract.arrays().any(|a| a.operand == *operand);
            require(contracts.clone().any(has), || format!("`{}` has no {operand:?}", first.name))?;
        }
        for (extent, _) in &launch.extents {
            let takes = |contract: &Contract| contract.takes_extent(*extent);
            require(contracts.clone().any(takes), || {
                format!("`{}` takes no {extent}", first.name)
            })?;
        }
        Ok(())
    }

    /// Checks one kernel of a launch. Returns the arrays that it writes, in the order of its
    /// parameters.
    fn kernel(
        &mut self,
        kernel: &VerifiedKernel,
        launch: &Launch,
        written: &HashSet<Slot>,
    ) -> CheckResult<Vec<Slot>> {
        let (name, contract) = (&kernel.name, kernel.contract());
        let slot_of = |operand: Operand| {
            let bound = launch.bind.iter().find(|(o, _)| *o == operand).map(|(_, slot)| *slot);
            bound.ok_or_else(|| format!("{operand:?} of `{name}` is not bound"))
        };
        let mut writes = Vec::new();
        for array in contract.arrays() {
            let slot = slot_of(array.operand)?;
            let ((rank, elem), expected) = (self.array(slot)?, array.rank());
            require(rank == expected, || {
                format!("{} of `{name}` has {expected} dimensions, {slot:?} {rank}", array.name)
            })?;
            let (takes, is) = (array.is_list(), self.is_list(slot));
            require(takes == is, || {
                let of = |list| if list { "a list" } else { "one array" };
                format!("{} of `{name}` is {}, {slot:?} {}", array.name, of(takes), of(is))
            })?;
            require(array.takes(elem), || {
                format!("{} of `{name}` is of {}, {slot:?} of {elem}", array.name, array.elem)
            })?;
            // A kernel may write its own scratch array before it reads it, unless it uses atomics,
            // which read first.
            let own =
                matches!(array.operand, Operand::Temp(_)) && array.is_written && !array.is_atomic;
            let given = match slot {
                Slot::Output(n) => self.p.outputs[n].is_given,
                Slot::Input(_) | Slot::Temp(_) => false,
            };
            if array.is_read && !own && !given {
                require(written.contains(&slot), || {
                    format!("`{name}` reads {slot:?} before it is written")
                })?;
            }
            if array.is_read {
                self.read.insert(slot);
            }
            if array.is_written {
                require(!matches!(slot, Slot::Input(_)), || format!("`{name}` writes {slot:?}"))?;
                let bound = launch.bind.iter().filter(|(_, other)| *other == slot).count();
                require(bound == 1, || {
                    format!("`{name}` writes {slot:?}, which is bound to another operand too")
                })?;
                writes.push(slot);
            }
        }
        for param in &contract.params {
            let Parameter::Scalar { ty, source, .. } = param else { continue };
            match *source {
                Source::Extent(extent) => {
                    require(launch.extents.iter().any(|(e, _)| *e == extent), || {
                        format!("{extent} of `{name}` is not given")
                    })?;
                    require(ty.is_integer(), || format!("{extent} of `{name}` is not an integer"))?;
                }
                Source::Stride { operand, dim } => {
                    let (rank, _) = self.array(slot_of(operand)?)?;
                    require(dim < rank && ty.is_integer(), || {
                        format!("the stride {dim} of {operand:?} of `{name}`")
                    })?;
                }
                Source::Argument(n) => {
                    let argument = self.p.arguments.get(n);
                    require(argument.is_some_and(|argument| argument.ty == *ty), || {
                        format!("number {n} of `{name}` is not of type {ty}")
                    })?;
                    self.numbers.insert(n);
                }
            }
        }
        Ok(writes)
    }

    /// Returns true if the caller passes a list of arrays.
    fn is_list(&self, slot: Slot) -> bool {
        let array = match slot {
            Slot::Input(n) => self.p.inputs.get(n),
            Slot::Output(n) => self.p.outputs.get(n),
            Slot::Temp(_) => None,
        };
        array.is_some_and(|array| array.count.is_some())
    }

    /// Rank and element type of an array.
    fn array(&self, slot: Slot) -> CheckResult<(usize, Elem)> {
        let array = match slot {
            Slot::Input(n) => self.p.inputs.get(n).map(|a| (a.dims.len(), a.elem)),
            Slot::Output(n) => self.p.outputs.get(n).map(|a| (a.dims.len(), a.elem)),
            Slot::Temp(n) => self.p.temps.get(n).map(|t| (t.dims.len(), t.elem)),
        };
        array.ok_or_else(|| format!("there is no {slot:?}"))
    }
}
