//! Rows as Avro records, one a message.
//!
//! Each column is a field of its name; one that may be NULL is a union with null. Types are the logical types of what
//! they are: a TIMESTAMP is local, one WITH TIME ZONE is an instant.

use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit, i256};
use arrow::record_batch::RecordBatch;
use serde_json::{Value, json};
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::super::cells::{CellValues, Cells};
use super::super::confluent;
use super::super::encode::{Encoder, Messages, Records, append_only};
use super::super::registry::{self, Kind, Subject};
use super::super::value::{decimal_bytes, sql_type};
use super::cursor::{write_bytes, write_long};
use super::is_confluent;

pub struct AvroEncoder {
    schema: SchemaRef,
    /// What precedes each record.
    header: Vec<u8>,
    scratch: Vec<u8>,
}

impl AvroEncoder {
    /// Registers the records' schema where options name a registry. Errors: that fails; a column that Avro
    /// cannot express.
    pub fn new(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        let avro = record_schema(schema).map_err(|m| ConnectorError::configuration(m, None))?;
        let mut header = Vec::new();
        if is_confluent(options) {
            let text = avro.to_string();
            let id = registry::register(options, Kind::Avro, &text, Subject::Value)?;
            header.extend_from_slice(&confluent::header(id));
        }
        Ok(Self {
            schema: schema.clone(),
            header,
            scratch: Vec::new(),
        })
    }
}

impl Encoder for AvroEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(only_messages())
    }

    fn rows(&mut self, _: &RecordBatch, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(only_messages())
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("avro"))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        let SinkInput::Rows(rows) = input else {
            return Err(append_only("avro"));
        };
        let fields = self.schema.fields();
        let columns = rows.columns().iter().zip(fields);
        let columns = columns
            .map(|(column, field)| Cells::new(column, field))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows.num_rows() {
            let buffer = out.open();
            buffer.extend_from_slice(&self.header);
            for (cells, field) in columns.iter().zip(fields) {
                let written = write(cells, field, row, &mut self.scratch, buffer);
                written.map_err(|message| {
                    ConnectorError::Encode(format!("column \"{}\": {message}", field.name()))
                })?;
            }
            out.end();
        }
        Ok(())
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

fn only_messages() -> ConnectorError {
    let message = "format 'avro' is for messages, not for files";
    ConnectorError::configuration(message, None)
}

/// The schema of the records, or what cannot be said in it.
pub fn record_schema(schema: &Schema) -> Result<Value, String> {
    record("Row", schema.fields())
}

fn record(name: &str, fields: &Fields) -> Result<Value, String> {
    let fields = fields.iter().map(|field| {
        let mut of_field = json!({"name": named(field.name())?, "type": of_field(field, name)?});
        if field.is_nullable() {
            // So that readers of an older schema do without it.
            of_field["default"] = Value::Null;
        }
        Ok(of_field)
    });
    let fields = fields.collect::<Result<Vec<_>, String>>()?;
    Ok(json!({"type": "record", "name": name, "fields": fields}))
}

fn named(name: &str) -> Result<&str, String> {
    let mut letters = name.bytes();
    let is_first = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    let is_name = letters.next().is_some_and(is_first)
        && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let message = || {
        format!(
            "\"{name}\" is no name in Avro: it takes letters, digits and _; give the column another"
        )
    };
    is_name.then_some(name).ok_or_else(message)
}

/// `around`: the name of the record that the field is in, from which those inside it get theirs.
fn of_field(field: &Field, around: &str) -> Result<Value, String> {
    let of_type = of_type(field, around)?;
    Ok(if field.is_nullable() {
        json!(["null", of_type])
    } else {
        of_type
    })
}

