//! GROUP BY and DISTINCT: which of the two kinds of result they have, and the updating kind.

use datafusion::common::{Column, DFSchema};
use datafusion::logical_expr::{Aggregate as LogicalAggregate, Expr, LogicalPlan};
use thalweg_dataflow::plan::{Aggregate, AggregateCall, Exchange, Input, NodeId, Op, OutputPort};
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
        let edge = by_key(projected.node, &keys);
        let schema = arrow_schema(grouping.schema);
        Ok(self.add(
            Op::Aggregate(Aggregate { keys, calls, ttl }),
            vec![edge],
            schema,
            properties,
        ))
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
