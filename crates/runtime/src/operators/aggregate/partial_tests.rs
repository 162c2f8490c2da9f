//! Two phases give what one gives, whichever way rows are spread, batched, gathered or passed on singly.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::plan::{Aggregate, NodeId, Phase};

use super::build;
use crate::operator::{Barrier, Operator};
use crate::operators::OperatorContext;
use crate::operators::script::{
    MINUTE, Row, barrier, batch, context, output_schema, sum_and_count,
};

/// Operators that share a store, each with tables of its own.
struct Workshop {
    context: OperatorContext,
    n_made: usize,
}

impl Workshop {
    fn new() -> Self {
        Self {
            context: context(false, false),
            n_made: 0,
        }
    }

    fn operator(
        &mut self,
        phase: Phase,
        ttl: Option<i64>,
        memory_bytes: usize,
    ) -> Box<dyn Operator> {
        self.n_made += 1;
        let context = OperatorContext {
            node: NodeId(self.n_made),
            ..self.context.clone()
        };
        operator(phase, ttl, memory_bytes, context)
    }
}

fn operator(
    phase: Phase,
    ttl: Option<i64>,
    memory_bytes: usize,
    context: OperatorContext,
) -> Box<dyn Operator> {
    let partial = Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("n_rows", DataType::Int64, false),
        Field::new("first_seen", DataType::Int64, false),
    ]));
    let context = OperatorContext {
        output_schema: match phase {
            Phase::Partial => partial,
            Phase::Single | Phase::Final => output_schema(false),
        },
        memory_bytes,
        ..context
    };
    let aggregate = Aggregate {
        keys: vec![0],
        calls: sum_and_count(),
        ttl: ttl.map(|m| m * MINUTE),
        phase,
    };
    build(&aggregate, context).unwrap()
}

fn drain(op: &mut dyn Operator) -> Vec<ChangeBatch> {
    std::iter::from_fn(|| op.pull().unwrap()).collect()
}

fn feed(op: &mut dyn Operator, batches: Vec<ChangeBatch>) {
    for batch in batches {
        op.push(0, batch).unwrap();
        assert!(op.pull().unwrap().is_none(), "emits at barriers only");
    }
}

fn end_of(epoch: u64) -> Barrier {
    Barrier {
        epoch,
        watermark: thalweg_dataflow::Watermark::NONE,
        idle: false,
        commit: false,
        last: false,
    }
}

/// Rows are spread over two partial aggregates, as two source subtasks do.
fn check(workshop: &mut Workshop, seed: u64, memory_bytes: usize) {
    let mut rng = StdRng::seed_from_u64(seed);
    let ttl = [None, Some(3), Some(20)][rng.random_range(0..3)];
    let n_keys = [1, 4, 300][rng.random_range(0..3)];
    let mut single = workshop.operator(Phase::Single, ttl, 1 << 20);
    let mut last = workshop.operator(Phase::Final, ttl, 1 << 20);
    let mut partials = [0, 1].map(|_| workshop.operator(Phase::Partial, ttl, memory_bytes));
    let mut now = 0;
    for epoch in 1..6 {
        for _ in 0..rng.random_range(0..4) {
            let rows: Vec<(String, i64, i64, i64)> = (0..rng.random_range(1..50))
                .map(|_| {
                    let key = format!("k{}", rng.random_range(0..n_keys));
                    (
                        key,
                        rng.random_range(-9..9),
                        now + rng.random_range(0..30),
                        1,
                    )
                })
                .collect();
            let rows: Vec<Row<'_>> = rows.iter().map(|r| (r.0.as_str(), r.1, r.2, r.3)).collect();
            feed(single.as_mut(), vec![batch(&rows)]);
            let partial = &mut partials[rng.random_range(0..2)];
            partial.push(0, batch(&rows)).unwrap();
            feed(last.as_mut(), drain(partial.as_mut()));
        }
        for partial in &mut partials {
            partial.barrier(&end_of(epoch)).unwrap();
            feed(last.as_mut(), drain(partial.as_mut()));
        }
        let watermark = rng.random_bool(0.5).then_some(now);
        let mut expected = barrier(single.as_mut(), epoch, watermark);
        let mut found = barrier(last.as_mut(), epoch, watermark);
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "seed {seed}, epoch {epoch}, ttl {ttl:?}");
        now += rng.random_range(0..40);
    }
}

#[test]
fn rule_5_2_two_phases_give_what_one_gives() {
    let mut workshop = Workshop::new();
    (0..400).for_each(|seed| check(&mut workshop, seed, 1 << 20));
}

#[test]
fn a_partial_phase_without_memory_hands_its_groups_out_at_once() {
    let mut workshop = Workshop::new();
    (0..50).for_each(|seed| check(&mut workshop, seed, 0));
}

/// What a partial aggregate emits for these rows, in batches of 8192, and how many of it before the barrier.
fn emitted(keys: impl Iterator<Item = u64>) -> (usize, usize) {
    let mut op = Workshop::new().operator(Phase::Partial, None, 1 << 30);
    let rows: Vec<(String, i64)> = keys.map(|k| (format!("k{k}"), k as i64)).collect();
    let mut early = 0;
    for chunk in rows.chunks(8192) {
        let rows: Vec<Row<'_>> = chunk.iter().map(|r| (r.0.as_str(), r.1, 0, 1)).collect();
        op.push(0, batch(&rows)).unwrap();
        early += drain(op.as_mut())
            .iter()
            .map(ChangeBatch::n_rows)
            .sum::<usize>();
    }
    op.barrier(&end_of(1)).unwrap();
    let late: usize = drain(op.as_mut()).iter().map(ChangeBatch::n_rows).sum();
    (early, early + late)
}

#[test]
fn rows_that_share_keys_are_gathered_and_others_pass() {
    assert_eq!(emitted((0..100_000).map(|i| i % 10)), (0, 10));
    let (early, all) = emitted(0..100_000);
    assert_eq!(all, 100_000);
    assert_eq!(
        early, all,
        "each row goes on as it comes, once that is known to be better"
    );
}
