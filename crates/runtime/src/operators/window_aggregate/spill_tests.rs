//! Windows that do not fit in memory give the rows that windows in memory give.

use std::sync::atomic::Ordering;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::Watermark;
use thalweg_dataflow::plan::{Phase, Window, WindowAggregate, WindowSource};

use super::WindowedAggregation;
use crate::operator::{Operator, Stateful};
use crate::operators::script::{MINUTE, Row, barrier, context, end_epoch, push, sum_and_count};
use crate::operators::{OperatorContext, script};
use crate::state::{CommitRecord, StateWrites};

/// An aggregation with next to no memory, and one that never commits and so drops nothing.
struct Twins {
    small: WindowedAggregation,
    context: OperatorContext,
    large: WindowedAggregation,
    epoch: u64,
}

impl Twins {
    fn new(window: Window, updating: bool) -> Self {
        let aggregate = WindowAggregate {
            window: WindowSource::Time(window),
            keys: vec![0],
            calls: sum_and_count(),
            phase: Phase::Single,
        };
        let context = OperatorContext {
            memory_bytes: 1,
            ..context(true, updating)
        };
        let large = script::context(true, updating);
        Self {
            small: WindowedAggregation::new(&aggregate, context.clone()).unwrap(),
            context,
            large: WindowedAggregation::new(&aggregate, large).unwrap(),
            epoch: 0,
        }
    }

