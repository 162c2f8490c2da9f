//! The list of jobs as JSON.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use serde_json::{Map, Value, json};
use thalweg_runtime::metrics::JobMetrics;

use super::metrics::seconds;
use crate::jobs::Job;

pub fn list(jobs: &[Arc<Job>]) -> Value {
    jobs.iter().map(|job| one(job)).collect()
}

fn one(job: &Job) -> Value {
    let metrics = job.metrics();
    let count = |counter: &AtomicU64| counter.load(Relaxed);
    let state = job.state();
    json!({
        "id": job.id().0,
        "name": job.name(),
        "kind": job.kind().as_str(),
        "state": state.as_str(),
        "reason": state.reason(),
        "started_seconds": seconds(job.started()),
        "rows_in": count(&metrics.rows_in),
        "bytes_in": count(&metrics.bytes_in),
        "rows_out": count(&metrics.rows_out),
        "late_rows": count(&metrics.late_rows),
        "epochs": count(&metrics.epochs),
        "commits": count(&metrics.commits),
        "state_memory_bytes": metrics.state_bytes.load(Relaxed).max(0),
        "tables": tables(metrics),
        "splits": splits(metrics),
        "bad_records": bad_records(metrics),
    })
}

fn tables(metrics: &JobMetrics) -> Value {
    let tables = metrics.tables().into_iter().map(|(name, table)| {
        let count = |counter: &AtomicU64| counter.load(Relaxed);
        let counts = json!({
            "rows_in": count(&table.rows_in),
            "bytes_in": count(&table.bytes_in),
            "rows_out": count(&table.rows_out),
            "bytes_out": count(&table.bytes_out),
        });
        (name, counts)
    });
    Value::Object(tables.collect::<Map<_, _>>())
}

fn splits(metrics: &JobMetrics) -> Value {
    let splits = metrics.splits().into_iter().map(|((table, split), state)| {
        json!({
            "table": table,
            "split": split,
            "watermark_seconds": state.watermark().map(seconds),
            "idle": state.is_idle(),
        })
    });
    splits.collect()
}

fn bad_records(metrics: &JobMetrics) -> Value {
    let bad = metrics.bad_records().into_iter().map(
        |((table, reason), n)| json!({"table": table, "reason": reason.as_str(), "records": n}),
    );
    bad.collect()
}
