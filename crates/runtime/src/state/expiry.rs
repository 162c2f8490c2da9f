//! The index of expiry: which keys may be past their time to live.
//!
//! A key has one entry, in the bucket of the deadline (last seen + ttl) that held when the entry was made; buckets
//! are ttl/64 wide. A key that is seen again leaves its entry where it is: only when the entry comes due
//! is the key looked at, and scheduled anew if it lives. So a hot key costs one entry per ttl, not one per row.
//!
//! The bucket that time is in is held in memory, ordered by deadline; the others stand in the store, under
//! `(table, vnode, bucket, key)` with the deadline as their value. A barrier comes only when the commit before
//! it is in the store, so entries handed over at one commit can be read back at the next barrier.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use crate::error::RuntimeError;

use super::{StateStore, StateWrites, TableId, ordered};

const BUCKETS_PER_TTL: i64 = 64;

pub struct ExpiryIndex {
    table: TableId,
    store: StateStore,
    ttl: i64,
    bucket_width: i64,
    /// Entries whose deadline lies in buckets before `loaded`.
    heap: BinaryHeap<Reverse<Entry>>,
    /// Buckets below this are in the heap; `None` before time is known.
    loaded: Option<i64>,
    /// Entries in later buckets that are not known to be in the store: since the last commit, and of it.
    fresh: BTreeMap<i64, Vec<Entry>>,
    handed_over: BTreeMap<i64, Vec<Entry>>,
    /// Virtual partitions with entries in the store, by bucket.
    stored: BTreeMap<i64, BTreeSet<u8>>,
    writes: StateWrites,
}

/// An entry that was taken out of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Due {
    pub deadline: i64,
    pub vnode: u8,
    /// Key bytes.
    pub key: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    deadline: i64,
    vnode: u8,
    key: Vec<u8>,
}

impl ExpiryIndex {
    /// `ttl` in nanoseconds, above zero.
    pub fn new(table: TableId, ttl: i64, store: StateStore) -> Self {
        Self {
            table,
            store,
            ttl,
            bucket_width: (ttl / BUCKETS_PER_TTL).max(1),
            heap: BinaryHeap::new(),
            loaded: None,
            fresh: BTreeMap::new(),
            handed_over: BTreeMap::new(),
            stored: BTreeMap::new(),
            writes: StateWrites::default(),
        }
    }

    fn bucket(&self, deadline: i64) -> i64 {
        deadline.div_euclid(self.bucket_width)
    }

    /// Makes the entry of a key that has none. `last_seen` in event time, ns.
    pub fn schedule(&mut self, vnode: u8, key: &[u8], last_seen: i64) {
        let deadline = last_seen.saturating_add(self.ttl);
        let entry = Entry {
            deadline,
            vnode,
            key: key.to_vec(),
        };
        let bucket = self.bucket(deadline);
        self.writes.put(
            self.table,
            vnode,
            &entry_key(bucket, key),
            &deadline.to_be_bytes(),
        );
        match self.loaded {
            Some(loaded) if bucket < loaded => self.heap.push(Reverse(entry)),
            _ => self.fresh.entry(bucket).or_default().push(entry),
        }
    }

    /// Takes out the entries whose deadline lies before `now`, in its order: vnode and key bytes. The caller
    /// looks at each key, and schedules those anew that were seen since.
    pub fn due(&mut self, now: i64) -> Result<Vec<(u8, Vec<u8>)>, RuntimeError> {
        let due = self.take_due(now.saturating_sub(1), usize::MAX)?;
        Ok(due.into_iter().map(|d| (d.vnode, d.key)).collect())
    }

    /// Takes out at most `max` entries whose deadline is at or before `until`, in its order. One bucket after the
    /// other comes into memory, so that many due at once do not fill it.
    pub fn take_due(&mut self, until: i64, max: usize) -> Result<Vec<Due>, RuntimeError> {
        self.count_on_the_last_commit();
        let last = self.bucket(until);
        let mut due = Vec::new();
        loop {
            self.take_loaded(until, max, &mut due);
            let next = self
                .fresh
                .keys()
                .next()
                .into_iter()
                .chain(self.stored.keys().next())
                .min()
                .copied();
            match next.filter(|next| *next <= last && due.len() < max) {
                Some(next) => self.load(next)?,
                None if due.len() < max => {
                    self.load(last)?;
                    return Ok(due);
                }
                None => return Ok(due),
            }
        }
    }

    fn take_loaded(&mut self, until: i64, max: usize, due: &mut Vec<Due>) {
        while due.len() < max
            && let Some(Reverse(first)) = self.heap.peek()
            && first.deadline <= until
            && let Some(Reverse(entry)) = self.heap.pop()
        {
            let Entry {
                deadline,
                vnode,
                key,
            } = entry;
            let bucket = self.bucket(deadline);
            self.writes
                .delete(self.table, vnode, &entry_key(bucket, &key));
            due.push(Due {
                deadline,
                vnode,
                key,
            });
        }
    }

    /// Writes an entry again that the one just taken out, of the same bucket, has stood in for in the store.
    pub fn restore(&mut self, taken: &Due, deadline: i64) {
        if self.bucket(taken.deadline) == self.bucket(deadline) {
            let key = entry_key(self.bucket(deadline), &taken.key);
            self.writes
                .put(self.table, taken.vnode, &key, &deadline.to_be_bytes());
        }
    }

