//! How much an epoch may take in before it is cut, shared by all source subtasks of a job.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use thalweg_dataflow::plan::JobSettings;
use tokio::sync::Notify;

/// Two epochs are open at most: one being cut, and the next.
pub struct EpochBudget {
    max_rows: Option<i64>,
    max_bytes: i64,
    rows: [AtomicI64; 2],
    bytes: [AtomicI64; 2],
    /// The latest epoch that a source has found full.
    full: AtomicU64,
    exhausted: Notify,
    first_row: Notify,
    has_rows: AtomicBool,
}

impl EpochBudget {
    pub fn new(settings: &JobSettings) -> Self {
        // At flush interval 0 every source row is an epoch of its own (semantics 4.2).
        let max_rows = if settings.flush_interval == 0 {
            Some(1)
        } else {
            settings.epoch_max_rows
        };
        let max_rows = max_rows.map(|n| i64::try_from(n).unwrap_or(i64::MAX).max(1));
        let max_bytes = i64::try_from(settings.epoch_max_bytes)
            .unwrap_or(i64::MAX)
            .max(1);
        let budget = Self {
            max_rows,
            max_bytes,
            rows: Default::default(),
            bytes: Default::default(),
            full: AtomicU64::new(0),
            exhausted: Notify::new(),
            first_row: Notify::new(),
            has_rows: AtomicBool::new(false),
        };
        budget.reset(0);
        budget.reset(1);
        budget
    }

    /// Makes room for `epoch`; called before any source may be in it.
    pub fn reset(&self, epoch: u64) {
        let i = (epoch % 2) as usize;
        self.rows[i].store(self.max_rows.unwrap_or(i64::MAX), Ordering::Release);
        self.bytes[i].store(self.max_bytes, Ordering::Release);
    }

    /// Rows of `epoch` that the caller may read, at most `want`. 0: the epoch is full and will be cut.
    pub fn acquire(&self, epoch: u64, want: usize) -> usize {
        let i = (epoch % 2) as usize;
        let granted = if self.bytes[i].load(Ordering::Acquire) <= 0 {
            0
        } else if self.max_rows.is_none() {
            want
        } else {
            let take = |left: i64| (left > 0).then(|| left - left.min(want as i64));
            match self.rows[i].fetch_update(Ordering::AcqRel, Ordering::Acquire, take) {
                Ok(left) => left.min(want as i64) as usize,
                Err(_) => 0,
            }
        };
        if granted == 0 {
            self.full.fetch_max(epoch, Ordering::AcqRel);
            self.exhausted.notify_one();
        }
        granted
    }

    /// Gives back what a read did not use, and counts what it used.
    pub fn settle(&self, epoch: u64, granted: usize, used: usize, bytes: u64) {
        let i = (epoch % 2) as usize;
        if self.max_rows.is_some() && granted > used {
            self.rows[i].fetch_add((granted - used) as i64, Ordering::AcqRel);
        }
        self.bytes[i].fetch_sub(bytes as i64, Ordering::AcqRel);
        if used > 0 && !self.has_rows.swap(true, Ordering::AcqRel) {
            self.first_row.notify_one();
        }
    }

    /// Waits until a source has found `epoch` full. One that finds an earlier epoch full, because its cut is
    /// still on the way to it, says nothing of this one.
    pub async fn exhausted(&self, epoch: u64) {
        while self.full.load(Ordering::Acquire) < epoch {
            self.exhausted.notified().await;
        }
    }

    /// Waits for the first row of the job.
    pub async fn first_row(&self) {
        self.first_row.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_exactly_its_rows_and_the_next_begins_anew() {
        let settings = JobSettings {
            epoch_max_rows: Some(10),
            ..JobSettings::default()
        };
        let budget = EpochBudget::new(&settings);
        assert_eq!(budget.acquire(1, 8), 8);
        budget.settle(1, 8, 5, 100);
        assert_eq!(budget.acquire(1, 8), 5);
        assert_eq!(budget.acquire(1, 8), 0);
        assert_eq!(budget.acquire(2, 8), 8);
        budget.reset(3);
        assert_eq!(budget.acquire(3, 100), 10);
    }

    #[tokio::test]
    async fn an_epoch_that_was_full_before_does_not_end_the_next() {
        let settings = JobSettings {
            epoch_max_rows: Some(1),
            ..JobSettings::default()
        };
        let budget = EpochBudget::new(&settings);
        assert_eq!((budget.acquire(1, 1), budget.acquire(1, 1)), (1, 0));
        budget.exhausted(1).await;
        assert_eq!(
            budget.acquire(1, 1),
            0,
            "another subtask, before the cut has reached it"
        );
        let next = tokio::time::timeout(std::time::Duration::from_millis(1), budget.exhausted(2));
        assert!(next.await.is_err());
    }

    #[test]
    fn flush_interval_zero_is_one_row_an_epoch() {
        let budget = EpochBudget::new(&JobSettings {
            flush_interval: 0,
            ..JobSettings::default()
        });
        assert_eq!((budget.acquire(1, 100), budget.acquire(1, 100)), (1, 0));
    }
}
