//! Shapes of physical expressions that the planner recognises.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema};
use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{CastExpr, Column, Literal};
use thalweg_dataflow::table::ExprRef;

/// The column that an expression is.
pub fn plain(expr: &ExprRef) -> Option<usize> {
    expr.downcast_ref::<Column>().map(Column::index)
}

/// The column whose values `expr` tells apart as well as the column itself does: it, or a lossless cast.
pub fn kept(expr: &ExprRef, schema: &Schema) -> Option<usize> {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else {
        return plain(expr);
    };
    let from = cast.expr().data_type(schema).ok()?;
    kept(cast.expr(), schema).filter(|_| is_injective(&from, cast.cast_type()))
}

/// Whether different values stay different, those that do not fit being errors.
fn is_injective(from: &DataType, to: &DataType) -> bool {
    use DataType as T;
    match (from, to) {
        (from, to) if from == to => true,
        (from, to) if from.is_integer() => to.is_integer() || to.is_decimal() || to.is_string(),
        (from, to) if from.is_string() => to.is_string(),
        (T::Decimal128(_, a), T::Decimal128(_, b)) => a <= b,
        (T::Float32, T::Float64) | (T::Boolean | T::Date32, T::Utf8) => true,
        (T::Timestamp(a, _), T::Timestamp(b, _)) => a <= b,
        _ => false,
    }
}

/// `expr` without casts that only put a time zone to instants, alone or in a struct, or take it away.
pub fn without_zone<'a>(expr: &'a ExprRef, schema: &Schema) -> &'a ExprRef {
    let Some(cast) = expr.downcast_ref::<CastExpr>() else {
        return expr;
    };
    match cast.expr().data_type(schema) {
        Ok(from) if same_instants(&from, cast.cast_type()) => without_zone(cast.expr(), schema),
        _ => expr,
    }
}

fn same_instants(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        (DataType::Timestamp(a, _), DataType::Timestamp(b, _)) => a == b,
        (DataType::Struct(from), DataType::Struct(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(a, b)| {
                    a.name() == b.name() && same_instants(a.data_type(), b.data_type())
                })
        }
        _ => false,
    }
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
    let [_, start, _, end] = function.args() else {
        return None;
    };
    Some(Arc::clone(if name == "start" { start } else { end }))
}

fn text(expr: &ExprRef) -> Option<&str> {
    match expr.downcast_ref::<Literal>()?.value() {
        ScalarValue::Utf8(Some(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, TimeUnit};

    #[test]
    fn a_cast_keeps_values_apart_only_where_no_two_become_one() {
        use DataType as T;
        let nanos = T::Timestamp(TimeUnit::Nanosecond, None);
        let seconds = T::Timestamp(TimeUnit::Second, None);
        for (from, to, keeps) in [
            (T::Int32, T::Int64, true),
            // What does not fit is an error, and so never equal to anything.
            (T::Int64, T::Int32, true),
            (T::Int64, T::Float64, false),
            (T::Float64, T::Int64, false),
            (T::Decimal128(12, 2), T::Decimal128(14, 4), true),
            (T::Decimal128(12, 2), T::Decimal128(12, 0), false),
            (seconds.clone(), nanos.clone(), true),
            (nanos, seconds, false),
            (T::Utf8, T::Int64, false),
        ] {
            let schema = Schema::new(vec![Field::new("c", from.clone(), true)]);
            let column = Arc::new(Column::new("c", 0)) as ExprRef;
            let cast = Arc::new(CastExpr::new(column, to.clone(), None)) as ExprRef;
            assert_eq!(kept(&cast, &schema).is_some(), keeps, "{from} to {to}");
        }
    }
}
