//! The values of each group with their multiplicities, for aggregates that cannot be kept as numbers:
//! DISTINCT, and under retraction MIN, MAX and whatever has to be computed anew.
//!
//! Memory holds *pairs* of a group and a value. A group of which all values are in memory is
//! *complete*; that is every group where there is no store, and every new one. Of the others the rest
//! lies in the store, one entry a value under `(table, vnode, group key, value)`, and what is in memory
//! overrules it. Changes are summed by pair as they come and take effect when they are
//! [settled](Multiset::settle) at the end of an epoch, which looks every unknown pair up at once; until then
//! the multiset answers as of the epoch before.
//!
//! Equal values are those with equal key bytes, as in keys (semantics 4.6).

mod entries;
mod pairs;
mod read;
mod stored;

use arrow::array::{Array, ArrayRef, BooleanArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{filter, prep_null_mask_filter};
use arrow::datatypes::DataType;

use crate::error::RuntimeError;
use crate::state::{KeyCodec, KeyInterner, StateStore, TableId};
pub(super) use read::GroupValues;

use pairs::Pairs;
use stored::Stored;

/// A multiset of values for each slot.
pub(super) struct Multiset {
    /// Key bytes of values.
    codec: KeyCodec,
    values: KeyInterner,
    pairs: Pairs,
    groups: Vec<Group>,
    /// Pairs with a change that is not settled.
    changed: Vec<u32>,
    store: Option<Stored>,
    value_ids: Vec<u32>,
}

/// What is known of a slot's group.
#[derive(Debug, Clone)]
struct Group {
    /// The latest of its pairs; they are linked.
    first: u32,
    is_complete: bool,
    /// Vnode and key bytes, once something of the group is in the store.
    key: Option<Box<[u8]>>,
}

impl Group {
    const NEW: Self = Self {
        first: pairs::NONE,
        is_complete: true,
        key: None,
    };
}

/// What becomes of a change that takes more of a value away than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overdrawn {
    /// It contradicts what came before: an error.
    Refuse,
    /// Its insertion has expired: it is counted and dropped (semantics 5.3).
    Drop,
}

/// What a settled epoch did to which values a group has.
#[derive(Debug, Default)]
pub(super) struct Crossings {
    /// Group and value of each pair whose count left 0 or came back to it.
    pub(super) slots: Vec<u32>,
    value_ids: Vec<u32>,
    /// 1 for a value that came, −1 for one that went.
    pub(super) diffs: Vec<i64>,
    /// Changes that found nothing to take away.
    pub(super) n_overdrawn: usize,
}

impl Multiset {
    /// A multiset of rows of these types, in memory.
    pub(super) fn new(types: Vec<DataType>) -> Result<Self, RuntimeError> {
        Ok(Self {
            codec: KeyCodec::new(types.clone())?,
            values: KeyInterner::new(types)?,
            pairs: Pairs::default(),
            groups: Vec::new(),
            changed: Vec::new(),
            store: None,
            value_ids: Vec::new(),
        })
    }

    /// Keeps its values in `table`, and not more of them in memory than `memory_budget` bytes unless they
    /// have changed since the last commit. `has_extremes`: the least and greatest value will be asked for.
    pub(super) fn with_store(
        mut self,
        store: StateStore,
        table: TableId,
        memory_budget: usize,
        has_extremes: bool,
    ) -> Self {
        self.store = Some(Stored::new(store, table, memory_budget));
        self.pairs.sort(has_extremes);
        self
    }

    pub(super) fn is_stored(&self) -> bool {
        self.store.is_some()
    }

    pub(super) fn resize(&mut self, n_slots: usize) {
        self.groups
            .resize(n_slots.max(self.groups.len()), Group::NEW);
    }

    /// Notes changes, to be settled later. `values` are the columns of a value, as long as `slots`.
    pub(super) fn update(
        &mut self,
        slots: &[u32],
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let Some(mask) = filter else {
            return self.add(slots, values, diffs);
        };
        // Rows that do not count must not leave values behind.
        let (slots, values, diffs) = selected(slots, values, mask, diffs)?;
        self.add(&slots, &values, diffs.as_deref())
    }

