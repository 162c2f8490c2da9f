//! Records that lack some values, which stay as they are (semantics 6.2): the old ones come from the stored row.
//!
//! Such records are gathered and merged together, column by column; one by one only where records of the same key
//! follow each other in a batch.

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, UInt32Array};
use arrow::compute;
use arrow::compute::kernels::zip::zip;
use arrow::datatypes::{DataType, Int64Type};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::CastExpr;
use hashbrown::HashSet;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::table::EventTimeSource;

use super::{Change, MarkColumns, Normalization};
use crate::connector::{BadReason, BadRecord};
use crate::error::RuntimeError;
use crate::job::ReadOrigins;
use crate::reject::reject;

/// Records waiting to be merged: position in the batch and slot, no slot twice.
#[derive(Default)]
pub struct Merges {
    waiting: Vec<(u32, u32)>,
    slots: HashSet<u32>,
}

impl Merges {
    /// Whether those that wait must be merged before a record of this slot is looked at.
    pub fn concern(&self, slot: u32, op: ChangeOp) -> bool {
        !self.waiting.is_empty() && (op == ChangeOp::Truncate || self.slots.contains(&slot))
    }

    pub fn add(&mut self, row: u32, slot: u32) {
        self.waiting.push((row, slot));
        self.slots.insert(slot);
    }
}

/// Why a merged row cannot be the row of its key.
type Fault = (BadReason, String);

impl Normalization {
    pub(super) fn merge(
        &mut self,
        batch: &ChangeBatch,
        marks: &MarkColumns,
    ) -> Result<(), RuntimeError> {
        if self.merges.waiting.is_empty() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.merges.waiting);
        self.merges.slots.clear();
        let is_stored = |(_, slot): &(u32, u32)| self.rows.row(*slot).is_present();
        let (merged, orphans): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_stored);
        let mut bad = Vec::new();
        for (row, _) in orphans {
            let message = format!(
                "{} unavailable in the record, and no row is stored for its key",
                self.unavailable_columns(marks, row as usize)
            );
            let fault = (BadReason::Inapplicable, message);
            bad.push(bad_record(batch, marks, row, fault)?);
        }
        if !merged.is_empty() {
            self.merge_stored(batch, marks, &merged, &mut bad)?;
        }
        let kept = reject(&self.normalize.spec, &self.context.metrics, bad)?;
        self.context.rejected.add(kept);
        Ok(())
    }

    fn merge_stored(
        &mut self,
        batch: &ChangeBatch,
        marks: &MarkColumns,
        merged: &[(u32, u32)],
        bad: &mut Vec<BadRecord>,
    ) -> Result<(), RuntimeError> {
        let rows = UInt32Array::from_iter_values(merged.iter().map(|(row, _)| *row));
        let stored = merged
            .iter()
            .map(|(_, slot)| self.rows.image(self.rows.row(*slot).image));
        let old = self.images.decode(stored)?;
        let unavailable = compute::take(&marks.unavailable, &rows, None)?;
        let unavailable = unavailable.as_binary::<i32>();
        let mut record = Vec::with_capacity(self.n_columns);
        for column in 0..self.n_columns {
            record.push(compute::take(batch.rows().column(column), &rows, None)?);
        }
        for (&column, old) in self.image_columns.iter().zip(&old) {
            let keeps = BooleanArray::from_iter(
                (0..merged.len()).map(|i| Some(is_set(unavailable.value(i), column))),
            );
            if keeps.true_count() > 0 {
                record[column] = zip(&keeps, old, &record[column])?;
            }
        }
        let images = self
            .image_columns
            .iter()
            .map(|&c| record[c].clone())
            .collect::<Vec<_>>();
        let images = self.images.encode(&images, merged.len())?;
        let record = RecordBatch::try_new(self.record_schema.clone(), record)?;
        let times: Vec<i64> = merged
            .iter()
            .map(|(row, _)| batch.times()[*row as usize])
            .collect();
        let checked = self.check(&record, &times);
        for (i, ((row, slot), checked)) in merged.iter().zip(checked).enumerate() {
            match checked {
                Ok(time) => {
                    let change: Change = marks.change(*row as usize, time)?;
                    self.apply(*slot, &change, images.row(i));
                }
                Err(fault) => bad.push(bad_record(batch, marks, *row, fault)?),
            }
        }
        Ok(())
    }

    /// What a source checks of a whole row, for rows that have become whole: their event times, or why they are
    /// no rows of the table.
    fn check(&self, rows: &RecordBatch, times: &[i64]) -> Vec<Result<i64, Fault>> {
        let mut checked: Vec<Result<i64, Fault>> = times.iter().map(|t| Ok(*t)).collect();
        let spec = &self.normalize.spec;
        if let EventTimeSource::Expr(expr) = &spec.event_time {
            let nanos = CastExpr::new(expr.clone(), DataType::Int64, None);
            let missing = || Some("the event time is missing".to_string());
            let found = evaluated(
                &nanos,
                rows,
                "event time",
                BadReason::EventTime,
                missing,
                &mut checked,
            );
            if let Some(nanos) = found {
                let nanos = nanos.as_primitive::<Int64Type>().values();
                let good = checked.iter_mut().zip(nanos.iter());
                good.for_each(|(time, nanos)| *time = time.clone().map(|_| *nanos));
            }
        }
        for (expr, field) in spec.columns.iter().zip(spec.schema.fields()) {
            let what = format!("column \"{}\"", field.name());
            let missing =
                || (!field.is_nullable()).then(|| format!("{what} is NOT NULL and has no value"));
            evaluated(
                expr.as_ref(),
                rows,
                &what,
                BadReason::Type,
                missing,
                &mut checked,
            );
        }
        checked
    }

    /// `column "a" is`, `columns "a", "b" are`: those that a record lacks.
    fn unavailable_columns(&self, marks: &MarkColumns, row: usize) -> String {
        let bits = marks.unavailable.value(row);
        let names: Vec<String> = (0..self.n_columns)
            .filter(|column| is_set(bits, *column))
            .map(|column| format!("\"{}\"", self.output_schema.field(column).name()))
            .collect();
        match names.as_slice() {
            [one] => format!("column {one} is"),
            several => format!("columns {} are", several.join(", ")),
        }
    }
}

