//! A running job: its tasks, and the coordinator that ends their epochs.

mod budget;
mod build;
mod conflicts;
mod coordinator;
mod discovery;
mod ingest;
mod sink;
mod source;
mod stage;
mod values;

pub(crate) use ingest::ReadOrigins;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thalweg_dataflow::plan::{Graph, JobSettings};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::connector::ConnectorFactory;
use crate::error::RuntimeError;
use crate::metrics::JobMetrics;
use crate::operators::TABLES_PER_NODE;
use crate::state::StateStore;

/// What a job runs in.
#[derive(Clone)]
pub struct Environment {
    pub factory: Arc<dyn ConnectorFactory>,
    pub store: StateStore,
    parts: Arc<Parts>,
    /// Removed with the last clone, where the state does not outlive the process.
    _scratch: Option<Arc<tempfile::TempDir>>,
    /// Whether the state outlives the process. Where it does not, nothing is committed at the end.
    pub durable: bool,
}

/// Hands out parts of the store: no two jobs share a table.
struct Parts {
    n_jobs: AtomicU32,
    next_table: AtomicU32,
}

/// What one job has of the store.
#[derive(Clone, Copy)]
struct Part {
    job: u32,
    first_table: u32,
}

impl Default for Parts {
    fn default() -> Self {
        // Table 0 is the store's own.
        Self {
            n_jobs: AtomicU32::new(0),
            next_table: AtomicU32::new(1),
        }
    }
}

impl Parts {
    fn take(&self, n_nodes: usize) -> Result<Part, RuntimeError> {
        let n_tables = u32::try_from(n_nodes)
            .ok()
            .and_then(|n| n.checked_mul(TABLES_PER_NODE));
        let beyond = |first: u32| first.checked_add(n_tables?);
        let taken = self
            .next_table
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, beyond);
        let first_table = taken.map_err(|_| {
            RuntimeError::Internal("the store has no tables left for another job".into())
        })?;
        let job = self.n_jobs.fetch_add(1, Ordering::Relaxed);
        Ok(Part { job, first_table })
    }
}

impl Environment {
    /// Opens the state in `data_dir`, or in a directory that is removed with the environment.
    pub fn open(
        factory: Arc<dyn ConnectorFactory>,
        data_dir: Option<PathBuf>,
    ) -> Result<Self, RuntimeError> {
        let durable = data_dir.is_some();
        let io = |source| RuntimeError::Io {
            what: "a temporary directory for state".into(),
            source,
        };
        let scratch = if durable {
            None
        } else {
            Some(Arc::new(tempfile::tempdir().map_err(io)?))
        };
        let dir = match (&data_dir, &scratch) {
            (Some(dir), _) => dir.join("state"),
            (None, Some(scratch)) => scratch.path().join("state"),
            (None, None) => unreachable!("one of them is there"),
        };
        let io = |source| RuntimeError::Io {
            what: dir.display().to_string(),
            source,
        };
        std::fs::create_dir_all(&dir).map_err(io)?;
        let store = StateStore::open(&dir)?;
        Ok(Self {
            factory,
            store,
            parts: Arc::default(),
            _scratch: scratch,
            durable,
        })
    }

    /// Bytes that the state of all jobs takes on disk.
    pub fn state_disk_bytes(&self) -> u64 {
        self.store.stats().file_bytes
    }

    /// The same state for jobs with other connectors, as those of one script's results.
    pub fn with_factory(&self, factory: Arc<dyn ConnectorFactory>) -> Self {
        Self {
            factory,
            ..self.clone()
        }
    }
}

/// How a job is asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    /// After one final epoch.
    Drain,
    /// At once.
    Cancel,
}

pub struct JobHandle {
    coordinator: JoinHandle<Result<(), RuntimeError>>,
    stop: watch::Sender<Stop>,
    metrics: Arc<JobMetrics>,
}

/// Starts the tasks of a job. Must be called within a tokio runtime. Errors: a plan that cannot be
/// built, a source or sink that cannot be opened.
pub fn start(
    graph: &Graph,
    settings: &JobSettings,
    environment: &Environment,
) -> Result<JobHandle, RuntimeError> {
    let metrics = Arc::new(JobMetrics::default());
    let part = environment.parts.take(graph.nodes.len())?;
    let plan = build::build(graph, settings, environment, &metrics, part)?;
    let (stop, stopped) = watch::channel(Stop::No);
    let coordinator =
        coordinator::Coordinator::new(plan, settings, environment, metrics.clone(), stopped);
    Ok(JobHandle {
        coordinator: tokio::spawn(coordinator.run()),
        stop,
        metrics,
    })
}

impl JobHandle {
    /// Waits until the sources end, a drain is complete, or something fails.
    pub async fn wait(&mut self) -> Result<(), RuntimeError> {
        match (&mut self.coordinator).await {
            Ok(result) => result,
            Err(join) => Err(RuntimeError::Panic(join.to_string())),
        }
    }

    /// Asks for one final epoch: what was read is processed, sinks are flushed.
    pub fn drain(&self) {
        self.stop.send_if_modified(|stop| {
            let first = *stop == Stop::No;
            if first {
                *stop = Stop::Drain;
            }
            first
        });
    }

    /// Stops at once; output of the current epoch may be lost.
    pub fn cancel(&self) {
        self.stop.send_replace(Stop::Cancel);
    }

    pub fn metrics(&self) -> Arc<JobMetrics> {
        self.metrics.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_jobs_share_a_table_however_many_there_were() {
        let parts = Parts::default();
        let mut end = 1;
        for job in 0..5000 {
            let part = parts.take(3).unwrap();
            assert_eq!((part.job, part.first_table), (job, end));
            end = part.first_table + 3 * TABLES_PER_NODE;
        }
        assert!(parts.take(usize::MAX).is_err());
        assert_eq!(parts.take(1).unwrap().first_table, end);
    }
}
