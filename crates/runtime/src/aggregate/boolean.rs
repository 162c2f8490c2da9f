//! `bool_and` and `bool_or`, from counts of true and false, so that values can be taken away again.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type};

use super::rows::Rows;
use super::{GroupAccumulator, unexpected_type};
use crate::error::RuntimeError;

/// What is made of the counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finish {
    And,
    Or,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    n_true: i64,
    n_false: i64,
}

impl Cell {
    fn result(self, finish: Finish) -> Option<bool> {
        let some = self.n_true != 0 || self.n_false != 0;
        some.then_some(match finish {
            Finish::And => self.n_false == 0,
            Finish::Or => self.n_true != 0,
        })
    }
}

/// State: `n_true: Int64`, `n_false: Int64`.
pub(super) struct BoolCounts {
    name: String,
    finish: Finish,
    cells: Vec<Cell>,
}

impl BoolCounts {
    pub(super) fn new(name: &str, finish: Finish) -> Self {
        Self {
            name: name.into(),
            finish,
            cells: Vec::new(),
        }
    }
}

impl GroupAccumulator for BoolCounts {
    fn resize(&mut self, n_slots: usize) {
        self.cells
            .resize(n_slots.max(self.cells.len()), Cell::default());
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.cells[slot as usize] = Cell::default();
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
            .as_boolean_opt()
            .ok_or_else(|| unexpected_type(&self.name, args[0].data_type()))?
            .values();
        let cells = &mut self.cells;
        Rows::new(slots, args, filter, diffs).for_each(|row, slot, diff| {
            let cell = &mut cells[slot];
            if values.value(row) {
                cell.n_true += diff
            } else {
                cell.n_false += diff
            }
        });
        Ok(())
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let trues = state[0].as_primitive::<Int64Type>().values();
        let falses = state[1].as_primitive::<Int64Type>().values();
        for (row, &slot) in slots.iter().enumerate() {
            let cell = &mut self.cells[slot as usize];
            cell.n_true += trues[row];
            cell.n_false += falses[row];
        }
        Ok(())
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let cells = || slots.iter().map(|&s| self.cells[s as usize]);
        let trues: Int64Array = cells().map(|c| c.n_true).collect();
        let falses: Int64Array = cells().map(|c| c.n_false).collect();
        Ok(vec![Arc::new(trues), Arc::new(falses)])
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        let results = slots
            .iter()
            .map(|&s| self.cells[s as usize].result(self.finish));
        Ok(Arc::new(results.collect::<BooleanArray>()))
    }

    fn state_fields(&self) -> Vec<Field> {
        vec![
            Field::new(format!("{}[true]", self.name), DataType::Int64, false),
            Field::new(format!("{}[false]", self.name), DataType::Int64, false),
        ]
    }

    fn memory_bytes(&self) -> usize {
        self.cells.capacity() * size_of::<Cell>()
    }
}
