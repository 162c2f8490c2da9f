//! The sink: rows or changes become records, and an epoch ends when all of them are acknowledged.

use std::sync::Arc;

use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{ConnectorError, Sink, SinkWriter};

use super::client::Lookup;
use super::config::{SinkConfig, as_error};

mod delivery;
mod keys;
mod writer;

use keys::Keys;
use writer::KafkaWriter;

pub struct KafkaSink {
    spec: Arc<SinkSpec>,
    config: SinkConfig,
}

impl KafkaSink {
    /// Errors: there is no such topic, or no broker; tombstones are asked for where there is no key.
    pub fn new(spec: Arc<SinkSpec>) -> Result<Self, ConnectorError> {
        let config = SinkConfig::parse(&spec.options).map_err(as_error)?;
        if config.writes_tombstones && !Keys::has_some(&spec, &config) {
            let message = "sink.tombstones needs a key, and the result has none".to_string();
            let hint = "declare a PRIMARY KEY, or name a column in sink.key_field".to_string();
            return Err(ConnectorError::configuration(message, Some(hint)));
        }
        Lookup::new(&spec.table, &config.common, &config.lookup())?.wait_for_topic()?;
        Ok(Self { spec, config })
    }
}

impl Sink for KafkaSink {
    fn is_parallel(&self) -> bool {
        true
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(KafkaWriter::open(&self.spec, &self.config)?))
    }
}
