//! Paired changes: what a sink writes of an updating result (semantics 4.3).

use arrow::record_batch::RecordBatch;

/// One epoch's net changes of an updating result, ready to be written in order.
#[derive(Debug, Clone)]
pub struct PairedChanges {
    /// The images that `changes` point into, in the sink's schema.
    pub rows: RecordBatch,
    pub changes: Vec<PairedChange>,
}

/// What happened to one row of the result; positions in [`PairedChanges::rows`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PairedChange {
    Create { after: u32 },
    Update { before: u32, after: u32 },
    Delete { before: u32 },
}
