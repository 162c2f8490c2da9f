//! Lines of JSON objects into columns.

use arrow::datatypes::SchemaRef;
use thalweg_runtime::connector::ConnectorError;

use super::super::column::text;
use super::super::confluent::Header;
use super::super::decode::{Consumed, Decoded, Framing, RecordDecoder};
use super::super::fault::Fault;
use super::super::gather::Gather;
use super::super::lines::{bom_len, line_end, next_stretch};
use super::cursor::Cursor;
use super::object::ObjectReader;
use super::read::Reading;
use super::shape::Shape;
use super::skip::{end_of_record, skip_value};

/// One object a line, its fields by name; fields that are no column are skipped.
///
/// No pass looks for the ends of records first: the text of a record says where it ends, and a
/// line end inside it is a fault. Only after a fault the next line is searched for.
pub struct JsonDecoder {
    gather: Gather,
    reader: ObjectReader,
    how: Reading,
    header: Header,
    /// Finds the payload, where records stand in a Connect envelope.
    wrapping: Option<Shape>,
}

impl JsonDecoder {
    /// `how`: how values are spelled where JSON leaves that open.
    pub fn new(schema: SchemaRef, how: Reading) -> Result<Self, ConnectorError> {
        let gather = Gather::new(schema)?;
        let reader = ObjectReader::new(&gather.columns);
        Ok(Self {
            gather,
            reader,
            how,
            header: Header::None,
            wrapping: None,
        })
    }

    /// The same for messages that begin with `header`.
    pub fn with_header(self, header: Header) -> Self {
        Self { header, ..self }
    }

    /// The same for records in envelopes, `{"schema":…,"payload":{…}}`.
    pub fn wrapped(self) -> Self {
        let wrapping = Some(Shape::new(["payload"].into_iter()));
        Self { wrapping, ..self }
    }

    /// Reads the record at hand and its line end. After a fault, columns hold some of it.
    #[inline]
    fn record(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Box<Fault>> {
        if cursor.peek() != b'{' {
            return Err(cursor.unexpected("an object"));
        }
        let row = self.gather.n_rows();
        let columns = &mut self.gather.columns;
        match &mut self.wrapping {
            Some(wrapping) => wrapped(cursor, wrapping, |cursor| {
                columns.iter_mut().for_each(|c| c.truncate(row));
                self.reader.read(cursor, columns, row, 1, self.how)
            })?,
            None => self.reader.read(cursor, columns, row, 0, self.how)?,
        }
        end_of_record(cursor)
    }

    /// Reads a whole message and keeps or rejects it; a fault is left to the caller.
    fn message(&mut self, record: &[u8], at: u64) -> Result<(), Box<Fault>> {
        let body = &record[self.header.skip(record)?..];
        if simdutf8::basic::from_utf8(body).is_err() {
            self.gather.reject_encoding(at, record);
            return Ok(());
        }
        let lines = super::without_line_ends(body);
        let mut cursor = Cursor::new(&lines, 0);
        cursor.skip_space();
        self.record(&mut cursor)?;
        self.gather.accept(at, record.len());
        Ok(())
    }

    /// Reads records of a stretch of lines that are all UTF-8, from `done.bytes` to the end of
    /// `text` or to `max_records`.
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
            match self.record(&mut cursor) {
                Ok(()) => self.gather.accept(at + start as u64, cursor.pos - start),
                Err(fault) => {
                    let (end, next) = line_end(text, start, text.len());
                    self.gather
                        .reject(at + start as u64, &text[start..end], &fault);
                    cursor.pos = next;
                }
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

impl RecordDecoder for JsonDecoder {
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
            let len = stretch.end - done.bytes;
            if !self.gather.fits(len) {
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
        if !self.gather.fits(record.len()) {
            return false;
        }
        if record.len() > text::MAX_BYTES {
            self.gather.reject_too_large(at, record);
        } else if let Err(fault) = self.message(record, at) {
            self.gather.reject(at, record, &fault);
        }
        true
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        self.gather.flush()
    }
}

/// Steps over the object at hand, of whose fields only the payload is read.
fn wrapped<'a>(
    cursor: &mut Cursor<'a>,
    wrapping: &mut Shape,
    mut read: impl FnMut(&mut Cursor<'a>) -> Result<(), Box<Fault>>,
) -> Result<(), Box<Fault>> {
    let mut is_found = false;
    cursor.pos += 1;
    cursor.skip_space();
    let mut is_end = cursor.take(b'}');
    for place in 0.. {
        if is_end {
            break;
        }
        if wrapping.key(cursor, place)?.is_none() {
            skip_value(cursor, 1)?;
        } else if cursor.peek() == b'{' {
            is_found = true;
            read(cursor)?;
        } else {
            return Err(cursor.unexpected("an object as payload"));
        }
        cursor.skip_space();
        is_end = cursor.take(b'}');
        if !is_end && !cursor.take(b',') {
            return Err(cursor.unexpected("',' or '}'"));
        }
        cursor.skip_space();
    }
    if is_found {
        return Ok(());
    }
    let message = "the record has no \"payload\", as 'json.include_schema' says it has";
    Err(Fault::malformed(message))
}