fn of_type(field: &Field, around: &str) -> Result<Value, String> {
    use DataType as T;
    let logical = |shape: &str, name: &str| json!({"type": shape, "logicalType": name});
    Ok(match field.data_type() {
        T::Boolean => json!("boolean"),
        T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 => json!("int"),
        T::Int64 | T::UInt32 => json!("long"),
        T::UInt64 => decimal(20, 0),
        T::Float16 | T::Float32 => json!("float"),
        T::Float64 => json!("double"),
        T::Decimal32(p, s) | T::Decimal64(p, s) | T::Decimal128(p, s) | T::Decimal256(p, s)
            if *s >= 0 =>
        {
            decimal(*p, *s)
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View => json!("string"),
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => json!("bytes"),
        T::Date32 | T::Date64 => logical("int", "date"),
        T::Time32(_) => logical("int", "time-millis"),
        T::Time64(_) => logical("long", "time-micros"),
        T::Timestamp(unit, zone) => {
            let local = if zone.is_some() { "" } else { "local-" };
            let unit = match unit {
                TimeUnit::Second | TimeUnit::Millisecond => "millis",
                TimeUnit::Microsecond => "micros",
                TimeUnit::Nanosecond => "nanos",
            };
            logical("long", &format!("{local}timestamp-{unit}"))
        }
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            let around = format!("{around}_{}", field.name());
            json!({"type": "array", "items": of_field(item, &around)?})
        }
        T::Struct(fields) => record(&format!("{around}_{}", named(field.name())?), fields)?,
        other => {
            let what = sql_type(other);
            let name = field.name();
            return Err(format!(
                "column \"{name}\" has type {what}, which Avro cannot express"
            ));
        }
    })
}

fn decimal(precision: u8, scale: i8) -> Value {
    json!({"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})
}

/// Appends a value as [`of_field`] describes it. Errors say what is wrong with the value.
fn write(
    cells: &Cells,
    field: &Field,
    row: usize,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    if cells.is_null(row) {
        if !field.is_nullable() {
            return Err("null in a column that is declared NOT NULL".to_string());
        }
        write_long(0, out);
        return Ok(());
    }
    if field.is_nullable() {
        write_long(1, out);
    }
    match &cells.values {
        CellValues::Bool(v) => out.push(v.value(row).into()),
        CellValues::Int(v) => write_long(v.value(row), out),
        CellValues::UInt(v) => match (i64::try_from(v.value(row)), field.data_type()) {
            (Ok(number), t) if *t != DataType::UInt64 => write_long(number, out),
            _ => write_decimal(i256::from_i128(v.value(row).into()), scratch, out),
        },
        CellValues::Float32(v) => out.extend_from_slice(&v.value(row).to_le_bytes()),
        CellValues::Float64(v) => out.extend_from_slice(&v.value(row).to_le_bytes()),
        CellValues::Decimal128(v) => write_decimal(i256::from_i128(v.value(row)), scratch, out),
        CellValues::Decimal256(v) => write_decimal(v.value(row), scratch, out),
        CellValues::Text(v) | CellValues::Json(v) => write_bytes(v.value(row).as_bytes(), out),
        CellValues::Binary(v) => write_bytes(v.value(row), out),
        CellValues::Date(v) => write_long(v.value(row).into(), out),
        CellValues::Time { values, unit } => {
            write_long(ticks(values.value(row), *unit, field)?, out)
        }
        CellValues::Timestamp { values, unit, .. } => {
            write_long(ticks(values.value(row), *unit, field)?, out);
        }
        CellValues::List { offsets, items } => {
            let (DataType::List(item)
            | DataType::LargeList(item)
            | DataType::FixedSizeList(item, _)) = field.data_type()
            else {
                return Err("it cannot be written".to_string());
            };
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            if !range.is_empty() {
                write_long(range.len() as i64, out);
            }
            for index in range {
                write(items, item, index, scratch, out)?;
            }
            write_long(0, out);
        }
        CellValues::Struct(inner) => {
            let DataType::Struct(fields) = field.data_type() else {
                return Err("it cannot be written".to_string());
            };
            for ((_, cells), field) in inner.iter().zip(fields) {
                write(cells, field, row, scratch, out)?;
            }
        }
        // Refused when the schema was made.
        _ => return Err("it cannot be written".to_string()),
    }
    Ok(())
}

fn write_decimal(unscaled: i256, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    decimal_bytes::bytes_into(unscaled, scratch);
    write_bytes(scratch, out);
}

/// A time in the unit that its logical type has.
fn ticks(value: i64, unit: TimeUnit, field: &Field) -> Result<i64, String> {
    match (unit, field.data_type()) {
        (TimeUnit::Second, _) => value
            .checked_mul(1000)
            .ok_or_else(|| format!("{value} seconds are more than Avro can express")),
        (TimeUnit::Nanosecond, DataType::Time64(_)) if value % 1000 != 0 => Err(
            "a TIME is finer than the microseconds that Avro has; cast it to TIME(6)".to_string(),
        ),
        (TimeUnit::Nanosecond, DataType::Time64(_)) => Ok(value / 1000),
        _ => Ok(value),
    }
}
