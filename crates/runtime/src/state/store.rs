//! The state of one data directory, in RocksDB.
//!
//! Keys are `(table: u32 BE, vnode: u8, key bytes)`. Table 0 holds what belongs to the whole: the
//! format version, and for each domain the epoch that it last committed, with offsets and watermarks.
//! Everything that an epoch changes is written in one atomic batch. The layout is described byte by
//! byte in `docs/state-format.md`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rocksdb::statistics::{StatsLevel, Ticker};
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, DB, DBPinnableSlice, DBRawIterator, Options,
    ReadOptions, WriteOptions,
};
use serde::{Deserialize, Serialize};

use super::keys::KEY_FORMAT_VERSION;
use super::values::VALUE_FORMAT_VERSION;
use super::writes::{StateWrites, store_key, successor};
use crate::error::RuntimeError;

/// Names the entries of one operator, or of one index of it. 0 is the store's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub u32);

const META: TableId = TableId(0);
const FORMAT_KEY: &[u8] = b"format";

/// Versions of everything that the bytes of a state directory depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Format {
    layout: u8,
    keys: u8,
    values: u8,
    hash: u8,
}

const FORMAT: Format = Format {
    layout: 1,
    keys: KEY_FORMAT_VERSION,
    values: VALUE_FORMAT_VERSION,
    hash: 1,
};

/// What a commit records besides the state itself: enough to go on after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitRecord {
    pub epoch: u64,
    pub splits: Vec<SplitPosition>,
}

/// How far a split had been read when its epoch ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPosition {
    /// The source's node in the plan.
    pub source: usize,
    pub split: String,
    /// In the connector's own encoding.
    pub offset: Vec<u8>,
    /// Nanoseconds since the UTC epoch; `None` before the first row, `i64::MAX` after the last.
    pub watermark: Option<i64>,
}

/// Sizes for metrics, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Estimate of what is live, in files and in memory tables.
    pub live_bytes: u64,
    /// Files on disk, the log not included.
    pub file_bytes: u64,
    /// Memory tables and block cache.
    pub memory_bytes: u64,
    /// Written by commits since the store was opened: keys and values.
    pub committed_bytes: u64,
    /// Written to disk since the store was opened: log, flushes and compactions.
    pub disk_written_bytes: u64,
}

/// A cheap handle; the directory is locked as long as one exists.
#[derive(Clone)]
pub struct StateStore {
    inner: Arc<Inner>,
}

struct Inner {
    db: DB,
    options: Options,
    path: PathBuf,
}

impl StateStore {
    /// Opens the state in `dir`, which is created where it does not exist.
    ///
    /// Errors: `StateLocked` while another process has it open, `StateVersion` when an incompatible
    /// version of Thalweg wrote it, `State` for everything that RocksDB reports.
    pub fn open(dir: &Path) -> Result<Self, RuntimeError> {
        let options = options();
        let db =
            DB::open_cf(&options, dir, ["default"]).map_err(|source| open_error(dir, source))?;
        let store = Self {
            inner: Arc::new(Inner {
                db,
                options,
                path: dir.to_path_buf(),
            }),
        };
        store.check_format()?;
        Ok(store)
    }

    fn check_format(&self) -> Result<(), RuntimeError> {
        let key = store_key(META, 0, FORMAT_KEY);
        match self.get(META, 0, FORMAT_KEY)? {
            Some(bytes) if serde_json::from_slice::<Format>(&bytes).is_ok_and(|f| f == FORMAT) => {
                Ok(())
            }
            Some(bytes) => Err(self.wrong_version(&String::from_utf8_lossy(&bytes))),
            None if self.is_empty()? => {
                let bytes = serde_json::to_vec(&FORMAT).expect("a few numbers");
                self.inner
                    .db
                    .put(key, bytes)
                    .map_err(|source| self.error(source))
            }
            None => Err(self.wrong_version("no version")),
        }
    }

    fn is_empty(&self) -> Result<bool, RuntimeError> {
        let mut entries = self.inner.db.raw_iterator();
        entries.seek_to_first();
        entries.status().map_err(|source| self.error(source))?;
        Ok(!entries.valid())
    }

    fn wrong_version(&self, found: &str) -> RuntimeError {
        RuntimeError::StateVersion {
            path: self.inner.path.display().to_string(),
            found: found.into(),
            expected: serde_json::to_string(&FORMAT).expect("a few numbers"),
        }
    }

    fn error(&self, source: rocksdb::Error) -> RuntimeError {
        RuntimeError::State {
            path: self.inner.path.display().to_string(),
            source,
        }
    }

