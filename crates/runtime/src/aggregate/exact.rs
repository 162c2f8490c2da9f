//! `sum` and `avg` of integers, decimals and durations: exact, whatever comes and goes.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, FixedSizeBinaryArray, Float64Array,
    Int64Array, PrimitiveArray,
};
use arrow::buffer::{Buffer, NullBuffer};
use arrow::datatypes::*;

use super::rows::Rows;
use super::wide::{ToWide, Wide};
use super::{GroupAccumulator, unexpected_type};
use crate::error::RuntimeError;

/// What is made of a sum and a count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    Sum,
    Avg,
}

/// The accumulator for a `sum` or `avg` of `arg` that gives `output`.
pub(super) fn create(
    name: &str,
    finish: Finish,
    arg: &DataType,
    output: DataType,
) -> Result<Box<dyn GroupAccumulator>, RuntimeError> {
    macro_rules! sums {
        ($t:ty, $limbs:literal) => {
            Ok(Box::new(ExactSums::<$t, $limbs>::new(
                name, finish, arg, output,
            )))
        };
    }
    // One limb more than the values have, so that no order of additions and retractions overflows.
    match arg {
        DataType::Int8 => sums!(Int8Type, 2),
        DataType::Int16 => sums!(Int16Type, 2),
        DataType::Int32 => sums!(Int32Type, 2),
        DataType::Int64 => sums!(Int64Type, 2),
        DataType::UInt8 => sums!(UInt8Type, 2),
        DataType::UInt16 => sums!(UInt16Type, 2),
        DataType::UInt32 => sums!(UInt32Type, 2),
        DataType::UInt64 => sums!(UInt64Type, 2),
        DataType::Decimal32(..) => sums!(Decimal32Type, 2),
        DataType::Decimal64(..) => sums!(Decimal64Type, 2),
        DataType::Decimal128(..) => sums!(Decimal128Type, 3),
        DataType::Decimal256(..) => sums!(Decimal256Type, 5),
        DataType::Duration(TimeUnit::Second) => sums!(DurationSecondType, 2),
        DataType::Duration(TimeUnit::Millisecond) => sums!(DurationMillisecondType, 2),
        DataType::Duration(TimeUnit::Microsecond) => sums!(DurationMicrosecondType, 2),
        DataType::Duration(TimeUnit::Nanosecond) => sums!(DurationNanosecondType, 2),
        other => Err(unexpected_type(name, other)),
    }
}

/// State of one group: the sum, and how many non-null values it has.
#[derive(Debug, Clone, Copy)]
struct Cell<const N: usize> {
    sum: Wide<N>,
    n: i64,
}

impl<const N: usize> Cell<N> {
    const EMPTY: Self = Self {
        sum: Wide::ZERO,
        n: 0,
    };
}

/// State: `n: Int64` and `sum: FixedSizeBinary(8 N)`, the limbs of the sum, lowest byte first.
struct ExactSums<T, const N: usize> {
    name: String,
    finish: Finish,
    output: DataType,
    /// Decimal digits that an average has more than its argument (DataFusion adds up to 4).
    added_digits: u32,
    cells: Vec<Cell<N>>,
    arg: PhantomData<T>,
}

impl<T, const N: usize> ExactSums<T, N> {
    fn new(name: &str, finish: Finish, arg: &DataType, output: DataType) -> Self {
        let added_digits = scale(&output).saturating_sub(scale(arg)).max(0) as u32;
        let (name, cells, arg) = (name.into(), Vec::new(), PhantomData);
        Self {
            name,
            finish,
            output,
            added_digits,
            cells,
            arg,
        }
    }

    /// The result of a group as a wide integer, `None` (null) where it has no value.
    fn finish(&self, slot: u32) -> Result<Option<Wide<N>>, RuntimeError> {
        let cell = &self.cells[slot as usize];
        match (cell.n, self.finish) {
            (0, _) => Ok(None),
            (_, Finish::Sum) => Ok(Some(cell.sum)),
            (n, Finish::Avg) => {
                let n = u64::try_from(n).map_err(|_| self.negative(n))?;
                cell.sum
                    .average(self.added_digits, n)
                    .map(Some)
                    .ok_or_else(|| self.overflow())
            }
        }
    }

    fn collect<O: ArrowPrimitiveType>(
        &self,
        slots: &[u32],
        narrow: impl Fn(Wide<N>) -> Option<O::Native>,
    ) -> Result<ArrayRef, RuntimeError> {
        let mut values = Vec::with_capacity(slots.len());
        let mut valid = Vec::with_capacity(slots.len());
        for &slot in slots {
            let result = self.finish(slot)?;
            valid.push(result.is_some());
            values.push(match result {
                Some(wide) => narrow(wide).ok_or_else(|| self.overflow())?,
                None => O::Native::default(),
            });
        }
        let nulls = Some(NullBuffer::from(valid)).filter(|n| n.null_count() > 0);
        let array = PrimitiveArray::<O>::new(values.into(), nulls);
        Ok(Arc::new(array.with_data_type(self.output.clone())))
    }

