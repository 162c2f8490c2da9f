//! Records of a partition on their way into columns.

use std::sync::Arc;

use arrow::array::BinaryBuilder;
use arrow::compute;
use arrow::datatypes::SchemaRef;
use rdkafka::message::Message;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::table::{BadData, EventTimeSource, SourceSpec};
use thalweg_runtime::connector::{BadReason, BadRecord, ConnectorError, Records};

use super::headers::{HeaderLists, read_headers};
use super::place::{Kept, Place, Values};
use super::surroundings::{Surroundings, time_fault};
use crate::format::{self, Decoded, RecordDecoder};

/// Records gathered for one read: those in the decoder, and what surrounds them.
///
/// The decoder knows a record by its position in here, so that what surrounds it is found again for each of its rows.
pub struct Batch {
    spec: Arc<SourceSpec>,
    schema: SchemaRef,
    decoder: Box<dyn RecordDecoder>,
    place: Arc<Place>,
    /// Whether a record without a value is nothing at all, and not a bad one.
    skips_nulls: bool,
    wants: Wants,
    offsets: Vec<i64>,
    /// Milliseconds; `None`: the topic keeps none.
    timestamps: Vec<Option<i64>>,
    keys: BinaryBuilder,
    headers: HeaderLists,
    values: Values,
    bad: Vec<BadRecord>,
    n_records: usize,
    n_bytes: u64,
}

/// What has to be kept of each record beside its value.
#[derive(Clone, Copy)]
struct Wants {
    times: bool,
    timestamps: bool,
    keys: bool,
    headers: bool,
    values: bool,
}

/// What became of a record that was offered to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Yes,
    /// The batch is full: offer it to the next.
    No,
}

impl Batch {
    pub fn new(spec: &Arc<SourceSpec>, place: Arc<Place>) -> Result<Self, ConnectorError> {
        let format = spec.format.as_deref().unwrap_or_default();
        let decoder = format::source_decoder(format, spec)?;
        let has = |key: &str| spec.metadata.iter().any(|m| m.key == key);
        let times = matches!(spec.event_time, EventTimeSource::Connector);
        let wants = Wants {
            times,
            timestamps: times || has("timestamp"),
            keys: has("key"),
            headers: has("headers"),
            values: matches!(spec.bad_data, BadData::DeadLetter(_)),
        };
        Ok(Self {
            schema: spec.record_schema(),
            spec: spec.clone(),
            decoder,
            place,
            skips_nulls: format == "debezium_json",
            wants,
            offsets: Vec::new(),
            timestamps: Vec::new(),
            keys: BinaryBuilder::new(),
            headers: HeaderLists::new(),
            values: Values::default(),
            bad: Vec::new(),
            n_records: 0,
            n_bytes: 0,
        })
    }

    /// Records taken since the last flush, good, bad and skipped.
    pub fn n_records(&self) -> usize {
        self.n_records
    }

    /// Bytes of their keys and values.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Whether there is something to flush.
    pub fn is_empty(&self) -> bool {
        self.n_records == 0
    }

    /// Decodes a record. Errors are the record's own, which is then a bad one.
    pub fn take<M: Message>(&mut self, message: &M) -> Taken {
        let value = message.payload();
        let timestamp = message.timestamp().to_millis();
        let fault = match value {
            None if self.skips_nulls => {
                self.count(message);
                return Taken::Yes;
            }
            None => Some((BadReason::Missing, "the record has no value")),
            Some(_) if self.wants.times => time_fault(timestamp),
            Some(_) => None,
        };
        if let Some((reason, problem)) = fault {
            self.reject(message, reason, problem.to_string());
            return Taken::Yes;
        }
        let value = value.unwrap_or_default();
        let headers = match self.wants.headers.then(|| read_headers(message)) {
            Some(Err(problem)) => {
                self.reject(message, BadReason::Encoding, problem);
                return Taken::Yes;
            }
            Some(Ok(headers)) => headers,
            None => Vec::new(),
        };
        if !self.decoder.decode_one(value, self.offsets.len() as u64) {
            return Taken::No;
        }
        self.offsets.push(message.offset());
        if self.wants.timestamps {
            self.timestamps.push(timestamp);
        }
        if self.wants.keys {
            self.keys.append_option(message.key());
        }
        if self.wants.headers {
            self.headers.append(&headers);
        }
        if self.wants.values {
            self.values.push(value);
        }
        self.count(message);
        Taken::Yes
    }

    fn count<M: Message>(&mut self, message: &M) {
        let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len) as u64;
        self.n_records += 1;
        self.n_bytes += len(message.key()) + len(message.payload());
    }

    fn reject<M: Message>(&mut self, message: &M, reason: BadReason, problem: String) {
        let raw = message.payload().map(<[u8]>::to_vec);
        let bad = self
            .place
            .bad_record(message.offset(), reason, problem, raw);
        self.bad.push(bad);
        self.count(message);
    }

    /// Takes what has been gathered.
    pub fn flush(&mut self) -> Result<Records, ConnectorError> {
        let Decoded {
            rows,
            origins,
            bad,
            marks,
        } = self.decoder.flush()?;
        let offsets = std::mem::take(&mut self.offsets);
        let offset_of = |origin: u64| offsets[origin as usize];
        let own = bad.into_iter().map(|b| {
            self.place
                .bad_record(offset_of(b.origin), b.reason, b.message, Some(b.raw))
        });
        let mut bad: Vec<_> = std::mem::take(&mut self.bad)
            .into_iter()
            .chain(own)
            .collect();
        bad.sort_by_key(|b| b.offset);

        let surroundings = Surroundings::new(
            &self.place,
            &offsets,
            std::mem::take(&mut self.timestamps),
            self.keys.finish(),
            self.headers.finish(),
            &origins,
        );
        let times = self.wants.times.then(|| surroundings.times());
        let n_rows = rows.num_rows();
        let mut columns = rows.columns().to_vec();
        for column in &self.spec.metadata {
            let array = surroundings.column(&column.key)?;
            columns.push(compute::cast(&array, column.field.data_type())?);
        }
        let rows = record_batch(self.schema.clone(), columns, n_rows)?;
        let n_bytes = std::mem::take(&mut self.n_bytes);
        self.n_records = 0;
        let values = self.wants.values.then(|| std::mem::take(&mut self.values));
        let origins = Arc::new(Kept::new(self.place.clone(), offsets, origins, values));
        Ok(Records {
            rows,
            times,
            marks,
            origins,
            bad,
            n_bytes,
        })
    }
}
