//! Prepared statements, and the portals that are bound to them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use pgwire::api::Type;
use thalweg_planner::parameters::{self, Literal};
use thalweg_planner::parse::statement::{SessionStatement, Statement};
use thalweg_planner::settings::Settings;
use thalweg_planner::{Fault, Outcome, Parsed, Planner, ScriptOptions};

use super::catalog;
use super::client_settings::{self, ClientSetting};
use super::error::Failure;
use super::execute::ResultShape;
use super::frontend::{Bind, Formats, Parse};
use super::parameter;
use crate::engine::Engine;
use crate::results::RowStream;

pub struct Prepared {
    pub text: String,
    /// `None`: nothing but blanks and comments.
    pub statement: Option<Parsed>,
    pub parameters: Vec<Type>,
    /// What its rows look like, where it gives any and that is known.
    pub columns: Option<SchemaRef>,
}

pub struct BoundPortal {
    pub prepared: Arc<Prepared>,
    pub parameters: Vec<Literal>,
    pub formats: Formats,
    pub state: PortalState,
}

pub enum PortalState {
    Ready,
    /// Some of its rows have been sent.
    Open(RowStream, &'static str),
    Done,
}

impl Prepared {
    /// Prepares a statement against the catalog as it is now. Errors: more than one statement; a type that is
    /// not known; the faults of a query.
    pub fn new(engine: &Engine, settings: &Settings, parse: Parse) -> Result<Self, Failure> {
        let mut statements = Planner::parse(&parse.query);
        if statements.len() > 1 {
            let message = "cannot insert multiple commands into a prepared statement";
            return Err(Failure::new("42601", message));
        }
        let Some(parsed) = statements.pop() else {
            return Ok(Self {
                text: parse.query,
                statement: None,
                parameters: Vec::new(),
                columns: None,
            });
        };
        let text = parse.query;
        let faulty = |fault: Fault| Failure::of_faults(&[fault], &text);
        let statement = parsed.result.map_err(|error| faulty(error.fault))?;
        let catalog = engine.catalog();
        let n_parameters = parameters::count(&statement).map_err(faulty)?;
        let inferred = parameters::types(&statement, &catalog);
        let declared = parse.parameter_types;
        let types = (0..n_parameters.max(declared.len())).map(|i| match declared.get(i) {
            None | Some(0) => Ok(parameter::inferred(
                inferred.get(i).and_then(Option::as_ref),
            )),
            Some(oid) => Type::from_oid(*oid).ok_or_else(|| {
                Failure::new("42704", format!("type with OID {oid} does not exist"))
            }),
        });
        let parameters: Vec<Type> = types.collect::<Result<_, Failure>>()?;
        let columns = {
            let nulls = parameters.iter().map(parameter::null);
            let nulls = nulls.collect::<Result<Vec<_>, Failure>>()?;
            let mut filled = statement.clone();
            parameters::substitute(&mut filled, &nulls).map_err(faulty)?;
            let planner = Planner::resume(engine.registry(), catalog, settings.clone());
            columns(planner, filled, parsed.position, &text)?
        };
        Ok(Self {
            statement: Some(Parsed {
                position: parsed.position,
                result: Ok(statement),
            }),
            text,
            parameters,
            columns,
        })
    }

    /// The parameters of a Bind. Errors: too many or too few; values of other types.
    pub fn bind(self: &Arc<Self>, bind: &Bind) -> Result<BoundPortal, Failure> {
        let (given, wanted) = (bind.parameters.len(), self.parameters.len());
        if given != wanted {
            return Err(Failure::protocol(format!(
                "bind message supplies {given} parameters, but prepared statement \"{}\" requires {wanted}",
                bind.statement
            )));
        }
        bind.parameter_formats.check(wanted)?;
        if let Some(columns) = &self.columns {
            bind.result_formats.check(columns.fields().len())?;
        }
        let values = self.parameters.iter().zip(&bind.parameters).enumerate();
        let values = values.map(|(i, (pg_type, bytes))| {
            let is_binary = bind.parameter_formats.is_binary(i);
            parameter::value(i + 1, pg_type, is_binary, bytes.as_deref())
        });
        Ok(BoundPortal {
            prepared: self.clone(),
            parameters: values.collect::<Result<_, _>>()?,
            formats: bind.result_formats.clone(),
            state: PortalState::Ready,
        })
    }

    /// The statement with values in the place of its parameters.
    pub fn filled(&self, values: &[Literal]) -> Result<Option<Parsed>, Failure> {
        let Some(Parsed {
            position,
            result: Ok(statement),
        }) = &self.statement
        else {
            return Ok(None);
        };
        let mut statement = statement.clone();
        let filled = parameters::substitute(&mut statement, values);
        filled.map_err(|fault| Failure::of_faults(&[fault], &self.text))?;
        Ok(Some(Parsed {
            position: *position,
            result: Ok(statement),
        }))
    }
}

/// The columns that a statement gives. Plans it, and throws the plan away: what a CREATE does waits for its
/// execution, as does its fault.
fn columns(
    mut planner: Planner,
    statement: Statement,
    position: thalweg_planner::Position,
    text: &str,
) -> Result<Option<SchemaRef>, Failure> {
    if let Some(setting) = client_settings::of(&statement) {
        return Ok(match setting {
            ClientSetting::Show(setting) => Some(texts([setting.name])),
            ClientSetting::Set { .. } => None,
        });
    }
    let is_query = matches!(statement, Statement::Query { .. });
    match &statement {
        Statement::Session(SessionStatement::ShowJobs) => return Ok(Some(super::jobs::schema())),
        Statement::Query { .. } => {
            if let Some(question) = catalog::Question::of(&statement, planner.catalog()) {
                return question.schema(planner.catalog()).map(Some);
            }
        }
        Statement::Insert(_) if planner.fills_stream(&statement) => return Ok(None),
        Statement::Insert(_)
        | Statement::Show(_)
        | Statement::Describe(_)
        | Statement::Explain(_) => {}
        _ => return Ok(None),
    }
    let options = ScriptOptions {
        result_limits: true,
        ..ScriptOptions::default()
    };
    let parsed = Parsed {
        position,
        result: Ok(statement),
    };
    let planned = planner.plan_parsed(vec![parsed], &options);
    let script = planned.map_err(|faults| Failure::of_faults(&faults, text))?;
    if is_query {
        return Ok(Some(ResultShape::of(&script)?.schema));
    }
    Ok(match script.outcomes.first() {
        Some(Outcome::Rows { columns, .. }) => Some(texts(columns.iter().map(String::as_str))),
        Some(Outcome::Text(_)) => Some(texts(["QUERY PLAN"])),
        _ => None,
    })
}

fn texts<'a>(names: impl IntoIterator<Item = &'a str>) -> SchemaRef {
    let fields = names
        .into_iter()
        .map(|name| Field::new(name, DataType::Utf8, true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

pub fn no_statement(name: &str) -> Failure {
    Failure::new(
        "26000",
        format!("prepared statement \"{name}\" does not exist"),
    )
}

pub fn no_portal(name: &str) -> Failure {
    Failure::new("34000", format!("portal \"{name}\" does not exist"))
}
