//! Change envelopes into columns and marks, one a line or a message.

use std::ops::Range;

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::ConnectorError;

use super::super::column::text;
use super::super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::super::fault::Fault;
use super::super::gather::Gather;
use super::super::json::{Cursor, end_of_record, without_line_ends};
use super::super::lines::{bom_len, line_end, next_stretch};
use super::envelope::{Envelope, EnvelopeScanner, Operation, Parsed};
use super::image::{Completeness, ImageReader};
use super::marks::MarkBuilder;
use super::position::{SourceInfo, SourceReader};
use super::schema::Meanings;
use super::settings::Settings;
use super::value::Surroundings;

/// The decoder of `format = 'debezium_json'`.
pub struct DebeziumDecoder {
    gather: Gather,
    marks: MarkBuilder,
    scanner: EnvelopeScanner,
    key_scanner: EnvelopeScanner,
    source: SourceReader,
    images: ImageReader,
    meanings: Meanings,
    settings: Settings,
    n_key_columns: usize,
}

/// What a record does, one after another: at most a deletion under an old key and a row under a new one.
type Rows = [Option<(ChangeOp, Completeness)>; 2];

/// A key column and where its value stands in the text.
type KeyPlace = (usize, Range<usize>);

impl DebeziumDecoder {
    /// Of records with these columns, all of which may be null; `key` names those of the PRIMARY KEY. Errors: a column
    /// of a type that cannot be read.
    pub fn new(
        physical: SchemaRef,
        key: &[String],
        options: &Options,
    ) -> Result<Self, ConnectorError> {
        let gather = Gather::new(physical)?;
        let images = ImageReader::new(&gather.columns, key);
        Ok(Self {
            meanings: Meanings::new(&gather.columns),
            marks: MarkBuilder::default(),
            scanner: EnvelopeScanner::new(),
            key_scanner: EnvelopeScanner::new(),
            source: SourceReader::new(),
            settings: Settings::new(options),
            n_key_columns: images.n_key_columns(),
            images,
            gather,
        })
    }

    /// Reads the record at hand and its line end. `key` is that of its message. After a fault, columns hold some of it.
    fn record(
        &mut self,
        cursor: &mut Cursor<'_>,
        key: Option<&[u8]>,
        origin: u64,
    ) -> Result<(), Box<Fault>> {
        let start = cursor.pos;
        let parsed = self.scanner.scan(cursor)?;
        end_of_record(cursor)?;
        let Parsed::Change(envelope) = parsed else {
            return Ok(());
        };
        let source = match &envelope.source {
            Some(place) => self
                .source
                .read(&mut Cursor::new(cursor.bytes, place.start))?,
            None => SourceInfo::default(),
        };
        let rows = self.rows(cursor.bytes, &envelope, &source, key)?;
        for (op, completeness) in rows.into_iter().flatten() {
            let unavailable: &[u8] = match completeness {
                Completeness::Whole => &[],
                Completeness::Partial => self.images.unavailable(),
            };
            self.marks.push(op, &source, unavailable);
            self.gather.accept(origin, 0);
        }
        self.gather.add_bytes(cursor.pos - start);
        Ok(())
    }

    /// Pushes the rows of an envelope.
    fn rows(
        &mut self,
        text: &[u8],
        envelope: &Envelope,
        source: &SourceInfo,
        key: Option<&[u8]>,
    ) -> Result<Rows, Box<Fault>> {
        let reads_snapshot = envelope.operation == Operation::Read
            || envelope.operation == Operation::Create && source.is_snapshot;
        match envelope.operation {
            Operation::Create | Operation::Read if reads_snapshot => {
                let read = self.written(text, envelope, ChangeOp::Read)?;
                Ok([None, Some(read)])
            }
            Operation::Create | Operation::Read => {
                let written = self.written(text, envelope, ChangeOp::Write)?;
                Ok([None, Some(written)])
            }
            Operation::Update => {
                let moved = self.moved_from(text, envelope)?;
                let written = self.written(text, envelope, ChangeOp::Write)?;
                Ok([moved, Some(written)])
            }
            Operation::Delete => {
                self.deleted(text, envelope, key)?;
                Ok([Some((ChangeOp::Delete, Completeness::Whole)), None])
            }
            Operation::Truncate => {
                self.images.nothing(&mut self.gather.columns);
                Ok([Some((ChangeOp::Truncate, Completeness::Whole)), None])
            }
        }
    }

    fn written(
        &mut self,
        text: &[u8],
        envelope: &Envelope,
        op: ChangeOp,
    ) -> Result<(ChangeOp, Completeness), Box<Fault>> {
        let Some(after) = &envelope.after else {
            return Err(Fault::malformed("the change has no \"after\""));
        };
        let row = self.gather.columns.first().map_or(0, |c| c.len());
        let meanings = self.meanings.of(schema(text, envelope));
        let around = Surroundings {
            settings: &self.settings,
            has_source: envelope.source.is_some(),
        };
        let mut cursor = Cursor::new(text, after.start);
        let columns = &mut self.gather.columns;
        let completeness = self
            .images
            .row(&mut cursor, columns, row, meanings, around)?;
        Ok((op, completeness))
    }

    /// A deletion under the key that the row had before, where an update has changed it. Databases without a key of
    /// their own, or with another than the table's, tell a change of key so.
    fn moved_from(
        &mut self,
        text: &[u8],
        envelope: &Envelope,
    ) -> Result<Option<(ChangeOp, Completeness)>, Box<Fault>> {
        let (Some(before), Some(after)) = (&envelope.before, &envelope.after) else {
            return Ok(None);
        };
        let mut places =
            |image: &Range<usize>| self.images.key_places(&mut Cursor::new(text, image.start));
        let (old, new) = (places(before)?, places(after)?);
        let same = |((i, old), (j, new)): (&KeyPlace, &KeyPlace)| {
            i == j && text[old.clone()] == text[new.clone()]
        };
        let is_whole = old.len() == self.n_key_columns && new.len() == self.n_key_columns;
        if !is_whole || old.iter().zip(&new).all(same) {
            return Ok(None);
        }
        self.key_of(text, before, envelope)?;
        Ok(Some((ChangeOp::Delete, Completeness::Whole)))
    }