    /// Brings all buckets up to this one into the heap.
    fn load(&mut self, bucket: i64) -> Result<(), RuntimeError> {
        self.loaded = Some(
            self.loaded
                .unwrap_or(i64::MIN)
                .max(bucket.saturating_add(1)),
        );
        while let Some(first) = self.fresh.first_entry().filter(|e| *e.key() <= bucket) {
            self.heap.extend(first.remove().into_iter().map(Reverse));
        }
        while let Some(first) = self.stored.first_entry().filter(|e| *e.key() <= bucket) {
            let (stored, vnodes) = first.remove_entry();
            for vnode in vnodes {
                self.load_stored(stored, vnode)?;
            }
        }
        Ok(())
    }

    fn load_stored(&mut self, bucket: i64, vnode: u8) -> Result<(), RuntimeError> {
        let prefix = ordered(bucket);
        let mut entries = self.store.scan(self.table, vnode, &prefix);
        while let Some(entry) = entries.advance()? {
            let deadline = entry
                .value
                .try_into()
                .map(i64::from_be_bytes)
                .map_err(|_| RuntimeError::StateCorrupt {
                    table: "expiry".into(),
                    message: format!("a deadline of {} bytes", entry.value.len()),
                })?;
            let key = entry.key[prefix.len()..].to_vec();
            self.heap.push(Reverse(Entry {
                deadline,
                vnode,
                key,
            }));
        }
        Ok(())
    }

    /// What was handed over before is in the store by now.
    fn count_on_the_last_commit(&mut self) {
        for (bucket, entries) in std::mem::take(&mut self.handed_over) {
            let vnodes = entries.iter().map(|e| e.vnode);
            self.stored.entry(bucket).or_default().extend(vnodes);
        }
    }

    /// Hands over what changed since the last commit.
    pub fn write_changes(&mut self, writes: &mut StateWrites) {
        // Nothing asked for what is due since then, as long as time is not known.
        self.count_on_the_last_commit();
        writes.append(&std::mem::take(&mut self.writes));
        self.handed_over = std::mem::take(&mut self.fresh);
    }

    /// Bytes that no commit has yet.
    pub fn write_bytes(&self) -> usize {
        self.writes.n_bytes()
    }

    pub fn memory_bytes(&self) -> usize {
        let fresh = self
            .fresh
            .values()
            .chain(self.handed_over.values())
            .map(Vec::len)
            .sum::<usize>();
        (self.heap.len() + fresh) * (size_of::<Entry>() + 32) + self.writes.n_bytes()
    }
}

fn entry_key(bucket: i64, key: &[u8]) -> Vec<u8> {
    [&ordered(bucket), key].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::CommitRecord;

    fn commit(index: &mut ExpiryIndex, epoch: u64) {
        let mut writes = StateWrites::default();
        index.write_changes(&mut writes);
        index
            .store
            .commit(
                "test",
                writes,
                &CommitRecord {
                    epoch,
                    splits: vec![],
                },
            )
            .unwrap();
    }

    fn index(dir: &tempfile::TempDir) -> ExpiryIndex {
        ExpiryIndex::new(TableId(7), 6400, StateStore::open(dir.path()).unwrap())
    }

    fn due(index: &mut ExpiryIndex, now: i64) -> Vec<String> {
        index
            .due(now)
            .unwrap()
            .into_iter()
            .map(|(_, key)| String::from_utf8(key).unwrap())
            .collect()
    }

    #[test]
    fn keys_committed_long_before_time_is_known_still_come_due() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = index(&dir);
        index.schedule(0, b"a", 10);
        commit(&mut index, 1);
        commit(&mut index, 2);
        assert_eq!(due(&mut index, 6411), ["a"]);
    }

    #[test]
    fn keys_come_due_strictly_after_their_deadline_in_its_order_committed_or_not() {
        for commits in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let mut index = index(&dir);
            for (i, (key, seen)) in [("b", 20), ("a", 10), ("c", 5000), ("old", -9000)]
                .into_iter()
                .enumerate()
            {
                index.schedule(i as u8, key.as_bytes(), seen);
            }
            if commits {
                commit(&mut index, 1);
            }
            assert_eq!(due(&mut index, 0), ["old"]);
            assert_eq!(due(&mut index, 6410), Vec::<String>::new());
            assert_eq!(due(&mut index, 6421), ["a", "b"]);
            index.schedule(1, b"a", 6000);
            if commits {
                commit(&mut index, 2);
            }
            assert_eq!(due(&mut index, 100_000), ["c", "a"]);
            assert_eq!(due(&mut index, i64::MAX - 1), Vec::<String>::new());
        }
    }

    #[test]
    fn many_entries_come_due_piece_by_piece_and_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = index(&dir);
        // In many buckets, some of them committed.
        (0..50u8).for_each(|i| index.schedule(i, &[i], i64::from(i) * 70));
        commit(&mut index, 1);
        (50..100u8).for_each(|i| index.schedule(i, &[i], i64::from(i) * 70));
        let mut taken = Vec::new();
        loop {
            let due = index.take_due(i64::MAX, 7).unwrap();
            taken.extend(due.iter().map(|d| d.key[0]));
            if due.len() < 7 {
                break;
            }
        }
        assert_eq!(taken, (0..100).collect::<Vec<u8>>());
        assert_eq!(index.take_due(i64::MAX, 7).unwrap(), []);
    }

    #[test]
    fn rule_5_5_what_came_due_leaves_the_store() {
        let dir = tempfile::tempdir().unwrap();
        let mut index = index(&dir);
        (0..100u8).for_each(|i| index.schedule(i, &[i], i64::from(i)));
        commit(&mut index, 1);
        assert_eq!(index.due(1_000_000).unwrap().len(), 100);
        commit(&mut index, 2);
        assert!(
            index
                .store
                .scan_table(TableId(7))
                .advance()
                .unwrap()
                .is_none()
        );
    }
}
