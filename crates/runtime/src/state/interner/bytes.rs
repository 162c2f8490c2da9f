//! Keys of varying length: short ones in words of their own, long ones in an arena.

use arrow::buffer::NullBuffer;
use hashbrown::HashTable;

use super::slots::Slots;
use crate::state::hash::{hash_bytes, mix};

/// The arena is rewritten when this much of it, and more than half, belongs to removed keys.
const MIN_GARBAGE: usize = 64 << 10;

/// Keys up to this length are kept in [`Key`] itself.
const MAX_INLINE: usize = 23;

#[derive(Default)]
pub(super) struct ByteTable {
    table: HashTable<Entry>,
    /// The key of each slot.
    keys: Vec<Key>,
    /// The bytes of long keys, one after another.
    arena: Vec<u8>,
    garbage: usize,
    null_slot: Option<u32>,
    /// What is known of the rows of the batch at hand before keys are compared.
    probes: Vec<Probe>,
}

/// Small, so that the table stays in the cache: the tag tells almost all keys apart.
#[derive(Clone, Copy)]
struct Entry {
    tag: u32,
    slot: u32,
}

/// A key as three words that are equal where the keys are, at least if they are short: then the words
/// hold its bytes, and its length in the last byte. Of a long key they hold the hash, where its bytes begin
/// in the arena (0 in what is looked for), and its length, with all bits of the last byte set.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Key([u64; 3]);

#[derive(Clone, Copy)]
struct Probe {
    tag: u32,
    /// The slot of a key with this tag: in all but rare cases the key's own.
    candidate: u32,
}

const LONG: u64 = 0xff << 56;
const NO_CANDIDATE: u32 = u32::MAX;

impl Key {
    #[inline(always)]
    fn new(key: &[u8]) -> Self {
        let n = key.len();
        let word = |at: usize| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight bytes"));
        // The last `k` bytes, 1 to 8, of at least eight.
        let tail = |k: usize| word(n - 8) >> (8 * (8 - k));
        match n {
            0..=7 => Self([few(key), 0, (n as u64) << 56]),
            8 => Self([word(0), 0, 8 << 56]),
            9..=16 => Self([word(0), tail(n - 8), (n as u64) << 56]),
            17..=MAX_INLINE => Self([word(0), word(8), tail(n - 16) | (n as u64) << 56]),
            _ => Self([hash_bytes(key), 0, LONG | n as u64]),
        }
    }

    fn is_long(self) -> bool {
        self.0[2] >> 56 == 0xff
    }

    fn long_bytes(self, arena: &[u8]) -> &[u8] {
        let (start, len) = (self.0[1] as usize, (self.0[2] & !LONG) as usize);
        &arena[start..start + len]
    }

    #[inline(always)]
    fn tag(self) -> u32 {
        let [a, b, c] = self.0;
        // Where a long key's bytes lie says nothing about it.
        let b = if self.is_long() { 0 } else { b };
        let hash = mix(
            mix(a ^ 0x1319_8a2e_0370_7344, b ^ 0xa409_3822_299f_31d0) ^ c,
            MULTIPLIER,
        );
        (hash >> 32) as u32
    }

    /// Appends the key's bytes.
    fn write(self, arena: &[u8], out: &mut Vec<u8>) {
        if self.is_long() {
            return out.extend_from_slice(self.long_bytes(arena));
        }
        let mut bytes = [0; 24];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        out.extend_from_slice(&bytes[..usize::from(bytes[23])]);
    }
}

/// Less than eight bytes as a word.
#[inline(always)]
fn few(key: &[u8]) -> u64 {
    let n = key.len();
    let half = |at: usize| u32::from_le_bytes(key[at..at + 4].try_into().expect("four bytes"));
    let byte = |at: usize| u64::from(key[at]) << (8 * at);
    match n {
        0 => 0,
        1..=3 => byte(0) | byte(n / 2) | byte(n - 1),
        _ => u64::from(half(0)) | u64::from(half(n - 4)) << (8 * (n - 4)),
    }
}

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Spreads a tag over the 64 bits that the table wants, so that it can grow without the keys.
#[inline(always)]
fn table_hash(tag: u32) -> u64 {
    mix(u64::from(tag) ^ 0x082e_fa98_ec4e_6c89, MULTIPLIER)
}

