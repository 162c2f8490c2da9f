//! The coordinator: asks the sources for barriers, waits until every task has passed them, and
//! commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use thalweg_dataflow::plan::JobSettings;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::connector::SplitId;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::state::{CommitRecord, SplitPosition, StateWrites};

use super::budget::EpochBudget;
use super::build::BuiltJob;
use super::discovery::{Discovery, SourceNode};
use super::{Environment, Stop};

/// What the coordinator asks of every source subtask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarrierRequest {
    pub epoch: u64,
    pub commit: bool,
    pub last: bool,
    /// Splits that the subtask reads from this barrier on.
    pub new_splits: Vec<SplitId>,
}

/// A task has passed a barrier, and everything it emitted for the epoch is on its way.
pub struct Ack {
    pub epoch: u64,
    /// Present where the epoch is committed.
    pub writes: Option<StateWrites>,
    /// Positions of the splits that the task reads.
    pub splits: Vec<SplitPosition>,
    pub dirty_bytes: usize,
    pub state_bytes: usize,
}

/// Intervals without a row after which the first epoch ends all the same (semantics 4.5).
const INTERVALS_BEFORE_AN_EMPTY_FIRST_EPOCH: u32 = 10;

pub struct Coordinator {
    tasks: JoinSet<Result<(), RuntimeError>>,
    n_tasks: usize,
    sources: Vec<SourceNode>,
    discovery: Discovery,
    acks: mpsc::UnboundedReceiver<Ack>,
    ended: watch::Receiver<usize>,
    budget: Arc<EpochBudget>,
    stop: watch::Receiver<Stop>,
    metrics: Arc<JobMetrics>,
    environment: Environment,
    /// Names the job's commits in the store.
    domain: String,
    flush_interval: Duration,
    checkpoint_interval: Duration,
    max_dirty_bytes: usize,
    dirty_bytes: usize,
    epoch: u64,
    last_cut: Option<Instant>,
    last_commit: Instant,
}

enum Cut {
    Ordinary,
    Last,
    Cancelled,
}

impl Coordinator {
    pub fn new(
        job: BuiltJob,
        settings: &JobSettings,
        environment: &Environment,
        metrics: Arc<JobMetrics>,
        stop: watch::Receiver<Stop>,
    ) -> Self {
        let duration = |nanos: i64| Duration::from_nanos(u64::try_from(nanos).unwrap_or(0));
        Self {
            n_tasks: job.tasks.len(),
            tasks: job.tasks,
            discovery: Discovery::start(&job.sources),
            sources: job.sources,
            acks: job.acks,
            ended: job.ended,
            budget: job.budget,
            stop,
            metrics,
            environment: environment.clone(),
            domain: job.domain,
            flush_interval: duration(settings.flush_interval),
            checkpoint_interval: duration(settings.checkpoint_interval),
            // Half of the memory for state may be uncommitted; the rest stays evictable.
            max_dirty_bytes: usize::try_from(settings.state_memory / 2).unwrap_or(usize::MAX),
            dirty_bytes: 0,
            epoch: 0,
            last_cut: None,
            last_commit: Instant::now(),
        }
    }

    pub async fn run(mut self) -> Result<(), RuntimeError> {
        let result = self.run_epochs().await;
        self.tasks.shutdown().await;
        result
    }

    async fn run_epochs(&mut self) -> Result<(), RuntimeError> {
        loop {
            let last = match self.wait_for_cut().await? {
                Cut::Ordinary => false,
                Cut::Last => true,
                Cut::Cancelled => return Ok(()),
            };
            self.epoch += 1;
            self.last_cut = Some(Instant::now());
            let commit = self.is_commit_due(last);
            let called = Instant::now();
            self.request_barrier(commit, last);
            let acks = self.collect().await?;
            self.metrics.epoch_time.observe(called.elapsed());
            if *self.stop.borrow() == Stop::Cancel {
                return Ok(());
            }
            let record = self.record_of(&acks);
            if commit {
                self.commit(&acks, &record)?;
            }
            if commit || last {
                self.tell_sources(&record);
            }
            // Sources are in the next epoch by now; the one behind it gets the room of this one.
            self.budget.reset(self.epoch + 2);
            self.metrics.epochs.store(self.epoch, Ordering::Relaxed);
            if last {
                self.metrics.finished.store(true, Ordering::Relaxed);
                return self.join().await;
            }
        }
    }

    fn request_barrier(&mut self, commit: bool, last: bool) {
        for source in &mut self.sources {
            for subtask in &mut source.subtasks {
                let request = BarrierRequest {
                    epoch: self.epoch,
                    commit,
                    last,
                    new_splits: std::mem::take(&mut subtask.found),
                };
                // A source that is gone has failed; `collect` finds out why.
                let _ = subtask.requests.send(request);
            }
        }
    }

    fn record_of(&self, acks: &[Ack]) -> CommitRecord {
        CommitRecord {
            epoch: self.epoch,
            splits: acks.iter().flat_map(|ack| ack.splits.clone()).collect(),
        }
    }

    /// Tells live sources how far they have been read.
    fn tell_sources(&self, record: &CommitRecord) {
        for source in &self.sources {
            if let Some(live) = source.source.live() {
                live.committed(&source.positions(record));
            }
        }
    }

