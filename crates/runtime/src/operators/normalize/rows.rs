//! The rows of a table, by key: encoded images in memory, a cache over the state store.
//!
//! A slot is *clean* when the store has what it holds; only clean slots are evicted. A barrier is asked for
//! only when the commit before it is in the store, so what was handed over at one barrier can be read
//! back after the next.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use hashbrown::HashMap;

use super::super::OperatorContext;
use super::entry::{self, Entry, Kind};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::{KeyInterner, StateStore, StateWrites, TableId};

/// Rough size of what surrounds an image in the store, for deciding when to commit.
const DIRTY_BYTES_PER_SLOT: usize = 48;

const TOUCHED: u8 = 1;
const DIRTY: u8 = 2;
/// The store has an entry for the key, up to date or not.
const STORED: u8 = 4;

/// Where an image lies among all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    start: usize,
    len: usize,
}

/// What is known of a key in memory.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    pub entry: Entry,
    pub image: Span,
}

impl Row {
    const ABSENT: Self = Self {
        entry: Entry::ABSENT,
        image: Span { start: 0, len: 0 },
    };

    pub fn is_present(&self) -> bool {
        self.entry.kind == Kind::Present
    }
}

/// Vnode and key bytes of an entry in the store.
pub type StoredKey = (u8, Vec<u8>);

/// Vnode, key bytes and value.
pub type StoredEntry = (u8, Vec<u8>, Vec<u8>);

pub struct Rows {
    keys: KeyInterner,
    rows: Vec<Row>,
    flags: Vec<u8>,
    images: Images,
    dirty: Vec<u32>,
    table: TableId,
    store: StateStore,
    vnodes: Arc<[u8]>,
    /// Keys deleted since the last commit, with their vnodes, and those whose deletion is on its way to the store.
    deleted: HashMap<Box<[u8]>, u8>,
    deleting: HashMap<Box<[u8]>, u8>,
    /// Everything that the store has is to be deleted, or the deletion is on its way there: every row is in memory.
    cleared: bool,
    clearing: bool,
    /// Something was evicted, so that a key that is not in memory may be in the store.
    may_be_stored: bool,
    memory_budget: usize,
    new: Vec<u32>,
    metrics: Arc<JobMetrics>,
}

impl Rows {
    pub fn new(key_types: Vec<DataType>, context: &OperatorContext) -> Result<Self, RuntimeError> {
        Ok(Self {
            keys: KeyInterner::new(key_types)?,
            rows: Vec::new(),
            flags: Vec::new(),
            images: Images::default(),
            dirty: Vec::new(),
            table: context.table(0),
            store: context.store.clone(),
            vnodes: context.vnodes.clone(),
            deleted: HashMap::new(),
            deleting: HashMap::new(),
            cleared: false,
            clearing: false,
            may_be_stored: false,
            memory_budget: context.memory_bytes,
            new: Vec::new(),
            metrics: context.metrics.clone(),
        })
    }

    /// The slots of a batch's keys; rows that were evicted are read back.
    pub fn intern(
        &mut self,
        keys: &[ArrayRef],
        n_rows: usize,
        slots: &mut Vec<u32>,
    ) -> Result<(), RuntimeError> {
        let mut new = std::mem::take(&mut self.new);
        new.clear();
        self.keys.intern(keys, n_rows, slots, &mut new)?;
        self.rows.resize(self.keys.n_slots(), Row::ABSENT);
        self.flags.resize(self.keys.n_slots(), 0);
        if self.is_in_store() && !new.is_empty() {
            self.load(&new)?;
        }
        self.new = new;
        Ok(())
    }

    /// Whether a key that is not in memory may be in the store.
    pub fn is_in_store(&self) -> bool {
        self.may_be_stored && !self.cleared && !self.clearing
    }

    /// Reads what the store has of these slots' keys.
    fn load(&mut self, slots: &[u32]) -> Result<(), RuntimeError> {
        let (vnodes, keys) = (self.keys.vnodes(slots)?, self.keys.key_rows(slots)?);
        let wanted: Vec<usize> = (0..slots.len())
            .filter(|&i| !self.is_deleted(keys.row(i)))
            .collect();
        let lookups = wanted.iter().map(|&i| (vnodes[i], keys.row(i)));
        let (rows, flags, images) = (&mut self.rows, &mut self.flags, &mut self.images);
        self.store
            .multi_get(self.table, lookups, |position, bytes| {
                let Some(bytes) = bytes else { return Ok(()) };
                let slot = slots[wanted[position]] as usize;
                let (entry, image) = entry::decode(bytes)?;
                rows[slot] = Row {
                    entry,
                    image: images.push(image),
                };
                images.keep(rows[slot].image);
                flags[slot] = STORED;
                Ok(())
            })
    }

