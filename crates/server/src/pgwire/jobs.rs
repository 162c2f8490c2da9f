//! SHOW JOBS and DROP JOB.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use arrow::array::{ArrayRef, Int64Array, StringArray, TimestampNanosecondArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use thalweg_planner::error::closest;
use thalweg_planner::parse::statement::Name;
use thalweg_runtime::metrics::JobMetrics;

use super::client::{Client, Result};
use super::error::Failure;
use crate::jobs::{Job, JobKind, Outcome};

/// Columns of SHOW JOBS.
pub fn schema() -> SchemaRef {
    let started = DataType::Timestamp(TimeUnit::Nanosecond, Some("+00:00".into()));
    let field = |name: &str, data_type: DataType| Field::new(name, data_type, name == "reason");
    Arc::new(Schema::new(vec![
        field("id", DataType::Int64),
        field("name", DataType::Utf8),
        field("kind", DataType::Utf8),
        field("state", DataType::Utf8),
        field("reason", DataType::Utf8),
        field("epochs", DataType::Int64),
        field("rows_in", DataType::Int64),
        field("rows_out", DataType::Int64),
        field("late_rows", DataType::Int64),
        field("started", started),
    ]))
}

fn table(jobs: &[Arc<Job>]) -> Result<RecordBatch, arrow::error::ArrowError> {
    let texts = |of: fn(&Job) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(
            jobs.iter().map(|job| of(job)),
        ))
    };
    let counts = |of: fn(&JobMetrics) -> &AtomicU64| -> ArrayRef {
        let counts = jobs
            .iter()
            .map(|job| of(job.metrics()).load(Relaxed) as i64);
        Arc::new(Int64Array::from_iter_values(counts))
    };
    let ids = jobs.iter().map(|job| job.id().0 as i64);
    let reasons = jobs.iter().map(|job| job.state().reason());
    let started = jobs.iter().map(|job| job.started());
    let started = TimestampNanosecondArray::from_iter_values(started).with_timezone("+00:00");
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(Int64Array::from_iter_values(ids)),
            texts(|job| job.name().to_string()),
            texts(|job| job.kind().as_str().to_string()),
            texts(|job| job.state().as_str().to_string()),
            Arc::new(StringArray::from_iter(reasons)),
            counts(|metrics| &metrics.epochs),
            counts(|metrics| &metrics.rows_in),
            counts(|metrics| &metrics.rows_out),
            counts(|metrics| &metrics.late_rows),
            Arc::new(started),
        ],
    )
}

impl Client {
    pub fn jobs(&self) -> Result<RecordBatch, Failure> {
        table(&self.engine.jobs().list()).map_err(Failure::internal)
    }

    /// Drains a job and takes it off the list when it has ended. A client's query is ended at once.
    pub async fn drop_job(&mut self, name: &Name, if_exists: bool) -> Result<String> {
        let tag = "DROP JOB".to_string();
        let jobs = self.engine.jobs().clone();
        let Some(job) = jobs.find(&name.text) else {
            let message = format!("job \"{}\" does not exist", name.text);
            if if_exists {
                self.output.notice(&message);
                return Ok(tag);
            }
            let failure = Failure::new("42704", message);
            let all = jobs.list();
            return Err(
                match closest(&name.text, all.iter().map(|job| job.name())) {
                    Some(known) => failure.hint(format!("did you mean \"{known}\"?")).into(),
                    None => failure.hint("SHOW JOBS lists the jobs").into(),
                },
            );
        };
        let had_ended = job.state().has_ended();
        match job.kind() {
            JobKind::Insert => job.drain(),
            JobKind::Select | JobKind::Subscribe => job.cancel(),
        }
        let ended = job.ended().await;
        if let (Outcome::Failed(error), false) = (&ended.outcome, had_ended) {
            self.output
                .warning(&format!("job \"{}\" failed: {error}", job.name()));
        }
        jobs.forget(job.id());
        Ok(tag)
    }
}
