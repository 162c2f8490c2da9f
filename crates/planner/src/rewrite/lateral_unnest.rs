//! `FROM t, UNNEST(t.xs)`, also as CROSS JOIN, JOIN … ON true or LEFT JOIN … ON true: a join whose right side
//! only takes the left row apart becomes an unnest of the left side. DataFusion leaves such a join
//! correlated, and loses the list on the way.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{
    Column, DFSchema, NullHandling, RecursionUnnestOption, Result, ScalarValue, UnnestOptions,
};
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection, Unnest};

pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    let rewritten = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::Join(join) = &node else {
            return Ok(Transformed::no(node));
        };
        let Some(kind) = kind(join) else {
            return Ok(Transformed::no(node));
        };
        let inliner = Inliner {
            left: &join.left,
            kind,
        };
        match inliner.inline(&join.right)? {
            Some(unnested) => Ok(Transformed::yes(unnested)),
            None => Ok(Transformed::no(node)),
        }
    })?;
    Ok(rewritten.data)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Inner,
    /// A row whose lists are empty stays, with nulls.
    Left,
}

fn kind(join: &Join) -> Option<Kind> {
    let always = match &join.filter {
        None => true,
        Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _)) => true,
        Some(_) => false,
    };
    match join.join_type {
        JoinType::Inner if always && join.on.is_empty() => Some(Kind::Inner),
        JoinType::Left if always && join.on.is_empty() => Some(Kind::Left),
        _ => None,
    }
}

/// Rebuilds the right side of a join on top of the left one, row by row: what was over a single empty row
/// is over the left row, whose columns every node passes on before its own.
struct Inliner<'a> {
    left: &'a LogicalPlan,
    kind: Kind,
}

impl Inliner<'_> {
    /// `None`: the right side reads something of its own.
    fn inline(&self, right: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let inlined = match right {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Some(self.left.clone()),
            LogicalPlan::Subquery(subquery) => self.inline(&subquery.subquery)?,
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.inline(&alias.input)? else {
                    return Ok(None);
                };
                let exprs = (0..alias.schema.fields().len())
                    .map(|i| self.own(&input, i))
                    .collect();
                Some(self.project(input, exprs, &alias.schema)?)
            }
            LogicalPlan::Projection(node) => {
                let Some(input) = self.inline(&node.input)? else {
                    return Ok(None);
                };
                let exprs = node
                    .expr
                    .iter()
                    .map(|e| self.over(&input, e, node.input.schema()));
                let exprs = exprs.collect::<Result<_>>()?;
                Some(self.project(input, exprs, &node.schema)?)
            }
            LogicalPlan::Filter(node) if self.kind == Kind::Inner => {
                let Some(input) = self.inline(&node.input)? else {
                    return Ok(None);
                };
                let predicate = self.over(&input, &node.predicate, node.input.schema())?;
                Some(LogicalPlan::Filter(Filter::try_new(
                    predicate,
                    Arc::new(input),
                )?))
            }
            LogicalPlan::Unnest(node) => {
                let Some(input) = self.inline(&node.input)? else {
                    return Ok(None);
                };
                Some(self.unnest(node, input)?)
            }
            _ => None,
        };
        Ok(inlined)
    }

    fn unnest(&self, node: &Unnest, input: LogicalPlan) -> Result<LogicalPlan> {
        let schema = node.input.schema();
        let moved = |column: &Column| Ok(self.own_column(&input, schema.index_of_column(column)?));
        let recursion = |r: &RecursionUnnestOption| {
            Ok(RecursionUnnestOption {
                input_column: moved(&r.input_column)?,
                ..r.clone()
            })
        };
        let null_handling = match self.kind {
            Kind::Inner => node.options.null_handling,
            Kind::Left => NullHandling::PreserveAndExpandEmpty,
        };
        let recursions = node
            .options
            .recursions
            .iter()
            .map(recursion)
            .collect::<Result<_>>()?;
        let columns = node.exec_columns.iter().map(moved).collect::<Result<_>>()?;
        let options = UnnestOptions {
            null_handling,
            recursions,
        };
        Ok(LogicalPlan::Unnest(Unnest::try_new(
            Arc::new(input),
            columns,
            options,
        )?))
    }

    /// The left columns, then `exprs` under the names of `schema`.
    fn project(
        &self,
        input: LogicalPlan,
        exprs: Vec<Expr>,
        schema: &DFSchema,
    ) -> Result<LogicalPlan> {
        let left = self.left.schema().columns().into_iter().map(Expr::Column);
        let named = exprs.into_iter().zip(schema.iter());
        let own = named.map(|(expr, (qualifier, field))| {
            expr.alias_qualified(qualifier.cloned(), field.name())
        });
        Ok(LogicalPlan::Projection(Projection::try_new(
            left.chain(own).collect(),
            Arc::new(input),
        )?))
    }

    /// The *n*th column of the right side, in the rebuilt plan.
    fn own_column(&self, input: &LogicalPlan, n: usize) -> Column {
        Column::from(
            input
                .schema()
                .qualified_field(self.left.schema().fields().len() + n),
        )
    }

    fn own(&self, input: &LogicalPlan, n: usize) -> Expr {
        Expr::Column(self.own_column(input, n))
    }

    fn over(&self, input: &LogicalPlan, expr: &Expr, schema: &DFSchema) -> Result<Expr> {
        let replaced = expr.clone().unalias().transform_up(|e| match e {
            Expr::Column(column) => Ok(Transformed::yes(
                self.own(input, schema.index_of_column(&column)?),
            )),
            Expr::OuterReferenceColumn(_, column) => Ok(Transformed::yes(Expr::Column(column))),
            e => Ok(Transformed::no(e)),
        })?;
        Ok(replaced.data)
    }
}
