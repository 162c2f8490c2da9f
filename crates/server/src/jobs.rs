//! The jobs of this process: what runs, under which name, how it does and how it ended.
//!
//! Every job has a supervisor, a task that owns it until its end; a [`Job`] is what everybody else
//! sees of it. `thalweg run` and the connections of `thalweg serve` start jobs here; `SHOW JOBS` and
//! whoever exports metrics read the list. Knows nothing of SQL, clients or protocols.

mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_runtime::clock;
use thalweg_runtime::metrics::JobMetrics;
use tokio::sync::watch;

pub use state::{Ended, JobState, Outcome};

use crate::job::Running;

/// Ended jobs beyond this many are forgotten, the oldest first.
const ENDED_JOBS_KEPT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

/// What a job is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Fills tables. Stays in the list when it has ended, with how.
    Insert,
    /// Answers a client. Leaves the list with its end, which the client is told.
    Select,
    /// Streams changes to a client. Leaves the list with its end.
    Subscribe,
}

impl JobKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Select => "select",
            Self::Subscribe => "subscribe",
        }
    }
}

/// What is known of a job before it runs.
#[derive(Debug, Clone)]
pub struct JobSpec {
    pub name: JobName,
    pub kind: JobKind,
    /// Tables and views that may not be dropped while it runs.
    pub uses: BTreeSet<String>,
}

/// How a job comes by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobName {
    /// This one; a job that runs under it is in the way.
    Exactly(String),
    /// This one, or with `_2`, `_3` and so on where it is the name of a job already, also of one that has
    /// ended.
    Like(String),
}

/// One job, as everybody but its supervisor sees it.
#[derive(Debug)]
pub struct Job {
    id: JobId,
    name: String,
    kind: JobKind,
    uses: BTreeSet<String>,
    /// Nanoseconds since the UTC epoch.
    started: i64,
    metrics: Arc<JobMetrics>,
    request: watch::Sender<Request>,
    state: watch::Sender<JobState>,
}

/// What was asked of a supervisor; later is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Request {
    None,
    Drain,
    Cancel,
}

impl Job {
    pub fn id(&self) -> JobId {
        self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn kind(&self) -> JobKind {
        self.kind
    }

    pub fn uses(&self) -> &BTreeSet<String> {
        &self.uses
    }

    /// Nanoseconds since the UTC epoch.
    pub fn started(&self) -> i64 {
        self.started
    }

    pub fn metrics(&self) -> &Arc<JobMetrics> {
        &self.metrics
    }

    pub fn state(&self) -> JobState {
        self.state.borrow().clone()
    }

    /// Asks for a final epoch: what has been read is worked off, sinks are flushed, the job ends.
    pub fn drain(&self) {
        self.ask(Request::Drain);
    }

    /// Ends the job at once; output of the current epoch may be lost.
    pub fn cancel(&self) {
        self.ask(Request::Cancel);
    }

    fn ask(&self, wanted: Request) {
        self.request.send_if_modified(|request| {
            let more = *request < wanted;
            *request = wanted.max(*request);
            more
        });
    }

    /// Waits for the job's end. Cancel-safe.
    pub async fn ended(&self) -> Arc<Ended> {
        let mut state = self.state.subscribe();
        // The sender lives in `self`, so waiting cannot fail.
        match state.wait_for(JobState::has_ended).await.as_deref() {
            Ok(JobState::Ended(ended)) => ended.clone(),
            _ => Arc::new(Ended::unknown()),
        }
    }
}

/// A job that is ended at once when this is dropped, as a client's query with its client.
#[derive(Debug)]
pub struct Owned {
    job: Arc<Job>,
    released: bool,
}

impl Owned {
    pub fn new(job: Arc<Job>) -> Self {
        Self {
            job,
            released: false,
        }
    }

    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Lets the job run on.
    pub fn release(mut self) -> Arc<Job> {
        self.released = true;
        self.job.clone()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.released {
            self.job.cancel();
        }
    }
}

/// The jobs of a process, in the order of their start. Shared by whoever starts, lists and ends jobs.
#[derive(Debug, Default)]
pub struct Jobs {
    jobs: Mutex<BTreeMap<JobId, Arc<Job>>>,
    n_started: AtomicU64,
}

/// Another job that has not ended has the name.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("job \"{0}\" already exists")]
pub struct NameTaken(pub String);

impl Jobs {
    /// Hands a job that has just been started to a supervisor. A job of the same name that has ended
    /// gives way. Inside a Tokio runtime. Errors: a job of that name runs; `running` is then ended.
    pub fn supervise(
        self: &Arc<Self>,
        spec: JobSpec,
        running: Running,
    ) -> Result<Arc<Job>, NameTaken> {
        let job = {
            let mut jobs = self.lock();
            let name = match spec.name {
                JobName::Exactly(name) => name,
                JobName::Like(base) => free_name(&jobs, base),
            };
            if let Some(other) = by_name(&jobs, &name) {
                if !other.state().has_ended() {
                    return Err(NameTaken(name));
                }
                jobs.remove(&other.id);
            }
            let job = Arc::new(Job {
                id: JobId(self.n_started.fetch_add(1, Ordering::Relaxed) + 1),
                name,
                kind: spec.kind,
                uses: spec.uses,
                started: clock::now_nanos(),
                metrics: running.metrics().clone(),
                request: watch::Sender::new(Request::None),
                state: watch::Sender::new(JobState::Running),
            });
            jobs.insert(job.id, job.clone());
            job
        };
        tokio::spawn(watch_over(self.clone(), job.clone(), running));
        Ok(job)
    }

