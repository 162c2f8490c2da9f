//! What lies between an aggregate and the window that it groups by.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;

use super::bounds::{Bound, text};
use crate::event_time::strip_alias;
use crate::window::{WindowNames, WindowTvf};

/// A window with filters and projections above it, all told in the window's own columns.
pub(super) struct Peeled<'a> {
    pub tvf: &'a WindowTvf,
    /// What each column of the peeled plan is.
    columns: Vec<Expr>,
    /// Predicates that do not look at the window: they hold for a row whatever its windows.
    pub below: Vec<Expr>,
    /// Predicates on start and end alone, in the names of [`WindowNames::TABLE`]: they hold for whole groups.
    pub above: Vec<Expr>,
}

/// Takes filters and projections off `plan` down to a window. `None`: there is no window, or a predicate
/// looks at a window and at something else, or an expression has another value each time.
pub(super) fn peel(plan: &LogicalPlan) -> Result<Option<Peeled<'_>>> {
    if let Some(tvf) = WindowTvf::of(plan) {
        let columns = tvf
            .schema()
            .iter()
            .map(|field| Expr::Column(Column::from(field)))
            .collect();
        return Ok(Some(Peeled {
            tvf,
            columns,
            below: vec![],
            above: vec![],
        }));
    }
    match plan {
        LogicalPlan::SubqueryAlias(alias) => peel(&alias.input),
        LogicalPlan::Projection(projection) => {
            let Some(mut peeled) = peel(&projection.input)? else {
                return Ok(None);
            };
            if projection.expr.iter().any(Expr::is_volatile) {
                return Ok(None);
            }
            let over = projection.input.schema();
            peeled.columns = projection
                .expr
                .iter()
                .map(|e| peeled.translate(e, over))
                .collect::<Result<_>>()?;
            Ok(Some(peeled))
        }
        LogicalPlan::Filter(filter) => {
            let Some(mut peeled) = peel(&filter.input)? else {
                return Ok(None);
            };
            for predicate in split_conjunction(&filter.predicate) {
                let predicate = peeled.translate(predicate, filter.input.schema())?;
                if !peeled.put(predicate)? {
                    return Ok(None);
                }
            }
            Ok(Some(peeled))
        }
        _ => Ok(None),
    }
}

impl Peeled<'_> {
    /// `expr`, which is over the peeled plan (or one below it) with columns `over`, in the window's columns.
    pub fn translate(&self, expr: &Expr, over: &DFSchema) -> Result<Expr> {
        let replaced = strip_alias(expr).clone().transform_up(|e| match &e {
            Expr::Column(column) => Ok(Transformed::yes(
                self.columns[over.index_of_column(column)?].clone(),
            )),
            _ => Ok(Transformed::no(e)),
        })?;
        simplify_fields(replaced.data, self.tvf.schema())
    }

    /// The bound that a translated expression is.
    pub fn bound(&self, expr: &Expr) -> Option<Bound> {
        let names = self.tvf.names();
        let is = |expr: &Expr, name: &str| matches!(expr, Expr::Column(c) if c.relation.is_none() && c.name == name);
        match expr {
            e if is(e, names.start) => Some(Bound::Start),
            e if is(e, names.end) => Some(Bound::End),
            e if is(e, names.time) => Some(Bound::Time),
            Expr::ScalarFunction(ScalarFunction { func, args })
                if func.name() == "named_struct" =>
            {
                match args.as_slice() {
                    [s, start, e, end] if text(s) == Some("start") && text(e) == Some("end") => {
                        (is(start, names.start) && is(end, names.end)).then_some(Bound::Pair)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    pub fn uses_window(&self, expr: &Expr) -> bool {
        let WindowNames { start, end, time } = self.tvf.names();
        expr.column_refs()
            .iter()
            .any(|c| c.relation.is_none() && [start, end, time].contains(&c.name.as_str()))
    }

    /// Puts a translated predicate where it holds; false where there is no such place.
    fn put(&mut self, predicate: Expr) -> Result<bool> {
        let names = self.tvf.names();
        let is_bound = |c: &&Column| {
            c.relation.is_none() && [names.start, names.end].contains(&c.name.as_str())
        };
        if predicate.is_volatile() {
            return Ok(false);
        } else if !self.uses_window(&predicate) {
            self.below.push(predicate);
        } else if predicate.column_refs().iter().all(is_bound) {
            self.above.push(in_table_names(predicate, names)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

fn in_table_names(predicate: Expr, names: WindowNames) -> Result<Expr> {
    let renamed = predicate.transform_up(|e| match &e {
        Expr::Column(c) if c.name == names.start => Ok(Transformed::yes(Expr::Column(
            Column::new_unqualified(WindowNames::TABLE.start),
        ))),
        Expr::Column(c) if c.name == names.end => Ok(Transformed::yes(Expr::Column(
            Column::new_unqualified(WindowNames::TABLE.end),
        ))),
        _ => Ok(Transformed::no(e)),
    })?;
    Ok(renamed.data)
}

/// Takes `get_field(named_struct('start', a, …), 'start')` for `a`.
fn simplify_fields(expr: Expr, schema: &datafusion::common::DFSchemaRef) -> Result<Expr> {
    let is_field = |e: &Expr| matches!(e, Expr::ScalarFunction(f) if f.name() == "get_field");
    if !expr.exists(|e| Ok(is_field(e)))? {
        return Ok(expr);
    }
    ExprSimplifier::new(
        SimplifyContext::builder()
            .with_schema(Arc::clone(schema))
            .build(),
    )
    .simplify(expr)
}
