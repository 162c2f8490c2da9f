//! The groups of an updating aggregation: decoded slots in memory, a cache over the state store.
//!
//! A slot is *clean* when the store has what it holds; only clean slots are evicted. A barrier is asked for
//! only when the commit before it is in the store, so what was handed over at one barrier can be read
//! back after the next.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Int64Type};
use hashbrown::HashMap;
use thalweg_dataflow::plan::Aggregate;
use thalweg_dataflow::time::TIMELESS;
use thalweg_dataflow::{ChangeBatch, Watermark};

use super::super::OperatorContext;
use super::spans::Spans;
use crate::aggregate::{Accumulators, Overdrawn};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::expiry::ExpiryIndex;
use crate::state::{KeyInterner, StateStore, StateWrites, TableId, ValueCodec};

/// Rough size of an entry in the store, for deciding when to commit.
const DIRTY_BYTES_PER_SLOT: usize = 128;

/// Tables of an operator: groups, index of expiry, then the sets of values that calls keep.
const FIRST_SET_TABLE: u32 = 2;

pub struct Groups {
    keys: KeyInterner,
    pub accumulators: Accumulators,
    columns: SlotColumns,
    dirty: Vec<u32>,
    /// The one group of a global aggregate has a row even when it is empty, from its first epoch on.
    is_global: bool,
    global_shown: bool,
    expiry: Option<Expiry>,
    table: TableId,
    values: ValueCodec,
    store: StateStore,
    /// Keys deleted since the last commit, with their vnodes, and those whose deletion is on its way to the store.
    deleted: HashMap<Box<[u8]>, u8>,
    deleting: HashMap<Box<[u8]>, u8>,
    /// Something was evicted, so that a key that is not in memory may be in the store.
    may_be_stored: bool,
    memory_budget: usize,
    new: Vec<u32>,
    metrics: Arc<JobMetrics>,
}

struct Expiry {
    index: ExpiryIndex,
    ttl: i64,
}

/// What is known of a slot besides its accumulators.
#[derive(Default)]
struct SlotColumns {
    n_rows: Vec<i64>,
    spans: Spans,
    touched: Vec<bool>,
    dirty: Vec<bool>,
    /// The store has an entry for the key, up to date or not.
    stored: Vec<bool>,
}

impl SlotColumns {
    fn resize(&mut self, n_slots: usize) {
        self.n_rows.resize(n_slots, 0);
        self.spans.resize(n_slots);
        self.touched.resize(n_slots, false);
        self.dirty.resize(n_slots, false);
        self.stored.resize(n_slots, false);
    }

    fn reset(&mut self, slot: usize) {
        self.n_rows[slot] = 0;
        self.spans.reset(slot);
        (self.touched[slot], self.dirty[slot], self.stored[slot]) = (false, false, false);
    }
}

impl Groups {
    pub fn new(aggregate: &Aggregate, context: &OperatorContext) -> Result<Self, RuntimeError> {
        let input = context
            .input_schema
            .as_ref()
            .expect("an aggregate has an input");
        let key_type = |i: usize| context.output_schema.field(i).data_type().clone();
        let key_types: Vec<DataType> = (0..aggregate.keys.len()).map(key_type).collect();
        // Retractions of rows that have expired upstream, or here, are counted and dropped (semantics 5.3).
        let accumulators = Accumulators::new(&aggregate.calls, input)?.with_store(
            &context.store,
            |set| context.table(FIRST_SET_TABLE + set as u32),
            context.memory_bytes / 2,
            Overdrawn::Drop,
        );
        let mut stored = vec![
            Field::new("n_rows", DataType::Int64, false),
            Field::new("last_seen", DataType::Int64, false),
        ];
        stored.extend(accumulators.state_fields());
        let is_global = key_types.is_empty();
        let expiry = aggregate.ttl.filter(|_| !is_global).map(|ttl| Expiry {
            index: ExpiryIndex::new(context.table(1), ttl, context.store.clone()),
            ttl,
        });
        Ok(Self {
            keys: KeyInterner::new(key_types)?,
            accumulators,
            columns: SlotColumns::default(),
            dirty: Vec::new(),
            is_global,
            global_shown: false,
            expiry,
            table: context.table(0),
            values: ValueCodec::new(stored)?,
            store: context.store.clone(),
            deleted: HashMap::new(),
            deleting: HashMap::new(),
            may_be_stored: false,
            memory_budget: context.memory_bytes,
            new: Vec::new(),
            metrics: context.metrics.clone(),
        })
    }

