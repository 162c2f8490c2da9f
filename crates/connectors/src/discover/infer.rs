//! Types from values that were seen.

use std::collections::HashMap;

use arrow::datatypes::{DataType, Field, TimeUnit};
use serde_json::{Map, Value};
use thalweg_dataflow::table::json_field;

use crate::format::value::{date, number, timestamp};

/// The union of the fields of objects, in the order in which they were met.
#[derive(Debug, Default)]
pub struct Objects {
    fields: Vec<(String, Seen)>,
    places: HashMap<String, usize>,
}

/// What a field's values were, null aside.
#[derive(Debug, Default)]
enum Seen {
    #[default]
    Nothing,
    Bool,
    /// Of 64 bits.
    Int,
    /// Whole and not negative, but of 64 bits without a sign.
    UInt,
    Float,
    Date,
    /// With an offset or not.
    Timestamp {
        has_zone: bool,
    },
    Text,
    List(Box<Seen>),
    Object(Objects),
    /// Values that have no type in common.
    Mixed,
}

/// What stands around the fields of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Around {
    Nothing,
    /// Connect's `{"schema":…,"payload":…}`.
    Payload,
    /// Debezium's `{"before":…,"after":…}`, with or without a schema.
    Envelope,
}

/// Objects with more fields than this are maps, and no column could be named after each key.
const MAX_FIELDS: usize = 1000;
const MAX_DEPTH: usize = 16;

impl Objects {
    /// Adds a record's fields. What is no object adds nothing; it will be a bad record.
    pub fn add(&mut self, record: &[u8], around: Around) {
        let Ok(value) = serde_json::from_slice::<Value>(record) else {
            return;
        };
        let payload = value.get("payload");
        let objects = match around {
            Around::Nothing => [Some(&value), None],
            Around::Payload => [payload, None],
            Around::Envelope => {
                let envelope = payload.unwrap_or(&value);
                [envelope.get("before"), envelope.get("after")]
            }
        };
        for object in objects.into_iter().flatten().filter_map(Value::as_object) {
            self.object(object, 0);
        }
    }

    fn object(&mut self, object: &Map<String, Value>, depth: usize) {
        for (name, value) in object {
            let place = match self.places.get(name) {
                Some(place) => *place,
                None if self.fields.len() > MAX_FIELDS => continue,
                None => {
                    self.places.insert(name.clone(), self.fields.len());
                    self.fields.push((name.clone(), Seen::Nothing));
                    self.fields.len() - 1
                }
            };
            self.fields[place].1.add(value, depth + 1);
        }
    }

    /// The columns, all of which may be null.
    pub fn columns(self) -> Vec<Field> {
        let fields = self.fields.into_iter();
        fields.map(|(name, seen)| seen.field(&name)).collect()
    }
}

impl Seen {
    fn add(&mut self, value: &Value, depth: usize) {
        if value.is_null() {
            return;
        }
        if let (Self::Object(objects), Value::Object(object)) = (&mut *self, value) {
            return objects.object(object, depth);
        }
        if let (Self::List(item), Value::Array(items)) = (&mut *self, value) {
            return items.iter().for_each(|value| item.add(value, depth + 1));
        }
        let of_value = Self::of(value, depth);
        *self = std::mem::take(self).with(of_value);
    }

    fn of(value: &Value, depth: usize) -> Self {
        match value {
            Value::Null => Self::Nothing,
            _ if depth > MAX_DEPTH => Self::Mixed,
            Value::Bool(_) => Self::Bool,
            Value::Number(n) if n.is_i64() => Self::Int,
            Value::Number(n) if n.is_u64() => Self::UInt,
            Value::Number(_) => Self::Float,
            Value::String(text) => Self::of_text(text),
            Value::Array(items) => {
                let mut item = Self::Nothing;
                items.iter().for_each(|value| item.add(value, depth + 1));
                Self::List(Box::new(item))
            }
            Value::Object(object) => {
                let mut objects = Objects::default();
                objects.object(object, depth);
                Self::Object(objects)
            }
        }
    }

    /// A date, a timestamp with a time of day, or text.
    fn of_text(text: &str) -> Self {
        let bytes = text.as_bytes();
        if bytes.len() == 10 && date::parse(bytes).is_ok() {
            return Self::Date;
        }
        if bytes.len() > 10 && timestamp::parse(bytes, TimeUnit::Nanosecond).is_ok() {
            let clock = &text[11..];
            let has_zone = clock.contains(['Z', 'z', '+', '-']);
            return Self::Timestamp { has_zone };
        }
        Self::Text
    }

    /// The type that values of both have.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Nothing, seen) | (seen, Self::Nothing) => seen,
            (Self::Bool, Self::Bool) => Self::Bool,
            (Self::Int, Self::Int) => Self::Int,
            (Self::UInt, Self::UInt) => Self::UInt,
            (Self::Int | Self::UInt | Self::Float, Self::Int | Self::UInt | Self::Float) => {
                Self::Float
            }
            (Self::Date, Self::Date) => Self::Date,
            (Self::Timestamp { has_zone: a }, Self::Timestamp { has_zone: b }) => {
                Self::Timestamp { has_zone: a || b }
            }
            (
                Self::Date | Self::Timestamp { .. } | Self::Text,
                Self::Date | Self::Timestamp { .. } | Self::Text,
            ) => Self::Text,
            _ => Self::Mixed,
        }
    }

    fn field(self, name: &str) -> Field {
        let data_type = match self {
            Self::Nothing | Self::Mixed => return json_field(name, true),
            Self::Bool => DataType::Boolean,
            Self::Int => DataType::Int64,
            Self::UInt => DataType::UInt64,
            Self::Float => DataType::Float64,
            Self::Date => DataType::Date32,
            Self::Timestamp { has_zone } => {
                DataType::Timestamp(TimeUnit::Nanosecond, has_zone.then(|| "+00:00".into()))
            }
            Self::Text => DataType::Utf8,
            Self::List(item) if matches!(*item, Self::Nothing | Self::Mixed) => {
                return json_field(name, true);
            }
            Self::List(item) => DataType::List(item.field("item").into()),
            Self::Object(objects)
                if objects.fields.is_empty() || objects.fields.len() > MAX_FIELDS =>
            {
                return json_field(name, true);
            }
            Self::Object(objects) => DataType::Struct(objects.columns().into()),
        };
        Field::new(name, data_type, true)
    }
}

