//! Values in the store: looking unknown ones up, and writing what changed.
//!
//! A commit is written at a barrier, and is in the store by the next one (the coordinator sees to that).
//! So what was handed over stays in memory until then: clean pairs are evicted only just before the
//! next hand-over.

use crate::error::RuntimeError;
use crate::state::values::{put_varint, read_varint};
use crate::state::{KeyInterner, StateStore, StateWrites, TableId};

use super::{Multiset, pairs};

pub(super) struct Stored {
    pub(super) store: StateStore,
    pub(super) table: TableId,
    memory_budget: usize,
    /// Pairs that differ from what the store has.
    pub(super) dirty: Vec<u32>,
    /// Pairs of incomplete groups whose deletion is on its way to the store, which they overrule until
    /// it has arrived.
    pub(super) vanishing: Vec<u32>,
    /// Vnode and key bytes of groups of which the store may have something that is to go.
    pub(super) deleted: Vec<Box<[u8]>>,
}

/// A group with more values than this is deleted as a range.
const MAX_SINGLE_DELETES: usize = 4096;

impl Stored {
    pub(super) fn new(store: StateStore, table: TableId, memory_budget: usize) -> Self {
        let (dirty, vanishing, deleted) = Default::default();
        Self {
            store,
            table,
            memory_budget,
            dirty,
            vanishing,
            deleted,
        }
    }

    pub(super) fn dirty_bytes(&self, value_bytes: usize) -> usize {
        let deleted: usize = self.deleted.iter().map(|key| key.len() + 16).sum();
        self.dirty.len() * (value_bytes + 32) + deleted
    }

    fn write_deleted(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        for key in std::mem::take(&mut self.deleted) {
            let (vnode, key) = (key[0], &key[1..]);
            let mut scan = self.store.scan(self.table, vnode, key);
            let mut found = Vec::new();
            while let Some(entry) = scan.advance()? {
                found.push(entry.key.to_vec());
                if found.len() > MAX_SINGLE_DELETES {
                    break;
                }
            }
            match found.len() > MAX_SINGLE_DELETES {
                true => writes.delete_prefix(self.table, vnode, key),
                false => found
                    .iter()
                    .for_each(|key| writes.delete(self.table, vnode, key)),
            }
        }
        Ok(())
    }
}

pub(super) fn corrupt(message: impl Into<String>) -> RuntimeError {
    RuntimeError::StateCorrupt {
        table: "multiset".into(),
        message: message.into(),
    }
}

/// The count in an entry's value.
pub(super) fn read_count(mut bytes: &[u8]) -> Result<i64, RuntimeError> {
    let count = read_varint(&mut bytes).map_err(|e| corrupt(e.to_string()))?;
    i64::try_from(count).map_err(|_| corrupt("a count out of range"))
}