    fn deleted(
        &mut self,
        text: &[u8],
        envelope: &Envelope,
        key: Option<&[u8]>,
    ) -> Result<(), Box<Fault>> {
        if let Some(before) = &envelope.before {
            return self.key_of(text, before, envelope);
        }
        match key {
            Some(key) => self.key_of_message(key),
            None => Err(Fault::malformed(
                "the deletion has neither \"before\" nor a key",
            )),
        }
    }

    fn key_of(
        &mut self,
        text: &[u8],
        image: &Range<usize>,
        envelope: &Envelope,
    ) -> Result<(), Box<Fault>> {
        let row = self.gather.columns.first().map_or(0, |c| c.len());
        let meanings = self.meanings.of(schema(text, envelope));
        let around = Surroundings {
            settings: &self.settings,
            has_source: envelope.source.is_some(),
        };
        let mut cursor = Cursor::new(text, image.start);
        self.images
            .key(&mut cursor, &mut self.gather.columns, row, meanings, around)
    }

    /// Pushes the key of a message as a row of which nothing else is meant.
    fn key_of_message(&mut self, key: &[u8]) -> Result<(), Box<Fault>> {
        if simdutf8::basic::from_utf8(key).is_err() {
            return Err(Fault::malformed("the key of the message is not UTF-8"));
        }
        let lines = without_line_ends(key);
        let mut cursor = Cursor::new(&lines, 0);
        cursor.skip_space();
        let fields = self.key_scanner.fields(&mut cursor)?;
        let Some(fields) = fields else {
            return Err(Fault::malformed("the key of the message is no object"));
        };
        let row = self.gather.columns.first().map_or(0, |c| c.len());
        let around = Surroundings {
            settings: &self.settings,
            has_source: true,
        };
        let mut cursor = Cursor::new(&lines, fields.start);
        let meanings = self.meanings.of(&[]);
        self.images
            .key(&mut cursor, &mut self.gather.columns, row, meanings, around)
    }

    fn lines(&mut self, text: &[u8], at: u64, max_records: usize, done: &mut Consumed) {
        let mut cursor = Cursor::new(text, done.bytes);
        while cursor.pos < text.len() && done.records < max_records {
            let start = cursor.pos;
            cursor.skip_space();
            if cursor.peek() == b'\n' {
                cursor.pos += 1;
                continue;
            }
            done.records += 1;
            let origin = at + start as u64;
            if let Err(fault) = self.record(&mut cursor, None, origin) {
                let (end, next) = line_end(text, start, text.len());
                self.gather.reject(origin, &text[start..end], &fault);
                cursor.pos = next;
            }
        }
        done.bytes = cursor.pos.min(text.len());
    }

    /// The same for a stretch in which something is not UTF-8, or is too large: line by line.
    #[cold]
    fn doubtful_lines(&mut self, text: &[u8], at: u64, max_records: usize, done: &mut Consumed) {
        while done.bytes < text.len() && done.records < max_records {
            let (end, next) = line_end(text, done.bytes, text.len());
            let (record, origin) = (&text[done.bytes..end], at + done.bytes as u64);
            if record.len() > text::MAX_BYTES {
                self.gather.reject_too_large(origin, record);
            } else if simdutf8::basic::from_utf8(record).is_err() {
                self.gather.reject_encoding(origin, record);
            } else {
                self.lines(&text[..next], at, max_records, done);
                continue;
            }
            done.records += 1;
            done.bytes = next;
        }
    }
}

fn schema<'a>(text: &'a [u8], envelope: &Envelope) -> &'a [u8] {
    envelope
        .schema
        .clone()
        .map_or(&[][..], |place| &text[place])
}

impl RecordDecoder for DebeziumDecoder {
    fn framing(&self) -> Framing {
        Framing::Sequence
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
            let len = stretch.end - done.bytes;
            // An update that changes the key has the columns of the key twice.
            if !self.gather.fits(2 * len) {
                return Consumed { full: true, ..done };
            }
            let text = &bytes[..stretch.end];
            if stretch.is_utf8 && len <= text::MAX_BYTES {
                self.lines(text, at, max_records, &mut done);
            } else {
                self.doubtful_lines(text, at, max_records, &mut done);
            }
        }
        done
    }

    fn decode_one(&mut self, record: &[u8], at: u64) -> bool {
        self.decode_message(None, Some(record), at)
    }

    fn decode_message(&mut self, key: Option<&[u8]>, payload: Option<&[u8]>, at: u64) -> bool {
        // A tombstone lets a compacted topic forget the key; the deletion has come before it.
        let Some(record) = payload else { return true };
        if !self.gather.fits(2 * record.len()) {
            return false;
        }
        let lines = without_line_ends(record);
        let mut cursor = Cursor::new(&lines, 0);
        cursor.skip_space();
        if record.len() > text::MAX_BYTES {
            self.gather.reject_too_large(at, record);
        } else if simdutf8::basic::from_utf8(record).is_err() {
            self.gather.reject_encoding(at, record);
        } else if let Err(fault) = self.record(&mut cursor, key, at) {
            self.gather.reject(at, record, &fault);
        }
        true
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        let marks = self.marks.take();
        Ok(Decoded {
            marks: Some(marks),
            ..self.gather.flush()?
        })
    }
}
