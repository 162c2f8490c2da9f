//! No operator reads the clock: functions of the present time are refused.
//!
//! A result that depends on when a row was processed differs from one run to the next, and a
//! retraction computed later than its insertion would not find it.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::error::{Fault, FaultKind};

const CLOCK: [&str; 3] = ["now", "current_date", "current_time"];

/// Errors: the first function of the present time in `plan` or its subqueries.
pub(super) fn refuse(plan: &LogicalPlan) -> Result<(), Fault> {
    let mut found = None;
    let walk = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|expr| match expr {
                Expr::ScalarFunction(ScalarFunction { func, .. })
                    if CLOCK.contains(&func.name()) =>
                {
                    found = Some(func.name().to_string());
                    Ok(TreeNodeRecursion::Stop)
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })
    });
    walk.map_err(Fault::from_datafusion)?;
    match found {
        None => Ok(()),
        Some(name) => Err(Fault::new(
            FaultKind::NotStreamable,
            format!("{name}() has no fixed value in a query that runs for ever"),
        )
        .hint("use the event time of the rows, or a literal such as timestamp '2024-01-01'")),
    }
}
