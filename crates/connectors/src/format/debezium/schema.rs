//! What the schema around an envelope says of its columns: Kafka Connect's types, and the names that Debezium gives
//! to what they mean.

use std::collections::HashMap;

use arrow::datatypes::TimeUnit;
use serde_json::Value;

use super::super::column::Column;

/// What a column's JSON stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Meaning {
    /// There is no schema.
    #[default]
    Unknown,
    /// What it looks like.
    Plain,
    /// A number since the epoch.
    Instant(TimeUnit),
    /// A number since midnight.
    TimeOfDay(TimeUnit),
    /// A number of days since the epoch.
    Days,
    /// A length of time.
    Duration(TimeUnit),
    /// Base64 of the unscaled value.
    Decimal { scale: i32 },
    /// Text that is JSON.
    Json,
}

/// What the columns of a table mean, kept for as long as the same schema comes.
#[derive(Debug)]
pub struct Meanings {
    schema: Vec<u8>,
    columns: HashMap<String, usize>,
    meanings: Vec<Meaning>,
}

impl Meanings {
    pub fn new(columns: &[Column]) -> Self {
        let named = columns.iter().enumerate();
        Self {
            schema: Vec::new(),
            columns: named.map(|(i, c)| (c.name().to_string(), i)).collect(),
            meanings: vec![Meaning::Unknown; columns.len()],
        }
    }

    /// What each column means under this schema; an empty one where there is none.
    pub fn of(&mut self, schema: &[u8]) -> &[Meaning] {
        if self.schema != schema {
            self.learn(schema);
        }
        &self.meanings
    }

    #[cold]
    fn learn(&mut self, schema: &[u8]) {
        self.schema.clear();
        self.schema.extend_from_slice(schema);
        self.meanings.fill(Meaning::Unknown);
        let Ok(parsed) = serde_json::from_slice::<Value>(schema) else {
            return;
        };
        let image = ["after", "before"]
            .iter()
            .find_map(|name| field(&parsed, name));
        for column in image.iter().flat_map(|image| fields(image)) {
            let name = column.get("field").and_then(Value::as_str);
            if let Some(&index) = name.and_then(|name| self.columns.get(name)) {
                self.meanings[index] = meaning(column);
            }
        }
    }
}

fn fields(schema: &Value) -> &[Value] {
    schema
        .get("fields")
        .and_then(Value::as_array)
        .map_or(&[][..], Vec::as_slice)
}

fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let is_it = |f: &&Value| f.get("field").and_then(Value::as_str) == Some(name);
    fields(schema).iter().find(is_it)
}

fn meaning(column: &Value) -> Meaning {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond};
    match column
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "io.debezium.time.Timestamp" | "org.apache.kafka.connect.data.Timestamp" => {
            Meaning::Instant(Millisecond)
        }
        "io.debezium.time.MicroTimestamp" => Meaning::Instant(Microsecond),
        "io.debezium.time.NanoTimestamp" => Meaning::Instant(Nanosecond),
        "io.debezium.time.Time" | "org.apache.kafka.connect.data.Time" => {
            Meaning::TimeOfDay(Millisecond)
        }
        "io.debezium.time.MicroTime" => Meaning::TimeOfDay(Microsecond),
        "io.debezium.time.NanoTime" => Meaning::TimeOfDay(Nanosecond),
        "io.debezium.time.Date" | "org.apache.kafka.connect.data.Date" => Meaning::Days,
        "io.debezium.time.MicroDuration" => Meaning::Duration(Microsecond),
        "io.debezium.time.NanoDuration" => Meaning::Duration(Nanosecond),
        "org.apache.kafka.connect.data.Decimal" => {
            let scale = column.pointer("/parameters/scale").and_then(Value::as_str);
            match scale.and_then(|scale| scale.parse().ok()) {
                Some(scale) => Meaning::Decimal { scale },
                None => Meaning::Unknown,
            }
        }
        "io.debezium.data.Json" => Meaning::Json,
        _ => Meaning::Plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use std::sync::Arc;

    #[test]
    fn columns_mean_what_the_schema_of_their_image_says() {
        let column =
            |name: &str| Column::new(&Arc::new(Field::new(name, DataType::Utf8, true))).unwrap();
        let mut meanings = Meanings::new(&[column("t"), column("p"), column("x")]);
        let schema = |scale: &str| {
            format!(
                r#"{{"type":"struct","fields":[{{"type":"struct","field":"after","fields":[
                {{"field":"p","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{{"scale":"{scale}"}}}},
                {{"field":"t","type":"int64","name":"io.debezium.time.MicroTime"}}]}}]}}"#
            )
        };
        for (scale, decimal) in [
            ("2", Meaning::Decimal { scale: 2 }),
            ("4", Meaning::Decimal { scale: 4 }),
            ("two", Meaning::Unknown),
        ] {
            assert_eq!(
                meanings.of(schema(scale).as_bytes()),
                [
                    Meaning::TimeOfDay(TimeUnit::Microsecond),
                    decimal,
                    Meaning::Unknown
                ]
            );
        }
        assert_eq!(meanings.of(b""), [Meaning::Unknown; 3]);
    }
}
