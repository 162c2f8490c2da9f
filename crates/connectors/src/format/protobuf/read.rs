//! Values of messages into columns.
//!
//! | column | Protobuf |
//! |---|---|
//! | integers | integers in range, numbers of enum values |
//! | floats | float, double, integers; the nearest |
//! | DECIMAL | integers; strings that are numbers, if scale and precision keep all digits |
//! | TEXT | string, names of enum values (a value without a name: its number) |
//! | BYTEA | bytes |
//! | TIMESTAMP, INTERVAL | `google.protobuf.Timestamp`, `google.protobuf.Duration` |
//! | STRUCT, arrays | messages by field name, repeated fields |
//! | JSON | anything; a string must be JSON itself |
//!
//! A field that tells whether it is there (optional, of a oneof, a message) and is not there is NULL; others have
//! their default.

use arrow::datatypes::{IntervalMonthDayNano, TimeUnit, i256};
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage, Value,
};
use thalweg_runtime::connector::BadReason;

use super::super::column::{Column, Values};
use super::super::fault::Fault;
use super::super::json::check_record;
use super::super::value::{
    ValueFault, decimal, decimal_bytes, excerpt, nanos_to_unit, noun, number,
};
use super::columns::is_wrapper;
use super::json;

/// How the fields of a message become columns.
#[derive(Debug)]
pub struct MessageNode {
    fields: Vec<(FieldDescriptor, usize, Node)>,
    /// Columns that the message has no field for.
    missing: Vec<usize>,
}

#[derive(Debug)]
enum Node {
    Leaf,
    Message(MessageNode),
}

impl MessageNode {
    pub fn new(message: &MessageDescriptor, columns: &[Column]) -> Self {
        let mut node = Self {
            fields: Vec::new(),
            missing: Vec::new(),
        };
        for (index, column) in columns.iter().enumerate() {
            match message.get_field_by_name(column.name()) {
                Some(field) => {
                    let inner = Node::new(&field.kind(), column);
                    node.fields.push((field, index, inner));
                }
                None => node.missing.push(index),
            }
        }
        node
    }
}

impl Node {
    fn new(kind: &Kind, column: &Column) -> Self {
        match (kind, &column.values) {
            (Kind::Message(message), Values::Struct(structs)) => {
                Self::Message(MessageNode::new(message, &structs.columns))
            }
            (_, Values::List(lists)) => Self::new(kind, &lists.items),
            _ => Self::Leaf,
        }
    }
}

/// Pushes one value into each of `columns`. After a fault they must be truncated.
pub fn read_message(
    message: &DynamicMessage,
    columns: &mut [Column],
    node: &MessageNode,
) -> Result<(), Box<Fault>> {
    for (field, index, inner) in &node.fields {
        let column = &mut columns[*index];
        let read = if field.supports_presence() && !message.has_field(field) {
            null(column, true)
        } else {
            read(&message.get_field(field), &field.kind(), column, inner)
        };
        read.map_err(|fault| fault.in_field(field.name()))?;
    }
    for index in &node.missing {
        let column = &mut columns[*index];
        null(column, false).map_err(|fault| fault.in_field(column.name()))?;
    }
    Ok(())
}

fn null(column: &mut Column, is_null: bool) -> Result<(), Box<Fault>> {
    if !column.field.is_nullable() {
        return Err(Fault::missing(is_null));
    }
    column.push_null();
    Ok(())
}

fn read(value: &Value, kind: &Kind, column: &mut Column, node: &Node) -> Result<(), Box<Fault>> {
    if let Values::Json(_) = column.values {
        return document(value, kind, column);
    }
    match (value, node) {
        (Value::List(items), _) => list(items, kind, column, node),
        (Value::Message(message), Node::Message(node)) => {
            let Values::Struct(structs) = &mut column.values else {
                return Err(mismatch(kind, column));
            };
            read_message(message, &mut structs.columns, node)?;
            structs.end_value();
            Ok(())
        }
        (Value::Message(message), Node::Leaf) if is_wrapper(message.descriptor().full_name()) => {
            let Some(field) = message.descriptor().get_field(1) else {
                return Err(mismatch(kind, column));
            };
            read(&message.get_field(&field), &field.kind(), column, node)
        }
        _ => scalar(value, kind, &mut column.values).map_err(|fault| match fault {
            ValueFault::Type => mismatch(kind, column),
            other => {
                let mut shown = Vec::new();
                json::write_json(value, kind, &mut shown);
                Fault::value(other, &shown, column.field.data_type())
            }
        }),
    }
}

fn list(items: &[Value], kind: &Kind, column: &mut Column, node: &Node) -> Result<(), Box<Fault>> {
    let Values::List(lists) = &mut column.values else {
        return Err(Fault::new(
            BadReason::Type,
            format!("a repeated field is not {}", noun(column.field.data_type())),
        ));
    };
    for (index, item) in items.iter().enumerate() {
        read(item, kind, &mut lists.items, node).map_err(|fault| fault.in_item(index))?;
    }
    if let Some(n) = lists.fixed.filter(|n| *n != items.len()) {
        let message = format!("an array of {} where {n} are declared", items.len());
        return Err(Fault::new(BadReason::Type, message));
    }
    lists.end_value();
    Ok(())
}

