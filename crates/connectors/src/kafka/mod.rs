//! `kafka`: tables in topics of Apache Kafka and what speaks its protocol.
//!
//! Reading: a partition is a split (`source`); a subtask has one client for all of its partitions (`consumer`), and a
//! reader for each, which decodes what the client has fetched in place (`reader`, `batch`). Offsets are ours, kept with
//! the state; partitions are assigned, never subscribed to, so that no group can take them away. Writing: `sink`.

use std::sync::Arc;

use thalweg_dataflow::options::{ConnectorDecl, OptionFault, TableCheck};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{ConnectorError, Sink, Source};

use crate::registry::Connector;

mod batch;
mod client;
mod config;
mod consumer;
mod context;
mod declare;
mod headers;
mod partition;
mod place;
mod reader;
mod recovery;
mod sink;
mod source;
mod surroundings;

static DECLARATION: ConnectorDecl = ConnectorDecl {
    name: "kafka",
    meaning: "Topics of Apache Kafka. Each partition is a split with a watermark of its own; a record's event time is \
              its timestamp unless the table says otherwise. [How to use it](../kafka.md).",
    options: declare::OPTIONS,
    can_read: true,
    can_write: true,
    formats: &[
        "json",
        "debezium_json",
        "avro",
        "protobuf",
        "raw_string",
        "raw_bytes",
    ],
    default_format: |_| None,
    fixed_columns: &[],
    metadata: declare::METADATA,
    takes_updates: false,
    bounded: |options| options.contains_key(declare::BOUNDED),
};

pub struct Kafka;

impl Connector for Kafka {
    fn declaration(&self) -> &ConnectorDecl {
        &DECLARATION
    }

    fn check(&self, table: &TableCheck<'_>) -> Result<(), OptionFault> {
        config::check(table)
    }

    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(source::KafkaSource::new(spec.clone())?))
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(sink::KafkaSink::new(spec.clone())?))
    }
}
