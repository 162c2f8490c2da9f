use std::sync::atomic::Ordering;

use thalweg_dataflow::Watermark;
use thalweg_dataflow::plan::{Aggregate, Phase};

use super::UpdatingAggregation;
use crate::operator::Stateful;
use crate::operators::OperatorContext;
use crate::operators::script::{MINUTE, Row, barrier, context, end_epoch, push, sum_and_count};
use crate::state::{CommitRecord, StateStore, StateWrites, TableId};

fn aggregation(ttl_minutes: Option<i64>, updating_input: bool) -> UpdatingAggregation {
    let aggregate = Aggregate {
        keys: vec![0],
        calls: sum_and_count(),
        ttl: ttl_minutes.map(|m| m * MINUTE),
        phase: Phase::Single,
    };
    UpdatingAggregation::new(&aggregate, context(false, updating_input)).unwrap()
}

/// One epoch per slice; the watermark stays behind.
fn run(ttl_minutes: Option<i64>, epochs: &[&[Row<'_>]]) -> Vec<Vec<String>> {
    let mut op = aggregation(
        ttl_minutes,
        epochs.iter().any(|rows| rows.iter().any(|r| r.3 < 0)),
    );
    epochs
        .iter()
        .enumerate()
        .map(|(i, rows)| {
            push(&mut op, rows);
            barrier(&mut op, i as u64 + 1, None)
        })
        .collect()
}

const VECTOR_D: [Row<'static>; 4] = [
    ("c1", 50, 0, 1),
    ("c1", 60, 15, 1),
    ("c1", 40, 30, 1),
    ("c1", 40, 120, 1),
];

#[test]
fn rule_4_1_a_key_that_changed_and_changed_back_emits_nothing() {
    let out = run(
        None,
        &[
            &[("a", 1, 0, 1)],
            &[("a", 5, 1, 1), ("a", 5, 2, -1)],
            &[("a", 1, 3, -1)],
        ],
    );
    assert_eq!(out, [vec!["+ a 1 1"], vec![], vec!["- a 1 1"]]);
}

#[test]
fn rule_4_4_the_first_touched_comes_first_and_the_old_image_before_the_new() {
    let out = run(
        None,
        &[
            &[("b", 1, 0, 1), ("a", 2, 0, 1)],
            &[("a", 1, 0, 1), ("b", 1, 0, 1)],
        ],
    );
    assert_eq!(
        out,
        [
            vec!["+ b 1 1", "+ a 2 1"],
            vec!["- a 2 1", "+ a 3 2", "- b 1 1", "+ b 2 2"]
        ]
    );
}

#[test]
fn vector_d_one_row_an_epoch() {
    let rows: Vec<&[Row<'_>]> = VECTOR_D.chunks(1).collect();
    let out = run(Some(60), &rows);
    assert_eq!(out[2], ["- c1 110 2", "+ c1 150 3"]);
    assert_eq!(out[3], ["-- c1 150 3", "+ c1 40 1"]);
}

#[test]
fn vector_d_in_one_epoch_in_any_order() {
    assert_eq!(run(Some(60), &[&VECTOR_D]), [["+ c1 40 1"]]);
    let mut reversed = VECTOR_D;
    reversed.reverse();
    assert_eq!(run(Some(60), &[&reversed]), [["+ c1 40 1"]]);
}

#[test]
fn rule_5_2_a_row_older_than_the_live_group_joins_it() {
    let out = run(Some(60), &[&[("a", 1, 500, 1)], &[("a", 2, 0, 1)]]);
    assert_eq!(out[1], ["- a 1 1", "+ a 3 2"]);
}

#[test]
fn rule_5_2_rows_in_between_bridge_a_gap_whenever_they_arrive() {
    // 0 and 100 are further apart than the ttl, until 50 comes.
    assert_eq!(
        run(
            Some(60),
            &[&[("a", 1, 0, 1), ("a", 2, 100, 1), ("a", 4, 50, 1)]]
        ),
        [["+ a 7 3"]]
    );
    assert_eq!(
        run(
            Some(60),
            &[&[("a", 1, 0, 1)], &[("a", 2, 100, 1), ("a", 4, 50, 1)]]
        )[1],
        ["- a 1 1", "+ a 7 3"]
    );
}

#[test]
fn rule_5_3_a_key_that_began_anew_and_expired_again_in_one_epoch_goes_once() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    barrier(&mut op, 1, Some(0));
    push(&mut op, &[("a", 2, 100, 1)]);
    assert_eq!(barrier(&mut op, 2, Some(200)), ["-- a 1 1"]);
}

#[test]
fn rule_5_2_the_watermark_expires_a_key_strictly_behind_its_ttl() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1), ("b", 1, 30, 1)]);
    assert_eq!(barrier(&mut op, 1, Some(20)).len(), 2);
    assert_eq!(barrier(&mut op, 2, Some(60)), Vec::<String>::new());
    assert_eq!(barrier(&mut op, 3, Some(61)), ["-- a 1 1"]);
    push(&mut op, &[("a", 7, 62, 1)]);
    assert_eq!(barrier(&mut op, 4, Some(62)), ["+ a 7 1"]);
    assert_eq!(barrier(&mut op, 5, Some(200)), ["-- b 1 1", "-- a 7 1"]);
}

