//! What every decoder of records keeps between two flushes.

use arrow::datatypes::SchemaRef;
use thalweg_dataflow::change::record_batch;
use thalweg_runtime::connector::{BadReason, ConnectorError};

use super::column::{Column, text};
use super::decode::{BadSpan, Decoded};
use super::fault::Fault;

/// Rows, their origins and rejected records.
///
/// Invariant between two records: every column has as many values as there are origins.
pub struct Gather {
    schema: SchemaRef,
    pub columns: Vec<Column>,
    origins: Vec<u64>,
    bad: Vec<BadSpan>,
    /// Bytes of the records gathered: no column can hold more text than these.
    n_bytes: usize,
}

impl Gather {
    pub fn new(schema: SchemaRef) -> Result<Self, ConnectorError> {
        let columns = schema
            .fields()
            .iter()
            .map(Column::new)
            .collect::<Result<_, _>>()?;
        Ok(Self {
            schema,
            columns,
            origins: Vec::new(),
            bad: Vec::new(),
            n_bytes: 0,
        })
    }

    #[inline]
    pub fn n_rows(&self) -> usize {
        self.origins.len()
    }

    /// Whether `len` more bytes of records fit before a flush. The first always do.
    pub fn fits(&self, len: usize) -> bool {
        self.n_bytes == 0 || self.n_bytes + len <= text::MAX_BYTES
    }

    /// Completes a row whose values are all pushed.
    #[inline]
    pub fn accept(&mut self, origin: u64, n_bytes: usize) {
        self.origins.push(origin);
        self.n_bytes += n_bytes;
    }

    /// Counts the bytes of a record whose rows were accepted without them.
    pub fn add_bytes(&mut self, n_bytes: usize) {
        self.n_bytes += n_bytes;
    }

    /// Takes back whatever a record has pushed.
    #[cold]
    pub fn truncate(&mut self) {
        let n_rows = self.n_rows();
        self.columns.iter_mut().for_each(|c| c.truncate(n_rows));
    }

    /// Takes back whatever a record has pushed, and keeps it as rejected.
    #[cold]
    pub fn reject(&mut self, origin: u64, raw: &[u8], fault: &Fault) {
        self.truncate();
        self.n_bytes += raw.len();
        let (reason, message) = (fault.reason, fault.message());
        self.bad.push(BadSpan {
            origin,
            raw: raw.to_vec(),
            reason,
            message,
        });
    }

    /// Rejects a record that no column can hold.
    #[cold]
    pub fn reject_too_large(&mut self, origin: u64, raw: &[u8]) {
        let message = format!("a record of {} bytes is too large", raw.len());
        self.reject(origin, raw, &Fault::new(BadReason::TooLarge, message));
    }

    #[cold]
    pub fn reject_encoding(&mut self, origin: u64, raw: &[u8]) {
        let valid = std::str::from_utf8(raw)
            .err()
            .map_or(raw.len(), |e| e.valid_up_to());
        let message = format!("byte {valid} of the record is not UTF-8");
        self.reject(origin, raw, &Fault::new(BadReason::Encoding, message));
    }

    pub fn flush(&mut self) -> Result<Decoded, ConnectorError> {
        let n_rows = self.n_rows();
        let columns = self
            .columns
            .iter_mut()
            .map(Column::take)
            .collect::<Result<Vec<_>, _>>()?;
        let origins = std::mem::replace(&mut self.origins, Vec::with_capacity(n_rows));
        self.n_bytes = 0;
        Ok(Decoded {
            rows: record_batch(self.schema.clone(), columns, n_rows)?,
            origins,
            bad: std::mem::take(&mut self.bad),
            marks: None,
        })
    }
}
