//! `var_samp`, `var_pop`, `stddev_samp` and `stddev_pop`, from which any value can be taken away
//! again.
//!
//! Welford's update, which DataFusion uses, cannot be undone without loss, and the textbook's Σx² −
//! (Σx)²/n cancels. So both sums are kept in several doubles, in which the cancellation is exact:
//! after 10^18 came and went, the deviation of values around 1 is what it was.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, FixedSizeBinaryArray, FixedSizeBinaryBuilder,
    Float64Array, Int64Array,
};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};

use super::expansion::{Expansion, two_product};
use super::rows::Rows;
use super::{GroupAccumulator, unexpected_type};
use crate::error::RuntimeError;

/// What is made of the sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    VarSamp,
    VarPop,
    StddevSamp,
    StddevPop,
}

impl Finish {
    fn is_sample(self) -> bool {
        matches!(self, Self::VarSamp | Self::StddevSamp)
    }

    fn is_root(self) -> bool {
        matches!(self, Self::StddevSamp | Self::StddevPop)
    }
}

/// Values beyond this have squares that are out of range, or nearly so: they are only counted, and the
/// result is infinite while there are any besides other values.
const LARGEST: f64 = 1e150;

/// State of one group.
#[derive(Debug, Clone, Copy)]
struct Cell {
    n: i64,
    /// How many of the `n` are NaN or infinite.
    n_special: i64,
    /// How many of the `n` are finite but beyond [`LARGEST`].
    n_huge: i64,
    sum: Expansion<3>,
    squares: Expansion<4>,
}

impl Cell {
    const EMPTY: Self = Self {
        n: 0,
        n_special: 0,
        n_huge: 0,
        sum: Expansion::ZERO,
        squares: Expansion::ZERO,
    };
    const BYTES: i32 = 9 * 8;

    #[inline(always)]
    fn add(&mut self, value: f64, diff: i64) {
        self.n += diff;
        if value.is_nan() || value.abs() > LARGEST {
            if value.is_finite() {
                self.n_huge += diff
            } else {
                self.n_special += diff
            }
            return;
        }
        let (square, rest) = two_product(value, value);
        if diff == 1 {
            self.sum.add(value);
            self.squares.add(square);
            self.squares.add(rest);
        } else {
            let n = diff as f64;
            self.sum.add_product(value, n);
            self.squares.add_product(square, n);
            self.squares.add_product(rest, n);
        }
    }

    fn merge(&mut self, other: &Self) {
        self.n += other.n;
        self.n_special += other.n_special;
        self.n_huge += other.n_huge;
        other.sum.0.iter().for_each(|&part| self.sum.add(part));
        other
            .squares
            .0
            .iter()
            .for_each(|&part| self.squares.add(part));
    }

    /// The sum of squared deviations from the mean.
    ///
    /// Around a double `c` near the mean, Σ(x−c)² = Σx² − 2cΣx + nc² is small and is computed in full;
    /// what `c` is off by enters as −(Σx−nc)²/n, which plain doubles are good enough for.
    fn m2(&self) -> f64 {
        let n = self.n as f64;
        let c = self.sum.value() / n;
        let mut around = self.squares;
        let mut off = self.sum;
        for &part in &self.sum.0 {
            let (product, rest) = two_product(-2.0 * c, part);
            around.add(product);
            around.add(rest);
        }
        let (square, rest) = two_product(c, c);
        around.add_product(square, n);
        around.add_product(rest, n);
        off.add_product(-c, n);
        let off = off.value();
        (around.value() - off * off / n).max(0.0)
    }

    fn result(&self, finish: Finish) -> Option<f64> {
        let divisor = if finish.is_sample() {
            self.n - 1
        } else {
            self.n
        };
        if divisor <= 0 {
            return None;
        }
        let variance = match (self.n_special, self.n_huge) {
            (0, _) if self.n == 1 => 0.0,
            (0, 0) => self.m2() / divisor as f64,
            (0, _) => f64::INFINITY,
            _ => f64::NAN,
        };
        Some(if finish.is_root() {
            variance.sqrt()
        } else {
            variance
        })
    }

    fn write(&self, out: &mut [u8; Self::BYTES as usize]) {
        let parts = self
            .sum
            .0
            .iter()
            .chain(&self.squares.0)
            .map(|p| p.to_bits());
        let words = [self.n_special as u64, self.n_huge as u64]
            .into_iter()
            .chain(parts);
        for (to, word) in out.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
    }

    fn read(n: i64, bytes: &[u8]) -> Self {
        let word = |i: usize| {
            let chunk = bytes[i * 8..][..8].try_into().expect("a slice of eight");
            u64::from_le_bytes(chunk)
        };
        let part = |i: usize| f64::from_bits(word(i));
        Self {
            n,
            n_special: word(0) as i64,
            n_huge: word(1) as i64,
            sum: Expansion([part(2), part(3), part(4)]),
            squares: Expansion([part(5), part(6), part(7), part(8)]),
        }
    }
}

