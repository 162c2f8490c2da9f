//! Which column of a bound relation is its event time (semantics 2.1), traced through the logical plan.
//!
//! Rows carry their event time beside their columns, so a query need not select it. The column
//! matters to a window in FROM, whose DESCRIPTOR names it; to a window over an updating input, which
//! must keep it; and for the time zone of a window's start and end.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::Column;
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, LogicalPlan, Projection, TableScan, Union, Unnest,
};

use crate::bind::{RelationKind, StreamTable};
use crate::window::{WindowTvf, window_call};

/// The event time of a relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTime {
    pub column: TimeColumn,
    /// Further positions of the same column, ascending.
    copies: Vec<usize>,
    /// Its time zone, where it has one.
    pub zone: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeColumn {
    /// Position in the relation's schema.
    At(usize),
    /// No column of the relation is its event time.
    Absent,
    /// It comes from an intermediate stream whose filling query is not known here.
    Unknown,
}

impl EventTime {
    const ABSENT: Self = Self {
        column: TimeColumn::Absent,
        copies: Vec::new(),
        zone: None,
    };

    fn new(column: TimeColumn, zone: Option<Arc<str>>) -> Self {
        Self {
            column,
            copies: Vec::new(),
            zone,
        }
    }

    /// At these positions, in any order.
    fn at(mut positions: Vec<usize>, zone: Option<Arc<str>>) -> Self {
        positions.sort_unstable();
        positions.dedup();
        let mut positions = positions.into_iter();
        let column = positions.next().map_or(TimeColumn::Absent, TimeColumn::At);
        Self {
            column,
            copies: positions.collect(),
            zone,
        }
    }

    fn positions(&self) -> Vec<usize> {
        self.index()
            .into_iter()
            .chain(self.copies.iter().copied())
            .collect()
    }

    /// Whether the column at this position is the event time.
    pub fn is_at(&self, index: usize) -> bool {
        self.positions().contains(&index)
    }

    pub fn index(&self) -> Option<usize> {
        match self.column {
            TimeColumn::At(index) => Some(index),
            TimeColumn::Absent | TimeColumn::Unknown => None,
        }
    }

    /// The same time where columns have moved: `from` says which old column each new one is.
    fn moved(self, from: impl Iterator<Item = Option<usize>>) -> Self {
        if self.index().is_none() {
            return self;
        }
        let is_time = |(_, old): &(usize, Option<usize>)| old.is_some_and(|old| self.is_at(old));
        let places = from
            .enumerate()
            .filter(is_time)
            .map(|(new, _)| new)
            .collect();
        Self::at(places, self.zone)
    }
}

/// What is known of the intermediate streams of a script: by name, the event time of the query
/// that fills each.
#[derive(Debug, Clone, Default)]
pub struct Streams(HashMap<String, EventTime>);

impl Streams {
    pub fn insert(&mut self, name: String, event_time: EventTime) {
        self.0.insert(name, event_time);
    }
}

/// The event time of what `plan` gives.
pub fn of(plan: &LogicalPlan, streams: &Streams) -> EventTime {
    match plan {
        LogicalPlan::TableScan(scan) => scanned(scan, streams),
        LogicalPlan::Projection(projection) => projected(projection, streams),
        LogicalPlan::Aggregate(aggregate) => aggregated(aggregate, streams),
        LogicalPlan::Union(union) => united(union, streams),
        LogicalPlan::Unnest(unnest) => unnested(unnest, streams),
        LogicalPlan::Filter(node) => of(&node.input, streams),
        LogicalPlan::SubqueryAlias(node) => of(&node.input, streams),
        LogicalPlan::Sort(node) => of(&node.input, streams),
        LogicalPlan::Limit(node) => of(&node.input, streams),
        LogicalPlan::Distinct(Distinct::All(input)) => of(input, streams),
        LogicalPlan::Extension(_) => {
            WindowTvf::of(plan).map_or(EventTime::ABSENT, |w| of(w.input(), streams))
        }
        _ => EventTime::ABSENT,
    }
}

