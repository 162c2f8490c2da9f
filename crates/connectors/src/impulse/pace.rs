//! When events are due.

use std::time::Duration;

/// A schedule without drift: counter `base` is due at the beginning, each next one `1 / rate` seconds
/// later. All splits of a source share one, so that they stay in step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    pub rate: f64,
    pub base: u64,
}

/// Readers that wake up more often than this make batches too small to be worth it.
pub const MIN_PAUSE: Duration = Duration::from_millis(10);

impl Pace {
    /// Time from the beginning until `counter` is due.
    pub fn due(&self, counter: u64) -> Duration {
        let seconds = counter.saturating_sub(self.base) as f64 / self.rate;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// How many of the counters `next`, `next + step`, … are due when `elapsed` has passed.
    pub fn n_due(&self, next: u64, step: u64, elapsed: Duration) -> u64 {
        let last = self
            .base
            .saturating_add((elapsed.as_secs_f64() * self.rate) as u64);
        // What was just awaited is due, however the division was rounded.
        let is_due = last >= next || self.due(next) <= elapsed;
        if is_due {
            last.saturating_sub(next) / step + 1
        } else {
            0
        }
    }

    /// When, from the beginning, a reader that last returned at `last` should return again: when
    /// `wanted` events are due, or else the next one is and a little time has passed.
    pub fn wake(&self, next: u64, step: u64, wanted: u64, last: Option<Duration>) -> Duration {
        let full = self.due(next.saturating_add((wanted - 1).saturating_mul(step)));
        let first = self.due(next);
        let rested = last.map_or(first, |last| first.max(last + MIN_PAUSE));
        full.min(rested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn every_event_is_due_once_and_on_time() {
        let pace = Pace {
            rate: 1000.0,
            base: 0,
        };
        assert_eq!(pace.due(250), 250 * MS);
        assert_eq!(pace.n_due(0, 1, Duration::ZERO), 1);
        assert_eq!(pace.n_due(1, 1, Duration::ZERO), 0);
        assert_eq!(pace.n_due(0, 2, 10 * MS), 6, "0, 2, 4, 6, 8, 10");
        assert_eq!(pace.n_due(1, 2, 10 * MS), 5, "1, 3, 5, 7, 9");
        for rate in [0.3, 3.0, 7.7, 999.9, 1e6] {
            let pace = Pace { rate, base: 0 };
            for counter in (0..1000).chain([10_u64.pow(9)]) {
                assert!(
                    pace.n_due(counter, 1, pace.due(counter)) >= 1,
                    "{counter} at {rate}"
                );
            }
        }
    }

    #[test]
    fn a_restart_begins_where_it_stopped_without_a_burst() {
        let pace = Pace {
            rate: 10.0,
            base: 5000,
        };
        assert_eq!(pace.n_due(5000, 1, Duration::ZERO), 1);
        assert_eq!(pace.n_due(5000, 1, 1000 * MS), 11);
        assert_eq!(pace.due(5010), 1000 * MS);
        assert_eq!(
            pace.due(4000),
            Duration::ZERO,
            "a split that lags behind catches up"
        );
    }

    #[test]
    fn fast_sources_wake_up_for_batches_and_slow_ones_for_events() {
        let fast = Pace { rate: 1e5, base: 0 };
        assert_eq!(fast.wake(100, 1, 8192, Some(MS)), 11 * MS);
        assert_eq!(
            fast.wake(100, 1, 1, Some(MS)),
            MS,
            "a reader that wants one does not wait for more"
        );
        let slow = Pace { rate: 1.0, base: 0 };
        assert_eq!(slow.wake(3, 1, 8192, Some(2000 * MS)), 3000 * MS);
        assert_eq!(slow.wake(0, 1, 8192, None), Duration::ZERO);
    }
}
