//! Records that cannot be used: counted, and done with as their table says (semantics 8.1).
//!
//! Used by sources, and by the operators that find out only from their state that a record cannot be
//! applied. Those hand what is to be kept to their stage, which writes it to the dead-letter table.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    ArrayRef, BinaryArray, Int32Array, Int64Array, StringArray, TimestampNanosecondArray,
};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::table::{BadData, SourceSpec, dead_letter_schema};

use crate::connector::BadRecord;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;

/// Counts rejected records and gives back those that a dead-letter table is to have.
///
/// Errors: `BadRecord` where the table's policy is to fail, with the first of them.
pub fn reject(
    spec: &SourceSpec,
    metrics: &JobMetrics,
    bad: Vec<BadRecord>,
) -> Result<Vec<BadRecord>, RuntimeError> {
    for record in &bad {
        metrics.count_bad(&spec.table, record.reason);
    }
    match spec.bad_data {
        BadData::Fail => match bad.into_iter().min_by_key(|r| r.offset) {
            None => Ok(Vec::new()),
            Some(first) => Err(RuntimeError::BadRecord {
                table: spec.table.clone(),
                record: Box::new(first),
            }),
        },
        BadData::Drop => {
            for record in &bad {
                tracing::info!(table = %spec.table, place = %record.place, "record dropped: {}", record.message);
            }
            Ok(Vec::new())
        }
        BadData::DeadLetter(_) => Ok(bad),
    }
}

/// Rejected records as rows of [`dead_letter_schema`]; `now` is the time of rejection, ns.
pub fn dead_letters(bad: &[BadRecord], now: i64) -> Result<ChangeBatch, RuntimeError> {
    let raw: BinaryArray = bad.iter().map(|r| r.raw.as_deref()).collect();
    let reason = StringArray::from_iter_values(
        bad.iter()
            .map(|r| format!("{}: {}", r.reason.as_str(), r.message)),
    );
    let topic = StringArray::from_iter_values(bad.iter().map(|r| &*r.topic));
    let partition = Int32Array::from_iter_values(bad.iter().map(|r| r.partition));
    let offset = Int64Array::from_iter_values(bad.iter().map(|r| r.offset));
    let time = TimestampNanosecondArray::from_value(now, bad.len()).with_timezone("+00:00");
    let columns: Vec<ArrayRef> = vec![
        Arc::new(raw),
        Arc::new(reason),
        Arc::new(topic),
        Arc::new(partition),
        Arc::new(offset),
        Arc::new(time),
    ];
    let rows = RecordBatch::try_new(dead_letter_schema(), columns)?;
    Ok(ChangeBatch::append(
        rows,
        std::iter::repeat_n(now, bad.len()).collect(),
    ))
}

/// Records on their way from the operators of a task to its dead-letter edge.
#[derive(Debug, Clone, Default)]
pub struct Rejected(Arc<Mutex<Vec<BadRecord>>>);

impl Rejected {
    pub fn add(&self, bad: Vec<BadRecord>) {
        if !bad.is_empty() {
            self.locked().extend(bad);
        }
    }

    pub fn take(&self) -> Vec<BadRecord> {
        std::mem::take(&mut *self.locked())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Vec<BadRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
