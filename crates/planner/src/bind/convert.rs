//! Values that become those of another type without being asked to, as PostgreSQL's assignments do.
//!
//! Source: PostgreSQL manual, 10.4 "Value Storage" and CREATE CAST (implicit and assignment casts).

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::math::expr_fn::round;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion_functions_json::{JSON_UNION_DATA_TYPE, udfs::json_union_to_text_udf};

use super::assign::missing;
use super::places::Places;
use crate::catalog::TableDef;
use crate::error::{Fault, FaultKind};
use crate::types::{sql_name, sql_name_of};

/// Column `index` of the plan as a value of `field`.
pub fn convert(
    plan: &LogicalPlan,
    index: usize,
    table: &TableDef,
    field: &Field,
    places: &Places,
) -> Result<Expr, Fault> {
    let (qualifier, source) = plan.schema().qualified_field(index);
    let value = Expr::Column(Column::new(qualifier.cloned(), source.name()));
    let to = field.data_type();
    let literals = literals(plan, index).unwrap_or_default();
    let is_untyped = |literal: &ScalarValue| literal.is_null() || is_text(&literal.data_type());
    let untyped = !literals.is_empty() && literals.iter().all(is_untyped);
    let conversion = if untyped {
        Some(Conversion::Cast)
    } else {
        conversion(source.data_type(), to)
    };
    let expr = match conversion {
        Some(Conversion::Same) => value,
        Some(Conversion::Cast) => cast(value, to),
        Some(Conversion::Round) => cast(round(vec![value]), to),
        Some(Conversion::RoundDecimal(whole)) => cast(cast(value, &whole), to),
        Some(Conversion::JsonToText) => json_union_to_text_udf().call(vec![value]),
        None => return Err(mismatch(table, field, source).at(places.of(0, index))),
    };
    for (row, literal) in literals.iter().enumerate() {
        check_literal(literal, table, field).map_err(|fault| fault.at(places.of(row, index)))?;
    }
    Ok(expr)
}

fn cast(expr: Expr, to: &DataType) -> Expr {
    Expr::Cast(Cast::new(Box::new(expr), to.clone()))
}

fn mismatch(table: &TableDef, field: &Field, source: &Field) -> Fault {
    let message = format!(
        "column \"{}\" of table \"{}\" has type {}, but the query gives {}",
        field.name(),
        table.name,
        sql_name_of(field),
        sql_name_of(source)
    );
    let fault = Fault::new(FaultKind::InvalidType, message);
    if *source.data_type() == *JSON_UNION_DATA_TYPE {
        fault.hint(format!(
            "take the value out as its type: ({} …)::{}",
            source.name(),
            sql_name(field.data_type())
        ))
    } else {
        fault.hint(format!("CAST it to {}", sql_name(field.data_type())))
    }
}

/// Whether a value of one type becomes one of another without being asked to, by a cast.
pub fn is_assignable(from: &DataType, to: &DataType) -> bool {
    matches!(
        conversion(from, to),
        Some(Conversion::Same | Conversion::Cast)
    )
}

/// How a value becomes one of the target's type without being asked to.
#[derive(Debug, PartialEq, Eq)]
enum Conversion {
    Same,
    Cast,
    /// To the nearest whole number first, as PostgreSQL does and a plain cast does not.
    Round,
    /// The same for a decimal, through one without a fraction.
    RoundDecimal(DataType),
    JsonToText,
}

