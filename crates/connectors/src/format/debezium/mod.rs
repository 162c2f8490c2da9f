//! Debezium's change envelopes, read (semantics 6): `{"before":…,"after":…,"source":{…},"op":"c|u|d|r|t"}`, with or
//! without the `schema` and `payload` of Kafka Connect's converter around it.
//!
//! An envelope is scanned once for where its parts are ([`envelope`]); then the row's image is read straight into
//! columns ([`image`], [`value`]), as JSON is. What became of the row goes into marks beside the columns. Nothing here
//! remembers rows: what a change does to the row of its key is found out by the operator behind the source.

mod decimal;
mod decoder;
mod duration;
mod envelope;
mod image;
mod marks;
mod position;
mod schema;
mod settings;
mod value;

#[cfg(test)]
mod capture_tests;
#[cfg(test)]
mod tests;

pub use decoder::DebeziumDecoder;
pub use settings::{BINARY, UNAVAILABLE_VALUE};
