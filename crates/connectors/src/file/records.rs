//! Reads the records of one file, or of a share of its stripes.

use std::fs::File;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, StringArray};
use arrow::compute;
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use memchr::memchr;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::table::{MetadataColumn, SourceSpec};
use thalweg_runtime::connector::{
    BadReason, BadRecord, BoxFuture, ConnectorError, Offset, Origins, Read, Records, SplitReader,
};

use super::compression::Compression;
use super::input::Input;
use super::place::Place;
use super::split::Position;
use super::stripe::Stripes;
use super::window::{OVERSHOOT, Window};
use crate::format::{Decoded, Framing, RecordDecoder};

/// At most this many records and about this many bytes a read, whoever asks for more.
const MAX_RECORDS: usize = 8192;
const MAX_BYTES: u64 = 8 << 20;

/// What a reader is made of.
pub struct Opening {
    pub place: Arc<Place>,
    pub file: File,
    pub compression: Compression,
    pub stripes: Stripes,
    pub decoder: Box<dyn RecordDecoder>,
    /// The largest record, line end included, in bytes.
    pub max_record_bytes: usize,
}

/// Reads records in place out of large blocks.
///
/// All I/O is plain blocking reads of such blocks within a poll: the page cache answers faster than another
/// thread could be asked, and a read that never waits cannot be dropped half done.
pub struct RecordReader {
    spec: Arc<SourceSpec>,
    schema: SchemaRef,
    place: Arc<Place>,
    input: Input,
    window: Window,
    stripes: Stripes,
    decoder: Box<dyn RecordDecoder>,
    is_end: bool,
    n_compressed: u64,
}

/// What one read has gathered so far.
#[derive(Default)]
struct Gathered {
    records: usize,
    bytes: u64,
    bad: Vec<BadRecord>,
}

impl RecordReader {
    /// At `position`. Errors: the file cannot be read, or its beginning is not what the format needs.
    pub fn open(
        opening: Opening,
        spec: Arc<SourceSpec>,
        position: Position,
    ) -> Result<Self, ConnectorError> {
        let Opening {
            place,
            file,
            compression,
            stripes,
            decoder,
            max_record_bytes,
        } = opening;
        let failed = |e| ConnectorError::io(read_error(&place), e);
        let len = file.metadata().map_err(failed)?.len();
        let input = Input::open(file, compression).map_err(failed)?;
        let len = input.n_compressed().is_none().then_some(len);
        let mut reader = Self {
            schema: spec.record_schema(),
            spec,
            place,
            input,
            window: Window::new(max_record_bytes, len),
            stripes,
            decoder,
            is_end: position.is_end,
            n_compressed: 0,
        };
        reader.read_head()?;
        let at = position.at.max(reader.window.at());
        reader.window.seek(at);
        Ok(reader)
    }

    fn read_head(&mut self) -> Result<(), ConnectorError> {
        loop {
            let (bytes, last) = (self.window.bytes(), self.window.is_last());
            let head = self
                .decoder
                .head(bytes, last)
                .map_err(|e| in_file(&self.place, e))?;
            if head.is_some() || last {
                self.window.consume(head.unwrap_or(0));
                return Ok(());
            }
            if self.window.is_full() {
                let message = format!(
                    "the first line of \"{}\" is longer than max_record_bytes",
                    self.place.name
                );
                return Err(ConnectorError::configuration(message, None));
            }
            // A reader that will jump to its first stripe needs no more of this one.
            let wanted = if self.stripes.of == 1 {
                usize::MAX
            } else {
                OVERSHOOT
            };
            self.fill(wanted)?;
        }
    }

    fn fill(&mut self, wanted: usize) -> Result<(), ConnectorError> {
        self.window
            .fill(&mut self.input, wanted)
            .map_err(|e| ConnectorError::io(read_error(&self.place), e))
    }

    fn read_now(&mut self, max_rows: usize) -> Result<Read, ConnectorError> {
        let max_records = max_rows.clamp(1, MAX_RECORDS);
        let mut gathered = Gathered::default();
        let is_enough =
            |g: &Gathered| g.records >= max_records || (g.records > 0 && g.bytes >= MAX_BYTES);
        while !self.is_end && !is_enough(&gathered) {
            if !self.enter_stripe()? {
                self.is_end = true;
                break;
            }
            if self.decode(max_records, &mut gathered)? {
                break;
            }
        }
        if gathered.records == 0 {
            return Ok(Read::End);
        }
        self.flush(gathered).map(Read::Records)
    }