impl ByteTable {
    /// In three loops over the batch, each of them simple enough that the memory it waits for in one row
    /// is on its way for the next ones as well: tags, candidates, comparisons.
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
        let mut probes = std::mem::take(&mut self.probes);
        probes.clear();
        let tag = |row| Probe {
            tag: Key::new(key(row)).tag(),
            candidate: NO_CANDIDATE,
        };
        probes.extend((0..n_rows).map(tag));
        for probe in &mut probes {
            let found = self
                .table
                .find(table_hash(probe.tag), |entry| entry.tag == probe.tag);
            probe.candidate = found.map_or(NO_CANDIDATE, |entry| entry.slot);
        }
        for (row, &probe) in probes.iter().enumerate() {
            slots.push(match nulls.is_none_or(|n| n.is_valid(row)) {
                true => self.intern_one(key(row), probe, free, new),
                false => self.intern_null(free, new),
            });
        }
        self.probes = probes;
    }

    #[inline(always)]
    fn intern_one(
        &mut self,
        bytes: &[u8],
        probe: Probe,
        free: &mut Slots,
        new: &mut Vec<u32>,
    ) -> u32 {
        let key = Key::new(bytes);
        if probe.candidate != NO_CANDIDATE && self.holds(probe.candidate, key, bytes) {
            return probe.candidate;
        }
        self.find_or_insert(key, bytes, probe.tag, free, new)
    }

    #[inline(always)]
    fn holds(&self, slot: u32, key: Key, bytes: &[u8]) -> bool {
        let held = self.keys[slot as usize];
        if key.is_long() {
            // The words differ in where the bytes begin.
            return (held.0[0], held.0[2]) == (key.0[0], key.0[2])
                && held.long_bytes(&self.arena) == bytes;
        }
        held == key
    }

    /// The key may have come earlier in the batch, or another one may have the same tag.
    #[cold]
    fn find_or_insert(
        &mut self,
        key: Key,
        bytes: &[u8],
        tag: u32,
        free: &mut Slots,
        new: &mut Vec<u32>,
    ) -> u32 {
        let same = |entry: &Entry| entry.tag == tag && self.holds(entry.slot, key, bytes);
        if let Some(entry) = self.table.find(table_hash(tag), same) {
            return entry.slot;
        }
        let slot = free.give(new);
        self.table
            .insert_unique(table_hash(tag), Entry { tag, slot }, |e| table_hash(e.tag));
        let mut held = key;
        if key.is_long() {
            held.0[1] = self.arena.len() as u64;
            self.arena.extend_from_slice(bytes);
        }
        self.note(slot, held);
        slot
    }

    fn intern_null(&mut self, free: &mut Slots, new: &mut Vec<u32>) -> u32 {
        if let Some(slot) = self.null_slot {
            return slot;
        }
        let slot = free.give(new);
        self.null_slot = Some(slot);
        self.note(slot, Key::default());
        slot
    }

    fn note(&mut self, slot: u32, key: Key) {
        let slot = slot as usize;
        if slot >= self.keys.len() {
            self.keys.resize(slot + 1, Key::default());
        }
        self.keys[slot] = key;
    }

    pub(super) fn is_null(&self, slot: u32) -> bool {
        self.null_slot == Some(slot)
    }

    /// Appends the bytes of a slot's key; none for null.
    pub(super) fn write(&self, slot: u32, out: &mut Vec<u8>) {
        self.keys[slot as usize].write(&self.arena, out);
    }

    pub(super) fn remove(&mut self, slots: &[u32]) {
        for &slot in slots {
            if self.null_slot == Some(slot) {
                self.null_slot = None;
                continue;
            }
            let key = std::mem::take(&mut self.keys[slot as usize]);
            match self
                .table
                .find_entry(table_hash(key.tag()), |entry| entry.slot == slot)
            {
                Ok(entry) => drop(entry.remove()),
                Err(_) => unreachable!("a taken slot has an entry"),
            }
            if key.is_long() {
                self.garbage += key.long_bytes(&self.arena).len();
            }
        }
        if self.garbage > MIN_GARBAGE && self.garbage > self.arena.len() / 2 {
            self.collect_garbage();
        }
    }

    fn collect_garbage(&mut self) {
        let mut arena = Vec::with_capacity(self.arena.len() - self.garbage);
        // The keys of free slots are not long.
        for key in self.keys.iter_mut().filter(|key| key.is_long()) {
            let start = arena.len();
            arena.extend_from_slice(key.long_bytes(&self.arena));
            key.0[1] = start as u64;
        }
        self.arena = arena;
        self.garbage = 0;
        self.table.shrink_to_fit(|e| table_hash(e.tag));
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
        self.keys.clear();
        self.arena.clear();
        self.garbage = 0;
        self.null_slot = None;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.table.allocation_size()
            + self.arena.capacity()
            + self.keys.capacity() * size_of::<Key>()
            + self.probes.capacity() * size_of::<Probe>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_read_back_and_differ() {
        let longest: Vec<u8> = (1..=40).collect();
        let mut seen = std::collections::HashSet::new();
        for n in 0..=40 {
            for last in [0, 1, 255] {
                let mut bytes = longest[..n].to_vec();
                bytes.last_mut().into_iter().for_each(|b| *b = last);
                let mut key = Key::new(&bytes);
                assert!(seen.insert(key.0) || n == 0, "{bytes:?}");
                key.0[1] = if key.is_long() { 0 } else { key.0[1] };
                let mut out = vec![];
                key.write(&bytes, &mut out);
                assert_eq!(out, bytes);
            }
        }
    }
}
