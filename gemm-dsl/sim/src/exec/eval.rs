//! Evaluation of expressions for a warp.

mod apply;
mod uniform;
mod wide;

use super::convert::convert;
use super::frames::Outcome;
use super::lanes::{ArithmeticFault, Lanes, blend, compare, float, fma, int, unsigned};
use super::machine::{Machine, Registers};
use super::memory::{Quad, part, words_of};
use crate::error::FaultKind;
use crate::lower::code::expr::{Choice, Lane, Lazy, Number, Pred, Vector, Wide};
use crate::mask::{ALL, WARP, lanes_of, mask_where};
use crate::observe::{AccessKind, BoxedTrap, trap};
use crate::trace::Action;
use gemm_dsl::ir::{Elem, Ty};
use gemm_dsl::target::intrinsic::{Shuffle, canonical};

fn arithmetic(error: ArithmeticFault) -> BoxedTrap {
    trap(error.lane, *error.kind)
}

fn conversion(lane: u32, value: i128, ty: Ty) -> BoxedTrap {
    trap(lane, FaultKind::Conversion { value, ty })
}

impl Machine<'_> {
    /// Evaluates a 32-bit value for each lane. If the value is already in a slot, it returns the
    /// slot; otherwise it writes the value to `out` and returns `out`.
    #[inline]
    pub(crate) fn lane<'r>(
        &mut self,
        lane: &Lane,
        regs: &'r Registers,
        mask: u32,
        out: &'r mut Lanes,
    ) -> Result<&'r Lanes, BoxedTrap> {
        match lane {
            Lane::Slot(slot) => Ok(&regs.lanes[*slot as usize]),
            Lane::Element(slot) => {
                self.ready(*slot, regs, mask)?;
                Ok(&regs.lanes[*slot as usize])
            }
            _ => {
                self.compute(lane, regs, mask, out)?;
                Ok(out)
            }
        }
    }

    fn pair<'r>(
        &mut self,
        operands: &[Lane; 2],
        regs: &'r Registers,
        mask: u32,
        [a, b]: [&'r mut Lanes; 2],
    ) -> Result<[&'r Lanes; 2], BoxedTrap> {
        Ok([self.lane(&operands[0], regs, mask, a)?, self.lane(&operands[1], regs, mask, b)?])
    }

    fn compute(
        &mut self,
        lane: &Lane,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        match lane {
            Lane::Slot(_) | Lane::Element(_) => {
                let mut unused = Lanes::ZERO;
                *out = *self.lane(lane, regs, mask, &mut unused)?;
            }
            Lane::Uniform(e) => *out = Lanes::splat(self.uniform(e, regs, mask)? as u32),
            Lane::Bits(bits) => *out = Lanes::splat(*bits),
            Lane::Register(memory) => self.load_register(memory, regs, mask, out)?,
            Lane::Load(memory) => self.load(memory, regs, mask, AccessKind::Read, out)?,
            Lane::Neg(e) => self.negate(e, regs, mask, out)?,
            Lane::NegFloat(e) => {
                let mut buffer = Lanes::ZERO;
                let value = self.lane(e, regs, mask, &mut buffer)?;
                for l in 0..WARP {
                    out.0[l] = canonical(-f32::from_bits(value.0[l])).to_bits();
                }
            }
            Lane::I32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                int(*op, a, b, mask, out).map_err(arithmetic)?;
            }
            Lane::U32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                unsigned(*op, a, b, mask, out).map_err(arithmetic)?;
            }
            Lane::Convert(conversion) => {
                let mut bits = [0; WARP];
                self.convert(conversion, regs, mask, &mut bits)?;
                out.0 = bits.map(|b| b as u32);
            }
            Lane::F32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                float(*op, a, b, out);
            }
            Lane::Select(choice) => {
                self.choose(choice, regs, mask, |machine, arm, mask| {
                    let mut buffer = Lanes::ZERO;
                    let value = machine.lane(arm, regs, mask, &mut buffer)?;
                    blend(&mut out.0, &value.0, mask);
                    Ok(())
                })?;
            }
            Lane::Narrow(e) => self.narrow(e, regs, mask, out)?,
            Lane::Fma(operands) => {
                let (mut a, mut b, mut c) = (Lanes::ZERO, Lanes::ZERO, Lanes::ZERO);
                let a = self.lane(&operands[0], regs, mask, &mut a)?;
                let b = self.lane(&operands[1], regs, mask, &mut b)?;
                let c = self.lane(&operands[2], regs, mask, &mut c)?;
                *out = fma(self.arch, a, b, c);
            }
            Lane::Function(function, operands) => {
                let mut values = [Lanes::ZERO; 3];
                for (value, operand) in values.iter_mut().zip(operands) {
                    self.compute(operand, regs, mask, value)?;
                }
                for l in 0..WARP {
                    let operands = values.each_ref().map(|v| f32::from_bits(v.0[l]));
                    out.0[l] = function(operands).to_bits();
                }
            }
            Lane::Local(local) => *out = *self.frames.lane(*local),
            Lane::Apply(apply) => match self.apply(apply, regs, mask)? {
                Outcome::Lane(value) => *out = value,
                _ => unreachable!("verified: the function gives a value of 4 bytes"),
            },
            Lane::Shuffle(name, shuffle, operands) => {
                self.shuffle(name, *shuffle, operands, regs, mask, out)?;
            }
            Lane::OrOfLanes(name, operand) => self.or_of_lanes(name, operand, regs, mask, out)?,
            Lane::Ballot(name, operand) => {
                self.converged(name, mask)?;
                *out = Lanes([self.pred(operand, regs, mask)?; WARP]);
            }
            Lane::CountOnes(operand) => {
                let mut value = Lanes::ZERO;
                self.compute(operand, regs, mask, &mut value)?;
                out.0 = value.0.map(u32::count_ones);
            }
            Lane::Pack(elem, operands) => self.pack(*elem, operands, regs, mask, out)?,
            Lane::Part(vector, elem, i) => {
                self.part_of(vector, *elem, (*i).into(), regs, mask, out)?
            }
        }
        Ok(())
    }

    /// Negates an `I32`. Returns an error on overflow.
    fn negate(
        &mut self,
        e: &Lane,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let mut buffer = Lanes::ZERO;
        let value = self.lane(e, regs, mask, &mut buffer)?;
        for l in lanes_of(mask) {
            let v = value.0[l] as i32;
            let negated = v.checked_neg();
            let negated = negated.ok_or_else(|| conversion(l as u32, -i128::from(v), Ty::I32))?;
            out.0[l] = negated as u32;
        }
        Ok(())
    }

    /// Converts a `U64` to an `I32`.
    fn narrow(
        &mut self,
        e: &Wide,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let mut value = [0; WARP];
        self.wide(e, regs, mask, &mut value)?;
        let wrong = mask_where(|l| value[l] > i32::MAX as u64) & mask;
        if wrong != 0 {
            let lane = wrong.trailing_zeros();
            return Err(conversion(lane, value[lane as usize].into(), Ty::I32));
        }
        out.0 = value.map(|v| v as u32);
        Ok(())
    }

    fn shuffle(
        &mut self,
        name: &'static str,
        shuffle: Shuffle,
        operands: &[Lane; 2],
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
        let [value, delta] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
        let sources = self.sources(name, shuffle, delta, mask)?;
        for l in lanes_of(mask) {
            out.0[l] = value.0[sources[l]];
        }
        let values = value.0.map(u64::from);
        self.shuffled(values, &sources, mask);
        Ok(())
    }

    /// Evaluates the bitwise OR of the values of all lanes.
    fn or_of_lanes(
        &mut self,
        name: &'static str,
        operand: &Lane,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let mut value = Lanes::ZERO;
        self.compute(operand, regs, mask, &mut value)?;
        self.converged(name, mask)?;
        let all = lanes_of(mask).fold(0, |all, l| all | value.0[l]);
        *out = Lanes([all; WARP]);
        Ok(())
    }

    /// Packs two binary32 numbers into the halves of a word.
    fn pack(
        &mut self,
        elem: Elem,
        operands: &[Lane; 2],
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
        let [low, high] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
        for l in lanes_of(mask) {
            let half = |of: &Lanes| convert(Elem::F32, elem, of.0[l].into());
            let halves = half(low).and_then(|low| Ok((low, half(high)?)));
            let (low, high) = halves.map_err(|kind| trap(l as u32, kind))?;
            out.0[l] = (low | high << 16) as u32;
        }
        Ok(())
    }

    /// Extracts an element of a vector.
    fn part_of(
        &mut self,
        vector: &Vector,
        elem: Elem,
        i: usize,
        regs: &Registers,
        mask: u32,
        out: &mut Lanes,
    ) -> Result<(), BoxedTrap> {
        let mut values = Quad::default();
        self.vector(vector, regs, mask, &mut values)?;
        if elem.size() == 4 {
            *out = values[i % 4];
        } else {
            for l in 0..WARP {
                out.0[l] = part(elem, &values.each_ref().map(|v| v.0[l]), i);
            }
        }
        Ok(())
    }

    /// Source lane of each lane of a shuffle.
    fn sources(
        &self,
        intrinsic: &'static str,
        shuffle: Shuffle,
        by: &Lanes,
        mask: u32,
    ) -> Result<[usize; WARP], BoxedTrap> {
        self.converged(intrinsic, mask)?;
        let mut sources = [0; WARP];
        for l in lanes_of(mask) {
            let delta = by.0[l] as i32;
            let fault = || trap(l as u32, FaultKind::ShuffleSource { delta });
            let by = usize::try_from(delta).ok().filter(|&by| by < WARP).ok_or_else(fault)?;
            let source = match shuffle {
                // A lane whose source would be past the end of the warp reads its own value.
                Shuffle::Down if l + by < WARP => l + by,
                Shuffle::Down => l,
                Shuffle::Up => l.checked_sub(by).unwrap_or(l),
                Shuffle::Xor => l ^ by,
                Shuffle::From => by,
            };
            if self.existing >> source & 1 == 0 {
                return Err(fault());
            }
            sources[l] = source;
        }
        Ok(sources)
    }

    /// Records a shuffle in the trace, if the block is recorded.
    pub(crate) fn shuffled(&mut self, values: [u64; WARP], sources: &[usize; WARP], mask: u32) {
        let rank = self.rank;
        if let Some(recorder) = self.recorder() {
            let of = |lane: usize| (mask >> lane & 1 == 1).then_some(sources[lane] as u8);
            let sources = std::array::from_fn(of);
            recorder.did(rank, Action::Shuffle { values: Box::new(values), sources });
        }
    }

    /// Returns a fault unless all existing lanes of the warp execute the intrinsic.
    pub(crate) fn converged(&self, intrinsic: &'static str, mask: u32) -> Result<(), BoxedTrap> {
        let absent = (self.existing & !mask).count_ones();
        if absent == 0 {
            return Ok(());
        }
        let kind = FaultKind::DivergentIntrinsic { intrinsic, absent };
        Err(trap(mask.trailing_zeros(), kind))
    }

    /// Evaluates each branch of a select in the lanes that select it.
    fn choose<T>(
        &mut self,
        choice: &Choice<T>,
        regs: &Registers,
        mask: u32,
        mut arm: impl FnMut(&mut Self, &T, u32) -> Result<(), BoxedTrap>,
    ) -> Result<(), BoxedTrap> {
        let holds = self.pred(&choice.cond, regs, mask)?;
        for (lazy, mask) in [(&choice.yes, holds), (&choice.no, mask & !holds)] {
            if mask != 0 {
                self.executes(lazy.site, mask);
                arm(self, &lazy.value, mask)?;
            }
        }
        Ok(())
    }

    /// Evaluates a boolean for each lane. Returns the mask of the active lanes in which it is true.
    pub(crate) fn pred(
        &mut self,
        pred: &Pred,
        regs: &Registers,
        mask: u32,
    ) -> Result<u32, BoxedTrap> {
        let holds = match pred {
            Pred::Uniform(uniform) => match self.uniform(uniform, regs, mask)? {
                0 => 0,
                _ => mask,
            },
            Pred::Slot(slot) => regs.preds[*slot as usize],
            Pred::I32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                compare(*op, &a.i32s(), &b.i32s())
            }
            Pred::F32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                compare(*op, &a.0.map(f32::from_bits), &b.0.map(f32::from_bits))
            }
            Pred::U32(op, operands) => {
                let (mut a, mut b) = (Lanes::ZERO, Lanes::ZERO);
                let [a, b] = self.pair(operands, regs, mask, [&mut a, &mut b])?;
                compare(*op, &a.0, &b.0)
            }
            Pred::U64(op, operands) | Pred::I64(op, operands) | Pred::F64(op, operands) => {
                let (mut a, mut b) = ([0; WARP], [0; WARP]);
                self.wide(&operands[0], regs, mask, &mut a)?;
                self.wide(&operands[1], regs, mask, &mut b)?;
                match pred {
                    Pred::U64(..) => compare(*op, &a, &b),
                    Pred::I64(..) => compare(*op, &a.map(|v| v as i64), &b.map(|v| v as i64)),
                    _ => compare(*op, &a.map(f64::from_bits), &b.map(f64::from_bits)),
                }
            }
            Pred::Local(local) => self.frames.pred(*local),
            Pred::Apply(apply) => match self.apply(apply, regs, mask)? {
                Outcome::Pred(value) => value,
                _ => unreachable!("verified: the function gives a boolean"),
            },
            Pred::Not(e) => !self.pred(e, regs, mask)?,
            Pred::And(pair) => {
                let left = self.pred(&pair.0, regs, mask)?;
                self.lazy_pred(&pair.1, regs, left)?
            }
            Pred::Or(pair) => {
                let left = self.pred(&pair.0, regs, mask)?;
                left | self.lazy_pred(&pair.1, regs, mask & !left)?
            }
            Pred::Select(choice) => {
                let mut chosen = 0;
                self.choose(choice, regs, mask, |machine, arm, mask| {
                    chosen |= machine.pred(arm, regs, mask)?;
                    Ok(())
                })?;
                chosen
            }
        };
        Ok(holds & mask)
    }

    fn lazy_pred(
        &mut self,
        lazy: &Lazy<Pred>,
        regs: &Registers,
        mask: u32,
    ) -> Result<u32, BoxedTrap> {
        if mask == 0 {
            return Ok(0);
        }
        self.executes(lazy.site, mask);
        self.pred(&lazy.value, regs, mask)
    }

    /// Evaluates 16 bytes for each lane, as four words.
    pub(crate) fn vector(
        &mut self,
        vector: &Vector,
        regs: &Registers,
        mask: u32,
        out: &mut Quad,
    ) -> Result<(), BoxedTrap> {
        match vector {
            Vector::Slot(slot) => {
                for (slot, out) in (*slot..).zip(out) {
                    self.ready(slot, regs, mask)?;
                    *out = regs.lanes[slot as usize];
                }
            }
            Vector::Register(memory) => self.load_register_vector(memory, regs, mask, out)?,
            Vector::Load(memory) => self.load_vector(memory, regs, mask, AccessKind::Read, out)?,
            Vector::Pack(elem, parts) if elem.size() == 4 => {
                for (part, out) in parts.iter().zip(out) {
                    let Number::Lane(part) = part else {
                        unreachable!("an element of 4 bytes is a lane's value");
                    };
                    self.compute(part, regs, mask, out)?;
                }
            }
            Vector::Pack(elem, parts) => {
                let mut bits = vec![[0; WARP]; elem.vector_lanes().into()];
                for (part, bits) in parts.iter().zip(&mut bits) {
                    self.number(part, regs, mask, bits)?;
                }
                for l in lanes_of(ALL) {
                    let words = words_of(*elem, |i| bits[i][l]);
                    out.iter_mut().zip(words).for_each(|(out, word)| out.0[l] = word);
                }
            }
            Vector::Select(choice) => {
                self.choose(choice, regs, mask, |machine, arm, mask| {
                    let mut values = Quad::default();
                    machine.vector(arm, regs, mask, &mut values)?;
                    for (out, value) in out.iter_mut().zip(&values) {
                        blend(&mut out.0, &value.0, mask);
                    }
                    Ok(())
                })?;
            }
        }
        Ok(())
    }
}
