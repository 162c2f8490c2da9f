//! From a bound script to its jobs and the outcome of each statement.

use std::collections::BTreeSet;

use thalweg_dataflow::options::Registry;
use thalweg_dataflow::table::dead_letter_schema;

use crate::bind::{BoundQuery, BoundSink, source_spec};
use crate::catalog::TableDef;
use crate::error::Fault;
use crate::explain::explain_job;
use crate::physical::{Lowered, Placed, Tables, lower};
use crate::script::{Outcome, Script};
use crate::statements::{BoundOutcome, BoundScript, filled_stream, read_streams};

/// Lowers the queries of a script. Where the script has faults already, what is left of it is lowered
/// only to find more of them; streams that nothing fills are among those.
pub fn lower_script(
    bound: &BoundScript,
    registry: &dyn Registry,
    faults: &mut Vec<Fault>,
) -> Script {
    let lowering = Lowering { bound, registry };
    let mut queries = bound.queries.clone();
    retain_complete(&mut queries);
    let lowered = lowering.lower(queries).unwrap_or_else(|found| {
        faults.extend(found);
        Lowered::default()
    });
    let mut explained = Vec::new();
    for query in bound
        .explained
        .iter()
        .filter(|query| lowering.is_complete(query))
    {
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
        limit: query.limit,
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
            // Where it is missing, why stands among the faults already.
            let missing = || BoundSink::result(0, dead_letter_schema());
            Ok(self
                .bound
                .dead_letters
                .get(table)
                .cloned()
                .unwrap_or_else(missing))
        };
        lower(
            queries,
            Tables {
                source: &source,
                sink: &sink,
            },
        )
    }

    /// Whether all streams that a query reads are filled; if not, that is among the faults already.
    fn is_complete(&self, query: &BoundQuery) -> bool {
        let mut with_query = self.bound.queries.clone();
        with_query.push(query.clone());
        retain_complete(&mut with_query);
        with_query
            .last()
            .is_some_and(|last| last.statement == query.statement)
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

/// Keeps the queries that can be lowered without the faulty ones: a stream's first filler, and what
/// reads only streams that are filled.
fn retain_complete(queries: &mut Vec<BoundQuery>) {
    let mut filled = BTreeSet::new();
    let mut kept = vec![false; queries.len()];
    loop {
        let is_ready = |(n, query): &(usize, &BoundQuery)| {
            let first = filled_stream(query).is_none_or(|stream| !filled.contains(stream));
            !kept[*n] && first && read_streams(query).is_subset(&filled)
        };
        let Some((next, query)) = queries.iter().enumerate().find(is_ready) else {
            break;
        };
        let stream = filled_stream(query).map(str::to_string);
        kept[next] = true;
        filled.extend(stream);
    }
    let mut kept = kept.into_iter();
    queries.retain(|_| kept.next() == Some(true));
}
