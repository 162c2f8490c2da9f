//! What surrounds the values of records, as columns.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, ListArray, StringArray,
    TimestampNanosecondArray, UInt64Array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute;
use thalweg_runtime::connector::{BadReason, ConnectorError};

use super::place::Place;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// Why a record's timestamp is no event time.
pub fn time_fault(millis: Option<i64>) -> Option<(BadReason, &'static str)> {
    match millis {
        None => Some((BadReason::EventTime, "the record has no timestamp")),
        Some(millis) if millis.checked_mul(NANOS_PER_MILLI).is_none() => Some((
            BadReason::EventTime,
            "the record's timestamp is out of range",
        )),
        Some(_) => None,
    }
}

/// Of the records of a batch, some of which have become rows.
pub struct Surroundings<'a> {
    place: &'a Place,
    offsets: &'a [i64],
    /// Milliseconds.
    timestamps: Vec<Option<i64>>,
    keys: BinaryArray,
    headers: ListArray,
    /// Per row, the position of its record.
    origins: &'a [u64],
}

impl<'a> Surroundings<'a> {
    pub fn new(
        place: &'a Place,
        offsets: &'a [i64],
        timestamps: Vec<Option<i64>>,
        keys: BinaryArray,
        headers: ListArray,
        origins: &'a [u64],
    ) -> Self {
        Self {
            place,
            offsets,
            timestamps,
            keys,
            headers,
            origins,
        }
    }

    /// Event times of the rows, in ns. Every record has a timestamp in range, see [`time_fault`].
    pub fn times(&self) -> ScalarBuffer<i64> {
        let nanos = |&record: &u64| self.timestamps[record as usize].map_or(0, nanos);
        self.origins.iter().map(nanos).collect()
    }

    /// A column of the rows by the key of its metadata.
    pub fn column(&self, key: &str) -> Result<ArrayRef, ConnectorError> {
        let (rows, n_rows) = (self.origins.iter().map(|&o| o as usize), self.origins.len());
        Ok(match key {
            "offset" | "offset_id" => {
                Arc::new(Int64Array::from_iter_values(rows.map(|r| self.offsets[r])))
            }
            "timestamp" => {
                let times = rows.map(|r| self.timestamps[r].map(nanos));
                Arc::new(TimestampNanosecondArray::from_iter(times).with_timezone("+00:00"))
            }
            "partition" => Arc::new(Int32Array::from_value(self.place.partition, n_rows)),
            "topic" => {
                let topic = std::iter::repeat_n(&*self.place.topic, n_rows);
                Arc::new(StringArray::from_iter_values(topic))
            }
            "key" => self.of_rows(Arc::new(self.keys.clone()))?,
            "headers" => self.of_rows(Arc::new(self.headers.clone()))?,
            other => {
                let message = format!("topics have no metadata '{other}'");
                return Err(ConnectorError::configuration(message, None));
            }
        })
    }

    /// From one value a record to one value a row.
    fn of_rows(&self, records: ArrayRef) -> Result<ArrayRef, ConnectorError> {
        let as_they_are = self.origins.len() == records.len()
            && self.origins.iter().zip(0u64..).all(|(a, b)| *a == b);
        if as_they_are {
            return Ok(records);
        }
        let rows = UInt64Array::from(self.origins.to_vec());
        Ok(compute::take(&records, &rows, None)?)
    }
}

fn nanos(millis: i64) -> i64 {
    millis.saturating_mul(NANOS_PER_MILLI)
}
