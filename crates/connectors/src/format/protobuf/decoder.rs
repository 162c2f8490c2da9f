//! Messages, and lengths with messages, into columns.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use prost_reflect::{DynamicMessage, MessageDescriptor};
use thalweg_runtime::connector::{BadReason, ConnectorError};

use super::super::column::{Column, Values, text};
use super::super::confluent;
use super::super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::super::fault::Fault;
use super::super::gather::Gather;
use super::super::registry::{Client, Kind, Known};
use super::descriptor::{self, Types};
use super::json::{check_size, write_message};
use super::read::{MessageNode, read_message};
use super::wire;

/// Where the type of a record comes from.
pub enum Schemas {
    One(MessageDescriptor),
    /// Each message begins with the id of its schema in a registry, and a path in it.
    Registry(Arc<Client>),
}

pub struct ProtobufDecoder {
    gather: Gather,
    /// Records become one JSON document each.
    is_document: bool,
    /// A message holds records behind their lengths.
    is_delimited: bool,
    schemas: Schemas,
    one: Option<Reader>,
    readers: HashMap<(u32, Vec<usize>), Reader>,
    /// By id.
    types: HashMap<u32, Result<Types, Box<Fault>>>,
    failed: Option<ConnectorError>,
}

struct Reader {
    message: MessageDescriptor,
    node: MessageNode,
}

enum Stop {
    Bad(Box<Fault>),
    Failed(ConnectorError),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Bad(fault)
    }
}

/// Bytes. As JSON a record may have many more, and must still fit into a column.
const MAX_RECORD: usize = text::MAX_BYTES / 16;
/// Ids that are remembered; broken messages may name any.
const MAX_READERS: usize = 1024;

impl ProtobufDecoder {
    /// Errors: a column of a type that cannot be read.
    pub fn new(
        physical: SchemaRef,
        schemas: Schemas,
        is_document: bool,
        is_delimited: bool,
    ) -> Result<Self, ConnectorError> {
        let mut decoder = Self {
            gather: Gather::new(physical)?,
            is_document,
            is_delimited,
            schemas,
            one: None,
            readers: HashMap::new(),
            types: HashMap::new(),
            failed: None,
        };
        if let Schemas::One(message) = &decoder.schemas {
            decoder.one = Some(decoder.reader(message.clone()));
        }
        Ok(decoder)
    }

    fn reader(&self, message: MessageDescriptor) -> Reader {
        let columns: &[Column] = if self.is_document {
            &[]
        } else {
            &self.gather.columns
        };
        let node = MessageNode::new(&message, columns);
        Reader { message, node }
    }

    /// The types of a schema that has not been met yet.
    #[cold]
    fn learn(client: &Client, id: u32) -> Result<Result<Types, Box<Fault>>, ConnectorError> {
        let unusable = |message| Err(Fault::malformed(message));
        Ok(match client.schema(id)? {
            Known::Missing(said) => {
                unusable(format!("the schema registry has no schema {id}: {said}"))
            }
            Known::Schema(schema) if schema.kind != Kind::Protobuf => unusable(format!(
                "schema {id} is {}, not PROTOBUF",
                schema.kind.as_str()
            )),
            Known::Schema(schema) => descriptor::of_text(&schema.text, &schema.references)
                .map_err(|message| Fault::malformed(format!("schema {id}: {message}"))),
        })
    }

    /// Finds the reader of a message with a header, and where its record begins.
    fn find(&mut self, message: &[u8]) -> Result<((u32, Vec<usize>), usize), Stop> {
        let id = confluent::schema_id(message)?;
        let (path, len) = wire::path(&message[confluent::HEADER_BYTES..])?;
        let begin = confluent::HEADER_BYTES + len;
        let key = (id, path);
        if self.readers.contains_key(&key) {
            return Ok((key, begin));
        }
        let Schemas::Registry(client) = &self.schemas else {
            return Err(Fault::malformed("the record has no schema").into());
        };
        // What is missing may appear; the client says how long that is remembered.
        if !matches!(self.types.get(&id), Some(Ok(_))) {
            let types = Self::learn(client, id).map_err(Stop::Failed)?;
            if self.types.len() >= MAX_READERS {
                self.types.clear();
            }
            self.types.insert(id, types);
        }
        let found = match self.types.get(&id) {
            Some(Ok(types)) => descriptor::at_path(types, &key.1),
            Some(Err(fault)) => return Err(fault.clone().into()),
            None => None,
        };
        let found = found.ok_or_else(|| {
            Fault::malformed(format!(
                "schema {id} has no message type at the path {:?}",
                key.1
            ))
        })?;
        if self.readers.len() >= MAX_READERS {
            self.readers.clear();
        }
        let reader = self.reader(found);
        self.readers.insert(key.clone(), reader);
        Ok((key, begin))
    }

