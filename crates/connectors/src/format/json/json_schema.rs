//! JSON Schema (draft 7): what is registered of the records that we write, and the columns of records that
//! others describe with it.

use arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use serde_json::{Map, Value, json};
use thalweg_dataflow::table::is_json;

use super::super::cells::{Decimals, Spelling};

/// The schema of objects with the columns of `schema` as fields.
pub fn of_rows(schema: &Schema, spelling: &Spelling) -> Value {
    let mut object = of_fields(schema.fields().iter().map(AsRef::as_ref), spelling);
    object["$schema"] = "http://json-schema.org/draft-07/schema#".into();
    object["title"] = "Row".into();
    object
}

fn of_fields<'a>(fields: impl Iterator<Item = &'a Field>, spelling: &Spelling) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for field in fields {
        properties.insert(field.name().clone(), of_field(field, spelling));
        // Nulls are written too, so nothing is ever missing.
        required.push(Value::from(field.name().as_str()));
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn of_field(field: &Field, spelling: &Spelling) -> Value {
    let schema = of_type(field, spelling);
    if field.is_nullable() && schema != json!({}) {
        json!({"oneOf": [{"type": "null"}, schema]})
    } else {
        schema
    }
}

fn of_type(field: &Field, spelling: &Spelling) -> Value {
    use DataType as T;
    let decimals = match spelling.decimals {
        Decimals::Number => json!({"type": "number"}),
        Decimals::Text => json!({"type": "string"}),
        Decimals::Base64 => json!({"type": "string", "contentEncoding": "base64"}),
    };
    match field.data_type() {
        _ if is_json(field) && !spelling.json_as_text => json!({}),
        T::Boolean => json!({"type": "boolean"}),
        t if t.is_integer() => json!({"type": "integer"}),
        T::Float16 | T::Float32 | T::Float64 => {
            json!({"anyOf": [{"type": "number"}, {"enum": ["NaN", "Infinity", "-Infinity"]}]})
        }
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => decimals,
        T::Binary | T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => {
            json!({"type": "string", "contentEncoding": "base64"})
        }
        T::Timestamp(..) if spelling.epoch.is_some() => json!({"type": "integer"}),
        // Without an offset it is no date-time of RFC 3339.
        T::Timestamp(_, Some(_)) => json!({"type": "string", "format": "date-time"}),
        T::Date32 | T::Date64 if !spelling.numeric_days => {
            json!({"type": "string", "format": "date"})
        }
        T::Date32 | T::Date64 => json!({"type": "integer"}),
        T::Time32(_) | T::Time64(_) if spelling.numeric_days => json!({"type": "integer"}),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            json!({"type": "array", "items": of_field(item, spelling)})
        }
        T::Struct(fields) => of_fields(fields.iter().map(AsRef::as_ref), spelling),
        T::Map(..) => json!({"type": "object"}),
        T::Union(..) => json!({}),
        _ => json!({"type": "string"}),
    }
}

/// The columns of objects that `schema` describes. What SQL types do not say exactly is JSON. Errors: it does not
/// describe objects with properties.
pub fn columns(schema: &Value) -> Result<Vec<Field>, String> {
    match of_schema("", schema, schema, 0).data_type() {
        DataType::Struct(fields) => Ok(fields.iter().map(|f| f.as_ref().clone()).collect()),
        _ => Err("the JSON schema does not describe an object with properties".to_string()),
    }
}

/// How deep schemas may refer to schemas.
const MAX_DEPTH: usize = 32;

