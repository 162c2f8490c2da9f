//! What a commit writes, gathered by each subtask on its own.

use super::TableId;

/// Puts and deletes of one or several subtasks, already in the form in which RocksDB takes a batch.
///
/// A subtask appends to its own; the coordinator joins them and writes all at once. The records are
/// those of a RocksDB write batch, which its log stores as well and which are therefore stable: a type
/// byte, then key and value, each preceded by its length as a varint.
#[derive(Debug, Default)]
pub struct StateWrites {
    records: Vec<u8>,
    n_records: u32,
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
        self.start(DELETE_RANGE);
        self.key(table, vnode, prefix);
        let end = successor(&store_key(table, vnode, prefix));
        self.bytes(&[&end]);
    }

    /// Adds the writes of another subtask.
    pub fn append(&mut self, other: &Self) {
        self.records.extend_from_slice(&other.records);
        self.n_records += other.n_records;
    }

    /// How many puts and deletes there are.
    pub fn n_writes(&self) -> usize {
        self.n_records as usize
    }

    pub fn n_bytes(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.n_records == 0
    }

    pub(super) fn into_batch(self) -> rocksdb::WriteBatch {
        let mut data = Vec::with_capacity(HEADER + self.records.len());
        data.extend_from_slice(&0u64.to_le_bytes());
        data.extend_from_slice(&self.n_records.to_le_bytes());
        data.extend_from_slice(&self.records);
        rocksdb::WriteBatch::from_data(&data)
    }

    fn start(&mut self, record: u8) {
        self.n_records += 1;
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