fn document(value: &Value, kind: &Kind, column: &mut Column) -> Result<(), Box<Fault>> {
    let Values::Json(values) = &mut column.values else {
        return Err(mismatch(kind, column));
    };
    if let Value::String(text) = value {
        if check_record(text.as_bytes()).is_err() {
            let message = format!("\"{}\" is not JSON", excerpt(text.as_bytes()));
            return Err(Fault::new(BadReason::Type, message));
        }
        values.push(text.as_bytes());
        return Ok(());
    }
    json::write_json(value, kind, values.open_value());
    json::check_size(values)?;
    values.end_value();
    Ok(())
}

#[cold]
fn mismatch(kind: &Kind, column: &Column) -> Box<Fault> {
    let wanted = match column.values {
        Values::Binary(_) => "bytes",
        _ => noun(column.field.data_type()),
    };
    Fault::new(
        BadReason::Type,
        format!("Protobuf's {} is not {wanted}", describe(kind)),
    )
}

fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Message(message) => message.full_name().to_string(),
        Kind::Enum(of) => of.full_name().to_string(),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}

fn scalar(value: &Value, kind: &Kind, values: &mut Values) -> Result<(), ValueFault> {
    match (value, values) {
        (Value::Bool(value), Values::Bool(v)) => v.push(*value),
        (Value::F32(value), Values::Float32(v)) => v.push(*value),
        (Value::F32(value), Values::Float64(v)) => v.push(f64::from(*value)),
        (Value::F64(value), Values::Float32(v)) => v.push(*value as f32),
        (Value::F64(value), Values::Float64(v)) => v.push(*value),
        (Value::String(value), Values::Text(v)) => v.push(value.as_bytes()),
        (Value::Bytes(value), Values::Binary(v)) => v.push(value),
        (Value::EnumNumber(number), Values::Text(v)) => {
            v.push(symbol(*number, kind).as_bytes());
        }
        (Value::String(text), values @ (Values::Decimal128 { .. } | Values::Decimal256 { .. })) => {
            return decimal_text(text.as_bytes(), values);
        }
        (Value::Message(message), Values::Timestamp { values, unit }) => {
            values.push(timestamp(message, *unit)?);
        }
        (Value::Message(message), Values::Interval(v)) => {
            let nanos = i64::try_from(span(message, "google.protobuf.Duration")?);
            v.push(IntervalMonthDayNano::new(
                0,
                0,
                nanos.map_err(|_| ValueFault::Range)?,
            ));
        }
        (Value::I32(number) | Value::EnumNumber(number), values) => {
            return integer(i128::from(*number), values);
        }
        (Value::I64(number), values) => return integer(i128::from(*number), values),
        (Value::U32(number), values) => return integer(i128::from(*number), values),
        (Value::U64(number), values) => return integer(i128::from(*number), values),
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

/// What a value of an enum is called.
pub fn symbol(number: i32, kind: &Kind) -> String {
    let of = kind.as_enum().and_then(|of| of.get_value(number));
    of.map_or_else(|| number.to_string(), |value| value.name().to_string())
}

fn integer(number: i128, values: &mut Values) -> Result<(), ValueFault> {
    fn narrow<T: TryFrom<i128>>(number: i128) -> Result<T, ValueFault> {
        T::try_from(number).map_err(|_| ValueFault::Range)
    }
    match values {
        Values::Int8(v) => v.push(narrow(number)?),
        Values::Int16(v) => v.push(narrow(number)?),
        Values::Int32(v) => v.push(narrow(number)?),
        Values::Int64(v) => v.push(narrow(number)?),
        Values::UInt8(v) => v.push(narrow(number)?),
        Values::UInt16(v) => v.push(narrow(number)?),
        Values::UInt32(v) => v.push(narrow(number)?),
        Values::UInt64(v) => v.push(narrow(number)?),
        Values::Float32(v) => v.push(number as f32),
        Values::Float64(v) => v.push(number as f64),
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => {
            let unscaled = i256::from_i128(number);
            values.push(decimal_bytes::to_decimal128(
                unscaled, 0, *precision, *scale,
            )?);
        }
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => {
            let unscaled = i256::from_i128(number);
            values.push(decimal_bytes::to_decimal256(
                unscaled, 0, *precision, *scale,
            )?);
        }
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

fn decimal_text(text: &[u8], values: &mut Values) -> Result<(), ValueFault> {
    let found = number::scan(text).filter(|(_, len)| *len == text.len());
    let (number, _) = found.ok_or(ValueFault::Type)?;
    match values {
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => values.push(decimal::decimal128(&number, text, *precision, *scale)?),
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => values.push(decimal::decimal256(&number, text, *precision, *scale)?),
        _ => return Err(ValueFault::Type),
    }
    Ok(())
}

fn timestamp(message: &DynamicMessage, unit: TimeUnit) -> Result<i64, ValueFault> {
    nanos_to_unit(span(message, "google.protobuf.Timestamp")?, unit)
}

/// Nanoseconds of a message of seconds and nanoseconds called `name`.
pub fn span(message: &DynamicMessage, name: &str) -> Result<i128, ValueFault> {
    if message.descriptor().full_name() != name {
        return Err(ValueFault::Type);
    }
    let part = |number: u32| {
        let value = message.get_field_by_number(number)?;
        value.as_i64().or_else(|| value.as_i32().map(i64::from))
    };
    let (seconds, nanos) = (part(1).unwrap_or(0), part(2).unwrap_or(0));
    // A duration's nanoseconds have the sign of its seconds.
    if nanos.abs() >= 1_000_000_000 || (name.ends_with("Timestamp") && nanos < 0) {
        return Err(ValueFault::Range);
    }
    Ok(i128::from(seconds) * 1_000_000_000 + i128::from(nanos))
}
