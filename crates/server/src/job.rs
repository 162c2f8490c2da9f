//! A running job, as the server sees it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use thalweg_dataflow::plan::{Graph, JobSettings, Op};
use thalweg_dataflow::table::BadData;
use thalweg_runtime::connector::BadReason;
use thalweg_runtime::job::{self, Environment, JobHandle};
use thalweg_runtime::metrics::JobMetrics;

use crate::error::Result;

/// Stops the job when it is dropped, without a final epoch. Owned by a supervisor ([`crate::jobs`]).
pub struct Running {
    handle: JobHandle,
    metrics: Arc<JobMetrics>,
    /// What becomes of a table's bad records, where they do not end the job.
    fates: BTreeMap<String, String>,
}

impl Running {
    /// Inside a Tokio runtime.
    pub fn start(graph: &Graph, settings: &JobSettings, environment: &Environment) -> Result<Self> {
        let handle = job::start(graph, settings, environment)?;
        let metrics = handle.metrics();
        let fates = fates(graph);
        Ok(Self {
            handle,
            metrics,
            fates,
        })
    }

    /// Waits until the job has ended. Cancel-safe.
    pub async fn wait(&mut self) -> Result<()> {
        self.handle.wait().await?;
        Ok(())
    }

    /// Asks for a final epoch: what has been read is worked off, sinks are flushed, the job ends.
    pub fn drain(&self) {
        self.handle.drain();
    }

    /// Ends it at once. [`Running::wait`] then tells when all of its tasks are gone.
    pub fn cancel(&self) {
        self.handle.cancel();
    }

    pub fn metrics(&self) -> &Arc<JobMetrics> {
        &self.metrics
    }

    /// `12 late rows: ...`, `table "orders": 3 bad records dropped (2 type, 1 malformed)`.
    pub fn warnings(&self) -> Vec<String> {
        let late = late_rows(self.metrics.late_rows.load(Relaxed));
        let dropped = dropped_changes(self.metrics.dropped_changes.load(Relaxed));
        let unapplied = unapplied_changes(self.metrics.unapplied_changes.load(Relaxed));
        let bad = bad_records(&self.metrics.bad_records(), &self.fates);
        late.into_iter()
            .chain(dropped)
            .chain(unapplied)
            .chain(bad)
            .collect()
    }
}

/// What becomes of the bad records of each table that `graph` reads on in spite of them.
fn fates(graph: &Graph) -> BTreeMap<String, String> {
    let sources = graph.nodes.iter().filter_map(|node| match &node.op {
        Op::Source(spec) => Some(spec),
        _ => None,
    });
    let fates = sources.filter_map(|spec| match &spec.bad_data {
        BadData::Fail => None,
        BadData::Drop => Some((spec.table.clone(), "dropped".to_string())),
        BadData::DeadLetter(letters) => {
            Some((spec.table.clone(), format!("kept in \"{letters}\"")))
        }
    });
    fates.collect()
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.cancel();
    }
}

fn late_rows(n: u64) -> Option<String> {
    (n > 0).then(|| match n {
        1 => "1 late row: its window had closed".to_string(),
        n => format!("{n} late rows: their windows had closed"),
    })
}

fn dropped_changes(n: u64) -> Option<String> {
    (n > 0).then(|| {
        format!(
            "{n} {} of rows that had expired not used",
            plural(n, "change", "changes")
        )
    })
}

fn unapplied_changes(n: u64) -> Option<String> {
    (n > 0).then(|| {
        format!(
            "{n} {} of a changelog not used: older than what is there, or the deletion of a row that is not there",
            plural(n, "record", "records")
        )
    })
}

/// One line per table, the most frequent reason first.
fn bad_records(
    counts: &BTreeMap<(String, BadReason), u64>,
    fates: &BTreeMap<String, String>,
) -> Vec<String> {
    let mut by_table: BTreeMap<&str, Vec<(u64, BadReason)>> = BTreeMap::new();
    for ((table, reason), n) in counts {
        by_table.entry(table).or_default().push((*n, *reason));
    }
    let lines = by_table.into_iter().filter_map(|(table, mut reasons)| {
        // Under `fail` the error says it all.
        let fate = fates.get(table)?;
        reasons.sort_by_key(|(n, reason)| (Reverse(*n), *reason));
        let total = reasons.iter().map(|(n, _)| n).sum();
        let named = reasons
            .iter()
            .map(|(n, reason)| format!("{n} {}", reason.as_str()));
        let records = plural(total, "record", "records");
        let reasons = named.collect::<Vec<_>>().join(", ");
        Some(format!(
            "table \"{table}\": {total} bad {records} {fate} ({reasons})"
        ))
    });
    lines.collect()
}

pub fn plural<'a>(n: u64, one: &'a str, many: &'a str) -> &'a str {
    if n == 1 { one } else { many }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_missing_is_told_by_table_and_reason() {
        assert_eq!(late_rows(0), None);
        assert_eq!(
            late_rows(12).unwrap(),
            "12 late rows: their windows had closed"
        );
        let fates = BTreeMap::from([
            ("o".to_string(), "dropped".to_string()),
            ("p".to_string(), "kept in \"letters\"".to_string()),
        ]);
        assert_eq!(bad_records(&BTreeMap::new(), &fates), Vec::<String>::new());
        let counts = BTreeMap::from([
            (("o".to_string(), BadReason::Malformed), 1),
            (("o".to_string(), BadReason::Type), 2),
            (("p".to_string(), BadReason::Range), 1),
            (("that fails".to_string(), BadReason::Range), 1),
        ]);
        assert_eq!(
            bad_records(&counts, &fates),
            [
                "table \"o\": 3 bad records dropped (2 type, 1 malformed)",
                "table \"p\": 1 bad record kept in \"letters\" (1 range)"
            ]
        );
    }
}
