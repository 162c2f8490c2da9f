//! Change batches: the unit on every edge of a dataflow.
//!
//! A change batch is a Z-set delta (Budiu et al., DBSP, VLDB 2023): rows with signed
//! multiplicities. A batch without diffs is append-only, every row counting +1.

use arrow::array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array,
};
use arrow::buffer::ScalarBuffer;
use arrow::compute;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::marks::Origin;

/// Rows, one event time per row and an optional multiplicity per row.
///
/// Invariant: `times.len()`, `diffs.len()` (where present) and `rows.num_rows()` are equal.
#[derive(Debug, Clone)]
pub struct ChangeBatch {
    rows: RecordBatch,
    times: ScalarBuffer<i64>,
    diffs: Option<ScalarBuffer<i64>>,
    expiry: bool,
    origin: Option<Origin>,
}

impl ChangeBatch {
    /// An append-only batch: every row is an insertion. `times` are event times in nanoseconds
    /// since the UTC epoch, one a row.
    ///
    /// Panics when the lengths differ: that is a bug of the caller, never of the input.
    pub fn append(rows: RecordBatch, times: ScalarBuffer<i64>) -> Self {
        Self::new(rows, times, None)
    }

    /// A batch with a multiplicity per row, or insertions only where `diffs` is `None`.
    pub fn new(
        rows: RecordBatch,
        times: ScalarBuffer<i64>,
        diffs: Option<ScalarBuffer<i64>>,
    ) -> Self {
        assert_eq!(rows.num_rows(), times.len(), "one event time per row");
        if let Some(diffs) = &diffs {
            assert_eq!(rows.num_rows(), diffs.len(), "one diff per row");
        }
        Self {
            rows,
            times,
            diffs,
            expiry: false,
            origin: None,
        }
    }

    /// Marks the batch as deletions by TTL. A sink pairs them with nothing: a key that expires and
    /// comes back in the same epoch is a delete and a create, never an update (semantics 5.3).
    pub fn with_expiry(mut self, expiry: bool) -> Self {
        self.expiry = expiry;
        self
    }

    /// Lets the batch carry where its rows come from, until its columns are others.
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.origin = Some(origin);
        self
    }

    /// Where the rows come from, where the batch's maker says so.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    pub fn rows(&self) -> &RecordBatch {
        &self.rows
    }

    /// Event times in nanoseconds since the UTC epoch.
    pub fn times(&self) -> &ScalarBuffer<i64> {
        &self.times
    }

    /// Multiplicities; `None` when every row is +1.
    pub fn diffs(&self) -> Option<&ScalarBuffer<i64>> {
        self.diffs.as_ref()
    }

    pub fn is_expiry(&self) -> bool {
        self.expiry
    }

    pub fn diff(&self, row: usize) -> i64 {
        self.diffs.as_ref().map_or(1, |d| d[row])
    }

    pub fn n_rows(&self) -> usize {
        self.rows.num_rows()
    }

    pub fn is_empty(&self) -> bool {
        self.n_rows() == 0
    }

    pub fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    /// The same changes with other columns, computed row by row from these.
    pub fn with_rows(&self, rows: RecordBatch) -> Self {
        let mut out = Self::new(rows, self.times.clone(), self.diffs.clone());
        out.expiry = self.expiry;
        out
    }

    /// The same changes with other event times.
    pub fn with_times(&self, times: ScalarBuffer<i64>) -> Self {
        let mut out = Self::new(self.rows.clone(), times, self.diffs.clone());
        out.expiry = self.expiry;
        out
    }

    pub fn into_parts(self) -> (RecordBatch, ScalarBuffer<i64>, Option<ScalarBuffer<i64>>) {
        (self.rows, self.times, self.diffs)
    }

    /// The rows for which `mask` is true; null counts as false.
    pub fn filter(&self, mask: &BooleanArray) -> Result<Self, ArrowError> {
        if mask.true_count() == mask.len() {
            return Ok(self.clone());
        }
        let rows = compute::filter_record_batch(&self.rows, mask)?;
        let times = filter_i64(&self.times, mask)?;
        let diffs = self
            .diffs
            .as_ref()
            .map(|d| filter_i64(d, mask))
            .transpose()?;
        Ok(Self {
            rows,
            times,
            diffs,
            expiry: self.expiry,
            origin: self.origin.clone(),
        })
    }

    /// The rows at `indices`, in that order.
    pub fn take(&self, indices: &UInt32Array) -> Result<Self, ArrowError> {
        let columns = self
            .rows
            .columns()
            .iter()
            .map(|c| compute::take(c, indices, None))
            .collect::<Result<Vec<_>, _>>()?;
        let rows = record_batch(self.schema(), columns, indices.len())?;
        let gather = |buf: &ScalarBuffer<i64>| -> ScalarBuffer<i64> {
            indices.values().iter().map(|&i| buf[i as usize]).collect()
        };
        let diffs = self.diffs.as_ref().map(&gather);
        Ok(Self {
            rows,
            times: gather(&self.times),
            diffs,
            expiry: self.expiry,
            origin: self.origin.clone(),
        })
    }

    pub fn slice(&self, offset: usize, len: usize) -> Self {
        Self {
            rows: self.rows.slice(offset, len),
            times: self.times.slice(offset, len),
            diffs: self.diffs.as_ref().map(|d| d.slice(offset, len)),
            expiry: self.expiry,
            origin: self.origin.clone(),
        }
    }

    /// Bytes that the batch keeps alive, as Arrow accounts for them.
    pub fn memory_bytes(&self) -> usize {
        self.rows.get_array_memory_size()
            + self.times.len() * 8
            + self.diffs.as_ref().map_or(0, |d| d.len() * 8)
    }
}