impl Multiset {
    /// Finds out how often incomplete groups have the values that changed.
    pub(super) fn look_up_unknown(&mut self) -> Result<(), RuntimeError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let is_unknown = |id: &u32| {
            let pair = self.pairs.get(*id);
            !pair.is_known && !pair.is_dead()
        };
        let unknown: Vec<u32> = self.changed.iter().copied().filter(is_unknown).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let value_ids: Vec<u32> = unknown.iter().map(|&id| self.pairs.get(id).value).collect();
        let values = self.values.key_rows(&value_ids)?;
        let mut keys = Vec::with_capacity(unknown.len());
        for (&id, value) in unknown.iter().zip(values.iter()) {
            let group = &self.groups[self.pairs.get(id).slot as usize];
            let key = group
                .key
                .as_ref()
                .expect("an incomplete group is in the store");
            keys.push((key[0], [&key[1..], value].concat()));
        }
        let pairs = &mut self.pairs;
        let keys = keys.iter().map(|(vnode, key)| (*vnode, key.as_slice()));
        store.store.multi_get(store.table, keys, |i, value| {
            let pair = pairs.get_mut(unknown[i]);
            pair.count = value.map_or(Ok(0), read_count)?;
            pair.is_known = true;
            Ok(())
        })
    }

    /// Notes that the store has these groups' values. Called for new slots of groups that were read back.
    pub(in crate::aggregate) fn restore(
        &mut self,
        slots: &[u32],
        keys: &KeyInterner,
    ) -> Result<(), RuntimeError> {
        let (vnodes, rows) = (keys.vnodes(slots)?, keys.key_rows(slots)?);
        for (i, &slot) in slots.iter().enumerate() {
            let group = &mut self.groups[slot as usize];
            debug_assert_eq!(group.first, pairs::NONE);
            group.is_complete = false;
            group.key = Some([&[vnodes[i]], rows.row(i)].concat().into());
        }
        Ok(())
    }

    /// Hands over what changed since the last commit. Nothing is waiting to be settled.
    pub(in crate::aggregate) fn write_changes(
        &mut self,
        keys: &KeyInterner,
        writes: &mut StateWrites,
    ) -> Result<(), RuntimeError> {
        debug_assert!(self.changed.is_empty());
        self.drop_vanished();
        self.evict();
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        store.write_deleted(writes)?;
        let mut dirty = std::mem::take(&mut store.dirty);
        dirty.retain(|&id| !self.pairs.get(id).is_dead());
        dirty.sort_unstable_by_key(|&id| self.pairs.get(id).slot);
        self.remember_keys(&dirty, keys)?;
        for ids in dirty.chunks(8192) {
            self.write_pairs(ids, writes)?;
        }
        self.sweep();
        Ok(())
    }

    /// Keeps the keys of groups that enter the store: it is by them that their values are found.
    fn remember_keys(&mut self, dirty: &[u32], keys: &KeyInterner) -> Result<(), RuntimeError> {
        let mut slots: Vec<u32> = dirty.iter().map(|&id| self.pairs.get(id).slot).collect();
        slots.dedup();
        slots.retain(|&slot| self.groups[slot as usize].key.is_none());
        let (vnodes, rows) = (keys.vnodes(&slots)?, keys.key_rows(&slots)?);
        for (i, &slot) in slots.iter().enumerate() {
            self.groups[slot as usize].key = Some([&[vnodes[i]], rows.row(i)].concat().into());
        }
        Ok(())
    }

    fn write_pairs(&mut self, ids: &[u32], writes: &mut StateWrites) -> Result<(), RuntimeError> {
        let Some(store) = &mut self.store else {
            return Ok(());
        };
        let value_ids: Vec<u32> = ids.iter().map(|&id| self.pairs.get(id).value).collect();
        let values = self.values.key_rows(&value_ids)?;
        let mut emptied = Vec::new();
        let (mut entry, mut count) = (Vec::new(), Vec::new());
        for (&id, value) in ids.iter().zip(values.iter()) {
            let pair = self.pairs.get_mut(id);
            pair.is_dirty = false;
            let group = &self.groups[pair.slot as usize];
            let key = group.key.as_ref().expect("remembered before");
            entry.clear();
            entry.extend_from_slice(&key[1..]);
            entry.extend_from_slice(value);
            if pair.count == 0 {
                writes.delete(store.table, key[0], &entry);
                let list = if group.is_complete {
                    &mut emptied
                } else {
                    &mut store.vanishing
                };
                list.push(id);
            } else {
                count.clear();
                put_varint(&mut count, pair.count as usize);
                writes.put(store.table, key[0], &entry, &count);
            }
        }
        emptied
            .into_iter()
            .for_each(|id| self.pairs.kill(id, &self.values));
        Ok(())
    }

    /// Drops the pairs that vanished with the commit before, unless they have come back.
    fn drop_vanished(&mut self) {
        let Some(store) = &mut self.store else { return };
        for id in std::mem::take(&mut store.vanishing) {
            let pair = self.pairs.get(id);
            if !pair.is_dead() && pair.count == 0 && !pair.is_dirty {
                self.pairs.kill(id, &self.values);
            }
        }
    }

    /// Drops clean pairs when there are too many. The store has them, since the commit before.
    fn evict(&mut self) {
        let budget = self.store.as_ref().map_or(usize::MAX, |s| s.memory_budget);
        if self.memory_bytes() <= budget {
            return;
        }
        for id in 0..self.pairs.len() as u32 {
            let pair = *self.pairs.get(id);
            if pair.is_dead() || pair.is_dirty {
                continue;
            }
            self.pairs.kill(id, &self.values);
            let group = &mut self.groups[pair.slot as usize];
            debug_assert!(group.key.is_some(), "a clean pair is in the store");
            group.is_complete = false;
        }
    }
}
