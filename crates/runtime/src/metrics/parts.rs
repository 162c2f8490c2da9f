//! Counters of the parts of a job: its tables, the splits of its sources, its operators.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

/// A table that the job reads or writes.
#[derive(Debug, Default)]
pub struct TableMetrics {
    /// Records read and accepted.
    pub rows_in: AtomicU64,
    pub bytes_in: AtomicU64,
    /// Rows or changes written.
    pub rows_out: AtomicU64,
    pub bytes_out: AtomicU64,
}

/// A split that is being read, as it was at the last cut.
#[derive(Debug)]
pub struct SplitMetrics {
    /// Event time, ns; `i64::MIN` before its first row.
    watermark: AtomicI64,
    idle: AtomicBool,
}

impl Default for SplitMetrics {
    fn default() -> Self {
        Self {
            watermark: AtomicI64::new(i64::MIN),
            idle: AtomicBool::new(false),
        }
    }
}

impl SplitMetrics {
    pub fn set(&self, watermark: Option<i64>, idle: bool) {
        self.watermark.store(watermark.unwrap_or(i64::MIN), Relaxed);
        self.idle.store(idle, Relaxed);
    }

    /// Event time, ns.
    pub fn watermark(&self) -> Option<i64> {
        Some(self.watermark.load(Relaxed)).filter(|w| *w != i64::MIN)
    }

    pub fn is_idle(&self) -> bool {
        self.idle.load(Relaxed)
    }
}

/// An operator in one subtask.
#[derive(Debug, Default)]
pub struct OperatorMetrics {
    /// Of the plan, as EXPLAIN numbers it.
    pub node: usize,
    pub name: String,
    pub subtask: usize,
    pub rows_in: AtomicU64,
    pub rows_out: AtomicU64,
    busy_nanos: AtomicU64,
    blocked_nanos: AtomicU64,
}

impl OperatorMetrics {
    pub fn new(node: usize, name: &str, subtask: usize) -> Self {
        Self {
            node,
            name: name.to_string(),
            subtask,
            ..Self::default()
        }
    }

    /// Does `work` on the operator's account.
    pub fn busy<T>(&self, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        add(&self.busy_nanos, began.elapsed());
        result
    }

    /// Its task has waited so long for room downstream.
    pub fn was_blocked(&self, waited: Duration) {
        add(&self.blocked_nanos, waited);
    }

    /// Time spent in the operator itself, seconds.
    pub fn busy_secs(&self) -> f64 {
        self.busy_nanos.load(Relaxed) as f64 / 1e9
    }

    /// Time that its task has waited for room downstream, seconds.
    pub fn blocked_secs(&self) -> f64 {
        self.blocked_nanos.load(Relaxed) as f64 / 1e9
    }
}

fn add(counter: &AtomicU64, time: Duration) {
    counter.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}