    /// Moves to the next record of these stripes, if it is not there already. False: there is none.
    fn enter_stripe(&mut self) -> Result<bool, ConnectorError> {
        while !self.stripes.owns(self.window.at()) {
            let begin = self.stripes.next(self.window.at());
            // The line to which the last byte before the stripe belongs is another reader's.
            self.window.seek(begin - 1);
            self.skip_line()?;
            if self.window.is_exhausted() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Drops the bytes up to the next line end, it included. A line of any length takes no memory.
    fn skip_line(&mut self) -> Result<(), ConnectorError> {
        loop {
            let bytes = self.window.bytes();
            if let Some(end) = memchr(b'\n', bytes) {
                self.window.consume(end + 1);
                return Ok(());
            }
            self.window.consume(bytes.len());
            if self.window.is_last() {
                return Ok(());
            }
            self.fill(self.wanted())?;
        }
    }

    /// How many bytes to read: the rest of the stripe and a little more, for the end of its last line.
    fn wanted(&self) -> usize {
        let end = self.window.at() + self.window.bytes().len() as u64;
        let rest = self.stripes.end(self.window.at()).saturating_sub(end);
        usize::try_from(rest)
            .unwrap_or(usize::MAX)
            .saturating_add(OVERSHOOT)
    }

    /// Decodes what is in memory, or else reads more. True: the decoder is full.
    fn decode(
        &mut self,
        max_records: usize,
        gathered: &mut Gathered,
    ) -> Result<bool, ConnectorError> {
        let at = self.window.at();
        let (bytes, is_last) = whole_records(&self.window, self.stripes);
        let done = self
            .decoder
            .decode(bytes, at, max_records - gathered.records, is_last);
        self.window.consume(done.bytes);
        gathered.records += done.records;
        gathered.bytes += done.bytes as u64;
        if done.full || done.bytes > 0 {
            return Ok(done.full);
        }
        if self.window.is_last() {
            self.end(gathered);
        } else if self.window.is_full() {
            self.reject_too_large(gathered)?;
            gathered.bytes += self.window.at() - at;
        } else {
            self.fill(self.wanted())?;
        }
        Ok(false)
    }

    /// Rejects the record that fills the window, and goes on behind its line.
    ///
    /// Where a record may have line ends, it is more likely a quote that was never closed than a record of
    /// this size: only the line with the quote is lost, and those behind it are tried as records.
    fn reject_too_large(&mut self, gathered: &mut Gathered) -> Result<(), ConnectorError> {
        let bytes = self.window.bytes();
        if self.decoder.framing() == Framing::Lengths {
            let place = self.place.describe(self.window.at());
            return Err(ConnectorError::configuration(
                format!("{place}: the record is larger than max_record_bytes ({} bytes)", bytes.len()),
                Some("raise max_record_bytes; if the file is damaged, nothing behind this can be read".to_string()),
            ));
        }
        let mut message = format!(
            "the record is larger than max_record_bytes ({} bytes)",
            bytes.len()
        );
        let mut raw = None;
        if let (Framing::Whole, Some(end)) = (self.decoder.framing(), memchr(b'\n', bytes)) {
            message.push_str(", or a quote is missing");
            raw = Some(bytes[..end].to_vec());
        }
        self.reject(gathered, BadReason::TooLarge, message, raw);
        self.skip_line()
    }

    /// The file ends here; what is left over, if anything, is no record.
    fn end(&mut self, gathered: &mut Gathered) {
        self.is_end = true;
        let rest = self.window.bytes().to_vec();
        let message = match self.window.damage() {
            Some(damage) => damage.to_string(),
            None if rest.is_empty() => return,
            None => "the file ends within a record".to_string(),
        };
        self.reject(gathered, BadReason::Malformed, message, Some(rest));
        self.window.consume(self.window.bytes().len());
    }

    /// Rejects the record at the window's beginning.
    fn reject(
        &self,
        gathered: &mut Gathered,
        reason: BadReason,
        message: String,
        raw: Option<Vec<u8>>,
    ) {
        gathered.records += 1;
        gathered
            .bad
            .push(self.bad_record(self.window.at(), reason, message, raw));
    }

    fn bad_record(
        &self,
        at: u64,
        reason: BadReason,
        message: String,
        raw: Option<Vec<u8>>,
    ) -> BadRecord {
        bad_record(&self.place, self.stripes.index, at, reason, message, raw)
    }

    fn flush(&mut self, gathered: Gathered) -> Result<Records, ConnectorError> {
        let Decoded {
            rows,
            origins,
            bad,
            marks,
        } = self.decoder.flush()?;
        let decoded_bad = bad
            .into_iter()
            .map(|b| self.bad_record(b.origin, b.reason, b.message, Some(b.raw)));
        let mut bad: Vec<_> = decoded_bad.chain(gathered.bad).collect();
        bad.sort_by_key(|b| b.offset);
        let rows = self.with_metadata(rows, &origins)?;
        let n_bytes = self.n_bytes(gathered.bytes);
        let can_reread = self.decoder.framing().is_line();
        let origins = Arc::new(Positions {
            place: self.place.clone(),
            part: self.stripes.index,
            origins,
            can_reread,
        });
        Ok(Records {
            rows,
            times: None,
            marks,
            origins,
            bad,
            n_bytes,
        })
    }

    fn with_metadata(
        &self,
        rows: RecordBatch,
        origins: &[u64],
    ) -> Result<RecordBatch, ConnectorError> {
        if self.spec.metadata.is_empty() {
            return Ok(rows);
        }
        let n_rows = rows.num_rows();
        let mut columns = rows.columns().to_vec();
        for column in &self.spec.metadata {
            columns.push(metadata_column(column, &self.place.name, origins)?);
        }
        Ok(record_batch(self.schema.clone(), columns, n_rows)?)
    }

    /// Bytes of the file, compressed where it is.
    fn n_bytes(&mut self, decoded: u64) -> u64 {
        let Some(n_compressed) = self.input.n_compressed() else {
            return decoded;
        };
        n_compressed - std::mem::replace(&mut self.n_compressed, n_compressed)
    }
}

/// The bytes in memory that the decoder may take, which are whole records or lack only the end of their
/// last one; and whether nothing follows them.
fn whole_records(window: &Window, stripes: Stripes) -> (&[u8], bool) {
    let bytes = window.bytes();
    // The stripe's last line is the one to which its last byte belongs.
    let last_byte =
        usize::try_from(stripes.end(window.at()) - 1 - window.at()).unwrap_or(usize::MAX);
    match bytes.get(last_byte..).and_then(|rest| memchr(b'\n', rest)) {
        Some(end) => (&bytes[..last_byte + end + 1], false),
        None => (bytes, window.is_last() && window.damage().is_none()),
    }
}

impl SplitReader for RecordReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move { self.read_now(max_rows) })
    }

    fn offset(&self) -> Offset {
        Position {
            at: self.window.at(),
            is_end: self.is_end,
        }
        .encode()
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

/// A column of what surrounds records: the file's name, or where in it they begin.
pub fn metadata_column(
    column: &MetadataColumn,
    name: &str,
    origins: &[u64],
) -> Result<ArrayRef, ConnectorError> {
    let array: ArrayRef = match column.key.as_str() {
        "filename" => Arc::new(StringArray::from_iter_values(std::iter::repeat_n(
            name,
            origins.len(),
        ))),
        "offset" => Arc::new(Int64Array::from_iter_values(
            origins.iter().map(|&at| at as i64),
        )),
        key => {
            return Err(ConnectorError::configuration(
                format!("files have no metadata '{key}'"),
                None,
            ));
        }
    };
    Ok(compute::cast(&array, column.field.data_type())?)
}

struct Positions {
    place: Arc<Place>,
    part: u64,
    origins: Vec<u64>,
    can_reread: bool,
}

impl Origins for Positions {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let at = self.origins[row];
        let raw = if self.can_reread {
            self.place.line_at(at)
        } else {
            None
        };
        bad_record(&self.place, self.part, at, reason, message, raw)
    }
}

fn bad_record(
    place: &Place,
    part: u64,
    at: u64,
    reason: BadReason,
    message: String,
    raw: Option<Vec<u8>>,
) -> BadRecord {
    BadRecord {
        reason,
        message,
        raw,
        topic: place.name.clone(),
        partition: part as i32,
        offset: at as i64,
        place: place.describe(at),
    }
}

fn read_error(place: &Place) -> String {
    format!("read \"{}\"", place.name)
}

/// The same error, naming the file.
fn in_file(place: &Place, error: ConnectorError) -> ConnectorError {
    match error {
        ConnectorError::Configuration { message, hint } => ConnectorError::Configuration {
            message: format!("file \"{}\": {message}", place.name),
            hint,
        },
        ConnectorError::Io { what, source } => {
            ConnectorError::io(format!("file \"{}\": {what}", place.name), source)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