    /// Whether the store's entry of a key counts no more.
    pub fn is_deleted(&self, key: &[u8]) -> bool {
        self.deleted.contains_key(key) || self.deleting.contains_key(key)
    }

    pub fn row(&self, slot: u32) -> Row {
        self.rows[slot as usize]
    }

    /// Keeps bytes of an image for [`put`](Self::put).
    pub fn push_image(&mut self, image: &[u8]) -> Span {
        self.images.push(image)
    }

    pub fn image(&self, span: Span) -> &[u8] {
        self.images.get(span)
    }

    /// Changes what is known of a key. The image that it had stays readable until the epoch ends.
    pub fn put(&mut self, slot: u32, row: Row) {
        let old = std::mem::replace(&mut self.rows[slot as usize], row);
        self.images.leave(old.image);
        self.images.keep(row.image);
        let flags = &mut self.flags[slot as usize];
        if *flags & DIRTY == 0 {
            *flags |= DIRTY;
            self.dirty.push(slot);
        }
    }

    /// Marks a key as touched in this epoch; whether it is the first time.
    pub fn touch(&mut self, slot: u32) -> bool {
        let flags = &mut self.flags[slot as usize];
        let first = *flags & TOUCHED == 0;
        *flags |= TOUCHED;
        first
    }

    pub fn key_columns(&self, slots: &[u32]) -> Result<Vec<ArrayRef>, RuntimeError> {
        Ok(self.keys.key_columns(slots)?)
    }

    /// Virtual partitions and key bytes of some slots.
    pub fn store_keys(
        &self,
        slots: &[u32],
    ) -> Result<(Vec<u8>, crate::state::KeyRows), RuntimeError> {
        Ok((self.keys.vnodes(slots)?, self.keys.key_rows(slots)?))
    }

