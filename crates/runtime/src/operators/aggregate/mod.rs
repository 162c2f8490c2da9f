//! Updating aggregation: groups by key and emits, at every barrier, the net change of the result.
//!
//! A group is touched once an epoch at most as far as its image is concerned: its old result is taken when
//! the first row of the epoch reaches it, its new one at the barrier, and the two are compared. What the
//! rows in between do is arithmetic on columns of accumulators, addressed by slot.
//!
//! Time to live (semantics 5): see [`segments`] for gaps within an epoch and [`groups`] for expiry by the
//! watermark.

mod changes;
mod groups;
mod partial;
#[cfg(test)]
mod partial_tests;
mod segments;
mod spans;
#[cfg(test)]
mod tests;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};
use arrow::datatypes::SchemaRef;
use hashbrown::HashSet;
use std::sync::Arc;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::plan::{Aggregate, Phase};

use super::OperatorContext;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, Operator, Stateful};
use crate::state::StateWrites;

use changes::{Changes, OldImages};
use groups::Groups;
use partial::{PartialAggregation, Partials};
use segments::Segments;

/// The operator of a phase.
pub fn build(
    aggregate: &Aggregate,
    context: OperatorContext,
) -> Result<Box<dyn Operator>, RuntimeError> {
    Ok(match aggregate.phase {
        Phase::Partial => Box::new(PartialAggregation::new(aggregate, context)?),
        Phase::Single | Phase::Final => Box::new(UpdatingAggregation::new(aggregate, context)?),
    })
}

pub struct UpdatingAggregation {
    keys: Vec<usize>,
    /// Rows arrive as partial aggregates.
    merges: bool,
    output_schema: SchemaRef,
    groups: Groups,
    ttl: Option<i64>,
    segments: Segments,
    /// Groups touched in this epoch, in the order of their first touch.
    touched: Vec<u32>,
    old: OldImages,
    changes: Option<Changes>,
    /// Retractions in the input stand for rows of earlier epochs.
    net_input: bool,
    first_epoch_done: bool,
    metrics: Arc<JobMetrics>,
    slots: Vec<u32>,
}

impl UpdatingAggregation {
    pub fn new(aggregate: &Aggregate, context: OperatorContext) -> Result<Self, RuntimeError> {
        let n_keys = aggregate.keys.len();
        let fields = context.output_schema.fields();
        let image_types = fields
            .iter()
            .skip(n_keys)
            .map(|f| f.data_type().clone())
            .collect();
        Ok(Self {
            keys: aggregate.keys.clone(),
            merges: aggregate.phase == Phase::Final,
            output_schema: context.output_schema.clone(),
            // The row of a global aggregate never expires (semantics 5.4).
            ttl: aggregate.ttl.filter(|_| !aggregate.keys.is_empty()),
            groups: Groups::new(aggregate, &context)?,
            segments: Segments::new(aggregate, &context)?,
            touched: Vec::new(),
            old: OldImages::new(image_types),
            changes: None,
            net_input: context.net_input,
            first_epoch_done: false,
            metrics: context.metrics,
            slots: Vec::new(),
        })
    }

    fn is_global(&self) -> bool {
        self.keys.is_empty()
    }

    /// Takes the old image of every group that this batch is the first to touch.
    fn touch(&mut self, slots: &[u32]) -> Result<(), RuntimeError> {
        let first = self.touched.len();
        for &slot in slots {
            if self.groups.touch(slot) {
                self.touched.push(slot);
            }
        }
        self.remember(first)
    }

    fn remember(&mut self, first: usize) -> Result<(), RuntimeError> {
        let is_shown = |&slot: &u32| self.groups.is_shown(slot);
        let shown: Vec<u32> = self.touched[first..]
            .iter()
            .copied()
            .filter(is_shown)
            .collect();
        if shown.is_empty() {
            return Ok(());
        }
        let images = self.groups.accumulators.evaluate(&shown)?;
        self.old.add(&shown, images, self.groups.n_slots());
        Ok(())
    }

