//! The families of metrics: name, meaning, and where their samples come from. The page of the manual is made
//! from this list.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use thalweg_runtime::metrics::{Durations, JobMetrics, OperatorMetrics, TableMetrics};

use super::metrics::{Snapshot, seconds};
use crate::jobs::Job;

pub struct Family {
    pub name: &'static str,
    /// Without a full stop.
    pub help: &'static str,
    pub kind: Kind,
    pub samples: fn(&Snapshot) -> Vec<Sample>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

pub type Labels = Vec<(&'static str, String)>;

pub struct Sample {
    pub labels: Labels,
    pub value: Value,
}

pub enum Value {
    Count(u64),
    /// A counter of time.
    Seconds(f64),
    Gauge(f64),
    Durations {
        sum: f64,
        count: u64,
        /// Upper bound and how many fell into the bucket; what fell into none is in the count.
        buckets: Vec<(f64, u64)>,
    },
}

const fn family(
    name: &'static str,
    help: &'static str,
    kind: Kind,
    samples: fn(&Snapshot) -> Vec<Sample>,
) -> Family {
    Family {
        name,
        help,
        kind,
        samples,
    }
}

use Kind::{Counter, Gauge, Histogram};

/// In the order in which they are exported.
pub const FAMILIES: &[Family] = &[
    family(
        "thalweg_build_info",
        "1; the version is in the label",
        Gauge,
        |_| {
            vec![sample(
                vec![("version", env!("CARGO_PKG_VERSION").into())],
                Value::Gauge(1.0),
            )]
        },
    ),
    family(
        "thalweg_jobs",
        "Jobs in the list by state: running, draining, finished, failed, cancelled",
        Gauge,
        jobs_by_state,
    ),
    family(
        "thalweg_rows_in_total",
        "Records read from a table and accepted",
        Counter,
        |s| tables(s, |t| &t.rows_in),
    ),
    family(
        "thalweg_bytes_in_total",
        "Bytes read from a table",
        Counter,
        |s| tables(s, |t| &t.bytes_in),
    ),
    family(
        "thalweg_rows_out_total",
        "Rows or changes written to a table",
        Counter,
        |s| tables(s, |t| &t.rows_out),
    ),
    family(
        "thalweg_bytes_out_total",
        "Encoded bytes written to a table, before compression",
        Counter,
        |s| tables(s, |t| &t.bytes_out),
    ),
    family(
        "thalweg_bad_records_total",
        "Records of a table that were rejected, by reason",
        Counter,
        bad_records,
    ),
    family(
        "thalweg_late_rows_total",
        "Rows that came after a window which they belong to had closed",
        Counter,
        |s| jobs(s, |m| Value::Count(m.late_rows.load(Relaxed))),
    ),
    family(
        "thalweg_dropped_changes_total",
        "Changes of rows that had expired, not applied",
        Counter,
        |s| jobs(s, |m| Value::Count(m.dropped_changes.load(Relaxed))),
    ),
    family(
        "thalweg_unapplied_changes_total",
        "Records of a keyed changelog that changed nothing: stale reads, deletions of rows that are not there",
        Counter,
        |s| jobs(s, |m| Value::Count(m.unapplied_changes.load(Relaxed))),
    ),
    family(
        "thalweg_lost_records_total",
        "Records that were removed from a source before they were read",
        Counter,
        |s| jobs(s, |m| Value::Count(m.lost_records.load(Relaxed))),
    ),
    family(
        "thalweg_split_watermark_seconds",
        "Event time that a split has reached, in seconds since the Unix epoch",
        Gauge,
        |s| splits(s, |split, _| split.watermark().map(seconds)),
    ),
    family(
        "thalweg_split_lag_seconds",
        "How far the watermark of a split is behind the wall clock",
        Gauge,
        |s| {
            splits(s, |split, now| {
                split.watermark().map(|w| seconds(now.saturating_sub(w)))
            })
        },
    ),
    family(
        "thalweg_split_idle",
        "1 where a split is idle and holds event time back no longer",
        Gauge,
        |s| splits(s, |split, _| Some(f64::from(u8::from(split.is_idle())))),
    ),
    family(
        "thalweg_epochs_total",
        "Epochs that every task has completed",
        Counter,
        |s| jobs(s, |m| Value::Count(m.epochs.load(Relaxed))),
    ),
    family(
        "thalweg_epoch_seconds",
        "From the call for a barrier until every task has passed it",
        Histogram,
        |s| jobs(s, |m| durations(&m.epoch_time)),
    ),
    family(
        "thalweg_commits_total",
        "Epochs that were committed to the state store",
        Counter,
        |s| jobs(s, |m| Value::Count(m.commits.load(Relaxed))),
    ),
    family(
        "thalweg_commit_seconds",
        "Time of the atomic write that commits an epoch",
        Histogram,
        |s| jobs(s, |m| durations(&m.commit_time)),
    ),
    family(
        "thalweg_committed_bytes_total",
        "Bytes handed to the state store",
        Counter,
        |s| jobs(s, |m| Value::Count(m.bytes_committed.load(Relaxed))),
    ),
    family(
        "thalweg_committed_keys_total",
        "Keys put or deleted in the state store",
        Counter,
        |s| jobs(s, |m| Value::Count(m.keys_committed.load(Relaxed))),
    ),
    family(
        "thalweg_state_memory_bytes",
        "Decoded state in memory after the last epoch",
        Gauge,
        |s| {
            jobs(s, |m| {
                Value::Gauge(m.state_bytes.load(Relaxed).max(0) as f64)
            })
        },
    ),
    family(
        "thalweg_state_disk_bytes",
        "Size of the state store on disk, of all jobs",
        Gauge,
        |s| {
            let bytes = s.state_disk_bytes.iter();
            bytes
                .map(|n| sample(vec![], Value::Gauge(*n as f64)))
                .collect()
        },
    ),
    family(
        "thalweg_evicted_keys_total",
        "Keys whose decoded state left memory, to be read again when needed",
        Counter,
        |s| jobs(s, |m| Value::Count(m.evicted_keys.load(Relaxed))),
    ),
    family(
        "thalweg_expired_keys_total",
        "Keys whose state was removed by its time to live",
        Counter,
        |s| jobs(s, |m| Value::Count(m.expired_keys.load(Relaxed))),
    ),
    family(
        "thalweg_operator_rows_in_total",
        "Rows or changes that an operator was given",
        Counter,
        |s| operators(s, |o| Value::Count(o.rows_in.load(Relaxed))),
    ),
    family(
        "thalweg_operator_rows_out_total",
        "Rows or changes that an operator has emitted",
        Counter,
        |s| operators(s, |o| Value::Count(o.rows_out.load(Relaxed))),
    ),
    family(
        "thalweg_operator_busy_seconds_total",
        "Time spent in an operator itself",
        Counter,
        |s| operators(s, |o| Value::Seconds(o.busy_secs())),
    ),
    family(
        "thalweg_operator_blocked_seconds_total",
        "Time that the task of an operator has waited for room downstream",
        Counter,
        |s| operators(s, |o| Value::Seconds(o.blocked_secs())),
    ),
];

fn sample(labels: Labels, value: Value) -> Sample {
    Sample { labels, value }
}

fn of_job(job: &Job) -> Labels {
    vec![("job", job.name().to_string())]
}

fn jobs_by_state(snapshot: &Snapshot) -> Vec<Sample> {
    let states = ["running", "draining", "finished", "failed", "cancelled"];
    let count = |state: &str| {
        let in_it = snapshot.jobs.iter().filter(|j| j.state().as_str() == state);
        in_it.count() as f64
    };
    let sample_of = |state| {
        sample(
            vec![("state", String::from(state))],
            Value::Gauge(count(state)),
        )
    };
    states.into_iter().map(sample_of).collect()
}

fn jobs(snapshot: &Snapshot, value: fn(&JobMetrics) -> Value) -> Vec<Sample> {
    let jobs = snapshot.jobs.iter();
    jobs.map(|job| sample(of_job(job), value(job.metrics())))
        .collect()
}

fn tables(snapshot: &Snapshot, counter: fn(&TableMetrics) -> &AtomicU64) -> Vec<Sample> {
    let mut samples = Vec::new();
    for job in &snapshot.jobs {
        for (name, table) in job.metrics().tables() {
            let mut labels = of_job(job);
            labels.push(("table", name));
            samples.push(sample(labels, Value::Count(counter(&table).load(Relaxed))));
        }
    }
    samples
}

fn bad_records(snapshot: &Snapshot) -> Vec<Sample> {
    let mut samples = Vec::new();
    for job in &snapshot.jobs {
        for ((table, reason), n) in job.metrics().bad_records() {
            let mut labels = of_job(job);
            labels.push(("table", table));
            labels.push(("reason", reason.as_str().to_string()));
            samples.push(sample(labels, Value::Count(n)));
        }
    }
    samples
}

type Split = thalweg_runtime::metrics::SplitMetrics;

fn splits(snapshot: &Snapshot, value: fn(&Split, i64) -> Option<f64>) -> Vec<Sample> {
    let mut samples = Vec::new();
    for job in &snapshot.jobs {
        for ((table, split), state) in job.metrics().splits() {
            let Some(value) = value(&state, snapshot.now) else {
                continue;
            };
            let mut labels = of_job(job);
            labels.extend([("table", table), ("split", split)]);
            samples.push(sample(labels, Value::Gauge(value)));
        }
    }
    samples
}

fn operators(snapshot: &Snapshot, value: fn(&OperatorMetrics) -> Value) -> Vec<Sample> {
    let of = |job: &Arc<Job>| {
        let operators = job.metrics().operators().into_iter();
        let samples = operators.map(|operator| {
            let mut labels = of_job(job);
            labels.extend([
                ("node", operator.node.to_string()),
                ("operator", operator.name.clone()),
                ("subtask", operator.subtask.to_string()),
            ]);
            sample(labels, value(&operator))
        });
        samples.collect::<Vec<_>>()
    };
    snapshot.jobs.iter().flat_map(of).collect()
}

fn durations(durations: &Durations) -> Value {
    Value::Durations {
        sum: durations.seconds(),
        count: durations.count(),
        buckets: durations.buckets().collect(),
    }
}
