//! Binding of arguments to a kernel, by name or in order, with one common check.

use super::arguments::{
    Arguments, ArrayAxis, ArrayPlace, BoundArray, Call, MappedArray, ScalarBits,
};
use super::{ArrayParameter, Between, Contract, ContractError, HostExpr, Need, Parameter, Subject};
use crate::ir::{HostError, Operand, Requirement, Scalar, Source, Ty};
use crate::target::arch::GRID_BLOCKS;
use smallvec::SmallVec;

/// Alignment of the address and the strides of an array with a tensor map, in bytes.
const MAP_BYTES: u64 = 16;
/// Maximum number of elements along a dimension of an array with a tensor map.
const MAP_EXTENT: u64 = 1 << 32;
/// Exclusive upper bound of the strides of an array with a tensor map, in bytes.
const MAP_STRIDE: u64 = 1 << 40;

/// Number of dimensions for which a binding needs no allocation.
const FEW_DIMENSIONS: usize = 4;

impl Contract {
    /// Binds arguments by name.
    ///
    /// # Errors
    /// Returns the first rule or requirement that does not hold.
    pub fn bind(&self, given: &Arguments<'_>) -> Result<Call, ContractError> {
        let find = |operand| given.arrays.iter().find(|(o, _)| *o == operand).map(|(_, a)| a);
        // The form is checked first, because a list has no strides, and a batch has other strides.
        for array in self.arrays() {
            if let Some(bound) = find(array.operand) {
                self.form(array, bound)?;
            }
        }
        let mut scalars = ScalarBits::new();
        for param in &self.params {
            scalars.push(match param {
                Parameter::Array(_) => 0,
                Parameter::Scalar { source, .. } => {
                    let value = match *source {
                        Source::Extent(extent) => {
                            given.extents.iter().find(|(e, _)| *e == extent).map(|(_, v)| *v)
                        }
                        Source::Stride { operand, dim } => {
                            find(operand).and_then(|array| stride(array.axes?, dim))
                        }
                        Source::Argument(n) => given.arguments.get(n).copied(),
                    };
                    value.ok_or_else(|| {
                        let bound = |array: &ArrayParameter, _| find(array.operand).copied();
                        self.unmet(self.subject(*source, &bound), Need::Given, 0)
                    })?
                }
            });
        }
        self.check(scalars, |array, _| find(array.operand).copied())
    }

    /// Binds arrays and the bits of scalars given in parameter order.
    ///
    /// # Errors
    /// Same as for [`Contract::bind`].
    pub fn bind_in_order(
        &self,
        arrays: &[BoundArray<'_>],
        scalars: &[u64],
    ) -> Result<Call, ContractError> {
        for (array, bound) in self.arrays().zip(arrays) {
            self.form(array, bound)?;
        }
        let mut given = scalars.iter();
        let mut bits = ScalarBits::new();
        for param in &self.params {
            bits.push(match param {
                Parameter::Array(_) => 0,
                Parameter::Scalar { source, .. } => {
                    let value = given.next().copied();
                    value.ok_or_else(|| {
                        self.unmet(self.subject(*source, &|_, _| None), Need::Given, 0)
                    })?
                }
            });
        }
        self.check(bits, |_, position| arrays.get(position).copied())
    }

    /// Checks all rules and requirements. `find` returns the array of the n-th buffer parameter.
    fn check<'a>(
        &self,
        scalars: ScalarBits,
        find: impl Fn(&ArrayParameter, usize) -> Option<BoundArray<'a>>,
    ) -> Result<Call, ContractError> {
        for (param, &bits) in self.params.iter().zip(&scalars) {
            if let Parameter::Scalar { ty, source, .. } = param {
                let limit = greatest(*ty, *source);
                if bits > limit {
                    let subject = self.subject(*source, &find);
                    return Err(self.unmet(subject, Need::AtMost(limit), bits.into()));
                }
            }
        }
        // Rules and requirements contain extents and strides only, whose bits are their values.
        let values = &scalars[..];
        for (position, array) in self.arrays().enumerate() {
            let bound = find(array, position).ok_or_else(|| {
                self.unmet(self.array(array.operand, &array.name), Need::Given, 0)
            })?;
            if !array.takes(bound.elem) {
                let subject = self.array(array.operand, bound.name);
                let need = Need::Element { expected: array.elem, found: bound.elem };
                return Err(self.unmet(subject, need, 0));
            }
            self.count(array, &bound, values)?;
            self.strides(array, &bound, values)?;
        }
        for (position, array) in self.arrays().enumerate().filter(|(_, array)| array.is_written) {
            let Some(bound) = find(array, position) else { continue };
            self.distinct(array, bound.name, values)?;
        }
        for requirement in &self.requires {
            self.requirement(requirement, values, &find)?;
        }
        for (position, array) in self.arrays().enumerate() {
            let Some(bound) = find(array, position) else { continue };
            let span = self.span(array, values)?;
            for (nth, region) in bound.place.regions().iter().enumerate() {
                if span > region.len.into() {
                    let subject = self.nth(array, bound.name, nth);
                    let needed = u64::try_from(span).unwrap_or(u64::MAX);
                    return Err(self.unmet(subject, Need::Elements(needed), region.len.into()));
                }
            }
        }
        let mut grid = [0; 3];
        for (axis, (blocks, limit)) in self.grid.iter().zip(GRID_BLOCKS.map(u64::from)).enumerate()
        {
            let subject = || Subject::Blocks { axis };
            let value = self.value(blocks, values, subject)?;
            if value > limit {
                return Err(self.unmet(subject(), Need::AtMost(limit), value.into()));
            }
            grid[axis] = value as u32;
        }
        let of = self.cluster;
        if !grid[0].is_multiple_of(of) {
            let need = Need::Multiple { of: of.into() };
            return Err(self.unmet(Subject::Blocks { axis: 0 }, need, grid[0].into()));
        }
        let mut maps = Vec::new();
        // An empty launch needs no tensor maps.
        if !grid.contains(&0) {
            for (position, array) in self.arrays().enumerate().filter(|(_, a)| a.map.is_some()) {
                let Some(bound) = find(array, position) else { continue };
                maps.push(self.mapped(array, position, &bound, values)?);
            }
        }
        Ok(Call { scalars, grid, maps })
    }

