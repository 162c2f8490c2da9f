//! The schema that Kafka Connect's JSON converter wants around each record: `{"schema":…,"payload":…}`.
//!
//! Types are named as Debezium names them, so that its JDBC sink finds times and decimals again. Source: the
//! envelopes that a Debezium 3.6 connector writes.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use serde_json::{Value, json};
use thalweg_dataflow::table::is_json;

use super::super::cells::{Decimals, Spelling};

/// What stands before and behind each record.
#[derive(Debug, Default)]
pub struct Wrapping {
    pub before: Vec<u8>,
    pub after: &'static [u8],
}

impl Wrapping {
    pub fn new(schema: &Value) -> Self {
        Self {
            before: format!("{{\"schema\":{schema},\"payload\":").into_bytes(),
            after: b"}",
        }
    }
}

/// The schema of a row, a struct called `name`.
pub fn row_schema(schema: &Schema, spelling: &Spelling, name: &str) -> Value {
    json!({"type": "struct", "fields": fields(schema.fields(), spelling), "optional": false, "name": name})
}

/// The schema of a Debezium envelope whose records come from `stem`.
pub fn envelope_schema(schema: &Schema, spelling: &Spelling, stem: &str) -> Value {
    let image = |field: &str| {
        let fields = fields(schema.fields(), spelling);
        let name = format!("{stem}.Value");
        json!({"type": "struct", "fields": fields, "optional": true, "name": name, "field": field})
    };
    let op = json!({"type": "string", "optional": false, "field": "op"});
    json!({
        "type": "struct",
        "fields": [image("before"), image("after"), op],
        "optional": false,
        "name": format!("{stem}.Envelope"),
        "version": 1,
    })
}

fn fields(fields: &Fields, spelling: &Spelling) -> Vec<Value> {
    let named = |field: &Arc<Field>| {
        let mut schema = field_schema(field, spelling);
        schema["field"] = field.name().as_str().into();
        schema
    };
    fields.iter().map(named).collect()
}

fn field_schema(field: &Field, spelling: &Spelling) -> Value {
    let mut schema = type_schema(field, spelling);
    schema["optional"] = field.is_nullable().into();
    schema
}

fn type_schema(field: &Field, spelling: &Spelling) -> Value {
    use DataType as T;
    let plain = |name: &str| json!({"type": name});
    match field.data_type() {
        T::Boolean => plain("boolean"),
        T::Int8 => plain("int8"),
        T::Int16 | T::UInt8 => plain("int16"),
        T::Int32 | T::UInt16 => plain("int32"),
        T::Int64 | T::UInt32 => plain("int64"),
        T::UInt64 => decimal(20, 0),
        T::Float16 | T::Float32 => plain("float"),
        T::Float64 => plain("double"),
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..)
            if spelling.decimals == Decimals::Text =>
        {
            plain("string")
        }
        T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s) | T::Decimal256(p, s) => {
            decimal(*p, *s)
        }
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => plain("bytes"),
        T::Timestamp(_, zone) => match spelling.epoch {
            None if zone.is_some() => named("string", "io.debezium.time.ZonedTimestamp"),
            None => named("string", "io.debezium.time.IsoTimestamp"),
            Some(TimeUnit::Second) => plain("int64"),
            Some(TimeUnit::Millisecond) => named("int64", "io.debezium.time.Timestamp"),
            Some(TimeUnit::Microsecond) => named("int64", "io.debezium.time.MicroTimestamp"),
            Some(TimeUnit::Nanosecond) => named("int64", "io.debezium.time.NanoTimestamp"),
        },
        T::Date32 | T::Date64 if spelling.numeric_days => named("int32", "io.debezium.time.Date"),
        T::Date32 | T::Date64 => named("string", "io.debezium.time.IsoDate"),
        T::Time32(_) | T::Time64(_) => match spelling.epoch.filter(|_| spelling.numeric_days) {
            None => named("string", "io.debezium.time.IsoTime"),
            Some(TimeUnit::Second) => plain("int64"),
            Some(TimeUnit::Millisecond) => named("int32", "io.debezium.time.Time"),
            Some(TimeUnit::Microsecond) => named("int64", "io.debezium.time.MicroTime"),
            Some(TimeUnit::Nanosecond) => named("int64", "io.debezium.time.NanoTime"),
        },
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            json!({"type": "array", "items": field_schema(item, spelling)})
        }
        T::Struct(inner) => json!({"type": "struct", "fields": fields(inner, spelling)}),
        T::Map(entries, _) => match entries.data_type() {
            T::Struct(pair) => {
                let (keys, values) = (json!({"type": "string", "optional": false}), &pair[1]);
                json!({"type": "map", "keys": keys, "values": field_schema(values, spelling)})
            }
            _ => plain("string"),
        },
        _ if is_json(field) => named("string", "io.debezium.data.Json"),
        _ => plain("string"),
    }
}

fn named(base: &str, name: &str) -> Value {
    json!({"type": base, "name": name, "version": 1})
}

fn decimal(precision: u8, scale: i8) -> Value {
    json!({
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "version": 1,
        "parameters": {"scale": scale.to_string(), "connect.decimal.precision": precision.to_string()},
    })
}