    fn record(&mut self, record: &[u8]) -> Result<(), Stop> {
        let found = match self.one {
            Some(_) => None,
            None => Some(self.find(record)?),
        };
        let (reader, begin) = match &found {
            Some((key, begin)) => (self.readers.get(key), *begin),
            None => (self.one.as_ref(), 0),
        };
        let reader = reader.ok_or_else(|| Fault::malformed("the record has no schema"))?;
        let message = DynamicMessage::decode(reader.message.clone(), &record[begin..]);
        let message = message.map_err(|e| {
            let name = reader.message.full_name();
            let said = e.to_string();
            let said = said
                .strip_prefix("failed to decode Protobuf message: ")
                .unwrap_or(&said);
            Fault::malformed(format!("it is no {name}: {said}"))
        })?;
        if self.is_document {
            document(&message, &mut self.gather.columns)?;
        } else {
            read_message(&message, &mut self.gather.columns, &reader.node)?;
        }
        Ok(())
    }

    /// Whether a record of `len` bytes may be read before a flush.
    fn fits(&self, len: usize) -> bool {
        // After a failure nothing can be said of further records either, and each would ask again.
        self.failed.is_none() && self.gather.fits(len)
    }

    /// Reads and keeps or rejects a record. False: it must come again after a flush.
    fn take(&mut self, record: &[u8], at: u64) -> bool {
        if record.len() > MAX_RECORD {
            self.gather.reject_too_large(at, record);
            return true;
        }
        match self.record(record) {
            Ok(()) => self.gather.accept(at, record.len()),
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
}

fn document(message: &DynamicMessage, columns: &mut [Column]) -> Result<(), Box<Fault>> {
    if let Some(Values::Text(values) | Values::Json(values)) =
        columns.first_mut().map(|column| &mut column.values)
    {
        write_message(message, values.open_value());
        check_size(values)?;
        values.end_value();
    }
    Ok(())
}

/// A record behind its length: where it begins and ends. `None`: more bytes are needed.
fn delimited(bytes: &[u8]) -> Result<Option<(usize, usize)>, Box<Fault>> {
    let Some((len, begin)) = wire::varint(bytes)? else {
        return Ok(None);
    };
    let end = usize::try_from(len)
        .ok()
        .and_then(|len| begin.checked_add(len));
    Ok(end
        .filter(|end| *end <= bytes.len())
        .map(|end| (begin, end)))
}

impl RecordDecoder for ProtobufDecoder {
    fn framing(&self) -> Framing {
        Framing::Lengths
    }

    fn head(&mut self, _bytes: &[u8], _last: bool) -> Result<Option<usize>, ConnectorError> {
        Ok(Some(0))
    }

    /// Records behind their lengths.
    fn decode(&mut self, bytes: &[u8], at: u64, max_records: usize, _last: bool) -> Consumed {
        let mut done = Consumed::default();
        while done.records < max_records && done.bytes < bytes.len() {
            let rest = &bytes[done.bytes..];
            let origin = at + done.bytes as u64;
            let end = match delimited(rest) {
                Ok(None) => break,
                Ok(Some((begin, end))) => {
                    if !self.fits(end - begin) || !self.take(&rest[begin..end], origin) {
                        return Consumed { full: true, ..done };
                    }
                    end
                }
                Err(fault) => {
                    // Behind a broken length nothing can be found again.
                    self.gather
                        .reject(origin, &rest[..rest.len().min(64)], &fault);
                    rest.len()
                }
            };
            done.records += 1;
            done.bytes += end;
        }
        done
    }

    fn decode_one(&mut self, record: &[u8], at: u64) -> bool {
        if !self.is_delimited {
            return self.fits(record.len()) && self.take(record, at);
        }
        if !self.fits(record.len()) {
            return false;
        }
        let mut rest = record;
        while !rest.is_empty() {
            match delimited(rest) {
                Ok(Some((begin, end))) => {
                    if !self.take(&rest[begin..end], at) {
                        let fault =
                            Fault::new(BadReason::TooLarge, "the records as JSON are too large");
                        self.gather.reject(at, &rest[begin..end], &fault);
                    }
                    rest = &rest[end..];
                }
                Ok(None) => {
                    let fault = Fault::malformed("the message ends within a record");
                    self.gather.reject(at, rest, &fault);
                    break;
                }
                Err(fault) => {
                    self.gather.reject(at, rest, &fault);
                    break;
                }
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
