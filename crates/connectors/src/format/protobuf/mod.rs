//! Protocol Buffers: one message type a table, described by a file or by a schema registry.

use std::sync::Arc;

use arrow::datatypes::{Field, SchemaRef};
use prost_reflect::MessageDescriptor;
use thalweg_dataflow::options::{Direction, OptionDecl, OptionFault, OptionKind, Options};
use thalweg_runtime::connector::ConnectorError;

mod columns;
mod decoder;
mod descriptor;
mod encoder;
mod json;
mod proto;
mod read;
#[cfg(test)]
mod tests;
mod wire;

pub use encoder::ProtobufEncoder;

use super::registry::{self, Config, Kind};
use decoder::{ProtobufDecoder, Schemas};

pub const CONFLUENT: OptionDecl = OptionDecl::optional(
    "protobuf.confluent_schema_registry",
    OptionKind::Bool,
    None,
    "Whether messages begin with the id of their schema in a registry and the place of the message type in it, as \
     Confluent's serializers write them. By default so where `schema_registry.endpoint` is given. The schema of what is \
     written is registered. For messages, not for files.",
);

pub const DESCRIPTOR: OptionDecl = OptionDecl::optional(
    "protobuf.descriptor",
    OptionKind::Text,
    None,
    "A file with the message types: a `.proto` file, whose imports are looked for beside it, or a compiled set of \
     descriptors (`protoc --include_imports --descriptor_set_out`).",
);

pub const MESSAGE_NAME: OptionDecl = OptionDecl::optional(
    "protobuf.message_name",
    OptionKind::Text,
    None,
    "The full name of the message type, such as `shop.v1.Order`. May be left out where the file defines one only.",
);

pub const LENGTH_DELIMITED: OptionDecl = OptionDecl::optional(
    "protobuf.length_delimited",
    OptionKind::Bool,
    Some("false"),
    "Whether each record is preceded by its length (a varint), so that a message may hold several. In files that is \
     always so.",
);

pub const INTO_JSON: OptionDecl = OptionDecl::optional(
    "protobuf.into_unstructured_json",
    OptionKind::Bool,
    Some("false"),
    "For reading: whether the table's only column, of type TEXT or JSON, is the whole record as JSON.",
);

/// Whether messages begin with a schema's id.
pub fn is_confluent(options: &Options) -> bool {
    let has_registry = options.text(registry::ENDPOINT.name).is_some();
    options.bool(CONFLUENT.name).unwrap_or(has_registry)
}

pub fn is_document(options: &Options) -> bool {
    options.bool(INTO_JSON.name) == Some(true)
}

fn is_length_delimited(options: &Options) -> bool {
    options.bool(LENGTH_DELIMITED.name) == Some(true)
}

/// Checks what the options cannot say one by one.
pub fn check(options: &Options, _direction: Direction) -> Result<(), OptionFault> {
    let has_file = options.text(DESCRIPTOR.name).is_some();
    if is_confluent(options) {
        if is_length_delimited(options) {
            return Err(OptionFault {
                option: Some(LENGTH_DELIMITED.name.to_string()),
                message: format!("'{}' excludes '{}'", LENGTH_DELIMITED.name, CONFLUENT.name),
                hint: None,
            });
        }
        return Config::parse(options).map(|_| ());
    }
    if has_file {
        return Ok(());
    }
    Err(OptionFault {
        option: Some(DESCRIPTOR.name.to_string()),
        message: "the message type is not said".to_string(),
        hint: Some(
            "add protobuf.descriptor = '….proto', or schema_registry.endpoint = 'http://…'"
                .to_string(),
        ),
    })
}

/// The decoder of `format = 'protobuf'`.
pub fn decoder(options: &Options, physical: SchemaRef) -> Result<ProtobufDecoder, ConnectorError> {
    let schemas = if is_confluent(options) {
        let config = Config::parse(options).map_err(registry::configuration)?;
        Schemas::Registry(registry::shared(&config)?)
    } else {
        Schemas::One(local(options)?)
    };
    ProtobufDecoder::new(
        physical,
        schemas,
        is_document(options),
        is_length_delimited(options),
    )
}

/// The columns of a table that declares none. Reads the file, or asks the registry.
pub fn discover(options: &Options) -> Result<Vec<Field>, ConnectorError> {
    if is_document(options) {
        return Ok(vec![thalweg_dataflow::table::json_field("value", true)]);
    }
    let message = match options.text(DESCRIPTOR.name) {
        Some(_) => local(options)?,
        None => newest(options)?,
    };
    Ok(columns::columns(&message))
}

/// The message type that the options name in a file.
fn local(options: &Options) -> Result<MessageDescriptor, ConnectorError> {
    let Some(path) = options.text(DESCRIPTOR.name) else {
        let message = "the message type is not known without 'protobuf.descriptor'";
        return Err(ConnectorError::configuration(message, None));
    };
    let wrong = |message: String| ConnectorError::configuration(message, None);
    let file = descriptor::of_file(path).map_err(|e| wrong(format!("\"{path}\": {e}")))?;
    descriptor::message(&file, options.text(MESSAGE_NAME.name))
        .map_err(|e| wrong(format!("\"{path}\": {e}")))
}

/// The message type of the newest schema of the table's subject.
fn newest(options: &Options) -> Result<MessageDescriptor, ConnectorError> {
    let schema = Arc::new(registry::latest(options)?);
    let id = schema.id;
    let wrong = |message: String| ConnectorError::configuration(message, None);
    if schema.kind != Kind::Protobuf {
        let kind = schema.kind.as_str();
        return Err(wrong(format!(
            "schema {id} of the schema registry is {kind}, not PROTOBUF"
        )));
    }
    let file = descriptor::of_text(&schema.text, &schema.references)
        .map_err(|e| wrong(format!("schema {id}: {e}")))?;
    descriptor::message(&file, options.text(MESSAGE_NAME.name))
        .map_err(|e| wrong(format!("schema {id}: {e}")))
}
