//! The aggregate calls that keep the values themselves: which of them share a multiset, and what each
//! makes of it.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use thalweg_dataflow::plan::{AggregateCall, AggregateState, ColumnAggregate};

use super::extreme::Which;
use super::multiset::{Multiset, Overdrawn};
use super::{GroupAccumulator, create_columns, recompute};
use crate::error::RuntimeError;
use crate::state::{StateStore, TableId};

/// Calls over the same arguments and the same filter.
pub(super) struct Set {
    args: Vec<usize>,
    filter: Option<usize>,
    pub(super) multiset: Multiset,
    /// Position of each call in the output, and what it makes of the values.
    pub(super) calls: Vec<(usize, Kind)>,
}

/// How a result comes out of a multiset.
pub(super) enum Kind {
    /// DISTINCT of a function that can add and take away: the values that come and go.
    Distinct(Box<dyn GroupAccumulator>),
    /// The first or last value in order.
    Extreme(Which),
    /// DataFusion's accumulator over all of them.
    Recompute(Arc<AggregateFunctionExpr>),
}

/// Whether a call keeps its values. Besides those that are planned so: functions that need their rows in
/// order, since batches come in any; and DISTINCT where the values that come are enough to go by, since
/// DataFusion's accumulators tell zeros and NaNs apart that are one value (semantics 4.6).
pub(super) fn keeps_values(call: &AggregateCall) -> bool {
    let function = &call.function;
    match call.state {
        AggregateState::Multiset => true,
        AggregateState::Accumulator => {
            function.order_sensitivity().hard_requires() || is_distinct_column(function)
        }
        AggregateState::Columns(_) => false,
    }
}

fn is_distinct_column(function: &AggregateFunctionExpr) -> bool {
    function.is_distinct() && column_aggregate(function.fun().name()).is_some()
}

impl Kind {
    fn new(call: &AggregateCall, input: &Schema) -> Result<Self, RuntimeError> {
        let function = &call.function;
        match function.fun().name() {
            "min" => return Ok(Self::Extreme(Which::Min)),
            "max" => return Ok(Self::Extreme(Which::Max)),
            _ => {}
        }
        match column_aggregate(function.fun().name()).filter(|_| function.is_distinct()) {
            Some(aggregate) => Ok(Self::Distinct(create_columns(aggregate, call, input)?)),
            None => Ok(Self::Recompute(function.clone())),
        }
    }
}

fn column_aggregate(name: &str) -> Option<ColumnAggregate> {
    Some(match name {
        "count" => ColumnAggregate::Count,
        "sum" => ColumnAggregate::Sum,
        "avg" => ColumnAggregate::Avg,
        "var" => ColumnAggregate::VarSamp,
        "var_pop" => ColumnAggregate::VarPop,
        "stddev" => ColumnAggregate::StddevSamp,
        "stddev_pop" => ColumnAggregate::StddevPop,
        "bool_and" => ColumnAggregate::BoolAnd,
        "bool_or" => ColumnAggregate::BoolOr,
        _ => return None,
    })
}

/// The sets of those calls that keep their values, in memory.
pub(super) fn create(calls: &[AggregateCall], input: &Schema) -> Result<Vec<Set>, RuntimeError> {
    let mut sets: Vec<Set> = Vec::new();
    for (position, call) in calls
        .iter()
        .enumerate()
        .filter(|(_, call)| keeps_values(call))
    {
        let kind = Kind::new(call, input)?;
        let shared = sets
            .iter_mut()
            .find(|s| s.args == call.args && s.filter == call.filter);
        match shared {
            Some(set) => set.calls.push((position, kind)),
            None => sets.push(Set::new(call, position, kind, input)?),
        }
    }
    Ok(sets)
}

impl Set {
    fn new(
        call: &AggregateCall,
        position: usize,
        kind: Kind,
        input: &Schema,
    ) -> Result<Self, RuntimeError> {
        if call.args.is_empty() {
            let name = call.function.name();
            return Err(RuntimeError::Internal(format!(
                "{name} keeps values but has no argument"
            )));
        }
        let types = call
            .args
            .iter()
            .map(|&c| input.field(c).data_type().clone())
            .collect();
        let multiset = Multiset::new(types)?;
        let calls = vec![(position, kind)];
        Ok(Self {
            args: call.args.clone(),
            filter: call.filter,
            multiset,
            calls,
        })
    }

