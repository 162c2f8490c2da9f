//! Avro: records in their binary encoding, one a message.
//!
//! An own decoder, because a record that is bad must leave no trace in the columns and must be named with its column,
//! which the batch decoders at hand cannot do; see docs/decisions.

use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use thalweg_dataflow::options::{Direction, OptionDecl, OptionFault, OptionKind, Options};
use thalweg_runtime::connector::ConnectorError;

mod columns;
mod cursor;
mod decoder;
mod encoder;
mod json;
mod read;
mod schema;
#[cfg(test)]
mod tests;

pub use encoder::AvroEncoder;

use super::registry::{self, Config, Kind};
use decoder::{AvroDecoder, Schemas, Target};
use schema::AvroSchema;

pub const CONFLUENT: OptionDecl = OptionDecl::optional(
    "avro.confluent_schema_registry",
    OptionKind::Bool,
    None,
    "Whether messages begin with the id of their schema in a registry, as Confluent's serializers write them. By \
     default so where `schema_registry.endpoint` is given. The schema of what is written is registered.",
);

pub const RAW_DATUMS: OptionDecl = OptionDecl::optional(
    "avro.raw_datums",
    OptionKind::Bool,
    Some("false"),
    "Whether messages are records without anything before them, all of one schema: that of `avro.schema_file`, or the \
     newest of the registry's subject.",
);

pub const SCHEMA_FILE: OptionDecl = OptionDecl::optional(
    "avro.schema_file",
    OptionKind::Text,
    None,
    "A file with the schema (`.avsc`) of the records, for `avro.raw_datums` and for a table that declares no columns.",
);

pub const INTO_JSON: OptionDecl = OptionDecl::optional(
    "avro.into_unstructured_json",
    OptionKind::Bool,
    Some("false"),
    "For reading: whether the table's only column, of type TEXT or JSON, is the whole record as JSON.",
);

/// Whether messages begin with a schema's id.
pub fn is_confluent(options: &Options) -> bool {
    let has_registry = options.text(registry::ENDPOINT.name).is_some();
    options
        .bool(CONFLUENT.name)
        .unwrap_or(has_registry && !is_raw(options))
}

fn is_raw(options: &Options) -> bool {
    options.bool(RAW_DATUMS.name) == Some(true)
}

pub fn is_document(options: &Options) -> bool {
    options.bool(INTO_JSON.name) == Some(true)
}

/// Checks what the options cannot say one by one.
pub fn check(options: &Options, direction: Direction) -> Result<(), OptionFault> {
    let fault = |option: &OptionDecl, message: &str, hint: &str| OptionFault {
        option: Some(option.name.to_string()),
        message: message.to_string(),
        hint: Some(hint.to_string()),
    };
    match (is_confluent(options), is_raw(options)) {
        (true, true) => {
            let message = "'avro.raw_datums' excludes 'avro.confluent_schema_registry'";
            Err(fault(&RAW_DATUMS, message, "leave one of them out"))
        }
        (false, false) => {
            let message = "what the messages hold besides the record is not said";
            let hint = "add schema_registry.endpoint = 'http://…', or avro.raw_datums = true";
            Err(fault(&CONFLUENT, message, hint))
        }
        (true, false) => Config::parse(options).map(|_| ()),
        (false, true) => {
            let has_schema = options.text(SCHEMA_FILE.name).is_some()
                || options.text(registry::ENDPOINT.name).is_some();
            if direction == Direction::Sink || has_schema {
                return Ok(());
            }
            let message = "'avro.raw_datums' needs the schema of the records";
            Err(fault(
                &RAW_DATUMS,
                message,
                "add avro.schema_file = '….avsc'",
            ))
        }
    }
}

/// The decoder of `format = 'avro'`.
pub fn decoder(options: &Options, physical: SchemaRef) -> Result<AvroDecoder, ConnectorError> {
    let into = if is_document(options) {
        Target::Document
    } else {
        Target::Columns
    };
    let schemas = if is_confluent(options) {
        let config = Config::parse(options).map_err(registry::configuration)?;
        Schemas::Registry(registry::shared(&config)?)
    } else {
        Schemas::One(Arc::new(known_schema(options)?))
    };
    AvroDecoder::new(physical, schemas, into)
}

/// The columns of a table that declares none. Reads the schema's file, or asks the registry.
pub fn discover(options: &Options) -> Result<Vec<Field>, ConnectorError> {
    if is_document(options) {
        return Ok(vec![thalweg_dataflow::table::json_field("value", true)]);
    }
    let schema = known_schema(options)?;
    columns::columns(&schema).map_err(|message| ConnectorError::configuration(message, None))
}

/// The schema that the options say: of a file, or the newest of a subject.
fn known_schema(options: &Options) -> Result<AvroSchema, ConnectorError> {
    let (whose, text, references) = match options.text(SCHEMA_FILE.name) {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|e| ConnectorError::io(format!("read \"{path}\""), e))?;
            (format!("\"{path}\""), text, Vec::new())
        }
        None => {
            let schema = registry::latest(options)?;
            let whose = format!("schema {}", schema.id);
            if schema.kind != Kind::Avro {
                let kind = schema.kind.as_str();
                let message = format!("{whose} of the schema registry is {kind}, not AVRO");
                return Err(ConnectorError::configuration(message, None));
            }
            (whose, schema.text, schema.references)
        }
    };
    AvroSchema::parse(&text, &references)
        .map_err(|e| ConnectorError::configuration(format!("{whose}: {e}"), None))
}
