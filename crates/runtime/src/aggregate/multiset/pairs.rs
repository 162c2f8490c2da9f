//! Pairs of a group and a value, with how often the group has it.

use std::collections::BTreeMap;

use hashbrown::HashTable;

use crate::state::KeyInterner;
use crate::state::hash::hash_word;

/// No pair.
pub(super) const NONE: u32 = u32::MAX;
/// The slot of a pair that is dead.
const DEAD: u32 = u32::MAX;
/// Dead pairs are swept when there are this many, and more than live ones.
const MIN_DEAD: usize = 1024;

#[derive(Debug, Clone, Copy)]
pub(super) struct Pair {
    pub(super) slot: u32,
    pub(super) value: u32,
    /// As of the last time that changes were settled; means nothing where it is not known.
    pub(super) count: i64,
    /// Changes since.
    pub(super) diff: i64,
    /// Another pair of the same group.
    pub(super) next: u32,
    pub(super) is_known: bool,
    /// Listed as having a change that is not settled.
    pub(super) is_changed: bool,
    /// Listed as differing from what the store has.
    pub(super) is_dirty: bool,
    /// A column of the value is null.
    pub(super) is_null: bool,
}

impl Pair {
    pub(super) fn is_dead(&self) -> bool {
        self.slot == DEAD
    }
}

/// Pairs by slot and the key bytes of their values.
pub(super) type Sorted = BTreeMap<(u32, Box<[u8]>), u32>;

/// Pairs by number, by group and value, and (where asked for) in order. Numbers are not used again before
/// dead pairs are removed, so that lists may still name them.
#[derive(Default)]
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    table: HashTable<(u64, u32)>,
    n_dead: usize,
    sorted: Option<Sorted>,
}

#[inline(always)]
fn table_key(slot: u32, value: u32) -> u64 {
    u64::from(slot) << 32 | u64::from(value)
}

fn value_bytes(values: &KeyInterner, value: u32) -> Box<[u8]> {
    let rows = values
        .key_rows(&[value])
        .expect("an interned value has key bytes");
    rows.row(0).into()
}

impl Pairs {
    /// Whether to keep pairs in the order of their values as well.
    pub(super) fn sort(&mut self, is_sorted: bool) {
        debug_assert!(self.pairs.is_empty());
        self.sorted = is_sorted.then(BTreeMap::new);
    }

    pub(super) fn sorted(&self) -> Option<&Sorted> {
        self.sorted.as_ref()
    }

    #[inline(always)]
    pub(super) fn find(&self, slot: u32, value: u32) -> Option<u32> {
        let key = table_key(slot, value);
        self.table
            .find(hash_word(key), |entry| entry.0 == key)
            .map(|entry| entry.1)
    }

    pub(super) fn insert(&mut self, pair: Pair, values: &KeyInterner) -> u32 {
        let id = u32::try_from(self.pairs.len())
            .ok()
            .filter(|&id| id != NONE);
        let id = id.expect("fewer than 2^32 values in memory");
        let key = table_key(pair.slot, pair.value);
        self.table
            .insert_unique(hash_word(key), (key, id), |entry| hash_word(entry.0));
        if let Some(sorted) = &mut self.sorted {
            sorted.insert((pair.slot, value_bytes(values, pair.value)), id);
        }
        self.pairs.push(pair);
        id
    }

    /// Takes a pair out. Its number stays, and its link to the group's other pairs.
    pub(super) fn kill(&mut self, id: u32, values: &KeyInterner) {
        let pair = &mut self.pairs[id as usize];
        let slot = std::mem::replace(&mut pair.slot, DEAD);
        let key = table_key(slot, pair.value);
        match self
            .table
            .find_entry(hash_word(key), |entry| entry.0 == key)
        {
            Ok(entry) => drop(entry.remove()),
            Err(_) => unreachable!("a live pair has an entry"),
        }
        if let Some(sorted) = &mut self.sorted {
            sorted.remove(&(slot, value_bytes(values, pair.value)));
        }
        self.n_dead += 1;
    }

    pub(super) fn get(&self, id: u32) -> &Pair {
        &self.pairs[id as usize]
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, id: u32) -> &mut Pair {
        &mut self.pairs[id as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.pairs.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Pair> {
        self.pairs.iter().filter(|pair| !pair.is_dead())
    }

    pub(super) fn clear(&mut self) {
        self.pairs.clear();
        self.table.clear();
        self.n_dead = 0;
        self.sorted.iter_mut().for_each(BTreeMap::clear);
    }

    pub(super) fn is_mostly_dead(&self) -> bool {
        self.n_dead >= MIN_DEAD && self.n_dead > self.pairs.len() / 2
    }

    /// Removes dead pairs and numbers the others anew, in the same order. Gives the new number of each old
    /// one, [`NONE`] for the dead. Links are to be made anew.
    pub(super) fn remove_dead(&mut self) -> Vec<u32> {
        let mut next = 0;
        let new_id = |pair: &Pair| match pair.is_dead() {
            true => NONE,
            false => {
                next += 1;
                next - 1
            }
        };
        let ids: Vec<u32> = self.pairs.iter().map(new_id).collect();
        self.pairs.retain(|pair| !pair.is_dead());
        self.pairs.shrink_to_fit();
        self.table
            .iter_mut()
            .for_each(|entry| entry.1 = ids[entry.1 as usize]);
        self.table.shrink_to_fit(|entry| hash_word(entry.0));
        if let Some(sorted) = &mut self.sorted {
            sorted.values_mut().for_each(|id| *id = ids[*id as usize]);
        }
        self.n_dead = 0;
        ids
    }

    pub(super) fn memory_bytes(&self, value_bytes: usize) -> usize {
        let sorted = self
            .sorted
            .as_ref()
            .map_or(0, |s| s.len() * (48 + value_bytes));
        self.pairs.capacity() * size_of::<Pair>() + self.table.allocation_size() + sorted
    }
}
