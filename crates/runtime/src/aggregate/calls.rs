//! All aggregate calls of one operator, together.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{Field, Schema};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::plan::AggregateCall;

use super::multiset::Overdrawn;
use super::sets::{self, Set};
use super::{GroupAccumulator, create};
use crate::error::RuntimeError;
use crate::state::{KeyInterner, StateStore, StateWrites, TableId};

/// The accumulators of several calls over the same groups: takes arguments and filters out of a batch,
/// and lays the state columns of all calls side by side.
///
/// Calls that keep their values (DISTINCT, and most functions under retraction) do so in memory, unless
/// [`with_store`](Self::with_store) gave them tables. Then an epoch has an order of calls: any number of
/// `update` and `merge`; `settle` once all of them are in; `evaluate` (which answers as of the last
/// `settle`); and at a commit `state` and `write_changes`.
pub struct Accumulators {
    calls: Vec<Call>,
    sets: Vec<Set>,
    n_calls: usize,
    overdrawn: Overdrawn,
}

struct Call {
    /// In the output.
    position: usize,
    accumulator: Box<dyn GroupAccumulator>,
    args: Vec<usize>,
    filter: Option<usize>,
    n_state: usize,
}

impl Accumulators {
    /// The accumulators of these calls, over rows of `input`.
    pub fn new(calls: &[AggregateCall], input: &Schema) -> Result<Self, RuntimeError> {
        let columns = calls
            .iter()
            .enumerate()
            .filter(|(_, call)| !sets::keeps_values(call));
        let columns = columns
            .map(|(i, call)| Call::new(i, call, input))
            .collect::<Result<_, _>>()?;
        let sets = sets::create(calls, input)?;
        Ok(Self {
            calls: columns,
            sets,
            n_calls: calls.len(),
            overdrawn: Overdrawn::Refuse,
        })
    }

    /// Keeps values in the store, in as many tables as [`n_tables`](Self::n_tables) says, and about
    /// `memory_budget` bytes of them in memory as well.
    pub fn with_store(
        mut self,
        store: &StateStore,
        table: impl Fn(usize) -> TableId,
        memory_budget: usize,
        overdrawn: Overdrawn,
    ) -> Self {
        let budget = memory_budget / self.sets.len().max(1);
        let keep = |(i, set): (usize, Set)| set.with_store(store.clone(), table(i), budget);
        self.sets = self.sets.into_iter().enumerate().map(keep).collect();
        self.overdrawn = overdrawn;
        self
    }

    /// How many tables the calls need in a store.
    pub fn n_tables(&self) -> usize {
        self.sets.len()
    }

    /// See [`GroupAccumulator::resize`].
    pub fn resize(&mut self, n_slots: usize) {
        self.calls
            .iter_mut()
            .for_each(|c| c.accumulator.resize(n_slots));
        self.sets.iter_mut().for_each(|s| s.resize(n_slots));
    }

    /// Empties these groups, for good: values in the store are deleted with the next commit.
    pub fn reset(&mut self, slots: &[u32]) {
        self.calls
            .iter_mut()
            .for_each(|c| c.accumulator.reset(slots));
        self.sets.iter_mut().for_each(|s| s.reset(slots));
    }

    /// Takes these groups out of memory; [`restore`](Self::restore) brings them back. They must not have
    /// changed since the last commit, and that must be in the store.
    pub fn forget(&mut self, slots: &[u32]) {
        self.calls
            .iter_mut()
            .for_each(|c| c.accumulator.reset(slots));
        self.sets.iter_mut().for_each(|s| s.forget(slots));
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
        self.sets
            .iter_mut()
            .try_for_each(|s| s.update(slots, rows, diffs))
    }

