//! GROUPING SETS, ROLLUP and CUBE become a union of plain aggregates, one a set, with NULL for the
//! columns that a set leaves out and DataFusion's grouping id as a constant.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{
    Aggregate, EmptyRelation, Expr, ExprSchemable, LogicalPlan, Projection, Union, lit,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::optimizer::analyzer::resolve_grouping_function::ResolveGroupingFunction;

pub(super) fn expand(plan: LogicalPlan) -> Result<LogicalPlan> {
    // Turns grouping(x) into arithmetic on the grouping id, which only this rule knows how to do.
    let plan = ResolveGroupingFunction::new().analyze(plan, &ConfigOptions::default())?;
    let expanded = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(sets)] => Ok(Transformed::yes(union(&aggregate, sets)?)),
            _ => Ok(Transformed::no(LogicalPlan::Aggregate(aggregate))),
        },
        node => Ok(Transformed::no(node)),
    })?;
    Ok(expanded.data)
}

fn union(aggregate: &Aggregate, grouping: &GroupingSet) -> Result<LogicalPlan> {
    let columns: Vec<Expr> = grouping.distinct_expr().into_iter().cloned().collect();
    let sets = sets(grouping);
    let mut inputs = Vec::with_capacity(sets.len());
    for (i, set) in sets.iter().enumerate() {
        let ordinal = sets[..i].iter().filter(|earlier| *earlier == set).count();
        let id = grouping_id(&columns, set, ordinal);
        inputs.push(Arc::new(one_set(aggregate, &columns, set, id)?));
    }
    let united = match inputs.as_slice() {
        [only] => only.as_ref().clone(),
        _ => LogicalPlan::Union(Union::try_new(inputs)?),
    };
    // A union forgets the tables of its columns.
    let restored = aggregate
        .schema
        .iter()
        .enumerate()
        .map(|(i, (qualifier, field))| {
            Expr::Column(Column::new_unqualified(set_column(i)))
                .alias_qualified(qualifier.cloned(), field.name())
        });
    Ok(LogicalPlan::Projection(Projection::try_new(
        restored.collect(),
        Arc::new(united),
    )?))
}

/// The name of a column in the union, where names from several tables could be the same.
fn set_column(i: usize) -> String {
    format!("__set_{i}")
}

/// The sets in the order of SQL: ROLLUP (a, b) is (a, b), (a), (); CUBE (a, b) all subsets.
fn sets(grouping: &GroupingSet) -> Vec<Vec<Expr>> {
    match grouping {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        GroupingSet::Rollup(exprs) => (0..=exprs.len())
            .rev()
            .map(|n| exprs[..n].to_vec())
            .collect(),
        GroupingSet::Cube(exprs) => (0..1_usize << exprs.len())
            .map(|left_out| {
                let bit = |i: usize| exprs.len() - 1 - i;
                exprs
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| left_out >> bit(*i) & 1 == 0)
                    .map(|(_, e)| e.clone())
                    .collect()
            })
            .collect(),
    }
}

/// As [`Aggregate::INTERNAL_GROUPING_ID`] documents it: a bit for each column left out, the last column
/// lowest, and above them how often the same set came before.
fn grouping_id(columns: &[Expr], set: &[Expr], ordinal: usize) -> u64 {
    let left_out = columns.iter().fold(0, |bits, column| {
        bits << 1 | u64::from(!set.contains(column))
    });
    left_out | (ordinal as u64) << columns.len()
}

fn one_set(aggregate: &Aggregate, columns: &[Expr], set: &[Expr], id: u64) -> Result<LogicalPlan> {
    let schema = &aggregate.schema;
    let plain = if set.is_empty() && aggregate.aggr_expr.is_empty() {
        // The set () without a call is one row, whatever the input.
        LogicalPlan::EmptyRelation(EmptyRelation {
            produce_one_row: true,
            schema: Arc::new(DFSchema::empty()),
        })
    } else {
        LogicalPlan::Aggregate(Aggregate::try_new(
            Arc::clone(&aggregate.input),
            set.to_vec(),
            aggregate.aggr_expr.clone(),
        )?)
    };
    // DataFusion drops the second of two equal grouping expressions.
    let mut kept: Vec<&Expr> = Vec::new();
    for expr in set {
        if !kept.contains(&expr) {
            kept.push(expr);
        }
    }
    let mut exprs = Vec::with_capacity(schema.fields().len());
    for (i, field) in schema.fields().iter().enumerate() {
        let value = if i < columns.len() {
            match kept.iter().position(|e| **e == columns[i]) {
                Some(at) => Expr::Column(Column::from(plain.schema().qualified_field(at))),
                None => lit(ScalarValue::try_from(field.data_type())?),
            }
        } else if i == columns.len() {
            lit(id).cast_to(field.data_type(), plain.schema())?
        } else {
            let at = kept.len() + i - columns.len() - 1;
            Expr::Column(Column::from(plain.schema().qualified_field(at)))
        };
        exprs.push(value.alias(set_column(i)));
    }
    Ok(LogicalPlan::Projection(Projection::try_new(
        exprs,
        Arc::new(plain),
    )?))
}
