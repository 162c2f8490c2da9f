use std::sync::atomic::Ordering;

use thalweg_dataflow::Watermark;
use thalweg_dataflow::plan::{Phase, Window, WindowAggregate, WindowSource};

use super::WindowedAggregation;
use crate::metrics::JobMetrics;
use crate::operators::script::{MINUTE, barrier, context, end_epoch, push, sum_and_count};

fn aggregation(
    window: Window,
    updating: bool,
) -> (WindowedAggregation, std::sync::Arc<JobMetrics>) {
    let aggregate = WindowAggregate {
        window: WindowSource::Time(window),
        keys: vec![0],
        calls: sum_and_count(),
        phase: Phase::Single,
    };
    let context = context(true, updating);
    let metrics = context.metrics.clone();
    (
        WindowedAggregation::new(&aggregate, context).unwrap(),
        metrics,
    )
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

#[test]
fn rule_1_1_a_window_is_emitted_once_when_the_watermark_reaches_its_end() {
    let (mut op, _) = aggregation(tumble(10), false);
    push(&mut op, &[("a", 1, 0, 1), ("b", 2, 9, 1), ("a", 3, 10, 1)]);
    assert_eq!(barrier(&mut op, 1, Some(9)), Vec::<String>::new());
    push(&mut op, &[("a", 4, 5, 1)]);
    assert_eq!(
        barrier(&mut op, 2, Some(10)),
        ["+ 0 10 a 5 2", "+ 0 10 b 2 1"]
    );
    assert_eq!(end_epoch(&mut op, 3, Watermark::END), ["+ 10 20 a 3 1"]);
}

#[test]
fn rule_3_5_a_row_is_late_by_the_watermark_of_the_last_barrier_only() {
    let (mut op, metrics) = aggregation(tumble(10), false);
    push(&mut op, &[("a", 1, 25, 1)]);
    barrier(&mut op, 1, Some(10));
    // The window [0, 10) has closed, though it was empty; [10, 20) has not, however far rows have gone.
    push(&mut op, &[("a", 1, 3, 1), ("a", 1, 12, 1)]);
    assert_eq!(barrier(&mut op, 2, Some(20)), ["+ 10 20 a 1 1"]);
    assert_eq!(metrics.late_rows.load(Ordering::Relaxed), 1);
}

#[test]
fn rule_3_5_a_row_late_for_one_hop_window_still_counts_in_the_open_ones() {
    let (mut op, metrics) = aggregation(hop(5, 10), false);
    push(&mut op, &[("a", 1, 7, 1)]);
    // [-5..5) has no row; [0, 10) closes.
    assert_eq!(barrier(&mut op, 1, Some(10)), ["+ 0 10 a 1 1"]);
    push(&mut op, &[("a", 2, 8, 1), ("a", 9, 1, 1)]);
    assert_eq!(barrier(&mut op, 2, Some(15)), ["+ 5 15 a 3 2"]);
    assert_eq!(metrics.late_rows.load(Ordering::Relaxed), 2);
}

#[test]
fn rule_3_2_hop_windows_merge_their_panes() {
    let (mut op, _) = aggregation(hop(4, 6), false);
    push(
        &mut op,
        &[
            ("a", 1, 1, 1),
            ("a", 2, 4, 1),
            ("a", 4, 7, 1),
            ("b", 8, 9, 1),
        ],
    );
    let out = end_epoch(&mut op, 1, Watermark::END);
    assert_eq!(
        out,
        [
            "+ -4 2 a 1 1",
            "+ 0 6 a 3 2",
            "+ 4 10 a 6 2",
            "+ 4 10 b 8 1",
            "+ 8 14 b 8 1"
        ]
    );
}

#[test]
fn hop_windows_far_apart_do_not_visit_what_lies_between() {
    let (mut op, _) = aggregation(hop(1, 2), false);
    push(&mut op, &[("a", 1, 0, 1), ("a", 1, 100_000_000, 1)]);
    assert_eq!(end_epoch(&mut op, 1, Watermark::END).len(), 4);
}

#[test]
fn rule_3_6_retractions_count_until_the_window_closes() {
    let (mut op, _) = aggregation(tumble(10), true);
    push(&mut op, &[("a", 1, 0, 1), ("a", 2, 1, 1), ("b", 5, 2, 1)]);
    barrier(&mut op, 1, Some(0));
    push(&mut op, &[("a", 1, 0, -1), ("b", 5, 2, -1)]);
    assert_eq!(barrier(&mut op, 2, Some(10)), ["+ 0 10 a 2 1"]);
}

#[test]
fn rows_of_many_windows_in_any_order_are_sorted_by_window() {
    let (mut op, _) = aggregation(tumble(1), false);
    let rows: Vec<_> = (0..1000).map(|i| ("a", 1, (i * 7919) % 100, 1)).collect();
    push(&mut op, &rows);
    let out = end_epoch(&mut op, 1, Watermark::END);
    assert_eq!(out.len(), 100);
    assert!(out.iter().all(|line| line.ends_with("a 10 10")), "{out:?}");
}
