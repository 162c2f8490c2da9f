//! Golden plans: SQL in, the text of EXPLAIN out, or the faults. After a change that is meant:
//! `UPDATE_EXPECT=1 cargo test -p thalweg-planner -p thalweg-server --test plans`.

mod changelogs;
mod jobs;
mod refusals;
mod registry;
mod rows;
mod sessions;
mod sinks;
mod updating;
mod windows;
mod windows_in_from;

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use expect_test::Expect;
use thalweg_dataflow::plan::{
    AggregateState, Changelog, Exchange, Graph, Input, Node, Op, OutputPort, Phase,
};
use thalweg_dataflow::table::dead_letter_schema;
use thalweg_planner::explain::explain_job;
use thalweg_planner::{Planner, ScriptOptions};

const TABLES: &str = "
    CREATE TABLE orders (
        order_id BIGINT, customer_id TEXT, amount DECIMAL(12, 2), price DOUBLE PRECISION, tags TEXT[],
        event_time TIMESTAMP, WATERMARK FOR event_time AS event_time - INTERVAL '5 seconds'
    ) WITH (connector = 'single_file', path = 'orders.ndjson');
    CREATE TABLE clicks (user_id BIGINT, url TEXT, at TIMESTAMP WITH TIME ZONE)
        WITH (connector = 'kafka', topic = 'clicks', event_time_field = 'at');
    CREATE TABLE accounts (id BIGINT PRIMARY KEY, owner TEXT, balance BIGINT, seen TIMESTAMP, WATERMARK FOR seen)
        WITH (connector = 'kafka', topic = 'accounts', format = 'debezium_json');
    CREATE TABLE ticks WITH (connector = 'impulse');
";

/// Plans `sql` after the tables above.
#[track_caller]
fn check(sql: &str, expected: Expect) {
    expected.assert_eq(&plan(sql));
}

fn plan(sql: &str) -> String {
    let mut planner = Planner::new(Arc::new(registry::TestRegistry::new()));
    let options = ScriptOptions::default();
    planner
        .plan(TABLES, &options)
        .expect("the tables are in order");
    match planner.plan(sql, &options) {
        Ok(script) => {
            script.jobs.iter().for_each(|job| check_graph(&job.graph));
            script
                .jobs
                .iter()
                .map(explain_job)
                .collect::<Vec<_>>()
                .join("\n")
        }
        Err(faults) => faults
            .iter()
            .map(|fault| format!("{:?}: {fault}\n", fault.kind))
            .collect(),
    }
}

/// What every graph must fulfil: positions within bounds, expressions of the types that schemas promise,
/// and no state chosen that cannot take what comes.
fn check_graph(graph: &Graph) {
    for node in &graph.nodes {
        for edge in &node.inputs {
            if let Exchange::Hash(key) | Exchange::Changelog { key, .. } = &edge.exchange {
                let n = graph.node(edge.node).schema.fields().len();
                assert!(!key.is_empty() && key.iter().all(|&k| k < n));
            }
        }
        let n = node.schema.fields().len();
        let known = node
            .properties
            .key
            .iter()
            .flatten()
            .chain(&node.properties.time_column);
        assert!(known.copied().all(|column| column < n));
        check_types(graph, node);
        check_states(graph, node);
    }
}

fn check_types(graph: &Graph, node: &Node) {
    let inputs: Vec<_> = node.inputs.iter().map(|i| input_schema(graph, i)).collect();
    let types = || node.schema.fields().iter().map(|f| f.data_type().clone());
    match &node.op {
        Op::Project(exprs) => {
            let computed = exprs
                .iter()
                .map(|e| e.data_type(&inputs[0]).expect("a type"));
            assert_eq!(computed.collect::<Vec<_>>(), types().collect::<Vec<_>>());
        }
        Op::Union => inputs
            .iter()
            .for_each(|input| assert_eq!(input.fields(), node.schema.fields())),
        Op::Sink(spec) => assert_eq!(inputs[0].fields(), spec.schema.fields()),
        Op::Aggregate(aggregate) => {
            let keys = aggregate
                .keys
                .iter()
                .map(|&k| inputs[0].field(k).data_type().clone());
            let calls = aggregate
                .calls
                .iter()
                .map(|c| c.function.field().data_type().clone());
            let types: Vec<_> = types().collect();
            match aggregate.phase {
                Phase::Partial => assert_eq!(keys.collect::<Vec<_>>(), types[..types.len() - 2]),
                _ => assert_eq!(keys.chain(calls).collect::<Vec<_>>(), types),
            }
        }
        Op::WindowAggregate(aggregate) => {
            let keys = aggregate
                .keys
                .iter()
                .map(|&k| inputs[0].field(k).data_type().clone());
            let calls = aggregate
                .calls
                .iter()
                .map(|c| c.function.field().data_type().clone());
            let types: Vec<_> = types().skip(2).collect();
            match aggregate.phase {
                Phase::Partial => assert_eq!(keys.collect::<Vec<_>>(), types[..types.len() - 1]),
                _ => assert_eq!(keys.chain(calls).collect::<Vec<_>>(), types),
            }
        }
        _ => {}
    }
}

fn input_schema(graph: &Graph, input: &Input) -> SchemaRef {
    match input.port {
        OutputPort::Rows => Arc::clone(&graph.node(input.node).schema),
        OutputPort::DeadLetter => dead_letter_schema(),
    }
}

fn check_states(graph: &Graph, node: &Node) {
    let calls = match &node.op {
        Op::Aggregate(aggregate) => &aggregate.calls,
        Op::WindowAggregate(aggregate) => &aggregate.calls,
        _ => return,
    };
    let retracts = graph.node(node.inputs[0].node).properties.changelog == Changelog::Updating;
    let takes_retractions = |state| match state {
        AggregateState::Columns(columns) => !format!("{columns:?}").starts_with('M'),
        AggregateState::Accumulator => false,
        AggregateState::Multiset => true,
    };
    assert!(!retracts || calls.iter().all(|call| takes_retractions(call.state)));
}
