//! What a commit writes, gathered by each subtask on its own.

use std::ops::Range;

use super::TableId;

/// Puts and deletes of one or several subtasks, already in the form in which RocksDB takes a batch.
///
/// A subtask appends to its own; the coordinator joins them and writes all at once. The records are
/// those of a RocksDB write batch, which its log stores as well and which are therefore stable: a type
/// byte, then key and value, each preceded by its length as a varint.
#[derive(Debug, Default)]
pub struct StateWrites {
    records: Vec<u8>,
    /// Where each record begins.
    starts: Vec<usize>,
}

const DELETE: u8 = 0x00;
const PUT: u8 = 0x01;
const DELETE_RANGE: u8 = 0x0f;

/// Bytes before the first record of a batch: a sequence number (8), left to RocksDB, and a count (4).
const HEADER: usize = 12;

impl StateWrites {
    pub fn put(&mut self, table: TableId, vnode: u8, key: &[u8], value: &[u8]) {
        self.start(PUT);
        self.key(table, vnode, key);
        self.bytes(&[value]);
    }

    pub fn delete(&mut self, table: TableId, vnode: u8, key: &[u8]) {
        self.start(DELETE);
        self.key(table, vnode, key);
    }

    /// Deletes every key of the vnode that starts with `prefix`. Costs later reads more than single
    /// deletions do, and is for what is too much to name.
    ///
    /// `prefix` is whole key bytes, so that it is never the last of its kind: their first byte is 0 or
    /// 1, and incrementing the last byte that is not 255 gives the range's end.
    pub fn delete_prefix(&mut self, table: TableId, vnode: u8, prefix: &[u8]) {
        self.delete_prefixes(table, vnode, prefix, prefix);
    }

    /// As [`delete_prefix`](Self::delete_prefix), for all prefixes from `first` to `last`.
    pub fn delete_prefixes(&mut self, table: TableId, vnode: u8, first: &[u8], last: &[u8]) {
        self.start(DELETE_RANGE);
        self.key(table, vnode, first);
        let end = successor(&store_key(table, vnode, last));
        self.bytes(&[&end]);
    }

    /// Adds the writes of another subtask.
    pub fn append(&mut self, other: &Self) {
        let offset = self.records.len();
        self.records.extend_from_slice(&other.records);
        self.starts
            .extend(other.starts.iter().map(|start| start + offset));
    }

    /// How many puts and deletes there are.
    pub fn n_writes(&self) -> usize {
        self.starts.len()
    }

    pub fn n_bytes(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The records in the order of their keys, as far as no deletion of a range stands between them. RocksDB's
    /// memory table takes a sorted batch several times faster than one in any order, for each insertion
    /// begins where the last one ended; records of one key keep their order.
    pub(super) fn into_batch(self) -> rocksdb::WriteBatch {
        let n_records =
            u32::try_from(self.starts.len()).expect("a commit has below 4 billion records");
        let mut data = Vec::with_capacity(HEADER + self.records.len());
        data.extend_from_slice(&0u64.to_le_bytes());
        data.extend_from_slice(&n_records.to_le_bytes());
        let mut first = 0;
        while first < self.starts.len() {
            let rest = &self.starts[first..];
            let is_range = |start: &usize| self.records[*start] == DELETE_RANGE;
            let n = rest.iter().position(is_range).unwrap_or(rest.len());
            self.copy_sorted(first..first + n, &mut data);
            if let Some(&start) = rest.get(n) {
                data.extend_from_slice(&self.records[start..self.end(first + n)]);
            }
            first += n + 1;
        }
        rocksdb::WriteBatch::from_data(&data)
    }

    fn copy_sorted(&self, records: Range<usize>, data: &mut Vec<u8>) {
        // Most keys differ in their first bytes, which compare as one number.
        let mut order: Vec<(u128, u32)> = records
            .map(|i| (leading(self.key_of(i)), i as u32))
            .collect();
        order.sort_unstable_by(|a, b| {
            let by_key = || self.key_of(a.1 as usize).cmp(self.key_of(b.1 as usize));
            a.0.cmp(&b.0).then_with(by_key).then(a.1.cmp(&b.1))
        });
        for (_, i) in order {
            data.extend_from_slice(&self.records[self.starts[i as usize]..self.end(i as usize)]);
        }
    }

    fn end(&self, record: usize) -> usize {
        self.starts
            .get(record + 1)
            .copied()
            .unwrap_or(self.records.len())
    }

    /// The store key of a record.
    fn key_of(&self, record: usize) -> &[u8] {
        let mut at = self.starts[record] + 1;
        let (mut len, mut shift) = (0, 0);
        loop {
            let byte = self.records[at];
            at += 1;
            len |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return &self.records[at..at + len];
            }
        }
    }

