//! Any aggregate of DataFusion's over input without retractions: one of its accumulators per group.
//!
//! For functions that have no columns of their own. Rows are brought together by group first, so that
//! an accumulator is called once a batch, not once a row. DataFusion's `Accumulator` is used throughout
//! and never its `GroupsAccumulator`, whose states are others for some functions.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BooleanArray, UInt32Array, new_empty_array};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::Accumulator;
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::scalar::ScalarValue;

use super::rows::Rows;
use super::{GroupAccumulator, no_retraction};
use crate::error::RuntimeError;

/// State: that of the DataFusion accumulator.
pub(super) struct Fallback {
    function: Arc<AggregateFunctionExpr>,
    groups: Vec<Group>,
    /// State and result of a group without rows.
    empty: Option<(Vec<ScalarValue>, ScalarValue)>,
    state_fields: Vec<Field>,
    held_bytes: usize,
}

#[derive(Default)]
struct Group {
    content: Content,
    /// As the accumulator last reported, which is asked only when a group has doubled its updates.
    size: usize,
    n_updates: u32,
}

#[derive(Default)]
enum Content {
    #[default]
    Empty,
    Live(Box<dyn Accumulator>),
    /// The state that was taken out of an accumulator. Some are of no use afterwards, so it is
    /// dropped, and made anew from here when the group is next needed.
    Saved(Vec<ScalarValue>),
}

impl Fallback {
    pub(super) fn new(function: Arc<AggregateFunctionExpr>) -> Result<Self, RuntimeError> {
        let fields = function.state_fields().map_err(|e| error(&function, e))?;
        let state_fields = fields
            .iter()
            .map(|f| f.as_ref().clone().with_nullable(true))
            .collect();
        Ok(Self {
            function,
            groups: Vec::new(),
            empty: None,
            state_fields,
            held_bytes: 0,
        })
    }

    /// Calls `use_it` with the accumulator of each group, and the rows that are the group's.
    fn for_each_group(
        &mut self,
        mut rows: Vec<(u32, u32)>,
        columns: &[ArrayRef],
        add: fn(&mut dyn Accumulator, &[ArrayRef]) -> Result<(), DataFusionError>,
    ) -> Result<(), RuntimeError> {
        rows.sort_unstable();
        let order = UInt32Array::from_iter_values(rows.iter().map(|r| r.1));
        let columns = columns
            .iter()
            .map(|c| take(c, &order, None))
            .collect::<Result<Vec<_>, _>>()?;
        let mut start = 0;
        for group in rows.chunk_by(|a, b| a.0 == b.0) {
            let slices: Vec<_> = columns
                .iter()
                .map(|c| c.slice(start, group.len()))
                .collect();
            start += group.len();
            let accumulator = self.live(group[0].0)?;
            let added = add(accumulator, &slices);
            added.map_err(|e| error(&self.function, e))?;
            self.measure(group[0].0);
        }
        Ok(())
    }

    fn live(&mut self, slot: u32) -> Result<&mut dyn Accumulator, RuntimeError> {
        let content = &mut self.groups[slot as usize].content;
        if !matches!(content, Content::Live(_)) {
            let revived = match std::mem::take(content) {
                Content::Saved(state) => revive(&self.function, Some(&state)),
                _ => revive(&self.function, None),
            };
            *content = Content::Live(revived.map_err(|e| error(&self.function, e))?);
        }
        match content {
            Content::Live(accumulator) => Ok(accumulator.as_mut()),
            _ => unreachable!("just made"),
        }
    }

    fn measure(&mut self, slot: u32) {
        let group = &mut self.groups[slot as usize];
        group.n_updates = group.n_updates.saturating_add(1);
        if let (true, Content::Live(accumulator)) =
            (group.n_updates.is_power_of_two(), &group.content)
        {
            self.held_bytes -= group.size;
            group.size = accumulator.size();
            self.held_bytes += group.size;
        }
    }

    fn empty(&mut self) -> Result<&(Vec<ScalarValue>, ScalarValue), RuntimeError> {
        if self.empty.is_none() {
            let fresh = || -> Result<_, DataFusionError> {
                let state = revive(&self.function, None)?.state()?;
                Ok((state, revive(&self.function, None)?.evaluate()?))
            };
            self.empty = Some(fresh().map_err(|e| error(&self.function, e))?);
        }
        Ok(self.empty.as_ref().expect("just made"))
    }

