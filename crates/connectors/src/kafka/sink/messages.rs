//! Encoded records one by one.

use memchr::memchr_iter;
use thalweg_runtime::connector::{ConnectorError, SinkInput};

use crate::format::Encoder;

/// Records of a format that writes one a line, and in each of them no line end.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    /// Where each record's line end is in `bytes`.
    ends: Vec<usize>,
}

impl Messages {
    /// Replaces what is in here by one record for each row or change, in their order.
    pub fn encode(
        &mut self,
        encoder: &mut dyn Encoder,
        input: &SinkInput<'_>,
    ) -> Result<(), ConnectorError> {
        self.bytes.clear();
        self.ends.clear();
        encoder.write(input, &mut self.bytes)?;
        self.ends.extend(memchr_iter(b'\n', &self.bytes));
        let n_records = match input {
            SinkInput::Rows(rows) => rows.num_rows(),
            SinkInput::Changes(changes) => changes.changes.len(),
        };
        if self.ends.len() == n_records {
            return Ok(());
        }
        let message = format!("{n_records} rows became {} records", self.ends.len());
        Err(ConnectorError::Encode(message))
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The record at `index`.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] + 1);
        &self.bytes[start..self.ends[index]]
    }
}
