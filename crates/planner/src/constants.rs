//! Arithmetic on constants that does not fit its type.
//!
//! DataFusion computes constants while it simplifies, and wraps around where the result does not fit.
//! Over columns that is an error when it happens ([`crate::physical::overflow`]); here it is one before.

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, ScalarValue};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};

use crate::error::{Fault, FaultKind};

/// Errors: the first sum, difference or product of integer constants that leaves their type. Types have
/// been brought together.
pub fn check_constants(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            if expr.exists(|e| Ok(is_arithmetic(e)))? {
                expr.clone().transform_up(fold)?;
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })
    .map(|_| ())
}

fn is_arithmetic(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(BinaryExpr { op, .. }) if operation(*op).is_some())
}

type Operation = fn(&ScalarValue, &ScalarValue) -> Result<ScalarValue>;

fn operation(op: Operator) -> Option<Operation> {
    match op {
        Operator::Plus => Some(|a, b| a.add_checked(b)),
        Operator::Minus => Some(|a, b| a.sub_checked(b)),
        Operator::Multiply => Some(|a, b| a.mul_checked(b)),
        _ => None,
    }
}

/// Computes what is known, so that its parent may be known as well.
fn fold(expr: Expr) -> Result<Transformed<Expr>> {
    let value = match &expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            match (integer(left), operation(*op), integer(right)) {
                (Some(a), Some(operation), Some(b)) if a.data_type() == b.data_type() => {
                    Some(operation(a, b).map_err(|_| overflow(&expr))?)
                }
                _ => None,
            }
        }
        Expr::Negative(inner) => match integer(inner) {
            Some(value) => Some(value.arithmetic_negate().map_err(|_| overflow(&expr))?),
            None => None,
        },
        Expr::Cast(Cast { expr: inner, field }) if field.data_type().is_integer() => {
            integer(inner).and_then(|value| value.cast_to(field.data_type()).ok())
        }
        _ => None,
    };
    Ok(match value {
        Some(value) => Transformed::yes(Expr::Literal(value, None)),
        None => Transformed::no(expr),
    })
}

fn integer(expr: &Expr) -> Option<&ScalarValue> {
    match expr {
        Expr::Literal(value, _) if value.data_type().is_integer() && !value.is_null() => {
            Some(value)
        }
        _ => None,
    }
}

fn overflow(expr: &Expr) -> DataFusionError {
    let message = format!("{} does not fit its type", expr.human_display());
    let fault = Fault::new(FaultKind::InvalidType, message);
    DataFusionError::External(Box::new(fault.hint("cast one side to a larger type")))
}

#[cfg(test)]
mod tests {
    use crate::test_registry::faults;

    #[test]
    fn constants_that_do_not_fit_are_faults() {
        for sql in [
            "SELECT 9223372036854775807 + 1",
            "SELECT 1 FROM (VALUES (1)) t(n) WHERE n > 2 - (-9223372036854775807)",
            "SELECT 4611686018427387904 * (1 + 1)",
            "SELECT count(*) + 9223372036854775807 * 2 FROM (VALUES (1)) t(n)",
        ] {
            assert!(
                faults(sql).contains("does not fit its type"),
                "{sql}: {}",
                faults(sql)
            );
        }
        for sql in [
            "SELECT 9223372036854775806 + 1",
            "SELECT 9223372036854775807 + 1.5",
            "SELECT n + 9223372036854775807 FROM (VALUES (1)) t(n)",
            "SELECT NULL + 9223372036854775807 * 1",
        ] {
            assert_eq!(faults(sql), "no faults", "{sql}");
        }
    }
}