    pub(super) fn with_store(self, store: StateStore, table: TableId, budget: usize) -> Self {
        let has_extremes = self
            .calls
            .iter()
            .any(|(_, kind)| matches!(kind, Kind::Extreme(_)));
        let multiset = self.multiset.with_store(store, table, budget, has_extremes);
        Self { multiset, ..self }
    }

    fn accumulators(&mut self) -> impl Iterator<Item = &mut Box<dyn GroupAccumulator>> {
        self.calls.iter_mut().filter_map(|(_, kind)| match kind {
            Kind::Distinct(accumulator) => Some(accumulator),
            _ => None,
        })
    }

    pub(super) fn resize(&mut self, n_slots: usize) {
        self.multiset.resize(n_slots);
        self.accumulators().for_each(|a| a.resize(n_slots));
    }

    pub(super) fn reset(&mut self, slots: &[u32]) {
        self.accumulators().for_each(|a| a.reset(slots));
        self.multiset.reset(slots);
    }

    pub(super) fn forget(&mut self, slots: &[u32]) {
        self.accumulators().for_each(|a| a.reset(slots));
        self.multiset.forget(slots);
    }

    pub(super) fn update(
        &mut self,
        slots: &[u32],
        rows: &RecordBatch,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let values: Vec<ArrayRef> = self.args.iter().map(|&c| rows.column(c).clone()).collect();
        let filter = self.filter.map(|c| rows.column(c).as_boolean());
        self.multiset.update(slots, &values, filter, diffs)
    }

    /// Applies the changes of an epoch; gives how many found nothing to take away.
    pub(super) fn settle(&mut self, overdrawn: Overdrawn) -> Result<usize, RuntimeError> {
        let crossings = self.multiset.settle(overdrawn)?;
        if crossings.slots.is_empty() || self.accumulators().next().is_none() {
            return Ok(crossings.n_overdrawn);
        }
        let columns = self.multiset.crossing_columns(&crossings)?;
        for accumulator in self.accumulators() {
            // Of the columns, the first is the argument; the others are what it is ordered by.
            accumulator.update(
                &crossings.slots,
                &columns[..1],
                None,
                Some(&crossings.diffs),
            )?;
        }
        Ok(crossings.n_overdrawn)
    }

    /// The entries of each group as one column, then the state of DISTINCT calls.
    pub(super) fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(self.multiset.entries(slots)?)];
        for accumulator in self.accumulators() {
            columns.append(&mut accumulator.state(slots)?);
        }
        Ok(columns)
    }

    pub(super) fn state_fields(&self) -> Vec<Field> {
        let mut fields = vec![Field::new("entries", DataType::Binary, true)];
        for (_, kind) in &self.calls {
            if let Kind::Distinct(accumulator) = kind {
                fields.append(&mut accumulator.state_fields());
            }
        }
        fields
    }

    /// Adds the entries of another set. What DISTINCT calls have follows from those when they are settled.
    pub(super) fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        self.multiset.merge_entries(slots, &state[0])
    }

    /// Reads back what DISTINCT calls had; the values are in the store.
    pub(super) fn restore(
        &mut self,
        slots: &[u32],
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        let mut rest = &state[1..];
        for accumulator in self.accumulators() {
            let columns;
            (columns, rest) = rest.split_at(accumulator.state_fields().len());
            accumulator.merge(slots, columns)?;
        }
        Ok(())
    }

    /// The results of each call, with its position in the output.
    pub(super) fn evaluate(
        &mut self,
        slots: &[u32],
        results: &mut [Option<ArrayRef>],
    ) -> Result<(), RuntimeError> {
        for (position, kind) in &mut self.calls {
            results[*position] = Some(match kind {
                Kind::Distinct(accumulator) => accumulator.evaluate(slots)?,
                Kind::Extreme(which) => self.multiset.extremes(slots, *which)?,
                Kind::Recompute(function) => recompute::evaluate(function, &self.multiset, slots)?,
            });
        }
        Ok(())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let distinct = self.calls.iter().map(|(_, kind)| match kind {
            Kind::Distinct(accumulator) => accumulator.memory_bytes(),
            _ => 0,
        });
        self.multiset.memory_bytes() + distinct.sum::<usize>()
    }
}
