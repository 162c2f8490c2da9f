//! SQL types to Arrow types and back.
//!
//! One mapping serves column declarations and casts. All timestamps are nanoseconds, all text is
//! `Utf8`; JSON is text that says so in its field's metadata.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use datafusion::common::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};
use datafusion_functions_json::{JSON_UNION_DATA_TYPE, json_field_metadata};

use crate::error::{Fault, FaultKind};
use crate::parse::statement::Name;

/// Types within types.
const MAX_DEPTH: usize = 32;

/// The Arrow time zone of TIMESTAMP WITH TIME ZONE.
pub const UTC: &str = "+00:00";

/// The field that a column of `sql_type` has, without a name and nullable.
pub fn field_of(sql_type: &SqlType) -> Result<Field, Fault> {
    if depth_of(sql_type) > MAX_DEPTH {
        let message = format!("the type is nested more than {MAX_DEPTH} levels deep");
        return Err(Fault::new(FaultKind::Unsupported, message));
    }
    nested_field_of(sql_type)
}

fn depth_of(sql_type: &SqlType) -> usize {
    match sql_type {
        SqlType::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => 1 + depth_of(element),
        SqlType::Struct(fields, _) => {
            1 + fields
                .iter()
                .map(|field| depth_of(&field.field_type))
                .max()
                .unwrap_or(0)
        }
        _ => 1,
    }
}

fn nested_field_of(sql_type: &SqlType) -> Result<Field, Fault> {
    let field = Field::new("", arrow_type(sql_type)?, true);
    Ok(match sql_type {
        SqlType::JSON | SqlType::JSONB => field.with_metadata(json_field_metadata()),
        _ => field,
    })
}

fn arrow_type(sql_type: &SqlType) -> Result<DataType, Fault> {
    use DataType as A;
    use SqlType as S;
    Ok(match sql_type {
        S::Boolean | S::Bool => A::Boolean,
        S::TinyInt(_) => A::Int8,
        S::SmallInt(_) | S::Int2(_) | S::Int16 => A::Int16,
        S::Int(_) | S::Integer(_) | S::Int4(_) | S::MediumInt(_) | S::Int32 => A::Int32,
        S::BigInt(_) | S::Int8(_) | S::Int64 => A::Int64,
        S::TinyIntUnsigned(_) | S::UInt8 | S::UTinyInt => A::UInt8,
        S::SmallIntUnsigned(_) | S::Int2Unsigned(_) | S::UInt16 | S::USmallInt => A::UInt16,
        S::IntUnsigned(_)
        | S::IntegerUnsigned(_)
        | S::Int4Unsigned(_)
        | S::MediumIntUnsigned(_)
        | S::UInt32 => A::UInt32,
        S::BigIntUnsigned(_) | S::Int8Unsigned(_) | S::UInt64 | S::UBigInt => A::UInt64,
        S::Real | S::Float4 | S::Float32 => A::Float32,
        S::Float(ExactNumberInfo::Precision(bits)) if *bits <= 24 => A::Float32,
        // As in PostgreSQL, FLOAT alone is double precision.
        S::Float(ExactNumberInfo::None | ExactNumberInfo::Precision(_)) => A::Float64,
        S::Double(ExactNumberInfo::None) | S::DoublePrecision | S::Float8 | S::Float64 => {
            A::Float64
        }
        S::Numeric(info) | S::Decimal(info) | S::Dec(info) => decimal(info)?,
        S::Text
        | S::String(_)
        | S::Varchar(_)
        | S::Char(_)
        | S::Character(_)
        | S::CharacterVarying(_)
        | S::CharVarying(_)
        | S::Nvarchar(_)
        | S::Clob(_)
        | S::JSON
        | S::JSONB => A::Utf8,
        S::Bytea | S::Binary(_) | S::Varbinary(_) | S::Blob(_) | S::Bytes(_) => A::Binary,
        S::Date | S::Date32 => A::Date32,
        S::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            A::Time64(TimeUnit::Nanosecond)
        }
        S::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone)
        | S::TimestampNtz(_)
        | S::Datetime(_) => A::Timestamp(TimeUnit::Nanosecond, None),
        S::Timestamp(_, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) => {
            A::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()))
        }
        S::Interval {
            fields: None,
            precision: None,
        } => A::Interval(IntervalUnit::MonthDayNano),
        S::Array(
            ArrayElemTypeDef::AngleBracket(element) | ArrayElemTypeDef::SquareBracket(element, _),
        ) => A::List(Arc::new(
            nested_field_of(element)?.with_name(Field::LIST_FIELD_DEFAULT_NAME),
        )),
        S::Struct(fields, _) => A::Struct(struct_fields(fields)?),
        S::Uuid => return Err(unsupported(sql_type).hint("declare the column as TEXT")),
        S::Map(..) => {
            return Err(unsupported(sql_type).hint("declare the column as STRUCT or JSON"));
        }
        S::Custom(name, modifiers) => return custom(sql_type, &name.to_string(), modifiers),
        _ => return Err(unsupported(sql_type)),
    })
}

