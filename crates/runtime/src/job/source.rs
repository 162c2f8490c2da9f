//! A source subtask: reads its splits, cuts them where the coordinator asks for a barrier, and runs
//! the chain that is fused to it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::select_all;
use thalweg_dataflow::plan::NodeId;
use thalweg_dataflow::table::SourceSpec;
use thalweg_dataflow::{ChangeBatch, Watermark};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::connector::{ConnectorError, Lost, Read, Source, SplitId, SplitReader};
use crate::error::RuntimeError;
use crate::exchange::{Router, Sent, merge_watermarks};
use crate::metrics::{JobMetrics, SplitMetrics};
use crate::operator::{Barrier, MAX_BATCH_ROWS};
use crate::state::SplitPosition;

use super::budget::{EpochBudget, Grant};
use super::coordinator::BarrierRequest;
use super::ingest::{Ingest, Ingested};
use super::stage::{Stage, send_to_all};
use super::values;

/// How often a split that holds time back without ever having had a row is named.
const SILENT_SPLIT_WARNING: Duration = Duration::from_secs(60);

/// A split that was not asked for this long was not polled without pause (semantics 2.2).
const UNPOLLED: Duration = Duration::from_secs(1);

pub struct SourceTask {
    pub node: NodeId,
    pub spec: Arc<SourceSpec>,
    pub source: Arc<dyn Source>,
    pub subtask: usize,
    pub splits: Splits,
    pub ingest: Ingest,
    pub stage: Stage,
    pub dead_letters: Vec<Router>,
    pub requests: mpsc::UnboundedReceiver<BarrierRequest>,
    pub budget: Arc<EpochBudget>,
    pub metrics: Arc<JobMetrics>,
    pub ended: watch::Sender<usize>,
}

/// The splits of a subtask. A bounded source reads one after another, an unbounded or live one all at once.
pub struct Splits {
    /// Whether there may be more of them later.
    may_grow: bool,
    waiting: VecDeque<SplitId>,
    open: Vec<OpenSplit>,
    finished: Vec<SplitPosition>,
    watermark: Watermark,
    opened_at: Instant,
    warned_at: Option<Instant>,
}

struct OpenSplit {
    id: SplitId,
    reader: Box<dyn SplitReader>,
    metrics: Arc<SplitMetrics>,
    /// The greatest claim of its rows, ns.
    watermark: Option<i64>,
    /// Since when it has been asked without pause and had nothing.
    silent_since: Option<Instant>,
}

impl Splits {
    pub fn new(splits: Vec<SplitId>, may_grow: bool) -> Self {
        Self {
            may_grow,
            waiting: splits.into(),
            open: Vec::new(),
            finished: Vec::new(),
            watermark: Watermark::NONE,
            opened_at: Instant::now(),
            warned_at: None,
        }
    }

    fn has_ended(&self) -> bool {
        self.waiting.is_empty() && self.open.is_empty() && !self.may_grow
    }

    /// Takes in splits that were found while the others were read. They hold time back where it stands
    /// (semantics 2.2): a subtask's watermark never moves back, and theirs moves with their rows.
    fn add(&mut self, found: Vec<SplitId>) {
        self.waiting.extend(found);
    }

    /// The watermark of this subtask at a cut, and whether it is idle (semantics 2.2).
    fn watermark(&mut self, spec: &SourceSpec) -> (Watermark, bool) {
        let now = Instant::now();
        for split in &mut self.open {
            if !split.reader.is_caught_up() {
                split.silent_since = None;
            }
        }
        let is_idle = |split: &OpenSplit| match (spec.idle_timeout, split.silent_since) {
            (Some(timeout), Some(since)) => now.duration_since(since).as_nanos() >= timeout as u128,
            _ => false,
        };
        for split in &self.open {
            split.metrics.set(split.watermark, is_idle(split));
        }
        let unread = self.waiting.iter().map(|_| (Watermark::NONE, false));
        let open = self.open.iter().map(|s| {
            (
                s.watermark.map_or(Watermark::NONE, Watermark::at),
                is_idle(s),
            )
        });
        let (at, idle) = match self.has_ended() {
            true => (Watermark::END, false),
            false => merge_watermarks(unread.chain(open)),
        };
        self.watermark = self.watermark.max(at);
        (self.watermark, idle)
    }