    fn push(&mut self, rows: &[Row<'_>]) {
        push(&mut self.small, rows);
        push(&mut self.large, rows);
    }

    /// Ends an epoch for both, compares what they emit, and commits the small one where asked for. How many rows.
    fn end_epoch(&mut self, watermark: Watermark, commit: bool) -> usize {
        self.epoch += 1;
        let mut small = end_epoch(&mut self.small, self.epoch, watermark);
        let mut large = end_epoch(&mut self.large, self.epoch, watermark);
        small.sort();
        large.sort();
        assert_eq!(small, large);
        if commit {
            self.commit();
        }
        small.len()
    }

    fn commit(&mut self) {
        let mut writes = StateWrites::default();
        self.small.write_changes(&mut writes).unwrap();
        let record = CommitRecord {
            epoch: self.epoch,
            splits: vec![],
        };
        self.context.store.commit("test", writes, &record).unwrap();
    }

    fn n_stored(&self) -> usize {
        let mut entries = self.context.store.scan_table(self.context.table(0));
        let mut n = 0;
        while entries.advance().unwrap().is_some() {
            n += 1;
        }
        n
    }

    fn n_evicted(&self) -> u64 {
        self.context.metrics.evicted_keys.load(Ordering::Relaxed)
    }
}

fn tumble(minutes: i64) -> Window {
    Window::Tumble {
        width: minutes * MINUTE,
    }
}

fn hop(slide: i64, width: i64) -> Window {
    Window::Hop {
        slide: slide * MINUTE,
        width: width * MINUTE,
    }
}

/// Epochs of random rows, of which some are taken back later where `updating`; a commit after some of them.
fn compare_at_random(window: Window, updating: bool, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut twins = Twins::new(window, updating);
    let mut present: Vec<(String, i64, i64)> = Vec::new();
    let mut n_rows = 0;
    for epoch in 0..40 {
        let now = epoch * 5;
        let mut rows = Vec::new();
        for _ in 0..rng.random_range(0..60) {
            if updating && !present.is_empty() && rng.random_bool(0.4) {
                let (key, value, minute) = present.swap_remove(rng.random_range(0..present.len()));
                rows.push((key, value, minute, -1));
            } else {
                let key = format!("key {}", rng.random_range(0..25));
                let row = (
                    key,
                    rng.random_range(-9..9),
                    now + rng.random_range(-25..20),
                );
                rows.push((row.0.clone(), row.1, row.2, 1));
                present.push(row);
            }
        }
        let rows: Vec<Row<'_>> = rows.iter().map(|r| (r.0.as_str(), r.1, r.2, r.3)).collect();
        twins.push(&rows);
        // Rows of windows that have closed are late whether they come or go.
        let watermark = now - 10;
        present.retain(|row| row.2 >= watermark + 30);
        n_rows += twins.end_epoch(Watermark::at(watermark * MINUTE), rng.random_bool(0.5));
    }
    twins.commit();
    n_rows += twins.end_epoch(Watermark::END, true);
    assert!(n_rows > 100, "seed {seed}");
    assert!(twins.n_evicted() > 100, "seed {seed}");
    assert_eq!(
        twins.n_stored(),
        0,
        "seed {seed}: closed windows leave the disk"
    );
}

#[test]
fn windows_beyond_memory_give_the_same_rows_and_leave_the_disk() {
    for seed in 0..10 {
        for window in [tumble(10), tumble(60), hop(5, 20), hop(4, 6), hop(10, 4)] {
            compare_at_random(window, false, seed);
        }
    }
}

#[test]
fn rule_3_6_retractions_find_groups_that_were_dropped_from_memory() {
    for seed in 0..10 {
        for window in [tumble(20), hop(10, 30)] {
            compare_at_random(window, true, seed);
        }
    }
}

#[test]
fn a_window_of_more_groups_than_a_batch_goes_out_piece_by_piece() {
    let mut twins = Twins::new(tumble(10), false);
    let keys: Vec<String> = (0..30_000).map(|i| format!("key {i}")).collect();
    for part in keys.chunks(10_000) {
        let rows: Vec<Row<'_>> = part.iter().map(|k| (k.as_str(), 1, 5, 1)).collect();
        twins.push(&rows);
        // The next epoch finds what this one commits in the store, and drops it.
        twins.end_epoch(Watermark::at(0), true);
    }
    let again: Vec<Row<'_>> = keys
        .iter()
        .step_by(3)
        .map(|k| (k.as_str(), 2, 6, 1))
        .collect();
    twins.push(&again);
    assert_eq!(twins.n_stored(), 30_000);
    assert!(twins.n_evicted() >= 20_000);
    assert_eq!(twins.end_epoch(Watermark::at(10 * MINUTE), true), 30_000);
    assert_eq!(twins.n_stored(), 0);
}

#[test]
fn groups_that_every_epoch_touches_stay_and_what_is_cold_goes() {
    let mut twins = Twins::new(tumble(10), false);
    twins.push(&[("hot", 1, 5, 1), ("cold", 1, 5, 1), ("cold", 1, 25, 1)]);
    twins.end_epoch(Watermark::NONE, true);
    twins.push(&[("hot", 1, 6, 1)]);
    twins.end_epoch(Watermark::NONE, true);
    assert_eq!(twins.n_evicted(), 2, "of each window the cold group");
    // What was dropped counts as before.
    twins.push(&[("cold", 5, 7, 1)]);
    assert_eq!(twins.end_epoch(Watermark::at(10 * MINUTE), false), 2);
}

#[test]
fn a_partial_aggregate_that_holds_much_does_not_wait_for_the_end_of_the_epoch() {
    let aggregate = WindowAggregate {
        window: WindowSource::Time(tumble(10)),
        keys: vec![0],
        calls: sum_and_count(),
        phase: Phase::Partial,
    };
    let context = OperatorContext {
        memory_bytes: 1,
        output_schema: script::partial_schema(),
        ..context(true, false)
    };
    let mut op = WindowedAggregation::new(&aggregate, context).unwrap();
    let rows: Vec<Row<'_>> = std::iter::repeat_n(("a", 1, 5, 1), super::ROWS_PER_MEASURE).collect();
    op.push(0, script::batch(&rows[1..])).unwrap();
    assert!(op.pull().unwrap().is_none());
    op.push(0, script::batch(&rows[..1])).unwrap();
    let flushed = op.pull().unwrap().unwrap();
    assert_eq!(flushed.n_rows(), 1);
    assert!(op.pull().unwrap().is_none());
    assert_eq!(end_epoch(&mut op, 1, Watermark::END), Vec::<String>::new());
}

#[test]
fn a_job_that_does_not_commit_drops_nothing() {
    let mut twins = Twins::new(tumble(10), false);
    twins.push(&[("a", 1, 5, 1)]);
    twins.end_epoch(Watermark::NONE, false);
    assert_eq!(barrier(&mut twins.small, 9, Some(1)), Vec::<String>::new());
    assert_eq!(twins.n_evicted(), 0);
    assert!(twins.small.dirty_bytes() > 0 && twins.small.state().is_some());
}