    /// Checks the rule for tensor maps.
    fn mapped(
        &self,
        array: &ArrayParameter,
        position: usize,
        bound: &BoundArray<'_>,
        values: &[u64],
    ) -> Result<MappedArray, ContractError> {
        let (operand, size) = (array.operand, u64::from(array.elem.size()));
        for region in bound.place.regions() {
            let beyond = region.address % MAP_BYTES;
            if beyond != 0 {
                let need = Need::Aligned { bytes: MAP_BYTES as u32, elem: array.elem };
                return Err(self.unmet(self.array(operand, bound.name), need, beyond.into()));
            }
        }
        let (mut extents, mut strides) = (SmallVec::new(), SmallVec::new());
        for (dim, (extent, stride)) in array.dims.iter().zip(&array.strides).enumerate() {
            let name = || bound.name.to_owned();
            let subject = || Subject::Dimension { operand, name: name(), dim };
            let extent = self.value(extent, values, subject)?;
            if extent < 1 {
                return Err(self.unmet(subject(), Need::AtLeast(1), extent.into()));
            }
            if extent > MAP_EXTENT {
                return Err(self.unmet(subject(), Need::AtMost(MAP_EXTENT), extent.into()));
            }
            let contiguous = dim == array.contiguous_dim();
            let between = Between::new(dim, array.rank(), contiguous);
            let subject = || Subject::Stride { operand, name: name(), dim, between };
            let stride = self.value(stride, values, subject)?;
            let (of, most) = (MAP_BYTES / size, (MAP_STRIDE - 1) / size);
            if !contiguous && !stride.is_multiple_of(of) {
                return Err(self.unmet(subject(), Need::Multiple { of }, stride.into()));
            }
            if stride > most {
                return Err(self.unmet(subject(), Need::AtMost(most), stride.into()));
            }
            if !contiguous && stride == 0 && extent > 1 {
                return Err(self.unmet(subject(), Need::AtLeast(of), 0));
            }
            extents.push(extent);
            strides.push(stride);
        }
        Ok(MappedArray { position, extents, strides })
    }

    /// Checks that lists are bound to list parameters, and only to them, and that the number of
    /// dimensions is right.
    fn form(&self, array: &ArrayParameter, bound: &BoundArray<'_>) -> Result<(), ContractError> {
        let subject = || self.array(array.operand, bound.name);
        match (&array.count, bound.place) {
            (None, ArrayPlace::One(_)) | (Some(_), ArrayPlace::List(_)) => {}
            (None, ArrayPlace::List(list)) => {
                return Err(self.unmet(subject(), Need::One, list.len() as i128));
            }
            (Some(_), ArrayPlace::One(_)) => return Err(self.unmet(subject(), Need::List, 1)),
        }
        match bound.axes {
            Some(axes) if axes.len() != array.rank() => {
                Err(self.unmet(subject(), Need::Rank(array.rank()), axes.len() as i128))
            }
            _ => Ok(()),
        }
    }

    /// Checks the number of arrays in a list.
    fn count(
        &self,
        array: &ArrayParameter,
        bound: &BoundArray<'_>,
        values: &[u64],
    ) -> Result<(), ContractError> {
        let (Some(count), ArrayPlace::List(list)) = (&array.count, bound.place) else {
            return Ok(());
        };
        let subject = || self.array(array.operand, bound.name);
        let count = self.value(count, values, subject)?;
        if list.len() as u64 == count {
            return Ok(());
        }
        Err(self.unmet(subject(), Need::Count(count), list.len() as i128))
    }

