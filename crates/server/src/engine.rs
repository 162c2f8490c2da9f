//! What the sessions of a process share: the catalog, the state directory, the connectors, the jobs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use thalweg_connectors::{Connectors, discover};
use thalweg_dataflow::options::Registry;
use thalweg_planner::catalog::Catalog;
use thalweg_planner::{FoundColumns, Job as PlannedJob, Parsed, Planner};
use thalweg_runtime::job::Environment;

use crate::error::Result;
use crate::job::Running;
use crate::jobs::{Job, JobSpec, Jobs};
use crate::results::{ResultTarget, WithResults};

/// What an engine is opened with.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Where state is kept; a temporary directory where none is given.
    pub data_dir: Option<PathBuf>,
    /// Subtasks per operator where nobody says how many.
    pub parallelism: Option<usize>,
}

pub struct Engine {
    connectors: Arc<Connectors>,
    options: EngineOptions,
    /// Opened with the first job: a script that is only planned touches no disk.
    environment: Mutex<Option<Environment>>,
    catalog: Mutex<Catalog>,
    jobs: Arc<Jobs>,
}

impl Engine {
    pub fn new(options: EngineOptions) -> Self {
        Self {
            connectors: Arc::new(Connectors::standard()),
            options,
            environment: Mutex::default(),
            catalog: Mutex::default(),
            jobs: Arc::default(),
        }
    }

    pub fn jobs(&self) -> &Arc<Jobs> {
        &self.jobs
    }

    /// What connectors there are and which options they take.
    pub fn registry(&self) -> Arc<dyn Registry> {
        self.connectors.clone()
    }

    pub fn connectors(&self) -> &Arc<Connectors> {
        &self.connectors
    }

    /// The columns of tables among `statements` that declare none, asked for outside, which may take
    /// seconds; by the index of their statement.
    pub fn find_columns(
        &self,
        planner: &Planner,
        statements: &[Parsed],
    ) -> BTreeMap<usize, FoundColumns> {
        let outlines = planner.outlines(statements).into_iter();
        outlines
            .map(|(i, table)| (i, discover::columns(&self.connectors, &table)))
            .collect()
    }

    /// The catalog as it is now.
    pub fn catalog(&self) -> Catalog {
        lock(&self.catalog).clone()
    }

    /// Puts `new` in the place of `old`; `false` where somebody else has changed the catalog since, and
    /// nothing was done.
    pub fn replace_catalog(&self, old: &Catalog, new: Catalog) -> bool {
        if new.is_same(old) {
            return true;
        }
        let mut catalog = lock(&self.catalog);
        let current = catalog.is_same(old);
        if current {
            *catalog = new;
        }
        current
    }

    /// Starts a planned job, whose results go to `results`. Inside a Tokio runtime. Errors: a data
    /// directory that cannot be opened; a source or sink that cannot.
    pub fn start(&self, job: PlannedJob, results: Arc<dyn ResultTarget>) -> Result<Running> {
        let connectors = self.connectors.clone();
        let factory = Arc::new(WithResults {
            connectors,
            results,
        });
        let environment = self.environment()?.with_factory(factory);
        let mut settings = job.settings;
        settings.parallelism = settings.parallelism.or(self.options.parallelism);
        Running::start(&job.graph, &settings, &environment)
    }

    /// The same, in the list of jobs.
    pub fn start_job(
        &self,
        spec: JobSpec,
        job: PlannedJob,
        results: Arc<dyn ResultTarget>,
    ) -> Result<Arc<Job>> {
        Ok(self.jobs.supervise(spec, self.start(job, results)?)?)
    }

    /// Opens the data directory now rather than with the first job.
    pub fn open(&self) -> Result<()> {
        self.environment().map(drop)
    }

    /// Bytes that the state of all jobs takes on disk; `None` where none has been kept.
    pub fn state_disk_bytes(&self) -> Option<u64> {
        lock(&self.environment)
            .as_ref()
            .map(Environment::state_disk_bytes)
    }

    fn environment(&self) -> Result<Environment> {
        let mut environment = lock(&self.environment);
        let environment = match &mut *environment {
            Some(environment) => environment,
            none => {
                let data_dir = self.options.data_dir.clone();
                none.insert(Environment::open(self.connectors.clone(), data_dir)?)
            }
        };
        Ok(environment.clone())
    }
}

/// A poisoned lock means that another thread panicked between two complete values.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
