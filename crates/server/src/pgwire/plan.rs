//! From a client's text to what is to be done, statement by statement.
//!
//! A text is planned as a whole before anything of it is done: a fault anywhere leaves the catalog and the settings as they
//! were, as the implicit transaction around a text does in PostgreSQL.

use std::sync::Arc;

use thalweg_planner::parse::statement::{CopyOut, FetchCount, Name, SessionStatement, Statement};
use thalweg_planner::settings::Settings;
use thalweg_planner::{Fault, Parsed, Planner, Position, Script, ScriptOptions};

use super::catalog;
use super::client_settings::{self, ClientSetting};
use super::error::Failure;
use crate::engine::Engine;

/// One statement, ready to be carried out.
pub enum Action {
    /// What the planner made of one statement: an outcome, and the job that it needs if it needs one.
    Planned(Script),
    /// Statements that an intermediate stream connects: they run together.
    Together(Script),
    /// A question about the catalog, as clients ask when they open a connection.
    Catalog(catalog::Question),
    Begin,
    Commit,
    Rollback,
    Declare {
        name: Name,
        hold: bool,
        query: ResultQuery,
    },
    Fetch {
        cursor: Name,
        count: FetchCount,
    },
    Close(Option<Name>),
    Copy {
        copy: Box<CopyOut>,
        query: ResultQuery,
    },
    Deallocate(Option<Name>),
    Discard,
    Unlisten,
    SetTransaction,
    ShowJobs,
    DropJob {
        name: Name,
        if_exists: bool,
    },
    CreateJob {
        name: Name,
        script: Script,
    },
    Setting(ClientSetting),
}

/// A query whose rows somebody takes.
pub enum ResultQuery {
    Planned(Script),
    Catalog(catalog::Question),
}

/// What a text asks for, and what it leaves behind.
pub struct Plan {
    pub actions: Vec<Action>,
    pub settings: Settings,
}

/// The statements of a text. Takes as long as the text is long: not for a thread that others wait for.
pub fn parse(text: &str) -> Vec<Parsed> {
    Planner::parse(text)
}

/// Plans statements of `text` and lets their DDL take effect.
///
/// Errors: all faults of the text.
pub fn plan(
    engine: &Arc<Engine>,
    settings: &Settings,
    statements: Vec<Parsed>,
    text: &str,
) -> Result<Plan, Failure> {
    loop {
        let before = engine.catalog();
        let planner = Planner::resume(engine.registry(), before.clone(), settings.clone());
        let options = ScriptOptions {
            in_use: engine.jobs().in_use(),
            result_limits: true,
            ..ScriptOptions::default()
        };
        let mut planning = Planning {
            engine,
            planner,
            options,
        };
        let actions = planning.actions(statements.clone());
        let actions = match actions {
            Ok(actions) => actions,
            Err(faults) => {
                let planner = Planner::resume(engine.registry(), before, settings.clone());
                let all = all_faults(engine, planner, statements, &planning.options);
                let faults = if all.is_empty() { faults } else { all };
                return Err(Failure::of_faults(&faults, text));
            }
        };
        let (catalog, settings) = planning.planner.into_parts();
        // Where another client has changed the catalog meanwhile, these statements see it now.
        if engine.replace_catalog(&before, catalog) {
            return Ok(Plan { actions, settings });
        }
    }
}

/// Every fault of a text, as of a script: those after the first do not follow from it.
fn all_faults(
    engine: &Engine,
    mut planner: Planner,
    mut statements: Vec<Parsed>,
    options: &ScriptOptions,
) -> Vec<Fault> {
    statements.retain(is_planners);
    let options = ScriptOptions {
        found: engine.find_columns(&planner, &statements),
        ..options.clone()
    };
    planner
        .plan_parsed(statements, &options)
        .err()
        .unwrap_or_default()
}

struct Planning<'a> {
    engine: &'a Engine,
    planner: Planner,
    options: ScriptOptions,
}