    /// Adds state columns that accumulators without a store have laid out in [`state`](Self::state).
    pub fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let sets = self.merge_calls(slots, state)?;
        let mut rest = sets;
        for set in &mut self.sets {
            let columns;
            (columns, rest) = rest.split_at(set.state_fields().len());
            set.merge(slots, columns)?;
        }
        Ok(())
    }

    /// Fills new slots from state columns that these accumulators have laid out, read back from the
    /// store. `keys` has the slots' keys.
    pub fn restore(
        &mut self,
        slots: &[u32],
        keys: &KeyInterner,
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        let sets = self.merge_calls(slots, state)?;
        let mut rest = sets;
        for set in &mut self.sets {
            let columns;
            (columns, rest) = rest.split_at(set.state_fields().len());
            set.restore(slots, columns)?;
            set.multiset.restore(slots, keys)?;
        }
        Ok(())
    }

    /// Merges the columns of calls that have accumulators of their own; gives the other columns.
    fn merge_calls<'a>(
        &mut self,
        slots: &[u32],
        state: &'a [ArrayRef],
    ) -> Result<&'a [ArrayRef], RuntimeError> {
        debug_assert!(state.iter().all(|column| column.len() == slots.len()));
        let mut rest = state;
        for call in &mut self.calls {
            let columns;
            (columns, rest) = rest.split_at(call.n_state);
            call.accumulator.merge(slots, columns)?;
        }
        Ok(rest)
    }

    /// Applies an epoch's changes to the values that are kept. Gives how many of them took away what was
    /// not there; see [`Overdrawn`].
    pub fn settle(&mut self) -> Result<usize, RuntimeError> {
        let mut n_overdrawn = 0;
        for set in &mut self.sets {
            n_overdrawn += set.settle(self.overdrawn)?;
        }
        Ok(n_overdrawn)
    }

    /// The state columns of all calls, in the order and types of [`state_fields`](Self::state_fields).
    pub fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let mut columns = Vec::new();
        for call in &mut self.calls {
            columns.append(&mut call.accumulator.state(slots)?);
        }
        for set in &mut self.sets {
            columns.append(&mut set.state(slots)?);
        }
        Ok(columns)
    }

    /// One result column a call. Without a store settles first.
    pub fn evaluate(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let mut results = vec![None; self.n_calls];
        for call in &mut self.calls {
            results[call.position] = Some(call.accumulator.evaluate(slots)?);
        }
        for set in &mut self.sets {
            if !set.multiset.is_stored() {
                set.settle(self.overdrawn)?;
            }
            set.evaluate(slots, &mut results)?;
        }
        Ok(results
            .into_iter()
            .map(|r| r.expect("every call is in one of the two"))
            .collect())
    }

    pub fn state_fields(&self) -> Vec<Field> {
        let calls = self.calls.iter().flat_map(|c| c.accumulator.state_fields());
        let sets = self.sets.iter().flat_map(Set::state_fields);
        calls.chain(sets).collect()
    }

    /// Hands over the values that changed since the last commit. `keys` has the keys of all groups.
    pub fn write_changes(
        &mut self,
        keys: &KeyInterner,
        writes: &mut StateWrites,
    ) -> Result<(), RuntimeError> {
        self.sets
            .iter_mut()
            .try_for_each(|s| s.multiset.write_changes(keys, writes))
    }

    /// Bytes of values that no commit has yet.
    pub fn dirty_bytes(&self) -> usize {
        self.sets.iter().map(|s| s.multiset.dirty_bytes()).sum()
    }

    pub fn memory_bytes(&self) -> usize {
        self.calls
            .iter()
            .map(|c| c.accumulator.memory_bytes())
            .sum::<usize>()
            + self.sets.iter().map(Set::memory_bytes).sum::<usize>()
    }
}

impl Call {
    fn new(position: usize, call: &AggregateCall, input: &Schema) -> Result<Self, RuntimeError> {
        let accumulator = create(call, input)?;
        let n_state = accumulator.state_fields().len();
        Ok(Self {
            position,
            accumulator,
            args: call.args.clone(),
            filter: call.filter,
            n_state,
        })
    }
}
