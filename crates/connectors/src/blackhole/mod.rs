//! `blackhole`: takes everything and keeps nothing, to run a query for its own sake.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thalweg_dataflow::options::{ConnectorDecl, OptionFault, TableCheck};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter, Source};

use crate::registry::{Connector, one_way};

static DECLARATION: ConnectorDecl = ConnectorDecl {
    name: "blackhole",
    meaning: "Takes every row and keeps none: for measuring a query, or running one for its side effects.",
    options: &[],
    can_read: false,
    can_write: true,
    formats: &[],
    default_format: |_| None,
    fixed_columns: &[],
    metadata: &[],
    takes_updates: true,
    bounded: |_| true,
};

pub struct Blackhole;

impl Connector for Blackhole {
    fn declaration(&self) -> &ConnectorDecl {
        &DECLARATION
    }

    fn check(&self, _table: &TableCheck<'_>) -> Result<(), OptionFault> {
        Ok(())
    }

    fn source(&self, _spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Err(one_way(DECLARATION.name, "read"))
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(BlackholeSink {
            table: spec.table.as_str().into(),
            swallowed: Arc::default(),
        }))
    }
}

/// Counts rows and changes over all subtasks; the count is logged when a subtask finishes.
pub struct BlackholeSink {
    table: Arc<str>,
    swallowed: Arc<AtomicU64>,
}

impl BlackholeSink {
    /// Rows and changes taken so far, of all subtasks.
    pub fn swallowed(&self) -> u64 {
        self.swallowed.load(Ordering::Relaxed)
    }
}

impl Sink for BlackholeSink {
    fn is_parallel(&self) -> bool {
        true
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(BlackholeWriter {
            table: self.table.clone(),
            swallowed: self.swallowed.clone(),
        }))
    }
}

struct BlackholeWriter {
    table: Arc<str>,
    swallowed: Arc<AtomicU64>,
}

impl SinkWriter for BlackholeWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        let n = match input {
            SinkInput::Rows(rows) => rows.num_rows(),
            SinkInput::Changes(changes) => changes.changes.len(),
        };
        self.swallowed.fetch_add(n as u64, Ordering::Relaxed);
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        let swallowed = self.swallowed.load(Ordering::Relaxed);
        tracing::info!(table = %self.table, rows = swallowed, "blackhole finished");
        Box::pin(std::future::ready(Ok(())))
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{now, numbers};
    use thalweg_runtime::pairing::{PairedChange, PairedChanges};

    #[test]
    fn rows_and_changes_are_counted_over_all_subtasks() {
        let sink = BlackholeSink {
            table: "t".into(),
            swallowed: Arc::default(),
        };
        let (mut a, mut b) = (sink.open(0).unwrap(), sink.open(1).unwrap());
        let rows = numbers(0..3);
        let changes = PairedChanges {
            rows: rows.clone(),
            changes: vec![PairedChange::Update {
                before: 0,
                after: 2,
            }],
        };
        now(a.write(SinkInput::Rows(&rows))).unwrap();
        now(b.write(SinkInput::Changes(&changes))).unwrap();
        now(b.end_epoch(1)).unwrap();
        now(b.finish()).unwrap();
        assert_eq!(sink.swallowed(), 4);
    }
}
