//! Sessions: a catalog and settings, and the statements that change and run them.
//!
//! The command line prints results as they come ([`Session::plan`], [`Session::start`]); everyone else
//! runs statements to their end ([`Session::execute`]).

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use thalweg_connectors::{Connectors, discover};
use thalweg_dataflow::plan::{Graph, NodeId, Op};
use thalweg_dataflow::table::SourceSpec;
use thalweg_planner::script::QueryKind;
use thalweg_planner::{Job, Outcome, Planner, Script, ScriptOptions};
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::{ConnectorFactory, Source};
use thalweg_runtime::job::Environment;

use crate::error::{Error, Result};
use crate::job::Running;
use crate::results::{Collector, ResultTarget, WithResults};

/// What a session is opened with.
#[derive(Debug, Clone, Default)]
pub struct SessionOptions {
    /// Where state is kept; a temporary directory where none is given.
    pub data_dir: Option<PathBuf>,
    /// Subtasks per operator where the script does not say.
    pub parallelism: Option<usize>,
}

/// What a statement gave.
#[derive(Debug)]
pub enum StatementResult {
    /// It is done; the command tag, as `CREATE TABLE`.
    Done(String),
    /// The final rows of a SELECT, the changelog of a SUBSCRIBE, the answer of SHOW or EXPLAIN.
    Rows {
        schema: SchemaRef,
        batches: Vec<RecordBatch>,
    },
}

pub struct Session {
    planner: Planner,
    /// Those that scripts can name: where columns are found that tables do not declare.
    tables: Arc<Connectors>,
    connectors: Arc<dyn ConnectorFactory>,
    options: SessionOptions,
    /// Opened with the first job: a script that is only planned touches no disk.
    environment: Option<Environment>,
    warnings: Vec<String>,
}

impl Session {
    pub fn new(options: SessionOptions) -> Self {
        let connectors = Arc::new(Connectors::standard());
        Self {
            planner: Planner::new(connectors.clone()),
            tables: connectors.clone(),
            connectors,
            options,
            environment: None,
            warnings: Vec::new(),
        }
    }

    /// Plans a script; its DDL and settings take effect unless it has faults. Columns that tables do not declare are
    /// asked for outside first, which may take seconds.
    pub fn plan(&mut self, sql: &str, options: &ScriptOptions) -> Result<Script> {
        let outlines = self.planner.outlines(sql).into_iter();
        let found = outlines.map(|(i, table)| (i, discover::columns(&self.tables, &table)));
        let options = ScriptOptions {
            found: found.collect(),
            ..options.clone()
        };
        self.planner.plan(sql, &options).map_err(Error::Faults)
    }

    /// A table of the catalog as it is read by itself, with all of its columns. Errors: there is no such table, or it
    /// cannot be read.
    pub fn source(&self, table: &str) -> Result<(Arc<SourceSpec>, Box<dyn Source>)> {
        let Some(spec) = self.planner.source_of(table) else {
            return Err(Error::Usage(format!(
                "the script has no table \"{table}\" with a connector"
            )));
        };
        let spec = Arc::new(spec.map_err(|fault| Error::Faults(vec![fault]))?);
        let source = self.connectors.source(&spec)?;
        Ok((spec, source))
    }

