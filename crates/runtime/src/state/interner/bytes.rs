//! Keys of varying length, kept one after another in an arena.

use arrow::buffer::NullBuffer;
use hashbrown::HashTable;

use super::slots::Slots;
use crate::state::hash::{hash_bytes, mix};

/// The arena is rewritten when this much of it, and more than half, belongs to removed keys.
const MIN_GARBAGE: usize = 64 << 10;

#[derive(Default)]
pub(super) struct ByteTable {
    table: HashTable<Entry>,
    arena: Vec<u8>,
    /// Where the key of each slot lies in the arena.
    spans: Vec<Span>,
    garbage: usize,
    null_slot: Option<u32>,
    /// Hashes of the batch at hand: computed ahead of the look-ups, which can then overlap.
    tags: Vec<u32>,
}

/// Small, so that the table stays in the cache: the tag tells almost all keys apart.
#[derive(Clone, Copy)]
struct Entry {
    tag: u32,
    slot: u32,
}

#[derive(Clone, Copy, Default)]
struct Span {
    start: usize,
    len: usize,
}

/// Half of the key's hash.
#[inline(always)]
fn tag_of(key: &[u8]) -> u32 {
    (hash_bytes(key) >> 32) as u32
}

/// Spreads a tag over the 64 bits that the table wants, so that it can grow without the keys.
#[inline(always)]
fn table_hash(tag: u32) -> u64 {
    mix(
        u64::from(tag) ^ 0x1319_8a2e_0370_7344,
        0x9e37_79b9_7f4a_7c15,
    )
}

impl ByteTable {
    #[inline(always)]
    pub(super) fn intern<'a>(
        &mut self,
        nulls: Option<&NullBuffer>,
        n_rows: usize,
        key: impl Fn(usize) -> &'a [u8],
        free: &mut Slots,
        slots: &mut Vec<u32>,
        new: &mut Vec<u32>,
    ) {
        let mut tags = std::mem::take(&mut self.tags);
        tags.clear();
        tags.extend((0..n_rows).map(|row| tag_of(key(row))));
        for (row, &tag) in tags.iter().enumerate() {
            slots.push(match nulls.is_none_or(|n| n.is_valid(row)) {
                true => self.intern_one(key(row), tag, free, new),
                false => self.intern_null(free, new),
            });
        }
        self.tags = tags;
    }

    #[inline(always)]
    fn intern_one(&mut self, key: &[u8], tag: u32, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        let (spans, arena) = (&self.spans, &self.arena);
        let found = self.table.find(table_hash(tag), |entry| {
            entry.tag == tag && bytes_at(arena, spans[entry.slot as usize]) == key
        });
        match found {
            Some(entry) => entry.slot,
            None => self.insert(key, tag, free, new),
        }
    }

    fn insert(&mut self, key: &[u8], tag: u32, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        let slot = free.give(new);
        self.table
            .insert_unique(table_hash(tag), Entry { tag, slot }, |e| table_hash(e.tag));
        self.note(
            slot,
            Span {
                start: self.arena.len(),
                len: key.len(),
            },
        );
        self.arena.extend_from_slice(key);
        slot
    }

    fn intern_null(&mut self, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        if let Some(slot) = self.null_slot {
            return slot;
        }
        let slot = free.give(new);
        self.null_slot = Some(slot);
        self.note(slot, Span::default());
        slot
    }

    fn note(&mut self, slot: u32, span: Span) {
        let slot = slot as usize;
        if slot >= self.spans.len() {
            self.spans.resize(slot + 1, Span::default());
        }
        self.spans[slot] = span;
    }

    /// The key of a slot, `None` for null.
    pub(super) fn get(&self, slot: u32) -> Option<&[u8]> {
        (self.null_slot != Some(slot)).then(|| bytes_at(&self.arena, self.spans[slot as usize]))
    }

    pub(super) fn remove(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.null_slot == Some(slot) {
                self.null_slot = None;
                continue;
            }
            let span = std::mem::take(&mut self.spans[slot as usize]);
            let tag = tag_of(bytes_at(&self.arena, span));
            match self
                .table
                .find_entry(table_hash(tag), |entry| entry.slot == slot)
            {
                Ok(entry) => drop(entry.remove()),
                Err(_) => unreachable!("a taken slot has an entry"),
            }
            self.garbage += span.len;
        }
        if self.garbage > MIN_GARBAGE && self.garbage > self.arena.len() / 2 {
            self.collect_garbage();
        }
    }

    fn collect_garbage(&mut self) {
        let mut arena = Vec::with_capacity(self.arena.len() - self.garbage);
        // A removed key's span is empty, and so copies nothing.
        for span in &mut self.spans {
            let start = arena.len();
            arena.extend_from_slice(bytes_at(&self.arena, *span));
            span.start = start;
        }
        self.arena = arena;
        self.garbage = 0;
        self.table.shrink_to_fit(|e| table_hash(e.tag));
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.arena.clear();
        self.spans.clear();
        self.garbage = 0;
        self.null_slot = None;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.arena.capacity()
            + self.spans.capacity() * size_of::<Span>()
            + self.tags.capacity() * size_of::<u32>()
    }
}

#[inline(always)]
fn bytes_at(arena: &[u8], span: Span) -> &[u8] {
    &arena[span.start..span.start + span.len]
}
