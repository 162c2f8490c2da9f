//! Sessions in the state store, one entry a key, and the index of when they close.
//!
//! The entry of a key is the deadline under which the index has it (8 bytes), then for each session, in the order of
//! time, the length of its row as a varint and the row: first and last row's event time, and the state of all calls.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type};

use super::super::OperatorContext;
use super::sessions::{NONE, Sessions, UNSCHEDULED};
use crate::error::RuntimeError;
use crate::state::expiry::{Due, ExpiryIndex};
use crate::state::values::{put_varint, read_varint};
use crate::state::{KeyError, StateStore, StateWrites, TableId, ValueCodec};

/// Keys to encode at once.
const CHUNK: usize = 8192;

pub struct Stored {
    table: TableId,
    values: ValueCodec,
    store: StateStore,
    pub index: ExpiryIndex,
    /// Keys without sessions whose deletion was handed over with the last commit.
    deleting: Vec<u32>,
}

impl Stored {
    /// `state`: the state columns of all calls.
    pub fn new(
        gap: i64,
        state: Vec<Field>,
        context: &OperatorContext,
    ) -> Result<Self, RuntimeError> {
        let mut fields = vec![
            Field::new("start", DataType::Int64, false),
            Field::new("last", DataType::Int64, false),
        ];
        fields.extend(state);
        Ok(Self {
            table: context.table(0),
            values: ValueCodec::new(fields)?,
            store: context.store.clone(),
            // A session ends `gap` after its last row, as a key expires its ttl after it was last seen.
            index: ExpiryIndex::new(context.table(1), gap, context.store.clone()),
            deleting: Vec::new(),
        })
    }

    pub fn index_write_bytes(&self) -> usize {
        self.index.write_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes()
    }
}

impl Sessions {
    /// Reads what the store has of keys that are new in memory.
    pub(super) fn read(&mut self, keys: &[u32]) -> Result<(), RuntimeError> {
        if keys.is_empty() {
            return Ok(());
        }
        let (vnodes, key_rows) = (self.keys.vnodes(keys)?, self.keys.key_rows(keys)?);
        let lookups = vnodes.iter().copied().zip(key_rows.iter());
        let mut entries: Vec<(u32, Vec<u8>)> = Vec::new();
        self.stored
            .store
            .multi_get(self.stored.table, lookups, |position, entry| {
                entries.extend(entry.map(|bytes| (keys[position], bytes.to_vec())));
                Ok(())
            })?;
        let (mut owners, mut rows) = (Vec::new(), Vec::new());
        for (key, entry) in &entries {
            let (deadline, sessions) = entry
                .split_first_chunk()
                .ok_or_else(|| corrupt("an entry that ends early"))?;
            let columns = &mut self.key_columns;
            columns.scheduled[*key as usize] = i64::from_be_bytes(*deadline);
            columns.stored[*key as usize] = true;
            let mut rest = sessions;
            while !rest.is_empty() {
                rows.push(read_row(&mut rest)?);
                owners.push(*key);
            }
        }
        if owners.is_empty() {
            return Ok(());
        }
        let columns = self.stored.values.decode(rows)?;
        self.open_again(&owners, &columns)
    }

    /// Opens sessions that were read, which stand by key and in the order of time.
    fn open_again(&mut self, owners: &[u32], columns: &[ArrayRef]) -> Result<(), RuntimeError> {
        let (starts, lasts) = (
            columns[0].as_primitive::<Int64Type>().values(),
            columns[1].as_primitive::<Int64Type>().values(),
        );
        let mut sessions = vec![0; owners.len()];
        // From the last one on, so that each finds the one behind it.
        for i in (0..owners.len()).rev() {
            let key = owners[i] as usize;
            let first = &mut self.key_columns.first[key];
            sessions[i] = self.open.open(starts[i], lasts[i], *first);
            if *first == NONE {
                self.key_columns.last[key] = sessions[i];
            }
            *first = sessions[i];
        }
        self.resize_accumulators();
        self.accumulators.merge(&sessions, &columns[2..])
    }

