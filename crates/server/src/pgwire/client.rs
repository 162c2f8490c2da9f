//! One client: what it has set, opened and prepared, and how its statements are planned.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use pgwire::messages::response::TransactionStatus;
use thalweg_planner::settings::Settings;
use thalweg_planner::{Parsed, Script};

use super::backend::Output;
use super::client_settings::ClientSettings;
use super::cursor::Cursor;
use super::error::Failure;
use super::plan::{self, Plan};
use super::prepared::{BoundPortal, Prepared};
use crate::engine::Engine;
use crate::jobs::{JobSpec, Owned};
use crate::results::ResultTarget;

/// Why a statement did not come to its end.
#[derive(Debug)]
pub enum Stop {
    Failed(Failure),
    /// There is nobody to be told.
    Disconnected,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Self {
        Self::Disconnected
    }
}

pub type Result<T = (), E = Stop> = std::result::Result<T, E>;

pub struct Client {
    pub engine: Arc<Engine>,
    pub settings: Settings,
    pub client_settings: ClientSettings,
    pub output: Output,
    pub transaction: TransactionStatus,
    pub statements: HashMap<String, Arc<Prepared>>,
    pub portals: HashMap<String, BoundPortal>,
    pub cursors: HashMap<String, Cursor>,
}

impl Client {
    pub fn new(engine: Arc<Engine>, client_settings: ClientSettings, output: Output) -> Self {
        Self {
            engine,
            settings: Settings::default(),
            client_settings,
            output,
            transaction: TransactionStatus::Idle,
            statements: HashMap::new(),
            portals: HashMap::new(),
            cursors: HashMap::new(),
        }
    }

    pub async fn parse(&self, text: &str) -> Result<Vec<Parsed>> {
        let text = text.to_string();
        blocking(move || plan::parse(&text)).await
    }

    /// Plans statements; their DDL and settings are in force when this returns.
    pub async fn plan(&mut self, statements: Vec<Parsed>, text: &str) -> Result<Plan> {
        let (engine, settings) = (self.engine.clone(), self.settings.clone());
        let text = text.to_string();
        let plan = blocking(move || plan::plan(&engine, &settings, statements, &text)).await??;
        self.settings = plan.settings.clone();
        Ok(plan)
    }

    /// Starts the job of a script, of which it has one. The job ends when what is returned is dropped.
    pub async fn start(
        &mut self,
        spec: JobSpec,
        script: Script,
        results: Arc<dyn ResultTarget>,
    ) -> Result<Owned> {
        let Some(mut job) = script.jobs.into_iter().next() else {
            return Err(Failure::internal("a query without a job").into());
        };
        for notice in std::mem::take(&mut job.notices) {
            self.output.notice(&notice);
        }
        let engine = self.engine.clone();
        let started =
            blocking(move || engine.start_job(spec, job, results).map(Owned::new)).await?;
        started.map_err(|error| Failure::of_error(&error, "").into())
    }

    /// Errors: the transaction has failed, and the statements do not begin with its end.
    pub fn check_transaction(&self, statements: &[Parsed]) -> Result<(), Failure> {
        let first = statements.first().map(|parsed| &parsed.result);
        let ends = matches!(first, Some(Ok(statement)) if plan::ends_transaction(statement));
        if self.transaction == TransactionStatus::Error && !ends {
            let message =
                "current transaction is aborted, commands ignored until end of transaction block";
            return Err(Failure::new("25P02", message));
        }
        Ok(())
    }

    /// What a failure does to the transaction.
    pub fn fail(&mut self) {
        if self.transaction == TransactionStatus::Transaction {
            self.transaction = TransactionStatus::Error;
        }
    }

    pub fn end_transaction(&mut self) {
        self.transaction = TransactionStatus::Idle;
        self.portals.clear();
        self.cursors.retain(|_, cursor| cursor.hold);
    }
}

/// Runs what takes a while, or waits for a disk, where nobody else is held up.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Failure::internal(error).into())
}