fn scanned(scan: &TableScan, streams: &Streams) -> EventTime {
    let Some(table) = scan.source.downcast_ref::<StreamTable>() else {
        return EventTime::ABSENT;
    };
    let event_time = match (table.def.event_time, streams.0.get(&table.def.name)) {
        (Some(index), _) => {
            let zone = zone(table.def.schema.field(index).data_type());
            EventTime::new(TimeColumn::At(index), zone)
        }
        (None, Some(filled)) => filled.clone(),
        (None, None) if table.kind == RelationKind::Stream => {
            EventTime::new(TimeColumn::Unknown, None)
        }
        (None, None) => EventTime::ABSENT,
    };
    match &scan.projection {
        None => event_time,
        Some(kept) => event_time.moved(kept.iter().map(|k| Some(*k))),
    }
}

fn zone(data_type: &DataType) -> Option<Arc<str>> {
    match data_type {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    }
}

fn projected(projection: &Projection, streams: &Streams) -> EventTime {
    let column = |expr| plain_column(expr).and_then(|c| index_in(&projection.input, c));
    of(&projection.input, streams).moved(projection.expr.iter().map(column))
}

/// A group keyed by its rows' event time has that event time; a window's result has its `window_time`.
fn aggregated(aggregate: &Aggregate, streams: &Streams) -> EventTime {
    let input = of(&aggregate.input, streams);
    if aggregate
        .group_expr
        .iter()
        .any(|e| window_call(strip_alias(e)).is_some())
    {
        return EventTime::new(TimeColumn::Absent, input.zone);
    }
    if let Some([_, _, time]) = window_in_group(aggregate) {
        let column = group_columns(aggregate)
            .position(|c| c == Some(time))
            .map_or(TimeColumn::Absent, TimeColumn::At);
        return EventTime::new(column, input.zone);
    }
    input.moved(group_columns(aggregate))
}

/// Whether an aggregate is grouped by a window, its own or one from FROM below it.
pub fn groups_by_window(aggregate: &Aggregate) -> bool {
    let is_window = |e: &Expr| window_call(strip_alias(e)).is_some();
    aggregate.group_expr.iter().any(is_window) || window_in_group(aggregate).is_some()
}

/// The window columns of an aggregate's input, if it groups by one of them.
fn window_in_group(aggregate: &Aggregate) -> Option<[usize; 3]> {
    let window = window_columns(&aggregate.input)?;
    group_columns(aggregate)
        .any(|c| c.is_some_and(|c| window.contains(&c)))
        .then_some(window)
}

/// Per grouping expression the input column that it is, if it is one.
fn group_columns(aggregate: &Aggregate) -> impl Iterator<Item = Option<usize>> {
    aggregate
        .group_expr
        .iter()
        .map(|e| plain_column(e).and_then(|c| index_in(&aggregate.input, c)))
}

fn united(union: &Union, streams: &Streams) -> EventTime {
    let mut inputs = union.inputs.iter().map(|input| of(input, streams));
    let Some(first) = inputs.next() else {
        return EventTime::ABSENT;
    };
    inputs.fold(first, |all, next| {
        let zone = all.zone.clone().filter(|_| all.zone == next.zone);
        match (all.column, next.column) {
            (TimeColumn::At(_), TimeColumn::At(_)) => {
                let both = all.positions().into_iter().filter(|p| next.is_at(*p));
                EventTime::at(both.collect(), zone)
            }
            (TimeColumn::Absent, _) | (_, TimeColumn::Absent) => {
                EventTime::new(TimeColumn::Absent, zone)
            }
            _ => EventTime::new(TimeColumn::Unknown, zone),
        }
    })
}

fn unnested(unnest: &Unnest, streams: &Streams) -> EventTime {
    let is_unnested = |index| {
        let mut lists = unnest.list_type_columns.iter().map(|(list, _)| *list);
        lists.any(|list| list == index) || unnest.struct_type_columns.contains(&index)
    };
    let kept = |index: &usize| (!is_unnested(*index)).then_some(*index);
    of(&unnest.input, streams).moved(unnest.dependency_indices.iter().map(kept))
}