impl Planning<'_> {
    fn actions(&mut self, statements: Vec<Parsed>) -> Result<Vec<Action>, Vec<Fault>> {
        let mut actions = Vec::new();
        let mut statements = statements.into_iter().peekable();
        while let Some(parsed) = statements.next() {
            let position = parsed.position;
            let statement = parsed.result.map_err(|error| vec![error.fault])?;
            let action = if self.planner.fills_stream(&statement) {
                let mut together = vec![again(position, statement)];
                together.extend(std::iter::from_fn(|| statements.next_if(is_planners)));
                Action::Together(self.planned(together)?)
            } else {
                self.action(statement, position)?
            };
            actions.push(action);
        }
        Ok(actions)
    }

    fn action(&mut self, statement: Statement, position: Position) -> Result<Action, Vec<Fault>> {
        if let Some(setting) = client_settings::of(&statement) {
            return Ok(Action::Setting(setting));
        }
        Ok(match statement {
            Statement::Session(session) => self.session(session, position)?,
            query @ Statement::Query { .. } => match self.result_query(query, position)? {
                ResultQuery::Planned(script) => Action::Planned(script),
                ResultQuery::Catalog(question) => Action::Catalog(question),
            },
            other => Action::Planned(self.script(other, position)?),
        })
    }

    fn script(&mut self, statement: Statement, position: Position) -> Result<Script, Vec<Fault>> {
        self.planned(vec![again(position, statement)])
    }

    fn planned(&mut self, statements: Vec<Parsed>) -> Result<Script, Vec<Fault>> {
        let options = ScriptOptions {
            found: self.engine.find_columns(&self.planner, &statements),
            ..self.options.clone()
        };
        self.planner.plan_parsed(statements, &options)
    }

    fn result_query(
        &mut self,
        query: Statement,
        position: Position,
    ) -> Result<ResultQuery, Vec<Fault>> {
        if let Some(question) = catalog::Question::of(&query, self.planner.catalog()) {
            return Ok(ResultQuery::Catalog(question));
        }
        Ok(ResultQuery::Planned(self.script(query, position)?))
    }

    fn session(
        &mut self,
        statement: SessionStatement,
        position: Position,
    ) -> Result<Action, Vec<Fault>> {
        Ok(match statement {
            SessionStatement::Begin => Action::Begin,
            SessionStatement::Commit => Action::Commit,
            SessionStatement::Rollback => Action::Rollback,
            SessionStatement::Declare { name, hold, query } => Action::Declare {
                name,
                hold,
                query: self.result_query(*query, position)?,
            },
            SessionStatement::Fetch { cursor, count } => Action::Fetch { cursor, count },
            SessionStatement::Close(name) => Action::Close(name),
            SessionStatement::Copy(copy) => Action::Copy {
                query: self.result_query((*copy.query).clone(), position)?,
                copy: Box::new(copy),
            },
            SessionStatement::Deallocate(name) => Action::Deallocate(name),
            SessionStatement::Discard => Action::Discard,
            SessionStatement::Unlisten => Action::Unlisten,
            SessionStatement::SetTransaction => Action::SetTransaction,
            SessionStatement::ShowJobs => Action::ShowJobs,
            SessionStatement::DropJob { name, if_exists } => Action::DropJob { name, if_exists },
            SessionStatement::CreateJob { name, insert } => Action::CreateJob {
                name,
                script: self.script(*insert, position)?,
            },
        })
    }
}

fn again(position: Position, statement: Statement) -> Parsed {
    Parsed {
        position,
        result: Ok(statement),
    }
}

/// Whether a statement can run together with those before it, or cannot be told.
fn is_planners(parsed: &Parsed) -> bool {
    match &parsed.result {
        Ok(Statement::Session(_)) => false,
        Ok(statement) => client_settings::of(statement).is_none(),
        Err(_) => true,
    }
}

/// Whether the statement is one that a failed transaction still takes.
pub fn ends_transaction(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Session(SessionStatement::Commit | SessionStatement::Rollback)
    )
}