    fn start(&mut self, record: u8) {
        self.starts.push(self.records.len());
        self.records.push(record);
    }

    fn key(&mut self, table: TableId, vnode: u8, key: &[u8]) {
        self.bytes(&[&table.0.to_be_bytes(), &[vnode], key]);
    }

    fn bytes(&mut self, parts: &[&[u8]]) {
        let mut len = parts.iter().map(|p| p.len()).sum::<usize>();
        assert!(
            u32::try_from(len).is_ok(),
            "a key or value of state is below 4 GiB"
        );
        while len >= 0x80 {
            self.records.push(len as u8 | 0x80);
            len >>= 7;
        }
        self.records.push(len as u8);
        parts
            .iter()
            .for_each(|part| self.records.extend_from_slice(part));
    }
}

/// The first 16 bytes as a number that sorts as they do; what a shorter key lacks counts as zeros.
fn leading(key: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let n = key.len().min(16);
    bytes[..n].copy_from_slice(&key[..n]);
    u128::from_be_bytes(bytes)
}

/// Eight bytes that sort as the number does.
pub(crate) fn ordered(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}

/// The key under which the store keeps an entry.
pub(super) fn store_key(table: TableId, vnode: u8, key: &[u8]) -> Vec<u8> {
    [&table.0.to_be_bytes()[..], &[vnode], key].concat()
}

/// The first key after all that start with `prefix`, which is not empty and not all 255.
pub(super) fn successor(prefix: &[u8]) -> Vec<u8> {
    let last = prefix
        .iter()
        .rposition(|&b| b != u8::MAX)
        .expect("a prefix begins with a table");
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl rocksdb::WriteBatchIterator for Seen {
        fn put(&mut self, key: &[u8], value: &[u8]) {
            self.0.push(format!("put {key:?} {}", value.len()));
        }

        fn delete(&mut self, key: &[u8]) {
            self.0.push(format!("delete {key:?}"));
        }
    }

    #[test]
    fn a_batch_is_sorted_by_key_and_keeps_the_order_of_one_keys_records() {
        let mut writes = StateWrites::default();
        for key in [
            "b",
            "a",
            "a long key that shares sixteen bytes 2",
            "a long key that shares sixteen bytes 1",
        ] {
            writes.put(TableId(1), 0, key.as_bytes(), b"");
        }
        writes.delete(TableId(1), 0, b"b");
        let mut seen = Seen::default();
        writes.into_batch().iterate(&mut seen);
        let kind = |s: &String| s.split(' ').next().unwrap_or_default().to_string();
        let kinds: Vec<String> = seen.0.iter().map(kind).collect();
        assert_eq!(
            kinds,
            ["put", "put", "put", "put", "delete"],
            "{:?}",
            seen.0
        );
        assert!(seen.0[1] < seen.0[2], "{:?}", seen.0);
    }

    #[test]
    fn what_is_put_behind_a_deletion_of_its_range_stays() {
        let dir = tempfile::tempdir().unwrap();
        let store = crate::state::StateStore::open(dir.path()).unwrap();
        let mut writes = StateWrites::default();
        writes.put(TableId(1), 0, b"\x01z2", b"");
        writes.delete_prefix(TableId(1), 0, b"\x01z");
        writes.put(TableId(1), 0, b"\x01z1", b"");
        let record = crate::state::CommitRecord {
            epoch: 1,
            splits: vec![],
        };
        store.commit("test", writes, &record).unwrap();
        let has = |key: &[u8]| store.get(TableId(1), 0, key).unwrap().is_some();
        assert!(has(b"\x01z1") && !has(b"\x01z2"));
    }

    #[test]
    fn rocksdb_reads_the_records_back() {
        let mut one = StateWrites::default();
        one.put(TableId(7), 255, b"a", &[1; 300]);
        let mut two = StateWrites::default();
        two.delete(TableId(258), 0, b"");
        one.append(&two);
        assert_eq!((one.n_writes(), one.n_bytes()), (2, 1 + 7 + 302 + 1 + 6));

        let mut seen = Seen::default();
        let batch = one.into_batch();
        batch.iterate(&mut seen);
        assert_eq!(
            seen.0,
            ["put [0, 0, 0, 7, 255, 97] 300", "delete [0, 0, 1, 2, 0]"]
        );
        assert_eq!(batch.len(), 2);
    }

    #[test]
    fn a_successor_carries() {
        assert_eq!(successor(&[1, 2]), [1, 3]);
        assert_eq!(successor(&[0, 255, 255]), [1]);
    }
}
