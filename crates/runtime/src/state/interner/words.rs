//! Keys of fixed width, compared as integers.

use arrow::buffer::NullBuffer;
use hashbrown::HashTable;

use super::slots::Slots;

/// The entry holds the key itself, so that a look-up touches one place in memory.
pub(super) struct WordTable<W> {
    table: HashTable<(W, u32)>,
    hash: fn(W) -> u64,
    /// The key of each slot.
    words: Vec<W>,
    null_slot: Option<u32>,
}

impl<W: Copy + Eq + Default> WordTable<W> {
    pub(super) fn new(hash: fn(W) -> u64) -> Self {
        Self {
            table: HashTable::new(),
            hash,
            words: Vec::new(),
            null_slot: None,
        }
    }

    #[inline(always)]
    pub(super) fn intern(
        &mut self,
        nulls: Option<&NullBuffer>,
        n_rows: usize,
        word: impl Fn(usize) -> W,
        free: &mut Slots,
        slots: &mut Vec<u32>,
        new: &mut Vec<u32>,
    ) {
        match nulls {
            None => slots.extend((0..n_rows).map(|row| self.intern_one(word(row), free, new))),
            Some(nulls) => slots.extend((0..n_rows).map(|row| match nulls.is_valid(row) {
                true => self.intern_one(word(row), free, new),
                false => self.intern_null(free, new),
            })),
        }
    }

    #[inline(always)]
    fn intern_one(&mut self, word: W, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        let hash = self.hash;
        match self.table.find(hash(word), |entry| entry.0 == word) {
            Some(&(_, slot)) => slot,
            None => {
                let slot = free.give(new);
                self.table
                    .insert_unique(hash(word), (word, slot), |entry| hash(entry.0));
                self.note(slot, word);
                slot
            }
        }
    }

    fn intern_null(&mut self, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        if let Some(slot) = self.null_slot {
            return slot;
        }
        let slot = free.give(new);
        self.null_slot = Some(slot);
        self.note(slot, W::default());
        slot
    }

    fn note(&mut self, slot: u32, word: W) {
        let slot = slot as usize;
        if slot >= self.words.len() {
            self.words.resize(slot + 1, W::default());
        }
        self.words[slot] = word;
    }

    /// The key of each slot, `None` for null.
    pub(super) fn get(&self, slots: &[u32]) -> impl Iterator<Item = Option<W>> {
        slots
            .iter()
            .map(|&s| (self.null_slot != Some(s)).then(|| self.words[s as usize]))
    }

    pub(super) fn remove(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.null_slot == Some(slot) {
                self.null_slot = None;
                continue;
            }
            let word = self.words[slot as usize];
            match self
                .table
                .find_entry((self.hash)(word), |entry| entry.0 == word)
            {
                Ok(entry) => drop(entry.remove()),
                Err(_) => unreachable!("a taken slot has an entry"),
            }
        }
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.words.clear();
        self.null_slot = None;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.table.allocation_size() + self.words.capacity() * size_of::<W>()
    }
}
