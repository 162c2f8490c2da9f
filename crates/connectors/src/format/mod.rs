//! Formats: how records are spelled in bytes. Used by every connector that carries bytes.
//!
//! A [`RecordDecoder`] turns bytes into columns, an [`Encoder`] columns into bytes. Neither knows where
//! the bytes come from or go to. Bad records are an outcome, not an error.

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::SourceSpec;
use thalweg_runtime::connector::ConnectorError;

pub mod avro;
mod cells;
mod column;
pub mod confluent;
pub mod csv;
mod debezium;
pub mod declare;
pub mod decode;
pub mod encode;
mod fault;
pub mod framing;
mod gather;
pub mod json;
mod lines;
pub mod parquet;
pub mod protobuf;
#[cfg(test)]
mod random;
pub mod raw;
pub mod registry;
pub(crate) mod value;

pub use declare::{FORMATS, check};
pub use decode::{BadSpan, Consumed, Decoded, Framing, RecordDecoder};
pub use encode::{Encoder, Messages};
pub use value::sql_type;

/// A decoder of records, or of messages with several where the options say so, which have the fields
/// `declared`, into `physical`, some of these. Errors: the format is not one of records, or the schema has
/// a column that it cannot read.
pub fn decoder(
    format: &str,
    options: &Options,
    declared: &SchemaRef,
    physical: SchemaRef,
) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
    let decoder: Box<dyn RecordDecoder> = match format {
        "avro" => Box::new(avro::decoder(options, physical)?),
        "csv" => Box::new(csv::decoder(options, declared, physical)?),
        "json" => json::decoder(options, physical)?,
        "protobuf" => Box::new(protobuf::decoder(options, physical)?),
        "raw_bytes" => Box::new(raw::RawDecoder::bytes(physical)?),
        "raw_string" => Box::new(raw::RawDecoder::lines(physical)?),
        other => return Err(unknown(other, "read")),
    };
    Ok(framing::framed(decoder, options))
}

/// An encoder of the keys of messages, objects of the columns of `schema`: as 'json' writes rows, with what the
/// options of the table say of schemas, times and decimals.
pub fn key_encoder(
    options: &Options,
    schema: &SchemaRef,
) -> Result<Box<dyn Encoder>, ConnectorError> {
    Ok(Box::new(json::JsonEncoder::of_keys(schema, options)?))
}

/// A decoder of the records of a source. Errors: as of [`decoder`].
pub fn source_decoder(
    format: &str,
    spec: &SourceSpec,
) -> Result<Box<dyn RecordDecoder>, ConnectorError> {
    if format != "debezium_json" {
        return decoder(format, &spec.options, &spec.declared, spec.physical.clone());
    }
    let name = |column: &usize| spec.schema.field(*column).name().clone();
    let key: Vec<String> = spec.primary_key.iter().map(name).collect();
    Ok(Box::new(debezium::DebeziumDecoder::new(
        spec.physical.clone(),
        &key,
        &spec.options,
    )?))
}

/// An encoder of rows of `schema`, or of changes where `updating`. Errors: the format cannot express
/// that, or the schema has a column that it cannot write.
pub fn encoder(
    format: &str,
    options: &Options,
    schema: &SchemaRef,
    updating: bool,
) -> Result<Box<dyn Encoder>, ConnectorError> {
    if updating && !declare::takes_updates(format) {
        return Err(encode::append_only(format));
    }
    match format {
        "avro" => Ok(Box::new(avro::AvroEncoder::new(schema, options)?)),
        "csv" => Ok(Box::new(csv::encoder(options, schema)?)),
        "json" => Ok(Box::new(json::JsonEncoder::new(schema, options)?)),
        "debezium_json" => Ok(Box::new(json::DebeziumEncoder::new(schema, options)?)),
        "parquet" => Ok(Box::new(parquet::ParquetEncoder::new(
            options,
            schema.clone(),
        )?)),
        "protobuf" => Ok(Box::new(protobuf::ProtobufEncoder::new(schema, options)?)),
        "raw_bytes" => Ok(Box::new(raw::RawEncoder::bytes())),
        "raw_string" => Ok(Box::new(raw::RawEncoder::text())),
        other => Err(unknown(other, "written")),
    }
}

fn unknown(format: &str, what: &str) -> ConnectorError {
    ConnectorError::configuration(
        format!("format '{format}' cannot be {what} record by record"),
        None,
    )
}
