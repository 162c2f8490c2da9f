//! Whether all is well: no job has failed.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::jobs::Job;

/// Whether no job in the list has failed, and what there is to say. A job that failed counts until it is dropped
/// or another takes its name.
pub fn report(jobs: &[Arc<Job>]) -> (bool, Value) {
    let failed: Vec<Value> = jobs
        .iter()
        .filter_map(|job| Some(json!({"name": job.name(), "reason": job.state().reason()?})))
        .collect();
    let n_running = jobs.iter().filter(|j| !j.state().has_ended()).count();
    let status = if failed.is_empty() { "ok" } else { "failed" };
    let body = json!({"status": status, "running_jobs": n_running, "failed_jobs": failed});
    (failed.is_empty(), body)
}
