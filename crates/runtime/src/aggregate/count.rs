//! `count(*)`, `count(x)` and `count(x, y)`.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type};

use super::GroupAccumulator;
use super::rows::Rows;
use crate::error::RuntimeError;

/// Rows whose arguments are all non-null. State: `count: Int64`.
pub(super) struct Count {
    name: String,
    counts: Vec<i64>,
}

impl Count {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            counts: Vec::new(),
        }
    }

    fn gather(&self, slots: &[u32]) -> ArrayRef {
        Arc::new(
            slots
                .iter()
                .map(|&s| self.counts[s as usize])
                .collect::<Int64Array>(),
        )
    }
}

impl GroupAccumulator for Count {
    fn resize(&mut self, n_slots: usize) {
        self.counts.resize(n_slots.max(self.counts.len()), 0);
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.counts[slot as usize] = 0;
        }
    }

    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let counts = &mut self.counts;
        Rows::new(slots, args, filter, diffs).for_each(|_, slot, diff| counts[slot] += diff);
        Ok(())
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let added = state[0].as_primitive::<Int64Type>();
        for (&slot, &n) in slots.iter().zip(added.values()) {
            self.counts[slot as usize] += n;
        }
        Ok(())
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(vec![self.gather(slots)])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        Ok(self.gather(slots))
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![Field::new(
            format!("{}[count]", self.name),
            DataType::Int64,
            false,
        )]
    }

    fn memory_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}
