//! The groups of one pane of a windowed aggregation, and the store of panes.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::ScalarBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::plan::AggregateCall;

use super::OperatorContext;
use super::windows::Span;
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::state::{KeyInterner, KeyRows, StateWrites, TableId, ValueCodec, ordered};

/// Groups by key, addressed by slot: their accumulators and how many rows each has.
pub struct Pane {
    keys: KeyInterner,
    accumulators: Accumulators,
    n_rows: Vec<i64>,
    /// Slots changed since they were last written, and whether each is listed.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    /// Slots that stand in the state store.
    stored: Vec<u32>,
    is_stored: Vec<bool>,
    slots: Vec<u32>,
    new: Vec<u32>,
}

/// Rough size of a group's entry in the store, for deciding when to commit.
const DIRTY_BYTES_PER_SLOT: usize = 96;

impl Pane {
    /// Adds rows; one column per key.
    pub fn update(&mut self, keys: &[ArrayRef], batch: &ChangeBatch) -> Result<(), RuntimeError> {
        self.intern(keys, batch.n_rows())?;
        let diffs = batch.diffs().map(|d| d.as_ref());
        for (i, &slot) in self.slots.iter().enumerate() {
            self.n_rows[slot as usize] += diffs.map_or(1, |d| d[i]);
        }
        self.accumulators.update(&self.slots, batch.rows(), diffs)
    }

    /// Adds partial aggregates: keys, rows they stand for, state columns.
    pub fn merge(
        &mut self,
        keys: &[ArrayRef],
        counts: &ScalarBuffer<i64>,
        state: &[ArrayRef],
    ) -> Result<(), RuntimeError> {
        self.intern(keys, counts.len())?;
        for (&slot, &n) in self.slots.iter().zip(counts.iter()) {
            self.n_rows[slot as usize] += n;
        }
        self.accumulators.merge(&self.slots, state)
    }

    fn intern(&mut self, keys: &[ArrayRef], n_rows: usize) -> Result<(), RuntimeError> {
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
        Ok(())
    }

    pub fn all_slots(&self) -> Vec<u32> {
        (0..self.keys.n_slots() as u32).collect()
    }

    /// Groups that have rows left, where rows are also taken away.
    pub fn present_slots(&self) -> Vec<u32> {
        (0..self.keys.n_slots() as u32)
            .filter(|&s| self.n_rows[s as usize] > 0)
            .collect()
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

    pub fn dirty_bytes(&self) -> usize {
        self.dirty.len() * DIRTY_BYTES_PER_SLOT
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.accumulators.memory_bytes() + self.n_rows.capacity() * 10
    }

    fn clear(&mut self) {
        let all = self.all_slots();
        self.accumulators.reset(&all);
        self.keys.clear();
        for column in [&mut self.dirty, &mut self.stored] {
            column.clear();
        }
        self.n_rows.clear();
        self.is_dirty.clear();
        self.is_stored.clear();
    }
}

/// Makes panes, keeps cleared ones for reuse, and writes them to the state store under
/// `(table, vnode of the key, end and start of the pane, key)`.
pub struct PaneStore {
    key_types: Vec<DataType>,
    calls: Vec<AggregateCall>,
    input: SchemaRef,
    spare: Vec<Pane>,
    table: TableId,
    values: ValueCodec,
    /// Entries of panes that have closed since the last commit.
    closed: StateWrites,
}

/// Cleared panes to keep.
const MAX_SPARE: usize = 64;

impl PaneStore {
    /// `input`: what the calls' arguments refer to, also where they merge partial aggregates of it.
    pub fn new(
        key_types: Vec<DataType>,
        calls: &[AggregateCall],
        input: &SchemaRef,
        context: &OperatorContext,
    ) -> Result<Self, RuntimeError> {
        let accumulators = Accumulators::new(calls, input)?;
        let mut stored = vec![Field::new("n_rows", DataType::Int64, false)];
        stored.extend(accumulators.state_fields());
        Ok(Self {
            key_types,
            calls: calls.to_vec(),
            input: input.clone(),
            spare: Vec::new(),
            table: context.table(0),
            values: ValueCodec::new(stored)?,
            closed: StateWrites::default(),
        })
    }

