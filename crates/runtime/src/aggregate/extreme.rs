//! `min` and `max` of values of fixed width, over input without retractions.

use std::marker::PhantomData;
use std::sync::Arc;

use arrow::array::{ArrayRef, ArrowNativeTypeOp, AsArray, BooleanArray, PrimitiveArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field};

use super::rows::Rows;
use super::{GroupAccumulator, no_retraction, unexpected_type};
use crate::error::RuntimeError;
use crate::state::fixed::{FixedType, with_fixed_type};

/// Which end of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    Min,
    Max,
}

/// The accumulator for `min` or `max` of `arg`; `None` for types without fixed width, and booleans.
pub(super) fn create(
    which: Which,
    name: &str,
    arg: &DataType,
) -> Option<Box<dyn GroupAccumulator>> {
    macro_rules! extremes {
        ($t:ty) => {
            Some(match which {
                Which::Min => Box::new(Extremes::<$t, Min>::new(name, arg)),
                Which::Max => Box::new(Extremes::<$t, Max>::new(name, arg)),
            })
        };
    }
    with_fixed_type!(arg => extremes!(), _ => None)
}

/// `min` or `max`, at compile time: the choice must not cost a branch a row.
trait Choice: Send + 'static {
    fn worst<V: ArrowNativeTypeOp>() -> V;
    fn better<V: ArrowNativeTypeOp>(a: V, b: V) -> bool;
}

struct Min;
struct Max;

impl Choice for Min {
    fn worst<V: ArrowNativeTypeOp>() -> V {
        V::MAX_TOTAL_ORDER
    }

    #[inline(always)]
    fn better<V: ArrowNativeTypeOp>(a: V, b: V) -> bool {
        a.is_lt(b)
    }
}

impl Choice for Max {
    fn worst<V: ArrowNativeTypeOp>() -> V {
        V::MIN_TOTAL_ORDER
    }

    #[inline(always)]
    fn better<V: ArrowNativeTypeOp>(a: V, b: V) -> bool {
        a.is_gt(b)
    }
}

/// State: the value, in the argument's type, null for a group without one.
///
/// Floating-point numbers stand in the total order with a single NaN above everything else, as in
/// PostgreSQL. (DataFusion's own answer depends on the order of the rows where there is a NaN.)
struct Extremes<T: FixedType, C> {
    name: String,
    data_type: DataType,
    values: Vec<T::Native>,
    /// Whether a slot has a value; where not, `values` holds the worst one.
    present: Vec<bool>,
    choice: PhantomData<C>,
}

impl<T: FixedType, C: Choice> Extremes<T, C> {
    fn new(name: &str, data_type: &DataType) -> Self {
        Self {
            name: name.into(),
            data_type: data_type.clone(),
            values: Vec::new(),
            present: Vec::new(),
            choice: PhantomData,
        }
    }

    fn add(&mut self, rows: &Rows, column: &ArrayRef) -> Result<(), RuntimeError> {
        let added = column
            .as_primitive_opt::<T>()
            .ok_or_else(|| unexpected_type(&self.name, column.data_type()))?
            .values();
        let (values, present) = (&mut self.values, &mut self.present);
        rows.for_each(|row, slot, _| {
            let value = T::canonical(added[row]);
            if C::better(value, values[slot]) {
                values[slot] = value;
            }
            present[slot] = true;
        });
        Ok(())
    }

    fn gather(&self, slots: &[u32]) -> ArrayRef {
        // A group without a value holds the worst one, which a null covers.
        let values: Vec<T::Native> = slots.iter().map(|&s| self.values[s as usize]).collect();
        let nulls: NullBuffer = slots.iter().map(|&s| self.present[s as usize]).collect();
        let nulls = Some(nulls).filter(|n| n.null_count() > 0);
        let array = PrimitiveArray::<T>::new(values.into(), nulls);
        Arc::new(array.with_data_type(self.data_type.clone()))
    }
}

impl<T: FixedType, C: Choice> GroupAccumulator for Extremes<T, C> {
    fn resize(&mut self, n_slots: usize) {
        let n_slots = n_slots.max(self.values.len());
        self.values.resize(n_slots, C::worst());
        self.present.resize(n_slots, false);
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.values[slot as usize] = C::worst();
            self.present[slot as usize] = false;
        }
    }

    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let rows = Rows::new(slots, args, filter, diffs);
        if rows.has_retraction() {
            return Err(no_retraction(&self.name));
        }
        self.add(&rows, &args[0])
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        self.add(&Rows::new(slots, state, None, None), &state[0])
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(vec![self.gather(slots)])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        Ok(self.gather(slots))
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![Field::new(
            format!("{}[value]", self.name),
            self.data_type.clone(),
            true,
        )]
    }

    fn memory_bytes(&self) -> usize {
        self.values.capacity() * size_of::<T::Native>() + self.present.capacity()
    }
}
