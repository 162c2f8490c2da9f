//! From bound queries to jobs: each query's plan is rewritten and optimised, queries that share a source
//! or a stream are put together, and their logical nodes become the operators of one graph.
//!
//! Called by the script once all its statements are bound. What no operator can do rightly is refused
//! here, by name.

mod aggregate;
mod bounds;
mod builder;
mod calls;
mod changelog;
mod connect;
mod expr;
mod input;
mod job;
mod merge;
pub(crate) mod overflow;
mod peel;
mod phases;
mod prepare;
mod relation;
mod same;
mod session;
mod sink;
mod unnest;
mod window;

use job::BuiltJob;
use thalweg_dataflow::plan::NodeId;
use thalweg_dataflow::table::SourceSpec;

use crate::bind::{BoundQuery, BoundSink};
use crate::catalog::TableDef;
use crate::error::Fault;
use crate::script::Job;

/// Makes the source of a table of which columns at these positions are read.
pub type SourceOf<'a> = dyn Fn(&TableDef, &[usize]) -> Result<SourceSpec, Fault> + 'a;

/// What lowering asks of the binder.
#[derive(Clone, Copy)]
pub struct Tables<'a> {
    /// The source of a table of which columns at these positions are read, which it then gives in this order.
    pub source: &'a SourceOf<'a>,
    /// How rows are written into a table by name: for the dead letters of a source.
    pub sink: &'a dyn Fn(&str) -> Result<BoundSink, Fault>,
}

/// The jobs of a script and where its queries ended up.
#[derive(Debug, Default)]
pub struct Lowered {
    pub jobs: Vec<Job>,
    /// One per query, in the order in which they were given.
    pub placed: Vec<Placed>,
}

/// Where a query is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    pub statement: usize,
    /// Position in [`Lowered::jobs`].
    pub job: usize,
    /// Its sink; of a query that fills a stream, the node that emits the stream.
    pub sink: NodeId,
}

/// Plans the queries of a script together. Errors: every fault found, of all queries.
pub fn lower(queries: Vec<BoundQuery>, tables: Tables<'_>) -> Result<Lowered, Vec<Fault>> {
    let prepared = prepare::prepare(queries)?;
    let groups = connect::connect(&prepared);
    let mut lowered = Lowered::default();
    let mut faults = Vec::new();
    for group in groups {
        match job::build(&prepared, &group, tables) {
            Ok(BuiltJob { job, sinks }) => {
                let index = lowered.jobs.len();
                let placed = sinks.into_iter().map(|(statement, sink)| Placed {
                    statement,
                    job: index,
                    sink,
                });
                lowered.placed.extend(placed);
                lowered.jobs.push(job);
            }
            Err(found) => faults.extend(found),
        }
    }
    lowered.placed.sort_by_key(|placed| placed.statement);
    if faults.is_empty() {
        Ok(lowered)
    } else {
        Err(faults)
    }
}