    /// Checks the rule for strides.
    fn strides(
        &self,
        array: &ArrayParameter,
        bound: &BoundArray<'_>,
        values: &[u64],
    ) -> Result<(), ContractError> {
        let Some(axes) = bound.axes else { return Ok(()) };
        // The layout of an empty array is irrelevant.
        if axes.iter().any(|axis| axis.extent == 0) {
            return Ok(());
        }
        // The contiguous dimension is checked first, because only its message helps if a matrix is
        // transposed.
        let contiguous = array.contiguous_dim();
        let others = (0..axes.len()).rev().filter(|dim| *dim != contiguous);
        for dim in std::iter::once(contiguous).chain(others) {
            let (nth, is_contiguous) = (array.axis_of(dim), dim == contiguous);
            let (axis, stride) = (&axes[nth], &array.strides[dim]);
            if axis.extent <= 1 {
                continue;
            }
            let subject = || Subject::Stride {
                operand: array.operand,
                name: bound.name.to_owned(),
                dim: nth,
                between: Between::new(nth, axes.len(), is_contiguous),
            };
            let stride = self.value(stride, values, subject)?;
            // The layout is also irrelevant if the kernel does not touch the array.
            if axis.stride != stride && self.span(array, values)? > 0 {
                return Err(self.unmet(subject(), Need::Exactly(stride), axis.stride.into()));
            }
        }
        Ok(())
    }

    /// Checks the rule for writes.
    fn distinct(
        &self,
        array: &ArrayParameter,
        name: &str,
        values: &[u64],
    ) -> Result<(), ContractError> {
        let subject = || self.array(array.operand, name);
        // An empty list writes nothing.
        if let Some(count) = &array.count
            && self.value(count, values, subject)? == 0
        {
            return Ok(());
        }
        let mut dims = SmallVec::<[_; FEW_DIMENSIONS]>::new();
        for (dim, (extent, stride)) in array.dims.iter().zip(&array.strides).enumerate().rev() {
            let extent = self.value(extent, values, subject)?;
            if extent == 0 {
                return Ok(());
            }
            if extent > 1 {
                dims.push((self.value(stride, values, subject)?, dim, extent));
            }
        }
        // Dimensions are usually sorted by stride already, starting at the innermost. Other orders
        // need the sort below.
        let Some((stride, dim, least)) = short(&dims) else { return Ok(()) };
        dims.sort_unstable();
        if short(&dims).is_none() {
            return Ok(());
        }
        let between = Between::new(dim, array.rank(), dim == array.contiguous_dim());
        let subject =
            Subject::Stride { operand: array.operand, name: name.to_owned(), dim, between };
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        Err(self.unmet(subject, Need::Distinct(least), stride.into()))
    }

