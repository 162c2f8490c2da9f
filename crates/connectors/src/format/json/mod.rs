//! JSON: one object a record.

use std::borrow::Cow;

use arrow::datatypes::{Field, SchemaRef, TimeUnit};
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::ConnectorError;

mod connect;
mod cursor;
mod debezium;
mod decoder;
mod encoder;
pub mod json_schema;
mod object;
mod read;
mod shape;
mod skip;
mod string;
mod write;

pub(super) use cursor::Cursor;
pub use debezium::DebeziumEncoder;
pub use encoder::{JsonEncoder, includes_schema, is_confluent};
pub(super) use read::read_value;
pub use read::{Node, Reading, read_text};
pub(super) use shape::Shape;
pub(super) use skip::{end_of_record, skip_value};
pub(super) use string::unescape_into;
pub use write::{write_string, write_value};

use super::cells::Decimals;
use super::confluent::Header;
use super::decode::RecordDecoder;
use super::fault::Fault;
use super::raw::RawDecoder;
use super::registry;
use super::value::timestamp::EpochUnit;

/// The decoder of `format = 'json'`.
pub fn decoder(
    options: &Options,
    physical: SchemaRef,
) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
    let header = Header::of(encoder::is_confluent(options));
    if options.bool("json.unstructured") == Some(true) {
        let decoder = RawDecoder::checked(physical, check_record, header)?;
        return Ok(Box::new(decoder));
    }
    let decoder = decoder::JsonDecoder::new(physical, reading(options))?.with_header(header);
    Ok(Box::new(if encoder::includes_schema(options) {
        decoder.wrapped()
    } else {
        decoder
    }))
}

/// The columns of a table that declares none, from the schema that is registered for it.
pub fn discover(options: &Options) -> Result<Vec<Field>, ConnectorError> {
    let schema = registry::latest(options)?;
    let wrong = |message: String| ConnectorError::configuration(message, None);
    if schema.kind != registry::Kind::Json {
        let (id, kind) = (schema.id, schema.kind.as_str());
        return Err(wrong(format!(
            "schema {id} of the schema registry is {kind}, not JSON"
        )));
    }
    let parsed = serde_json::from_str(&schema.text).map_err(|e| e.to_string());
    parsed
        .and_then(|schema| json_schema::columns(&schema))
        .map_err(|e| wrong(format!("schema {}: {e}", schema.id)))
}

/// The record in a message, behind the header that options say it has.
pub fn body<'a>(message: &'a [u8], options: &Options) -> &'a [u8] {
    let header = Header::of(encoder::is_confluent(options));
    &message[header.skip(message).unwrap_or(0)..]
}

/// What options say of values whose spelling JSON leaves open.
fn reading(options: &Options) -> Reading {
    let decimals = encoder::spelling(options).decimals;
    Reading {
        epoch: epoch_unit(options),
        decimals_in_base64: decimals == Decimals::Base64,
    }
}

/// What `json.timestamp_format` says of numbers in the place of timestamps.
pub(super) fn epoch_unit(options: &Options) -> EpochUnit {
    match options.text("json.timestamp_format") {
        Some("rfc3339" | "RFC3339") => EpochUnit::Refused,
        Some("unix_seconds") => EpochUnit::Fixed(TimeUnit::Second),
        Some("unix_millis" | "UnixMillis") => EpochUnit::Fixed(TimeUnit::Millisecond),
        Some("unix_micros") => EpochUnit::Fixed(TimeUnit::Microsecond),
        Some("unix_nanos") => EpochUnit::Fixed(TimeUnit::Nanosecond),
        _ => EpochUnit::ByMagnitude,
    }
}

/// Checks that a whole record is one JSON value, of any kind.
pub fn check_record(record: &[u8]) -> Result<(), Box<Fault>> {
    skip::check_record(&without_line_ends(record))
}

/// The record with its line ends turned into carriage returns, which mean the same in JSON, while the
/// reader takes a line end for the end of the record. (Within a string neither is allowed.)
pub(super) fn without_line_ends(record: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', record).is_none() {
        return Cow::Borrowed(record);
    }
    Cow::Owned(
        record
            .iter()
            .map(|b| if *b == b'\n' { b'\r' } else { *b })
            .collect(),
    )
}

#[cfg(test)]
mod envelope_tests;
#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;