    fn add(
        &mut self,
        slots: &[u32],
        values: &[ArrayRef],
        diffs: Option<&[i64]>,
    ) -> Result<(), RuntimeError> {
        let mut value_ids = std::mem::take(&mut self.value_ids);
        self.values
            .intern(values, slots.len(), &mut value_ids, &mut Vec::new())?;
        let nulls: Vec<_> = values.iter().map(|v| v.logical_nulls()).collect();
        let nulls = NullBuffer::union_many(nulls.iter().map(|n| n.as_ref()));
        for (row, (&slot, &value)) in slots.iter().zip(&value_ids).enumerate() {
            let pair = match self.pairs.find(slot, value) {
                Some(pair) => pair,
                None => {
                    let is_null = nulls.as_ref().is_some_and(|n| n.is_null(row));
                    self.add_pair(slot, value, is_null)
                }
            };
            let state = self.pairs.get_mut(pair);
            state.diff += diffs.map_or(1, |d| d[row]);
            if !std::mem::replace(&mut state.is_changed, true) {
                self.changed.push(pair);
            }
        }
        self.value_ids = value_ids;
        Ok(())
    }

    fn add_pair(&mut self, slot: u32, value: u32, is_null: bool) -> u32 {
        let group = &mut self.groups[slot as usize];
        let pair = pairs::Pair {
            slot,
            value,
            count: 0,
            diff: 0,
            next: group.first,
            // Of a complete group, what is not in memory is not there at all.
            is_known: group.is_complete,
            is_changed: false,
            is_dirty: false,
            is_null,
        };
        let id = self.pairs.insert(pair, &self.values);
        group.first = id;
        id
    }

    /// Applies the changes since the last time. Afterwards counts are never negative.
    pub(super) fn settle(&mut self, overdrawn: Overdrawn) -> Result<Crossings, RuntimeError> {
        self.sweep();
        self.look_up_unknown()?;
        let mut crossings = Crossings::default();
        let changed = std::mem::take(&mut self.changed);
        for &id in &changed {
            self.settle_pair(id, overdrawn, &mut crossings)?;
        }
        self.changed = changed;
        self.changed.clear();
        Ok(crossings)
    }

    fn settle_pair(
        &mut self,
        id: u32,
        overdrawn: Overdrawn,
        crossings: &mut Crossings,
    ) -> Result<(), RuntimeError> {
        let pair = self.pairs.get_mut(id);
        let diff = std::mem::take(&mut pair.diff);
        pair.is_changed = false;
        if pair.is_dead() {
            return Ok(());
        }
        let (slot, before) = (pair.slot, pair.count);
        let mut after = before + diff;
        if after < 0 {
            if overdrawn == Overdrawn::Refuse {
                return Err(self.negative(id, after));
            }
            crossings.n_overdrawn += 1;
            after = 0;
        }
        let pair = self.pairs.get_mut(id);
        pair.count = after;
        if (before == 0) != (after == 0) {
            crossings.slots.push(slot);
            crossings.value_ids.push(pair.value);
            crossings.diffs.push(if after == 0 { -1 } else { 1 });
        }
        match &mut self.store {
            Some(_) if before != after && pair.is_dirty => {}
            Some(store) if before != after => {
                pair.is_dirty = true;
                store.dirty.push(id);
            }
            // Neither in the store (every commit has arrived there by now) nor worth remembering.
            _ if after == 0 && !pair.is_dirty => self.pairs.kill(id, &self.values),
            _ => {}
        }
        Ok(())
    }

    fn negative(&self, id: u32, count: i64) -> RuntimeError {
        let pair = self.pairs.get(id);
        let shown = self.values.key_columns(&[pair.value]).unwrap_or_default();
        RuntimeError::Internal(format!("a group holds {count} times the value {shown:?}"))
    }

