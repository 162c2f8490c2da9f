//! Appends `window_start`, `window_end` and `window_time` to every row, once for each window that the
//! row's event time lies in.

use std::sync::Arc;

use arrow::array::UInt32Array;
use arrow::datatypes::SchemaRef;
use thalweg_dataflow::ChangeBatch;
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::plan::Window;
use thalweg_dataflow::time::TIMELESS;

use super::windows::{Layout, instants};
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, MAX_BATCH_ROWS, Operator, Stateful};

pub struct AssignWindow {
    layout: Layout,
    schema: SchemaRef,
    pending: Option<ChangeBatch>,
    /// The first row of `pending` that has not been emitted.
    next: usize,
    metrics: Arc<JobMetrics>,
}

impl AssignWindow {
    pub fn new(
        window: Window,
        schema: SchemaRef,
        metrics: Arc<JobMetrics>,
    ) -> Result<Self, RuntimeError> {
        Ok(Self {
            layout: Layout::new(window)?,
            schema,
            pending: None,
            next: 0,
            metrics,
        })
    }

    /// Expands rows from `next` on until a batch is full.
    fn expand(&mut self, batch: &ChangeBatch) -> Result<ChangeBatch, RuntimeError> {
        let (mut rows, mut starts, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        while self.next < batch.n_rows() && rows.len() < MAX_BATCH_ROWS {
            let t = batch.times()[self.next];
            if t == TIMELESS {
                JobMetrics::add(&self.metrics.late_rows, 1);
            }
            for window in self.layout.windows_of(t).filter(|_| t != TIMELESS) {
                rows.push(self.next as u32);
                starts.push(window.start);
                ends.push(window.end);
            }
            self.next += 1;
        }
        let taken = batch.take(&UInt32Array::from(rows))?;
        let mut columns = taken.rows().columns().to_vec();
        let n = columns.len();
        let window_times = ends.iter().map(|e| e - 1).collect();
        for (i, values) in [starts, ends, window_times].into_iter().enumerate() {
            columns.push(instants(values, self.schema.field(n + i).data_type())?);
        }
        let rows = record_batch(self.schema.clone(), columns, taken.n_rows())?;
        Ok(taken.with_rows(rows))
    }
}

impl Operator for AssignWindow {
    fn push(&mut self, _input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        self.pending = Some(batch);
        self.next = 0;
        Ok(())
    }

    fn barrier(&mut self, _barrier: &Barrier) -> Result<(), RuntimeError> {
        Ok(())
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        let Some(batch) = self.pending.take() else {
            return Ok(None);
        };
        let out = self.expand(&batch)?;
        if self.next < batch.n_rows() {
            self.pending = Some(batch);
        }
        Ok(Some(out))
    }

    fn state(&mut self) -> Option<&mut dyn Stateful> {
        None
    }
}
