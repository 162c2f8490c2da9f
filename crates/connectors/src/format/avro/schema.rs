//! Avro schemas (specification 1.12), as far as reading data needs them: defaults, aliases and documentation are
//! skipped, since columns take the part of the reader's schema.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A type by its place in its schema; types may refer to themselves.
pub type TypeId = usize;

#[derive(Debug, Clone)]
pub struct AvroSchema {
    types: Vec<AvroType>,
    pub root: TypeId,
}

#[derive(Debug, Clone)]
pub struct AvroType {
    pub shape: Shape,
    pub logical: Option<Logical>,
}

#[derive(Debug, Clone)]
pub enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(usize),
    Enum(Vec<String>),
    Array(TypeId),
    Map(TypeId),
    Union(Vec<TypeId>),
    Record(Vec<RecordField>),
    /// Named, but not yet defined; none is left in a parsed schema.
    Undefined,
}

#[derive(Debug, Clone)]
pub struct RecordField {
    pub name: String,
    pub ty: TypeId,
}

/// What a value means beyond its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Logical {
    Decimal {
        precision: u32,
        scale: i8,
    },
    Date,
    TimeMillis,
    TimeMicros,
    /// Ticks of so many nanoseconds since the epoch.
    Timestamp {
        tick_nanos: i64,
        is_local: bool,
    },
    Uuid,
    Duration,
}

impl AvroSchema {
    /// Parses a schema; `references` are schemas whose names it uses, each after those that it needs. Errors say what
    /// is wrong with it.
    pub fn parse(text: &str, references: &[(String, String)]) -> Result<Self, String> {
        let mut parser = Parser::default();
        for (name, text) in references {
            parser
                .text(text)
                .map_err(|e| format!("reference \"{name}\": {e}"))?;
        }
        let root = parser.text(text)?;
        match parser.undefined {
            Some(name) => Err(format!("the type \"{name}\" is not defined")),
            None => Ok(Self {
                types: parser.types,
                root,
            }),
        }
    }

    pub fn ty(&self, id: TypeId) -> &AvroType {
        &self.types[id]
    }

    /// The fields of the records that the schema describes; `None`: it describes something else.
    pub fn record(&self) -> Option<&[RecordField]> {
        match &self.ty(self.root).shape {
            Shape::Record(fields) => Some(fields),
            _ => None,
        }
    }

    /// What a type is called in messages: `long`, `bytes (decimal)`.
    pub fn describe(&self, id: TypeId) -> String {
        let AvroType { shape, logical } = self.ty(id);
        let name = match shape {
            Shape::Null | Shape::Undefined => "null",
            Shape::Boolean => "boolean",
            Shape::Int => "int",
            Shape::Long => "long",
            Shape::Float => "float",
            Shape::Double => "double",
            Shape::Bytes => "bytes",
            Shape::String => "string",
            Shape::Fixed(_) => "fixed",
            Shape::Enum(_) => "enum",
            Shape::Array(_) => "array",
            Shape::Map(_) => "map",
            Shape::Union(_) => "union",
            Shape::Record(_) => "record",
        };
        let meaning = match logical {
            None => return name.to_string(),
            Some(Logical::Decimal { .. }) => "decimal",
            Some(Logical::Date) => "date",
            Some(Logical::TimeMillis | Logical::TimeMicros) => "time",
            Some(Logical::Timestamp { .. }) => "timestamp",
            Some(Logical::Uuid) => "uuid",
            Some(Logical::Duration) => "duration",
        };
        format!("{name} ({meaning})")
    }
}

#[derive(Default)]
struct Parser {
    types: Vec<AvroType>,
    /// By full name.
    named: HashMap<String, TypeId>,
    undefined: Option<String>,
}

/// A record of more fields, or a schema of more types, is an attack and no schema.
const MAX_TYPES: usize = 100_000;

impl Parser {
    fn text(&mut self, text: &str) -> Result<TypeId, String> {
        // A bare name is a schema too, though it is no JSON.
        let parsed = serde_json::from_str(text);
        let value = parsed.map_err(|e| format!("the Avro schema is not JSON: {e}"))?;
        self.value(&value, "")
    }

    fn add(&mut self, shape: Shape, logical: Option<Logical>) -> Result<TypeId, String> {
        if self.types.len() >= MAX_TYPES {
            return Err("the Avro schema is too large".to_string());
        }
        self.types.push(AvroType { shape, logical });
        Ok(self.types.len() - 1)
    }

