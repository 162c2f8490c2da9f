//! Scripts: the statements of one text, planned together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use thalweg_dataflow::options::{Outline, Registry};
use thalweg_dataflow::plan::{Graph, JobSettings, NodeId};
use thalweg_dataflow::table::SourceSpec;

use crate::bind::{RowLimit, source_spec};
use crate::catalog::{Catalog, Relation};
use crate::declare::{FoundColumns, outline};
use crate::error::Fault;
use crate::lower::lower_script;
use crate::parse::statement::Statement;
use crate::parse::{Parsed, parse};
use crate::settings::Settings;
use crate::statements::{BoundScript, bind_script};

/// The connector name of a bare SELECT's or SUBSCRIBE's sink. The server decides what it is: standard
/// output, a client, a test. Its `SinkSpec::table` is the decimal index of the statement in the script.
pub const RESULT_CONNECTOR: &str = "result";

/// Enough for the deepest text that the parser lets through; only what is used becomes memory.
const STACK_BYTES: usize = 512 << 20;

/// Plans scripts against a catalog and settings that outlive each script.
pub struct Planner {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) catalog: Catalog,
    pub(crate) settings: Settings,
}

/// How a script is to be planned differently from what it says.
#[derive(Debug, Clone, Default)]
pub struct ScriptOptions {
    /// Tables whose connector is replaced by a file: table name to path.
    pub fixtures: BTreeMap<String, String>,
    /// Every sink is replaced by a result sink (`SinkSpec::table` then is the sink's own name).
    pub dry_run: bool,
    /// Columns of tables that declare none, by the index of their statement: see [`Planner::outlines`].
    pub found: BTreeMap<usize, FoundColumns>,
    /// Relations that jobs use which run already, each with the name of one that does: they cannot be
    /// dropped or replaced.
    pub in_use: BTreeMap<String, String>,
    /// LIMIT and OFFSET of a bare SELECT without ORDER BY are left to the caller ([`Outcome::Query`]),
    /// instead of being refused.
    pub result_limits: bool,
}

/// A planned script.
#[derive(Debug, Default)]
pub struct Script {
    /// One per statement, in order.
    pub outcomes: Vec<Outcome>,
    /// Connected statements (through a shared source or an intermediate stream) form one job.
    pub jobs: Vec<Job>,
}

/// What a statement came to.
#[derive(Debug)]
pub enum Outcome {
    /// Done at planning: DDL and SET; the command tag, as `CREATE TABLE`.
    Done(String),
    /// The answer of SHOW: column names and rows.
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// The text of EXPLAIN.
    Text(String),
    /// A query that writes into a sink; `sink` is its node in `Script::jobs[job].graph`.
    Query {
        job: usize,
        sink: NodeId,
        kind: QueryKind,
        target: String,
        /// The rows that are wanted, where not all; the caller sees to it.
        limit: Option<RowLimit>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryKind {
    Select,
    Subscribe,
    Insert,
    CreateTableAs,
}

#[derive(Debug)]
pub struct Job {
    pub graph: Graph,
    pub settings: JobSettings,
    /// The relations that it reads or writes, through views too.
    pub uses: BTreeSet<String>,
    /// What a user should know before it runs: rows that a TTL will remove, a fault in waiting.
    pub notices: Vec<String>,
}

impl Planner {
    pub fn new(registry: Arc<dyn Registry>) -> Self {
        Self {
            registry,
            catalog: Catalog::default(),
            settings: Settings::default(),
        }
    }

    /// The tables among `statements` whose columns must be found before they are planned, by the index of their
    /// statement. The planner cannot look: it asks nobody outside.
    pub fn outlines(&self, statements: &[Parsed]) -> BTreeMap<usize, Outline> {
        stacker::grow(STACK_BYTES, || {
            let creates = statements.iter().enumerate().filter_map(|(i, parsed)| {
                let Ok(Statement::CreateTable(create)) = &parsed.result else {
                    return None;
                };
                let is_there = self.catalog.relations.contains_key(&create.name.text);
                if create.if_not_exists && is_there {
                    return None;
                }
                Some((i, outline(create, self.registry.as_ref())?))
            });
            creates.collect()
        })
    }

    /// The source of a table of the catalog, of which all columns are read; `None`: there is no such table.
    pub fn source_of(&self, table: &str) -> Option<Result<SourceSpec, Fault>> {
        let Relation::Table(def) = self.catalog.relations.get(table)? else {
            return None;
        };
        let columns: Vec<usize> = (0..def.columns.len()).collect();
        Some(source_spec(def, &columns, self.registry.as_ref()))
    }

    /// A planner that goes on with the catalog and the settings of an earlier one.
    pub fn resume(registry: Arc<dyn Registry>, catalog: Catalog, settings: Settings) -> Self {
        Self {
            registry,
            catalog,
            settings,
        }
    }

    pub fn into_parts(self) -> (Catalog, Settings) {
        (self.catalog, self.settings)
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Plans all statements of `sql`, or gives every fault found, in the order of their positions. The
    /// catalog and settings change only when there is no fault.
    pub fn plan(&mut self, sql: &str, options: &ScriptOptions) -> Result<Script, Vec<Fault>> {
        stacker::grow(STACK_BYTES, || self.plan_here(parse(sql), options))
    }

    /// The statements of a text, for [`Planner::plan_parsed`].
    pub fn parse(sql: &str) -> Vec<Parsed> {
        stacker::grow(STACK_BYTES, || parse(sql))
    }

    /// [`Planner::plan`] of some of a text's statements.
    pub fn plan_parsed(
        &mut self,
        statements: Vec<Parsed>,
        options: &ScriptOptions,
    ) -> Result<Script, Vec<Fault>> {
        stacker::grow(STACK_BYTES, || self.plan_here(statements, options))
    }

    /// Whether the statement fills an intermediate stream, and so needs those that read it in the same script.
    pub fn fills_stream(&self, statement: &Statement) -> bool {
        match statement {
            Statement::Insert(insert) => matches!(
                self.catalog.relations.get(&insert.table.text),
                Some(Relation::Stream(_))
            ),
            Statement::CreateTable(create) => create.query.is_some() && create.options.is_empty(),
            _ => false,
        }
    }

    fn plan_here(
        &mut self,
        statements: Vec<Parsed>,
        options: &ScriptOptions,
    ) -> Result<Script, Vec<Fault>> {
        let mut bound = self.bind(statements, options);
        let mut faults = std::mem::take(&mut bound.faults);
        let script = lower_script(&bound, self.registry.as_ref(), &mut faults);
        if !faults.is_empty() {
            faults.sort_by_key(|fault| fault.position);
            faults.dedup();
            return Err(faults);
        }
        bound.catalog.forget_positions();
        self.catalog = bound.catalog;
        self.settings = bound.settings;
        Ok(script)
    }

    pub(crate) fn bind(&self, statements: Vec<Parsed>, options: &ScriptOptions) -> BoundScript {
        bind_script(
            statements,
            options,
            &self.catalog,
            &self.settings,
            &self.registry,
        )
    }
}
