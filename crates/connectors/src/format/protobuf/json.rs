//! Messages as JSON text, for columns of type JSON and for records kept as documents: as `json` would write them, with
//! the fields' own names, all of them, and keys of maps in order.

use arrow::datatypes::TimeUnit;
use prost_reflect::{DynamicMessage, Kind, MapKey, ReflectMessage, Value};
use thalweg_runtime::connector::BadReason;

use super::super::column::Text;
use super::super::fault::Fault;
use super::super::json::write_string;
use super::super::value::{binary, write};
use super::columns::is_wrapper;
use super::read::{span, symbol};

/// Bytes that a column may hold before another value is begun: names of fields make JSON many times larger than a
/// message.
const MAX_JSON: usize = 256 << 20;

/// Refuses what was written last where it has made a column too large; then it may not be complete either.
pub fn check_size(values: &Text) -> Result<(), Box<Fault>> {
    if values.n_bytes() <= MAX_JSON {
        return Ok(());
    }
    Err(Fault::new(
        BadReason::TooLarge,
        "the record as JSON is too large",
    ))
}

/// Appends a value of a field of this kind, or a list or map of such. Stops where there is too much, which
/// [`check_size`] then says.
pub fn write_json(value: &Value, kind: &Kind, out: &mut Vec<u8>) {
    if out.len() > MAX_JSON {
        return;
    }
    match value {
        Value::Bool(value) => {
            let word: &[u8] = if *value { b"true" } else { b"false" };
            out.extend_from_slice(word);
        }
        Value::I32(number) => write::int(*number, out),
        Value::I64(number) => write::int(*number, out),
        Value::U32(number) => write::int(*number, out),
        Value::U64(number) => write::int(*number, out),
        Value::F32(number) => quoted(!number.is_finite(), out, |out| write::float(*number, out)),
        Value::F64(number) => quoted(!number.is_finite(), out, |out| write::float(*number, out)),
        Value::String(text) => write_string(text.as_bytes(), out),
        Value::Bytes(bytes) => quoted(true, out, |out| binary::encode_into(bytes, out)),
        Value::EnumNumber(number) => write_string(symbol(*number, kind).as_bytes(), out),
        Value::Message(message) => write_message(message, out),
        Value::List(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_json(item, kind, out);
            }
            out.push(b']');
        }
        Value::Map(entries) => {
            let value_kind = kind
                .as_message()
                .map(|entry| entry.map_entry_value_field().kind());
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            out.push(b'{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_key(key, out);
                out.push(b':');
                write_json(value, value_kind.as_ref().unwrap_or(kind), out);
            }
            out.push(b'}');
        }
    }
}

/// Appends a message as an object. One that its name gives a meaning is written as what it means, where its
/// value has one.
pub fn write_message(message: &DynamicMessage, out: &mut Vec<u8>) {
    let descriptor = message.descriptor();
    let name = descriptor.full_name();
    if let ("google.protobuf.Timestamp", Ok(nanos)) = (name, span(message, name))
        && let Ok(nanos) = i64::try_from(nanos)
    {
        let text = |out: &mut Vec<u8>| write::timestamp(nanos, TimeUnit::Nanosecond, true, out);
        return quoted(true, out, text);
    }
    if let (true, Some(field)) = (is_wrapper(name), descriptor.get_field(1)) {
        return write_json(&message.get_field(&field), &field.kind(), out);
    }
    out.push(b'{');
    for (i, field) in descriptor.fields().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write_string(field.name().as_bytes(), out);
        out.push(b':');
        if field.supports_presence() && !message.has_field(&field) {
            out.extend_from_slice(b"null");
        } else {
            write_json(&message.get_field(&field), &field.kind(), out);
        }
    }
    out.push(b'}');
}

fn write_key(key: &MapKey, out: &mut Vec<u8>) {
    match key {
        MapKey::String(text) => write_string(text.as_bytes(), out),
        MapKey::Bool(key) => write_string(if *key { b"true" } else { b"false" }, out),
        MapKey::I32(key) => quoted(true, out, |out| write::int(*key, out)),
        MapKey::I64(key) => quoted(true, out, |out| write::int(*key, out)),
        MapKey::U32(key) => quoted(true, out, |out| write::int(*key, out)),
        MapKey::U64(key) => quoted(true, out, |out| write::int(*key, out)),
    }
}

fn quoted(is_text: bool, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    if is_text {
        out.push(b'"');
    }
    write(out);
    if is_text {
        out.push(b'"');
    }
}