    pub fn get(
        &self,
        table: TableId,
        vnode: u8,
        key: &[u8],
    ) -> Result<Option<Vec<u8>>, RuntimeError> {
        self.inner
            .db
            .get(store_key(table, vnode, key))
            .map_err(|source| self.error(source))
    }

    /// Looks many keys of one table up at once, in any order, and calls `found` with the position of
    /// each and its value, if there is one.
    pub fn multi_get<'a>(
        &self,
        table: TableId,
        keys: impl IntoIterator<Item = (u8, &'a [u8])>,
        mut found: impl FnMut(usize, Option<&[u8]>) -> Result<(), RuntimeError>,
    ) -> Result<(), RuntimeError> {
        let mut keys: Vec<(Vec<u8>, usize)> = keys
            .into_iter()
            .enumerate()
            .map(|(i, (vnode, key))| (store_key(table, vnode, key), i))
            .collect();
        keys.sort_unstable();
        for chunk in keys.chunks(MULTI_GET_KEYS) {
            let values = self.inner.db.batched_multi_get_cf(
                self.default_family(),
                chunk.iter().map(|(key, _)| key.as_slice()),
                true,
            );
            for ((_, i), value) in chunk.iter().zip(values) {
                let value: Option<DBPinnableSlice> = value.map_err(|source| self.error(source))?;
                found(*i, value.as_deref())?;
            }
        }
        Ok(())
    }

    fn default_family(&self) -> &ColumnFamily {
        self.inner
            .db
            .cf_handle("default")
            .expect("opened with the store")
    }

    /// The entries of one vnode whose keys start with `prefix`, in the order of their keys.
    pub fn scan(&self, table: TableId, vnode: u8, prefix: &[u8]) -> Scan<'_> {
        Scan::new(self, &store_key(table, vnode, prefix))
    }

    /// As [`scan`](Self::scan), from behind `after` on: a whole key that starts with the prefix.
    pub fn scan_after(&self, table: TableId, vnode: u8, prefix: &[u8], after: &[u8]) -> Scan<'_> {
        let prefix = store_key(table, vnode, prefix);
        // No key is a prefix of another, so nothing lies between a key and its extension by a zero.
        let mut from = store_key(table, vnode, after);
        from.push(0);
        Scan::between(self, from, &prefix)
    }

    /// All entries of a table, by vnode and key.
    pub fn scan_table(&self, table: TableId) -> Scan<'_> {
        Scan::new(self, &table.0.to_be_bytes())
    }

    /// Writes the state of an epoch and what belongs to it, all or nothing. Survives a crash of the
    /// process; for one of the machine see [`sync`](Self::sync).
    pub fn commit(
        &self,
        domain: &str,
        mut writes: StateWrites,
        record: &CommitRecord,
    ) -> Result<(), RuntimeError> {
        let bytes = serde_json::to_vec(record).expect("numbers, strings and bytes");
        writes.put(META, 0, &commit_key(domain), &bytes);
        let options = WriteOptions::default();
        let written = self.inner.db.write_opt(writes.into_batch(), &options);
        written.map_err(|source| self.error(source))
    }

    /// What the last commit of a domain recorded; `None` before the first.
    pub fn last_commit(&self, domain: &str) -> Result<Option<CommitRecord>, RuntimeError> {
        let Some(bytes) = self.get(META, 0, &commit_key(domain))? else {
            return Ok(None);
        };
        let record =
            serde_json::from_slice(&bytes).map_err(|error| RuntimeError::StateCorrupt {
                table: "commits".into(),
                message: error.to_string(),
            })?;
        Ok(Some(record))
    }

    /// Makes everything committed so far survive a crash of the machine.
    pub fn sync(&self) -> Result<(), RuntimeError> {
        self.inner
            .db
            .flush_wal(true)
            .map_err(|source| self.error(source))
    }

    pub fn stats(&self) -> StoreStats {
        let property = |name: &str| {
            self.inner
                .db
                .property_int_value(name)
                .ok()
                .flatten()
                .unwrap_or_default()
        };
        let ticker = |ticker| self.inner.options.get_ticker_count(ticker);
        let tables = property("rocksdb.cur-size-all-mem-tables");
        StoreStats {
            live_bytes: property("rocksdb.estimate-live-data-size") + tables,
            file_bytes: property("rocksdb.total-sst-files-size"),
            memory_bytes: tables + property("rocksdb.block-cache-usage"),
            committed_bytes: ticker(Ticker::BytesWritten),
            disk_written_bytes: ticker(Ticker::WalFileBytes)
                + ticker(Ticker::FlushWriteBytes)
                + ticker(Ticker::CompactWriteBytes),
        }
    }
}

