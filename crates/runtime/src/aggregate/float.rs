//! `sum` and `avg` of floating-point numbers, from which any value can be taken away again.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    Float64Array, Int64Array,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use hashbrown::HashMap;

use super::expansion::{two_product, two_sum};
use super::rows::Rows;
use super::{GroupAccumulator, unexpected_type};
use crate::error::RuntimeError;

/// What is made of a sum and a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Sum,
    Avg,
}

/// State of one group. `hi + lo` is the sum: `lo` gathers what rounding takes from `hi` (Neumaier,
/// Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen, 1974).
///
/// `hi` is NaN where the sum does not fit here: then it is in [`FloatSums::extras`]. So a single test
/// of the new `hi` finds every special case: NaN, an infinity, a sum out of range, a slot that has an
/// extra.
#[derive(Debug, Clone, Copy)]
struct Cell {
    hi: f64,
    lo: f64,
    n: i64,
}

impl Cell {
    const EMPTY: Self = Self {
        hi: 0.0,
        lo: 0.0,
        n: 0,
    };

    /// Adds `value` unless this is a special case; answers whether it did.
    #[inline(always)]
    fn try_add(&mut self, value: f64) -> bool {
        let (hi, rest) = two_sum(self.hi, value);
        if !hi.is_finite() {
            return false;
        }
        self.hi = hi;
        self.lo += rest;
        true
    }
}

/// What a group has beyond two finite doubles.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Extra {
    nan: i64,
    positive: i64,
    negative: i64,
    /// The sum of the finite values, times [`SCALE`], once their plain sum has left the range of a
    /// double. From then on until the group empties.
    scaled: Option<(f64, f64)>,
}

/// Keeps sums of up to 2^63 values in range; a power of two, so that scaling is exact down to 1e-288.
const SCALE: f64 = 1.0 / (1u128 << 66) as f64;

const EXTRA_BYTES: i32 = 40;

impl Extra {
    fn add(&mut self, cell: &mut Cell, value: f64, diff: i64) {
        if value.is_nan() {
            self.nan += diff;
        } else if value == f64::INFINITY {
            self.positive += diff;
        } else if value == f64::NEG_INFINITY {
            self.negative += diff;
        } else {
            self.add_finite(cell, value, diff);
        }
    }

    fn add_finite(&mut self, cell: &mut Cell, value: f64, diff: i64) {
        let (hi, lo) = self
            .scaled
            .get_or_insert((cell.hi * SCALE, cell.lo * SCALE));
        cell.hi = f64::NAN;
        let (product, rest) = two_product(value * SCALE, diff as f64);
        for term in [product, rest] {
            let (sum, rest) = two_sum(*hi, term);
            *hi = sum;
            *lo += rest;
        }
    }

    fn sum(&self, cell: &Cell) -> f64 {
        match (self.nan != 0, self.positive != 0, self.negative != 0) {
            (true, ..) | (_, true, true) => f64::NAN,
            (_, true, false) => f64::INFINITY,
            (_, false, true) => f64::NEG_INFINITY,
            _ => match self.scaled {
                Some((hi, lo)) => (hi + lo) / SCALE,
                None => cell.hi + cell.lo,
            },
        }
    }

    fn write(&self, out: &mut [u8; EXTRA_BYTES as usize]) {
        let (hi, lo) = self.scaled.unwrap_or((f64::NAN, 0.0));
        let words = [
            self.nan as u64,
            self.positive as u64,
            self.negative as u64,
            hi.to_bits(),
            lo.to_bits(),
        ];
        for (to, word) in out.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |i: usize| {
            let chunk = bytes[i * 8..][..8].try_into().expect("a slice of eight");
            u64::from_le_bytes(chunk)
        };
        let (hi, lo) = (f64::from_bits(word(3)), f64::from_bits(word(4)));
        Self {
            nan: word(0) as i64,
            positive: word(1) as i64,
            negative: word(2) as i64,
            scaled: (!hi.is_nan()).then_some((hi, lo)),
        }
    }
}

