//! Records of a keyed changelog: they pass on as they are, with their marks.
//!
//! A record that holds a whole row must be good for a row of the table: it has an event time, and every
//! column can be computed. Of a deletion only the key is meant. A row that lacks values which stay as they
//! are is looked at again where they are known, in [`crate::operators`].

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute;
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::marks::{ChangeOp, Origin};
use thalweg_dataflow::table::EventTimeSource;

use super::{Ingest, Ingested, Kept, evaluate, nanos};
use crate::clock;
use crate::connector::{BadReason, BadRecord, Marks, Origins, Records};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;

/// The event time of a record that has none, because it holds no whole row.
pub const UNTIMED: i64 = i64::MIN;

/// What the batches of a changelog carry as their [`Origin`].
pub struct ReadOrigins(pub Arc<dyn Origins>);

impl Ingest {
    /// The records in the source's emitted schema. Errors: as of [`Ingest::ingest`].
    pub(super) fn ingest_changes(&self, records: Records) -> Result<Ingested, RuntimeError> {
        let Records {
            rows,
            times,
            marks,
            origins,
            mut bad,
            n_bytes,
        } = records;
        let now = clock::now_nanos();
        let n_rows = rows.num_rows();
        let marks =
            marks.unwrap_or_else(|| Marks::of(std::iter::repeat_n(ChangeOp::Write, n_rows)));
        let (whole, rest): (Vec<u32>, Vec<u32>) =
            (0..n_rows as u32).partition(|&row| has_whole_row(&marks, row as usize));

        let mut kept = Kept::of(&rows, times.as_ref(), &whole)?;
        let event_times = self.event_times(&mut kept, now, origins.as_ref(), &mut bad)?;
        kept.times = Some(event_times);
        self.computed_columns(&mut kept, origins.as_ref(), &mut bad)?;
        let watermark = self.claimed_watermark(&kept)?;

        let rest = self.applicable(&rows, &marks, rest, origins.as_ref(), &mut bad)?;
        let mut all = vec![None; n_rows];
        let whole = kept
            .origin_rows
            .as_ref()
            .map_or(whole, |ids| ids.values().to_vec());
        let whole_times = kept.times.unwrap_or_default();
        whole
            .iter()
            .zip(whole_times.iter())
            .for_each(|(&row, &t)| all[row as usize] = Some(t));
        let rest_times = self.times_where_known(&rows, times.as_ref(), &rest, now)?;
        rest.iter()
            .zip(rest_times)
            .for_each(|(&row, t)| all[row as usize] = Some(t));
        let batch = self.with_marks(rows, marks, &all)?;
        JobMetrics::add(&self.metrics.rows_in, batch.n_rows());
        JobMetrics::add(&self.metrics.bytes_in, n_bytes as usize);
        Ok(Ingested {
            batch: batch.with_origin(Origin(Arc::new(ReadOrigins(origins)))),
            watermark,
            dead_letters: self.reject(bad, now)?,
        })
    }

    /// Those of `rest`, which hold no whole rows, that can be applied: a change of one row must name its key,
    /// and where records have no single order, nobody can say which rows came before a TRUNCATE.
    fn applicable(
        &self,
        rows: &RecordBatch,
        marks: &Marks,
        rest: Vec<u32>,
        origins: &dyn Origins,
        bad: &mut Vec<BadRecord>,
    ) -> Result<Vec<u32>, RuntimeError> {
        let key: Vec<(&str, &ArrayRef)> = self
            .spec
            .primary_key
            .iter()
            .filter_map(|&k| {
                let name = self.spec.schema.field(k).name().as_str();
                Some((name, rows.column_by_name(name)?))
            })
            .collect();
        let mut kept = Vec::with_capacity(rest.len());
        for row in rest {
            let at = row as usize;
            let fault = match ChangeOp::of(marks.ops.value(at)) {
                Some(ChangeOp::Truncate) if self.in_order => None,
                Some(ChangeOp::Truncate) => Some((
                    BadReason::Inapplicable,
                    "a TRUNCATE stands in no order to the changes in other splits of the table"
                        .into(),
                )),
                _ => key
                    .iter()
                    .find(|(_, column)| column.is_null(at))
                    .map(|(name, _)| {
                        let message = format!(
                            "column \"{name}\" is part of the PRIMARY KEY and has no value"
                        );
                        (BadReason::Missing, message)
                    }),
            };
            match fault {
                None => kept.push(row),
                Some((reason, message)) => bad.push(origins.bad_record(at, reason, message)),
            }
        }
        Ok(kept)
    }

    /// Event times of rows that need not have one.
    fn times_where_known(
        &self,
        rows: &RecordBatch,
        times: Option<&ScalarBuffer<i64>>,
        wanted: &[u32],
        now: i64,
    ) -> Result<Vec<i64>, RuntimeError> {
        match &self.spec.event_time {
            EventTimeSource::Connector => Ok(wanted
                .iter()
                .map(|&row| times.map_or(now, |times| times[row as usize]))
                .collect()),
            EventTimeSource::Expr(_) if wanted.is_empty() => Ok(Vec::new()),
            EventTimeSource::Expr(expr) => {
                let part = compute::take_record_batch(rows, &UInt32Array::from(wanted.to_vec()))?;
                let Ok(array) = evaluate(expr, &part, "event time") else {
                    return Ok(vec![UNTIMED; wanted.len()]);
                };
                let times = nanos(&array);
                let time = |row: usize| {
                    if array.is_null(row) {
                        UNTIMED
                    } else {
                        times[row]
                    }
                };
                Ok((0..wanted.len()).map(time).collect())
            }
        }
    }

    /// The rows that have a time in `times`, as the source emits them.
    fn with_marks(
        &self,
        rows: RecordBatch,
        marks: Marks,
        times: &[Option<i64>],
    ) -> Result<ChangeBatch, RuntimeError> {
        let n_rows = rows.num_rows();
        let mut columns = rows.columns().to_vec();
        let unavailable = marks
            .unavailable
            .unwrap_or_else(|| BinaryArray::new_null(n_rows));
        columns.push(Arc::new(marks.ops));
        columns.push(Arc::new(marks.positions));
        columns.push(Arc::new(marks.source_times));
        columns.push(Arc::new(unavailable));
        columns.push(Arc::new(Int32Array::from_iter_values(0..n_rows as i32)));
        let schema = self.spec.emitted_schema();
        let rows = RecordBatch::try_new(schema, columns)?;
        let ok: BooleanArray = times.iter().map(|t| Some(t.is_some())).collect();
        let all = times.iter().map(|t| t.unwrap_or(UNTIMED)).collect();
        Ok(ChangeBatch::append(rows, all).filter(&ok)?)
    }
}

fn has_whole_row(marks: &Marks, row: usize) -> bool {
    ChangeOp::of(marks.ops.value(row)).is_some_and(ChangeOp::has_row)
        && marks.unavailable.as_ref().is_none_or(|u| u.is_null(row))
}

impl Kept {
    /// Some rows of a read.
    fn of(
        rows: &RecordBatch,
        times: Option<&ScalarBuffer<i64>>,
        wanted: &[u32],
    ) -> Result<Self, RuntimeError> {
        if wanted.len() == rows.num_rows() {
            return Ok(Self {
                rows: rows.clone(),
                times: times.cloned(),
                origin_rows: None,
            });
        }
        let ids = UInt32Array::from(wanted.to_vec());
        Ok(Self {
            rows: compute::take_record_batch(rows, &ids)?,
            times: times.map(|times| wanted.iter().map(|&row| times[row as usize]).collect()),
            origin_rows: Some(ids),
        })
    }
}
