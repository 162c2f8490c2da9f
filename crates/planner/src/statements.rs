//! The statements of a script, one after the other: each sees the catalog and the settings that those
//! before it left behind.

mod ddl;
mod dead_letter;
mod show;
mod streams;

pub use streams::{filled_stream, read_streams};

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Query;
use thalweg_dataflow::options::{Direction, Registry};

use crate::bind::{
    Assignment, Bound, BoundQuery, BoundSink, Fixtures, Places, RelationKind, Scope, bind_query,
    presentable, result_schema, scans, with_distinct_names, without_limit,
};
use crate::catalog::{Catalog, Relation, TableDef};
use crate::declare::{FoundColumns, OptionPositions, check_options};
use crate::error::{Fault, FaultKind, Position, closest};
use crate::parse::Parsed;
use crate::parse::statement::{Insert, Name, Show, Statement};
use crate::script::{QueryKind, ScriptOptions};
use crate::settings::Settings;

/// A script with every statement carried out as far as planning goes.
pub struct BoundScript {
    pub catalog: Catalog,
    pub settings: Settings,
    /// One per statement.
    pub outcomes: Vec<BoundOutcome>,
    /// What is to run, in the order of the statements.
    pub queries: Vec<BoundQuery>,
    /// What EXPLAIN asks about.
    pub explained: Vec<BoundQuery>,
    /// Sinks of rejected records, by table.
    pub dead_letters: BTreeMap<String, BoundSink>,
    /// What is wrong; the rest then covers the statements that are sound.
    pub faults: Vec<Fault>,
}

#[derive(Debug)]
pub enum BoundOutcome {
    Done(&'static str),
    Rows {
        columns: Vec<String>,
        rows: Vec<Vec<String>>,
    },
    /// Position in `queries`.
    Query(usize),
    /// Position in `explained`.
    Explain(usize),
}

/// Binds a script. Faults are found in one pass: statements after a faulty one are bound as well.
pub fn bind_script(
    statements: Vec<Parsed>,
    options: &ScriptOptions,
    catalog: &Catalog,
    settings: &Settings,
    registry: &Arc<dyn Registry>,
) -> BoundScript {
    let mut script = ScriptBinder {
        registry: Arc::clone(registry),
        fixtures: Fixtures::new(options.fixtures.clone(), Arc::clone(registry)),
        dry_run: options.dry_run,
        found: options.found.clone(),
        in_use: options.in_use.clone(),
        result_limits: options.result_limits,
        out: BoundScript {
            catalog: catalog.clone(),
            settings: settings.clone(),
            outcomes: Vec::new(),
            queries: Vec::new(),
            explained: Vec::new(),
            dead_letters: BTreeMap::new(),
            faults: Vec::new(),
        },
        statement: 0,
        broken: BTreeSet::new(),
        filled: BTreeSet::new(),
        checked: Vec::new(),
        option_positions: OptionPositions::default(),
        query_failed: false,
    };
    for parsed in statements {
        script.run(parsed);
        script.statement += 1;
    }
    script.finish()
}

struct ScriptBinder {
    registry: Arc<dyn Registry>,
    fixtures: Fixtures,
    dry_run: bool,
    /// Columns of tables that declare none, by statement.
    found: BTreeMap<usize, FoundColumns>,
    /// Relations that running jobs use, each with the name of one that does.
    in_use: BTreeMap<String, String>,
    result_limits: bool,
    out: BoundScript,
    /// Relations whose CREATE was faulty.
    broken: BTreeSet<String>,
    /// Index of the statement at hand.
    statement: usize,
    /// Intermediate streams that an INSERT was to fill, faulty ones too.
    filled: BTreeSet<String>,
    /// Tables whose options the connectors have seen for a direction.
    checked: Vec<(String, Direction)>,
    option_positions: OptionPositions,
    query_failed: bool,
}

impl ScriptBinder {
    fn run(&mut self, parsed: Parsed) {
        let position = parsed.position;
        match parsed.result {
            Ok(statement) => {
                let result = self.execute(statement, position);
                let outcome = self.take(result, position);
                self.out.outcomes.extend(outcome);
            }
            Err(error) => {
                self.out.faults.push(error.fault);
                self.broken.extend(error.creates);
                self.query_failed = true;
            }
        }
    }

