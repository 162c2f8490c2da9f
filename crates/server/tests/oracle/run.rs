//! One case: a query, its input, and whether Thalweg gives what the model says.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use thalweg_dataflow::plan::{Graph, JobSettings};
use thalweg_planner::{Outcome, Planner, ScriptOptions};
use thalweg_runtime::job::{self, Environment};

use crate::check::check;
use crate::connector::{OracleFactory, OracleRegistry, Shared, locked};
use crate::input::{Cuts, Input, Reading};
use crate::model::{BatchEngine, Model, NoAnswer, Progress};
use crate::query::{Rel, TABLE_COLUMNS, Table, stream_sql};

/// Long enough for the slowest machine, and never reached by a job that ends.
const TIME_LIMIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub struct Case {
    pub rel: Rel,
    pub input: Input,
}

#[derive(Debug)]
pub enum Failure {
    /// The planner refuses the query.
    Refused(String),
    /// The job fails.
    Failed(String),
    /// It does not end.
    Stuck,
    /// It gives something else.
    Wrong(String),
    /// The batch engine has a fault of its own there, as DataFusion's `first_value` where sort keys turn
    /// out to be equal.
    NoAnswer,
    /// The model cannot say what is right: a fault of the test.
    Model(String),
}

impl Failure {
    /// Whether both are failures of one sort: a query that became senseless while it was made smaller is
    /// refused for another reason.
    pub fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.gist() == other.gist()
    }

    /// The first words, without names and numbers.
    fn gist(&self) -> Vec<String> {
        let (Self::Refused(text) | Self::Failed(text)) = self else {
            return Vec::new();
        };
        let words = text
            .split_whitespace()
            .filter(|w| w.chars().all(char::is_alphabetic));
        words.take(6).map(str::to_string).collect()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) => write!(f, "the query is refused: {why}"),
            Self::Failed(why) => write!(f, "the job failed: {why}"),
            Self::Stuck => write!(f, "the job did not end within {TIME_LIMIT:?}"),
            Self::NoAnswer => write!(f, "the batch engine has no answer"),
            Self::Wrong(what) => write!(f, "{what}"),
            Self::Model(what) => write!(f, "fault of the oracle: {what}"),
        }
    }
}

/// A query planned by both sides, to be run on several inputs.
pub struct Subject<'a> {
    graph: Graph,
    settings: JobSettings,
    model: Model<'a>,
    expiring: bool,
}

impl<'a> Subject<'a> {
    /// Lags of watermarks are part of the declarations, so they come from `input`.
    pub async fn new(engine: &'a BatchEngine, rel: &Rel, input: &Input) -> Result<Self, Failure> {
        let mut planner = Planner::new(Arc::new(OracleRegistry::new()));
        let planned = planner.plan(&script(rel, input), &ScriptOptions::default());
        let mut script = planned.map_err(|faults| {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            Failure::Refused(faults.join("; "))
        })?;
        let [job] = script.jobs.as_mut_slice() else {
            return Err(Failure::Refused(format!(
                "one query became {} jobs",
                script.jobs.len()
            )));
        };
        let model = Model::new(engine, rel).await.map_err(failed)?;
        let expiring = matches!(rel, Rel::Group(g) if g.ttl.is_some());
        Ok(Self {
            graph: std::mem::take(&mut job.graph),
            settings: job.settings.clone(),
            model,
            expiring,
        })
    }

    pub async fn run(&mut self, environment: &Environment, input: &Input) -> Result<(), Failure> {
        let record = Shared::default();
        let factory = OracleFactory {
            input: Arc::new(input.clone()),
            record: record.clone(),
        };
        let environment = environment.with_factory(Arc::new(factory));
        let settings = settings(&self.settings, &input.reading);
        let mut handle = job::start(&self.graph, &settings, &environment)
            .map_err(|e| Failure::Failed(e.to_string()))?;
        match tokio::time::timeout(TIME_LIMIT, handle.wait()).await {
            Err(_) => return Err(Failure::Stuck),
            Ok(ended) => ended.map_err(|e| Failure::Failed(e.to_string()))?,
        }
        let record = std::mem::take(&mut *locked(&record));
        let progress = Progress {
            n_epochs: record.n_epochs as usize,
            cuts: record.cuts.clone(),
        };
        let answers = self.model.answers(input, &progress).await.map_err(failed)?;
        check(&record, &answers, self.expiring).map_err(|what| {
            Failure::Wrong(format!(
                "{what}\n  rows read by split at each cut: {:?}",
                record.cuts
            ))
        })
    }
}

/// Why the model has no answer.
fn failed(error: anyhow::Error) -> Failure {
    match error.is::<NoAnswer>() {
        true => Failure::NoAnswer,
        false => Failure::Model(format!("{error:#}")),
    }
}

/// The plan of the query, where it has one.
pub fn explain(rel: &Rel, input: &Input) -> String {
    let explained = format!("{}EXPLAIN {};", declarations(rel, input), stream_sql(rel));
    let mut planner = Planner::new(Arc::new(OracleRegistry::new()));
    let script = planner
        .plan(&explained, &ScriptOptions::default())
        .unwrap_or_default();
    match script.outcomes.last() {
        Some(Outcome::Text(text)) => text.clone(),
        _ => "no plan".into(),
    }
}

/// What Thalweg is given.
pub fn script(rel: &Rel, input: &Input) -> String {
    format!("{}{};", declarations(rel, input), stream_sql(rel))
}

fn declarations(rel: &Rel, input: &Input) -> String {
    let mut script = String::new();
    for table in rel.tables() {
        script.push_str(&create_table(table, input));
    }
    if let Rel::Group(group) = rel
        && let Some((_, ttl)) = group.ttl
    {
        script.push_str(&format!(
            "SET updating_ttl = '{} microseconds';\n",
            ttl / 1000
        ));
    }
    script
}

fn create_table(table: Table, input: &Input) -> String {
    let columns: Vec<_> = TABLE_COLUMNS
        .iter()
        .map(|(name, _, ty)| format!("{name} {ty}"))
        .collect();
    let (key, format) = if table.updating {
        (", PRIMARY KEY (id)", "changelog")
    } else {
        ("", "rows")
    };
    let lag = input.tables.get(table.name).map_or(0, |t| t.lag) / 1_000_000;
    format!(
        "CREATE TABLE {} ({}{key}, WATERMARK FOR ts AS ts - INTERVAL '{lag} milliseconds') WITH (connector = 'oracle', format = '{format}');\n",
        table.name,
        columns.join(", ")
    )
}

fn settings(planned: &JobSettings, reading: &Reading) -> JobSettings {
    const NEVER: i64 = 3_600_000_000_000;
    let (flush_interval, epoch_max_rows) = match reading.cuts {
        Cuts::Rows(n) => (NEVER, Some(n)),
        Cuts::EachRow => (0, None),
        Cuts::Gates(_) => (1_000_000, None),
    };
    JobSettings {
        flush_interval,
        epoch_max_rows,
        // Each epoch is committed, which is also how a reader learns of its cuts.
        checkpoint_interval: 0,
        parallelism: Some(reading.parallelism),
        state_memory: reading.state_memory,
        ..planned.clone()
    }
}
