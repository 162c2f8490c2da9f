//! The `.proto` text of the rows of a table, to be registered where no file describes them.

use std::fmt::Write;

use arrow::datatypes::{DataType, Field, Fields, Schema};

use super::super::value::sql_type;

/// A file with one message type, `Row`. Errors: a column that it cannot express.
pub fn of_rows(schema: &Schema) -> Result<String, String> {
    let mut text = String::from("syntax = \"proto3\";\n");
    if schema.fields().iter().any(|f| has_timestamp(f.data_type())) {
        text.push_str("import \"google/protobuf/timestamp.proto\";\n");
    }
    message("Row", schema.fields(), 0, &mut text)?;
    Ok(text)
}

fn message(name: &str, fields: &Fields, depth: usize, text: &mut String) -> Result<(), String> {
    let indent = "  ".repeat(depth);
    push(text, format_args!("{indent}message {name} {{\n"));
    for (i, field) in fields.iter().enumerate() {
        let (label, item) = match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                ("repeated ", item.as_ref())
            }
            DataType::Struct(_) => ("", field.as_ref()),
            _ if field.is_nullable() => ("optional ", field.as_ref()),
            _ => ("", field.as_ref()),
        };
        let name = named(field.name())?;
        let of_type = match item.data_type() {
            DataType::Struct(inner) => {
                let inner_name = format!("Of_{name}");
                message(&inner_name, inner, depth + 1, text)?;
                inner_name
            }
            _ => scalar(field, item)?.to_string(),
        };
        push(
            text,
            format_args!("{indent}  {label}{of_type} {name} = {};\n", i + 1),
        );
    }
    push(text, format_args!("{indent}}}\n"));
    Ok(())
}

fn push(text: &mut String, args: std::fmt::Arguments<'_>) {
    text.write_fmt(args).expect("text can always grow");
}

fn named(name: &str) -> Result<&str, String> {
    let mut letters = name.bytes();
    let is_name = letters.next().is_some_and(|b| b.is_ascii_alphabetic())
        && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let message = || {
        format!(
            "\"{name}\" is no name in Protobuf: it takes letters, digits and _; give the column another"
        )
    };
    is_name.then_some(name).ok_or_else(message)
}

fn scalar(field: &Field, item: &Field) -> Result<&'static str, String> {
    use DataType as T;
    Ok(match item.data_type() {
        T::Boolean => "bool",
        T::Int8 | T::Int16 | T::Int32 => "int32",
        T::Int64 => "int64",
        T::UInt8 | T::UInt16 | T::UInt32 => "uint32",
        T::UInt64 => "uint64",
        T::Float16 | T::Float32 => "float",
        T::Float64 => "double",
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => "string",
        T::Utf8 | T::LargeUtf8 | T::Utf8View => "string",
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => "bytes",
        T::Timestamp(..) => "google.protobuf.Timestamp",
        other => {
            let (name, what) = (field.name(), sql_type(other));
            return Err(format!(
                "column \"{name}\" has type {what}, which Protobuf cannot express"
            ));
        }
    })
}

fn has_timestamp(data_type: &DataType) -> bool {
    match data_type {
        DataType::Timestamp(..) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            has_timestamp(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|f| has_timestamp(f.data_type())),
        _ => false,
    }
}