    fn take<T>(&mut self, result: Result<T, Vec<Fault>>, position: Position) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(faults) => {
                self.out
                    .faults
                    .extend(faults.into_iter().map(|fault| fault.at(Some(position))));
                None
            }
        }
    }

    fn execute(
        &mut self,
        statement: Statement,
        position: Position,
    ) -> Result<BoundOutcome, Vec<Fault>> {
        let one = |fault: Fault| vec![fault];
        match statement {
            Statement::CreateTable(create) => self.create_table(&create, position),
            Statement::CreateView(create) => self.create_view(create),
            Statement::Drop(drop) => self.drop_relations(&drop),
            Statement::Set { setting, value } => {
                self.out.settings.set(&setting, &value).map_err(one)?;
                Ok(BoundOutcome::Done("SET"))
            }
            Statement::Reset(setting) => {
                self.out.settings.reset(setting.as_ref()).map_err(one)?;
                Ok(BoundOutcome::Done("RESET"))
            }
            Statement::Show(Show::All) => Ok(self.show_all()),
            Statement::Show(Show::Tables) => Ok(self.show_tables()),
            Statement::Show(Show::Setting(name)) => self.show_setting(&name).map_err(one),
            Statement::Describe(name) => self.describe(&name),
            Statement::Explain(inner) => self.explain(*inner, position),
            Statement::Session(statement) => {
                let message = format!("{} is not supported in a script", statement.name());
                let fault = Fault::new(FaultKind::Unsupported, message);
                Err(one(fault.hint("it is for a client of `thalweg serve`")))
            }
            query => {
                let bound = self.bind(query, position)?;
                Ok(self.add_query(bound))
            }
        }
    }

    fn add_query(&mut self, query: BoundQuery) -> BoundOutcome {
        self.out.queries.push(query);
        BoundOutcome::Query(self.out.queries.len() - 1)
    }

    fn explain(
        &mut self,
        inner: Statement,
        position: Position,
    ) -> Result<BoundOutcome, Vec<Fault>> {
        let query = match inner {
            Statement::CreateTable(create) => self.create_table_as(&create, position)?.1,
            inner => self.bind(inner, position)?,
        };
        self.out.explained.push(query);
        Ok(BoundOutcome::Explain(self.out.explained.len() - 1))
    }

    /// Binds a SELECT, SUBSCRIBE or INSERT.
    fn bind(&mut self, statement: Statement, position: Position) -> Result<BoundQuery, Vec<Fault>> {
        let bound = match statement {
            Statement::Query { query, subscribe } => {
                let kind = if subscribe {
                    QueryKind::Subscribe
                } else {
                    QueryKind::Select
                };
                self.select(&query, kind, position)
            }
            Statement::Insert(insert) => self.insert(&insert, position),
            other => unreachable!("not a query: {other:?}"),
        };
        self.query_failed |= bound.is_err();
        bound
    }

    fn select(
        &mut self,
        query: &Query,
        kind: QueryKind,
        position: Position,
    ) -> Result<BoundQuery, Vec<Fault>> {
        let limited = self.result_limits && kind == QueryKind::Select;
        let limited = limited.then(|| without_limit(query)).flatten();
        let (query, limit) = match &limited {
            Some((query, limit)) => (query, Some(*limit)),
            None => (query, None),
        };
        let bound = self.bind_query(query)?;
        let plan = presentable(bound.plan).map_err(|fault| vec![fault])?;
        let sink = BoundSink::result(self.statement, result_schema(&plan));
        let bound = Bound {
            plan,
            used: bound.used,
        };
        let mut query = self.bound(kind, bound, sink, position);
        query.limit = limit;
        Ok(query)
    }

    fn insert(&mut self, insert: &Insert, position: Position) -> Result<BoundQuery, Vec<Fault>> {
        let target = self.insert_target(&insert.table);
        let query = with_distinct_names(&insert.query);
        let bound = self.bind_query(&query);
        let mut faults = Vec::new();
        let target = target.unwrap_or_else(|found| {
            faults.extend(found);
            None
        });
        let places = Places::of_query(&insert.query);
        let table = target.as_ref().map(|(def, _)| Arc::clone(def));
        let assignment = table.as_deref().map(|table| Assignment {
            table,
            names: &insert.columns,
            places,
            at: position,
        });
        faults.extend(assignment.iter().flat_map(Assignment::check_names));
        let (Some((def, kind)), Some(assignment), Ok(found), true) =
            (target, assignment, &bound, faults.is_empty())
        else {
            faults.extend(bound.err().unwrap_or_default());
            return Err(faults);
        };
        let bound = Bound {
            plan: assignment.assign(found.plan.clone())?,
            used: found.used.clone(),
        };
        let sink = self
            .sink(&def, kind)
            .map_err(|fault| vec![fault.at(Some(insert.table.position))])?;
        Ok(self.bound(QueryKind::Insert, bound, sink, position))
    }

    /// The table that an INSERT names; `None` where its own statement is faulty.
    fn insert_target(
        &mut self,
        name: &Name,
    ) -> Result<Option<(Arc<TableDef>, RelationKind)>, Vec<Fault>> {
        if self.broken.contains(&name.text) {
            return Ok(None);
        }
        let invalid = |message: String| {
            vec![Fault::new(FaultKind::InvalidOption, message).at(Some(name.position))]
        };
        match self.out.catalog.relations.get(&name.text) {
            Some(Relation::Table(def)) if def.can_write => {
                let def = Arc::clone(def);
                self.check_options(&def, Direction::Sink)?;
                Ok(Some((def, RelationKind::Table)))
            }
            Some(Relation::Table(def)) => Err(invalid(format!(
                "table \"{}\" is read, not written: connector '{}' or the table's type does not allow writing",
                name.text, def.connector
            ))),
            Some(Relation::Stream(def)) => {
                self.filled.insert(name.text.clone());
                Ok(Some((Arc::clone(def), RelationKind::Stream)))
            }
            Some(Relation::View(_)) => Err(invalid(format!(
                "\"{}\" is a view and cannot be written",
                name.text
            ))),
            None => Err(vec![self.undefined("table", name)]),
        }
    }

    /// Binds a query and has the connectors check the tables that it reads.
    fn bind_query(&mut self, query: &Query) -> Result<Bound, Vec<Fault>> {
        let scope = Scope {
            catalog: &self.out.catalog,
            broken: &self.broken,
            fixtures: Some(&self.fixtures),
        };
        let bound = bind_query(query, &scope)?;
        for table in scans(&bound.plan)
            .iter()
            .filter(|table| table.kind == RelationKind::Table)
        {
            self.check_options(&table.def, Direction::Source)?;
        }
        Ok(bound)
    }

    fn check_options(&mut self, def: &TableDef, direction: Direction) -> Result<(), Vec<Fault>> {
        let key = (def.name.clone(), direction);
        if self.checked.contains(&key) {
            return Ok(());
        }
        self.checked.push(key);
        check_options(
            def,
            direction,
            self.registry.as_ref(),
            &self.option_positions,
        )
        .map_or(Ok(()), |fault| Err(vec![fault]))
    }

    fn bound(
        &self,
        kind: QueryKind,
        bound: Bound,
        sink: BoundSink,
        position: Position,
    ) -> BoundQuery {
        let settings = self.out.settings.for_query();
        BoundQuery {
            statement: self.statement,
            kind,
            plan: bound.plan,
            uses: bound.used,
            limit: None,
            sink,
            settings,
            position: Some(position),
        }
    }

    fn sink(&self, def: &Arc<TableDef>, kind: RelationKind) -> Result<BoundSink, Fault> {
        BoundSink::of_table(def, kind, self.dry_run)
    }

    fn undefined(&self, what: &str, name: &Name) -> Fault {
        let fault = Fault::new(
            FaultKind::UndefinedTable,
            format!("{what} \"{}\" does not exist", name.text),
        );
        let fault = fault.at(Some(name.position));
        match closest(
            &name.text,
            self.out.catalog.relations.keys().map(String::as_str),
        ) {
            Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
            None => fault,
        }
    }

    fn finish(mut self) -> BoundScript {
        self.find_dead_letter_sinks();
        self.check_streams();
        self.check_fixtures();
        self.out
    }

    fn check_fixtures(&mut self) {
        let names: Vec<String> = self.fixtures.tables().map(str::to_string).collect();
        for name in names.iter().filter(|name| !self.broken.contains(*name)) {
            let fault = match self.out.catalog.relations.get(name) {
                Some(Relation::Table(_)) => continue,
                Some(_) => Fault::new(
                    FaultKind::InvalidOption,
                    format!("fixture of \"{name}\", which is no table with a connector"),
                ),
                None => {
                    let fault = Fault::new(
                        FaultKind::UndefinedTable,
                        format!("fixture of table \"{name}\", which does not exist"),
                    );
                    match closest(name, self.out.catalog.relations.keys().map(String::as_str)) {
                        Some(known) => fault.hint(format!("did you mean \"{known}\"?")),
                        None => fault,
                    }
                }
            };
            self.out.faults.push(fault);
        }
    }
}