    fn saved_state(&mut self, slot: u32) -> Result<Vec<ScalarValue>, RuntimeError> {
        let content = &mut self.groups[slot as usize].content;
        match content {
            Content::Empty => Ok(self.empty()?.0.clone()),
            Content::Saved(state) => Ok(state.clone()),
            Content::Live(accumulator) => {
                let state = accumulator.state().map_err(|e| error(&self.function, e))?;
                *content = Content::Saved(state.clone());
                Ok(state)
            }
        }
    }
}

fn revive(
    function: &AggregateFunctionExpr,
    state: Option<&[ScalarValue]>,
) -> Result<Box<dyn Accumulator>, DataFusionError> {
    let mut accumulator = function.create_accumulator()?;
    if let Some(state) = state {
        let columns = state
            .iter()
            .map(|s| s.to_array_of_size(1))
            .collect::<Result<Vec<_>, _>>()?;
        accumulator.merge_batch(&columns)?;
    }
    Ok(accumulator)
}

pub(super) fn error(function: &AggregateFunctionExpr, source: DataFusionError) -> RuntimeError {
    RuntimeError::Expression {
        context: function.name().into(),
        source,
    }
}

/// A column of these values, in exactly this type.
pub(super) fn column(
    values: Vec<ScalarValue>,
    data_type: &DataType,
    function: &AggregateFunctionExpr,
) -> Result<ArrayRef, RuntimeError> {
    if values.is_empty() {
        return Ok(new_empty_array(data_type));
    }
    let column = ScalarValue::iter_to_array(values).map_err(|e| error(function, e))?;
    if column.data_type() == data_type {
        Ok(column)
    } else {
        Ok(cast(&column, data_type)?)
    }
}

impl GroupAccumulator for Fallback {
    fn resize(&mut self, n_slots: usize) {
        self.groups
            .resize_with(n_slots.max(self.groups.len()), Group::default);
    }

    fn reset(&mut self, slots: &[u32]) {
        for &slot in slots {
            let group = std::mem::take(&mut self.groups[slot as usize]);
            self.held_bytes -= group.size;
        }
    }

    fn update(
        &mut self,
        slots: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        // What a null argument means is the function's affair, so the arguments select nothing here.
        let counting = Rows::new(slots, &[], filter, diffs);
        if counting.has_retraction() {
            return Err(no_retraction(self.function.name()));
        }
        let mut rows = Vec::with_capacity(slots.len());
        counting.for_each(|row, slot, diff| {
            (0..diff).for_each(|_| rows.push((slot as u32, row as u32)));
        });
        self.for_each_group(rows, args, |accumulator, args| {
            accumulator.update_batch(args)
        })
    }

    fn merge(&mut self, slots: &[u32], state: &[ArrayRef]) -> Result<(), RuntimeError> {
        let rows = slots.iter().copied().zip(0..).collect();
        self.for_each_group(rows, state, |accumulator, state| {
            accumulator.merge_batch(state)
        })
    }

    fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        let mut columns: Vec<Vec<ScalarValue>> = vec![vec![]; self.state_fields.len()];
        for &slot in slots {
            let state = self.saved_state(slot)?;
            columns
                .iter_mut()
                .zip(state)
                .for_each(|(column, value)| column.push(value));
        }
        columns
            .into_iter()
            .zip(&self.state_fields)
            .map(|(values, field)| column(values, field.data_type(), &self.function))
            .collect()
    }

    fn evaluate(&mut self, slots: &[u32]) -> Result<ArrayRef, RuntimeError> {
        let mut results = Vec::with_capacity(slots.len());
        for &slot in slots {
            results.push(match self.groups[slot as usize].content {
                Content::Empty => self.empty()?.1.clone(),
                _ => self
                    .live(slot)?
                    .evaluate()
                    .map_err(|e| error(&self.function, e))?,
            });
        }
        column(results, self.function.field().data_type(), &self.function)
    }

    fn state_fields(&self) -> Vec<Field> {
        self.state_fields.clone()
    }

    fn memory_bytes(&self) -> usize {
        self.groups.capacity() * size_of::<Group>() + self.held_bytes
    }
}
