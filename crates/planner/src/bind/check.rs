//! Checks that DataFusion makes after binding, made while binding so that their faults have a place.

use std::sync::Arc;

use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use datafusion::optimizer::simplify_expressions::SimplifyExpressions;
use datafusion::optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use crate::constants::check_constants;
use crate::error::{Fault, FaultKind};
use crate::functions::Functions;
use crate::types::sql_name;

/// Whether all types go together, all casts exist and constants can be computed.
pub fn check_types(plan: LogicalPlan) -> Result<(), Fault> {
    let analyzed = analyze(plan).map_err(Fault::from_datafusion)?;
    analyzed
        .apply_with_subqueries(check_casts)
        .map_err(Fault::from_datafusion)?;
    check_constants(&analyzed).map_err(Fault::from_datafusion)?;
    simplify(analyzed).map_err(Fault::from_datafusion)
}

fn analyze(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let functions = Functions::get();
    functions
        .analyzer()
        .execute_and_check(plan, functions.config(), |_, _| {})
}

fn simplify(plan: LogicalPlan) -> DataFusionResult<()> {
    let context = OptimizerContext::new_with_config_options(Arc::clone(Functions::get().config()))
        .without_query_execution_start_time()
        .with_max_passes(1);
    let rule: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(SimplifyExpressions::new());
    Optimizer::with_rules(vec![rule])
        .optimize(plan, &context, |_, _| {})
        .map(|_| ())
}

/// A cast between types that have none would be found only when operators are made.
fn check_casts(node: &LogicalPlan) -> DataFusionResult<TreeNodeRecursion> {
    let schema = merge_schema(&node.inputs());
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            let (from, to) = match part {
                Expr::Cast(cast) => (&cast.expr, cast.field.data_type()),
                Expr::TryCast(cast) => (&cast.expr, cast.field.data_type()),
                _ => return Ok(TreeNodeRecursion::Continue),
            };
            match from.get_type(&schema) {
                Ok(from) if !arrow::compute::can_cast_types(&from, to) => {
                    let message = format!("cannot cast {} to {}", sql_name(&from), sql_name(to));
                    Err(Fault::new(FaultKind::InvalidType, message).into())
                }
                _ => Ok(TreeNodeRecursion::Continue),
            }
        })
    })
}
