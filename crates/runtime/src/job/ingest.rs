//! From decoded records to change batches: event time, watermark, computed columns, and what is done
//! with records that do not fit.

mod changes;

pub use changes::ReadOrigins;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, UInt32Array};
use arrow::buffer::ScalarBuffer;
use arrow::compute;
use arrow::datatypes::{DataType, TimestampNanosecondType};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::utils::collect_columns;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::table::{EventTimeSource, ExprRef, SourceSpec, WatermarkSpec};

use crate::clock;
use crate::connector::{BadReason, BadRecord, Origins, Records};
use crate::error::RuntimeError;
use crate::metrics::{JobMetrics, TableMetrics};
use crate::reject::{dead_letters, reject};

/// What became of one read.
pub struct Ingested {
    pub batch: ChangeBatch,
    /// The greatest watermark that the rows claim, where there are rows.
    pub watermark: Option<i64>,
    /// Rejected records, to be written to the dead-letter table.
    pub dead_letters: Option<ChangeBatch>,
}

pub struct Ingest {
    spec: Arc<SourceSpec>,
    metrics: Arc<JobMetrics>,
    table: Arc<TableMetrics>,
    /// All records of the table come in one order.
    in_order: bool,
}

impl Ingest {
    /// `in_order`: whether one record of the table is before or after every other one.
    pub fn new(spec: Arc<SourceSpec>, metrics: Arc<JobMetrics>, in_order: bool) -> Self {
        Self {
            table: metrics.table(&spec.table),
            spec,
            metrics,
            in_order,
        }
    }

    pub fn metrics(&self) -> &JobMetrics {
        &self.metrics
    }

    /// Errors: `BadRecord` where the table's policy is to fail, with the first rejected record.
    pub fn ingest(&self, records: Records) -> Result<Ingested, RuntimeError> {
        if self.spec.updating {
            return self.ingest_changes(records);
        }
        let Records {
            rows,
            times,
            origins,
            mut bad,
            n_bytes,
            ..
        } = records;
        let now = clock::now_nanos();
        let mut kept = Kept {
            rows,
            times,
            origin_rows: None,
        };
        let event_times = self.event_times(&mut kept, now, origins.as_ref(), &mut bad)?;
        kept.times = Some(event_times);
        let columns = self.computed_columns(&mut kept, origins.as_ref(), &mut bad)?;
        let watermark = self.claimed_watermark(&kept)?;
        JobMetrics::add(&self.metrics.rows_in, kept.rows.num_rows());
        JobMetrics::add(&self.metrics.bytes_in, n_bytes as usize);
        JobMetrics::add(&self.table.rows_in, kept.rows.num_rows());
        JobMetrics::add(&self.table.bytes_in, n_bytes as usize);
        let times = kept.times.unwrap_or_default();
        let batch = ChangeBatch::append(columns, times);
        Ok(Ingested {
            batch,
            watermark,
            dead_letters: self.reject(bad, now)?,
        })
    }

    /// Event times of the rows, in ns; rows without a usable one are rejected (semantics 2.4).
    fn event_times(
        &self,
        kept: &mut Kept,
        now: i64,
        origins: &dyn Origins,
        bad: &mut Vec<BadRecord>,
    ) -> Result<ScalarBuffer<i64>, RuntimeError> {
        let times = match &self.spec.event_time {
            EventTimeSource::Connector => match kept.times.take() {
                Some(times) => times,
                None => std::iter::repeat_n(now, kept.rows.num_rows()).collect(),
            },
            EventTimeSource::Expr(expr) => {
                let array = self.evaluate_or_reject(
                    expr,
                    "event time",
                    BadReason::EventTime,
                    kept,
                    origins,
                    bad,
                )?;
                if array.null_count() > 0 {
                    let ok = compute::is_not_null(&array)?;
                    kept.reject(&ok, origins, bad, BadReason::EventTime, || {
                        format!("the event time{} is missing", named_columns(expr))
                    })?;
                    nanos(&compute::filter(&array, &ok)?)
                } else {
                    nanos(&array)
                }
            }
        };
        let Some(ahead) = self
            .spec
            .max_event_time_ahead
            .filter(|_| !self.spec.bounded)
        else {
            return Ok(times);
        };
        let latest = now.saturating_add(ahead);
        if times.iter().all(|&t| t <= latest) {
            return Ok(times);
        }
        let ok: BooleanArray = times.iter().map(|&t| Some(t <= latest)).collect();
        let message = || {
            let limit = thalweg_dataflow::time::format_duration(ahead);
            format!("the event time is more than {limit} ahead of the clock (max_event_time_ahead)")
        };
        kept.reject(&ok, origins, bad, BadReason::EventTime, message)?;
        Ok(times.iter().copied().filter(|&t| t <= latest).collect())
    }

