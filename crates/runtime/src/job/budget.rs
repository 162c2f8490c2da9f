//! How much an epoch may take in before it is cut, shared by all source subtasks of a job.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use thalweg_dataflow::plan::JobSettings;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Two epochs are open at most: one being cut, and the next.
pub struct EpochBudget {
    max_rows: Option<u64>,
    max_bytes: i64,
    /// Source subtasks that share it.
    n_sources: u64,
    rooms: Mutex<[Room; 2]>,
    /// The latest epoch that has been found full.
    full: AtomicU64,
    exhausted: Notify,
    freed: Notify,
    first_row: Notify,
    has_rows: AtomicBool,
}

/// What an epoch can still take.
#[derive(Clone, Copy)]
struct Room {
    rows: u64,
    bytes: i64,
    /// Rows granted to reads that are under way.
    granted: u64,
}

/// The answer to a source that wants to read.
#[derive(Debug, PartialEq, Eq)]
pub enum Grant {
    /// At most so many rows.
    Rows(usize),
    /// All that is left is granted to others, who may give some of it back: wait for [`EpochBudget::freed`].
    Wait,
    /// The epoch is full and will be cut.
    Full,
}

impl EpochBudget {
    pub fn new(settings: &JobSettings, n_sources: usize) -> Self {
        // At flush interval 0 every source row is an epoch of its own (semantics 4.2).
        let max_rows = if settings.flush_interval == 0 {
            Some(1)
        } else {
            settings.epoch_max_rows
        };
        let max_bytes = i64::try_from(settings.epoch_max_bytes)
            .unwrap_or(i64::MAX)
            .max(1);
        let room = Room {
            rows: max_rows.map_or(u64::MAX, |n| n.max(1)),
            bytes: max_bytes,
            granted: 0,
        };
        Self {
            max_rows: max_rows.map(|n| n.max(1)),
            max_bytes,
            n_sources: n_sources.max(1) as u64,
            rooms: Mutex::new([room; 2]),
            full: AtomicU64::new(0),
            exhausted: Notify::new(),
            freed: Notify::new(),
            first_row: Notify::new(),
            has_rows: AtomicBool::new(false),
        }
    }

    fn with_room<T>(&self, epoch: u64, f: impl FnOnce(&mut Room) -> T) -> T {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        f(&mut rooms[(epoch % 2) as usize])
    }

    /// Makes room for `epoch`; called before any source may be in it.
    pub fn reset(&self, epoch: u64) {
        let (rows, bytes) = (self.max_rows.unwrap_or(u64::MAX), self.max_bytes);
        self.with_room(epoch, |room| {
            *room = Room {
                rows,
                bytes,
                granted: 0,
            }
        });
    }

    /// How many rows of `epoch` the caller may read, at most `want`. A source that has nothing to read yet holds
    /// its grant, so each is given a share of what is left only.
    pub fn acquire(&self, epoch: u64, want: usize) -> Grant {
        let grant = self.with_room(epoch, |room| {
            if room.bytes <= 0 || (room.rows == 0 && room.granted == 0) {
                return Grant::Full;
            }
            let share = if self.max_rows.is_some() {
                room.rows.div_ceil(self.n_sources)
            } else {
                u64::MAX
            };
            match share.min(want as u64) {
                0 => Grant::Wait,
                n => {
                    room.rows -= n;
                    room.granted += n;
                    Grant::Rows(n as usize)
                }
            }
        });
        if grant == Grant::Full {
            self.full.fetch_max(epoch, Ordering::AcqRel);
            self.exhausted.notify_one();
        }
        grant
    }

    /// Gives back what a read did not use, and counts what it used.
    pub fn settle(&self, epoch: u64, granted: usize, used: usize, bytes: u64) {
        self.with_room(epoch, |room| {
            room.granted -= granted as u64;
            room.rows += granted.saturating_sub(used) as u64;
            room.bytes -= bytes as i64;
        });
        self.freed.notify_waiters();
        if used > 0 && !self.has_rows.swap(true, Ordering::AcqRel) {
            self.first_row.notify_one();
        }
    }

    /// Is notified whenever a grant is settled.
    pub fn freed(&self) -> Notified<'_> {
        self.freed.notified()
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

    fn limited(max_rows: u64, n_sources: usize) -> EpochBudget {
        EpochBudget::new(
            &JobSettings {
                epoch_max_rows: Some(max_rows),
                ..JobSettings::default()
            },
            n_sources,
        )
    }

    #[test]
    fn an_epoch_takes_exactly_its_rows_and_the_next_begins_anew() {
        let budget = limited(10, 1);
        assert_eq!(budget.acquire(1, 8), Grant::Rows(8));
        budget.settle(1, 8, 5, 100);
        assert_eq!(budget.acquire(1, 8), Grant::Rows(5));
        budget.settle(1, 5, 5, 100);
        assert_eq!(budget.acquire(1, 8), Grant::Full);
        assert_eq!(budget.acquire(2, 8), Grant::Rows(8));
        budget.reset(3);
        assert_eq!(budget.acquire(3, 100), Grant::Rows(10));
    }

    #[test]
    fn an_epoch_is_not_full_while_a_waiting_source_holds_a_grant_of_it() {
        let budget = limited(10, 2);
        assert_eq!(
            budget.acquire(1, 100),
            Grant::Rows(5),
            "a share, so that the other may read as well"
        );
        assert_eq!(budget.acquire(1, 100), Grant::Rows(3));
        budget.settle(1, 3, 3, 0);
        for _ in 0..2 {
            assert_eq!(budget.acquire(1, 100), Grant::Rows(1));
            budget.settle(1, 1, 1, 0);
        }
        assert_eq!(budget.acquire(1, 100), Grant::Wait);
        budget.settle(1, 5, 1, 0);
        assert_eq!(budget.acquire(1, 100), Grant::Rows(2));
    }

    #[tokio::test]
    async fn an_epoch_that_was_full_before_does_not_end_the_next() {
        let budget = limited(1, 1);
        assert_eq!(budget.acquire(1, 1), Grant::Rows(1));
        budget.settle(1, 1, 1, 0);
        assert_eq!(budget.acquire(1, 1), Grant::Full);
        budget.exhausted(1).await;
        assert_eq!(
            budget.acquire(1, 1),
            Grant::Full,
            "another subtask, before the cut has reached it"
        );
        let next = tokio::time::timeout(std::time::Duration::from_millis(1), budget.exhausted(2));
        assert!(next.await.is_err());
    }

    #[test]
    fn flush_interval_zero_is_one_row_an_epoch() {
        let budget = EpochBudget::new(
            &JobSettings {
                flush_interval: 0,
                ..JobSettings::default()
            },
            3,
        );
        assert_eq!(
            (budget.acquire(1, 100), budget.acquire(1, 100)),
            (Grant::Rows(1), Grant::Wait)
        );
    }
}
