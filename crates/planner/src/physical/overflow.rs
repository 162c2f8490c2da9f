//! Arithmetic that says when a result does not fit.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::BinaryExpr;
use thalweg_dataflow::table::ExprRef;

/// `expr` with sums, differences and products that fail where DataFusion's would wrap around: as in
/// PostgreSQL, a number that does not fit is an error and never another number.
pub fn checked(expr: ExprRef) -> Result<ExprRef> {
    let checked = expr.transform_up(|expr| {
        let Some(binary) = expr.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(expr));
        };
        match binary.op() {
            Operator::Plus | Operator::Minus | Operator::Multiply => {
                let checked = binary.clone().with_fail_on_overflow(true);
                Ok(Transformed::yes(Arc::new(checked) as ExprRef))
            }
            _ => Ok(Transformed::no(expr)),
        }
    })?;
    Ok(checked.data)
}
