//! Counters of a running job, written by its tasks and read by whoever watches it.

mod histogram;
mod parts;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::connector::BadReason;

pub use histogram::Durations;
pub use parts::{OperatorMetrics, SplitMetrics, TableMetrics};

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
    /// From the call for a barrier until every task has passed it.
    pub epoch_time: Durations,
    /// Of the atomic write that commits an epoch.
    pub commit_time: Durations,
    tables: Mutex<BTreeMap<String, Arc<TableMetrics>>>,
    splits: Mutex<BTreeMap<(String, String), Arc<SplitMetrics>>>,
    operators: Mutex<Vec<Arc<OperatorMetrics>>>,
    bad: Mutex<BTreeMap<(String, BadReason), u64>>,
}

impl JobMetrics {
    pub fn add(counter: &AtomicU64, n: usize) {
        counter.fetch_add(n as u64, Ordering::Relaxed);
    }

    /// The counters of a table, new at the first call.
    pub fn table(&self, name: &str) -> Arc<TableMetrics> {
        lock(&self.tables)
            .entry(name.to_string())
            .or_default()
            .clone()
    }

    pub fn tables(&self) -> BTreeMap<String, Arc<TableMetrics>> {
        lock(&self.tables).clone()
    }

    /// What is known of a split that is being read, by table and split.
    pub fn split(&self, table: &str, split: &str) -> Arc<SplitMetrics> {
        let key = (table.to_string(), split.to_string());
        lock(&self.splits).entry(key).or_default().clone()
    }

    /// A split that was read to its end is no longer of interest.
    pub fn end_split(&self, table: &str, split: &str) {
        lock(&self.splits).remove(&(table.to_string(), split.to_string()));
    }

    pub fn splits(&self) -> BTreeMap<(String, String), Arc<SplitMetrics>> {
        lock(&self.splits).clone()
    }

    pub fn operator(&self, node: usize, name: &str, subtask: usize) -> Arc<OperatorMetrics> {
        let operator = Arc::new(OperatorMetrics::new(node, name, subtask));
        lock(&self.operators).push(operator.clone());
        operator
    }

    pub fn operators(&self) -> Vec<Arc<OperatorMetrics>> {
        lock(&self.operators).clone()
    }

    pub fn count_bad(&self, table: &str, reason: BadReason) {
        *lock(&self.bad)
            .entry((table.to_string(), reason))
            .or_default() += 1;
    }

    /// Records rejected so far, by table and reason.
    pub fn bad_records(&self) -> BTreeMap<(String, BadReason), u64> {
        lock(&self.bad).clone()
    }
}

/// Counters are worth reading even when a task has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