/// A field that is nullable unless its schema says that it is required and no null.
fn of_schema(name: &str, schema: &Value, root: &Value, depth: usize) -> Field {
    let json = || thalweg_dataflow::table::json_field(name, true);
    let plain = |data_type: DataType| Field::new(name, data_type, true);
    let (schema, is_known) = not_null(resolve(schema, root));
    if depth > MAX_DEPTH || !is_known {
        return json();
    }
    let of = |key: &str| schema.get(key).and_then(Value::as_str);
    match kind(schema) {
        Some("boolean") => plain(DataType::Boolean),
        Some("integer") => plain(DataType::Int64),
        Some("number") => plain(DataType::Float64),
        Some("string") => plain(match (of("format"), of("contentEncoding")) {
            (Some("date-time"), _) => {
                DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()))
            }
            (Some("date"), _) => DataType::Date32,
            (_, Some("base64")) => DataType::Binary,
            _ => DataType::Utf8,
        }),
        Some("array") => match schema.get("items").filter(|items| items.is_object()) {
            Some(items) => {
                let item = of_schema("item", items, root, depth + 1);
                plain(DataType::List(item.into()))
            }
            None => json(),
        },
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let fields = properties
                    .iter()
                    .map(|(name, schema)| of_schema(name, schema, root, depth + 1));
                plain(DataType::Struct(fields.collect()))
            }
            _ => json(),
        },
        _ => json(),
    }
}

/// The one type of a schema, null aside.
fn kind(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds
                .iter()
                .filter_map(Value::as_str)
                .filter(|k| *k != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        _ => None,
    }
}

/// The other alternative of `oneOf` or `anyOf` with null; false where there are several.
fn not_null(schema: &Value) -> (&Value, bool) {
    let alternatives = ["oneOf", "anyOf"]
        .iter()
        .find_map(|key| schema.get(key)?.as_array());
    let Some(alternatives) = alternatives else {
        return (schema, true);
    };
    let mut others = alternatives
        .iter()
        .filter(|a| a.get("type").and_then(Value::as_str) != Some("null"));
    match (others.next(), others.next()) {
        (Some(only), None) => (only, true),
        _ => (schema, false),
    }
}

/// Follows a reference within the same schema.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference
        .and_then(|r| r.strip_prefix('#'))
        .and_then(|pointer| root.pointer(pointer));
    target.unwrap_or(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::value::sql_type;

    #[test]
    fn columns_come_from_properties() {
        let schema = json!({
            "type": "object",
            "properties": {
                "id": {"type": "integer"},
                "price": {"oneOf": [{"type": "null"}, {"type": "number"}]},
                "name": {"type": ["null", "string"]},
                "at": {"type": "string", "format": "date-time"},
                "raw": {"type": "string", "contentEncoding": "base64"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "who": {"$ref": "#/definitions/person"},
                "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "any": {},
            },
            "definitions": {"person": {"type": "object", "properties": {"age": {"type": "integer"}}}},
        });
        let columns = columns(&schema).unwrap();
        let shown: Vec<_> = columns
            .iter()
            .map(|f| match is_json(f) {
                true => format!("{} JSON", f.name()),
                false => format!("{} {}", f.name(), sql_type(f.data_type())),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "id BIGINT",
                "price DOUBLE",
                "name TEXT",
                "at TIMESTAMP WITH TIME ZONE",
                "raw BYTEA",
                "tags TEXT[]",
                "who STRUCT",
                "either JSON",
                "any JSON"
            ]
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({
            "type": "object",
            "properties": {"next": {"$ref": "#"}},
        });
        assert!(columns(&schema).is_ok());
        assert!(columns(&json!({"type": "string"})).is_err());
        assert!(columns(&json!(true)).is_err());
    }

    #[test]
    fn what_is_written_is_described() {
        let schema = Schema::new(vec![
            Field::new("id", DataType::Int64, false),
            Field::new("price", DataType::Decimal128(10, 2), true),
        ]);
        let described = of_rows(&schema, &Spelling::TEXT);
        assert_eq!(described["properties"]["id"], json!({"type": "integer"}));
        assert_eq!(
            described["properties"]["price"],
            json!({"oneOf": [{"type": "null"}, {"type": "number"}]})
        );
        assert_eq!(described["required"], json!(["id", "price"]));
    }
}