fn unsupported(sql_type: &SqlType) -> Fault {
    Fault::new(
        FaultKind::Unsupported,
        format!("type {sql_type} is not supported"),
    )
}

fn custom(sql_type: &SqlType, name: &str, modifiers: &[String]) -> Result<DataType, Fault> {
    const KNOWN: [&str; 22] = [
        "boolean",
        "smallint",
        "int",
        "integer",
        "bigint",
        "real",
        "double precision",
        "float",
        "decimal",
        "numeric",
        "text",
        "varchar",
        "bytea",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "json",
        "jsonb",
        "struct",
        "array",
    ];
    if modifiers.is_empty() && name.eq_ignore_ascii_case("double") {
        return Ok(DataType::Float64);
    }
    if name.eq_ignore_ascii_case("map") {
        return Err(unsupported(sql_type).hint("declare the column as STRUCT or JSON"));
    }
    let fault = Fault::new(
        FaultKind::UndefinedObject,
        format!("type \"{name}\" does not exist"),
    );
    Err(match crate::error::closest(name, KNOWN) {
        Some(known) => fault.hint(format!("did you mean {}?", known.to_uppercase())),
        None => fault,
    })
}

fn decimal(info: &ExactNumberInfo) -> Result<DataType, Fault> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => (38, 10),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    let fault = |message: String| Err(Fault::new(FaultKind::InvalidType, message));
    if !(1..=76).contains(&precision) {
        return fault(format!(
            "the precision of a decimal is 1 to 76 digits, not {precision}"
        ));
    }
    if !(0..=precision as i64).contains(&scale) {
        return fault(format!(
            "the scale of DECIMAL({precision}, {scale}) is not between 0 and its precision"
        ));
    }
    let (precision, scale) = (precision as u8, scale as i8);
    Ok(if precision <= 38 {
        DataType::Decimal128(precision, scale)
    } else {
        DataType::Decimal256(precision, scale)
    })
}

fn struct_fields(fields: &[datafusion::sql::sqlparser::ast::StructField]) -> Result<Fields, Fault> {
    fields
        .iter()
        .map(|field| {
            let Some(name) = &field.field_name else {
                return Err(Fault::new(
                    FaultKind::InvalidType,
                    "a field of a STRUCT needs a name",
                ));
            };
            Ok(nested_field_of(&field.field_type)?.with_name(Name::of(name).text))
        })
        .collect()
}

/// The SQL name of a type, as an error or DESCRIBE gives it.
pub fn sql_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "NULL".into(),
        DataType::Boolean => "BOOLEAN".into(),
        DataType::Int8 => "TINYINT".into(),
        DataType::Int16 => "SMALLINT".into(),
        DataType::Int32 => "INT".into(),
        DataType::Int64 => "BIGINT".into(),
        DataType::UInt8 => "TINYINT UNSIGNED".into(),
        DataType::UInt16 => "SMALLINT UNSIGNED".into(),
        DataType::UInt32 => "INT UNSIGNED".into(),
        DataType::UInt64 => "BIGINT UNSIGNED".into(),
        DataType::Float16 | DataType::Float32 => "REAL".into(),
        DataType::Float64 => "DOUBLE PRECISION".into(),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            format!("DECIMAL({p}, {s})")
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "TEXT".into(),
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "BYTEA".into(),
        DataType::Date32 | DataType::Date64 => "DATE".into(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".into(),
        DataType::Timestamp(_, None) => "TIMESTAMP".into(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".into(),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".into(),
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::ListView(f)
        | DataType::FixedSizeList(f, _) => {
            format!("{}[]", sql_name(f.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<_> = fields
                .iter()
                .map(|f| format!("{} {}", f.name(), sql_name(f.data_type())))
                .collect();
            format!("STRUCT<{}>", fields.join(", "))
        }
        DataType::Dictionary(_, values) => sql_name(values),
        union if *union == *JSON_UNION_DATA_TYPE => "a JSON value".into(),
        other => other.to_string(),
    }
}

/// The SQL name of a column's type.
pub fn sql_name_of(field: &Field) -> String {
    if is_json(field) {
        "JSON".into()
    } else {
        sql_name(field.data_type())
    }
}

pub fn is_json(field: &Field) -> bool {
    field.metadata().contains_key("is_json")
}

/// Gives DataFusion our mapping for casts.
#[derive(Debug)]
pub struct Types;

impl TypePlanner for Types {
    fn plan_type_field(&self, sql_type: &SqlType) -> DataFusionResult<Option<FieldRef>> {
        let field =
            field_of(sql_type).map_err(|fault| DataFusionError::External(Box::new(fault)))?;
        Ok(Some(Arc::new(field)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_prints_as_it_is_declared() {
        let time = DataType::Timestamp(TimeUnit::Nanosecond, Some(UTC.into()));
        let list = DataType::new_list(time, true);
        let nested = DataType::Struct(
            vec![
                Field::new("at", list, true),
                Field::new("n", DataType::UInt64, true),
            ]
            .into(),
        );
        assert_eq!(
            sql_name(&nested),
            "STRUCT<at TIMESTAMP WITH TIME ZONE[], n BIGINT UNSIGNED>"
        );
    }
}