    fn warn_of_silent_splits(&mut self, table: &str) {
        let last = self.warned_at.unwrap_or(self.opened_at);
        if last.elapsed() < SILENT_SPLIT_WARNING {
            return;
        }
        self.warned_at = Some(Instant::now());
        for split in self.open.iter().filter(|s| s.watermark.is_none()) {
            tracing::warn!(table, split = %split.id.0, "no row has come from this split yet; it holds event time back");
        }
    }

    fn positions(&self, source: NodeId) -> Vec<SplitPosition> {
        self.finished
            .iter()
            .cloned()
            .chain(self.open.iter().map(|s| s.position(source)))
            .collect()
    }
}

impl OpenSplit {
    fn position(&self, source: NodeId) -> SplitPosition {
        let (split, offset) = (self.id.0.to_string(), self.reader.offset().0);
        SplitPosition {
            source: source.0,
            split,
            offset,
            watermark: self.watermark,
        }
    }
}

/// What the source does next.
#[expect(
    clippy::large_enum_variant,
    reason = "one a batch, and nearly always the large one"
)]
enum Next {
    Cut(BarrierRequest),
    Read {
        split: usize,
        granted: usize,
        read: Read,
    },
    /// The coordinator is gone: the job is being torn down.
    Closed,
}

impl SourceTask {
    pub async fn run(mut self) -> Result<(), RuntimeError> {
        let mut epoch = 1;
        let mut reported_end = false;
        if values::are_constant(&self.spec) && self.read_constants(epoch).await? == Sent::Closed {
            return Ok(());
        }
        loop {
            self.open_splits()?;
            if self.splits.has_ended() && !reported_end {
                reported_end = true;
                self.ended.send_modify(|n| *n += 1);
            }
            let sent = match self.next(epoch).await? {
                Next::Closed => return Ok(()),
                Next::Read {
                    split,
                    granted,
                    read,
                } => self.take(epoch, split, granted, read).await?,
                Next::Cut(request) => {
                    epoch = request.epoch + 1;
                    let is_last = request.last;
                    let sent = self.cut(request).await?;
                    if is_last {
                        return Ok(());
                    }
                    sent
                }
            };
            if sent == Sent::Closed {
                return Ok(());
            }
            tokio::task::consume_budget().await;
        }
    }

