//! Shapes of physical expressions that the planner recognises.

use std::sync::Arc;

use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{Column, Literal};
use thalweg_dataflow::table::ExprRef;

/// The column that an expression is.
pub fn plain(expr: &ExprRef) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The struct column of which `expr` is a field, and the field's name.
pub fn field_of(expr: &ExprRef) -> Option<(usize, &str)> {
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match function.args() {
        [of, field] if function.fun().name() == "get_field" => Some((plain(of)?, text(field)?)),
        _ => None,
    }
}

/// The columns of which `expr` makes a window as one value: its start and its end.
pub fn window_pair(expr: &ExprRef) -> Option<(usize, usize)> {
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    match function.args() {
        [s, start, e, end]
            if function.fun().name() == "named_struct"
                && text(s) == Some("start")
                && text(e) == Some("end") =>
        {
            Some((plain(start)?, plain(end)?))
        }
        _ => None,
    }
}

/// The column that is the `start` or the `end` of the window that `expr` makes one value of.
pub fn window_bound(expr: &ExprRef, name: &str) -> Option<ExprRef> {
    window_pair(expr)?;
    let function = expr.downcast_ref::<ScalarFunctionExpr>()?;
    let [_, start, _, end] = function.args() else { return None };
    Some(Arc::clone(if name == "start" { start } else { end }))
}

fn text(expr: &ExprRef) -> Option<&str> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(Some(text)) => Some(text),
        _ => None,
    }
}