    fn requirement<'a>(
        &self,
        requirement: &Requirement,
        values: &[u64],
        find: &impl Fn(&ArrayParameter, usize) -> Option<BoundArray<'a>>,
    ) -> Result<(), ContractError> {
        let scalar = |s: Scalar| match values.get(s.param) {
            Some(value) => *value,
            None => unreachable!("Contract::new: the value is an extent or a stride"),
        };
        let subject = |s: Scalar| match self.params.get(s.param) {
            Some(Parameter::Scalar { source, .. }) => self.subject(*source, find),
            _ => unreachable!("Contract::new: it is a scalar parameter"),
        };
        match *requirement {
            Requirement::Aligned { operand, bytes } => {
                let of_operand = |(_, array): &(usize, &ArrayParameter)| array.operand == operand;
                for (position, array) in self.arrays().enumerate().filter(of_operand) {
                    let Some(bound) = find(array, position) else { continue };
                    for (nth, region) in bound.place.regions().iter().enumerate() {
                        let beyond = region.address % u64::from(bytes);
                        if beyond != 0 {
                            let subject = self.nth(array, bound.name, nth);
                            let need = Need::Aligned { bytes, elem: array.elem };
                            return Err(self.unmet(subject, need, beyond.into()));
                        }
                    }
                }
                Ok(())
            }
            Requirement::Multiple { scalar: s, of } => {
                let value = scalar(s);
                if value.is_multiple_of(of) {
                    return Ok(());
                }
                Err(self.unmet(subject(s), Need::Multiple { of }, value.into()))
            }
            Requirement::Range { scalar: s, min, max } => {
                let value = scalar(s);
                if value < min {
                    return Err(self.unmet(subject(s), Need::AtLeast(min), value.into()));
                }
                if value > max {
                    return Err(self.unmet(subject(s), Need::AtMost(max), value.into()));
                }
                Ok(())
            }
            Requirement::Piece { first, len, total, of } => {
                let [begin, count, whole] = [first, len, total].map(scalar);
                let end = begin.saturating_add(count);
                if end > whole {
                    return Err(self.unmet(subject(total), Need::AtLeast(end), whole.into()));
                }
                if count == 0 {
                    return Ok(());
                }
                if !begin.is_multiple_of(of) {
                    return Err(self.unmet(subject(first), Need::Cut { of }, begin.into()));
                }
                if end < whole && !count.is_multiple_of(of) {
                    return Err(self.unmet(subject(len), Need::Cut { of }, count.into()));
                }
                Ok(())
            }
        }
    }

    /// Number of elements from the first to the last that a kernel may access.
    fn span(&self, array: &ArrayParameter, values: &[u64]) -> Result<u128, ContractError> {
        let subject = || self.array(array.operand, &array.name);
        let mut last: u128 = 0;
        for (dim, stride) in array.dims.iter().zip(&array.strides) {
            let extent = self.value(dim, values, subject)?;
            if extent == 0 {
                return Ok(0);
            }
            let stride = self.value(stride, values, subject)?;
            let reach = u128::from(extent - 1) * u128::from(stride);
            last = last.saturating_add(reach);
        }
        Ok(last.saturating_add(1))
    }

    fn value(
        &self,
        host_expr: &HostExpr,
        values: &[u64],
        subject: impl FnOnce() -> Subject,
    ) -> Result<u64, ContractError> {
        match host_expr.value(values) {
            Ok(value) => match u64::try_from(value) {
                Ok(value) => Ok(value),
                Err(_) => Err(self.unmet(subject(), Need::AtLeast(0), value)),
            },
            Err(HostError::Negative(value)) => {
                Err(self.unmet(subject(), Need::AtLeast(0), value.into()))
            }
            Err(reason) => Err(self.unmet(subject(), Need::Defined(reason), 0)),
        }
    }

    /// Subject of an error for a scalar, with the caller's names of the arrays if they are known.
    fn subject<'a>(
        &self,
        source: Source,
        find: &impl Fn(&ArrayParameter, usize) -> Option<BoundArray<'a>>,
    ) -> Subject {
        match source {
            Source::Extent(extent) => Subject::Extent(extent),
            Source::Argument(n) => Subject::Argument(n),
            Source::Stride { operand, dim } => {
                let array = self.arrays().enumerate().find(|(_, a)| a.operand == operand);
                let (name, between) = array.map_or(("", Between::Others), |(position, array)| {
                    let name = find(array, position).map_or(&*array.name, |bound| bound.name);
                    let contiguous = array.contiguous_dim() == dim;
                    (name, Between::new(dim, array.rank(), contiguous))
                });
                Subject::Stride { operand, name: name.to_owned(), dim, between }
            }
        }
    }

    fn array(&self, operand: Operand, name: &str) -> Subject {
        Subject::Array { operand, name: name.to_owned() }
    }

    /// Subject of an error for an array, or for the n-th array of a list.
    fn nth(&self, array: &ArrayParameter, name: &str, nth: usize) -> Subject {
        let (operand, name) = (array.operand, name.to_owned());
        match array.is_list() {
            true => Subject::OfList { operand, name, nth },
            false => Subject::Array { operand, name },
        }
    }

    fn unmet(&self, subject: Subject, need: Need, value: i128) -> ContractError {
        ContractError { kernel: (*self.kernel).into(), family: self.family, subject, need, value }
    }
}

/// Finds the first dimension whose stride is less than the span of the previous dimensions. Each
/// dimension is given by stride, number and extent. Returns its stride, its number and the smallest
/// valid stride.
fn short(dims: &[(u64, usize, u64)]) -> Option<(u64, usize, u128)> {
    let mut span = 1_u128;
    dims.iter().find_map(|&(stride, dim, extent)| {
        let least = span;
        span = span.saturating_add(u128::from(extent - 1).saturating_mul(stride.into()));
        (u128::from(stride) < least).then_some((stride, dim, least))
    })
}

/// Stride along a dimension. If the dimension has fewer than two elements, the stride is irrelevant
/// and 0 is returned.
fn stride(axes: &[ArrayAxis], dim: usize) -> Option<u64> {
    let axis = axes.get(dim)?;
    let none = axis.extent <= 1 || axes.iter().any(|axis| axis.extent == 0);
    Some(if none { 0 } else { axis.stride })
}

/// Greatest value of a scalar parameter's bits, given that extents and strides are not negative.
fn greatest(ty: Ty, source: Source) -> u64 {
    match (ty, source) {
        (Ty::I32, Source::Extent(_) | Source::Stride { .. }) => i32::MAX as u64,
        (Ty::Scalar(elem), _) if elem.size() == 8 => u64::MAX,
        _ => u32::MAX.into(),
    }
}
