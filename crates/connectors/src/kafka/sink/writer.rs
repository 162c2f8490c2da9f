//! Hands records to the client, and waits where it has no room for more.

use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, UInt32Array};
use arrow::compute;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::record_batch::RecordBatch;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer, ThreadedProducer};
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, SinkInput, SinkWriter};
use thalweg_runtime::pairing::{PairedChange, PairedChanges};

use super::super::client::cannot_create;
use super::super::config::SinkConfig;
use super::super::context::Context;
use super::delivery::Deliveries;
use super::keys::{Encoded, Keys};
use crate::format::{self, Encoder, Messages};

pub struct KafkaWriter {
    out: Out,
    encoder: Box<dyn Encoder>,
    keys: Keys,
    /// The column of the records' timestamps.
    timestamps: Option<usize>,
    values: Messages,
    /// Of the values sent.
    n_bytes: u64,
}

/// Where records are handed over.
struct Out {
    topic: String,
    producer: ThreadedProducer<Deliveries>,
    deliveries: Arc<Deliveries>,
    writes_tombstones: bool,
}

/// The records of one input, ready to be handed over.
struct Batch {
    keys: Encoded,
    /// Milliseconds.
    timestamps: Option<Int64Array>,
    /// Per record, whether it says that a row is gone.
    deletions: Option<Vec<bool>>,
}

impl KafkaWriter {
    pub fn open(spec: &SinkSpec, config: &SinkConfig) -> Result<Self, ConnectorError> {
        let common = &config.common;
        let context = Context::new(&spec.table, &common.bootstrap);
        let deliveries = Deliveries::new(context, &common.topic);
        let producer: ThreadedProducer<Deliveries> = config
            .producer()
            .create_with_context(deliveries)
            .map_err(|e| cannot_create(common, &e))?;
        let format = spec.format.as_deref().unwrap_or_default();
        let timestamps = config.timestamp_field.as_deref();
        Ok(Self {
            out: Out {
                topic: common.topic.clone(),
                deliveries: producer.client().context().clone(),
                producer,
                writes_tombstones: config.writes_tombstones,
            },
            encoder: format::encoder(format, &spec.options, &spec.schema, spec.updating)?,
            keys: Keys::new(spec, config)?,
            timestamps: timestamps
                .map(|name| spec.schema.index_of(name))
                .transpose()?,
            values: Messages::default(),
            n_bytes: 0,
        })
    }

    fn encode(&mut self, input: &SinkInput<'_>) -> Result<Batch, ConnectorError> {
        self.values.clear();
        self.encoder.messages(input, &mut self.values)?;
        match input {
            SinkInput::Rows(rows) => Ok(Batch {
                keys: self.keys.encode(rows, None)?,
                timestamps: self.timestamps(rows, None)?,
                deletions: None,
            }),
            SinkInput::Changes(changes) => {
                let (rows, at) = (&changes.rows, images(changes));
                let is_deletion = |c: &PairedChange| matches!(c, PairedChange::Delete { .. });
                let deletions = changes.changes.iter().map(is_deletion).collect();
                Ok(Batch {
                    keys: self.keys.encode(rows, Some(&at))?,
                    timestamps: self.timestamps(rows, Some(&at))?,
                    deletions: Some(deletions),
                })
            }
        }
    }

    fn timestamps(
        &self,
        rows: &RecordBatch,
        at: Option<&UInt32Array>,
    ) -> Result<Option<Int64Array>, ConnectorError> {
        let Some(index) = self.timestamps else {
            return Ok(None);
        };
        let column = match at {
            Some(at) => compute::take(rows.column(index), at, None)?,
            None => rows.column(index).clone(),
        };
        let millis = compute::cast(&column, &DataType::Timestamp(TimeUnit::Millisecond, None))?;
        let millis = compute::cast(&millis, &DataType::Int64)?;
        Ok(Some(millis.as_primitive::<Int64Type>().clone()))
    }
}

impl Out {
    async fn send_all(&self, batch: &Batch, values: &Messages) -> Result<(), ConnectorError> {
        for record in 0..values.len() {
            let key = batch.keys.get(record);
            let timestamps = batch.timestamps.as_ref().filter(|t| t.is_valid(record));
            let timestamp = timestamps.map(|t| t.value(record));
            self.send(key, Some(values.get(record)), timestamp).await?;
            let is_deletion = batch.deletions.as_ref().is_some_and(|d| d[record]);
            if self.writes_tombstones && is_deletion && key.is_some() {
                self.send(key, None, timestamp).await?;
            }
        }
        Ok(())
    }

    /// Hands one record over, which the client copies.
    async fn send(
        &self,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        timestamp: Option<i64>,
    ) -> Result<(), ConnectorError> {
        loop {
            let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(&self.topic);
            record.key = key;
            record.payload = value;
            record.timestamp = timestamp;
            self.deliveries.begin();
            let error = match self.producer.send(record) {
                Ok(()) => return Ok(()),
                Err((error, _)) => error,
            };
            self.deliveries.take_back();
            let is_full = error == KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            if !is_full {
                let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
                return Err(self.deliveries.refused(&error, len(key) + len(value)));
            }
            self.deliveries.progress().await?;
        }
    }
}

/// The row by which each change is keyed: the new image, or the old one where that is all there is.
fn images(changes: &PairedChanges) -> UInt32Array {
    let image = |change: &PairedChange| match *change {
        PairedChange::Create { after } | PairedChange::Update { after, .. } => after,
        PairedChange::Delete { before } => before,
    };
    changes.changes.iter().map(image).collect::<Vec<_>>().into()
}

impl SinkWriter for KafkaWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.out.deliveries.check()?;
            let batch = self.encode(&input)?;
            self.n_bytes += self.values.n_bytes() as u64;
            self.out.send_all(&batch, &self.values).await
        })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(self.out.deliveries.clone().all())
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(self.out.deliveries.clone().all())
    }

    fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}
