//! The sources of a job as its coordinator knows them, and the watch for splits that appear while they are read.

use std::future::pending;
use std::sync::Arc;

use thalweg_dataflow::plan::NodeId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::connector::{Offset, Source, SplitId};
use crate::error::RuntimeError;
use crate::state::CommitRecord;

use super::coordinator::BarrierRequest;

/// A source and the subtasks that read it.
pub struct SourceNode {
    pub node: NodeId,
    pub table: String,
    pub bounded: bool,
    pub source: Arc<dyn Source>,
    pub subtasks: Vec<SourceSubtask>,
    /// Splits handed out so far, to the subtasks in turn.
    pub n_splits: usize,
}

pub struct SourceSubtask {
    pub requests: mpsc::UnboundedSender<BarrierRequest>,
    /// Splits that it reads from the next barrier on.
    pub found: Vec<SplitId>,
}

impl SourceNode {
    /// Gives splits to the subtasks, as those that were there at first were given.
    pub fn take_in(&mut self, found: Vec<SplitId>) {
        let n_subtasks = self.subtasks.len();
        for split in found {
            tracing::info!(table = %self.table, split = %split.0, "found a new split");
            self.subtasks[self.n_splits % n_subtasks].found.push(split);
            self.n_splits += 1;
        }
    }

    /// Where this source's splits stand in a record of an epoch.
    pub fn positions(&self, record: &CommitRecord) -> Vec<(SplitId, Offset)> {
        let own = record.splits.iter().filter(|p| p.source == self.node.0);
        own.map(|p| (SplitId(p.split.as_str().into()), Offset(p.offset.clone())))
            .collect()
    }

    /// Whether splits may be found while it is read.
    pub fn may_grow(&self) -> bool {
        !self.bounded && self.source.live().is_some()
    }
}

type Found = (usize, Result<Vec<SplitId>, RuntimeError>);

/// Asks every live source for new splits, all the time.
pub struct Discovery {
    /// Ends with the job.
    _tasks: JoinSet<()>,
    found: mpsc::Receiver<Found>,
}

impl Discovery {
    pub fn start(sources: &[SourceNode]) -> Self {
        let mut tasks = JoinSet::new();
        let (sender, found) = mpsc::channel(1);
        for (index, node) in sources.iter().enumerate().filter(|(_, n)| n.may_grow()) {
            let (source, table) = (node.source.clone(), node.table.clone());
            tasks.spawn(watch(index, table, source, sender.clone()));
        }
        Self {
            _tasks: tasks,
            found,
        }
    }

    /// The next splits that appear, and the position of their source; waits for ever where none can. Cancel-safe.
    pub async fn next(&mut self) -> Found {
        match self.found.recv().await {
            Some(found) => found,
            None => pending().await,
        }
    }
}

async fn watch(index: usize, table: String, source: Arc<dyn Source>, sender: mpsc::Sender<Found>) {
    let Some(live) = source.live() else {
        return;
    };
    loop {
        let found = live.new_splits().await;
        let is_end = found.is_err();
        let found = found.map_err(|source| RuntimeError::Connector {
            table: table.clone(),
            source,
        });
        if sender.send((index, found)).await.is_err() || is_end {
            return;
        }
    }
}