    /// Constants are no input that comes in time: they are there in the first epoch, however few rows it may
    /// take, or its answer would not be the query's (semantics 1.3).
    async fn read_constants(&mut self, epoch: u64) -> Result<Sent, RuntimeError> {
        self.open_splits()?;
        while let Some(split) = self.splits.open.first_mut() {
            let read = split.reader.read(MAX_BATCH_ROWS).await;
            let read = read.map_err(|e| self.failed(e))?;
            if self.take(epoch, 0, 0, read).await? == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        Ok(Sent::Delivered)
    }

    fn failed(&self, source: ConnectorError) -> RuntimeError {
        RuntimeError::Connector {
            table: self.spec.table.clone(),
            source,
        }
    }

    fn open_splits(&mut self) -> Result<(), RuntimeError> {
        // What is fetched anyway is read together, so that time goes on in all splits alike.
        let one_by_one = self.spec.bounded && self.source.live().is_none();
        while !self.splits.waiting.is_empty() && (self.splits.open.is_empty() || !one_by_one) {
            let Some(id) = self.splits.waiting.pop_front() else {
                break;
            };
            let reader = self
                .source
                .open(&id, None, self.subtask)
                .map_err(|e| self.failed(e))?;
            self.splits.open.push(OpenSplit {
                metrics: self.ingest.metrics().split(&self.spec.table, &id.0),
                id,
                reader,
                watermark: None,
                silent_since: None,
            });
        }
        Ok(())
    }

    /// Waits for a barrier request or for records, whichever comes first; requests go before.
    async fn next(&mut self, epoch: u64) -> Result<Next, RuntimeError> {
        let granted = match self.grant(epoch).await {
            Ok(granted) => granted,
            Err(next) => return Ok(next),
        };
        let now = Instant::now();
        for split in &mut self.splits.open {
            split.silent_since.get_or_insert(now);
        }
        // Begin with another split each time, so that a busy one does not starve the others.
        self.splits.open.rotate_left(1);
        let reads = select_all(self.splits.open.iter_mut().map(|s| s.reader.read(granted)));
        let next = tokio::select! {
            biased;
            request = self.requests.recv() => Ok(request.map_or(Next::Closed, Next::Cut)),
            (read, split, _) = reads => read.map(|read| Next::Read { split, granted, read }),
        };
        if matches!(next, Ok(Next::Cut(_))) {
            self.budget.settle(epoch, granted, 0, 0);
        }
        next.map_err(|e| self.failed(e))
    }

    /// Waits until some rows may be read, or until a barrier request makes that pointless.
    async fn grant(&mut self, epoch: u64) -> Result<usize, Next> {
        loop {
            if let Ok(request) = self.requests.try_recv() {
                return Err(Next::Cut(request));
            }
            let budget = self.budget.clone();
            // Registered before asking, so that what is freed in between is not missed.
            let mut freed = std::pin::pin!(budget.freed());
            freed.as_mut().enable();
            let grant = match self.splits.open.is_empty() {
                true => Grant::Full,
                false => budget.acquire(epoch, MAX_BATCH_ROWS),
            };
            if let Grant::Rows(granted) = grant {
                return Ok(granted);
            }
            // Nothing may be read now, so silence says nothing of the splits.
            self.splits
                .open
                .iter_mut()
                .for_each(|s| s.silent_since = None);
            tokio::select! {
                request = self.requests.recv() => return Err(request.map_or(Next::Closed, Next::Cut)),
                () = freed, if grant == Grant::Wait => {}
            }
        }
    }

    async fn take(
        &mut self,
        epoch: u64,
        split: usize,
        granted: usize,
        read: Read,
    ) -> Result<Sent, RuntimeError> {
        let records = match read {
            Read::End => {
                self.budget.settle(epoch, granted, 0, 0);
                let split = self.splits.open.remove(split);
                self.ingest
                    .metrics()
                    .end_split(&self.spec.table, &split.id.0);
                let position = SplitPosition {
                    watermark: Some(i64::MAX),
                    ..split.position(self.node)
                };
                self.splits.finished.push(position);
                return Ok(Sent::Delivered);
            }
            Read::Lost(lost) => {
                self.budget.settle(epoch, granted, 0, 0);
                self.tell_of_lost(&lost);
                return Ok(Sent::Delivered);
            }
            Read::Records(records) => records,
        };
        let used = records.rows.num_rows() + records.bad.len();
        self.budget.settle(epoch, granted, used, records.n_bytes);
        let Ingested {
            batch,
            watermark,
            dead_letters,
        } = self.ingest.ingest(records)?;
        let split = &mut self.splits.open[split];
        split.watermark = split.watermark.max(watermark);
        split.silent_since = None;
        let began = Instant::now();
        let sent = self.emit(batch, dead_letters).await?;
        if began.elapsed() > UNPOLLED {
            // The others may have had rows meanwhile.
            self.splits
                .open
                .iter_mut()
                .for_each(|s| s.silent_since = None);
        }
        Ok(sent)
    }

    fn tell_of_lost(&self, lost: &Lost) {
        let (table, n_records) = (&self.spec.table, lost.n_records);
        tracing::warn!(table, n_records, "records were lost: {}", lost.message);
        self.metrics
            .lost_records
            .fetch_add(n_records, Ordering::Relaxed);
    }

    async fn emit(
        &mut self,
        batch: ChangeBatch,
        dead_letters: Option<ChangeBatch>,
    ) -> Result<Sent, RuntimeError> {
        if let Some(dead) = dead_letters
            && send_to_all(&self.dead_letters, &dead).await? == Sent::Closed
        {
            return Ok(Sent::Closed);
        }
        if batch.is_empty() {
            return Ok(Sent::Delivered);
        }
        self.stage.process(0, batch).await
    }

    async fn cut(&mut self, request: BarrierRequest) -> Result<Sent, RuntimeError> {
        let (watermark, idle) = self.splits.watermark(&self.spec);
        self.splits.warn_of_silent_splits(&self.spec.table);
        let BarrierRequest {
            epoch,
            commit,
            last,
            new_splits,
        } = request;
        let barrier = Barrier {
            epoch,
            watermark,
            idle,
            commit,
            last,
        };
        let positions = if commit || last {
            self.splits.positions(self.node)
        } else {
            Vec::new()
        };
        self.splits.add(new_splits);
        for router in &self.dead_letters {
            if router.barrier(barrier).await == Sent::Closed {
                return Ok(Sent::Closed);
            }
        }
        self.stage.end_epoch(barrier, positions).await
    }
}
