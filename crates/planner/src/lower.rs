//! From a bound script to its jobs and the outcome of each statement.

use std::collections::BTreeSet;

use thalweg_dataflow::options::Registry;

use crate::bind::{BoundQuery, source_spec};
use crate::catalog::TableDef;
use crate::error::{Fault, FaultKind};
use crate::explain::explain_job;
use crate::physical::{Lowered, Placed, Tables, lower};
use crate::script::{Outcome, Script};
use crate::statements::{BoundOutcome, BoundScript, filled_stream, read_streams};

/// Lowers the queries of a script. Where the script has faults already, what is left of it is lowered
/// only to find more of them.
pub fn lower_script(
    bound: &BoundScript,
    registry: &dyn Registry,
    faults: &mut Vec<Fault>,
) -> Script {
    let lowering = Lowering { bound, registry };
    let mut queries = bound.queries.clone();
    if !faults.is_empty() {
        retain_complete(&mut queries);
    }
    let lowered = lowering.lower(queries).unwrap_or_else(|found| {
        faults.extend(found);
        Lowered::default()
    });
    let mut explained = Vec::new();
    for query in &bound.explained {
        match lowering.explain(query) {
            Ok(text) => explained.push(text),
            Err(found) => faults.extend(found),
        }
    }
    if !faults.is_empty() {
        return Script::default();
    }
    let outcomes = bound.outcomes.iter().enumerate();
    let outcomes = outcomes.map(|(statement, outcome)| match outcome {
        BoundOutcome::Done(tag) => Outcome::Done(tag.to_string()),
        BoundOutcome::Rows { columns, rows } => Outcome::Rows {
            columns: columns.clone(),
            rows: rows.clone(),
        },
        BoundOutcome::Explain(index) => Outcome::Text(explained[*index].clone()),
        BoundOutcome::Query(index) => placed(&bound.queries[*index], statement, &lowered.placed),
    });
    Script {
        outcomes: outcomes.collect(),
        jobs: lowered.jobs,
    }
}

fn placed(query: &BoundQuery, statement: usize, places: &[Placed]) -> Outcome {
    let place = places
        .iter()
        .find(|place| place.statement == statement)
        .expect("every query has its place in a job");
    Outcome::Query {
        job: place.job,
        sink: place.sink,
        kind: query.kind,
        target: query.sink.table.clone(),
    }
}

struct Lowering<'a> {
    bound: &'a BoundScript,
    registry: &'a dyn Registry,
}

impl Lowering<'_> {
    fn lower(&self, queries: Vec<BoundQuery>) -> Result<Lowered, Vec<Fault>> {
        let source = |def: &TableDef, columns: &[usize]| source_spec(def, columns, self.registry);
        let sink = |table: &str| {
            let sink = self.bound.dead_letters.get(table).cloned();
            // Its fault stands in the list already.
            sink.ok_or_else(|| {
                Fault::new(
                    FaultKind::Internal,
                    format!("no sink for dead letters \"{table}\""),
                )
            })
        };
        lower(
            queries,
            Tables {
                source: &source,
                sink: &sink,
            },
        )
    }

    /// The plan of one query, with those that fill the streams which it reads.
    fn explain(&self, query: &BoundQuery) -> Result<String, Vec<Fault>> {
        let mut queries = vec![query.clone()];
        let mut wanted: Vec<String> = read_streams(query).into_iter().collect();
        let mut seen = BTreeSet::new();
        while let Some(stream) = wanted.pop() {
            if !seen.insert(stream.clone()) {
                continue;
            }
            if let Some(filler) = self
                .bound
                .queries
                .iter()
                .find(|q| filled_stream(q) == Some(&stream))
            {
                wanted.extend(read_streams(filler));
                queries.push(filler.clone());
            }
        }
        let lowered = self.lower(queries)?;
        let plans: Vec<_> = lowered.jobs.iter().map(explain_job).collect();
        Ok(plans.join("\n"))
    }
}

/// Drops the queries that read a stream which none of the others fills.
fn retain_complete(queries: &mut Vec<BoundQuery>) {
    loop {
        let filled: BTreeSet<String> = queries
            .iter()
            .filter_map(filled_stream)
            .map(str::to_string)
            .collect();
        let n_before = queries.len();
        queries.retain(|query| {
            read_streams(query)
                .iter()
                .all(|stream| filled.contains(stream))
        });
        if queries.len() == n_before {
            return;
        }
    }
}
