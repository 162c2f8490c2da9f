//! Where records of a partition are, for those who have to find them again.

use std::sync::Arc;

use thalweg_runtime::connector::{BadReason, BadRecord, Origins};

/// A partition.
#[derive(Debug)]
pub struct Place {
    pub topic: Arc<str>,
    pub partition: i32,
}

impl Place {
    pub fn bad_record(
        &self,
        offset: i64,
        reason: BadReason,
        message: String,
        raw: Option<Vec<u8>>,
    ) -> BadRecord {
        BadRecord {
            reason,
            message,
            raw,
            topic: self.topic.clone(),
            partition: self.partition,
            offset,
            place: format!("{self}, offset {offset}"),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "topic \"{}\", partition {}", self.topic, self.partition)
    }
}

/// Copies of values, for records that turn out to be bad after they were decoded.
#[derive(Debug, Default)]
pub struct Values {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Values {
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }
}

/// What is kept of the records of a batch until its rows have been looked at.
pub struct Kept {
    place: Arc<Place>,
    /// By record.
    offsets: Vec<i64>,
    /// Per row, the position of its record.
    origins: Vec<u64>,
    values: Option<Values>,
}

impl Kept {
    pub fn new(
        place: Arc<Place>,
        offsets: Vec<i64>,
        origins: Vec<u64>,
        values: Option<Values>,
    ) -> Self {
        Self {
            place,
            offsets,
            origins,
            values,
        }
    }
}

impl Origins for Kept {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let record = self.origins[row] as usize;
        let raw = self.values.as_ref().map(|v| v.get(record).to_vec());
        let offset = self.offsets[record];
        self.place.bad_record(offset, reason, message, raw)
    }
}