/// Keys in one call to RocksDB: it keeps them on its stack.
const MULTI_GET_KEYS: usize = 1024;

fn commit_key(domain: &str) -> Vec<u8> {
    [b"commit/", domain.as_bytes()].concat()
}

fn open_error(dir: &Path, source: rocksdb::Error) -> RuntimeError {
    let path = dir.display().to_string();
    // RocksDB says so only in its message: "IO error: While lock file: …/LOCK: Resource temporarily
    // unavailable", or "lock hold by current process".
    match source.kind() {
        rocksdb::ErrorKind::IOError if source.as_ref().to_lowercase().contains("lock") => {
            RuntimeError::StateLocked { path }
        }
        _ => RuntimeError::State { path, source },
    }
}

/// Tuned for point look-ups and for entries that are overwritten again and again: large memory tables,
/// of which two are merged into one file, let most overwrites disappear before they reach the disk.
fn options() -> Options {
    const MIB: usize = 1 << 20;
    let mut options = Options::default();
    options.create_if_missing(true);
    options.set_write_buffer_size(64 * MIB);
    options.set_max_write_buffer_number(4);
    options.set_min_write_buffer_number_to_merge(2);
    options.set_memtable_whole_key_filtering(true);
    options.set_memtable_prefix_bloom_ratio(0.02);
    options.set_compression_type(rocksdb::DBCompressionType::Lz4);
    options.set_max_background_jobs(2);
    options.set_bytes_per_sync(MIB as u64);
    options.set_keep_log_file_num(2);
    options.set_log_level(rocksdb::LogLevel::Warn);
    options.enable_statistics();
    options.set_statistics_level(StatsLevel::ExceptHistogramOrTimers);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_lru_cache(64 * MIB));
    blocks.set_bloom_filter(10.0, false);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    options.set_block_based_table_factory(&blocks);
    options
}

/// A cursor over entries in key order.
pub struct Scan<'a> {
    store: &'a StateStore,
    entries: DBRawIterator<'a>,
    is_started: bool,
}

/// An entry that a [`Scan`] is at.
pub struct ScanEntry<'a> {
    pub vnode: u8,
    /// The key bytes, without table and vnode.
    pub key: &'a [u8],
    pub value: &'a [u8],
}

impl<'a> Scan<'a> {
    fn new(store: &'a StateStore, prefix: &[u8]) -> Self {
        Self::between(store, prefix.to_vec(), prefix)
    }

    fn between(store: &'a StateStore, from: Vec<u8>, prefix: &[u8]) -> Self {
        let mut options = ReadOptions::default();
        options.set_iterate_lower_bound(from);
        options.set_iterate_upper_bound(successor(prefix));
        let mut entries = store.inner.db.raw_iterator_opt(options);
        entries.seek_to_first();
        Self {
            store,
            entries,
            is_started: false,
        }
    }

    /// Moves to the next entry: at first the first one.
    pub fn advance(&mut self) -> Result<Option<ScanEntry<'_>>, RuntimeError> {
        if std::mem::replace(&mut self.is_started, true) && self.entries.valid() {
            self.entries.next();
        }
        self.entry()
    }

    /// Goes on behind the entry of this key, whether there is one or not.
    pub fn seek_behind(&mut self, table: TableId, vnode: u8, key: &[u8]) {
        let key = store_key(table, vnode, key);
        self.entries.seek(&key);
        // The first call of `advance` stays where the cursor is.
        if self.entries.key() == Some(&key[..]) {
            self.entries.next();
        }
        self.is_started = false;
    }

    /// Moves to the last entry.
    pub fn last(&mut self) -> Result<Option<ScanEntry<'_>>, RuntimeError> {
        self.is_started = true;
        self.entries.seek_to_last();
        self.entry()
    }

    /// Moves to the entry before, from the last one on backwards.
    pub fn previous(&mut self) -> Result<Option<ScanEntry<'_>>, RuntimeError> {
        if self.entries.valid() {
            self.entries.prev();
        }
        self.entry()
    }

    fn entry(&self) -> Result<Option<ScanEntry<'_>>, RuntimeError> {
        self.entries
            .status()
            .map_err(|source| self.store.error(source))?;
        let Some((key, value)) = self.entries.item() else {
            return Ok(None);
        };
        Ok(Some(ScanEntry {
            vnode: key[4],
            key: &key[5..],
            value,
        }))
    }
}

#[cfg(test)]
mod tests;
