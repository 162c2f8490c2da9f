//! The end of a dataflow: hands rows or paired changes to a sink's writer.

use std::sync::Arc;

use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::table::SinkSpec;

use crate::connector::{ConnectorError, SinkInput, SinkWriter};
use crate::error::RuntimeError;
use crate::metrics::{JobMetrics, TableMetrics};
use crate::operator::Barrier;
use crate::pairing::{PairedChanges, Pairing, pair_adjacent};

pub struct SinkStage {
    spec: Arc<SinkSpec>,
    writer: Box<dyn SinkWriter>,
    how: Writing,
    metrics: Arc<JobMetrics>,
    table: Arc<TableMetrics>,
    /// Bytes that the writer had written when they were last counted.
    n_bytes: u64,
}

/// How a sink's input becomes what its writer is given.
enum Writing {
    /// Append-only rows, as they come.
    Rows,
    /// Changes of an updating result, collected and paired at the end of the epoch.
    Collected(Pairing),
    /// Changes that come paired already, by the key at these positions.
    Adjacent(Vec<usize>),
}

impl SinkStage {
    /// `is_adjacent`: the input comes straight from an aggregation by the sink's key; see [`pair_adjacent`].
    pub fn new(
        spec: Arc<SinkSpec>,
        writer: Box<dyn SinkWriter>,
        metrics: Arc<JobMetrics>,
        is_adjacent: bool,
    ) -> Self {
        let how = match (spec.updating, &spec.key) {
            (false, _) => Writing::Rows,
            (true, Some(key)) if is_adjacent => Writing::Adjacent(key.clone()),
            (true, key) => Writing::Collected(Pairing::new(spec.schema.clone(), key.clone())),
        };
        Self {
            table: metrics.table(&spec.table),
            spec,
            writer,
            how,
            metrics,
            n_bytes: 0,
        }
    }

    pub async fn write(&mut self, batch: ChangeBatch) -> Result<(), RuntimeError> {
        match &mut self.how {
            Writing::Rows => {
                self.count(batch.n_rows());
                self.writer
                    .write(SinkInput::Rows(batch.rows()))
                    .await
                    .map_err(|e| self.failed(e))
            }
            Writing::Collected(pairing) => {
                pairing.push(batch);
                Ok(())
            }
            Writing::Adjacent(key) => {
                let changes = pair_adjacent(&batch, key)?;
                self.write_changes(&changes).await
            }
        }
    }

    async fn write_changes(&mut self, changes: &PairedChanges) -> Result<(), RuntimeError> {
        if changes.changes.is_empty() {
            return Ok(());
        }
        self.count(changes.changes.len());
        self.writer
            .write(SinkInput::Changes(changes))
            .await
            .map_err(|e| self.failed(e))
    }

    fn count(&self, n_rows: usize) {
        JobMetrics::add(&self.metrics.rows_out, n_rows);
        JobMetrics::add(&self.table.rows_out, n_rows);
    }

    pub async fn end_epoch(&mut self, barrier: &Barrier) -> Result<(), RuntimeError> {
        if let Writing::Collected(pairing) = &mut self.how {
            let changes = pairing.settle()?;
            self.write_changes(&changes).await?;
        }
        self.writer
            .end_epoch(barrier.epoch)
            .await
            .map_err(|e| self.failed(e))?;
        if barrier.last {
            self.writer.finish().await.map_err(|e| self.failed(e))?;
        }
        let n_bytes = self.writer.n_bytes();
        JobMetrics::add(&self.table.bytes_out, (n_bytes - self.n_bytes) as usize);
        self.n_bytes = n_bytes;
        Ok(())
    }

    fn failed(&self, source: ConnectorError) -> RuntimeError {
        RuntimeError::Connector {
            table: self.spec.table.clone(),
            source,
        }
    }
}
