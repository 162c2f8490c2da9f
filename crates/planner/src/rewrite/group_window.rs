//! `GROUP BY tumble(width)` becomes a [`WindowTvf`] below the aggregate, which then groups by its columns.
//!
//! ```text
//! Aggregate [tumble(w), k]        Projection  {start, end} AS "tumble(w)", k
//!   input                    →      Aggregate [__window_start, __window_end, k]
//!                                     WindowTvf: w
//!                                       input
//! ```
//!
//! A window function anywhere else is refused: it has no value of its own.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DataFusionError, Result};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan, Projection, lit};
use thalweg_dataflow::plan::Window;

use crate::changelog::may_update;
use crate::error::{Fault, FaultKind};
use crate::event_time::{self, Streams};
use crate::window::{WindowNames, WindowTvf, check_descriptor, window_call};

pub(super) fn rewrite(plan: LogicalPlan, streams: &Streams) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        // A window's type may have gained a time zone below.
        let node = node.recompute_schema()?;
        match node {
            LogicalPlan::Aggregate(aggregate) if groups_by_window(&aggregate)? => {
                Ok(Transformed::yes(windowed(aggregate, streams)?))
            }
            node => match WindowTvf::of(&node) {
                Some(tvf) => Ok(Transformed::yes(resolved(tvf, streams)?.into_plan())),
                None => {
                    refuse_elsewhere(&node)?;
                    Ok(Transformed::yes(node))
                }
            },
        }
    })?;
    Ok(rewritten.data)
}

/// Whether every call of a window function describes a window.
pub(super) fn check_calls(plan: &LogicalPlan) -> Result<(), Fault> {
    let walk = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|e| match window_call(e) {
                Some(call) => call
                    .window()
                    .map(|_| TreeNodeRecursion::Jump)
                    .map_err(DataFusionError::from),
                None => Ok(TreeNodeRecursion::Continue),
            })
        })
    });
    walk.map(|_| ()).map_err(Fault::from_datafusion)
}

/// A window in FROM, now that the streams below it are known.
fn resolved(tvf: &WindowTvf, streams: &Streams) -> Result<WindowTvf> {
    let event_time = event_time::of(tvf.input(), streams);
    if let Some(time) = tvf.time() {
        check_descriptor(tvf.input(), time, &event_time)
            .map_err(|fault| fault.at(tvf.descriptor()))?;
    }
    // The column is kept only where a retraction may need it: it costs a decoded column.
    tvf.resolved(&event_time, may_update(tvf.input()))
}

fn groups_by_window(aggregate: &Aggregate) -> Result<bool> {
    for expr in &aggregate.aggr_expr {
        refuse_in(expr)?;
    }
    Ok(aggregate.group_expr.iter().any(contains_call))
}

fn contains_call(expr: &Expr) -> bool {
    expr.exists(|e| Ok(window_call(e).is_some()))
        .unwrap_or(false)
}

fn windowed(aggregate: Aggregate, streams: &Streams) -> Result<LogicalPlan> {
    let Aggregate {
        input,
        group_expr,
        aggr_expr,
        schema,
        ..
    } = aggregate;
    let window = the_window(&group_expr)?;
    let event_time = event_time::of(&input, streams);
    let time = event_time.index().filter(|_| may_update(&input));
    let time = time.map(|index| Expr::Column(Column::from(input.schema().qualified_field(index))));
    let tvf = WindowTvf::try_new(
        window,
        WindowNames::GROUP,
        Arc::unwrap_or_clone(input),
        time,
        event_time.zone,
    )?;

    let is_window = |expr: &Expr| window_call(event_time::strip_alias(expr)).is_some();
    let mut keys = Vec::with_capacity(group_expr.len() + 1);
    if group_expr.iter().any(is_window) {
        keys.extend([
            column(WindowNames::GROUP.start),
            column(WindowNames::GROUP.end),
        ]);
    }
    // Per grouping expression its position in `keys`; `None`: it is the window itself.
    let mut places = Vec::with_capacity(group_expr.len());
    for expr in group_expr {
        if is_window(&expr) {
            places.push(None);
        } else {
            places.push(Some(keys.len()));
            keys.push(expr.transform_up(replace_call)?.data);
        }
    }
    let n_keys = keys.len();
    let grouped = Aggregate::try_new(Arc::new(tvf.into_plan()), keys, aggr_expr)?;
    let exprs = restored(&schema, &grouped.schema, &places, n_keys);
    Ok(LogicalPlan::Projection(Projection::try_new(
        exprs,
        Arc::new(LogicalPlan::Aggregate(grouped)),
    )?))
}

/// The columns of the aggregate as it was written, from those of the rewritten one.
fn restored(
    written: &DFSchema,
    grouped: &DFSchema,
    places: &[Option<usize>],
    n_keys: usize,
) -> Vec<Expr> {
    let value = |i: usize| {
        let at = match places.get(i) {
            Some(None) => return pair(),
            Some(Some(at)) => *at,
            None => n_keys + i - places.len(),
        };
        Expr::Column(Column::from(grouped.qualified_field(at)))
    };
    let named = |(i, (qualifier, field)): (usize, (Option<&_>, &Arc<Field>))| {
        let value = value(i);
        match &value {
            Expr::Column(c) if c.relation.as_ref() == qualifier && c.name == *field.name() => value,
            _ => value.alias_qualified(qualifier.cloned(), field.name()),
        }
    };
    written.iter().enumerate().map(named).collect()
}

/// The one window of a GROUP BY.
fn the_window(group_expr: &[Expr]) -> Result<Window> {
    let mut found: Option<Window> = None;
    for expr in group_expr {
        expr.apply(|e| {
            let Some(call) = window_call(e) else {
                return Ok(TreeNodeRecursion::Continue);
            };
            let window = call.window()?;
            match found.replace(window) {
                Some(other) if other != window => {
                    let fault =
                        Fault::new(FaultKind::Unsupported, "GROUP BY has two different windows")
                            .hint("group by one window in a subquery and by the other around it");
                    Err(fault.into())
                }
                _ => Ok(TreeNodeRecursion::Continue),
            }
        })?;
    }
    found.ok_or_else(|| {
        Fault::new(FaultKind::Internal, "a window is missing from its GROUP BY").into()
    })
}

fn replace_call(expr: Expr) -> Result<Transformed<Expr>> {
    Ok(match window_call(&expr) {
        Some(_) => Transformed::yes(pair()),
        None => Transformed::no(expr),
    })
}

fn pair() -> Expr {
    named_struct(vec![
        lit("start"),
        column(WindowNames::GROUP.start),
        lit("end"),
        column(WindowNames::GROUP.end),
    ])
}

fn column(name: &str) -> Expr {
    Expr::Column(Column::new_unqualified(name))
}

fn refuse_elsewhere(node: &LogicalPlan) -> Result<()> {
    node.apply_expressions(|expr| refuse_in(expr).map(|()| TreeNodeRecursion::Continue))?;
    Ok(())
}

fn refuse_in(expr: &Expr) -> Result<()> {
    expr.apply(|e| {
        let Some(call) = window_call(e) else { return Ok(TreeNodeRecursion::Continue) };
        // What is wrong with the call itself comes first.
        call.window()?;
        let name = call.name();
        let fault = Fault::new(FaultKind::Grouping, format!("{name}() outside GROUP BY"))
            .hint(format!("group by {name}(…); for rows with their windows select from {}(t, DESCRIPTOR(ts), …)", name.to_uppercase()));
        Err(fault.into())
    })?;
    Ok(())
}
