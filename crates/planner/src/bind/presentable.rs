//! Results in the types that a table can have: one kind of text, one unit of time.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use datafusion::common::Column;
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_functions_json::{JSON_UNION_DATA_TYPE, udfs::json_union_to_text_udf};

use crate::error::Fault;
use crate::types::UTC;

/// The plan with its columns cast to what [`presentable_type`] says; a value within JSON becomes its
/// text.
pub fn presentable(plan: LogicalPlan) -> Result<LogicalPlan, Fault> {
    if plan
        .schema()
        .fields()
        .iter()
        .all(|field| presentable_type(field.data_type()) == *field.data_type())
    {
        return Ok(plan);
    }
    let schema = Arc::clone(plan.schema());
    let exprs = schema.iter().map(|(qualifier, field)| {
        let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        let wanted = presentable_type(field.data_type());
        if *field.data_type() == *JSON_UNION_DATA_TYPE {
            json_union_to_text_udf()
                .call(vec![column])
                .alias(field.name())
        } else if wanted == *field.data_type() {
            column
        } else {
            Expr::Cast(Cast::new(Box::new(column), wanted)).alias(field.name())
        }
    });
    let exprs: Vec<_> = exprs.collect();
    LogicalPlanBuilder::from(plan)
        .project(exprs)
        .and_then(LogicalPlanBuilder::build)
        .map_err(Fault::from_datafusion)
}

/// The type of a table's column that holds values of `data_type`.
fn presentable_type(data_type: &DataType) -> DataType {
    use DataType as A;
    let field = |f: &Arc<Field>| {
        Arc::new(
            f.as_ref()
                .clone()
                .with_data_type(presentable_type(f.data_type())),
        )
    };
    match data_type {
        // As in PostgreSQL, a column of nothing but NULLs is text.
        A::Null | A::LargeUtf8 | A::Utf8View => A::Utf8,
        A::LargeBinary | A::BinaryView | A::FixedSizeBinary(_) => A::Binary,
        A::Timestamp(_, None) => A::Timestamp(TimeUnit::Nanosecond, None),
        A::Timestamp(_, Some(_)) => A::Timestamp(TimeUnit::Nanosecond, Some(UTC.into())),
        A::Date64 => A::Date32,
        A::Time32(_) | A::Time64(_) => A::Time64(TimeUnit::Nanosecond),
        A::Interval(_) | A::Duration(_) => A::Interval(IntervalUnit::MonthDayNano),
        A::Float16 => A::Float32,
        A::Decimal32(precision, scale) | A::Decimal64(precision, scale) => {
            A::Decimal128(*precision, *scale)
        }
        A::List(element) | A::LargeList(element) | A::FixedSizeList(element, _) => {
            A::List(field(element))
        }
        A::Struct(fields) => A::Struct(fields.iter().map(field).collect()),
        A::Dictionary(_, values) => presentable_type(values),
        A::Union(..) if *data_type == *JSON_UNION_DATA_TYPE => A::Utf8,
        other => other.clone(),
    }
}
