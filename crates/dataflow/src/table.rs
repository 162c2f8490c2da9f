//! Tables at the edges of a dataflow: what a source decodes and what a sink is given.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::physical_expr::PhysicalExpr;

use crate::options::Options;

pub type ExprRef = Arc<dyn PhysicalExpr>;

/// A table that a dataflow reads.
///
/// A record passes through three schemas: the connector decodes `physical` and appends `metadata`;
/// `columns` are evaluated over both and make `schema`, what the plan sees. Event time and watermark
/// are evaluated over the first two as well, so that they need not be selected.
#[derive(Debug, Clone)]
pub struct SourceSpec {
    pub table: String,
    pub connector: String,
    pub format: Option<String>,
    pub options: Options,
    pub bounded: bool,
    /// All fields of a record as declared, in that order: what a format without names goes by.
    pub declared: SchemaRef,
    /// Fields to decode from a record, in this order: only those that a query of the job reads.
    pub physical: SchemaRef,
    /// Metadata to append after them.
    pub metadata: Vec<MetadataColumn>,
    /// One expression per field of `schema`, over `physical ++ metadata`.
    pub columns: Vec<ExprRef>,
    pub schema: SchemaRef,
    pub event_time: EventTimeSource,
    pub watermark: WatermarkSpec,
    /// Nanoseconds of silence after which a split no longer holds time back; `None`: never.
    pub idle_timeout: Option<i64>,
    /// Nanoseconds that an event time may lie ahead of the wall clock; `None`: no limit.
    pub max_event_time_ahead: Option<i64>,
    pub bad_data: BadData,
    /// The records are a changelog of rows by `primary_key`: the source emits them with their marks, and
    /// `columns` are evaluated behind [`crate::plan::Op::Normalize`].
    pub updating: bool,
    /// Positions in `schema` of the primary key, empty where there is none.
    pub primary_key: Vec<usize>,
}

impl SourceSpec {
    /// What the source emits: `schema`, or a record with its marks where it is a changelog.
    pub fn emitted_schema(&self) -> SchemaRef {
        if !self.updating {
            return Arc::clone(&self.schema);
        }
        let record = self.record_schema();
        let marks = crate::marks::fields().into_iter().map(Arc::new);
        let all = record.fields().iter().cloned().chain(marks);
        Arc::new(Schema::new(all.collect::<Vec<_>>()))
    }

    /// `physical ++ metadata`: what a reader yields.
    pub fn record_schema(&self) -> SchemaRef {
        let metadata = self.metadata.iter().map(|m| Arc::new(m.field.clone()));
        Arc::new(Schema::new(
            self.physical
                .fields()
                .iter()
                .cloned()
                .chain(metadata)
                .collect::<Vec<_>>(),
        ))
    }
}

/// A column filled from what surrounds a record (`METADATA FROM 'key'`).
#[derive(Debug, Clone)]
pub struct MetadataColumn {
    pub key: String,
    pub field: Field,
}

/// Where a row's event time comes from (semantics 2.1).
#[derive(Debug, Clone)]
pub enum EventTimeSource {
    /// An expression over the record, of type `Timestamp(Nanosecond, _)`.
    Expr(ExprRef),
    /// The connector gives it; where it gives none, the time at which the record was read.
    Connector,
}

/// What a row claims about the rows to come (semantics 2.2).
#[derive(Debug, Clone)]
pub enum WatermarkSpec {
    /// Event time minus this many nanoseconds.
    Lag(i64),
    /// An expression over the record, of type `Timestamp(Nanosecond, _)`.
    Expr(ExprRef),
}

impl WatermarkSpec {
    pub const DEFAULT: Self = Self::Lag(1_000_000_000);
}

/// What happens to a record that cannot be used (semantics 8.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BadData {
    Fail,
    Drop,
    /// Written to a table, by name.
    DeadLetter(String),
}

/// Columns of a dead-letter stream.
pub fn dead_letter_schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()));
    Arc::new(Schema::new(vec![
        Field::new("raw", DataType::Binary, true),
        Field::new("reason", DataType::Utf8, false),
        Field::new("topic", DataType::Utf8, false),
        Field::new("partition", DataType::Int32, false),
        Field::new("offset", DataType::Int64, false),
        Field::new("time", time, false),
    ]))
}

/// A table that a dataflow writes.
#[derive(Debug, Clone)]
pub struct SinkSpec {
    pub table: String,
    pub connector: String,
    pub format: Option<String>,
    pub options: Options,
    /// What the sink is given, already cast to the table's column types.
    pub schema: SchemaRef,
    /// Whether its input is a changelog with retractions.
    pub updating: bool,
    /// Positions in `schema` by which net changes are paired into updates (semantics 4.3); `None`:
    /// there is no key and rows pair as wholes.
    pub key: Option<Vec<usize>>,
}

/// Metadata key and value of a text field that holds JSON: Arrow's canonical extension `arrow.json`,
/// which the JSON functions read as well.
const JSON_EXTENSION: (&str, &str) = ("ARROW:extension:name", "arrow.json");

/// A column of SQL type JSON: text that is valid JSON. Formats keep such a value as it was written
/// and embed it as JSON, not as a quoted string.
pub fn json_field(name: impl Into<String>, nullable: bool) -> Field {
    let (key, value) = JSON_EXTENSION;
    Field::new(name, DataType::Utf8, nullable)
        .with_metadata([(key.to_string(), value.to_string())].into())
}

/// Whether `field` is a column of SQL type JSON.
pub fn is_json(field: &Field) -> bool {
    let (key, value) = JSON_EXTENSION;
    field.metadata().get(key).is_some_and(|v| v == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_columns_are_text_with_a_mark() {
        let field = json_field("payload", true);
        assert!(is_json(&field) && field.data_type() == &DataType::Utf8);
        assert!(!is_json(&Field::new("payload", DataType::Utf8, true)));
    }
}