    /// Puts keys into the index that are not there, or later than their earliest session ends.
    pub(super) fn schedule(&mut self, keys: &[u32]) -> Result<(), RuntimeError> {
        // So that every deadline is below that of a key that has none.
        let latest = UNSCHEDULED - 1 - self.gap;
        let due = |key: &u32| {
            let first = self.key_columns.first[*key as usize];
            (first != NONE).then(|| self.open.last[first as usize].min(latest))
        };
        let is_early = |key: &&u32| {
            due(key).is_some_and(|last| {
                last.saturating_add(self.gap) < self.key_columns.scheduled[**key as usize]
            })
        };
        let early: Vec<u32> = keys.iter().filter(is_early).copied().collect();
        if early.is_empty() {
            return Ok(());
        }
        let lasts: Vec<i64> = early.iter().filter_map(due).collect();
        let (vnodes, rows) = (self.keys.vnodes(&early)?, self.keys.key_rows(&early)?);
        for (i, &key) in early.iter().enumerate() {
            self.stored.index.schedule(vnodes[i], rows.row(i), lasts[i]);
            self.key_columns.scheduled[key as usize] = lasts[i].saturating_add(self.gap);
            self.mark_dirty(key);
        }
        Ok(())
    }

    /// The keys of entries that have come due. An entry of a key that has one of an earlier deadline is of no use.
    pub(super) fn recall(&mut self, due: &[Due]) -> Result<Vec<u32>, RuntimeError> {
        let codec = self.keys.codec();
        let columns = codec.decode(due.iter().map(|d| d.key.as_slice()))?;
        let mut slots = Vec::with_capacity(due.len());
        self.intern(&columns, due.len(), &mut slots)?;
        let mut keys = Vec::with_capacity(due.len());
        for (entry, &key) in due.iter().zip(&slots) {
            let scheduled = &mut self.key_columns.scheduled[key as usize];
            if *scheduled != entry.deadline {
                if *scheduled != UNSCHEDULED {
                    self.stored.index.restore(entry, *scheduled);
                }
                continue;
            }
            *scheduled = UNSCHEDULED;
            keys.push(key);
        }
        // What was read of keys without sessions is nothing.
        slots.sort_unstable();
        slots.dedup();
        self.release_empty(&slots);
        let columns = &self.key_columns;
        keys.retain(|&key| columns.first[key as usize] != NONE);
        Ok(keys)
    }

    pub fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        let mut dirty = std::mem::take(&mut self.dirty);
        let columns = &mut self.key_columns;
        // A slot given up and taken again stands there twice.
        dirty.retain(|&key| std::mem::take(&mut columns.dirty[key as usize]));
        for keys in dirty.chunks(CHUNK) {
            self.write_keys(keys, writes)?;
        }
        self.stored.index.write_changes(writes);
        Ok(())
    }

    fn write_keys(&mut self, keys: &[u32], writes: &mut StateWrites) -> Result<(), RuntimeError> {
        let sessions: Vec<u32> = keys.iter().flat_map(|&key| self.sessions_of(key)).collect();
        let times = |column: &[i64]| -> ArrayRef {
            Arc::new(Int64Array::from_iter_values(
                sessions.iter().map(|&s| column[s as usize]),
            ))
        };
        let mut columns = vec![times(&self.open.start), times(&self.open.last)];
        columns.extend(self.accumulators.state(&sessions)?);
        let encoded = self.stored.values.encode(&columns, sessions.len())?;
        let mut encoded = encoded.iter();
        let (vnodes, rows) = (self.keys.vnodes(keys)?, self.keys.key_rows(keys)?);
        let mut entry = Vec::new();
        for (i, &key) in keys.iter().enumerate() {
            let n_sessions = self.sessions_of(key).count();
            if n_sessions == 0 {
                writes.delete(self.stored.table, vnodes[i], rows.row(i));
                self.stored.deleting.push(key);
                continue;
            }
            self.key_columns.stored[key as usize] = true;
            entry.clear();
            entry.extend(self.key_columns.scheduled[key as usize].to_be_bytes());
            for row in encoded.by_ref().take(n_sessions) {
                put_varint(&mut entry, row.len());
                entry.extend_from_slice(row);
            }
            writes.put(self.stored.table, vnodes[i], rows.row(i), &entry);
        }
        Ok(())
    }

    /// Gives up the keys whose deletion is in the store by now, unless they have come again.
    pub(super) fn release_deleted(&mut self) {
        let deleted = std::mem::take(&mut self.stored.deleting);
        for &key in &deleted {
            self.key_columns.stored[key as usize] = false;
        }
        self.release_empty(&deleted);
    }

    pub(super) fn resize_accumulators(&mut self) {
        self.accumulators.resize(self.open.start.len());
    }
}

fn read_row<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], RuntimeError> {
    let len = read_varint(rest).map_err(|e: KeyError| corrupt(&e.to_string()))?;
    let (row, after) = rest
        .split_at_checked(len)
        .ok_or_else(|| corrupt("a session that ends early"))?;
    *rest = after;
    Ok(row)
}

fn corrupt(message: &str) -> RuntimeError {
    RuntimeError::StateCorrupt {
        table: "sessions".into(),
        message: message.into(),
    }
}
