//! Expressions as a person would write them.

use std::fmt::Write;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr_common::physical_expr::fmt_sql;
use thalweg_dataflow::table::ExprRef;
use thalweg_dataflow::time::format_duration;

const DAY: i64 = 86_400_000_000_000;

pub(super) fn expression(expr: &ExprRef) -> String {
    if let Some(e) = expr.downcast_ref::<Column>() {
        e.name().to_string()
    } else if let Some(e) = expr.downcast_ref::<Literal>() {
        literal(e.value())
    } else if let Some(e) = expr.downcast_ref::<BinaryExpr>() {
        let side = |side: &ExprRef| operand(side, e.op().precedence());
        format!("{} {} {}", side(e.left()), e.op(), side(e.right()))
    } else if let Some(e) = expr.downcast_ref::<ScalarFunctionExpr>() {
        function(e)
    } else if let Some(e) = expr.downcast_ref::<CastExpr>() {
        format!(
            "CAST({} AS {})",
            expression(e.expr()),
            type_name(e.cast_type())
        )
    } else if let Some(e) = expr.downcast_ref::<TryCastExpr>() {
        format!(
            "TRY_CAST({} AS {})",
            expression(e.expr()),
            type_name(e.cast_type())
        )
    } else if let Some(e) = expr.downcast_ref::<NotExpr>() {
        format!("NOT {}", operand(e.arg(), u8::MAX))
    } else if let Some(e) = expr.downcast_ref::<NegativeExpr>() {
        format!("-{}", operand(e.arg(), u8::MAX))
    } else if let Some(e) = expr.downcast_ref::<IsNullExpr>() {
        format!("{} IS NULL", operand(e.arg(), u8::MAX))
    } else if let Some(e) = expr.downcast_ref::<IsNotNullExpr>() {
        format!("{} IS NOT NULL", operand(e.arg(), u8::MAX))
    } else if let Some(e) = expr.downcast_ref::<LikeExpr>() {
        let not = if e.negated() { "NOT " } else { "" };
        let like = if e.case_insensitive() {
            "ILIKE"
        } else {
            "LIKE"
        };
        format!(
            "{} {not}{like} {}",
            operand(e.expr(), u8::MAX),
            operand(e.pattern(), u8::MAX)
        )
    } else if let Some(e) = expr.downcast_ref::<InListExpr>() {
        let not = if e.negated() { "NOT " } else { "" };
        format!(
            "{} {not}IN ({})",
            operand(e.expr(), u8::MAX),
            list(e.list())
        )
    } else if let Some(e) = expr.downcast_ref::<CaseExpr>() {
        case(e)
    } else {
        fmt_sql(expr.as_ref()).to_string()
    }
}

/// Part of an expression, in parentheses where it binds no closer than what is around it.
fn operand(expr: &ExprRef, around: u8) -> String {
    match expr.downcast_ref::<BinaryExpr>() {
        Some(binary) if binary.op().precedence() <= around => format!("({})", expression(expr)),
        _ => expression(expr),
    }
}

fn list(exprs: &[ExprRef]) -> String {
    exprs.iter().map(expression).collect::<Vec<_>>().join(", ")
}

fn function(call: &ScalarFunctionExpr) -> String {
    match (call.fun().name(), call.args()) {
        ("get_field", [of, field]) => match field.downcast_ref::<Literal>().map(Literal::value) {
            Some(ScalarValue::Utf8(Some(name))) => format!("{}.{name}", expression(of)),
            _ => format!("{}[{}]", expression(of), expression(field)),
        },
        ("named_struct", args) if args.len() % 2 == 0 => {
            let field = |pair: &[ExprRef]| {
                format!(
                    "{}: {}",
                    expression(&pair[0]).trim_matches('\''),
                    expression(&pair[1])
                )
            };
            format!(
                "{{{}}}",
                args.chunks(2).map(field).collect::<Vec<_>>().join(", ")
            )
        }
        (name, args) => format!("{name}({})", list(args)),
    }
}

