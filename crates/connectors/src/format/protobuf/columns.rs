//! The columns of a table from the message type of its records.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use thalweg_dataflow::table::json_field;

/// One column for each field. Fields that tell whether they are there are nullable. What SQL types do not say exactly
/// (maps, types that contain themselves, `google.protobuf.Any`) is JSON.
pub fn columns(message: &MessageDescriptor) -> Vec<Field> {
    fields(message, &mut vec![message.full_name().to_string()])
}

fn fields(message: &MessageDescriptor, open: &mut Vec<String>) -> Vec<Field> {
    message.fields().map(|field| column(&field, open)).collect()
}

fn column(field: &FieldDescriptor, open: &mut Vec<String>) -> Field {
    let (name, nullable) = (field.name(), field.supports_presence());
    if field.is_map() {
        return json_field(name, false);
    }
    match (data_type(&field.kind(), open), field.is_list()) {
        (Some(item), true) => Field::new(
            name,
            DataType::List(Field::new("item", item, false).into()),
            false,
        ),
        (Some(data_type), false) => Field::new(name, data_type, nullable),
        (None, true) => {
            let item = json_field("item", false);
            Field::new(name, DataType::List(item.into()), false)
        }
        (None, false) => json_field(name, nullable),
    }
}

/// `None`: JSON.
fn data_type(kind: &Kind, open: &mut Vec<String>) -> Option<DataType> {
    use DataType as T;
    Some(match kind {
        Kind::Double => T::Float64,
        Kind::Float => T::Float32,
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => T::Int32,
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => T::Int64,
        Kind::Uint32 | Kind::Fixed32 => T::UInt32,
        Kind::Uint64 | Kind::Fixed64 => T::UInt64,
        Kind::Bool => T::Boolean,
        Kind::String | Kind::Enum(_) => T::Utf8,
        Kind::Bytes => T::Binary,
        Kind::Message(message) => return of_message(message, open),
    })
}

fn of_message(message: &MessageDescriptor, open: &mut Vec<String>) -> Option<DataType> {
    use DataType as T;
    let name = message.full_name();
    match name {
        "google.protobuf.Timestamp" => return Some(T::Timestamp(TimeUnit::Nanosecond, None)),
        "google.protobuf.Duration" => return Some(T::Interval(IntervalUnit::MonthDayNano)),
        "google.protobuf.Any"
        | "google.protobuf.Struct"
        | "google.protobuf.Value"
        | "google.protobuf.ListValue" => return None,
        _ => {}
    }
    if is_wrapper(name) {
        return data_type(&message.get_field(1)?.kind(), open);
    }
    if open.iter().any(|around| around == name) || message.fields().len() == 0 {
        return None;
    }
    open.push(name.to_string());
    let inner = fields(message, open);
    open.pop();
    Some(T::Struct(inner.into()))
}

/// Whether a message type only makes a scalar nullable: `google.protobuf.StringValue` and its like.
pub fn is_wrapper(full_name: &str) -> bool {
    let wrapped = full_name
        .strip_prefix("google.protobuf.")
        .and_then(|name| name.strip_suffix("Value"));
    wrapped.is_some_and(|wrapped| !matches!(wrapped, "" | "List" | "Null" | "Enum"))
}
