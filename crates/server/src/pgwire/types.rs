//! Which PostgreSQL type a column has for a client.

use arrow::datatypes::{DataType, Field, TimeUnit};
use pgwire::api::Type;
use pgwire::messages::data::FieldDescription;
use thalweg_dataflow::table::is_json;

use super::frontend::Formats;

/// The type under which a column is sent. PostgreSQL has no unsigned numbers: they become the next wider
/// type, 64 bits `numeric`. What has no counterpart (structs, lists of lists) is JSON.
pub fn type_of(field: &Field) -> Type {
    match field.data_type() {
        DataType::List(element) => array_of(&scalar(element)).unwrap_or(Type::JSON),
        _ => scalar(field),
    }
}

fn scalar(field: &Field) -> Type {
    match field.data_type() {
        DataType::Boolean => Type::BOOL,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Type::INT2,
        DataType::Int32 | DataType::UInt16 => Type::INT4,
        DataType::Int64 | DataType::UInt32 => Type::INT8,
        DataType::UInt64 | DataType::Decimal128(..) | DataType::Decimal256(..) => Type::NUMERIC,
        DataType::Float32 => Type::FLOAT4,
        DataType::Float64 => Type::FLOAT8,
        DataType::Utf8 if is_json(field) => Type::JSON,
        DataType::Utf8 | DataType::Null => Type::TEXT,
        DataType::Binary => Type::BYTEA,
        DataType::Date32 => Type::DATE,
        DataType::Time64(TimeUnit::Nanosecond) => Type::TIME,
        DataType::Timestamp(TimeUnit::Nanosecond, None) => Type::TIMESTAMP,
        DataType::Timestamp(TimeUnit::Nanosecond, Some(_)) => Type::TIMESTAMPTZ,
        DataType::Interval(_) => Type::INTERVAL,
        _ => Type::JSON,
    }
}

/// The type of arrays of a scalar type; `None`: elements are JSON themselves, so the whole is.
fn array_of(element: &Type) -> Option<Type> {
    let found = ARRAYS.iter().find(|(scalar, _)| scalar == element);
    found.map(|(_, array)| array.clone())
}

/// The type of the elements of an array type.
pub fn element_of(array: &Type) -> Option<Type> {
    let found = ARRAYS.iter().find(|(_, known)| known == array);
    found.map(|(scalar, _)| scalar.clone())
}

/// Scalar types and their arrays. Those of object ids only the catalog has.
pub const ARRAYS: [(Type, Type); 15] = [
    (Type::OID, Type::OID_ARRAY),
    (Type::BOOL, Type::BOOL_ARRAY),
    (Type::INT2, Type::INT2_ARRAY),
    (Type::INT4, Type::INT4_ARRAY),
    (Type::INT8, Type::INT8_ARRAY),
    (Type::NUMERIC, Type::NUMERIC_ARRAY),
    (Type::FLOAT4, Type::FLOAT4_ARRAY),
    (Type::FLOAT8, Type::FLOAT8_ARRAY),
    (Type::TEXT, Type::TEXT_ARRAY),
    (Type::BYTEA, Type::BYTEA_ARRAY),
    (Type::DATE, Type::DATE_ARRAY),
    (Type::TIME, Type::TIME_ARRAY),
    (Type::TIMESTAMP, Type::TIMESTAMP_ARRAY),
    (Type::TIMESTAMPTZ, Type::TIMESTAMPTZ_ARRAY),
    (Type::INTERVAL, Type::INTERVAL_ARRAY),
];

/// A column as RowDescription has it.
pub fn description(field: &Field, column: usize, formats: &Formats) -> FieldDescription {
    let pg_type = type_of(field);
    FieldDescription::new(
        field.name().clone(),
        0,
        0,
        pg_type.oid(),
        size(&pg_type),
        modifier(field),
        formats.is_binary(column).into(),
    )
}

/// Bytes of a value, where all have the same.
pub fn size(pg_type: &Type) -> i16 {
    match *pg_type {
        Type::BOOL => 1,
        Type::INT2 => 2,
        Type::INT4 | Type::FLOAT4 | Type::DATE => 4,
        Type::INT8 | Type::FLOAT8 | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ => 8,
        Type::INTERVAL => 16,
        _ => -1,
    }
}

/// Precision and scale of a `numeric`, packed as PostgreSQL does; else none.
pub fn modifier(field: &Field) -> i32 {
    match field.data_type() {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            ((i32::from(*precision) << 16) | (i32::from(*scale) & 0x7ff)) + 4
        }
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use thalweg_dataflow::table::json_field;

    fn name(data_type: DataType) -> String {
        type_of(&Field::new("c", data_type, true))
            .name()
            .to_string()
    }

    #[test]
    fn unsigned_numbers_widen() {
        let types = [
            DataType::UInt8,
            DataType::UInt16,
            DataType::UInt32,
            DataType::UInt64,
        ];
        assert_eq!(types.map(name), ["int2", "int4", "int8", "numeric"]);
    }

    #[test]
    fn lists_of_scalars_are_arrays_and_the_rest_is_json() {
        let list = |t| DataType::List(Arc::new(Field::new("item", t, true)));
        assert_eq!(name(list(DataType::Int32)), "_int4");
        assert_eq!(name(list(list(DataType::Int32))), "json");
        let fields = vec![Field::new("start", DataType::Int32, true)];
        assert_eq!(name(DataType::Struct(fields.into())), "json");
        assert_eq!(type_of(&json_field("j", true)), Type::JSON);
    }

    #[test]
    fn a_numeric_says_its_precision_and_scale() {
        let field = Field::new("n", DataType::Decimal128(10, 2), true);
        assert_eq!(modifier(&field), (10 << 16 | 2) + 4);
    }
}