/// A record batch of `n_rows` rows that may have no columns, as `count(*)` needs.
pub fn record_batch(
    schema: SchemaRef,
    columns: Vec<ArrayRef>,
    n_rows: usize,
) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_new_with_options(
        schema,
        columns,
        &RecordBatchOptions::new().with_row_count(Some(n_rows)),
    )
}

fn filter_i64(
    buf: &ScalarBuffer<i64>,
    mask: &BooleanArray,
) -> Result<ScalarBuffer<i64>, ArrowError> {
    let array = Int64Array::new(buf.clone(), None);
    let kept = compute::filter(&array, mask)?;
    let kept = kept
        .as_any()
        .downcast_ref::<Int64Array>()
        .expect("filter keeps the type");
    Ok(kept.values().clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{AsArray, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use std::sync::Arc;

    fn batch() -> ChangeBatch {
        let schema = Arc::new(Schema::new(vec![Field::new("k", DataType::Utf8, true)]));
        let rows = RecordBatch::try_new(
            schema,
            vec![Arc::new(StringArray::from(vec!["a", "b", "c"]))],
        )
        .unwrap();
        ChangeBatch::new(rows, vec![1, 2, 3].into(), Some(vec![1, -1, 2].into())).with_expiry(true)
    }

    #[test]
    fn filter_and_take_keep_times_diffs_and_the_expiry_mark_in_step() {
        let kept = batch()
            .filter(&BooleanArray::from(vec![Some(true), None, Some(true)]))
            .unwrap();
        assert_eq!(
            (kept.times().as_ref(), kept.diffs().unwrap().as_ref()),
            (&[1, 3][..], &[1, 2][..])
        );
        assert!(kept.is_expiry());

        let taken = batch().take(&UInt32Array::from(vec![2, 0])).unwrap();
        assert_eq!(
            taken
                .rows()
                .column(0)
                .as_string::<i32>()
                .iter()
                .collect::<Vec<_>>(),
            [Some("c"), Some("a")]
        );
        assert_eq!((taken.diff(0), taken.times()[1]), (2, 1));
    }
}