    /// Slots of keys given as bytes.
    pub fn recall<'a>(
        &mut self,
        keys: impl IntoIterator<Item = &'a [u8]>,
        n_keys: usize,
    ) -> Result<Vec<u32>, RuntimeError> {
        let columns = self.keys.codec().decode(keys)?;
        let mut slots = Vec::with_capacity(n_keys);
        self.intern(&columns, n_keys, &mut slots)?;
        Ok(slots)
    }

    /// The slots of rows in memory that this epoch has not touched.
    pub fn untouched(&self) -> Vec<u32> {
        let mut slots = self.keys.taken_slots();
        slots.retain(|&slot| self.flags[slot as usize] & TOUCHED == 0);
        slots
    }

    /// The next entries of the store behind `after`, at most `n`: vnode, key bytes and value.
    pub fn stored_after(
        &self,
        after: Option<&StoredKey>,
        n: usize,
    ) -> Result<Vec<StoredEntry>, RuntimeError> {
        let (from, key) = after.map_or((0, None), |(vnode, key)| (*vnode, Some(key)));
        let mut found = Vec::new();
        for &vnode in self.vnodes.iter().filter(|v| **v >= from) {
            let mut scan = self.store.scan(self.table, vnode, &[]);
            if let Some(key) = key.filter(|_| vnode == from) {
                scan.seek_behind(self.table, vnode, key);
            }
            while let Some(entry) = scan.advance()? {
                found.push((vnode, entry.key.to_vec(), entry.value.to_vec()));
                if found.len() == n {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Keys that came into memory only to be looked at.
    pub fn forget(&mut self, slots: &[u32]) {
        self.free(slots);
    }

    /// From the end of this epoch on, nothing that the store has counts any more.
    pub fn clear_store(&mut self) {
        self.cleared = true;
        self.deleted.clear();
        self.flags.iter_mut().for_each(|flags| *flags &= !STORED);
    }

    /// Ends the epoch for these touched slots, of which `empty` hold nothing any more; what memory does not
    /// hold is evicted.
    pub fn end_epoch(
        &mut self,
        touched: impl Iterator<Item = u32>,
        empty: &[u32],
    ) -> Result<(), RuntimeError> {
        for slot in touched {
            self.flags[slot as usize] &= !TOUCHED;
        }
        self.release(empty)?;
        self.deleting.clear();
        self.clearing = false;
        self.images.compact(&mut self.rows);
        self.evict();
        Ok(())
    }

    /// Gives slots up; their entries are deleted from the store.
    fn release(&mut self, slots: &[u32]) -> Result<(), RuntimeError> {
        let is_stored = |slot: &u32| self.flags[*slot as usize] & STORED != 0;
        let stored: Vec<u32> = slots.iter().copied().filter(is_stored).collect();
        if !stored.is_empty() {
            let (vnodes, keys) = self.store_keys(&stored)?;
            let entries = keys.iter().map(Box::from).zip(vnodes);
            self.deleted.extend(entries);
        }
        self.free(slots);
        Ok(())
    }

    fn free(&mut self, slots: &[u32]) {
        for &slot in slots {
            let row = std::mem::replace(&mut self.rows[slot as usize], Row::ABSENT);
            self.images.leave(row.image);
            self.flags[slot as usize] = 0;
        }
        self.keys.remove(slots);
    }

    /// Drops rows that the store has, when there are too many in memory.
    fn evict(&mut self) {
        if self.live_bytes() <= self.memory_budget {
            return;
        }
        let is_clean = |slot: &u32| self.flags[*slot as usize] & (STORED | DIRTY) == STORED;
        let mut clean = self.keys.taken_slots();
        clean.retain(is_clean);
        if clean.len() < self.keys.n_slots() / 16 {
            return;
        }
        self.may_be_stored = true;
        JobMetrics::add(&self.metrics.evicted_keys, clean.len());
        self.free(&clean);
        self.images.compact(&mut self.rows);
    }

    pub fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError> {
        if std::mem::take(&mut self.cleared) {
            self.clearing = true;
            for &vnode in self.vnodes.iter() {
                writes.delete_prefix(self.table, vnode, &[]);
            }
        }
        for (key, vnode) in &self.deleted {
            writes.delete(self.table, *vnode, key);
        }
        std::mem::swap(&mut self.deleting, &mut self.deleted);
        self.deleted.clear();
        let is_dirty = |slot: &u32| self.flags[*slot as usize] & DIRTY != 0;
        let dirty: Vec<u32> = std::mem::take(&mut self.dirty)
            .into_iter()
            .filter(is_dirty)
            .collect();
        let mut value = Vec::new();
        for slots in dirty.chunks(8192) {
            let (vnodes, keys) = self.store_keys(slots)?;
            for (i, &slot) in slots.iter().enumerate() {
                let row = self.rows[slot as usize];
                entry::encode(&row.entry, self.images.get(row.image), &mut value);
                writes.put(self.table, vnodes[i], keys.row(i), &value);
                self.deleting.remove(keys.row(i));
                let flags = &mut self.flags[slot as usize];
                *flags = (*flags & !DIRTY) | STORED;
            }
        }
        Ok(())
    }

    /// Bytes that the keys in memory account for; what evicted ones have left free is used again.
    fn live_bytes(&self) -> usize {
        let per_slot = (self.keys.memory_bytes() + self.rows.capacity() * SLOT_BYTES)
            / self.keys.n_slots().max(1);
        per_slot * self.keys.len() + self.images.live
    }

    pub fn dirty_bytes(&self) -> usize {
        let per_row = self.images.live / self.keys.len().max(1);
        self.dirty.len() * (DIRTY_BYTES_PER_SLOT + per_row)
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.memory_bytes() + self.rows.capacity() * SLOT_BYTES + self.images.bytes.capacity()
    }
}

const SLOT_BYTES: usize = size_of::<Row>() + 1;

/// Images one after another. What is dropped stays where it is until there is more of it than of the rest.
#[derive(Default)]
struct Images {
    bytes: Vec<u8>,
    /// Bytes of images that rows have.
    live: usize,
}

impl Images {
    fn push(&mut self, image: &[u8]) -> Span {
        if image.is_empty() {
            // Nothing lies anywhere, also when others have been moved.
            return Span::default();
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(image);
        Span {
            start,
            len: image.len(),
        }
    }

    fn get(&self, span: Span) -> &[u8] {
        &self.bytes[span.start..span.start + span.len]
    }

    fn keep(&mut self, span: Span) {
        self.live += span.len;
    }

    fn leave(&mut self, span: Span) {
        self.live -= span.len;
    }

    /// Only between epochs: spans that are not in `rows` lose their meaning.
    fn compact(&mut self, rows: &mut [Row]) {
        const MIN: usize = 64 << 10;
        if self.bytes.len() < MIN || self.bytes.len() / 2 < self.live {
            return;
        }
        let mut kept = Vec::with_capacity(self.live);
        for row in rows.iter_mut().filter(|row| row.image.len > 0) {
            let start = kept.len();
            kept.extend_from_slice(self.get(row.image));
            row.image.start = start;
        }
        self.bytes = kept;
    }
}
