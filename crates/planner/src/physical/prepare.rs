//! Queries ready to be lowered: in the order of their streams, rewritten, optimised, and with the list of
//! what they read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::bind::{BoundQuery, RelationKind, SinkTarget, StreamTable};
use crate::catalog::TableDef;
use crate::error::Fault;
use crate::event_time::{self, Streams};
use crate::functions::Functions;
use crate::optimize::optimize;
use crate::rewrite::rewrite;

/// A query whose plan is optimised.
pub(super) struct Prepared {
    pub query: BoundQuery,
    /// By name: each table that is read, and the positions of the columns read from it.
    pub tables: BTreeMap<String, (Arc<TableDef>, BTreeSet<usize>)>,
    pub streams: BTreeSet<String>,
}

/// Optimises all queries; those that fill streams come before those that read them. Errors: whatever
/// is wrong with a query.
pub(super) fn prepare(queries: Vec<BoundQuery>) -> Result<Vec<Prepared>, Vec<Fault>> {
    let ordered = in_stream_order(queries);
    let mut faults = Vec::new();
    let mut streams = Streams::default();
    let mut prepared = Vec::with_capacity(ordered.len());
    for query in ordered {
        let position = query.position;
        match prepare_one(query, &mut streams) {
            Ok(one) => prepared.push(one),
            Err(fault) => faults.push(fault.at(position)),
        }
    }
    if faults.is_empty() {
        Ok(prepared)
    } else {
        Err(faults)
    }
}

fn prepare_one(mut query: BoundQuery, streams: &mut Streams) -> Result<Prepared, Fault> {
    let rewritten = rewrite(query.plan, streams)?;
    if let SinkTarget::Stream(def) = &query.sink.target {
        streams.insert(def.name.clone(), event_time::of(&rewritten, streams));
    }
    query.plan = optimize(rewritten, Functions::get()).map_err(Fault::from_datafusion)?;
    let mut tables: BTreeMap<String, (Arc<TableDef>, BTreeSet<usize>)> = BTreeMap::new();
    for_each_scan(&query.plan, |table, columns| {
        if table.kind == RelationKind::Table {
            let entry = || (Arc::clone(&table.def), BTreeSet::new());
            tables
                .entry(table.def.name.clone())
                .or_insert_with(entry)
                .1
                .extend(columns);
        }
    });
    let streams = streams_read(&query.plan);
    Ok(Prepared {
        query,
        tables,
        streams,
    })
}

/// Calls `visit` with each scanned relation and the positions of the columns read.
fn for_each_scan(plan: &LogicalPlan, mut visit: impl FnMut(&StreamTable, Vec<usize>)) {
    let walk = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = scan.source.downcast_ref::<StreamTable>()
        {
            let all = || (0..table.def.columns.len()).collect();
            visit(table, scan.projection.clone().unwrap_or_else(all));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walk.expect("the visitor gives no error");
}

fn streams_read(plan: &LogicalPlan) -> BTreeSet<String> {
    let mut streams = BTreeSet::new();
    for_each_scan(plan, |table, _| {
        if table.kind == RelationKind::Stream {
            streams.insert(table.def.name.clone());
        }
    });
    streams
}

fn fills(query: &BoundQuery) -> Option<&str> {
    match &query.sink.target {
        SinkTarget::Stream(def) => Some(&def.name),
        SinkTarget::Connector { .. } => None,
    }
}

/// Fillers before readers, otherwise as written. What the binder has refused is left out: a second query
/// that fills a stream, and streams that feed each other in a circle.
fn in_stream_order(queries: Vec<BoundQuery>) -> Vec<BoundQuery> {
    let mut filled = BTreeSet::new();
    let mut waiting: Vec<BoundQuery> = Vec::with_capacity(queries.len());
    for query in queries {
        if fills(&query).is_none_or(|name| filled.insert(name.to_string())) {
            waiting.push(query);
        }
    }
    let mut ordered = Vec::with_capacity(waiting.len());
    loop {
        let unfilled: BTreeSet<&str> = waiting.iter().filter_map(fills).collect();
        let is_ready = |query: &BoundQuery| {
            streams_read(&query.plan)
                .iter()
                .all(|name| !unfilled.contains(name.as_str()))
        };
        match waiting.iter().position(is_ready) {
            Some(next) => ordered.push(waiting.remove(next)),
            None => return ordered,
        }
    }
}
