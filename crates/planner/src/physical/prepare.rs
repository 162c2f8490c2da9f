//! Queries ready to be lowered: in the order of their streams, rewritten, optimised, and with the list of
//! what they read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::LogicalPlan;

use crate::bind::{BoundQuery, RelationKind, SinkTarget, StreamTable};
use crate::catalog::TableDef;
use crate::error::{Fault, FaultKind};
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

/// Optimises all queries; those that fill streams come before those that read them. Errors: a stream
/// that nothing fills, that two queries fill, or that feeds itself; whatever is wrong with a query.
pub(super) fn prepare(queries: Vec<BoundQuery>) -> Result<Vec<Prepared>, Vec<Fault>> {
    let mut faults = stream_faults(&queries);
    let ordered = match in_stream_order(queries) {
        Ok(ordered) => ordered,
        Err(cycle) => {
            faults.push(cycle);
            return Err(faults);
        }
    };
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

fn stream_faults(queries: &[BoundQuery]) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut filled = BTreeSet::new();
    for query in queries {
        if let Some(name) = fills(query)
            && !filled.insert(name)
        {
            let message = format!("stream \"{name}\" is filled by two queries");
            let hint =
                "an intermediate stream takes one INSERT; put the queries together with UNION ALL";
            faults.push(
                Fault::new(FaultKind::DuplicateObject, message)
                    .hint(hint)
                    .at(query.position),
            );
        }
    }
    for query in queries {
        for name in streams_read(&query.plan)
            .iter()
            .filter(|name| !filled.contains(name.as_str()))
        {
            let message = format!("nothing in this script fills stream \"{name}\"");
            let hint =
                format!("a table without a connector is filled by one INSERT INTO {name} SELECT …");
            faults.push(
                Fault::new(FaultKind::UndefinedObject, message)
                    .hint(hint)
                    .at(query.position),
            );
        }
    }
    faults
}

/// Fillers before readers, otherwise as written. Errors: streams that feed each other in a circle.
fn in_stream_order(queries: Vec<BoundQuery>) -> Result<Vec<BoundQuery>, Fault> {
    let fillers: HashMap<String, usize> = queries
        .iter()
        .enumerate()
        .filter_map(|(i, q)| Some((fills(q)?.to_string(), i)))
        .collect();
    let needs: Vec<Vec<usize>> = queries
        .iter()
        .map(|q| {
            streams_read(&q.plan)
                .iter()
                .filter_map(|s| fillers.get(s).copied())
                .collect()
        })
        .collect();
    let mut done = vec![false; queries.len()];
    let mut order = Vec::with_capacity(queries.len());
    while order.len() < queries.len() {
        let is_ready = |i: &usize| !done[*i] && needs[*i].iter().all(|n| done[*n]);
        let Some(next) = (0..queries.len()).find(is_ready) else {
            let stuck = (0..queries.len())
                .find(|i| !done[*i])
                .expect("some query is left");
            let name = fills(&queries[stuck]).unwrap_or(&queries[stuck].sink.table);
            let message = format!("stream \"{name}\" depends on itself");
            return Err(Fault::new(FaultKind::Unsupported, message).at(queries[stuck].position));
        };
        done[next] = true;
        order.push(next);
    }
    let mut slots: Vec<Option<BoundQuery>> = queries.into_iter().map(Some).collect();
    Ok(order
        .into_iter()
        .map(|i| slots[i].take().expect("each query once"))
        .collect())
}