    /// Starts a planned job, whose results go to `results`. Inside a Tokio runtime. Errors: a data
    /// directory that cannot be opened; a source or sink that cannot.
    pub fn start(&mut self, job: Job, results: Arc<dyn ResultTarget>) -> Result<Running> {
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

    fn environment(&mut self) -> Result<&Environment> {
        if self.environment.is_none() {
            let data_dir = self.options.data_dir.clone();
            self.environment = Some(Environment::open(self.connectors.clone(), data_dir)?);
        }
        Ok(self.environment.as_ref().expect("opened above"))
    }

    /// Runs a script to its end and gives one result per statement. Errors: faults; a query whose
    /// sources never end; what a job failed with, the first of them if there are several.
    pub async fn execute(&mut self, sql: &str) -> Result<Vec<StatementResult>> {
        self.warnings.clear();
        let script = self.plan(sql, &ScriptOptions::default())?;
        refuse_endless(&script)?;
        let collector = Arc::new(Collector::new(subscribed(&script)));
        let Script { outcomes, jobs } = script;
        let running = jobs
            .into_iter()
            .map(|job| self.start(job, collector.clone()))
            .collect::<Result<Vec<_>>>()?;
        let mut first_error = None;
        for mut job in running {
            let ended = job.wait().await;
            self.warnings.extend(job.warnings());
            first_error = first_error.or(ended.err());
        }
        match first_error {
            Some(error) => Err(error),
            None => outcomes
                .into_iter()
                .map(|outcome| result(outcome, &collector))
                .collect(),
        }
    }

    /// What the last execution had to tell beside its results: late rows, dropped records.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Sinks of the script whose changelog is wanted.
fn subscribed(script: &Script) -> Vec<String> {
    let queries = script.outcomes.iter().filter_map(|outcome| match outcome {
        Outcome::Query {
            kind: QueryKind::Subscribe,
            target,
            ..
        } => Some(target.clone()),
        _ => None,
    });
    queries.collect()
}

fn refuse_endless(script: &Script) -> Result<()> {
    for outcome in &script.outcomes {
        let Outcome::Query {
            job, sink, kind, ..
        } = outcome
        else {
            continue;
        };
        if let Some(table) = endless_source(&script.jobs[*job].graph, *sink) {
            let what = match kind {
                QueryKind::Select => "this SELECT",
                QueryKind::Subscribe => "this SUBSCRIBE",
                QueryKind::Insert => "this INSERT",
                QueryKind::CreateTableAs => "this CREATE TABLE AS",
            };
            return Err(Error::NeverEnds { what, table });
        }
    }
    Ok(())
}

/// A source above `node` that never ends, if there is one.
pub fn endless_source(graph: &Graph, node: NodeId) -> Option<String> {
    let mut to_visit = vec![node];
    let mut seen = vec![false; graph.nodes.len()];
    while let Some(id) = to_visit.pop() {
        if std::mem::replace(&mut seen[id.0], true) {
            continue;
        }
        match &graph.node(id).op {
            Op::Source(spec) if !spec.bounded => return Some(spec.table.clone()),
            _ => to_visit.extend(graph.node(id).inputs.iter().map(|input| input.node)),
        }
    }
    None
}

fn result(outcome: Outcome, collector: &Collector) -> Result<StatementResult> {
    match outcome {
        Outcome::Done(tag) => Ok(StatementResult::Done(tag)),
        Outcome::Rows { columns, rows } => text_rows(columns, &rows),
        Outcome::Text(text) => {
            let lines: Vec<_> = text.lines().map(|line| vec![line.to_string()]).collect();
            text_rows(vec!["plan".into()], &lines)
        }
        Outcome::Query {
            kind: QueryKind::Insert,
            ..
        } => Ok(StatementResult::Done("INSERT".into())),
        Outcome::Query {
            kind: QueryKind::CreateTableAs,
            ..
        } => Ok(StatementResult::Done("CREATE TABLE AS".into())),
        Outcome::Query { target, .. } => {
            let collected = collector.take(&target)?;
            let collected = collected.ok_or_else(|| {
                Error::Runtime(RuntimeError::Internal(format!(
                    "result {target} was never opened"
                )))
            })?;
            Ok(StatementResult::Rows {
                schema: collected.schema,
                batches: collected.batches,
            })
        }
    }
}

fn text_rows(columns: Vec<String>, rows: &[Vec<String>]) -> Result<StatementResult> {
    let batch = text_batch(columns, rows)?;
    Ok(StatementResult::Rows {
        schema: batch.schema(),
        batches: vec![batch],
    })
}

/// Rows of text as a batch.
pub fn text_batch(columns: Vec<String>, rows: &[Vec<String>]) -> Result<RecordBatch> {
    let fields: Vec<_> = columns
        .into_iter()
        .map(|name| Field::new(name, DataType::Utf8, true))
        .collect();
    let arrays = (0..fields.len()).map(|i| {
        let column: StringArray = rows.iter().map(|row| row.get(i)).collect();
        Arc::new(column) as ArrayRef
    });
    let arrays = arrays.collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}