/// Positions of the window columns (start, end, time) that a window in FROM gave to `plan`'s result.
fn window_columns(plan: &LogicalPlan) -> Option<[usize; 3]> {
    match plan {
        LogicalPlan::Filter(node) => window_columns(&node.input),
        LogicalPlan::SubqueryAlias(node) => window_columns(&node.input),
        LogicalPlan::Projection(node) => {
            let below = window_columns(&node.input)?;
            let place = |index| {
                let carries =
                    |e| plain_column(e).is_some_and(|c| index_in(&node.input, c) == Some(index));
                // A column that was not selected is found nowhere above.
                node.expr.iter().position(carries).unwrap_or(usize::MAX)
            };
            Some(below.map(place))
        }
        LogicalPlan::Extension(_) => {
            let n = WindowTvf::of(plan)?.n_input_columns();
            Some([n, n + 1, n + 2])
        }
        _ => None,
    }
}

/// The column that `expr` is, under its own or another name.
pub fn plain_column(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Alias(Alias { expr, .. }) => plain_column(expr),
        _ => None,
    }
}

pub fn strip_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(Alias { expr, .. }) => strip_alias(expr),
        other => other,
    }
}

fn index_in(plan: &LogicalPlan, column: &Column) -> Option<usize> {
    plan.schema().index_of_column(column).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bind;

    #[test]
    fn the_event_time_is_found_where_it_is_selected() {
        for (sql, expected) in [
            ("SELECT id, ts FROM orders", TimeColumn::At(1)),
            (
                "SELECT t AS u, k FROM (SELECT ts AS t, customer AS k FROM orders WHERE id > 1) AS o",
                TimeColumn::At(0),
            ),
            (
                "SELECT ts + interval '1 second', id FROM orders",
                TimeColumn::Absent,
            ),
            (
                "SELECT customer, ts FROM orders UNION ALL SELECT customer, ts FROM orders",
                TimeColumn::At(1),
            ),
            (
                "SELECT customer, ts FROM orders UNION ALL SELECT customer, NULL FROM clicks",
                TimeColumn::Absent,
            ),
            ("SELECT DISTINCT ts FROM orders", TimeColumn::At(0)),
            (
                "SELECT customer, ts, count(*) FROM orders GROUP BY customer, ts",
                TimeColumn::At(1),
            ),
            (
                "SELECT customer, max(ts) FROM orders GROUP BY customer",
                TimeColumn::Absent,
            ),
            ("SELECT unnest(tags), ts FROM orders", TimeColumn::At(1)),
            (
                "SELECT unnest(tags), ts AS t FROM orders",
                TimeColumn::At(1),
            ),
            (
                "SELECT u FROM (SELECT ts, ts AS u FROM orders)",
                TimeColumn::At(0),
            ),
            ("SELECT v, ts FROM flow", TimeColumn::Unknown),
            (
                "SELECT window_time, count(*) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_end, window_time",
                TimeColumn::At(0),
            ),
            (
                "SELECT window_end, count(*) FROM TUMBLE(orders, DESCRIPTOR(ts), INTERVAL '1 minute') GROUP BY window_end",
                TimeColumn::Absent,
            ),
        ] {
            let plan = bind(sql).unwrap();
            assert_eq!(of(&plan, &Streams::default()).column, expected, "{sql}");
        }
    }

    #[test]
    fn a_stream_has_the_event_time_of_the_query_that_fills_it() {
        let mut streams = Streams::default();
        let filler = bind("SELECT url, 1, at FROM clicks").unwrap();
        streams.insert("flow".into(), of(&filler, &streams));
        let reader = bind("SELECT ts AS t FROM flow").unwrap();
        let event_time = of(&reader, &streams);
        assert_eq!(
            (event_time.column, event_time.zone.as_deref()),
            (TimeColumn::At(0), Some("+00:00"))
        );
    }
}