    /// The columns of the values that came or went.
    pub(super) fn crossing_columns(
        &self,
        crossings: &Crossings,
    ) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(self.values.key_columns(&crossings.value_ids)?)
    }

    /// Empties these groups. What the store has of them is deleted with the next commit.
    pub(super) fn reset(&mut self, slots: &[u32]) {
        if self.store.is_none() && slots.len() == self.groups.len() {
            return self.clear();
        }
        for &slot in slots {
            self.drop_pairs(slot);
            let group = std::mem::replace(&mut self.groups[slot as usize], Group::NEW);
            if let (Some(store), Some(key)) = (&mut self.store, group.key) {
                store.deleted.push(key);
            }
        }
        self.sweep();
    }

    /// Empties all groups at once: a window that closes.
    fn clear(&mut self) {
        self.pairs.clear();
        self.values.clear();
        self.changed.clear();
        self.groups.fill(Group::NEW);
    }

    /// Takes these groups out of memory. They hold nothing that the store does not have.
    pub(super) fn forget(&mut self, slots: &[u32]) {
        for &slot in slots {
            self.drop_pairs(slot);
            self.groups[slot as usize] = Group::NEW;
        }
        self.sweep();
    }

    fn drop_pairs(&mut self, slot: u32) {
        let mut id = self.groups[slot as usize].first;
        while id != pairs::NONE {
            let pair = self.pairs.get(id);
            let next = pair.next;
            if !pair.is_dead() {
                self.pairs.kill(id, &self.values);
            }
            id = next;
        }
    }

    /// Rewrites what is in memory when most of it is dead. Values that no pair has any more go too.
    fn sweep(&mut self) {
        if !self.pairs.is_mostly_dead() {
            return;
        }
        let ids = self.pairs.remove_dead();
        let renumber = |list: &mut Vec<u32>| {
            list.retain_mut(|id| {
                *id = ids[*id as usize];
                *id != pairs::NONE
            });
        };
        renumber(&mut self.changed);
        if let Some(store) = &mut self.store {
            renumber(&mut store.dirty);
            renumber(&mut store.vanishing);
        }
        self.groups.iter_mut().for_each(|g| g.first = pairs::NONE);
        for id in 0..self.pairs.len() as u32 {
            let pair = self.pairs.get_mut(id);
            let group = &mut self.groups[pair.slot as usize];
            pair.next = std::mem::replace(&mut group.first, id);
        }
        self.drop_unused_values();
    }

    fn drop_unused_values(&mut self) {
        let mut used = vec![false; self.values.n_slots()];
        self.pairs
            .iter()
            .for_each(|pair| used[pair.value as usize] = true);
        let mut unused = self.values.taken_slots();
        unused.retain(|&value| !used[value as usize]);
        self.values.remove(&unused);
    }

    /// Bytes of changes that no commit has yet.
    pub(super) fn dirty_bytes(&self) -> usize {
        self.store
            .as_ref()
            .map_or(0, |s| s.dirty_bytes(self.mean_value_bytes()))
    }

    fn mean_value_bytes(&self) -> usize {
        self.values.memory_bytes() / self.values.len().max(1)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.values.memory_bytes()
            + self.pairs.memory_bytes(self.mean_value_bytes())
            + self.groups.capacity() * size_of::<Group>()
            + self.changed.capacity() * size_of::<u32>()
    }
}

type Selected = (Vec<u32>, Vec<ArrayRef>, Option<Vec<i64>>);

/// The rows for which the mask is true.
fn selected(
    slots: &[u32],
    values: &[ArrayRef],
    mask: &BooleanArray,
    diffs: Option<&[i64]>,
) -> Result<Selected, RuntimeError> {
    let mask = if mask.null_count() > 0 {
        prep_null_mask_filter(mask)
    } else {
        mask.clone()
    };
    let values = values
        .iter()
        .map(|v| filter(v, &mask))
        .collect::<Result<_, _>>()?;
    let rows = || mask.values().set_indices();
    let slots = rows().map(|row| slots[row]).collect();
    let diffs = diffs.map(|d| rows().map(|row| d[row]).collect());
    Ok((slots, values, diffs))
}