fn conversion(from: &DataType, to: &DataType) -> Option<Conversion> {
    use DataType as A;
    if from == to {
        return Some(Conversion::Same);
    }
    let plain = |allowed: bool| allowed.then_some(Conversion::Cast);
    match (from, to) {
        (A::Null, _) => plain(true),
        (A::Float16 | A::Float32 | A::Float64, to) if to.is_integer() => Some(Conversion::Round),
        (A::Decimal128(precision, scale), to) if to.is_integer() && *scale > 0 => {
            Some(Conversion::RoundDecimal(A::Decimal128(*precision, 0)))
        }
        (A::Decimal256(precision, scale), to) if to.is_integer() && *scale > 0 => {
            Some(Conversion::RoundDecimal(A::Decimal256(*precision, 0)))
        }
        (from, to) if from.is_numeric() && to.is_numeric() => plain(true),
        (from, to) if is_text(to) && *from == *JSON_UNION_DATA_TYPE => Some(Conversion::JsonToText),
        (from, to) if is_text(to) => plain(
            !matches!(
                from,
                A::Binary | A::LargeBinary | A::BinaryView | A::FixedSizeBinary(_)
            ) && (is_text(from) || !from.is_nested()),
        ),
        (A::Date32 | A::Date64 | A::Timestamp(..), A::Date32 | A::Timestamp(..)) => plain(true),
        (A::Timestamp(..) | A::Time32(_) | A::Time64(_), A::Time64(_)) => plain(true),
        (A::Binary | A::LargeBinary | A::BinaryView | A::FixedSizeBinary(_), A::Binary) => {
            plain(true)
        }
        (A::Interval(_) | A::Duration(_), A::Interval(_)) => plain(true),
        (A::List(from) | A::LargeList(from) | A::FixedSizeList(from, _), A::List(to)) => {
            elementwise(from, to)
        }
        (A::Struct(from), A::Struct(to)) => {
            let same_names =
                from.len() == to.len() && from.iter().zip(to).all(|(a, b)| a.name() == b.name());
            plain(
                same_names
                    && from
                        .iter()
                        .zip(to)
                        .all(|(a, b)| elementwise(a, b).is_some()),
            )
        }
        (A::Dictionary(_, values), to) => conversion(values, to).map(|_| Conversion::Cast),
        _ => None,
    }
}

/// Within lists and structs only what one cast can do.
fn elementwise(from: &Field, to: &Field) -> Option<Conversion> {
    match conversion(from.data_type(), to.data_type())? {
        Conversion::Same | Conversion::Cast => Some(Conversion::Cast),
        _ => None,
    }
}

fn is_text(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// The literals that column `index` consists of, where it consists of literals: in VALUES, in a SELECT
/// list, or in every branch of a UNION. Like PostgreSQL's, those in quotes have no type of their own.
fn literals(plan: &LogicalPlan, index: usize) -> Option<Vec<ScalarValue>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            literal(&projection.expr[index]).map(|value| vec![value])
        }
        LogicalPlan::Values(values) => values
            .values
            .iter()
            .map(|row| literal(&row[index]))
            .collect(),
        LogicalPlan::Union(union) => {
            let branches = union.inputs.iter().map(|input| literals(input, index));
            Some(branches.collect::<Option<Vec<_>>>()?.concat())
        }
        LogicalPlan::Distinct(Distinct::All(input)) => literals(input, index),
        _ => None,
    }
}

fn literal(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => literal(&alias.expr),
        // VALUES casts its literals to the type that their column has in common.
        Expr::Cast(cast) if is_text(cast.field.data_type()) => {
            literal(&cast.expr).filter(|v| v.is_null())
        }
        _ => None,
    }
}

fn check_literal(value: &ScalarValue, table: &TableDef, field: &Field) -> Result<(), Fault> {
    if value.is_null() {
        return if field.is_nullable() {
            Ok(())
        } else {
            missing(table, field).map(|_| ())
        };
    }
    if value.cast_to(field.data_type()).is_ok() {
        return Ok(());
    }
    let written = if is_text(&value.data_type()) {
        format!("'{value}'")
    } else {
        value.to_string()
    };
    let message = format!(
        "{written} is no {} for column \"{}\" of table \"{}\"",
        sql_name_of(field),
        field.name(),
        table.name
    );
    Err(Fault::new(FaultKind::InvalidType, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::TimeUnit;

    #[test]
    fn assignments_are_postgresql_s() {
        use DataType as A;
        let time = A::Timestamp(TimeUnit::Nanosecond, None);
        let list = |t: &A| A::new_list(t.clone(), true);
        for (from, to, allowed) in [
            (A::Int64, A::Int16, true),
            (A::Float64, A::Int32, true),
            (A::Int32, A::Decimal128(10, 2), true),
            (A::Utf8, A::Int64, false),
            (A::Int64, A::Utf8, true),
            (A::Boolean, A::Utf8, true),
            (A::Int32, A::Boolean, false),
            (A::Boolean, A::Int32, false),
            (time.clone(), A::Date32, true),
            (A::Date32, time.clone(), true),
            (time.clone(), A::Int64, false),
            (A::Utf8, time, false),
            (A::Binary, A::Utf8, false),
            (A::Null, A::Binary, true),
            (list(&A::Int32), list(&A::Int64), true),
            (list(&A::Utf8), list(&A::Int64), false),
            (list(&A::Int64), A::Utf8, false),
            (JSON_UNION_DATA_TYPE.clone(), A::Int64, false),
            (JSON_UNION_DATA_TYPE.clone(), A::Utf8, true),
        ] {
            assert_eq!(conversion(&from, &to).is_some(), allowed, "{from} to {to}");
        }
    }
}
