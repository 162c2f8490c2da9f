//! How far a long run has come, on a terminal.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use thalweg_runtime::metrics::JobMetrics;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::jobs::Job;

/// Shorter runs show nothing.
const PATIENCE: Duration = Duration::from_millis(700);
const REFRESH: Duration = Duration::from_millis(200);

/// A line on standard error that counts rows, where that is a terminal and results do not print to
/// the same one; otherwise nothing.
pub struct Progress {
    line: Option<(ProgressBar, JoinHandle<()>)>,
}

impl Progress {
    pub fn start(running: &[Arc<Job>], prints_results: bool) -> Self {
        let stdout_is_busy = prints_results && std::io::stdout().is_terminal();
        if !std::io::stderr().is_terminal() || stdout_is_busy {
            return Self { line: None };
        }
        let metrics: Vec<_> = running.iter().map(|job| job.metrics().clone()).collect();
        let bar = ProgressBar::no_length();
        let ticker = tokio::spawn(tick(bar.clone(), metrics));
        Self {
            line: Some((bar, ticker)),
        }
    }

    pub fn finish(self) {
        if let Some((bar, ticker)) = self.line {
            ticker.abort();
            bar.finish_and_clear();
        }
    }
}

async fn tick(bar: ProgressBar, metrics: Vec<Arc<JobMetrics>>) {
    let started = Instant::now();
    tokio::time::sleep(PATIENCE).await;
    loop {
        let now = Counts::read(&metrics);
        // The message first: each of these may draw.
        bar.set_message(now.describe(started.elapsed()));
        bar.set_style(if now.total_bytes.is_some() {
            with_bytes()
        } else {
            without_bytes()
        });
        bar.set_length(now.total_bytes.unwrap_or(0));
        bar.set_position(now.bytes);
        tokio::time::sleep(REFRESH).await;
    }
}

fn with_bytes() -> ProgressStyle {
    style("{bar:30} {percent:>3}%  {msg}")
}

fn without_bytes() -> ProgressStyle {
    style("{msg}")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("a constant template")
}

/// Sums over jobs.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    rows_in: u64,
    rows_out: u64,
    bytes: u64,
    /// Only where every job knows its own.
    total_bytes: Option<u64>,
}

impl Counts {
    fn read(metrics: &[Arc<JobMetrics>]) -> Self {
        let sum =
            |of: fn(&JobMetrics) -> &AtomicU64| metrics.iter().map(|m| of(m).load(Relaxed)).sum();
        let all_known = metrics.iter().all(|m| m.bytes_total.load(Relaxed) > 0);
        Self {
            rows_in: sum(|m| &m.rows_in),
            rows_out: sum(|m| &m.rows_out),
            bytes: sum(|m| &m.bytes_in),
            total_bytes: all_known.then(|| sum(|m| &m.bytes_total)),
        }
    }

    fn describe(&self, elapsed: Duration) -> String {
        let per_second = self.rows_in as f64 / elapsed.as_secs_f64().max(0.001);
        format!(
            "{} rows in, {} rows/s, {} rows out",
            grouped(self.rows_in),
            grouped(per_second as u64),
            grouped(self.rows_out)
        )
    }
}

/// `1,234,567`
fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_read_like_a_sentence() {
        let counts = Counts {
            rows_in: 1_234_567,
            rows_out: 12,
            bytes: 0,
            total_bytes: None,
        };
        assert_eq!(
            counts.describe(Duration::from_secs(2)),
            "1,234,567 rows in, 617,283 rows/s, 12 rows out"
        );
    }
}