    /// All jobs, in the order of their start.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.lock().values().cloned().collect()
    }

    /// The jobs that have not ended.
    pub fn running(&self) -> Vec<Arc<Job>> {
        let mut jobs = self.list();
        jobs.retain(|job| !job.state().has_ended());
        jobs
    }

    pub fn find(&self, name: &str) -> Option<Arc<Job>> {
        by_name(&self.lock(), name)
    }

    /// The tables and views that running jobs use, each with the name of one that does. A job that was told to
    /// end at once, as when its client has heard of an error, is in nobody's way.
    pub fn in_use(&self) -> BTreeMap<String, String> {
        let mut jobs = self.running();
        jobs.retain(|job| *job.request.borrow() != Request::Cancel);
        let users = jobs
            .iter()
            .flat_map(|job| job.uses().iter().map(|used| (used, job.name())));
        users
            .map(|(used, user)| (used.clone(), user.to_string()))
            .collect()
    }

    /// Removes a job that has ended from the list.
    pub fn forget(&self, id: JobId) {
        let mut jobs = self.lock();
        if jobs.get(&id).is_some_and(|job| job.state().has_ended()) {
            jobs.remove(&id);
        }
    }

    fn close(&self, job: &Job, ended: Ended) {
        let mut jobs = self.lock();
        if job.kind() != JobKind::Insert {
            jobs.remove(&job.id);
        }
        job.state.send_replace(JobState::Ended(Arc::new(ended)));
        let ended = jobs.values().filter(|job| job.state().has_ended());
        let n_ended = ended.clone().count();
        let oldest: Vec<_> = ended
            .take(n_ended.saturating_sub(ENDED_JOBS_KEPT))
            .map(|job| job.id)
            .collect();
        oldest.iter().for_each(|id| drop(jobs.remove(id)));
    }

    /// A poisoned lock means that another thread panicked between two complete states.
    fn lock(&self) -> MutexGuard<'_, BTreeMap<JobId, Arc<Job>>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last started of that name: an ended one may stand before it for a moment.
fn by_name(jobs: &BTreeMap<JobId, Arc<Job>>, name: &str) -> Option<Arc<Job>> {
    jobs.values().rfind(|job| job.name() == name).cloned()
}

fn free_name(jobs: &BTreeMap<JobId, Arc<Job>>, base: String) -> String {
    let numbered = (2..).map(|n| format!("{base}_{n}"));
    std::iter::once(base.clone())
        .chain(numbered)
        .find(|name| by_name(jobs, name).is_none())
        .expect("there are fewer jobs than numbers")
}

/// Owns a job until its end.
async fn watch_over(jobs: Arc<Jobs>, job: Arc<Job>, mut running: Running) {
    let mut request = job.request.subscribe();
    let mut draining = false;
    let outcome = loop {
        // Errors cannot come: the sender lives in `job`.
        let wanted = *request.borrow_and_update();
        match wanted {
            Request::Cancel => running.cancel(),
            Request::Drain if !draining => {
                draining = true;
                running.drain();
                job.state.send_replace(JobState::Draining);
            }
            _ => {}
        }
        tokio::select! {
            ended = running.wait() => break match ended {
                Ok(()) if wanted == Request::Cancel => Outcome::Cancelled,
                Ok(()) => Outcome::Finished,
                Err(error) => Outcome::Failed(error),
            },
            _ = request.changed() => {}
        }
    };
    let warnings = running.warnings();
    jobs.close(&job, Ended { outcome, warnings });
}

#[cfg(test)]
mod tests;
