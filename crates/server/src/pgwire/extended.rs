//! The extended protocol: Parse, Bind, Describe, Execute, Close.

use std::sync::Arc;

use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    BindComplete, CloseComplete, ParseComplete, PortalSuspended,
};
use pgwire::messages::response::TransactionStatus;
use thalweg_planner::parse::statement::{SessionStatement, Statement};

use super::client::{Client, Result, blocking};
use super::cursor::no_cursor;
use super::error::Failure;
use super::execute::Answer;
use super::frontend::{Bind, Formats, Frontend, Parse, Target};
use super::prepared::{BoundPortal, PortalState, Prepared, no_portal, no_statement};
use super::rows::{Portion, send};

impl Client {
    /// Deals with a message of the extended protocol, all but Sync and Flush.
    pub async fn extended(&mut self, message: Frontend) -> Result {
        match message {
            Frontend::Parse(parse) => self.prepare(parse).await,
            Frontend::Bind(bind) => self.bind(&bind),
            Frontend::Describe(target) => self.describe(&target),
            Frontend::Execute { portal, max_rows } => self.execute(portal, max_rows).await,
            Frontend::Close(target) => {
                match target {
                    Target::Statement(name) => drop(self.statements.remove(&name)),
                    Target::Portal(name) => {
                        self.portals.remove(&name);
                        self.cursors.remove(&name);
                    }
                }
                self.output.put(&CloseComplete::new());
                Ok(())
            }
            _ => Err(Failure::protocol("unexpected message").into()),
        }
    }

    async fn prepare(&mut self, parse: Parse) -> Result {
        let name = parse.name.clone();
        if !name.is_empty() && self.statements.contains_key(&name) {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(Failure::new("42P05", message).into());
        }
        // The unnamed one gives way even if the new one is faulty.
        self.statements.remove(&name);
        let (engine, settings) = (self.engine.clone(), self.settings.clone());
        let prepared = blocking(move || Prepared::new(&engine, &settings, parse)).await??;
        if let Some(statement) = &prepared.statement {
            self.check_transaction(std::slice::from_ref(statement))?;
        }
        self.statements.insert(name, Arc::new(prepared));
        self.output.put(&ParseComplete::new());
        Ok(())
    }

    fn bind(&mut self, bind: &Bind) -> Result {
        let prepared = self.statements.get(&bind.statement);
        let prepared = prepared.ok_or_else(|| no_statement(&bind.statement))?;
        let is_named = !bind.portal.is_empty();
        let taken =
            self.portals.contains_key(&bind.portal) || self.cursors.contains_key(&bind.portal);
        if is_named && taken {
            let message = format!("cursor \"{}\" already exists", bind.portal);
            return Err(Failure::new("42P03", message).into());
        }
        let portal = prepared.bind(bind)?;
        self.portals.insert(bind.portal.clone(), portal);
        self.output.put(&BindComplete::new());
        Ok(())
    }

    fn describe(&mut self, target: &Target) -> Result {
        let (prepared, formats) = match target {
            Target::Statement(name) => {
                let prepared = self
                    .statements
                    .get(name)
                    .ok_or_else(|| no_statement(name))?;
                let types = prepared.parameters.iter().map(|pg_type| pg_type.oid());
                self.output.put(&ParameterDescription::new(types.collect()));
                (prepared.clone(), Formats::default())
            }
            Target::Portal(name) => match (self.portals.get(name), self.cursors.get(name)) {
                (Some(portal), _) => (portal.prepared.clone(), portal.formats.clone()),
                (None, Some(cursor)) => {
                    let schema = cursor.stream.schema().clone();
                    self.describe_rows(&schema, &Formats::default());
                    return Ok(());
                }
                (None, None) => return Err(no_portal(name).into()),
            },
        };
        // What a FETCH gives is known when its cursor is there.
        let fetched = match prepared.statement.as_ref().map(|parsed| &parsed.result) {
            Some(Ok(Statement::Session(SessionStatement::Fetch { cursor, .. }))) => {
                let found = self.cursors.get(&cursor.text);
                Some(
                    found
                        .ok_or_else(|| no_cursor(&cursor.text))?
                        .stream
                        .schema()
                        .clone(),
                )
            }
            _ => None,
        };
        match fetched.as_ref().or(prepared.columns.as_ref()) {
            Some(schema) => self.describe_rows(schema, &formats),
            None => self.output.put(&NoData::new()),
        }
        Ok(())
    }

    async fn execute(&mut self, name: String, max_rows: i32) -> Result {
        // A portal that fails or is cancelled is gone.
        let portal = self.portals.remove(&name);
        let mut portal = portal.ok_or_else(|| no_portal(&name))?;
        if let PortalState::Ready = portal.state
            && !self.start_portal(&mut portal).await?
        {
            portal.state = PortalState::Done;
        } else {
            self.continue_portal(&mut portal, max_rows).await?;
        }
        self.portals.insert(name, portal);
        Ok(())
    }

    /// Begins what a portal is to do; whether there are rows to be sent.
    async fn start_portal(&mut self, portal: &mut BoundPortal) -> Result<bool> {
        let Some(parsed) = portal.prepared.filled(&portal.parameters)? else {
            self.output.empty_query();
            return Ok(false);
        };
        self.check_transaction(std::slice::from_ref(&parsed))?;
        let text = portal.prepared.text.clone();
        let plan = self.plan(vec![parsed], &text).await?;
        for action in plan.actions {
            match self.act(action).await? {
                Answer::Rows(stream, tag) => {
                    if let Some(columns) = &portal.prepared.columns
                        && !same_columns(columns, stream.schema())
                    {
                        let message = "cached plan must not change result type";
                        return Err(Failure::unsupported(message).into());
                    }
                    portal.formats.check(stream.schema().fields().len())?;
                    portal.state = PortalState::Open(stream, tag);
                    return Ok(true);
                }
                other => self.send_answer(other, &portal.formats, false).await?,
            }
        }
        Ok(false)
    }

    async fn continue_portal(&mut self, portal: &mut BoundPortal, max_rows: i32) -> Result {
        let PortalState::Open(stream, tag) = &mut portal.state else {
            self.output.complete("SELECT 0");
            return Ok(());
        };
        let tag = *tag;
        let portion = Portion {
            max_rows: u64::try_from(max_rows).ok().filter(|n| *n > 0),
            deadline: None,
        };
        let sent = send(&mut self.output, stream, &portal.formats, portion).await?;
        if sent.is_end {
            portal.state = PortalState::Done;
            self.output.complete(&tagged(tag, sent.n_rows));
        } else {
            self.output.put(&PortalSuspended::new());
        }
        Ok(())
    }

    /// The end of a series of messages: outside of a transaction it ends what they opened.
    pub fn sync(&mut self) {
        if self.transaction == TransactionStatus::Idle {
            self.portals.clear();
        }
        self.output.ready(self.transaction);
    }
}

fn same_columns(a: &arrow::datatypes::SchemaRef, b: &arrow::datatypes::SchemaRef) -> bool {
    let types = |schema: &arrow::datatypes::SchemaRef| -> Vec<_> {
        schema
            .fields()
            .iter()
            .map(|field| super::types::type_of(field))
            .collect()
    };
    types(a) == types(b)
}

/// `SELECT 3`
pub fn tagged(tag: &str, n_rows: u64) -> String {
    match tag {
        "SHOW" | "EXPLAIN" => tag.to_string(),
        _ => format!("{tag} {n_rows}"),
    }
}