    /// Averages of integers, whose sum is exact before it becomes a double.
    fn averages(&self, slots: &[u32]) -> Result<Float64Array, RuntimeError> {
        let average = |&slot: &u32| {
            let cell = &self.cells[slot as usize];
            let sum = cell.sum.to_i128().ok_or_else(|| self.overflow())?;
            Ok((cell.n != 0).then(|| sum as f64 / cell.n as f64))
        };
        slots.iter().map(average).collect()
    }

    fn overflow(&self) -> RuntimeError {
        RuntimeError::Overflow(format!("{} leaves the range of {}", self.name, self.output))
    }

    fn negative(&self, n: i64) -> RuntimeError {
        RuntimeError::Internal(format!("{} over a group of {n} values", self.name))
    }
}

impl<T, const N: usize> GroupAccumulator for ExactSums<T, N>
where
    T: ArrowPrimitiveType + Send,
    T::Native: ToWide,
{
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
            .as_primitive_opt::<T>()
            .ok_or_else(|| unexpected_type(&self.name, args[0].data_type()))?
            .values();
        let cells = &mut self.cells;
        Rows::new(slots, args, filter, diffs).for_each(|row, slot, diff| {
            let cell = &mut cells[slot];
            cell.sum.add(ToWide::times(values[row], diff));
            cell.n += diff;
        });
        Ok(())
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let counts = state[0].as_primitive::<Int64Type>().values();
        let sums = state[1].as_fixed_size_binary();
        for (row, &slot) in slots.iter().enumerate() {
            let cell = &mut self.cells[slot as usize];
            cell.sum.add(Wide::read_le(sums.value(row)));
            cell.n += counts[row];
        }
        Ok(())
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let counts: Int64Array = slots.iter().map(|&s| self.cells[s as usize].n).collect();
        let mut bytes = Vec::with_capacity(slots.len() * Wide::<N>::BYTES);
        for &slot in slots {
            self.cells[slot as usize].sum.write_le(&mut bytes);
        }
        let width = Wide::<N>::BYTES as i32;
        let sums = FixedSizeBinaryArray::try_new(width, Buffer::from_vec(bytes), None)?;
        Ok(vec![Arc::new(counts), Arc::new(sums)])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        macro_rules! narrow {
            ($t:ty) => {
                self.collect::<$t>(slots, |w| w.to_i128()?.try_into().ok())
            };
            ($t:ty, $precision:expr) => {
                self.collect::<$t>(slots, |w| {
                    let value = w.to_i128()?.try_into().ok()?;
                    <$t>::is_valid_decimal_precision(value, $precision).then_some(value)
                })
            };
        }
        match self.output {
            DataType::Int64 => narrow!(Int64Type),
            DataType::UInt64 => narrow!(UInt64Type),
            DataType::Decimal32(p, _) => narrow!(Decimal32Type, p),
            DataType::Decimal64(p, _) => narrow!(Decimal64Type, p),
            DataType::Decimal128(p, _) => narrow!(Decimal128Type, p),
            DataType::Decimal256(p, _) => self.collect::<Decimal256Type>(slots, |w| {
                w.to_i256()
                    .filter(|&v| Decimal256Type::is_valid_decimal_precision(v, p))
            }),
            DataType::Float64 => Ok(Arc::new(self.averages(slots)?)),
            DataType::Duration(TimeUnit::Second) => narrow!(DurationSecondType),
            DataType::Duration(TimeUnit::Millisecond) => narrow!(DurationMillisecondType),
            DataType::Duration(TimeUnit::Microsecond) => narrow!(DurationMicrosecondType),
            DataType::Duration(TimeUnit::Nanosecond) => narrow!(DurationNanosecondType),
            ref other => Err(unexpected_type(&self.name, other)),
        }
    }

    fn state_fields(&self) -> Vec<Field> {
        let sum = DataType::FixedSizeBinary(Wide::<N>::BYTES as i32);
        vec![
            Field::new(format!("{}[n]", self.name), DataType::Int64, false),
            Field::new(format!("{}[sum]", self.name), sum, false),
        ]
    }

    fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell<N>>()
    }
}

fn scale(data_type: &DataType) -> i8 {
    match data_type {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => *s,
        _ => 0,
    }
}
