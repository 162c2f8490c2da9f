//! CSV records into columns.

use arrow::datatypes::SchemaRef;
use thalweg_runtime::connector::ConnectorError;

use super::Dialect;
use super::field;
use super::split::{FieldSpan, Quoting, Split, split_record, text};
use crate::format::column::{Column, text::MAX_BYTES};
use crate::format::decode::{Consumed, Decoded, Framing, RecordDecoder};
use crate::format::fault::Fault;
use crate::format::gather::Gather;
use crate::format::json::Node;
use crate::format::lines::{bom_len, line_end};

pub struct CsvDecoder {
    dialect: Dialect,
    gather: Gather,
    nodes: Vec<Node>,
    /// Per column, which field of a record it is.
    places: Vec<usize>,
    /// How many fields a record has.
    n_fields: usize,
    fields: Vec<FieldSpan>,
    scratch: Vec<u8>,
}

impl CsvDecoder {
    /// Records have the fields `declared` unless a header says otherwise.
    pub fn new(
        dialect: Dialect,
        declared: &SchemaRef,
        physical: SchemaRef,
    ) -> Result<Self, ConnectorError> {
        let place = |name: &String| declared.index_of(name);
        let places = physical
            .fields()
            .iter()
            .map(|f| place(f.name()))
            .collect::<Result<_, _>>()?;
        let gather = Gather::new(physical)?;
        Ok(Self {
            dialect,
            nodes: gather.columns.iter().map(Node::new).collect(),
            gather,
            places,
            n_fields: declared.fields().len(),
            fields: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// Finds every column among the names of a header, which are in `self.fields`.
    fn find_columns(&mut self, bytes: &[u8]) -> Result<(), ConnectorError> {
        let mut names = Vec::with_capacity(self.fields.len());
        for span in &self.fields {
            let name = text(&self.dialect, bytes, *span, &mut self.scratch);
            names.push(String::from_utf8_lossy(name.trim_ascii()).into_owned());
        }
        self.n_fields = names.len();
        for (place, column) in self.places.iter_mut().zip(&self.gather.columns) {
            *place = place_of(column.name(), &names)?;
        }
        Ok(())
    }

    /// Pushes the values of the record in `self.fields`.
    fn record(&mut self, bytes: &[u8]) -> Result<(), Box<Fault>> {
        if self.fields.len() != self.n_fields {
            let message = format!(
                "{} fields where {} are expected",
                self.fields.len(),
                self.n_fields
            );
            return Err(Fault::malformed(message));
        }
        for ((column, node), place) in self
            .gather
            .columns
            .iter_mut()
            .zip(&mut self.nodes)
            .zip(&self.places)
        {
            let span = self.fields[*place];
            let text = text(&self.dialect, bytes, span, &mut self.scratch);
            if span.quoting == Quoting::None && text == &*self.dialect.null {
                push_null(column)?;
            } else {
                field::push(column, node, text).map_err(|f| f.in_field(column.name()))?;
            }
        }
        Ok(())
    }

    /// Takes the record at `start`, up to `next`, whose fields are found.
    fn take_record(&mut self, bytes: &[u8], start: usize, next: usize, origin: u64) {
        let raw = without_line_end(&bytes[start..next]);
        if raw.len() > MAX_BYTES {
            self.gather.reject_too_large(origin, raw);
        } else if simdutf8::basic::from_utf8(raw).is_err() {
            self.gather.reject_encoding(origin, raw);
        } else if let Err(fault) = self.record(bytes) {
            self.gather.reject(origin, raw, &fault);
        } else {
            self.gather.accept(origin, raw.len());
        }
    }
}

/// Errors: `name` is not there, or more than once.
fn place_of(name: &str, names: &[String]) -> Result<usize, ConnectorError> {
    let mut found = names
        .iter()
        .enumerate()
        .filter(|(_, n)| *n == name)
        .map(|(i, _)| i);
    match (found.next(), found.next()) {
        (Some(place), None) => Ok(place),
        (Some(_), Some(_)) => Err(ConnectorError::configuration(
            format!("the header has \"{name}\" more than once"),
            None,
        )),
        (None, _) => {
            let names: Vec<_> = names.iter().map(|n| format!("\"{n}\"")).collect();
            let message = format!("the header has no \"{name}\", but {}", names.join(", "));
            let hint = "name the columns as in the header, or set 'csv.header' = 'false'";
            Err(ConnectorError::configuration(
                message,
                Some(hint.to_string()),
            ))
        }
    }
}

fn push_null(column: &mut Column) -> Result<(), Box<Fault>> {
    if !column.field.is_nullable() {
        return Err(Fault::missing(true).in_field(column.name()));
    }
    column.push_null();
    Ok(())
}

fn without_line_end(record: &[u8]) -> &[u8] {
    let record = record.strip_suffix(b"\n").unwrap_or(record);
    record.strip_suffix(b"\r").unwrap_or(record)
}

impl RecordDecoder for CsvDecoder {
    fn framing(&self) -> Framing {
        match (self.dialect.multiline, self.dialect.has_header) {
            (true, _) => Framing::Whole,
            (false, true) => Framing::Head,
            (false, false) => Framing::Lines,
        }
    }

    fn needs_head(&self) -> bool {
        self.dialect.has_header
    }

    fn head(&mut self, bytes: &[u8], last: bool) -> Result<Option<usize>, ConnectorError> {
        let Some(mut start) = bom_len(bytes, last) else {
            return Ok(None);
        };
        if !self.dialect.has_header {
            return Ok(Some(start));
        }
        loop {
            match split_record(&self.dialect, bytes, start, last, &mut self.fields) {
                // An empty file has no header and needs none.
                _ if start == bytes.len() => return Ok(last.then_some(start)),
                Split::Record { next } => {
                    let is_whole = last || bytes[..next].ends_with(b"\n");
                    if !is_whole {
                        return Ok(None);
                    }
                    self.find_columns(bytes)?;
                    return Ok(Some(next));
                }
                Split::Blank { next } => start = next,
                Split::Incomplete => return Ok(None),
                Split::Broken(fault) => {
                    let message = format!("the header cannot be read: {}", fault.message());
                    return Err(ConnectorError::configuration(message, None));
                }
            }
        }
    }

    fn decode(&mut self, bytes: &[u8], at: u64, max_records: usize, last: bool) -> Consumed {
        let mut done = Consumed::default();
        while done.bytes < bytes.len() && done.records < max_records {
            let start = done.bytes;
            let origin = at + start as u64;
            match split_record(&self.dialect, bytes, start, last, &mut self.fields) {
                Split::Incomplete => break,
                Split::Blank { next } => {
                    done.bytes = next;
                    continue;
                }
                Split::Record { next } => {
                    if !self.gather.fits(next - start) {
                        return Consumed { full: true, ..done };
                    }
                    self.take_record(bytes, start, next, origin);
                    done.bytes = next;
                }
                Split::Broken(fault) => {
                    let (end, next) = line_end(bytes, start, bytes.len());
                    if next == end && !last {
                        break;
                    }
                    self.gather.reject(origin, &bytes[start..end], &fault);
                    done.bytes = next;
                }
            }
            done.records += 1;
        }
        done
    }

    fn decode_one(&mut self, record: &[u8], at: u64) -> bool {
        if !self.gather.fits(record.len()) {
            return false;
        }
        match split_record(&self.dialect, record, 0, true, &mut self.fields) {
            Split::Record { next } if next == record.len() => self.take_record(record, 0, next, at),
            Split::Broken(fault) => self.gather.reject(at, record, &fault),
            _ => self
                .gather
                .reject(at, record, &Fault::malformed("not one record")),
        }
        true
    }

    fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        self.gather.flush()
    }
}