/// State: `n: Int64`, `hi: Float64`, `lo: Float64` and `extra: FixedSizeBinary(40)`, null for most.
pub(super) struct FloatSums {
    name: String,
    finish: Finish,
    cells: Vec<Cell>,
    /// Groups that hold a NaN or an infinity, or whose sum has left the range of a double.
    extras: HashMap<u32, Extra, foldhash::fast::FixedState>,
}

impl FloatSums {
    pub(super) fn new(name: &str, finish: Finish) -> Self {
        Self {
            name: name.into(),
            finish,
            cells: Vec::new(),
            extras: HashMap::default(),
        }
    }

    /// Adds a finite value several times, or one that needs an extra.
    #[cold]
    fn add_slowly(&mut self, slot: usize, value: f64, diff: i64) {
        let cell = &mut self.cells[slot];
        if value.is_finite() {
            let (product, rest) = two_product(value, diff as f64);
            let mut next = *cell;
            if rest.is_finite() && next.try_add(product) && next.try_add(rest) {
                *cell = next;
                return;
            }
        }
        self.extras
            .entry(slot as u32)
            .or_default()
            .add(cell, value, diff);
    }

    /// A group without values starts afresh: no rounding of the past outlives it. Only where a
    /// result is asked for: within an epoch, or in one part of it, the count may be 0 by chance, when a
    /// retraction stands beside another value's insertion.
    fn clear_empty(&mut self, slots: &[u32]) {
        for slot in slots {
            if self.cells[*slot as usize].n == 0 {
                self.cells[*slot as usize] = Cell::EMPTY;
                self.extras.remove(slot);
            }
        }
    }

    fn result(&self, slot: u32) -> Option<f64> {
        let cell = &self.cells[slot as usize];
        let sum = match self.extras.get(&slot) {
            Some(extra) => extra.sum(cell),
            None => cell.hi + cell.lo,
        };
        match (cell.n, self.finish) {
            (0, _) => None,
            (_, Finish::Sum) => Some(sum),
            (n, Finish::Avg) => Some(sum / n as f64),
        }
    }

    fn extra_column(&self, slots: &[u32]) -> Result<FixedSizeBinaryArray, RuntimeError> {
        let mut column = FixedSizeBinaryBuilder::with_capacity(slots.len(), EXTRA_BYTES);
        let mut bytes = [0; EXTRA_BYTES as usize];
        for slot in slots {
            match self.extras.get(slot) {
                Some(extra) => {
                    extra.write(&mut bytes);
                    column.append_value(bytes)?;
                }
                None => column.append_null(),
            }
        }
        Ok(column.finish())
    }

    fn merge_extra(&mut self, slot: u32, other: Extra) {
        let cell = &mut self.cells[slot as usize];
        let extra = self.extras.entry(slot).or_default();
        extra.nan += other.nan;
        extra.positive += other.positive;
        extra.negative += other.negative;
        if let Some((hi, lo)) = other.scaled {
            // Into an extra that is scaled too: the parts are scaled back only on paper.
            extra.add_finite(cell, 0.0, 1);
            let (to_hi, to_lo) = extra.scaled.as_mut().expect("add_finite scales");
            let (sum, rest) = two_sum(*to_hi, hi);
            *to_hi = sum;
            *to_lo += rest + lo;
        }
    }
}

impl GroupAccumulator for FloatSums {
    fn resize(&mut self, n_slots: usize) {
        self.cells
            .resize(n_slots.max(self.cells.len()), Cell::EMPTY);
    }

