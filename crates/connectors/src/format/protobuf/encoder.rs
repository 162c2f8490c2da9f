//! Rows as messages, one a message of the broker or behind its length in a file.

use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use prost_reflect::prost::Message;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, Value};
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::super::cells::{CellValues, Cells, Spelling};
use super::super::confluent;
use super::super::encode::{Encoder, Messages, Records, append_only};
use super::super::registry::{self, Subject};
use super::super::value::{sql_type, unit_nanos};
use super::{DESCRIPTOR, descriptor, is_confluent, is_length_delimited, local, proto, wire};

pub struct ProtobufEncoder {
    schema: SchemaRef,
    message: MessageDescriptor,
    /// Per column, its field.
    fields: Vec<FieldDescriptor>,
    /// What precedes each record in a message.
    header: Vec<u8>,
    is_delimited: bool,
    scratch: Vec<u8>,
}

impl ProtobufEncoder {
    /// Registers the records' schema where options name a registry. Errors: that fails; a column without a
    /// field, or one that Protobuf cannot express.
    pub fn new(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        let wrong = |message: String| ConnectorError::configuration(message, None);
        let mut header = Vec::new();
        let message = if options.text(DESCRIPTOR.name).is_some() {
            let message = local(options)?;
            if is_confluent(options) {
                return Err(ConnectorError::configuration(
                    "a schema registry is given the schema of the table's columns, not a file's",
                    Some(format!("leave out {} or the registry", DESCRIPTOR.name)),
                ));
            }
            message
        } else {
            let text = proto::of_rows(schema).map_err(wrong)?;
            let id = registry::register(options, registry::Kind::Protobuf, &text, Subject::Value)?;
            let types = descriptor::of_text(&text, &[]).map_err(wrong)?;
            let message = descriptor::message(&types, None).map_err(wrong)?;
            header.extend_from_slice(&confluent::header(id));
            wire::write_path(&descriptor::path_of(&message), &mut header);
            message
        };
        let fields = schema.fields().iter().map(|field| {
            let found = message.get_field_by_name(field.name());
            found.ok_or_else(|| missing(&message, field))
        });
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        for (column, field) in schema.fields().iter().zip(&fields) {
            check_column(column, field)?;
        }
        Ok(Self {
            schema: schema.clone(),
            message,
            fields,
            header,
            is_delimited: is_length_delimited(options),
            scratch: Vec::new(),
        })
    }

    /// Calls `record` with each row's message.
    fn messages_of(
        &self,
        rows: &RecordBatch,
        mut record: impl FnMut(DynamicMessage),
    ) -> Result<(), ConnectorError> {
        let columns = rows.columns().iter().zip(self.schema.fields());
        let columns = columns
            .map(|(column, field)| Cells::new(column, field))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows.num_rows() {
            let mut message = DynamicMessage::new(self.message.clone());
            for (cells, field) in columns.iter().zip(&self.fields) {
                set(&mut message, field, cells, row).map_err(|said| {
                    ConnectorError::Encode(format!("column \"{}\": {said}", field.name()))
                })?;
            }
            record(message);
        }
        Ok(())
    }

    fn delimited(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let written =
            self.messages_of(rows, |message| write_delimited(&message, &mut scratch, out));
        self.scratch = scratch;
        written
    }
}

fn write_delimited(message: &DynamicMessage, scratch: &mut Vec<u8>, out: &mut Vec<u8>) {
    scratch.clear();
    message
        .encode(scratch)
        .expect("a vector has room for all of it");
    wire::write_varint(scratch.len() as u64, out);
    out.extend_from_slice(scratch);
}

fn missing(message: &MessageDescriptor, column: &Field) -> ConnectorError {
    let (of, name) = (message.full_name(), column.name());
    let names: Vec<_> = message
        .fields()
        .map(|f| format!("\"{}\"", f.name()))
        .collect();
    ConnectorError::configuration(
        format!("the message type {of} has no field for column \"{name}\""),
        Some(format!("it has {}", names.join(", "))),
    )
}

impl Encoder for ProtobufEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.delimited(rows, out)
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("protobuf"))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        let SinkInput::Rows(rows) = input else {
            return Err(append_only("protobuf"));
        };
        let mut scratch = Vec::new();
        self.messages_of(rows, |message| {
            let buffer = out.open();
            buffer.extend_from_slice(&self.header);
            if self.is_delimited {
                write_delimited(&message, &mut scratch, buffer);
            } else {
                message
                    .encode(buffer)
                    .expect("a vector has room for all of it");
            }
            out.end();
        })
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

/// Refuses columns whose values no field of this kind can hold.
fn check_column(column: &Field, field: &FieldDescriptor) -> Result<(), ConnectorError> {
    let refuse = || {
        let (name, what) = (column.name(), sql_type(column.data_type()));
        let message = format!(
            "column \"{name}\" has type {what}, which field {} cannot hold",
            field.full_name()
        );
        Err(ConnectorError::configuration(message, None))
    };
    if field.is_map() {
        return refuse();
    }
    let item = match column.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)
            if field.is_list() =>
        {
            item.as_ref()
        }
        _ if field.is_list() => return refuse(),
        _ => column,
    };
    use DataType as T;
    let is_text = matches!(item.data_type(), T::Utf8 | T::LargeUtf8 | T::Utf8View);
    let is_decimal = item.data_type().is_decimal();
    let is_int = item.data_type().is_integer();
    let fits = match field.kind() {
        Kind::Bool => item.data_type() == &T::Boolean,
        Kind::Float | Kind::Double => item.data_type().is_floating() || is_int,
        Kind::String => is_text || is_decimal,
        Kind::Enum(_) => is_text || is_int,
        Kind::Bytes => matches!(
            item.data_type(),
            T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_)
        ),
        Kind::Message(message) => match item.data_type() {
            T::Timestamp(..) => message.full_name() == "google.protobuf.Timestamp",
            T::Struct(inner) => {
                for column in inner {
                    let found = message.get_field_by_name(column.name());
                    check_column(column, &found.ok_or_else(|| missing(&message, column))?)?;
                }
                true
            }
            _ => false,
        },
        _ => is_int,
    };
    if fits { Ok(()) } else { refuse() }
}

