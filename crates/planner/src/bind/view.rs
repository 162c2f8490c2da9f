//! Plans of queries and views.

use datafusion::common::{Column, DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::planner::SqlToRel;
use datafusion::sql::sqlparser::ast::{Query, Statement};

use super::ast::normalized;
use super::context::BindContext;
use crate::error::{Fault, FaultKind};

/// The plan of a query, as `SqlToRel` gives it.
pub fn plan_query(context: &BindContext<'_>, query: &Query) -> DataFusionResult<LogicalPlan> {
    plan_normalized(context, normalized(query))
}

/// The same of a query whose spellings are DataFusion's already.
pub fn plan_normalized(context: &BindContext<'_>, query: Query) -> DataFusionResult<LogicalPlan> {
    SqlToRel::new(context).sql_statement_to_plan(Statement::Query(Box::new(query)))
}

/// The plan of a view, whose columns `names` rename where there are any.
pub fn plan_view(
    context: &BindContext<'_>,
    query: &Query,
    names: &[String],
) -> DataFusionResult<LogicalPlan> {
    rename(plan_query(context, query)?, names)
}

/// The plan with its columns named `names`, or as it is where there are none.
pub fn rename(plan: LogicalPlan, names: &[String]) -> DataFusionResult<LogicalPlan> {
    if names.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    if columns.len() != names.len() {
        let message = format!(
            "the view names {} columns, but its query has {}",
            names.len(),
            columns.len()
        );
        return Err(DataFusionError::External(Box::new(Fault::new(
            FaultKind::Syntax,
            message,
        ))));
    }
    let renamed = columns
        .into_iter()
        .zip(names)
        .map(|(column, name): (Column, _)| Expr::Column(column).alias(name));
    LogicalPlanBuilder::from(plan)
        .project(renamed.collect::<Vec<_>>())?
        .build()
}
