//! The operator traits.
//!
//! An operator is a synchronous state machine over batches. It is *pulled*: after every `push` or
//! `barrier` the driver calls `pull` until it answers `None`, passing each batch on before it asks
//! for the next. So an operator with a million rows to emit keeps a cursor and hands out bounded
//! batches; a full channel downstream suspends it in between, without threads or callbacks.

use thalweg_dataflow::{ChangeBatch, Watermark};

use crate::error::RuntimeError;
use crate::state::StateWrites;

/// In-band control record that ends an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Barrier {
    pub epoch: u64,
    /// Fixed per split at the cut, the minimum over inputs at alignment; never moves back.
    pub watermark: Watermark,
    /// Everything upstream is idle: the watermark stands where it was, and an operator with other
    /// inputs does not wait for this one.
    pub idle: bool,
    /// State is committed with this epoch.
    pub commit: bool,
    /// No further epoch follows.
    pub last: bool,
}

/// At most this many rows in a batch that an operator makes.
pub const MAX_BATCH_ROWS: usize = 8192;

pub trait Operator: Send {
    /// Takes a batch of the current epoch. Called only when drained.
    fn push(&mut self, input: usize, batch: ChangeBatch) -> Result<(), RuntimeError>;

    /// The epoch is complete on every input. The barrier's watermark is never below an earlier one's
    /// and is acted on after everything that it releases.
    fn barrier(&mut self, barrier: &Barrier) -> Result<(), RuntimeError>;

    /// The next batch of output, `None` when drained.
    fn pull(&mut self) -> Result<Option<ChangeBatch>, RuntimeError>;

    /// The operator's keyed state; `None` only where there is nothing to keep across barriers. No
    /// default, so that a checkpoint cannot be forgotten.
    fn state(&mut self) -> Option<&mut dyn Stateful>;
}

/// State that is committed with an epoch.
pub trait Stateful {
    /// Appends everything that changed since the last commit. Called after the output of a committing
    /// barrier is drained.
    fn write_changes(&mut self, writes: &mut StateWrites) -> Result<(), RuntimeError>;

    /// Bytes of state that are not yet committed.
    fn dirty_bytes(&self) -> usize;

    /// Bytes of state in memory, committed or not.
    fn memory_bytes(&self) -> usize;
}
