//! Sessions: a catalog and settings, and the statements that change and run them.
//!
//! The command line prints results as they come ([`Session::plan`], [`Session::start`]); everyone else
//! runs statements to their end ([`Session::execute`]).

use std::sync::Arc;

use arrow::array::{ArrayRef, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::plan::{Graph, NodeId, Op};
use thalweg_dataflow::table::SourceSpec;
use thalweg_planner::catalog::Catalog;
use thalweg_planner::script::QueryKind;
use thalweg_planner::settings::Settings;
use thalweg_planner::{Outcome, Planner, Script, ScriptOptions};
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::{ConnectorFactory, Source};

use crate::engine::{Engine, EngineOptions};
use crate::error::{Error, Result};
use crate::results::Collector;

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

/// Settings of its own, and the engine that it shares with others.
pub struct Session {
    engine: Arc<Engine>,
    settings: Settings,
    warnings: Vec<String>,
}

impl Session {
    /// A session with an engine of its own.
    pub fn new(options: EngineOptions) -> Self {
        Self::of(Arc::new(Engine::new(options)))
    }

    /// A session beside others.
    pub fn of(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            settings: Settings::default(),
            warnings: Vec::new(),
        }
    }

    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Plans a script; its DDL and settings take effect unless it has faults. Columns that tables do not declare are
    /// asked for outside first, which may take seconds.
    pub fn plan(&mut self, sql: &str, options: &ScriptOptions) -> Result<Script> {
        let statements = Planner::parse(sql);
        loop {
            let before = self.engine.catalog();
            let mut planner = self.planner(before.clone());
            let options = ScriptOptions {
                found: self.engine.find_columns(&planner, &statements),
                ..options.clone()
            };
            let script = planner.plan_parsed(statements.clone(), &options);
            let script = script.map_err(Error::Faults)?;
            let (catalog, settings) = planner.into_parts();
            // Where another session has changed the catalog meanwhile, this one sees it now.
            if self.engine.replace_catalog(&before, catalog) {
                self.settings = settings;
                return Ok(script);
            }
        }
    }

    fn planner(&self, catalog: Catalog) -> Planner {
        Planner::resume(self.engine.registry(), catalog, self.settings.clone())
    }

    /// A table of the catalog as it is read by itself, with all of its columns. Errors: there is no such table, or it
    /// cannot be read.
    pub fn source(&self, table: &str) -> Result<(Arc<SourceSpec>, Box<dyn Source>)> {
        let Some(spec) = self.planner(self.engine.catalog()).source_of(table) else {
            return Err(Error::Usage(format!(
                "the script has no table \"{table}\" with a connector"
            )));
        };
        let spec = Arc::new(spec.map_err(|fault| Error::Faults(vec![fault]))?);
        let source = self.engine.connectors().source(&spec)?;
        Ok((spec, source))
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
            .map(|job| self.engine.start(job, collector.clone()))
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
pub fn subscribed(script: &Script) -> Vec<String> {
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

/// What a statement came to, once its job has ended.
pub fn result(outcome: Outcome, collector: &Collector) -> Result<StatementResult> {
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
