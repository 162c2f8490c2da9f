//! All aggregate calls of one operator, together.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::plan::AggregateCall;

use super::{GroupAccumulator, create};
use crate::error::RuntimeError;

/// The accumulators of several calls over the same groups: takes arguments and filters out of a batch,
/// and lays the state columns of all calls side by side.
pub struct Accumulators {
    calls: Vec<Call>,
}

struct Call {
    accumulator: Box<dyn GroupAccumulator>,
    args: Vec<usize>,
    filter: Option<usize>,
    n_state: usize,
}

impl Accumulators {
    /// One accumulator a call, over rows of `input`.
    pub fn new(calls: &[AggregateCall], input: &Schema) -> Result<Self, RuntimeError> {
        let calls = calls
            .iter()
            .map(|call| Call::new(call, input))
            .collect::<Result<_, _>>()?;
        Ok(Self { calls })
    }

    /// See [`GroupAccumulator::resize`].
    pub fn resize(&mut self, n_slots: usize) {
        self.calls
            .iter_mut()
            .for_each(|c| c.accumulator.resize(n_slots));
    }

    /// See [`GroupAccumulator::reset`].
    pub fn reset(&mut self, slots: &[u32]) {
        self.calls
            .iter_mut()
            .for_each(|c| c.accumulator.reset(slots));
    }

    /// Adds the rows of a batch, row *i* to the group in `slots[i]`.
    pub fn update(
        &mut self,
        slots: &[u32],
        rows: &RecordBatch,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        for call in &mut self.calls {
            let args: Vec<ArrayRef> = call.args.iter().map(|&c| rows.column(c).clone()).collect();
            let filter: Option<&BooleanArray> = call.filter.map(|c| rows.column(c).as_boolean());
            call.accumulator.update(slots, &args, filter, diffs)?;
        }
        Ok(())
    }

    /// Adds state columns as [`state`](Self::state) lays them out.
    pub fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        debug_assert!(state.iter().all(|column| column.len() == slots.len()));
        let mut rest = state;
        for call in &mut self.calls {
            let columns;
            (columns, rest) = rest.split_at(call.n_state);
            call.accumulator.merge(slots, columns)?;
        }
        Ok(())
    }

    /// The state columns of all calls, in the order and types of [`state_fields`](Self::state_fields).
    pub fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let mut columns = Vec::new();
        for call in &mut self.calls {
            columns.append(&mut call.accumulator.state(slots)?);
        }
        Ok(columns)
    }

    /// One result column a call.
    pub fn evaluate(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        self.calls
            .iter_mut()
            .map(|c| c.accumulator.evaluate(slots))
            .collect()
    }

    pub fn state_fields(&self) -> Vec<Field> {
        self.calls
            .iter()
            .flat_map(|c| c.accumulator.state_fields())
            .collect()
    }

    pub fn memory_bytes(&self) -> usize {
        self.calls
            .iter()
            .map(|c| c.accumulator.memory_bytes())
            .sum()
    }
}

impl Call {
    fn new(call: &AggregateCall, input: &Schema) -> Result<Self, RuntimeError> {
        let accumulator = create(call, input)?;
        let n_state = accumulator.state_fields().len();
        Ok(Self {
            accumulator,
            args: call.args.clone(),
            filter: call.filter,
            n_state,
        })
    }
}