    /// The columns that the plan sees.
    fn computed_columns(
        &self,
        kept: &mut Kept,
        origins: &dyn Origins,
        bad: &mut Vec<BadRecord>,
    ) -> Result<RecordBatch, RuntimeError> {
        let schema = &self.spec.schema;
        loop {
            let n_rows = kept.rows.num_rows();
            let mut columns = Vec::with_capacity(schema.fields().len());
            for (expr, field) in self.spec.columns.iter().zip(schema.fields()) {
                let what = format!("column \"{}\"", field.name());
                let column =
                    self.evaluate_or_reject(expr, &what, BadReason::Type, kept, origins, bad)?;
                if !field.is_nullable() && column.null_count() > 0 {
                    let ok = compute::is_not_null(&column)?;
                    kept.reject(&ok, origins, bad, BadReason::Missing, || {
                        format!("{what} is NOT NULL and has no value")
                    })?;
                    break;
                }
                columns.push(column);
            }
            // A rejected row leaves columns of two lengths: compute them again without it.
            if columns.len() == schema.fields().len() && kept.rows.num_rows() == n_rows {
                return Ok(record_batch(schema.clone(), columns, n_rows)?);
            }
        }
    }

    fn claimed_watermark(&self, kept: &Kept) -> Result<Option<i64>, RuntimeError> {
        let max = |times: &ScalarBuffer<i64>| times.iter().copied().max();
        let times = kept.times.as_ref().and_then(max);
        match &self.spec.watermark {
            WatermarkSpec::Lag(nanos) => Ok(times.map(|t| t.saturating_sub(*nanos))),
            WatermarkSpec::Expr(expr) => {
                let array = evaluate(expr, &kept.rows, "watermark")?;
                Ok(compute::max(
                    array.as_primitive::<TimestampNanosecondType>(),
                ))
            }
        }
    }

    /// Evaluates over all rows at once, and only if that fails over each by itself, to find the rows that fail.
    fn evaluate_or_reject(
        &self,
        expr: &ExprRef,
        what: &str,
        reason: BadReason,
        kept: &mut Kept,
        origins: &dyn Origins,
        bad: &mut Vec<BadRecord>,
    ) -> Result<ArrayRef, RuntimeError> {
        if let Ok(array) = evaluate(expr, &kept.rows, what) {
            return Ok(array);
        }
        let mut errors = Vec::new();
        let ok: BooleanArray = (0..kept.rows.num_rows())
            .map(|row| match evaluate(expr, &kept.rows.slice(row, 1), what) {
                Ok(_) => Some(true),
                Err(error) => {
                    errors.push(error.to_string());
                    Some(false)
                }
            })
            .collect();
        let mut errors = errors.into_iter();
        kept.reject(&ok, origins, bad, reason, || {
            errors.next().unwrap_or_default()
        })?;
        evaluate(expr, &kept.rows, what)
    }

    /// Does with rejected records what the table says (semantics 8.1).
    fn reject(&self, bad: Vec<BadRecord>, now: i64) -> Result<Option<ChangeBatch>, RuntimeError> {
        let kept = reject(&self.spec, &self.metrics, bad)?;
        match kept.is_empty() {
            true => Ok(None),
            false => dead_letters(&kept, now).map(Some),
        }
    }
}

/// Rows still accepted, and which rows of the read they were.
struct Kept {
    rows: RecordBatch,
    times: Option<ScalarBuffer<i64>>,
    /// Positions in the read; `None`: nothing was rejected and they are the same.
    origin_rows: Option<UInt32Array>,
}

impl Kept {
    /// Drops the rows that are not `ok` and reports each; `message` is asked in their order.
    fn reject(
        &mut self,
        ok: &BooleanArray,
        origins: &dyn Origins,
        bad: &mut Vec<BadRecord>,
        reason: BadReason,
        mut message: impl FnMut() -> String,
    ) -> Result<(), RuntimeError> {
        let ids = self
            .origin_rows
            .take()
            .unwrap_or_else(|| UInt32Array::from_iter_values(0..ok.len() as u32));
        for row in (0..ok.len()).filter(|&row| !ok.value(row)) {
            bad.push(origins.bad_record(ids.value(row) as usize, reason, message()));
        }
        let filter_times = |buf: &ScalarBuffer<i64>| -> Result<ScalarBuffer<i64>, RuntimeError> {
            let kept = compute::filter(&Int64Array::new(buf.clone(), None), ok)?;
            Ok(kept
                .as_primitive::<arrow::datatypes::Int64Type>()
                .values()
                .clone())
        };
        self.times = self.times.as_ref().map(filter_times).transpose()?;
        self.rows = compute::filter_record_batch(&self.rows, ok)?;
        self.origin_rows = Some(compute::filter(&ids, ok)?.as_primitive().clone());
        Ok(())
    }
}

fn evaluate(expr: &ExprRef, rows: &RecordBatch, what: &str) -> Result<ArrayRef, RuntimeError> {
    expr.evaluate(rows)
        .and_then(|value| value.into_array(rows.num_rows()))
        .map_err(|source| RuntimeError::Expression {
            context: what.to_string(),
            source,
        })
}

/// The values of a timestamp array in ns, sharing its buffer.
fn nanos(array: &ArrayRef) -> ScalarBuffer<i64> {
    debug_assert!(matches!(
        array.data_type(),
        DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, _)
    ));
    array
        .as_primitive::<TimestampNanosecondType>()
        .values()
        .clone()
}

/// ` (column "ts")`: what an expression is computed from, where it is from columns.
fn named_columns(expr: &ExprRef) -> String {
    let mut names: Vec<_> = collect_columns(expr)
        .iter()
        .map(|c| format!("\"{}\"", c.name()))
        .collect();
    names.sort();
    match names.len() {
        0 => String::new(),
        1 => format!(" (column {})", names[0]),
        _ => format!(" (columns {})", names.join(", ")),
    }
}