    /// Leaves out the retractions that concern rows which have expired: those of groups that begin in this
    /// epoch, where the input's changes are net.
    fn without_expired_retractions(
        &self,
        batch: ChangeBatch,
        slots: &mut Vec<u32>,
    ) -> Result<ChangeBatch, RuntimeError> {
        let Some(diffs) = batch
            .diffs()
            .filter(|_| self.ttl.is_some() && self.net_input)
        else {
            return Ok(batch);
        };
        let expired = |row: usize| diffs[row] < 0 && self.groups.is_new(slots[row]);
        let kept: Vec<u32> = (0..slots.len())
            .filter(|&row| !expired(row))
            .map(|row| row as u32)
            .collect();
        if kept.len() == slots.len() {
            return Ok(batch);
        }
        JobMetrics::add(&self.metrics.dropped_changes, slots.len() - kept.len());
        *slots = kept.iter().map(|&row| slots[row as usize]).collect();
        Ok(batch.take(&UInt32Array::from(kept))?)
    }

    fn add_rows(&mut self, batch: ChangeBatch, slots: &mut Vec<u32>) -> Result<(), RuntimeError> {
        let mut batch = self.without_expired_retractions(batch, slots)?;
        self.touch(slots)?;
        let times = batch.times();
        if let Some(ttl) = self.ttl {
            let apart = self.groups.spans().see(slots, times, times, ttl);
            if !apart.is_empty() {
                batch = self.segments.set_aside(batch, slots, &apart)?;
            }
        } else {
            self.groups.spans().see_all(slots, times, times);
        }
        self.groups.update(slots, &batch)
    }

    fn add_partials(
        &mut self,
        batch: &ChangeBatch,
        slots: &mut Vec<u32>,
    ) -> Result<(), RuntimeError> {
        let mut partials = Partials::of(batch, self.keys.len());
        self.touch(slots)?;
        let (low, high) = (&partials.low, &partials.high);
        if let Some(ttl) = self.ttl {
            let apart = self.groups.spans().see(slots, low, high, ttl);
            if !apart.is_empty() {
                partials = self.segments.set_partials_aside(partials, slots, &apart)?;
            }
        } else {
            self.groups.spans().see_all(slots, low, high);
        }
        self.groups.merge(slots, &partials.n_rows, &partials.state)
    }

    fn settle(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        if self.is_global() && !self.first_epoch_done {
            // Semantics 4.5: the one row is there from the end of the first epoch on.
            let mut slots = Vec::new();
            self.groups.intern(&[], 1, &mut slots)?;
            self.touch(&slots)?;
        }
        self.first_epoch_done = true;
        let restarted = self.segments.settle(&mut self.groups)?;
        let overdrawn = self.groups.clear_overdrawn(&self.touched);
        let overdrawn = overdrawn + self.groups.settle()?;
        JobMetrics::add(&self.metrics.dropped_changes, overdrawn);
        let expired = self.groups.expire(barrier.watermark, &self.touched)?;
        JobMetrics::add(&self.metrics.expired_keys, expired.len() + restarted.len());
        let first = self.touched.len();
        for &slot in &expired {
            if self.groups.touch(slot) {
                self.touched.push(slot);
            }
        }
        self.remember(first)?;
        // A group may have begun anew in this epoch and expired again: its old row goes once.
        let mut seen = HashSet::new();
        let gone = expired
            .iter()
            .chain(&restarted)
            .copied()
            .filter(|&s| self.old.contains(s) && seen.insert(s))
            .collect();
        self.groups.drop_expired(&expired);
        let touched = std::mem::take(&mut self.touched);
        self.changes = Some(Changes::new(touched, gone, std::mem::take(&mut self.old)));
        Ok(())
    }
}

impl Operator for UpdatingAggregation {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        let keys: Vec<ArrayRef> = self
            .keys
            .iter()
            .map(|&k| batch.rows().column(k).clone())
            .collect();
        let mut slots = std::mem::take(&mut self.slots);
        self.groups.intern(&keys, batch.n_rows(), &mut slots)?;
        if self.merges {
            self.add_partials(&batch, &mut slots)?;
        } else {
            self.add_rows(batch, &mut slots)?;
        }
        self.slots = slots;
        Ok(())
    }

    fn barrier(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        self.settle(barrier)
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        if let Some(changes) = &mut self.changes {
            if let Some(batch) = changes.next(&mut self.groups, &self.output_schema)? {
                return Ok(Some(batch));
            }
            let changes = self.changes.take().expect("just seen");
            self.old = changes.finish(&mut self.groups, self.keys.is_empty())?;
        }
        Ok(None)
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

impl Stateful for UpdatingAggregation {
    fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        self.groups.write_changes(writes)
    }

    fn dirty_bytes(&self) -> usize {
        self.groups.dirty_bytes()
    }

    fn memory_bytes(&self) -> usize {
        self.groups.memory_bytes()
    }
}

/// A column of counts.
fn count_column(counts: Vec<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(counts))
}