/// State: `n: Int64` and `sums: FixedSizeBinary(72)`: the numbers of special and of huge values, three
/// parts of Σx and four of Σx², each of eight bytes, lowest first.
pub(super) struct Variances {
    name: String,
    finish: Finish,
    cells: Vec<Cell>,
}

impl Variances {
    pub(super) fn new(name: &str, finish: Finish) -> Self {
        Self {
            name: name.into(),
            finish,
            cells: Vec::new(),
        }
    }

    /// A group without values starts afresh; see [`super::float::FloatSums`] for why only here.
    fn clear_empty(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.cells[slot as usize].n == 0 {
                self.cells[slot as usize] = Cell::EMPTY;
            }
        }
    }
}

impl GroupAccumulator for Variances {
    fn resize(&mut self, n_slots: usize) {
        self.cells
            .resize(n_slots.max(self.cells.len()), Cell::EMPTY);
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.cells[slot as usize] = Cell::EMPTY;
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
        let cells = &mut self.cells;
        Rows::new(slots, args, filter, diffs)
            .for_each(|row, slot, diff| cells[slot].add(values[row], diff));
        Ok(())
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let counts = state[0].as_primitive::<Int64Type>().values();
        let sums = state[1].as_fixed_size_binary();
        for (row, &slot) in slots.iter().enumerate() {
            self.cells[slot as usize].merge(&Cell::read(counts[row], sums.value(row)));
        }
        Ok(())
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let counts: Int64Array = slots.iter().map(|&s| self.cells[s as usize].n).collect();
        let mut sums = FixedSizeBinaryBuilder::with_capacity(slots.len(), Cell::BYTES);
        let mut bytes = [0; Cell::BYTES as usize];
        for &slot in slots {
            self.cells[slot as usize].write(&mut bytes);
            sums.append_value(bytes)?;
        }
        let sums: FixedSizeBinaryArray = sums.finish();
        Ok(vec![Arc::new(counts), Arc::new(sums)])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        self.clear_empty(slots);
        let results = slots
            .iter()
            .map(|&s| self.cells[s as usize].result(self.finish));
        Ok(Arc::new(results.collect::<Float64Array>()))
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![
            Field::new(format!("{}[n]", self.name), DataType::Int64, false),
            Field::new(
                format!("{}[sums]", self.name),
                DataType::FixedSizeBinary(Cell::BYTES),
                false,
            ),
        ]
    }

    fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::seq::SliceRandom;
    use rand::{Rng, SeedableRng};

    fn stddev_of(changes: &[(f64, i64)]) -> Option<f64> {
        let mut cell = Cell::EMPTY;
        changes
            .iter()
            .for_each(|&(value, diff)| cell.add(value, diff));
        cell.result(Finish::StddevSamp)
    }

    fn assert_close(found: Option<f64>, expected: f64) {
        let found = found.expect("a value");
        assert!(
            (found - expected).abs() <= expected * 1e-14,
            "{found} is not {expected}"
        );
    }

    #[test]
    fn a_large_value_that_came_and_went_takes_nothing_with_it() {
        let half = std::f64::consts::FRAC_1_SQRT_2;
        assert_close(stddev_of(&[(1.0, 1), (2.0, 1)]), half);
        assert_close(
            stddev_of(&[(1.0, 1), (2.0, 1), (1e18, 1), (1e18, -1)]),
            half,
        );
        assert_close(stddev_of(&[(1e15 + 1.0, 1), (1e15 + 2.0, 1)]), half);
        assert_close(
            stddev_of(&[
                (1.0, 3),
                (2.0, 2),
                (1.0, -2),
                (2.0, -1),
                (1e200, 1),
                (1e200, -1),
            ]),
            half,
        );
    }

    #[test]
    fn large_values_that_come_and_go_leave_no_trace() {
        for seed in 0..1000 {
            let mut rng = StdRng::seed_from_u64(seed);
            let mut changes = vec![(1.0, 1), (2.0, 1)];
            for _ in 0..rng.random_range(0..10) {
                let value = rng.random_range(-9..9) as f64 * 10f64.powi(rng.random_range(0..20));
                let n = rng.random_range(1..5);
                changes.extend([(value, n), (value, -n)]);
            }
            changes.shuffle(&mut rng);
            let found = stddev_of(&changes).unwrap();
            assert!(
                (found - std::f64::consts::FRAC_1_SQRT_2).abs() < 1e-14,
                "seed {seed}: {found} {changes:?}"
            );
        }
    }

    #[test]
    fn too_few_values_have_no_sample_deviation() {
        assert_eq!(stddev_of(&[(1.0, 1)]), None);
        assert_eq!(stddev_of(&[(1.0, 2)]), Some(0.0));
        assert!(stddev_of(&[(1.0, 1), (f64::INFINITY, 1)]).unwrap().is_nan());
    }
}
