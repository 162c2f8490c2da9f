//! Durations by how long they took, as Prometheus counts them: each bucket holds what took at most its bound.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Upper bounds of the buckets, seconds; what took longer is in the count only.
pub const BOUNDS: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BOUNDS.len()],
    beyond: AtomicU64,
    nanos: AtomicU64,
}

impl Durations {
    pub fn observe(&self, took: Duration) {
        let secs = took.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| secs <= *bound);
        bucket
            .map_or(&self.beyond, |i| &self.buckets[i])
            .fetch_add(1, Relaxed);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Relaxed);
    }

    /// Per bound, how many took no longer than it and longer than the one before.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        BOUNDS
            .iter()
            .zip(&self.buckets)
            .map(|(bound, n)| (*bound, n.load(Relaxed)))
    }

    pub fn count(&self) -> u64 {
        self.buckets().map(|(_, n)| n).sum::<u64>() + self.beyond.load(Relaxed)
    }

    /// Sum of all durations, seconds.
    pub fn seconds(&self) -> f64 {
        self.nanos.load(Relaxed) as f64 / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_smallest_bucket_that_holds_it() {
        let durations = Durations::default();
        for ms in [1, 2, 60_000] {
            durations.observe(Duration::from_millis(ms));
        }
        let counted: Vec<u64> = durations.buckets().map(|(_, n)| n).collect();
        assert_eq!(counted[..3], [1, 1, 0]);
        assert_eq!((durations.count(), durations.seconds()), (3, 60.003));
    }
}
