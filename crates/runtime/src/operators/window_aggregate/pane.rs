//! The groups of one pane of a windowed aggregation, as far as they are in memory.
//!
//! A pane is *spilled* once some of its groups were dropped from memory because the store has them. From then on a
//! key that is new in memory may have an entry in the store, which its slot does not count: it is *unread*
//! until [`PaneStore`](super::store::PaneStore) has looked it up.

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;
use thalweg_dataflow::ChangeBatch;

use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::state::{KeyInterner, VnodeSet};

/// Groups by key, addressed by slot: their accumulators and how many rows each has.
pub struct Pane {
    pub keys: KeyInterner,
    pub accumulators: Accumulators,
    pub n_rows: Vec<i64>,
    /// Slots changed since they were last written, and whether each is listed. What is not dirty stands in the
    /// store as it is.
    pub dirty: Vec<u32>,
    pub is_dirty: Vec<bool>,
    /// Slots that stand in the state store, while all of the pane is in memory.
    pub stored: Vec<u32>,
    pub is_stored: Vec<bool>,
    /// Not all of the pane's groups are in memory.
    pub is_spilled: bool,
    /// Slots of a spilled pane that do not count what the store may have of their keys.
    pub unread: Vec<u32>,
    pub is_unread: Vec<bool>,
    /// Virtual partitions in which the store has groups of the pane.
    pub vnodes: VnodeSet,
    /// The epoch that last added rows, counting from the operator's beginning.
    pub last_touched: u64,
    slots: Vec<u32>,
    new: Vec<u32>,
}

/// Rough size of a group's entry in the store, for deciding when to commit.
const DIRTY_BYTES_PER_SLOT: usize = 96;

impl Pane {
    pub fn new(keys: KeyInterner, accumulators: Accumulators) -> Self {
        Self {
            keys,
            accumulators,
            n_rows: Vec::new(),
            dirty: Vec::new(),
            is_dirty: Vec::new(),
            stored: Vec::new(),
            is_stored: Vec::new(),
            is_spilled: false,
            unread: Vec::new(),
            is_unread: Vec::new(),
            vnodes: VnodeSet::default(),
            last_touched: 0,
            slots: Vec::new(),
            new: Vec::new(),
        }
    }

    /// Finds the slots of these keys, one column per key, for [`update`](Self::update) or [`merge`](Self::merge).
    pub fn intern(&mut self, keys: &[ArrayRef], n_rows: usize) -> Result<(), RuntimeError> {
        self.new.clear();
        self.keys
            .intern(keys, n_rows, &mut self.slots, &mut self.new)?;
        let n_slots = self.keys.n_slots();
        self.n_rows.resize(n_slots, 0);
        self.is_dirty.resize(n_slots, false);
        self.is_stored.resize(n_slots, false);
        self.accumulators.resize(n_slots);
        for &slot in &self.slots {
            if !std::mem::replace(&mut self.is_dirty[slot as usize], true) {
                self.dirty.push(slot);
            }
        }
        if self.is_spilled {
            self.is_unread.resize(n_slots, false);
            for &slot in &self.new {
                self.is_unread[slot as usize] = true;
            }
            self.unread.extend(&self.new);
        }
        Ok(())
    }

    /// Adds rows, whose keys were just interned.
    pub fn update(&mut self, batch: &ChangeBatch) -> Result<(), RuntimeError> {
        let diffs = batch.diffs().map(|d| d.as_ref());
        for (i, &slot) in self.slots.iter().enumerate() {
            self.n_rows[slot as usize] += diffs.map_or(1, |d| d[i]);
        }
        self.accumulators.update(&self.slots, batch.rows(), diffs)
    }

    /// Adds partial aggregates, whose keys were just interned: rows they stand for, state columns.
    pub fn merge(
        &mut self,
        counts: &ScalarBuffer<i64>,
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        for (&slot, &n) in self.slots.iter().zip(counts.iter()) {
            self.n_rows[slot as usize] += n;
        }
        self.accumulators.merge(&self.slots, state)
    }

    /// Adds what the store has of these slots.
    pub fn add_stored(
        &mut self,
        slots: &[u32],
        counts: &[i64],
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        for (&slot, n) in slots.iter().zip(counts) {
            self.n_rows[slot as usize] += n;
        }
        self.accumulators.merge(slots, state)
    }

    pub fn all_slots(&self) -> Vec<u32> {
        self.keys.taken_slots()
    }

    /// Groups that have rows left, where rows are also taken away.
    pub fn present_slots(&self) -> Vec<u32> {
        let mut slots = self.keys.taken_slots();
        slots.retain(|&s| self.n_rows[s as usize] > 0);
        slots
    }

    pub fn key_columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(self.keys.key_columns(slots)?)
    }

    pub fn counts(&self, slots: &[u32]) -> ScalarBuffer<i64> {
        slots.iter().map(|&s| self.n_rows[s as usize]).collect()
    }

    pub fn state(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        self.accumulators.state(slots)
    }

    pub fn evaluate(&mut self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        self.accumulators.evaluate(slots)
    }

    /// Drops groups that are not dirty from memory; all of them must be in the store by now.
    pub fn drop_groups(&mut self, slots: &[u32]) {
        self.accumulators.reset(slots);
        self.keys.remove(slots);
        slots.iter().for_each(|&s| self.n_rows[s as usize] = 0);
        self.set_spilled();
    }

    /// The pane as it is when all of its groups have been dropped: `empty` is a new one.
    pub fn drop_all(&mut self, empty: Self) {
        debug_assert!(self.dirty.is_empty());
        let whole = std::mem::replace(self, empty);
        self.vnodes = whole.vnodes;
        self.last_touched = whole.last_touched;
        self.set_spilled();
    }

    fn set_spilled(&mut self) {
        self.is_spilled = true;
        self.stored = Vec::new();
        self.is_unread.resize(self.keys.n_slots(), false);
    }

    pub fn is_clean(&self) -> bool {
        self.dirty.is_empty()
    }

    pub fn dirty_bytes(&self) -> usize {
        // Half of what a group takes: tables have up to twice the room that they need.
        let mean = self.memory_bytes() / self.keys.n_slots().max(1) / 2;
        self.dirty.len() * DIRTY_BYTES_PER_SLOT.max(mean)
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
            + self.accumulators.memory_bytes()
            + self.n_rows.capacity() * 10
            + (self.dirty.capacity() + self.stored.capacity() + self.unread.capacity()) * 4
    }

    /// Bytes that the groups in memory account for; what dropped ones have left free is used again.
    pub fn live_bytes(&self) -> usize {
        self.memory_bytes() / self.keys.n_slots().max(1) * self.keys.len()
    }

    pub fn clear(&mut self) {
        let all = self.all_slots();
        self.accumulators.reset(&all);
        self.keys.clear();
        for column in [&mut self.dirty, &mut self.stored, &mut self.unread] {
            column.clear();
        }
        self.n_rows.clear();
        for column in [&mut self.is_dirty, &mut self.is_stored, &mut self.is_unread] {
            column.clear();
        }
        self.is_spilled = false;
        self.vnodes = VnodeSet::default();
    }
}
