//! `raw_string` and `raw_bytes`: every record is one value of a text or byte column.

use arrow::array::AsArray;
use arrow::compute;
use arrow::datatypes::{DataType, SchemaRef};
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::column::{Column, Values, text};
use super::confluent::Header;
use super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::encode::{Encoder, Lines, Messages, Records, append_only};
use super::fault::Fault;
use super::gather::Gather;
use super::lines::{bom_len, line_end, next_stretch};

/// What a whole record must be, to be kept as text.
pub type CheckRecord = fn(&[u8]) -> Result<(), Box<Fault>>;

/// Keeps records as they are, in the only column of the schema (or in none, where it is not read).
pub struct RawDecoder {
    gather: Gather,
    kind: Kind,
    header: Header,
}

enum Kind {
    /// UTF-8; an empty line is an empty text.
    Text,
    /// UTF-8 that must pass a check; blank lines are left out.
    Checked(CheckRecord),
    /// Whatever it is, up to the line end.
    Bytes,
}

impl RawDecoder {
    /// Lines of text; an empty line is an empty text.
    pub fn lines(schema: SchemaRef) -> Result<Self, ConnectorError> {
        Self::new(schema, Kind::Text, Header::None)
    }

    /// Lines of bytes. A carriage return before the line end is one of them.
    pub fn bytes(schema: SchemaRef) -> Result<Self, ConnectorError> {
        Self::new(schema, Kind::Bytes, Header::None)
    }

    /// Lines that must pass `check`, blank ones left out. Messages begin with `header`.
    pub fn checked(
        schema: SchemaRef,
        check: CheckRecord,
        header: Header,
    ) -> Result<Self, ConnectorError> {
        Self::new(schema, Kind::Checked(check), header)
    }

    fn new(schema: SchemaRef, kind: Kind, header: Header) -> Result<Self, ConnectorError> {
        Ok(Self {
            gather: Gather::new(schema)?,
            kind,
            header,
        })
    }

    /// Keeps `record[body..]`, or rejects the record.
    fn record(&mut self, record: &[u8], body: usize, at: u64, is_utf8: bool) {
        let value = &record[body..];
        if record.len() > text::MAX_BYTES {
            return self.gather.reject_too_large(at, record);
        }
        let is_text = is_utf8 || matches!(self.kind, Kind::Bytes);
        if !is_text && simdutf8::basic::from_utf8(value).is_err() {
            return self.gather.reject_encoding(at, record);
        }
        if let Kind::Checked(check) = self.kind
            && let Err(fault) = check(value)
        {
            return self.gather.reject(at, record, &fault);
        }
        for Column { values, .. } in &mut self.gather.columns {
            if let Values::Text(v) | Values::Json(v) | Values::Binary(v) = values {
                v.push(value);
            }
        }
        self.gather.accept(at, record.len());
    }

    /// Where the value ends in the line that ends at `text_end`, without its line end in any of its spellings.
    fn value_end(&self, bytes: &[u8], text_end: usize, next: usize) -> usize {
        match self.kind {
            Kind::Bytes if next > text_end && bytes[next - 1] == b'\n' => next - 1,
            Kind::Bytes => next,
            Kind::Text | Kind::Checked(_) => text_end,
        }
    }
}

impl RecordDecoder for RawDecoder {
    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn head(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, ConnectorError> {
        match self.kind {
            Kind::Bytes => Ok(Some(0)),
            Kind::Text | Kind::Checked(_) => Ok(bom_len(bytes, last)),
        }
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
                let record = &bytes[done.bytes..self.value_end(bytes, end, next)];
                if !self.gather.fits(record.len()) {
                    return Consumed { full: true, ..done };
                }
                let skip_blank = matches!(self.kind, Kind::Checked(_));
                if !(skip_blank && record.trim_ascii().is_empty()) {
                    self.record(record, 0, at + done.bytes as u64, stretch.is_utf8);
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
            match self.header.skip(record) {
                Ok(body) => self.record(record, body, at, false),
                Err(fault) => self.gather.reject(at, record, &fault),
            }
        }
        fits
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        self.gather.flush()
    }
}

/// Writes the only column's values as lines or messages. A null is an empty one.
pub struct RawEncoder {
    format: &'static str,
}

impl RawEncoder {
    pub fn text() -> Self {
        Self {
            format: "raw_string",
        }
    }

    pub fn bytes() -> Self {
        Self {
            format: "raw_bytes",
        }
    }

    /// Calls `write` with each value, nulls as empty ones.
    fn values(
        rows: &RecordBatch,
        mut write: impl FnMut(&[u8]) -> Result<(), ConnectorError>,
    ) -> Result<(), ConnectorError> {
        let column = compute::cast(rows.column(0), &DataType::Binary)?;
        let values = column.as_binary::<i32>();
        values.iter().try_for_each(|v| write(v.unwrap_or_default()))
    }
}

impl Encoder for RawEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let mut lines = Lines(out);
        Self::values(rows, |value| {
            if memchr::memchr(b'\n', value).is_some() {
                return Err(ConnectorError::Encode(format!(
                    "a value with a line end cannot be written as a line of '{}'",
                    self.format
                )));
            }
            lines.open().extend_from_slice(value);
            lines.end();
            Ok(())
        })
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only(self.format))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        let SinkInput::Rows(rows) = input else {
            return Err(append_only(self.format));
        };
        Self::values(rows, |value| {
            out.open().extend_from_slice(value);
            out.end();
            Ok(())
        })
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
        RawEncoder::text()
            .rows(&rows(vec![Some("a"), None, Some("b c")]), &mut out)
            .unwrap();
        assert_eq!(out, b"a\n\nb c\n");
        assert!(
            RawEncoder::text()
                .rows(&rows(vec![Some("a\nb")]), &mut out)
                .is_err()
        );
    }

    fn byte_schema() -> SchemaRef {
        Arc::new(Schema::new(vec![Field::new(
            "value",
            DataType::Binary,
            true,
        )]))
    }

    #[test]
    fn bytes_are_kept_whatever_they_are() {
        let mut decoder = RawDecoder::bytes(byte_schema()).unwrap();
        assert_eq!(decoder.head(b"\xef\xbb\xbfx", false).unwrap(), Some(0));
        let done = decoder.decode(b"\xff\r\n\nlast\r", 0, 10, true);
        assert_eq!((done.bytes, done.records), (9, 3));
        assert!(decoder.decode_one(b"with\nline end", 9));
        let decoded = decoder.flush().unwrap();
        let values: Vec<_> = decoded
            .rows
            .column(0)
            .as_binary::<i32>()
            .iter()
            .flatten()
            .collect();
        assert_eq!(values, [&b"\xff\r"[..], b"", b"last\r", b"with\nline end"]);
        assert_eq!(decoded.bad, []);
    }

    #[test]
    fn messages_may_have_line_ends() {
        let column: ArrayRef = Arc::new(StringArray::from(vec![Some("a\nb"), None]));
        let rows = RecordBatch::try_new(schema(), vec![column]).unwrap();
        let mut messages = Messages::default();
        RawEncoder::bytes()
            .messages(&SinkInput::Rows(&rows), &mut messages)
            .unwrap();
        assert_eq!(messages.iter().collect::<Vec<_>>(), [&b"a\nb"[..], b""]);
    }
}
