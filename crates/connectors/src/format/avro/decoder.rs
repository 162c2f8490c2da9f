//! Messages of one Avro record each into columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use thalweg_runtime::connector::{BadReason, ConnectorError};

use super::super::column::{Column, Values, text};
use super::super::confluent;
use super::super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::super::fault::Fault;
use super::super::gather::Gather;
use super::super::registry::{Client, Kind, Known};
use super::cursor::Cursor;
use super::json::write_json;
use super::read::{RecordNode, read_record};
use super::schema::AvroSchema;

/// Where the schema of a message comes from.
pub enum Schemas {
    /// All are written with this one.
    One(Arc<AvroSchema>),
    /// Each begins with the id of its schema in a registry.
    Registry(Arc<Client>),
}

pub struct AvroDecoder {
    gather: Gather,
    into: Target,
    schemas: Schemas,
    /// By id; 0 where there is one schema only.
    readers: HashMap<u32, Reader>,
    /// The registry did not answer: nothing can be said of the records.
    failed: Option<ConnectorError>,
}

/// What records become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Columns by the names of fields.
    Columns,
    /// One JSON document, in the only column.
    Document,
}

enum Reader {
    Ready {
        schema: Arc<AvroSchema>,
        node: RecordNode,
    },
    /// Records with such a schema are bad.
    Unusable(Box<Fault>),
}

/// Ids that are remembered; broken messages may name any.
const MAX_READERS: usize = 1024;

/// Bytes. As JSON, text may have six times as many, and must still fit into a column.
const MAX_RECORD: usize = text::MAX_BYTES / 16;

/// Why a record is not in the columns.
enum Stop {
    Bad(Box<Fault>),
    Failed(ConnectorError),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Bad(fault)
    }
}

impl AvroDecoder {
    /// Errors: a column of a type that cannot be read; one schema that is no record's.
    pub fn new(
        physical: SchemaRef,
        schemas: Schemas,
        into: Target,
    ) -> Result<Self, ConnectorError> {
        let mut decoder = Self {
            gather: Gather::new(physical)?,
            into,
            schemas,
            readers: HashMap::new(),
            failed: None,
        };
        if let Schemas::One(schema) = &decoder.schemas {
            let reader = decoder.reader(schema.clone());
            if let Reader::Unusable(fault) = &reader {
                return Err(ConnectorError::configuration(fault.message(), None));
            }
            decoder.readers.insert(0, reader);
        }
        Ok(decoder)
    }

    fn reader(&self, schema: Arc<AvroSchema>) -> Reader {
        let node = match (self.into, schema.record()) {
            (Target::Columns, Some(fields)) => {
                RecordNode::new(&schema, fields, &self.gather.columns)
            }
            (Target::Columns, None) => {
                let is = schema.describe(schema.root);
                let message = format!("the schema describes values of type {is}, not records");
                return Reader::Unusable(Fault::new(BadReason::Type, message));
            }
            (Target::Document, _) => RecordNode::new(&schema, &[], &[]),
        };
        Reader::Ready { schema, node }
    }

    /// Asks the registry for the reader of a schema that has not been met yet.
    #[cold]
    fn learn(&self, client: &Client, id: u32) -> Result<Reader, ConnectorError> {
        let unusable = |message| Reader::Unusable(Fault::malformed(message));
        Ok(match client.schema(id)? {
            Known::Missing(said) => {
                unusable(format!("the schema registry has no schema {id}: {said}"))
            }
            Known::Schema(schema) if schema.kind != Kind::Avro => {
                unusable(format!("schema {id} is {}, not AVRO", schema.kind.as_str()))
            }
            Known::Schema(schema) => match AvroSchema::parse(&schema.text, &schema.references) {
                Ok(schema) => self.reader(Arc::new(schema)),
                Err(message) => unusable(format!("schema {id}: {message}")),
            },
        })
    }

    fn record(&mut self, message: &[u8]) -> Result<(), Stop> {
        let (id, body) = match &self.schemas {
            Schemas::One(_) => (0, message),
            Schemas::Registry(client) => {
                let id = confluent::schema_id(message)?;
                // What is missing may appear; the client says how long that is remembered.
                let is_known = matches!(self.readers.get(&id), Some(Reader::Ready { .. }));
                if !is_known {
                    let reader = self.learn(client, id).map_err(Stop::Failed)?;
                    if self.readers.len() >= MAX_READERS {
                        self.readers.clear();
                    }
                    self.readers.insert(id, reader);
                }
                (id, &message[confluent::HEADER_BYTES..])
            }
        };
        let (schema, node) = match self.readers.get(&id) {
            Some(Reader::Ready { schema, node }) => (schema, node),
            Some(Reader::Unusable(fault)) => return Err(fault.clone().into()),
            None => unreachable!("it has been learned"),
        };
        let mut cursor = Cursor::new(body);
        match self.into {
            Target::Columns => {
                let fields = schema.record().unwrap_or_default();
                read_record(&mut cursor, schema, fields, &mut self.gather.columns, node)?;
            }
            Target::Document => document(&mut cursor, schema, &mut self.gather.columns)?,
        }
        match cursor.n_left() {
            0 => Ok(()),
            n => {
                let message =
                    format!("{n} bytes follow the record: it was written with another schema");
                Err(Fault::malformed(message).into())
            }
        }
    }
}

/// Pushes the record at hand as JSON, or only steps over it where the column is not read.
fn document(
    cursor: &mut Cursor<'_>,
    schema: &AvroSchema,
    columns: &mut [Column],
) -> Result<(), Box<Fault>> {
    match columns.first_mut().map(|column| &mut column.values) {
        Some(Values::Text(values) | Values::Json(values)) => {
            write_json(cursor, schema, schema.root, values.open_value(), 0)?;
            values.end_value();
            Ok(())
        }
        _ => super::read::skip(cursor, schema, schema.root, 0),
    }
}

impl RecordDecoder for AvroDecoder {
    fn framing(&self) -> Framing {
        Framing::Lengths
    }

    fn head(&mut self, _bytes: &[u8], _last: bool) -> Result<Option<usize>, ConnectorError> {
        Ok(Some(0))
    }

    /// Records in a stream cannot be told apart; there are none.
    fn decode(&mut self, _: &[u8], _: u64, _: usize, _: bool) -> Consumed {
        Consumed::default()
    }

    fn decode_one(&mut self, record: &[u8], at: u64) -> bool {
        // Nothing can be said of further records either, and each would ask again.
        if self.failed.is_some() || !self.gather.fits(record.len()) {
            return false;
        }
        if record.len() > MAX_RECORD {
            self.gather.reject_too_large(at, record);
            return true;
        }
        match self.record(record) {
            Ok(()) => self.gather.accept(at, record.len()),
            // As JSON it may still fit into empty columns.
            Err(Stop::Bad(fault))
                if fault.reason == BadReason::TooLarge && self.gather.n_rows() > 0 =>
            {
                self.gather.truncate();
                return false;
            }
            Err(Stop::Bad(fault)) => self.gather.reject(at, record, &fault),
            Err(Stop::Failed(error)) => {
                self.gather.truncate();
                self.failed.get_or_insert(error);
            }
        }
        true
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.gather.flush(),
        }
    }
}
