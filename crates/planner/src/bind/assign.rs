//! From a query's columns to a sink's: by position or by name, cast as PostgreSQL's assignments are.
//!
//! Source: PostgreSQL manual, 10.4 "Value Storage" and CREATE CAST (implicit and assignment casts).

use arrow::datatypes::{DataType, Field};
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan, LogicalPlanBuilder, lit};
use datafusion_functions_json::{JSON_UNION_DATA_TYPE, udfs::json_union_to_text_udf};

use crate::catalog::{ColumnOrigin, TableDef};
use crate::error::{Fault, FaultKind, Position, closest};
use crate::parse::statement::Name;
use crate::types::{sql_name, sql_name_of};

/// The columns of `table` that are written, and the plan that gives them from those of `plan`. `names`
/// is the column list of the INSERT, empty where it goes by position.
///
/// Faults: too many or too few columns, a column that cannot be written, a type that does not fit,
/// a NOT NULL column without a value.
pub fn assign(
    plan: LogicalPlan,
    table: &TableDef,
    names: &[Name],
    at: Position,
) -> Result<LogicalPlan, Vec<Fault>> {
    let targets = targets(table, names)?;
    let n_columns = plan.schema().fields().len();
    if targets.len() != n_columns {
        return Err(vec![
            wrong_count(table, &targets, names, n_columns).at(Some(at)),
        ]);
    }
    let mut faults = Vec::new();
    let mut exprs = Vec::new();
    for field in written_fields(table) {
        let source = targets.iter().position(|target| target == &field.name());
        let expr = match source {
            Some(index) => convert(&plan, index, table, field),
            None => missing(table, field),
        };
        match expr {
            Ok(expr) => exprs.push(expr.alias(field.name())),
            Err(fault) => faults.push(
                fault
                    .at(source.and_then(|i| names.get(i)).map(|n| n.position))
                    .at(Some(at)),
            ),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    project(plan, exprs).map_err(|fault| vec![fault])
}

/// The columns of a table that an INSERT fills: those of the record.
pub fn written_fields(table: &TableDef) -> impl Iterator<Item = &Field> {
    table
        .columns
        .iter()
        .filter(|c| matches!(c.origin, ColumnOrigin::Physical))
        .map(|c| &c.field)
}

fn project(plan: LogicalPlan, exprs: Vec<Expr>) -> Result<LogicalPlan, Fault> {
    LogicalPlanBuilder::from(plan)
        .project(exprs)
        .and_then(LogicalPlanBuilder::build)
        .map_err(Fault::from_datafusion)
}

/// Names of the columns that the query's fill, in its order.
fn targets<'a>(table: &'a TableDef, names: &'a [Name]) -> Result<Vec<&'a String>, Vec<Fault>> {
    if names.is_empty() {
        return Ok(written_fields(table).map(Field::name).collect());
    }
    let mut targets = Vec::new();
    let mut faults = Vec::new();
    for name in names {
        match check_target(table, name, &targets) {
            Some(fault) => faults.push(fault.at(Some(name.position))),
            None => targets.push(&name.text),
        }
    }
    if faults.is_empty() {
        Ok(targets)
    } else {
        Err(faults)
    }
}

fn check_target(table: &TableDef, name: &Name, before: &[&String]) -> Option<Fault> {
    if before.contains(&&name.text) {
        return Some(Fault::new(
            FaultKind::DuplicateObject,
            format!("column \"{}\" is named twice", name.text),
        ));
    }
    let Some(column) = table.columns.iter().find(|c| *c.field.name() == name.text) else {
        let message = format!(
            "column \"{}\" of table \"{}\" does not exist",
            name.text, table.name
        );
        let fault = Fault::new(FaultKind::UndefinedColumn, message);
        let known = closest(&name.text, written_fields(table).map(|f| f.name().as_str()));
        return Some(match known {
            Some(known) => fault.hint(format!("table \"{}\" has \"{known}\"", table.name)),
            None => fault,
        });
    };
    let what = match column.origin {
        ColumnOrigin::Physical => return None,
        ColumnOrigin::Generated(_) => "generated",
        ColumnOrigin::Metadata(_) => "metadata",
    };
    let message = format!(
        "column \"{}\" of table \"{}\" is {what} and cannot be written",
        name.text, table.name
    );
    Some(Fault::new(FaultKind::InvalidOption, message))
}

fn wrong_count(table: &TableDef, targets: &[&String], names: &[Name], n_columns: usize) -> Fault {
    let message = match names {
        [] => format!(
            "table \"{}\" has {}, but the query gives {n_columns}",
            table.name,
            columns(targets.len())
        ),
        _ => format!(
            "INSERT names {}, but the query gives {n_columns}",
            columns(targets.len())
        ),
    };
    let fault = Fault::new(FaultKind::Syntax, message);
    if names.is_empty() && n_columns < targets.len() {
        let first: Vec<_> = targets[..n_columns].iter().map(|s| s.as_str()).collect();
        fault.hint(format!(
            "name those to fill: INSERT INTO {} ({}) …",
            table.name,
            first.join(", ")
        ))
    } else {
        fault
    }
}

fn columns(n: usize) -> String {
    if n == 1 {
        "1 column".into()
    } else {
        format!("{n} columns")
    }
}

fn missing(table: &TableDef, field: &Field) -> Result<Expr, Fault> {
    if !field.is_nullable() {
        let message = format!(
            "column \"{}\" of table \"{}\" is NOT NULL and gets no value",
            field.name(),
            table.name
        );
        return Err(Fault::new(FaultKind::InvalidType, message));
    }
    let null = ScalarValue::try_from(field.data_type()).map_err(Fault::from_datafusion)?;
    Ok(lit(null))
}

/// Column `index` of the plan as a value of `field`.
fn convert(
    plan: &LogicalPlan,
    index: usize,
    table: &TableDef,
    field: &Field,
) -> Result<Expr, Fault> {
    let (qualifier, source) = plan.schema().qualified_field(index);
    let value = Expr::Column(Column::new(qualifier.cloned(), source.name()));
    let to = field.data_type();
    if let Some(literals) = literals(plan, index) {
        check_literals(&literals, table, field)?;
        if literals.iter().all(|literal| is_text(&literal.data_type())) {
            return Ok(cast(value, to));
        }
    }
    let from = source.data_type();
    match assignment(from, to) {
        Some(Assignment::Same) => Ok(value),
        Some(Assignment::Cast) => Ok(cast(value, to)),
        Some(Assignment::Round) => Ok(cast(
            datafusion::functions::math::expr_fn::round(vec![value]),
            to,
        )),
        Some(Assignment::RoundDecimal(whole)) => Ok(cast(cast(value, &whole), to)),
        Some(Assignment::JsonToText) => Ok(json_union_to_text_udf().call(vec![value])),
        None => Err(mismatch(table, field, source)),
    }
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
        assignment(from, to),
        Some(Assignment::Same | Assignment::Cast)
    )
}

/// How a value becomes one of the target's type without being asked to.
#[derive(Debug, PartialEq, Eq)]
enum Assignment {
    Same,
    Cast,
    /// To the nearest whole number first, as PostgreSQL does and a plain cast does not.
    Round,
    /// The same for a decimal, through one without a fraction.
    RoundDecimal(DataType),
    JsonToText,
}

fn assignment(from: &DataType, to: &DataType) -> Option<Assignment> {
    use DataType as A;
    if from == to {
        return Some(Assignment::Same);
    }
    let plain = |allowed: bool| allowed.then_some(Assignment::Cast);
    match (from, to) {
        (A::Null, _) => plain(true),
        (A::Float16 | A::Float32 | A::Float64, to) if to.is_integer() => Some(Assignment::Round),
        (A::Decimal128(precision, scale), to) if to.is_integer() && *scale > 0 => {
            Some(Assignment::RoundDecimal(A::Decimal128(*precision, 0)))
        }
        (A::Decimal256(precision, scale), to) if to.is_integer() && *scale > 0 => {
            Some(Assignment::RoundDecimal(A::Decimal256(*precision, 0)))
        }
        (from, to) if from.is_numeric() && to.is_numeric() => plain(true),
        (from, to) if is_text(to) && *from == *JSON_UNION_DATA_TYPE => Some(Assignment::JsonToText),
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
        (A::Dictionary(_, values), to) => assignment(values, to).map(|_| Assignment::Cast),
        _ => None,
    }
}

/// Within lists and structs only what one cast can do.
fn elementwise(from: &Field, to: &Field) -> Option<Assignment> {
    match assignment(from.data_type(), to.data_type())? {
        Assignment::Same | Assignment::Cast => Some(Assignment::Cast),
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

fn check_literals(literals: &[ScalarValue], table: &TableDef, field: &Field) -> Result<(), Fault> {
    for value in literals {
        if value.is_null() {
            if !field.is_nullable() {
                return missing(table, field).map(|_| ());
            }
            continue;
        }
        if is_text(&value.data_type()) && value.cast_to(field.data_type()).is_err() {
            let message = format!(
                "'{value}' is no {} for column \"{}\" of table \"{}\"",
                sql_name_of(field),
                field.name(),
                table.name
            );
            return Err(Fault::new(FaultKind::InvalidType, message));
        }
    }
    Ok(())
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
            assert_eq!(assignment(&from, &to).is_some(), allowed, "{from} to {to}");
        }
    }
}
