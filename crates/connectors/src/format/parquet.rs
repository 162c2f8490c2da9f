//! `parquet`, for writing. A Parquet file is no sequence of records, so the file connectors read it
//! themselves.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::encode::{Encoder, Messages, append_only, whole_files};

pub const COMPRESSION: &str = "parquet.compression";
pub const COMPRESSIONS: &[&str] = &["none", "snappy", "zstd", "lz4"];

/// Encoded bytes of a row group that is held in memory until it is complete.
const ROW_GROUP_BYTES: usize = 64 << 20;

/// Writes row groups as they are complete, and the file's directory when it ends: until then nothing
/// can read it.
pub struct ParquetEncoder {
    schema: SchemaRef,
    properties: WriterProperties,
    written: Shared,
    writer: Option<ArrowWriter<Shared>>,
}

impl ParquetEncoder {
    /// Errors: a column of a type that Parquet has not.
    pub fn new(options: &Options, schema: SchemaRef) -> Result<Self, ConnectorError> {
        if let Some(field) = schema.fields().iter().find(|f| has_interval(f.data_type())) {
            let message = format!(
                "Parquet has no type for the interval in column \"{}\"",
                field.name()
            );
            let hint = "cast it to TEXT".to_string();
            return Err(ConnectorError::configuration(message, Some(hint)));
        }
        let compression = match options.text(COMPRESSION) {
            Some("none") => Compression::UNCOMPRESSED,
            Some("snappy") => Compression::SNAPPY,
            Some("lz4") => Compression::LZ4_RAW,
            _ => Compression::ZSTD(ZstdLevel::default()),
        };
        let properties = WriterProperties::builder()
            .set_compression(compression)
            .set_max_row_group_bytes(Some(ROW_GROUP_BYTES))
            .set_created_by(concat!("thalweg ", env!("CARGO_PKG_VERSION")).to_string())
            .build();
        let mut encoder = Self {
            schema,
            properties,
            written: Shared::default(),
            writer: None,
        };
        // What cannot be written shows here, before the job begins.
        encoder.begin(&mut Vec::new())?;
        Ok(encoder)
    }

    fn writer(&mut self) -> Result<&mut ArrowWriter<Shared>, ConnectorError> {
        self.writer.as_mut().ok_or_else(|| {
            ConnectorError::Encode("the Parquet file has not been begun".to_string())
        })
    }
}

impl Encoder for ParquetEncoder {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.written = Shared::default();
        let (schema, properties) = (self.schema.clone(), self.properties.clone());
        let writer = ArrowWriter::try_new(self.written.clone(), schema, Some(properties))
            .map_err(|e| failed(&e))?;
        self.writer = Some(writer);
        self.written.drain_into(out);
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.writer()?.write(rows).map_err(|e| failed(&e))?;
        self.written.drain_into(out);
        Ok(())
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("parquet"))
    }

    fn messages(&mut self, _: &SinkInput<'_>, _: &mut Messages) -> Result<(), ConnectorError> {
        Err(whole_files("parquet"))
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.writer()?.finish().map_err(|e| failed(&e))?;
        self.writer = None;
        self.written.drain_into(out);
        Ok(())
    }
}

/// Whether values of the type hold intervals, which the library accepts in a schema and then fails to write.
fn has_interval(data_type: &DataType) -> bool {
    match data_type {
        DataType::Interval(_) => true,
        DataType::List(item) | DataType::LargeList(item) | DataType::Map(item, _) => {
            has_interval(item.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|f| has_interval(f.data_type())),
        _ => false,
    }
}

fn failed(error: &ParquetError) -> ConnectorError {
    ConnectorError::Encode(format!("the rows cannot be written as Parquet: {error}"))
}

/// What the writer has written and the encoder has not yet passed on.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn drain_into(&self, out: &mut Vec<u8>) {
        out.append(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{numbers, options, schema};
    use arrow::compute::concat_batches;
    use arrow::datatypes::IntervalUnit;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    fn read(bytes: Vec<u8>) -> RecordBatch {
        let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
        let schema = builder.schema().clone();
        let batches: Vec<_> = builder.build().unwrap().map(Result::unwrap).collect();
        concat_batches(&schema, &batches).unwrap()
    }

    #[test]
    fn files_can_be_read_one_after_another_and_compressed_as_said() {
        for compression in COMPRESSIONS {
            let rows = numbers(0..10_000);
            let mut encoder =
                ParquetEncoder::new(&options(&[(COMPRESSION, compression)]), rows.schema())
                    .unwrap();
            for _file in 0..2 {
                let mut out = Vec::new();
                encoder.begin(&mut out).unwrap();
                encoder.rows(&rows.slice(0, 7_000), &mut out).unwrap();
                encoder.rows(&rows.slice(7_000, 3_000), &mut out).unwrap();
                encoder.finish(&mut out).unwrap();
                assert_eq!(read(out), rows, "{compression}");
            }
        }
    }

    #[test]
    fn a_file_without_rows_has_its_columns() {
        let schema = schema(&[("a", DataType::Utf8), ("b", DataType::UInt64)]);
        let mut encoder = ParquetEncoder::new(&options(&[]), schema.clone()).unwrap();
        let mut out = Vec::new();
        encoder.begin(&mut out).unwrap();
        encoder.finish(&mut out).unwrap();
        assert_eq!(read(out), RecordBatch::new_empty(schema));
    }

    #[test]
    fn what_parquet_has_no_type_for_is_refused_at_once() {
        let interval = DataType::Interval(IntervalUnit::MonthDayNano);
        for data_type in [interval.clone(), DataType::new_list(interval, true)] {
            let error = ParquetEncoder::new(&options(&[]), schema(&[("i", data_type)]))
                .err()
                .unwrap();
            assert_eq!(
                error.to_string(),
                "Parquet has no type for the interval in column \"i\""
            );
        }
    }
}
