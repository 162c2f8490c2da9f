//! Whole scripts to jobs.

use crate::script::{Outcome, Planner, QueryKind, ScriptOptions};
use crate::test_registry::{TestRegistry, planned};
use thalweg_dataflow::plan::Op;

use super::TABLES;

#[test]
fn outcomes_point_at_their_sinks() {
    let script = planned(&format!(
        "{TABLES} INSERT INTO totals (customer, n) SELECT customer, count(*) FROM orders GROUP BY customer;
         SELECT url FROM clicks; SHOW timezone; INSERT INTO log (id) SELECT order_id FROM orders"
    ))
    .unwrap();
    assert_eq!(script.outcomes.len(), 8);
    assert_eq!(script.jobs.len(), 2, "queries over one source are one job");
    let mut seen = Vec::new();
    for outcome in &script.outcomes {
        if let Outcome::Query {
            job,
            sink,
            kind,
            target,
            ..
        } = outcome
        {
            let Op::Sink(spec) = &script.jobs[*job].graph.node(*sink).op else {
                panic!("no sink")
            };
            assert_eq!(spec.table, *target);
            seen.push((target.as_str(), *kind));
        }
    }
    assert_eq!(
        seen,
        [
            ("totals", QueryKind::Insert),
            ("5", QueryKind::Select),
            ("log", QueryKind::Insert)
        ]
    );
}

#[test]
fn tables_outlive_their_script() {
    let mut planner = Planner::new(TestRegistry::shared());
    planner.plan(TABLES, &ScriptOptions::default()).unwrap();
    let script = planner
        .plan(
            "SELECT count(*) AS n FROM orders",
            &ScriptOptions::default(),
        )
        .unwrap();
    assert_eq!(script.jobs.len(), 1);
}

#[test]
fn faults_of_lowering_come_with_those_of_binding() {
    let faults = planned(&format!(
        "{TABLES}SELECT foo FROM orders;
INSERT INTO log (id) SELECT count(*) FROM orders;
SELECT bar FROM orders"
    ))
    .unwrap_err();
    let lines: Vec<_> = faults.iter().map(|f| f.position.map(|p| p.line)).collect();
    let before = TABLES.matches('\n').count() as u64;
    assert_eq!(lines, [1, 2, 3].map(|n| Some(before + n)), "{faults:?}");
}