#[test]
fn rule_5_2_a_key_seen_again_lives_on_from_there() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    barrier(&mut op, 1, Some(0));
    push(&mut op, &[("a", 1, 50, 1)]);
    barrier(&mut op, 2, Some(50));
    assert_eq!(barrier(&mut op, 3, Some(110)), Vec::<String>::new());
    assert_eq!(barrier(&mut op, 4, Some(111)), ["-- a 2 2"]);
}

/// A key entered the index of expiry with each new beginning, and its last row was then deleted as
/// many times.
#[test]
fn a_key_that_began_anew_expires_once() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    barrier(&mut op, 1, Some(0));
    push(&mut op, &[("a", 1, 100, 1)]);
    barrier(&mut op, 2, Some(10));
    push(&mut op, &[("a", 1, 200, 1)]);
    barrier(&mut op, 3, Some(20));
    assert_eq!(barrier(&mut op, 4, Some(500)), ["-- a 1 1"]);
    assert_eq!(barrier(&mut op, 5, Some(900)), Vec::<String>::new());
}

#[test]
fn rule_5_2_a_row_that_is_already_expired_leaves_nothing() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    assert_eq!(barrier(&mut op, 1, Some(500)), Vec::<String>::new());
    assert_eq!(barrier(&mut op, 2, Some(600)), Vec::<String>::new());
}

/// A group that began anew behind a gap was deleted twice when its new beginning had expired as well.
#[test]
fn rule_5_3_a_group_that_expires_twice_in_an_epoch_is_deleted_once() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    barrier(&mut op, 1, Some(0));
    push(&mut op, &[("a", 2, 100, 1)]);
    assert_eq!(barrier(&mut op, 2, Some(500)), ["-- a 1 1"]);
    assert_eq!(barrier(&mut op, 3, Some(900)), Vec::<String>::new());
}

#[test]
fn rule_2_3_the_end_of_input_expires_nothing() {
    let mut op = aggregation(Some(60), false);
    push(&mut op, &[("a", 1, 0, 1)]);
    assert_eq!(end_epoch(&mut op, 1, Watermark::END), ["+ a 1 1"]);
}

#[test]
fn rule_5_3_a_retraction_of_expired_rows_is_counted_and_dropped() {
    let aggregate = Aggregate {
        keys: vec![0],
        calls: sum_and_count(),
        ttl: Some(60 * MINUTE),
        phase: Phase::Single,
    };
    let context = context(false, true);
    let metrics = context.metrics.clone();
    let mut op = UpdatingAggregation::new(&aggregate, context).unwrap();
    push(&mut op, &[("a", 5, 0, 1)]);
    barrier(&mut op, 1, Some(0));
    assert_eq!(barrier(&mut op, 2, Some(100)), ["-- a 5 1"]);
    push(&mut op, &[("a", 5, 101, -1), ("a", 6, 101, 1)]);
    assert_eq!(barrier(&mut op, 3, Some(101)), ["+ a 6 1"]);
    assert_eq!(
        metrics
            .dropped_changes
            .load(std::sync::atomic::Ordering::Relaxed),
        1
    );
}