fn case(case: &CaseExpr) -> String {
    let mut text = "CASE".to_string();
    if let Some(expr) = case.expr() {
        let _ = write!(text, " {}", expression(expr));
    }
    for (when, then) in case.when_then_expr() {
        let _ = write!(text, " WHEN {} THEN {}", expression(when), expression(then));
    }
    if let Some(otherwise) = case.else_expr() {
        let _ = write!(text, " ELSE {}", expression(otherwise));
    }
    text + " END"
}

fn literal(value: &ScalarValue) -> String {
    match value {
        value if value.is_null() => "NULL".into(),
        ScalarValue::Utf8(Some(text))
        | ScalarValue::Utf8View(Some(text))
        | ScalarValue::LargeUtf8(Some(text)) => {
            format!("'{}'", text.replace('\'', "''"))
        }
        ScalarValue::IntervalMonthDayNano(Some(i)) if i.months == 0 => {
            format!(
                "interval '{}'",
                format_duration(i64::from(i.days) * DAY + i.nanoseconds)
            )
        }
        ScalarValue::TimestampNanosecond(..)
        | ScalarValue::TimestampMicrosecond(..)
        | ScalarValue::TimestampMillisecond(..)
        | ScalarValue::TimestampSecond(..) => match value.cast_to(&DataType::Utf8) {
            Ok(ScalarValue::Utf8(Some(text))) => format!("timestamp '{text}'"),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// The SQL name of a type where it has a plain one.
fn type_name(t: &DataType) -> String {
    match t {
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float32 => "REAL".into(),
        DataType::Float64 => "DOUBLE".into(),
        DataType::Utf8 => "TEXT".into(),
        DataType::Date32 => "DATE".into(),
        DataType::Decimal128(precision, scale) => format!("DECIMAL({precision}, {scale})"),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion::common::DFSchema;
    use datafusion::logical_expr::execution_props::ExecutionProps;
    use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
    use datafusion::physical_expr::create_physical_expr;
    use datafusion::prelude::{Expr, cast, col, lit, when};

    use super::*;

    fn print(expr: Expr) -> String {
        let fields = vec![
            Field::new("a", DataType::Int64, true),
            Field::new("s", DataType::Utf8, true),
        ];
        let schema = DFSchema::try_from(Schema::new(fields)).unwrap();
        let (props, context) = (ExecutionProps::new(), PhysicalPlanningContext::default());
        expression(&create_physical_expr(&expr, &schema, &props, &context).unwrap())
    }

    #[test]
    fn parentheses_stand_where_they_are_needed() {
        assert_eq!(print((col("a") + lit(1_i64)) * lit(2_i64)), "(a + 1) * 2");
        assert_eq!(print(col("a") + lit(1_i64) * lit(2_i64)), "a + 1 * 2");
        assert_eq!(print(col("a") - (lit(1_i64) - lit(2_i64))), "a - (1 - 2)");
        let either = col("a").eq(lit(1_i64)).or(col("a").eq(lit(2_i64)));
        assert_eq!(
            print(either.clone().and(col("a").is_not_null())),
            "(a = 1 OR a = 2) AND a IS NOT NULL"
        );
        assert_eq!(print(!either), "NOT (a = 1 OR a = 2)");
    }

    #[test]
    fn values_are_written_as_in_sql() {
        assert_eq!(print(col("s").eq(lit("it's"))), "s = 'it''s'");
        assert_eq!(
            print(cast(col("a"), DataType::Decimal128(12, 2))),
            "CAST(a AS DECIMAL(12, 2))"
        );
        let case = when(col("a").is_null(), lit("none"))
            .otherwise(col("s"))
            .unwrap();
        assert_eq!(print(case), "CASE WHEN a IS NULL THEN 'none' ELSE s END");
        assert_eq!(print(col("s").not_like(lit("x%"))), "s NOT LIKE 'x%'");
    }
}