/// The values of an expression where it can be computed for all rows; notes the rows for which it cannot, or has no
/// value where there must be one, as `missing` says.
fn evaluated(
    expr: &dyn PhysicalExpr,
    rows: &RecordBatch,
    what: &str,
    reason: BadReason,
    missing: impl Fn() -> Option<String>,
    checked: &mut [Result<i64, Fault>],
) -> Option<ArrayRef> {
    let evaluate = |rows: &RecordBatch| {
        let value = expr.evaluate(rows);
        value.and_then(|v| v.into_array(rows.num_rows()))
    };
    let reason_of_null = match reason {
        BadReason::EventTime => BadReason::EventTime,
        _ => BadReason::Missing,
    };
    let refuse_nulls = |first: usize, values: &ArrayRef, checked: &mut [Result<i64, Fault>]| {
        if values.null_count() == 0 {
            return;
        }
        for row in (0..values.len()).filter(|&row| values.is_null(row)) {
            if let (Some(message), Ok(_)) = (missing(), &checked[first + row]) {
                checked[first + row] = Err((reason_of_null, message));
            }
        }
    };
    if let Ok(values) = evaluate(rows) {
        refuse_nulls(0, &values, checked);
        return Some(values);
    }
    for row in 0..rows.num_rows() {
        match evaluate(&rows.slice(row, 1)) {
            Ok(value) => refuse_nulls(row, &value, checked),
            Err(source) if checked[row].is_ok() => {
                let context = what.to_string();
                let error = RuntimeError::Expression { context, source };
                checked[row] = Err((reason, error.to_string()));
            }
            Err(_) => {}
        }
    }
    None
}

fn is_set(bits: &[u8], column: usize) -> bool {
    bits.get(column / 8)
        .is_some_and(|byte| byte >> (column % 8) & 1 == 1)
}

fn bad_record(
    batch: &ChangeBatch,
    marks: &MarkColumns,
    row: u32,
    (reason, message): Fault,
) -> Result<BadRecord, RuntimeError> {
    let origin = batch
        .origin()
        .and_then(|origin| origin.0.downcast_ref::<ReadOrigins>());
    let origin = origin.ok_or_else(|| {
        RuntimeError::Internal(format!(
            "records of a changelog came without their origin: {message}"
        ))
    })?;
    let row = marks.rows.value(row as usize) as usize;
    Ok(origin.0.bad_record(row, reason, message))
}