#[test]
fn rule_4_5_a_global_aggregate_has_its_row_from_the_first_epoch_on() {
    let schema = std::sync::Arc::new(arrow::datatypes::Schema::new(
        crate::operators::script::output_schema(false)
            .fields()
            .iter()
            .skip(1)
            .cloned()
            .collect::<Vec<_>>(),
    ));
    let context = crate::operators::OperatorContext {
        output_schema: schema,
        ..context(false, true)
    };
    let aggregate = Aggregate {
        keys: vec![],
        calls: sum_and_count(),
        ttl: Some(1),
        phase: Phase::Single,
    };
    let mut op = UpdatingAggregation::new(&aggregate, context).unwrap();
    assert_eq!(barrier(&mut op, 1, None), ["+ null 0"]);
    push(&mut op, &[("a", 5, 0, 1)]);
    assert_eq!(barrier(&mut op, 2, None), ["- null 0", "+ 5 1"]);
    push(&mut op, &[("a", 5, 0, -1)]);
    assert_eq!(barrier(&mut op, 3, Some(500)), ["- 5 1", "+ null 0"]);
}

/// Commits what the operator hands over, as the coordinator does between two barriers.
fn commit(op: &mut UpdatingAggregation, store: &StateStore, epoch: u64) {
    let mut writes = StateWrites::default();
    op.write_changes(&mut writes).unwrap();
    store
        .commit(
            "test",
            writes,
            &CommitRecord {
                epoch,
                splits: vec![],
            },
        )
        .unwrap();
}

#[test]
fn state_larger_than_its_memory_is_evicted_and_read_back() {
    let context = OperatorContext {
        memory_bytes: 20_000,
        ..context(false, true)
    };
    let (store, metrics) = (context.store.clone(), context.metrics.clone());
    let aggregate = Aggregate {
        keys: vec![0],
        calls: sum_and_count(),
        ttl: Some(60 * MINUTE),
        phase: Phase::Single,
    };
    let mut op = UpdatingAggregation::new(&aggregate, context).unwrap();
    let keys: Vec<String> = (0..2000).map(|i| format!("key {i}")).collect();
    // Each round touches another fifth of the keys, so that the rest can be evicted.
    for round in 0..10 {
        let rows: Vec<Row<'_>> = (0..400)
            .map(|i| (keys[(round % 5) * 400 + i].as_str(), 1, round as i64, 1))
            .collect();
        push(&mut op, &rows);
        let out = barrier(&mut op, round as u64 + 1, Some(0));
        let expected = if round < 5 { 400 } else { 800 };
        assert_eq!(out.len(), expected, "round {round}");
        if round >= 5 {
            let key = rows[0].0;
            assert_eq!(out[..2], [format!("- {key} 1 1"), format!("+ {key} 2 2")]);
        }
        commit(&mut op, &store, round as u64 + 1);
    }
    assert!(
        metrics.evicted_keys.load(Ordering::Relaxed) > 2000,
        "the test would prove nothing otherwise"
    );
    // Evicted keys expire as well, and leave nothing behind (rule 5.5).
    let expired = barrier(&mut op, 11, Some(100));
    assert_eq!(expired.len(), 2000);
    assert!(
        expired
            .iter()
            .all(|line| line.starts_with("-- key") && line.ends_with(" 2 2")),
        "{:?}",
        &expired[..3]
    );
    commit(&mut op, &store, 11);
    for table in [0, 1] {
        assert!(
            store
                .scan_table(TableId(1 + 1024 + table))
                .advance()
                .unwrap()
                .is_none(),
            "table {table} is not empty"
        );
    }
}

#[test]
fn a_key_that_is_deleted_and_comes_back_before_the_commit_begins_anew() {
    let context = OperatorContext {
        memory_bytes: 0,
        ..context(false, true)
    };
    let store = context.store.clone();
    let aggregate = Aggregate {
        keys: vec![0],
        calls: sum_and_count(),
        ttl: None,
        phase: Phase::Single,
    };
    let mut op = UpdatingAggregation::new(&aggregate, context).unwrap();
    push(&mut op, &[("a", 5, 0, 1), ("b", 1, 0, 1)]);
    barrier(&mut op, 1, None);
    commit(&mut op, &store, 1);
    // Everything is evicted here; "a" is read back, emptied and given up, and the store still has it.
    barrier(&mut op, 2, None);
    push(&mut op, &[("a", 5, 0, -1)]);
    assert_eq!(barrier(&mut op, 3, None), ["- a 5 1"]);
    push(&mut op, &[("a", 7, 0, 1)]);
    assert_eq!(barrier(&mut op, 4, None), ["+ a 7 1"]);
    commit(&mut op, &store, 4);
    barrier(&mut op, 5, None);
    push(&mut op, &[("a", 1, 0, 1)]);
    assert_eq!(barrier(&mut op, 6, None), ["- a 7 1", "+ a 8 2"]);
}
