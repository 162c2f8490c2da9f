//! Aggregation by session and key over append-only input: a session begins at a row and lasts `gap` past its last
//! one; it is emitted once, when the watermark reaches its end (semantics 3.3, 1.1).
//!
//! A batch is sorted by key and time, which gives runs of rows that belong together; a run is looked at once,
//! and joins, extends or bridges the open sessions of its key. What a session has gathered are accumulators
//! addressed by slot, as everywhere; to bridge two sessions is to merge two slots.

mod closing;
mod runs;
mod sessions;
mod stored;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt32Array};
use arrow::datatypes::SchemaRef;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::plan::WindowAggregate;
use thalweg_dataflow::time::TIMELESS;
use thalweg_dataflow::{ChangeBatch, Watermark};

use super::OperatorContext;
use super::windows::instants;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, Operator, Stateful};
use crate::state::StateWrites;

use closing::Closing;
use sessions::Sessions;

pub struct SessionAggregation {
    /// Nanoseconds, above zero.
    gap: i64,
    keys: Vec<usize>,
    output_schema: SchemaRef,
    sessions: Sessions,
    /// Of the last barrier: a row whose `t + gap` it has reached is late.
    watermark: Watermark,
    /// The barrier being answered.
    closing: Option<Closing>,
    metrics: Arc<JobMetrics>,
}

impl SessionAggregation {
    pub fn new(
        gap: i64,
        aggregate: &WindowAggregate,
        context: OperatorContext,
    ) -> Result<Self, RuntimeError> {
        if context.updating_input {
            return Err(RuntimeError::Internal(
                "sessions were planned over an input with retractions".into(),
            ));
        }
        Ok(Self {
            gap,
            keys: aggregate.keys.clone(),
            output_schema: context.output_schema.clone(),
            sessions: Sessions::new(gap, aggregate, &context)?,
            watermark: Watermark::NONE,
            closing: None,
            metrics: context.metrics,
        })
    }

    /// The rows that are not late (semantics 3.5).
    fn on_time(&self, batch: ChangeBatch) -> Result<ChangeBatch, RuntimeError> {
        let is_late =
            |t: i64| t == TIMELESS || self.watermark.has_reached(t.saturating_add(self.gap));
        let n_late = batch.times().iter().filter(|&&t| is_late(t)).count();
        if n_late == 0 {
            return Ok(batch);
        }
        JobMetrics::add(&self.metrics.late_rows, n_late);
        let kept: Vec<u32> = (0..batch.n_rows() as u32)
            .filter(|&row| !is_late(batch.times()[row as usize]))
            .collect();
        Ok(batch.take(&UInt32Array::from(kept))?)
    }

    /// Results of sessions that have closed.
    fn rows(&self, closed: closing::Closed) -> Result<ChangeBatch, RuntimeError> {
        let n = closed.starts.len();
        let times = closed.ends.iter().map(|end| end - 1).collect();
        let bound = |i: usize| self.output_schema.field(i).data_type();
        let mut columns = vec![
            instants(closed.starts, bound(0))?,
            instants(closed.ends, bound(1))?,
        ];
        columns.extend(closed.keys);
        columns.extend(closed.results);
        let rows = record_batch(self.output_schema.clone(), columns, n)?;
        Ok(ChangeBatch::append(rows, times))
    }
}

impl Operator for SessionAggregation {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        let batch = self.on_time(batch)?;
        if batch.is_empty() {
            return Ok(());
        }
        let keys: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|&k| batch.rows().column(k).clone())
            .collect();
        self.sessions.add(&keys, &batch)
    }

    fn barrier(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        self.closing = Some(self.sessions.begin_closing(barrier.watermark));
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        let Some(mut closing) = self.closing.take() else {
            return Ok(None);
        };
        if let Some(closed) = closing.next(&mut self.sessions)? {
            self.closing = Some(closing);
            return self.rows(closed).map(Some);
        }
        self.watermark = self.watermark.max(closing.watermark());
        self.sessions.end_epoch()?;
        Ok(None)
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for SessionAggregation {
    fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        self.sessions.write_changes(writes)
    }

    fn dirty_bytes(&self) -> usize {
        self.sessions.dirty_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.sessions.memory_bytes()
    }
}
