//! Expressions: from DataFusion's logical ones, by name, to physical ones, by position.

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::physical_expr::create_physical_expr;
use thalweg_dataflow::plan::NodeId;
use thalweg_dataflow::table::ExprRef;

use super::builder::{Builder, unsupported};
use super::overflow::checked;
use crate::error::{Fault, FaultKind};

impl Builder {
    /// `expr` over the rows of `input`, whose columns `schema` names. Errors: a subquery; a volatile
    /// function over retractions, which would not find again what was inserted.
    pub fn physical(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        input: NodeId,
    ) -> Result<ExprRef, Fault> {
        refuse_subqueries(expr)?;
        if self.is_updating(input) {
            refuse_volatile(expr)?;
        }
        self.physical_unchecked(expr, schema)
    }

    /// `expr` over columns that `schema` names, of whatever rows.
    pub fn physical_unchecked(&self, expr: &Expr, schema: &DFSchema) -> Result<ExprRef, Fault> {
        create_physical_expr(
            expr,
            schema,
            &self.props,
            &PhysicalPlanningContext::default(),
        )
        .and_then(checked)
        .map_err(Fault::from_datafusion)
    }
}

fn refuse_subqueries(expr: &Expr) -> Result<(), Fault> {
    let is_subquery = |e: &Expr| {
        matches!(
            e,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
        ) || matches!(e, Expr::OuterReferenceColumn(..))
    };
    match expr.exists(|e| Ok(is_subquery(e))) {
        Ok(false) => Ok(()),
        _ => Err(unsupported(
            "subqueries in expressions are not supported yet",
        )),
    }
}

fn refuse_volatile(expr: &Expr) -> Result<(), Fault> {
    let mut found = None;
    let walk = expr.apply(|e| {
        if let Expr::ScalarFunction(function) = e
            && e.is_volatile_node()
        {
            found = Some(function.name().to_string());
            return Ok(TreeNodeRecursion::Stop);
        }
        Ok(TreeNodeRecursion::Continue)
    });
    walk.map_err(Fault::from_datafusion)?;
    match found {
        None => Ok(()),
        Some(name) => Err(Fault::new(
            FaultKind::NotStreamable,
            format!("{name}() over an updating result: a retracted row would get another value than it was inserted with"),
        )
        .hint("compute it below the aggregate, where rows are only appended")),
    }
}
