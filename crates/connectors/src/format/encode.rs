//! The contract of encoding: columns in, bytes out.

use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

/// Writes rows, or changes, of one schema into a buffer.
///
/// Everything is appended to `out`, which the caller empties as it likes. Order of calls for each
/// file or stream: `begin`, then `rows` or `changes` any number of times, then `finish`; then `begin` again
/// for the next.
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
