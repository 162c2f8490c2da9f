//! `/metrics`: the counters of all jobs, in the text format of Prometheus (version 0.0.4).

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use thalweg_runtime::clock;

use super::families::{FAMILIES, Family, Kind, Labels, Sample, Value};
use crate::engine::Engine;
use crate::jobs::Job;

pub use prometheus_text::CONTENT_TYPE;

/// Every family, with a sample for each job, table, split or operator that there is now.
pub fn text(engine: &Engine) -> Result<String, fmt::Error> {
    let snapshot = Snapshot {
        jobs: engine.jobs().list(),
        state_disk_bytes: engine.state_disk_bytes(),
        now: clock::now_nanos(),
    };
    let mut registry = Registry::default();
    registry.register_collector(Box::new(snapshot));
    let mut text = String::new();
    prometheus_text::encode(&mut text, &registry)?;
    Ok(text)
}

/// What is exported: one look at everything.
#[derive(Debug)]
pub struct Snapshot {
    pub jobs: Vec<Arc<Job>>,
    /// `None`: nothing has been kept yet.
    pub state_disk_bytes: Option<u64>,
    /// Wall clock, ns.
    pub now: i64,
}

/// Nanoseconds as seconds.
pub fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for Family {
            name,
            help,
            kind,
            samples,
        } in FAMILIES
        {
            let samples = samples(self);
            if samples.is_empty() {
                continue;
            }
            let kind = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            // The encoder puts `_total` behind the name of a counter, and a full stop behind the help.
            let name = name.strip_suffix("_total").unwrap_or(name);
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            samples
                .iter()
                .try_for_each(|sample| write(&mut family, sample))?;
        }
        Ok(())
    }
}

fn write(family: &mut MetricEncoder<'_>, sample: &Sample) -> Result<(), fmt::Error> {
    let labels: &Labels = &sample.labels;
    let mut encoder = family.encode_family(labels)?;
    match &sample.value {
        Value::Count(n) => encoder.encode_counter::<NoLabelSet, u64, f64>(n, None),
        Value::Seconds(secs) => encoder.encode_counter::<NoLabelSet, f64, f64>(secs, None),
        Value::Gauge(value) => encoder.encode_gauge(value),
        Value::Durations {
            sum,
            count,
            buckets,
        } => encoder.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None),
    }
}