    fn value(&mut self, value: &Value, namespace: &str) -> Result<TypeId, String> {
        match value {
            Value::String(name) => self.name(name, namespace),
            Value::Array(branches) => {
                let branches = branches.iter().map(|branch| self.value(branch, namespace));
                let branches = branches.collect::<Result<_, _>>()?;
                self.add(Shape::Union(branches), None)
            }
            Value::Object(object) => self.object(object, namespace),
            other => Err(format!("{other} is no Avro type")),
        }
    }

    fn name(&mut self, name: &str, namespace: &str) -> Result<TypeId, String> {
        if let Some(shape) = primitive(name) {
            return self.add(shape, None);
        }
        let full = full_name(name, namespace);
        match self.named.get(&full).or_else(|| self.named.get(name)) {
            Some(id) => Ok(*id),
            None => {
                self.undefined.get_or_insert(full);
                self.add(Shape::Undefined, None)
            }
        }
    }

    fn object(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<TypeId, String> {
        let kind = object.get("type").ok_or("an Avro type has no \"type\"")?;
        let Value::String(kind) = kind else {
            // `{"type": {"type": "string"}}`, which many tools write.
            return self.value(kind, namespace);
        };
        match kind.as_str() {
            "array" => {
                let item = object.get("items").ok_or("an array has no \"items\"")?;
                let item = self.value(item, namespace)?;
                self.add(Shape::Array(item), None)
            }
            "map" => {
                let value = object.get("values").ok_or("a map has no \"values\"")?;
                let value = self.value(value, namespace)?;
                self.add(Shape::Map(value), None)
            }
            "record" | "error" => self.record(object, namespace),
            "enum" => {
                let symbols = object.get("symbols").and_then(Value::as_array);
                let symbols = symbols.ok_or("an enum has no \"symbols\"")?;
                let symbols = symbols.iter().filter_map(Value::as_str).map(str::to_string);
                let shape = Shape::Enum(symbols.collect());
                let id = self.add(shape, None)?;
                self.define(object, namespace, id).map(|_| id)
            }
            "fixed" => {
                let size = object.get("size").and_then(Value::as_u64);
                let size = size.and_then(|n| usize::try_from(n).ok());
                let shape = Shape::Fixed(size.ok_or("a fixed has no \"size\"")?);
                let logical = logical(object, &shape);
                let id = self.add(shape, logical)?;
                self.define(object, namespace, id).map(|_| id)
            }
            name => match primitive(name) {
                Some(shape) => {
                    let logical = logical(object, &shape);
                    self.add(shape, logical)
                }
                None => self.name(name, namespace),
            },
        }
    }

    fn record(&mut self, object: &Map<String, Value>, namespace: &str) -> Result<TypeId, String> {
        let id = self.add(Shape::Undefined, None)?;
        let namespace = self.define(object, namespace, id)?;
        let fields = object.get("fields").and_then(Value::as_array);
        let mut parsed = Vec::new();
        for field in fields.ok_or("a record has no \"fields\"")? {
            let name = field.get("name").and_then(Value::as_str);
            let name = name.ok_or("a field of a record has no \"name\"")?;
            let ty = field.get("type");
            let ty = ty.ok_or_else(|| format!("field \"{name}\" has no \"type\""))?;
            parsed.push(RecordField {
                name: name.to_string(),
                ty: self.value(ty, &namespace)?,
            });
        }
        self.types[id].shape = Shape::Record(parsed);
        Ok(id)
    }

    /// Gives a type its name; the namespace within it.
    fn define(
        &mut self,
        object: &Map<String, Value>,
        namespace: &str,
        id: TypeId,
    ) -> Result<String, String> {
        let text = |key: &str| object.get(key).and_then(Value::as_str);
        let name = text("name").ok_or("a record, enum or fixed has no \"name\"")?;
        let full = full_name(name, text("namespace").unwrap_or(namespace));
        let inner = full
            .rsplit_once('.')
            .map_or("", |(inner, _)| inner)
            .to_string();
        if self.named.insert(full.clone(), id).is_some() {
            return Err(format!("the type \"{full}\" is defined twice"));
        }
        Ok(inner)
    }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() {
        name.trim_start_matches('.').to_string()
    } else {
        format!("{namespace}.{name}")
    }
}

fn primitive(name: &str) -> Option<Shape> {
    Some(match name {
        "null" => Shape::Null,
        "boolean" => Shape::Boolean,
        "int" => Shape::Int,
        "long" => Shape::Long,
        "float" => Shape::Float,
        "double" => Shape::Double,
        "bytes" => Shape::Bytes,
        "string" => Shape::String,
        _ => return None,
    })
}

/// The logical type, where it is known and allowed for the shape. Others must be ignored, says the specification.
fn logical(object: &Map<String, Value>, shape: &Shape) -> Option<Logical> {
    let timestamp = |tick_nanos, is_local| Logical::Timestamp {
        tick_nanos,
        is_local,
    };
    let name = object.get("logicalType")?.as_str()?;
    Some(match (name, shape) {
        ("decimal", Shape::Bytes | Shape::Fixed(_)) => {
            let precision = object.get("precision")?.as_u64()?;
            let scale = object.get("scale").map_or(Some(0), Value::as_u64)?;
            Logical::Decimal {
                precision: u32::try_from(precision).ok().filter(|p| *p > 0)?,
                scale: i8::try_from(scale).ok()?,
            }
        }
        ("date", Shape::Int) => Logical::Date,
        ("time-millis", Shape::Int) => Logical::TimeMillis,
        ("time-micros", Shape::Long) => Logical::TimeMicros,
        ("timestamp-millis", Shape::Long) => timestamp(1_000_000, false),
        ("timestamp-micros", Shape::Long) => timestamp(1_000, false),
        ("timestamp-nanos", Shape::Long) => timestamp(1, false),
        ("local-timestamp-millis", Shape::Long) => timestamp(1_000_000, true),
        ("local-timestamp-micros", Shape::Long) => timestamp(1_000, true),
        ("local-timestamp-nanos", Shape::Long) => timestamp(1, true),
        ("uuid", Shape::String | Shape::Fixed(16)) => Logical::Uuid,
        ("duration", Shape::Fixed(12)) => Logical::Duration,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<AvroSchema, String> {
        AvroSchema::parse(text, &[])
    }

    #[test]
    fn names_are_found_in_their_namespaces() {
        let schema = parse(
            r#"{"type":"record","name":"a.b.Outer","fields":[
                {"name":"one","type":{"type":"enum","name":"Color","symbols":["RED"]}},
                {"name":"two","type":"Color"},
                {"name":"three","type":["null","a.b.Color"]},
                {"name":"self","type":["null","Outer"]}]}"#,
        )
        .unwrap();
        let fields = schema.record().unwrap();
        assert_eq!(fields[0].ty, fields[1].ty);
        let Shape::Union(branches) = &schema.ty(fields[3].ty).shape else {
            panic!("a union")
        };
        assert_eq!(branches[1], schema.root);
    }

    #[test]
    fn logical_types_hold_where_they_are_allowed() {
        let logical = |text: &str| {
            let schema = parse(text).unwrap();
            schema.ty(schema.root).logical
        };
        assert_eq!(
            logical(r#"{"type":"int","logicalType":"date"}"#),
            Some(Logical::Date)
        );
        assert_eq!(logical(r#"{"type":"string","logicalType":"date"}"#), None);
        assert_eq!(logical(r#"{"type":"long","logicalType":"future"}"#), None);
        assert_eq!(
            logical(r#"{"type":"bytes","logicalType":"decimal","precision":12,"scale":2}"#),
            Some(Logical::Decimal {
                precision: 12,
                scale: 2
            })
        );
        assert_eq!(logical(r#"{"type":"bytes","logicalType":"decimal"}"#), None);
        assert_eq!(
            logical(r#"{"type":{"type":"long","logicalType":"timestamp-micros"}}"#),
            Some(Logical::Timestamp {
                tick_nanos: 1000,
                is_local: false
            })
        );
    }

    #[test]
    fn references_bring_their_names() {
        let references = [(
            "x.Inner".to_string(),
            r#"{"type":"record","name":"x.Inner","fields":[]}"#.to_string(),
        )];
        let text = r#"{"type":"record","name":"Outer","fields":[{"name":"i","type":"x.Inner"}]}"#;
        assert!(AvroSchema::parse(text, &references).is_ok());
        assert_eq!(
            parse(text).unwrap_err(),
            "the type \"x.Inner\" is not defined"
        );
    }

    #[test]
    fn faults_are_named() {
        for (text, message) in [
            ("{", "the Avro schema is not JSON"),
            ("1", "1 is no Avro type"),
            (r#"{"name":"x"}"#, "an Avro type has no \"type\""),
            (
                r#"{"type":"record","name":"R"}"#,
                "a record has no \"fields\"",
            ),
            (
                r#"{"type":"record","fields":[]}"#,
                "a record, enum or fixed has no \"name\"",
            ),
            (
                r#"{"type":"record","name":"R","fields":[{"name":"a"}]}"#,
                "field \"a\" has no \"type\"",
            ),
            (r#"{"type":"array"}"#, "an array has no \"items\""),
            (
                r#"{"type":"fixed","name":"F","size":-1}"#,
                "a fixed has no \"size\"",
            ),
            (r#""unknown""#, "the type \"unknown\" is not defined"),
            (
                r#"[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":2}]"#,
                "the type \"F\" is defined twice",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(message), "{text}: {found}");
        }
    }
}