    /// The slots of a batch's keys; state that was evicted is read back.
    pub fn intern(
        &mut self,
        keys: &[ArrayRef],
        n_rows: usize,
        slots: &mut Vec<u32>,
    ) -> Result<(), RuntimeError> {
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        self.keys.intern(keys, n_rows, slots, &mut new)?;
        self.make_room();
        if self.may_be_stored {
            self.load(&new)?;
        }
        self.new = new;
        Ok(())
    }

    fn make_room(&mut self) {
        let n_slots = self.keys.n_slots();
        self.columns.resize(n_slots);
        self.accumulators.resize(n_slots);
    }

    /// Reads what the store has of these slots' keys.
    fn load(&mut self, slots: &[u32]) -> Result<(), RuntimeError> {
        if slots.is_empty() {
            return Ok(());
        }
        let (vnodes, keys) = (self.keys.vnodes(slots)?, self.keys.key_rows(slots)?);
        let is_deleted =
            |key: &[u8]| self.deleted.contains_key(key) || self.deleting.contains_key(key);
        let wanted: Vec<usize> = (0..slots.len())
            .filter(|&i| !is_deleted(keys.row(i)))
            .collect();
        let (mut found, mut rows) = (Vec::new(), Vec::new());
        let lookups = wanted.iter().map(|&i| (vnodes[i], keys.row(i)));
        self.store
            .multi_get(self.table, lookups, |position, entry| {
                if let Some(bytes) = entry {
                    found.push(slots[wanted[position]]);
                    rows.push(bytes.to_vec());
                }
                Ok(())
            })?;
        if found.is_empty() {
            return Ok(());
        }
        let columns = self.values.decode(rows.iter().map(Vec::as_slice))?;
        self.accumulators
            .restore(&found, &self.keys, &columns[2..])?;
        let counts = columns[0].as_primitive::<Int64Type>();
        let seen = columns[1].as_primitive::<Int64Type>();
        for (i, &slot) in found.iter().enumerate() {
            let slot = slot as usize;
            self.columns.n_rows[slot] = counts.value(i);
            self.columns.spans.high[slot] = seen.value(i);
            self.columns.spans.low[slot] = i64::MIN;
            self.columns.stored[slot] = true;
        }
        Ok(())
    }

    pub fn n_slots(&self) -> usize {
        self.keys.n_slots()
    }

