//! A chain of fused operators, run inside one task.
//!
//! Batches pass from operator to operator depth first: an operator is asked for its next batch only
//! when everything behind it is drained, so a chain holds one batch per operator at most.

use std::sync::Arc;
use std::time::Duration;

use thalweg_dataflow::ChangeBatch;

use crate::error::RuntimeError;
use crate::metrics::{JobMetrics, OperatorMetrics};
use crate::operator::{Barrier, Operator};

pub struct Chain {
    operators: Vec<Measured>,
    /// Operators that may have output; the last one is asked first.
    active: Vec<usize>,
    /// A batch that passed a chain without operators.
    passed: Option<ChangeBatch>,
}

/// An operator and what it has done so far.
pub struct Measured {
    pub operator: Box<dyn Operator>,
    pub metrics: Arc<OperatorMetrics>,
}

impl Measured {
    fn push(&mut self, input: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        JobMetrics::add(&self.metrics.rows_in, batch.n_rows());
        self.metrics.busy(|| self.operator.push(input, batch))
    }

    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        let batch = self.metrics.busy(|| self.operator.pull())?;
        let n_rows = batch.as_ref().map_or(0, ChangeBatch::n_rows);
        JobMetrics::add(&self.metrics.rows_out, n_rows);
        Ok(batch)
    }
}

impl Chain {
    pub fn new(operators: Vec<Measured>) -> Self {
        Self {
            operators,
            active: Vec::new(),
            passed: None,
        }
    }

    pub fn operators_mut(&mut self) -> impl Iterator<Item = &mut Box<dyn Operator>> {
        self.operators.iter_mut().map(|m| &mut m.operator)
    }

    /// The task has waited so long for room downstream.
    pub fn was_blocked(&self, waited: Duration) {
        self.operators
            .iter()
            .for_each(|m| m.metrics.was_blocked(waited));
    }

    /// Feeds a batch; drain with [`Chain::next`] before feeding another.
    pub fn push(&mut self, port: usize, batch: ChangeBatch) -> Result<(), RuntimeError> {
        match self.operators.first_mut() {
            None => self.passed = Some(batch),
            Some(first) => {
                first.push(port, batch)?;
                self.active.push(0);
            }
        }
        Ok(())
    }

    /// Ends the epoch at operator `index`; drain, then go on with the next.
    pub fn barrier(&mut self, index: usize, barrier: &Barrier) -> Result<(), RuntimeError> {
        let Measured { operator, metrics } = &mut self.operators[index];
        metrics.busy(|| operator.barrier(barrier))?;
        self.active.push(index);
        Ok(())
    }

    pub fn n_operators(&self) -> usize {
        self.operators.len()
    }

    /// The next batch that leaves the chain; `None` when drained.
    pub fn next(&mut self) -> Result<Option<ChangeBatch>, RuntimeError> {
        if let Some(batch) = self.passed.take() {
            return Ok(Some(batch));
        }
        while let Some(&index) = self.active.last() {
            match self.operators[index].pull()? {
                None => {
                    self.active.pop();
                }
                Some(batch) if batch.is_empty() => {}
                Some(batch) if index + 1 == self.operators.len() => return Ok(Some(batch)),
                Some(batch) => {
                    self.operators[index + 1].push(0, batch)?;
                    self.active.push(index + 1);
                }
            }
        }
        Ok(None)
    }
}
