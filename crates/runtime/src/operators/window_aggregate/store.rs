//! Panes beyond memory: makes them, writes them to the state store under `(table, vnode of the key, end and start of
//! the pane, key)`, drops from memory what is there, and deletes what has closed.
//!
//! A barrier is asked for only when the commit before it is in the store, so what was handed over at one
//! barrier can be read back, and dropped, after the next.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use thalweg_dataflow::plan::AggregateCall;

use super::super::OperatorContext;
use super::super::windows::Span;
use super::pane::Pane;
use crate::aggregate::Accumulators;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::{
    KeyCodec, KeyInterner, KeyRows, StateStore, StateWrites, TableId, ValueCodec, VnodeSet, ordered,
};

/// Groups to encode, or to look up, at once.
const CHUNK: usize = 8192;

/// Cleared panes to keep.
const MAX_SPARE: usize = 64;

/// Entries of a closed pane above which ranges are deleted, not keys: a range costs later reads more.
const MIN_ENTRIES_FOR_RANGES: usize = 1 << 16;

pub struct PaneStore {
    key_types: Vec<DataType>,
    calls: Vec<AggregateCall>,
    input: SchemaRef,
    spare: Vec<Pane>,
    table: TableId,
    pub values: ValueCodec,
    pub keys: KeyCodec,
    pub store: StateStore,
    /// Entries of panes that have closed since the last commit.
    closed: StateWrites,
    closed_ranges: Option<ClosedRange>,
    /// Panes that have groups are retracted from: what the store has of a key must be known at once.
    updating: bool,
    memory_budget: usize,
    metrics: Arc<JobMetrics>,
}

