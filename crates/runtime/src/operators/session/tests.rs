use std::sync::Arc;
use std::sync::atomic::Ordering;

use expect_test::{Expect, expect};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::Watermark;
use thalweg_dataflow::plan::{Phase, Window, WindowAggregate, WindowSource};

use super::SessionAggregation;
use crate::metrics::JobMetrics;
use crate::operator::Stateful;
use crate::operators::OperatorContext;
use crate::operators::script::{MINUTE, Row, barrier, context, end_epoch, push, sum_and_count};
use crate::state::{CommitRecord, StateWrites, TableId};

fn aggregation(gap: i64, context: OperatorContext) -> SessionAggregation {
    let gap = gap * MINUTE;
    let aggregate = WindowAggregate {
        window: WindowSource::Time(Window::Session { gap }),
        keys: vec![0],
        calls: sum_and_count(),
        phase: Phase::Single,
    };
    SessionAggregation::new(gap, &aggregate, context).unwrap()
}

/// A step of a script: rows as `(key, value, minute)`, or a barrier with its watermark in minutes.
enum Step<'a> {
    Rows(&'a [(&'a str, i64, i64)]),
    Barrier(i64),
    End,
}

use Step::{Barrier, End, Rows};

/// Runs the steps with a gap of ten minutes; gives the lines of each barrier, and how many rows were late.
fn run(steps: &[Step<'_>]) -> String {
    let context = context(true, false);
    let metrics: Arc<JobMetrics> = context.metrics.clone();
    let mut op = aggregation(10, context);
    let mut text = String::new();
    for (epoch, step) in steps.iter().enumerate() {
        let lines = match step {
            Rows(rows) => {
                let rows: Vec<Row<'_>> = rows.iter().map(|&(k, v, t)| (k, v, t, 1)).collect();
                push(&mut op, &rows);
                continue;
            }
            Barrier(minute) => {
                text.push_str(&format!("at {minute}\n"));
                barrier(&mut op, epoch as u64, Some(*minute))
            }
            End => {
                text.push_str("at the end\n");
                end_epoch(&mut op, epoch as u64, Watermark::END)
            }
        };
        lines
            .iter()
            .for_each(|l| text.push_str(&format!("  {l}\n")));
    }
    let late = metrics.late_rows.load(Ordering::Relaxed);
    text.push_str(&format!("late: {late}\n"));
    text
}

fn check(steps: &[Step<'_>], expected: Expect) {
    expected.assert_eq(&run(steps));
}

#[test]
fn rule_3_3_a_session_lasts_the_gap_past_its_last_row_and_is_one_per_key() {
    check(
        &[
            Rows(&[("a", 1, 0), ("b", 10, 3), ("a", 2, 9)]),
            Barrier(12),
            Rows(&[("a", 4, 18)]),
            Barrier(27),
            Barrier(28),
        ],
        expect![[r#"
            at 12
            at 27
              + 3 13 b 10 1
            at 28
              + 0 28 a 7 3
            late: 0
        "#]],
    );
}

#[test]
fn rule_3_3_rows_exactly_the_gap_apart_are_two_sessions() {
    check(
        &[
            Rows(&[("a", 1, 0), ("a", 2, 10)]),
            Barrier(0),
            Rows(&[("a", 4, 20)]),
            End,
        ],
        expect![[r#"
            at 0
            at the end
              + 0 10 a 1 1
              + 10 20 a 2 1
              + 20 30 a 4 1
            late: 0
        "#]],
    );
}

#[test]
fn rule_3_3_a_row_between_two_sessions_merges_them() {
    check(
        &[
            Rows(&[("a", 1, 0), ("a", 2, 15), ("a", 4, 30), ("b", 8, 15)]),
            Barrier(0),
            Rows(&[("a", 16, 22)]),
            Barrier(1),
            Rows(&[("a", 32, 8)]),
            End,
        ],
        expect![[r#"
            at 0
            at 1
            at the end
              + 0 40 a 55 5
              + 15 25 b 8 1
            late: 0
        "#]],
    );
}

#[test]
fn rule_3_3_rows_come_in_any_order_within_an_epoch_and_across() {
    check(
        &[
            Rows(&[("a", 1, 40), ("a", 2, 5), ("a", 4, 12), ("a", 8, 35)]),
            Barrier(-20),
            Rows(&[("a", 16, -4), ("a", 32, 21)]),
            Rows(&[("a", 64, 28)]),
            Barrier(49),
            Barrier(50),
        ],
        expect![[r#"
            at -20
            at 49
            at 50
              + -4 50 a 127 7
            late: 0
        "#]],
    );
}

#[test]
fn rule_3_5_a_row_is_late_when_t_plus_gap_is_reached_whatever_it_would_merge_with() {
    check(
        &[
            Rows(&[("a", 1, 10), ("a", 2, 18)]),
            Barrier(15),
            // 5 + 10 has been reached, though a session that it would extend is open; 6 + 10 has not.
            Rows(&[("a", 100, 5), ("a", 4, 6)]),
            End,
        ],
        expect![[r#"
            at 15
            at the end
              + 6 28 a 7 3
            late: 1
        "#]],
    );
}

#[test]
fn rule_3_5_a_session_that_has_closed_is_not_opened_again() {
    check(
        &[
            Rows(&[("a", 1, 0)]),
            Barrier(10),
            // On time by itself, and within the gap of what is gone.
            Rows(&[("a", 2, 5)]),
            Barrier(14),
            Barrier(15),
        ],
        expect![[r#"
            at 10
              + 0 10 a 1 1
            at 14
            at 15
              + 5 15 a 2 1
            late: 0
        "#]],
    );
}

#[test]
fn rule_2_2_rows_are_late_by_the_last_barrier_not_by_rows_before_them() {
    check(
        &[
            Rows(&[("a", 1, 100), ("a", 2, 0), ("a", 4, 95)]),
            Barrier(100),
        ],
        expect![[r#"
            at 100
              + 0 10 a 2 1
            late: 0
        "#]],
    );
}

/// The sessions of all rows that are not late, row by row.
#[derive(Default)]
struct Model {
    open: Vec<(String, i64, i64, i64, i64)>,
}

impl Model {
    fn add(&mut self, (key, value, minute, _): &Row<'_>, gap: i64) {
        let mut session = (key.to_string(), *minute, *minute, *value, 1);
        self.open.retain(|other| {
            let touches =
                other.0 == session.0 && other.1 < session.2 + gap && session.1 < other.2 + gap;
            if touches {
                session.1 = session.1.min(other.1);
                session.2 = session.2.max(other.2);
                session.3 += other.3;
                session.4 += other.4;
            }
            !touches
        });
        self.open.push(session);
    }

    fn close(&mut self, watermark: i64, gap: i64) -> Vec<String> {
        let (closed, open): (Vec<_>, Vec<_>) = std::mem::take(&mut self.open)
            .into_iter()
            .partition(|session| session.2 + gap <= watermark);
        self.open = open;
        let line = |(key, start, last, sum, n): (String, i64, i64, i64, i64)| {
            format!("+ {start} {} {key} {sum} {n}", last + gap)
        };
        let mut lines: Vec<_> = closed.into_iter().map(line).collect();
        lines.sort();
        lines
    }
}

fn commit(op: &mut SessionAggregation, context: &OperatorContext, epoch: u64) {
    let mut writes = StateWrites::default();
    op.write_changes(&mut writes).unwrap();
    let record = CommitRecord {
        epoch,
        splits: vec![],
    };
    context.store.commit("test", writes, &record).unwrap();
}

fn is_empty(context: &OperatorContext, table: TableId) -> bool {
    let mut entries = context.store.scan_table(table);
    entries.advance().unwrap().is_none()
}

/// Epochs of random rows with next to no memory, or with much; commits after some.
fn compare_at_random(seed: u64, gap: i64, memory_bytes: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let context = OperatorContext {
        memory_bytes,
        ..context(true, false)
    };
    let mut op = aggregation(gap, context.clone());
    let (mut model, mut watermark, mut n_rows, mut n_late) = (Model::default(), -1000, 0, 0);
    for epoch in 0..60 {
        let mut rows = Vec::new();
        for _ in 0..rng.random_range(0..40) {
            let key = format!("key {}", rng.random_range(0..40));
            let minute = epoch * 4 + rng.random_range(-30..20);
            rows.push((key, rng.random_range(-9..9), minute));
        }
        let rows: Vec<Row<'_>> = rows.iter().map(|r| (r.0.as_str(), r.1, r.2, 1)).collect();
        for row in &rows {
            match row.2 + gap <= watermark {
                true => n_late += 1,
                false => model.add(row, gap),
            }
        }
        for part in rows.chunks(rng.random_range(1..20)) {
            push(&mut op, part);
        }
        watermark = watermark.max(epoch * 4 - rng.random_range(0..30));
        let mut lines = barrier(&mut op, epoch as u64, Some(watermark));
        lines.sort();
        assert_eq!(
            lines,
            model.close(watermark, gap),
            "seed {seed}, epoch {epoch}"
        );
        n_rows += lines.len();
        if rng.random_bool(0.5) {
            commit(&mut op, &context, epoch as u64);
        }
    }
    let mut lines = end_epoch(&mut op, 60, Watermark::END);
    lines.sort();
    assert_eq!(lines, model.close(i64::MAX, gap), "seed {seed}, end");
    n_rows += lines.len();
    assert!(n_rows > 30, "seed {seed}");
    let late = context.metrics.late_rows.load(Ordering::Relaxed);
    assert_eq!(late, n_late, "seed {seed}");
    let evicted = context.metrics.evicted_keys.load(Ordering::Relaxed);
    assert_eq!(evicted > 30, memory_bytes == 1, "seed {seed}: {evicted}");
    commit(&mut op, &context, 61);
    assert_eq!(op.dirty_bytes(), 0);
    for table in 0..2 {
        assert!(
            is_empty(&context, context.table(table)),
            "seed {seed}, table {table}"
        );
    }
}

#[test]
fn random_sessions_are_those_of_a_model_in_memory_and_beyond_and_leave_the_disk() {
    for seed in 0..30 {
        for gap in [1, 7, 40] {
            compare_at_random(seed, gap, 1);
            compare_at_random(seed, gap, 1 << 20);
        }
    }
}

#[test]
fn many_sessions_that_close_at_once_go_out_in_batches() {
    let context = OperatorContext {
        memory_bytes: 1,
        ..context(true, false)
    };
    let mut op = aggregation(10, context.clone());
    let keys: Vec<String> = (0..20_000).map(|i| format!("key {i}")).collect();
    for (epoch, part) in keys.chunks(9_000).enumerate() {
        let rows: Vec<Row<'_>> = part.iter().map(|k| (k.as_str(), 1, 5, 1)).collect();
        push(&mut op, &rows);
        assert!(barrier(&mut op, epoch as u64, Some(5)).is_empty());
        commit(&mut op, &context, epoch as u64);
    }
    let lines = end_epoch(&mut op, 9, Watermark::END);
    assert_eq!(lines.len(), 20_000);
    assert!(lines.iter().all(|line| line.starts_with("+ 5 15 key")));
}
