//! GROUP BY and DISTINCT: which of the two kinds of result they have, and the updating kind.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Aggregate as LogicalAggregate, Expr, LogicalPlan};
use thalweg_dataflow::plan::{
    Aggregate, AggregateCall, AggregateState, Changelog, Exchange, Input, NodeId, Op, OutputPort,
    Phase, Properties,
};
use thalweg_dataflow::time::format_duration;

use super::builder::{Builder, unsupported};
use super::calls::{self, PlacedCall, Surroundings};
use super::input::{InputColumns, Projected};
use super::relation::arrow_schema;
use crate::changelog;
use crate::error::Fault;

/// A grouping to be lowered: an aggregate, or a DISTINCT, which is one without calls.
pub(super) struct Grouping<'a> {
    pub input: &'a LogicalPlan,
    pub keys: Vec<Expr>,
    pub calls: Vec<Expr>,
    /// Keys, then calls.
    pub schema: &'a DFSchema,
}

impl Grouping<'_> {
    pub fn call_name(&self, i: usize) -> &str {
        self.schema.field(self.keys.len() + i).name()
    }
}

impl Builder {
    pub fn aggregate(&mut self, aggregate: &LogicalAggregate) -> Result<NodeId, Fault> {
        if aggregate
            .group_expr
            .iter()
            .any(|e| matches!(e, Expr::GroupingSet(_)))
        {
            return Err(unsupported("this use of GROUPING SETS is not supported"));
        }
        self.grouping(&Grouping {
            input: &aggregate.input,
            keys: aggregate.group_expr.clone(),
            calls: aggregate.aggr_expr.clone(),
            schema: &aggregate.schema,
        })
    }

    pub fn distinct(&mut self, input: &LogicalPlan) -> Result<NodeId, Fault> {
        let schema = input.schema();
        let keys = schema
            .iter()
            .map(|field| Expr::Column(Column::from(field)))
            .collect();
        self.grouping(&Grouping {
            input,
            keys,
            calls: vec![],
            schema,
        })
    }

    fn grouping(&mut self, grouping: &Grouping<'_>) -> Result<NodeId, Fault> {
        if let Some(node) = self.window_of_time(grouping)? {
            return Ok(node);
        }
        let input = self.relation(grouping.input)?;
        if let Some(node) = self.window_of_columns(grouping, input)? {
            return Ok(node);
        }
        self.updating(grouping, input)
    }

    /// An aggregate whose result is a changelog of the query's answer (semantics 1.2).
    fn updating(&mut self, grouping: &Grouping<'_>, input: NodeId) -> Result<NodeId, Fault> {
        let mut columns = InputColumns::new(grouping.input.schema());
        let keys: Vec<usize> = grouping
            .keys
            .iter()
            .map(|key| columns.position(key))
            .collect();
        let placed = place_calls(grouping, &mut columns)?;
        let projected = columns.project(self, input)?;
        let around = Surroundings {
            input: self.properties(projected.node).changelog,
            windowed: false,
        };
        let calls = finish_calls(self, placed, &projected, around)?;

        let properties = changelog::aggregate(self.properties(projected.node), &keys);
        let ttl = if keys.is_empty() { None } else { self.ttl };
        self.notice_ttl(ttl, &keys, &projected);
        let schema = arrow_schema(grouping.schema);
        let mut aggregate = Aggregate {
            keys,
            calls,
            ttl,
            phase: Phase::Single,
        };
        let mut node = projected.node;
        if around.input == Changelog::AppendOnly && aggregate.calls.iter().all(mergeable) {
            node = self.partial(node, &aggregate, &schema);
            aggregate.keys = (0..aggregate.keys.len()).collect();
            aggregate.phase = Phase::Final;
        }
        let edge = by_key(node, &aggregate.keys);
        Ok(self.add(Op::Aggregate(aggregate), vec![edge], schema, properties))
    }

    /// The phase before the exchange.
    fn partial(&mut self, input: NodeId, whole: &Aggregate, result: &SchemaRef) -> NodeId {
        let keys = result.fields().iter().take(whole.keys.len()).cloned();
        let number = |name| Arc::new(Field::new(name, DataType::Int64, false));
        let beside = [number("n_rows"), number("first_seen")];
        let schema = Schema::new(keys.chain(beside).collect::<Vec<_>>());
        let aggregate = Aggregate {
            phase: Phase::Partial,
            ..whole.clone()
        };
        self.add(
            Op::Aggregate(aggregate),
            vec![Input::forward(input)],
            Arc::new(schema),
            Properties::default(),
        )
    }

    /// Says which rows will leave the result, and when (semantics 5.1).
    fn notice_ttl(&mut self, ttl: Option<i64>, keys: &[usize], input: &Projected) {
        let Some(ttl) = ttl else { return };
        let keys: Vec<_> = keys
            .iter()
            .map(|&k| input.schema.field(k).name().as_str())
            .collect();
        let notice = format!(
            "the row of a group ({}) leaves the result when no row of the group has come for {} of event time; \
             SET updating_ttl = '0' before the query keeps it for ever",
            keys.join(", "),
            format_duration(ttl)
        );
        if !self.notices.contains(&notice) {
            self.notices.push(notice);
        }
    }
}

pub(super) fn place_calls(
    grouping: &Grouping<'_>,
    columns: &mut InputColumns<'_>,
) -> Result<Vec<PlacedCall>, Fault> {
    let call = |(i, expr): (usize, &Expr)| calls::place(expr, grouping.call_name(i), columns);
    grouping.calls.iter().enumerate().map(call).collect()
}

pub(super) fn finish_calls(
    builder: &Builder,
    placed: Vec<PlacedCall>,
    input: &Projected,
    around: Surroundings,
) -> Result<Vec<AggregateCall>, Fault> {
    placed
        .into_iter()
        .map(|call| call.finish(builder, input, around))
        .collect()
}

/// Whether what was gathered of a call in one place can be added to what was gathered in another, cheaply.
pub(super) fn mergeable(call: &AggregateCall) -> bool {
    call.state != AggregateState::Multiset
}

/// An edge that brings the rows of a key together; without keys, all rows.
pub(super) fn by_key(node: NodeId, keys: &[usize]) -> Input {
    let exchange = if keys.is_empty() {
        Exchange::Single
    } else {
        Exchange::Hash(keys.to_vec())
    };
    Input {
        node,
        port: OutputPort::Rows,
        exchange,
    }
}