    fn is_commit_due(&self, last: bool) -> bool {
        let durable_end = last && self.environment.durable;
        durable_end
            || self.last_commit.elapsed() >= self.checkpoint_interval
            || self.dirty_bytes > self.max_dirty_bytes
    }

    /// Waits for whatever ends the current epoch first: the interval, a full budget, the end of all
    /// input, a request to stop.
    async fn wait_for_cut(&mut self) -> Result<Cut, RuntimeError> {
        let n_sources: usize = self.sources.iter().map(|s| s.subtasks.len()).sum();
        let (budget, open_epoch) = (self.budget.clone(), self.epoch + 1);
        let timer = next_tick(self.last_cut, self.flush_interval, &budget);
        tokio::pin!(timer);
        loop {
            if *self.stop.borrow_and_update() == Stop::Cancel {
                return Ok(Cut::Cancelled);
            }
            if *self.stop.borrow() == Stop::Drain || *self.ended.borrow_and_update() == n_sources {
                return Ok(Cut::Last);
            }
            tokio::select! {
                () = &mut timer => return Ok(Cut::Ordinary),
                () = budget.exhausted(open_epoch) => return Ok(Cut::Ordinary),
                changed = self.ended.changed() => {
                    if changed.is_err() {
                        // Every source task is gone: they end only after a last barrier, or fail.
                        return Err(self.first_failure().await);
                    }
                }
                _ = self.stop.changed() => {}
                (source, found) = self.discovery.next() => self.sources[source].take_in(found?),
                Some(ended) = self.tasks.join_next() => flatten(ended)?,
            }
        }
    }

    /// Collects one acknowledgement from every task.
    async fn collect(&mut self) -> Result<Vec<Ack>, RuntimeError> {
        let mut acks = Vec::with_capacity(self.n_tasks);
        let mut cancelled = self.stop.clone();
        while acks.len() < self.n_tasks {
            tokio::select! {
                biased;
                Some(ack) = self.acks.recv() => {
                    debug_assert_eq!(ack.epoch, self.epoch);
                    acks.push(ack);
                }
                Some(ended) = self.tasks.join_next() => flatten(ended)?,
                () = until_cancelled(&mut cancelled) => return Ok(Vec::new()),
                else => return Err(self.first_failure().await),
            }
        }
        self.dirty_bytes = acks.iter().map(|a| a.dirty_bytes).sum();
        let state_bytes: usize = acks.iter().map(|a| a.state_bytes).sum();
        self.metrics
            .state_bytes
            .store(state_bytes as i64, Ordering::Relaxed);
        Ok(acks)
    }

    /// Writes the epoch: state of every operator, positions of every split, the epoch's number, in one
    /// atomic batch.
    fn commit(&mut self, acks: &[Ack], record: &CommitRecord) -> Result<(), RuntimeError> {
        let mut writes = StateWrites::default();
        acks.iter()
            .filter_map(|ack| ack.writes.as_ref())
            .for_each(|w| writes.append(w));
        let (n_bytes, n_writes) = (writes.n_bytes(), writes.n_writes());
        let began = Instant::now();
        self.environment
            .store
            .commit(&self.domain, writes, record)?;
        self.metrics.commit_time.observe(began.elapsed());
        self.last_commit = Instant::now();
        self.dirty_bytes = 0;
        JobMetrics::add(&self.metrics.commits, 1);
        JobMetrics::add(&self.metrics.bytes_committed, n_bytes);
        JobMetrics::add(&self.metrics.keys_committed, n_writes);
        Ok(())
    }

    async fn join(&mut self) -> Result<(), RuntimeError> {
        while let Some(ended) = self.tasks.join_next().await {
            flatten(ended)?;
        }
        Ok(())
    }

    /// The reason why tasks have gone.
    async fn first_failure(&mut self) -> RuntimeError {
        match self.join().await {
            Err(error) => error,
            Ok(()) => {
                RuntimeError::Internal("the tasks of the job ended before its last epoch".into())
            }
        }
    }
}

fn flatten(
    ended: Result<Result<(), RuntimeError>, tokio::task::JoinError>,
) -> Result<(), RuntimeError> {
    match ended {
        Ok(result) => result,
        Err(join) => Err(RuntimeError::Panic(join.to_string())),
    }
}

/// Returns when the job is to be stopped at once, and never if it is not.
async fn until_cancelled(stop: &mut watch::Receiver<Stop>) {
    if stop.wait_for(|stop| *stop == Stop::Cancel).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// When the epoch ends by time: an interval after the last one; the first, an interval after the first
/// row or after ten intervals without one. At interval 0 it is rows that end epochs, and the tick of a
/// second only lets idle time pass.
async fn next_tick(last_cut: Option<Instant>, interval: Duration, budget: &EpochBudget) {
    let interval = if interval.is_zero() {
        Duration::from_secs(1)
    } else {
        interval
    };
    match last_cut {
        Some(at) => tokio::time::sleep_until(at + interval).await,
        None => {
            let patience = tokio::time::sleep(interval * INTERVALS_BEFORE_AN_EMPTY_FIRST_EPOCH);
            tokio::select! {
                () = patience => {}
                () = async { budget.first_row().await; tokio::time::sleep(interval).await } => {}
            }
        }
    }
}
