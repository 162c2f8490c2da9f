//! JSON: one object a record.

use std::borrow::Cow;

use arrow::datatypes::{SchemaRef, TimeUnit};
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::ConnectorError;

mod cursor;
mod debezium;
mod decoder;
mod encoder;
mod object;
mod read;
mod shape;
mod skip;
mod string;
mod write;

pub(super) use cursor::Cursor;
pub use debezium::DebeziumEncoder;
pub use encoder::JsonEncoder;
pub(super) use read::read_value;
pub use read::{Node, read_text};
pub(super) use shape::Shape;
pub(super) use skip::{end_of_record, skip_value};
pub(super) use string::unescape_into;
pub use write::write_value;

use super::decode::RecordDecoder;
use super::fault::Fault;
use super::raw_string::RawDecoder;
use super::value::timestamp::EpochUnit;

/// The decoder of `format = 'json'`.
pub fn decoder(
    options: &Options,
    physical: SchemaRef,
) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
    if options.bool("json.unstructured") == Some(true) {
        return Ok(Box::new(RawDecoder::checked(physical, check_record)?));
    }
    Ok(Box::new(decoder::JsonDecoder::new(
        physical,
        epoch_unit(options),
    )?))
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
mod oracle_tests;
#[cfg(test)]
mod round_trip_tests;
#[cfg(test)]
mod tests;