/// Panes that have closed since the last commit, of which no key needs to be named: they close in their order, so
/// everything between two of them has closed as well.
struct ClosedRange {
    first: Span,
    last: Span,
    vnodes: VnodeSet,
}

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
            keys: KeyCodec::new(key_types.clone())?,
            key_types,
            calls: calls.to_vec(),
            input: input.clone(),
            spare: Vec::new(),
            table: context.table(0),
            values: ValueCodec::new(stored)?,
            store: context.store.clone(),
            closed: StateWrites::default(),
            closed_ranges: None,
            updating: context.updating_input,
            memory_budget: context.memory_bytes,
            metrics: context.metrics.clone(),
        })
    }

    /// The columns of a partial aggregate: those of `fixed`, then the state of every call.
    pub fn partial_schema(&self, fixed: &SchemaRef) -> Result<SchemaRef, RuntimeError> {
        let state = self.accumulators()?.state_fields();
        let fixed = fixed.fields().iter().cloned();
        let fields: Vec<_> = fixed.chain(state.into_iter().map(Arc::new)).collect();
        Ok(Arc::new(Schema::new(fields)))
    }

    pub fn accumulators(&self) -> Result<Accumulators, RuntimeError> {
        Accumulators::new(&self.calls, &self.input)
    }

    pub fn take(&mut self) -> Result<Pane, RuntimeError> {
        match self.spare.pop() {
            Some(pane) => Ok(pane),
            None => self.make(),
        }
    }

    fn make(&self) -> Result<Pane, RuntimeError> {
        let keys = KeyInterner::new(self.key_types.iter().cloned())?;
        Ok(Pane::new(keys, self.accumulators()?))
    }

    pub fn give_back(&mut self, mut pane: Pane) {
        // What is kept for reuse is not counted, so it must not be much.
        let is_small = pane.memory_bytes() <= self.memory_budget / MAX_SPARE;
        if self.spare.len() < MAX_SPARE && (is_small || self.spare.is_empty()) {
            pane.clear();
            self.spare.push(pane);
        }
    }

    /// Looks up what the store has of keys that are new in memory, where a retraction could miss it.
    pub fn read_for_update(&self, span: Span, pane: &mut Pane) -> Result<(), RuntimeError> {
        if self.updating {
            self.read_unread(span, pane)?;
        }
        Ok(())
    }

    /// Looks up what the store has of keys that are new in memory.
    fn read_unread(&self, span: Span, pane: &mut Pane) -> Result<(), RuntimeError> {
        let unread = std::mem::take(&mut pane.unread);
        for slots in unread.chunks(CHUNK) {
            let entries = EntryKeys::new(span, pane, slots)?;
            let wanted: Vec<usize> = (0..slots.len())
                .filter(|&i| pane.vnodes.contains(entries.vnodes[i]))
                .collect();
            let (mut found, mut rows) = (Vec::new(), KeyRows::default());
            let lookups = wanted
                .iter()
                .map(|&i| (entries.vnodes[i], entries.keys.row(i)));
            self.store
                .multi_get(self.table, lookups, |position, entry| {
                    if let Some(bytes) = entry {
                        found.push(slots[wanted[position]]);
                        rows.push(bytes);
                    }
                    Ok(())
                })?;
            if !found.is_empty() {
                let columns = self.values.decode(rows.iter())?;
                let counts = columns[0].as_primitive::<Int64Type>();
                pane.add_stored(&found, counts.values(), &columns[1..])?;
            }
            slots
                .iter()
                .for_each(|&s| pane.is_unread[s as usize] = false);
        }
        Ok(())
    }

    /// Drops groups that the store has, whole panes before parts of one, those first that were left alone for
    /// longest, and of these the ones that close last.
    pub fn evict(&mut self, open: &mut BTreeMap<Span, Pane>) -> Result<(), RuntimeError> {
        let mut live: usize = open.values().map(Pane::live_bytes).sum();
        if live <= self.memory_budget {
            return Ok(());
        }
        let mut coldest: Vec<(u64, std::cmp::Reverse<Span>)> = open
            .iter()
            .filter(|(_, pane)| !pane.keys.is_empty())
            .map(|(&span, pane)| (pane.last_touched, std::cmp::Reverse(span)))
            .collect();
        coldest.sort_unstable();
        for whole in [true, false] {
            for (_, std::cmp::Reverse(span)) in &coldest {
                if live <= self.memory_budget {
                    return Ok(());
                }
                let Some(pane) = open.get_mut(span).filter(|p| p.is_clean() == whole) else {
                    continue;
                };
                let before = pane.live_bytes();
                let n_dropped = match whole {
                    true => self.drop_whole(pane)?,
                    false => drop_clean(pane),
                };
                JobMetrics::add(&self.metrics.evicted_keys, n_dropped);
                live = live.saturating_sub(before.saturating_sub(pane.live_bytes()));
            }
        }
        Ok(())
    }

    fn drop_whole(&self, pane: &mut Pane) -> Result<usize, RuntimeError> {
        let n_dropped = pane.keys.len();
        pane.drop_all(self.make()?);
        Ok(n_dropped)
    }

    /// The pane has closed: what the store has of it is deleted with the next commit.
    pub fn forget(&mut self, span: Span, pane: &mut Pane) -> Result<(), RuntimeError> {
        let stored = std::mem::take(&mut pane.stored);
        if pane.is_spilled || stored.len() > MIN_ENTRIES_FOR_RANGES {
            let range = self.closed_ranges.get_or_insert(ClosedRange {
                first: span,
                last: span,
                vnodes: VnodeSet::default(),
            });
            range.last = range.last.max(span);
            range.first = range.first.min(span);
            range.vnodes.extend(&pane.vnodes);
            return Ok(());
        }
        let entries = EntryKeys::new(span, pane, &stored)?;
        for i in 0..stored.len() {
            self.closed
                .delete(self.table, entries.vnodes[i], entries.keys.row(i));
        }
        Ok(())
    }

    pub fn write_changes(
        &mut self,
        open: &mut BTreeMap<Span, Pane>,
        writes: &mut StateWrites,
    ) -> Result<(), RuntimeError> {
        if let Some(range) = self.closed_ranges.take() {
            let (first, last) = (prefix(range.first), prefix(range.last));
            for vnode in range.vnodes.iter() {
                writes.delete_prefixes(self.table, vnode, &first, &last);
            }
        }
        writes.append(&std::mem::take(&mut self.closed));
        for (span, pane) in open {
            self.read_unread(*span, pane)?;
            let dirty = std::mem::take(&mut pane.dirty);
            for slots in dirty.chunks(CHUNK) {
                self.write_slots(*span, pane, slots, writes)?;
            }
        }
        Ok(())
    }

    fn write_slots(
        &self,
        span: Span,
        pane: &mut Pane,
        slots: &[u32],
        writes: &mut StateWrites,
    ) -> Result<(), RuntimeError> {
        let mut columns: Vec<ArrayRef> = vec![Arc::new(Int64Array::new(pane.counts(slots), None))];
        columns.extend(pane.state(slots)?);
        let encoded = self.values.encode(&columns, slots.len())?;
        let entries = EntryKeys::new(span, pane, slots)?;
        for (i, &slot) in slots.iter().enumerate() {
            let vnode = entries.vnodes[i];
            writes.put(self.table, vnode, entries.keys.row(i), encoded.row(i));
            pane.vnodes.insert(vnode);
            pane.is_dirty[slot as usize] = false;
            if !pane.is_spilled && !std::mem::replace(&mut pane.is_stored[slot as usize], true) {
                pane.stored.push(slot);
            }
        }
        Ok(())
    }

    pub fn table(&self) -> TableId {
        self.table
    }
}

/// Drops the groups of a pane that the store has, if that is worth it.
fn drop_clean(pane: &mut Pane) -> usize {
    let mut clean = pane.keys.taken_slots();
    clean.retain(|&s| !pane.is_dirty[s as usize]);
    if clean.len() < pane.keys.n_slots() / 16 {
        return 0;
    }
    pane.drop_groups(&clean);
    clean.len()
}

/// What the keys of a pane begin with in the store: end and start, so that what closes first comes first.
pub fn prefix(span: Span) -> [u8; 16] {
    let mut prefix = [0; 16];
    prefix[..8].copy_from_slice(&ordered(span.end));
    prefix[8..].copy_from_slice(&ordered(span.start));
    prefix
}

/// Where groups of a pane stand in the store.
struct EntryKeys {
    vnodes: Vec<u8>,
    keys: KeyRows,
}

impl EntryKeys {
    fn new(span: Span, pane: &Pane, slots: &[u32]) -> Result<Self, RuntimeError> {
        Ok(Self {
            vnodes: pane.keys.vnodes(slots)?,
            keys: pane.keys.key_rows(slots)?.behind(&prefix(span)),
        })
    }
}