/// Sets a field from a row; a null leaves it out.
fn set(
    message: &mut DynamicMessage,
    field: &FieldDescriptor,
    cells: &Cells,
    row: usize,
) -> Result<(), String> {
    if cells.is_null(row) {
        return Ok(());
    }
    let value = match (&cells.values, field.is_list()) {
        (CellValues::List { offsets, items }, true) => {
            let range = offsets[row] as usize..offsets[row + 1] as usize;
            let values = range.map(|index| {
                if items.is_null(index) {
                    return Err("an array has a null, which Protobuf cannot express".to_string());
                }
                value(items, index, &field.kind())
            });
            Value::List(values.collect::<Result<_, _>>()?)
        }
        _ => value(cells, row, &field.kind())?,
    };
    message
        .try_set_field(field, value)
        .map_err(|e| e.to_string())
}

fn value(cells: &Cells, row: usize, kind: &Kind) -> Result<Value, String> {
    Ok(match (&cells.values, kind) {
        (CellValues::Bool(v), Kind::Bool) => Value::Bool(v.value(row)),
        (CellValues::Int(v), _) => integer(v.value(row).into(), kind)?,
        (CellValues::UInt(v), _) => integer(v.value(row).into(), kind)?,
        (CellValues::Float32(v), Kind::Float) => Value::F32(v.value(row)),
        (CellValues::Float32(v), Kind::Double) => Value::F64(v.value(row).into()),
        (CellValues::Float64(v), Kind::Double) => Value::F64(v.value(row)),
        (CellValues::Float64(v), Kind::Float) => Value::F32(v.value(row) as f32),
        (CellValues::Text(v) | CellValues::Json(v), Kind::String) => {
            Value::String(v.value(row).to_string())
        }
        (CellValues::Text(v), Kind::Enum(of)) => {
            let name = v.value(row);
            let number = of.get_value_by_name(name).map(|value| value.number());
            let number = number.or_else(|| name.parse().ok());
            Value::EnumNumber(
                number.ok_or_else(|| {
                    format!("\"{name}\" is no value of the enum {}", of.full_name())
                })?,
            )
        }
        (CellValues::Decimal128(_) | CellValues::Decimal256(_), Kind::String) => {
            let mut digits = Vec::new();
            cells.values.write_scalar(row, &Spelling::TEXT, &mut digits);
            Value::String(String::from_utf8(digits).map_err(|e| e.to_string())?)
        }
        (CellValues::Binary(v), Kind::Bytes) => Value::Bytes(v.value(row).to_vec().into()),
        (CellValues::Timestamp { values, unit, .. }, Kind::Message(message)) => {
            Value::Message(timestamp(values.value(row), *unit, message)?)
        }
        (CellValues::Struct(inner), Kind::Message(message)) => {
            let mut built = DynamicMessage::new(message.clone());
            for (name, cells) in inner {
                let field = message.get_field_by_name(name);
                let field = field.ok_or_else(|| format!("there is no field \"{name}\""))?;
                set(&mut built, &field, cells, row)?;
            }
            Value::Message(built)
        }
        // Refused when the encoder was made.
        _ => return Err(format!("the value is no {kind:?}")),
    })
}

fn integer(number: i128, kind: &Kind) -> Result<Value, String> {
    let out_of_range = || format!("{number} is out of the range of its field");
    Ok(match kind {
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            Value::I32(i32::try_from(number).map_err(|_| out_of_range())?)
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            Value::I64(i64::try_from(number).map_err(|_| out_of_range())?)
        }
        Kind::Uint32 | Kind::Fixed32 => {
            Value::U32(u32::try_from(number).map_err(|_| out_of_range())?)
        }
        Kind::Uint64 | Kind::Fixed64 => {
            Value::U64(u64::try_from(number).map_err(|_| out_of_range())?)
        }
        Kind::Enum(_) => Value::EnumNumber(i32::try_from(number).map_err(|_| out_of_range())?),
        Kind::Float => Value::F32(number as f32),
        Kind::Double => Value::F64(number as f64),
        other => return Err(format!("an integer is no {other:?}")),
    })
}

fn timestamp(
    value: i64,
    unit: TimeUnit,
    message: &MessageDescriptor,
) -> Result<DynamicMessage, String> {
    let per_second = 1_000_000_000 / unit_nanos(unit);
    let (seconds, rest) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    let nanos = i32::try_from(rest * unit_nanos(unit)).map_err(|e| e.to_string())?;
    let mut built = DynamicMessage::new(message.clone());
    for (number, value) in [(1, Value::I64(seconds)), (2, Value::I32(nanos))] {
        let set = built.try_set_field_by_number(number, value);
        set.map_err(|e| e.to_string())?;
    }
    Ok(built)
}