/// The type of values that are all spelled as text, as in CSV.
pub fn of_texts<'a>(texts: impl Iterator<Item = &'a str>) -> DataType {
    let seen = texts.fold(Seen::Nothing, |seen, text| seen.with(of_csv(text)));
    match seen {
        Seen::Nothing | Seen::Mixed => DataType::Utf8,
        seen => seen.field("").data_type().clone(),
    }
}

fn of_csv(text: &str) -> Seen {
    if text.parse::<i64>().is_ok() {
        return match text.trim_start_matches('-').as_bytes() {
            // A code, whose zeros would be lost.
            [b'0', _, ..] => Seen::Text,
            _ => Seen::Int,
        };
    }
    match text {
        "true" | "false" => Seen::Bool,
        _ if number::scan(text.as_bytes()).is_some_and(|(_, len)| len == text.len()) => Seen::Float,
        _ => Seen::of_text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::describe;

    fn columns(records: &[&str]) -> Vec<String> {
        let mut objects = Objects::default();
        records
            .iter()
            .for_each(|r| objects.add(r.as_bytes(), Around::Nothing));
        objects.columns().iter().map(describe).collect()
    }

    #[test]
    fn fields_are_united_in_the_order_in_which_they_come() {
        assert_eq!(
            columns(&[
                r#"{"id": 1, "name": "a"}"#,
                r#"{"id": 2, "price": 1.5, "ok": true}"#,
                "oops",
                "[1]",
                r#"{"price": 2, "name": null, "at": "2024-01-01T00:00:00Z", "day": "2024-01-01"}"#,
            ]),
            [
                "id BIGINT",
                "name TEXT",
                "price DOUBLE",
                "ok BOOLEAN",
                "at TIMESTAMP WITH TIME ZONE",
                "day DATE"
            ]
        );
    }

    #[test]
    fn what_has_no_type_in_common_is_json() {
        assert_eq!(
            columns(&[
                r#"{"a": 1, "b": [], "c": {}, "d": null, "e": "2024-01-01", "f": [1, 2.5], "g": "2024-01-01 10:00"}"#,
                r#"{"a": "x", "e": "soon", "g": "2024-01-01T10:00:00.5"}"#,
            ]),
            [
                "a JSON",
                "b JSON",
                "c JSON",
                "d JSON",
                "e TEXT",
                "f DOUBLE[]",
                "g TIMESTAMP"
            ]
        );
    }

    #[test]
    fn objects_nest() {
        let mut objects = Objects::default();
        objects.add(
            br#"{"o": {"x": 1, "list": [{"y": "a"}, {"z": 18446744073709551615}]}}"#,
            Around::Nothing,
        );
        let columns = objects.columns();
        let DataType::Struct(o) = columns[0].data_type() else {
            panic!("an object")
        };
        assert_eq!(describe(&o[0]), "x BIGINT");
        let DataType::List(item) = o[1].data_type() else {
            panic!("a list")
        };
        let DataType::Struct(inner) = item.data_type() else {
            panic!("of objects")
        };
        assert_eq!(
            [describe(&inner[0]), describe(&inner[1])],
            ["y TEXT", "z BIGINT UNSIGNED"]
        );
    }

    #[test]
    fn envelopes_give_the_columns_of_their_rows() {
        let mut objects = Objects::default();
        objects.add(
            br#"{"before": null, "after": {"id": 1}, "op": "c"}"#,
            Around::Envelope,
        );
        objects.add(
            br#"{"schema": {}, "payload": {"before": {"id": 1, "x": "a"}, "after": null}}"#,
            Around::Envelope,
        );
        let columns: Vec<_> = objects.columns().iter().map(describe).collect();
        assert_eq!(columns, ["id BIGINT", "x TEXT"]);
    }

    #[test]
    fn texts_have_types_too() {
        let of = |texts: &[&str]| of_texts(texts.iter().copied());
        assert_eq!(of(&["1", "-2"]), DataType::Int64);
        assert_eq!(of(&["1", "2.5", "1e3"]), DataType::Float64);
        assert_eq!(of(&["007"]), DataType::Utf8);
        assert_eq!(of(&["0", "-1"]), DataType::Int64);
        assert_eq!(of(&["true", "false"]), DataType::Boolean);
        assert_eq!(of(&["true", "1"]), DataType::Utf8);
        assert_eq!(of(&["2024-01-01"]), DataType::Date32);
        assert_eq!(of(&[]), DataType::Utf8);
    }

    #[test]
    fn a_map_with_a_thousand_keys_is_no_struct() {
        let keys: Vec<_> = (0..2000).map(|i| format!("\"k{i}\":1")).collect();
        assert_eq!(
            columns(&[&format!("{{\"m\":{{{}}}}}", keys.join(","))]),
            ["m JSON"]
        );
        let deep = format!("{{\"d\":{}1{}}}", "[".repeat(100), "]".repeat(100));
        assert_eq!(columns(&[&deep]).len(), 1);
    }
}
