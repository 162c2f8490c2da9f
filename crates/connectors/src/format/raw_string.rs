//! `raw_string`: every line is one value of a text column.

use arrow::array::{Array, AsArray};
use arrow::compute;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::ConnectorError;
use thalweg_runtime::pairing::PairedChanges;

use super::column::{Column, Values, text};
use super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::encode::{Encoder, append_only};
use super::fault::Fault;
use super::gather::Gather;
use super::lines::{bom_len, line_end, next_stretch};

/// What a whole record must be, to be kept as text.
pub type CheckRecord = fn(&[u8]) -> Result<(), Box<Fault>>;

/// Keeps records as they are, in the only column of the schema (or in none, where it is not read).
pub struct RawDecoder {
    gather: Gather,
    check: CheckRecord,
    skip_blank: bool,
}

impl RawDecoder {
    /// Lines of text; an empty line is an empty text.
    pub fn lines(schema: SchemaRef) -> Result<Self, ConnectorError> {
        Ok(Self {
            gather: Gather::new(schema)?,
            check: |_| Ok(()),
            skip_blank: false,
        })
    }

    /// Lines that must pass `check`, blank ones left out.
    pub fn checked(schema: SchemaRef, check: CheckRecord) -> Result<Self, ConnectorError> {
        Ok(Self {
            gather: Gather::new(schema)?,
            check,
            skip_blank: true,
        })
    }

    fn record(&mut self, record: &[u8], at: u64, is_utf8: bool) {
        if record.len() > text::MAX_BYTES {
            return self.gather.reject_too_large(at, record);
        }
        if !is_utf8 && simdutf8::basic::from_utf8(record).is_err() {
            return self.gather.reject_encoding(at, record);
        }
        if let Err(fault) = (self.check)(record) {
            return self.gather.reject(at, record, &fault);
        }
        for Column { values, .. } in &mut self.gather.columns {
            if let Values::Text(text) | Values::Json(text) = values {
                text.push(record);
            }
        }
        self.gather.accept(at, record.len());
    }
}

impl RecordDecoder for RawDecoder {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn head(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, ConnectorError> {
        Ok(bom_len(bytes, last))
    }

    fn decode(&mut self, bytes: &[u8], at: u64, max_records: usize, last: bool) -> Consumed {
        let mut done = Consumed::default();
        while done.records < max_records {
            let wanted = max_records - done.records;
            let Some(stretch) = next_stretch(bytes, done.bytes, wanted, last) else {
                break;
            };
            while done.bytes < stretch.end && done.records < max_records {
                let (end, next) = line_end(bytes, done.bytes, stretch.end);
                let record = &bytes[done.bytes..end];
                if !self.gather.fits(record.len()) {
                    return Consumed { full: true, ..done };
                }
                if !(self.skip_blank && record.trim_ascii().is_empty()) {
                    self.record(record, at + done.bytes as u64, stretch.is_utf8);
                    done.records += 1;
                }
                done.bytes = next;
            }
        }
        done
    }

    fn decode_one(&mut self, record: &[u8], at: u64) -> bool {
        let fits = self.gather.fits(record.len());
        if fits {
            self.record(record, at, false);
        }
        fits
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        self.gather.flush()
    }
}

/// Writes the only column's values as lines. A null is an empty line.
pub struct RawEncoder;

impl Encoder for RawEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let column = compute::cast(rows.column(0), &DataType::Utf8)?;
        let texts = column.as_string::<i32>();
        for row in 0..texts.len() {
            let text = if texts.is_null(row) {
                ""
            } else {
                texts.value(row)
            };
            if text.contains('\n') {
                let message = "a value with a line end cannot be written as a line of 'raw_string'";
                return Err(ConnectorError::Encode(message.to_string()));
            }
            out.extend_from_slice(text.as_bytes());
            out.push(b'\n');
        }
        Ok(())
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("raw_string"))
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, StringArray};
    use arrow::datatypes::{Field, Schema};
    use std::sync::Arc;
    use thalweg_runtime::connector::BadReason;

    fn schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new("value", DataType::Utf8, true)]))
    }

    fn texts(decoded: &Decoded) -> Vec<&str> {
        decoded
            .rows
            .column(0)
            .as_string::<i32>()
            .iter()
            .flatten()
            .collect()
    }

    #[test]
    fn lines_become_rows_with_their_positions() {
        let mut decoder = RawDecoder::lines(schema()).unwrap();
        let done = decoder.decode(b"one\n\ntwo\r\ncut", 100, 10, false);
        assert_eq!((done.bytes, done.records), (10, 3));
        let done = decoder.decode(b"cut", 110, 10, true);
        assert_eq!((done.bytes, done.records), (3, 1));
        let decoded = decoder.flush().unwrap();
        assert_eq!(texts(&decoded), ["one", "", "two", "cut"]);
        assert_eq!(decoded.origins, [100, 104, 105, 110]);
    }

    #[test]
    fn no_more_records_than_asked_for() {
        let mut decoder = RawDecoder::lines(schema()).unwrap();
        let block = b"a\nb\nc\n";
        assert_eq!(
            decoder.decode(block, 0, 2, false),
            Consumed {
                bytes: 4,
                records: 2,
                full: false
            }
        );
        assert_eq!(decoder.decode(&block[4..], 4, 2, false).records, 1);
        assert_eq!(decoder.flush().unwrap().origins, [0, 2, 4]);
    }

    #[test]
    fn a_line_that_is_not_utf8_is_rejected_alone() {
        let mut decoder = RawDecoder::lines(schema()).unwrap();
        decoder.decode(b"a\nb\xff\nc\n", 0, 10, false);
        let decoded = decoder.flush().unwrap();
        assert_eq!(texts(&decoded), ["a", "c"]);
        let bad = &decoded.bad[0];
        assert_eq!(
            (bad.origin, bad.reason, bad.raw.as_slice()),
            (2, BadReason::Encoding, &b"b\xff"[..])
        );
        assert_eq!(bad.message, "byte 1 of the record is not UTF-8");
    }

    #[test]
    fn rows_without_the_column_are_counted() {
        let mut decoder = RawDecoder::lines(Arc::new(Schema::empty())).unwrap();
        decoder.decode(b"a\nb\n", 0, 10, false);
        assert_eq!(decoder.flush().unwrap().rows.num_rows(), 2);
    }

    #[test]
    fn text_is_written_as_lines_and_never_as_two() {
        let rows = |texts: Vec<Option<&str>>| {
            let column: ArrayRef = Arc::new(StringArray::from(texts));
            RecordBatch::try_new(schema(), vec![column]).unwrap()
        };
        let mut out = Vec::new();
        RawEncoder
            .rows(&rows(vec![Some("a"), None, Some("b c")]), &mut out)
            .unwrap();
        assert_eq!(out, b"a\n\nb c\n");
        assert!(
            RawEncoder
                .rows(&rows(vec![Some("a\nb")]), &mut out)
                .is_err()
        );
    }
}