    pub fn key_columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(self.keys.key_columns(slots)?)
    }

    /// Event times of the groups: the last seen.
    pub fn times(&self, slots: &[u32]) -> ScalarBuffer<i64> {
        // A global aggregate over no input has a row but no time. What is grouped by that row must not expire
        // for its age: it is as true as before, however far time has come.
        slots
            .iter()
            .map(|&s| self.columns.spans.high[s as usize])
            .map(|t| if t == i64::MIN { TIMELESS } else { t })
            .collect()
    }

    /// Marks a group as touched in this epoch; whether it is the first time.
    pub fn touch(&mut self, slot: u32) -> bool {
        !std::mem::replace(&mut self.columns.touched[slot as usize], true)
    }

    /// Whether the result has a row for this group at the end of the last epoch. Asked before the epoch's rows
    /// are added.
    pub fn is_shown(&self, slot: u32) -> bool {
        if self.is_global {
            self.global_shown
        } else {
            self.columns.n_rows[slot as usize] > 0
        }
    }

    /// Whether the result has a row for this group now.
    pub fn is_present(&self, slot: u32) -> bool {
        self.is_global || self.columns.n_rows[slot as usize] > 0
    }

    /// Whether the group begins in this epoch.
    pub fn is_new(&self, slot: u32) -> bool {
        self.columns.spans.low[slot as usize] != i64::MIN
    }

    /// `low` and `high` of a group; see [`Spans`].
    pub fn span(&self, slot: u32) -> (i64, i64) {
        (
            self.columns.spans.low[slot as usize],
            self.columns.spans.high[slot as usize],
        )
    }

    pub fn spans(&mut self) -> &mut Spans {
        &mut self.columns.spans
    }

    pub fn update(&mut self, slots: &[u32], batch: &ChangeBatch) -> Result<(), RuntimeError> {
        let diffs = batch.diffs().map(|d| d.as_ref());
        let n_rows = &mut self.columns.n_rows;
        match diffs {
            None => slots.iter().for_each(|&s| n_rows[s as usize] += 1),
            Some(diffs) => {
                let rows = slots.iter().zip(diffs);
                rows.for_each(|(&s, d)| n_rows[s as usize] += d);
            }
        }
        slots.iter().for_each(|&slot| self.mark_dirty(slot));
        self.accumulators.update(slots, batch.rows(), diffs)
    }

    /// Adds rows that were gathered elsewhere: row *i* of the state stands for `n_rows[i]` of them.
    pub fn merge(
        &mut self,
        slots: &[u32],
        n_rows: &[i64],
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        for (&slot, n) in slots.iter().zip(n_rows) {
            self.columns.n_rows[slot as usize] += n;
            self.mark_dirty(slot);
        }
        self.accumulators.merge(slots, state)
    }

    /// Empties a group and begins it again; it stays in memory.
    pub fn restart(&mut self, slot: u32, low: i64, high: i64) {
        self.accumulators.reset(&[slot]);
        let i = slot as usize;
        (
            self.columns.n_rows[i],
            self.columns.spans.low[i],
            self.columns.spans.high[i],
        ) = (0, low, high);
        self.mark_dirty(slot);
    }

    fn mark_dirty(&mut self, slot: u32) {
        if !std::mem::replace(&mut self.columns.dirty[slot as usize], true) {
            self.dirty.push(slot);
        }
    }

    /// Groups from which more was taken than they have (rows of theirs had expired) are empty; how many there were.
    pub fn clear_overdrawn(&mut self, touched: &[u32]) -> usize {
        let overdrawn: Vec<u32> = touched
            .iter()
            .copied()
            .filter(|&s| self.columns.n_rows[s as usize] < 0)
            .collect();
        self.accumulators.reset(&overdrawn);
        overdrawn
            .iter()
            .for_each(|&s| self.columns.n_rows[s as usize] = 0);
        overdrawn.len()
    }

    /// Groups that the watermark has left behind (semantics 5.2), read back where they were evicted. The end
    /// of a bounded input expires nothing.
    pub fn expire(
        &mut self,
        watermark: Watermark,
        touched: &[u32],
    ) -> Result<Vec<u32>, RuntimeError> {
        let (Some(expiry), Some(now)) = (&mut self.expiry, watermark.finite()) else {
            return Ok(Vec::new());
        };
        let due = expiry.index.due(now)?;
        let ttl = expiry.ttl;
        let is_expired = |high: i64| high.saturating_add(ttl) < now;
        // Groups of this epoch enter the index only when it ends.
        let born_late =
            |&slot: &u32| self.is_new(slot) && is_expired(self.columns.spans.high[slot as usize]);
        let mut expired: Vec<u32> = touched.iter().copied().filter(born_late).collect();
        if due.is_empty() {
            return Ok(expired);
        }
        // A key that began anew is in the index once for each of its beginnings.
        let mut seen: HashSet<u32> = expired.iter().copied().collect();
        let slots = self.recall(&due)?;
        let mut alive = Vec::new();
        for (key, slot) in due.iter().zip(slots).filter(|(_, slot)| seen.insert(*slot)) {
            let high = self.columns.spans.high[slot as usize];
            match high != i64::MIN {
                true if is_expired(high) => expired.push(slot),
                true => alive.push((key, high)),
                // The group emptied meanwhile: nothing to expire, and nothing to keep.
                false => self.release(&[slot])?,
            }
        }
        if let Some(expiry) = &mut self.expiry {
            for (key, high) in alive {
                expiry.index.schedule(key.0, &key.1, high);
            }
        }
        Ok(expired)
    }

    /// Slots of keys given as bytes.
    fn recall(&mut self, keys: &[(u8, Vec<u8>)]) -> Result<Vec<u32>, RuntimeError> {
        let columns = self
            .keys
            .codec()
            .decode(keys.iter().map(|(_, key)| key.as_slice()))?;
        let mut slots = Vec::with_capacity(keys.len());
        self.intern(&columns, keys.len(), &mut slots)?;
        Ok(slots)
    }

    /// Expired groups have no row now; they are given up when the epoch ends.
    pub fn drop_expired(&mut self, slots: &[u32]) {
        self.accumulators.reset(slots);
        for &slot in slots {
            self.columns.n_rows[slot as usize] = 0;
            self.mark_dirty(slot);
        }
    }

    /// Ends the epoch: empty groups are given up, new ones enter the index of expiry, and what memory does
    /// not hold is evicted.
    pub fn end_epoch(&mut self, touched: &[u32], is_global: bool) -> Result<(), RuntimeError> {
        self.global_shown |= is_global;
        let (mut empty, mut begun) = (Vec::new(), Vec::new());
        for &slot in touched {
            let i = slot as usize;
            self.columns.touched[i] = false;
            if self.columns.n_rows[i] == 0 && !is_global {
                empty.push(slot);
            } else if self.columns.spans.low[i] != i64::MIN {
                self.columns.spans.low[i] = i64::MIN;
                begun.push(slot);
            }
        }
        if let Some(expiry) = self.expiry.as_mut().filter(|_| !begun.is_empty()) {
            let (vnodes, keys) = (self.keys.vnodes(&begun)?, self.keys.key_rows(&begun)?);
            for (i, &slot) in begun.iter().enumerate() {
                expiry.index.schedule(
                    vnodes[i],
                    keys.row(i),
                    self.columns.spans.high[slot as usize],
                );
            }
        }
        self.release(&empty)?;
        self.deleting.clear();
        self.evict()
    }

    /// Applies the epoch's changes to values that are kept; how many took away what was not there.
    pub fn settle(&mut self) -> Result<usize, RuntimeError> {
        self.accumulators.settle()
    }

    /// Gives slots up; their entries are deleted from the store.
    fn release(&mut self, slots: &[u32]) -> Result<(), RuntimeError> {
        let is_stored = |slot: &u32| self.columns.stored[*slot as usize];
        let stored: Vec<u32> = slots.iter().copied().filter(is_stored).collect();
        if !stored.is_empty() {
            let (vnodes, keys) = (self.keys.vnodes(&stored)?, self.keys.key_rows(&stored)?);
            self.deleted.extend(
                keys.iter()
                    .zip(vnodes)
                    .map(|(key, vnode)| (Box::from(key), vnode)),
            );
        }
        self.accumulators.reset(slots);
        self.free(slots);
        Ok(())
    }

    fn free(&mut self, slots: &[u32]) {
        slots.iter().for_each(|&s| self.columns.reset(s as usize));
        self.keys.remove(slots);
    }

    /// Drops decoded slots that the store has, when there are too many of them.
    fn evict(&mut self) -> Result<(), RuntimeError> {
        if self.live_bytes() <= self.memory_budget {
            return Ok(());
        }
        let clean: Vec<u32> = self
            .keys
            .taken_slots()
            .into_iter()
            .filter(|&s| {
                self.columns.stored[s as usize]
                    && !self.columns.dirty[s as usize]
                    && !self.is_global
            })
            .collect();
        if clean.len() < self.keys.n_slots() / 16 {
            return Ok(());
        }
        self.may_be_stored = true;
        JobMetrics::add(&self.metrics.evicted_keys, clean.len());
        self.accumulators.forget(&clean);
        self.free(&clean);
        Ok(())
    }

    pub fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        for (key, vnode) in &self.deleted {
            writes.delete(self.table, *vnode, key);
        }
        std::mem::swap(&mut self.deleting, &mut self.deleted);
        self.deleted.clear();
        let dirty: Vec<u32> = std::mem::take(&mut self.dirty)
            .into_iter()
            .filter(|&s| self.columns.dirty[s as usize])
            .collect();
        for slots in dirty.chunks(8192) {
            let counts = slots
                .iter()
                .map(|&s| self.columns.n_rows[s as usize])
                .collect();
            let seen = slots
                .iter()
                .map(|&s| self.columns.spans.high[s as usize])
                .collect();
            let mut columns = vec![super::count_column(counts), super::count_column(seen)];
            columns.extend(self.accumulators.state(slots)?);
            let encoded = self.values.encode(&columns, slots.len())?;
            let (vnodes, keys) = (self.keys.vnodes(slots)?, self.keys.key_rows(slots)?);
            for (i, &slot) in slots.iter().enumerate() {
                writes.put(self.table, vnodes[i], keys.row(i), encoded.row(i));
                self.deleting.remove(keys.row(i));
                self.columns.dirty[slot as usize] = false;
                self.columns.stored[slot as usize] = true;
            }
        }
        if let Some(expiry) = &mut self.expiry {
            expiry.index.write_changes(writes);
        }
        self.accumulators.write_changes(&self.keys, writes)
    }

    /// Bytes that the keys in memory account for; what evicted ones have left free is used again.
    fn live_bytes(&self) -> usize {
        self.memory_bytes() / self.keys.n_slots().max(1) * self.keys.len()
    }

    pub fn dirty_bytes(&self) -> usize {
        self.dirty.len() * DIRTY_BYTES_PER_SLOT + self.accumulators.dirty_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes()
            + self.accumulators.memory_bytes()
            + self.columns.n_rows.capacity() * 27
            + self.expiry.as_ref().map_or(0, |e| e.index.memory_bytes())
    }
}
