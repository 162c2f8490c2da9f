//! The contract of encoding: columns in, bytes out.

use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

/// Encoded records one by one, for a sink whose messages hold one each.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Where each record ends in `bytes`.
    ends: Vec<usize>,
}

impl Messages {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The record at `index`.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Bytes of all records.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// Where encoders put record after record: into a stream or into messages.
pub(crate) trait Records {
    /// The buffer to which the record at hand is appended.
    fn open(&mut self) -> &mut Vec<u8>;

    /// Completes that record.
    fn end(&mut self);
}

impl Records for Messages {
    fn open(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    fn end(&mut self) {
        self.ends.push(self.bytes.len());
    }
}

/// Records as lines of a stream.
pub(crate) struct Lines<'a>(pub &'a mut Vec<u8>);

impl Records for Lines<'_> {
    fn open(&mut self) -> &mut Vec<u8> {
        self.0
    }

    fn end(&mut self) {
        self.0.push(b'\n');
    }
}

/// Writes rows, or changes, of one schema into a buffer.
///
/// Everything is appended to `out`, which the caller empties as it likes. Order of calls for each
/// file or stream: `begin`, then `rows` or `changes` any number of times, then `finish`; then `begin` again
/// for the next. Or instead of all these, `messages` any number of times.
pub trait Encoder: Send {
    /// What precedes the first record.
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError>;

    /// Append-only rows.
    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError>;

    /// Changes of an updating result. Only formats that can express them are ever given any.
    fn changes(&mut self, changes: &PairedChanges, out: &mut Vec<u8>)
    -> Result<(), ConnectorError>;

    /// What follows the last record.
    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError>;

    /// Appends one record for each row or change, in their order, without what keeps records apart in a stream
    /// (line ends, lengths). Errors: a format of files has no such records.
    fn messages(&mut self, input: &SinkInput<'_>, out: &mut Messages)
    -> Result<(), ConnectorError>;

    /// What a sink was given, whichever it is.
    fn write(&mut self, input: &SinkInput<'_>, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        match input {
            SinkInput::Rows(rows) => self.rows(rows, out),
            SinkInput::Changes(changes) => self.changes(changes, out),
        }
    }
}

/// The error of a format that cannot express updates and deletes.
pub(crate) fn append_only(format: &str) -> ConnectorError {
    ConnectorError::configuration(
        format!("format '{format}' cannot express updates and deletes"),
        Some("use format = 'debezium_json'".to_string()),
    )
}

/// The error of a format of whole files, asked for single records.
pub(crate) fn whole_files(format: &str) -> ConnectorError {
    let message = format!("format '{format}' is for files, not for messages");
    ConnectorError::configuration(message, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_told_apart_by_their_ends() {
        let mut messages = Messages::default();
        for text in ["one", "", "three\n"] {
            messages.open().extend_from_slice(text.as_bytes());
            messages.end();
        }
        assert_eq!(messages.len(), 3);
        assert_eq!(
            messages.iter().collect::<Vec<_>>(),
            [&b"one"[..], b"", b"three\n"]
        );
        messages.clear();
        assert!(messages.is_empty() && messages.iter().next().is_none());
    }
}
