//! Schemas by id and subject, from a schema registry with Confluent's HTTP interface.
//!
//! Asked when tables are declared without columns, when writers open, and when a reader meets an id for the first
//! time. The answers never change and are kept.

use thalweg_dataflow::options::{OptionDecl, OptionFault, OptionKind, Options};
use thalweg_runtime::connector::ConnectorError;

mod client;
mod config;
mod http;
#[cfg(test)]
pub mod test_server;
#[cfg(test)]
mod tests;

pub use client::{Client, Known, Schema, shared};
pub use config::Config;

/// The languages that schemas are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Avro,
    Json,
    Protobuf,
}

impl Kind {
    /// As the registry spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Avro => "AVRO",
            Self::Json => "JSON",
            Self::Protobuf => "PROTOBUF",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        [Self::Avro, Self::Json, Self::Protobuf]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// Under which name a schema is registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// `<topic>-value`, or what `schema_registry.subject` says.
    Value,
}

pub const ENDPOINT: OptionDecl = OptionDecl::optional(
    "schema_registry.endpoint",
    OptionKind::Text,
    None,
    "The URL of the schema registry, such as `http://localhost:8081`.",
);

pub const API_KEY: OptionDecl = OptionDecl::optional(
    "schema_registry.api_key",
    OptionKind::Text,
    None,
    "The user or API key for the schema registry.",
);

pub const API_SECRET: OptionDecl = OptionDecl::optional(
    "schema_registry.api_secret",
    OptionKind::Text,
    None,
    "The password or secret that belongs to the key.",
);

pub const SUBJECT: OptionDecl = OptionDecl::optional(
    "schema_registry.subject",
    OptionKind::Text,
    None,
    "The subject of the records' schema. By default `<topic>-value`.",
);

pub const TIMEOUT: OptionDecl = OptionDecl::optional(
    "schema_registry.timeout",
    OptionKind::Duration,
    Some("30 seconds"),
    "How long a question to the schema registry is repeated until it is answered.",
);

/// Registers the schema of what a table writes; its id. Errors: the options name no registry, or it refuses.
pub fn register(
    options: &Options,
    kind: Kind,
    text: &str,
    subject: Subject,
) -> Result<u32, ConnectorError> {
    let Subject::Value = subject;
    let config = Config::parse(options).map_err(configuration)?;
    let subject = config
        .subject
        .clone()
        .ok_or_else(|| configuration(no_subject()))?;
    shared(&config)?.register(&subject, kind, text)
}

/// The newest schema of a table's subject.
pub fn latest(options: &Options) -> Result<Schema, ConnectorError> {
    let config = Config::parse(options).map_err(configuration)?;
    let subject = config
        .subject
        .clone()
        .ok_or_else(|| configuration(no_subject()))?;
    shared(&config)?.latest(&subject)
}

fn no_subject() -> OptionFault {
    OptionFault {
        option: Some(ENDPOINT.name.to_string()),
        message: "the subject in the schema registry is not known".to_string(),
        hint: Some("add schema_registry.subject = '…'".to_string()),
    }
}

pub(super) fn configuration(fault: OptionFault) -> ConnectorError {
    ConnectorError::configuration(fault.message, fault.hint)
}