    /// The columns of a partial aggregate: those of `fixed`, then the state of every call.
    pub fn partial_schema(&self, fixed: &SchemaRef) -> Result<SchemaRef, RuntimeError> {
        let state = Accumulators::new(&self.calls, &self.input)?.state_fields();
        let fixed = fixed.fields().iter().cloned();
        let fields: Vec<_> = fixed.chain(state.into_iter().map(Arc::new)).collect();
        Ok(Arc::new(Schema::new(fields)))
    }

    pub fn take(&mut self) -> Result<Pane, RuntimeError> {
        if let Some(pane) = self.spare.pop() {
            return Ok(pane);
        }
        Ok(Pane {
            keys: KeyInterner::new(self.key_types.iter().cloned())?,
            accumulators: Accumulators::new(&self.calls, &self.input)?,
            n_rows: Vec::new(),
            dirty: Vec::new(),
            is_dirty: Vec::new(),
            stored: Vec::new(),
            is_stored: Vec::new(),
            slots: Vec::new(),
            new: Vec::new(),
        })
    }

    pub fn give_back(&mut self, mut pane: Pane) {
        if self.spare.len() < MAX_SPARE {
            pane.clear();
            self.spare.push(pane);
        }
    }

    /// The pane has closed: what the store has of it is deleted with the next commit.
    pub fn forget(&mut self, span: Span, pane: &mut Pane) -> Result<(), RuntimeError> {
        let stored = std::mem::take(&mut pane.stored);
        let entries = EntryKeys::new(span, pane, &stored)?;
        for i in 0..stored.len() {
            let (vnode, key) = entries.get(i);
            self.closed.delete(self.table, vnode, &key);
        }
        Ok(())
    }

    pub fn write_changes(
        &mut self,
        open: &mut BTreeMap<Span, Pane>,
        writes: &mut StateWrites,
    ) -> Result<(), RuntimeError> {
        writes.append(&std::mem::take(&mut self.closed));
        for (span, pane) in open {
            let dirty = std::mem::take(&mut pane.dirty);
            let mut columns: Vec<ArrayRef> = vec![Arc::new(arrow::array::Int64Array::new(
                pane.counts(&dirty),
                None,
            ))];
            columns.extend(pane.state(&dirty)?);
            let encoded = self.values.encode(&columns, dirty.len())?;
            let entries = EntryKeys::new(*span, pane, &dirty)?;
            for (i, &slot) in dirty.iter().enumerate() {
                let (vnode, key) = entries.get(i);
                writes.put(self.table, vnode, &key, encoded.row(i));
                pane.is_dirty[slot as usize] = false;
                if !std::mem::replace(&mut pane.is_stored[slot as usize], true) {
                    pane.stored.push(slot);
                }
            }
        }
        Ok(())
    }
}

/// Where the groups of a pane stand in the store: end and start of the pane, so that what closes first comes
/// first, then the key.
struct EntryKeys {
    vnodes: Vec<u8>,
    keys: KeyRows,
    prefix: [u8; 16],
}

impl EntryKeys {
    fn new(span: Span, pane: &Pane, slots: &[u32]) -> Result<Self, RuntimeError> {
        let mut prefix = [0; 16];
        prefix[..8].copy_from_slice(&ordered(span.end));
        prefix[8..].copy_from_slice(&ordered(span.start));
        Ok(Self {
            vnodes: pane.keys.vnodes(slots)?,
            keys: pane.keys.key_rows(slots)?,
            prefix,
        })
    }

    fn get(&self, i: usize) -> (u8, Vec<u8>) {
        (
            self.vnodes[i],
            [&self.prefix[..], self.keys.row(i)].concat(),
        )
    }
}