    fn reset(&mut self, slots: &[u32]) {
        for slot in slots {
            self.cells[*slot as usize] = Cell::EMPTY;
            self.extras.remove(slot);
        }
    }

    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let values = args[0]
            .as_primitive_opt::<Float64Type>()
            .ok_or_else(|| unexpected_type(&self.name, args[0].data_type()))?
            .values();
        Rows::new(slots, args, filter, diffs).for_each(|row, slot, diff| {
            let value = if diff == -1 {
                -values[row]
            } else {
                values[row]
            };
            let cell = &mut self.cells[slot];
            cell.n += diff;
            if diff.unsigned_abs() != 1 || !cell.try_add(value) {
                self.add_slowly(slot, values[row], diff);
            }
        });
        Ok(())
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let counts = state[0].as_primitive::<Int64Type>().values();
        let his = state[1].as_primitive::<Float64Type>().values();
        let los = state[2].as_primitive::<Float64Type>().values();
        let extras = state[3].as_fixed_size_binary();
        for (row, &slot) in slots.iter().enumerate() {
            self.cells[slot as usize].n += counts[row];
            let extra = extras.is_valid(row).then(|| Extra::read(extras.value(row)));
            if extra.is_none_or(|e| e.scaled.is_none()) {
                for term in [his[row], los[row]] {
                    if !self.cells[slot as usize].try_add(term) {
                        self.add_slowly(slot as usize, term, 1);
                    }
                }
            }
            if let Some(extra) = extra {
                self.merge_extra(slot, extra);
            }
        }
        Ok(())
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let cells = || slots.iter().map(|&s| &self.cells[s as usize]);
        let counts: Int64Array = cells().map(|c| c.n).collect();
        let his: Float64Array = cells().map(|c| c.hi).collect();
        let los: Float64Array = cells().map(|c| c.lo).collect();
        let extras = self.extra_column(slots)?;
        Ok(vec![
            Arc::new(counts),
            Arc::new(his),
            Arc::new(los),
            Arc::new(extras),
        ])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        self.clear_empty(slots);
        Ok(Arc::new(
            slots
                .iter()
                .map(|&s| self.result(s))
                .collect::<Float64Array>(),
        ))
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![
            Field::new(format!("{}[n]", self.name), DataType::Int64, false),
            Field::new(format!("{}[hi]", self.name), DataType::Float64, false),
            Field::new(format!("{}[lo]", self.name), DataType::Float64, false),
            Field::new(
                format!("{}[extra]", self.name),
                DataType::FixedSizeBinary(EXTRA_BYTES),
                true,
            ),
        ]
    }

    fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>() + self.extras.allocation_size()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum_of(changes: &[(f64, i64)]) -> Option<f64> {
        let mut sums = FloatSums::new("sum(x)", Finish::Sum);
        sums.resize(1);
        for &(value, diff) in changes {
            let arg: ArrayRef = Arc::new(Float64Array::from(vec![value]));
            sums.update(&[0], &[arg], None, Some(&[diff])).unwrap();
            sums.evaluate(&[0]).unwrap();
        }
        sums.result(0)
    }

    #[test]
    fn a_large_value_that_came_and_went_takes_nothing_with_it() {
        assert_eq!(
            sum_of(&[(1.1, 1), (2.1, 1), (1e18, 1), (1e18, -1)]),
            Some(3.2)
        );
        assert_eq!(
            sum_of(&[(1.5, 1), (f64::MAX, 2), (f64::MAX, -2)]),
            Some(1.5)
        );
    }

    #[test]
    fn special_values_leave_no_trace() {
        assert!(sum_of(&[(1.5, 1), (f64::NAN, 1)]).unwrap().is_nan());
        assert!(
            sum_of(&[(f64::INFINITY, 1), (f64::NEG_INFINITY, 1)])
                .unwrap()
                .is_nan()
        );
        assert_eq!(
            sum_of(&[(1.5, 1), (f64::NAN, 1), (f64::INFINITY, 1), (f64::NAN, -1)]),
            Some(f64::INFINITY)
        );
        assert_eq!(
            sum_of(&[(1.5, 3), (f64::NEG_INFINITY, 2), (f64::NEG_INFINITY, -2)]),
            Some(4.5)
        );
        assert_eq!(sum_of(&[(f64::MAX, 1), (f64::MAX, 1)]), Some(f64::INFINITY));
    }

    #[test]
    fn a_group_that_empties_is_null_and_starts_afresh() {
        assert_eq!(sum_of(&[(0.1, 1), (0.2, 1), (0.1, -1), (0.2, -1)]), None);
        assert_eq!(
            sum_of(&[
                (f64::NAN, 1),
                (1e300, 1),
                (1e300, -1),
                (f64::NAN, -1),
                (0.1, 1)
            ]),
            Some(0.1)
        );
    }
}
