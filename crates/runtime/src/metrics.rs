//! Counters of a running job, written by its tasks and read by whoever watches it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::connector::BadReason;

#[derive(Debug, Default)]
pub struct JobMetrics {
    /// Records read and accepted.
    pub rows_in: AtomicU64,
    /// Bytes read from outside.
    pub bytes_in: AtomicU64,
    /// Bytes there are to read in all, where every source knows; 0: unknown.
    pub bytes_total: AtomicU64,
    /// Rows or changes written to sinks.
    pub rows_out: AtomicU64,
    /// Rows that came after a window they belong to had closed (semantics 3.5).
    pub late_rows: AtomicU64,
    /// Keys whose state was removed by its time to live.
    pub expired_keys: AtomicU64,
    /// Changes that concerned rows which had expired, counted and dropped.
    pub dropped_changes: AtomicU64,
    /// Records of a keyed changelog that changed nothing: reads of a snapshot that is older than the row, deletions
    /// of rows that are not there.
    pub unapplied_changes: AtomicU64,
    /// Records that were gone before they could be read, as far as their number is known.
    pub lost_records: AtomicU64,
    /// Epochs that every task has completed.
    pub epochs: AtomicU64,
    /// Epochs that were committed to the state store.
    pub commits: AtomicU64,
    /// Bytes handed to the state store.
    pub bytes_committed: AtomicU64,
    /// Keys put or deleted in the state store.
    pub keys_committed: AtomicU64,
    /// Bytes of state in memory after the last epoch.
    pub state_bytes: AtomicI64,
    /// Keys whose decoded state was dropped from memory, to be read again when needed.
    pub evicted_keys: AtomicU64,
    /// Every source has come to its end.
    pub finished: AtomicBool,
    bad: Mutex<BTreeMap<(String, BadReason), u64>>,
}

impl JobMetrics {
    pub fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }

    pub fn count_bad(&self, table: &str, reason: BadReason) {
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        *bad.entry((table.to_string(), reason)).or_default() += 1;
    }

    /// Records rejected so far, by table and reason.
    pub fn bad_records(&self) -> BTreeMap<(String, BadReason), u64> {
        self.bad
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}
