//! Carries statements out.

use arrow::datatypes::SchemaRef;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::startup::ParameterStatus;
use thalweg_dataflow::plan::Op;
use thalweg_planner::parse::statement::{FetchCount, Name};
use thalweg_planner::script::QueryKind;
use thalweg_planner::{Outcome, Script};

use super::client::{Client, Result};
use super::client_settings::ClientSetting;
use super::copy::Copy;
use super::error::Failure;
use super::plan::{Action, ResultQuery};
use crate::jobs::{JobKind, JobName, JobSpec};
use crate::results::{RowStream, View, changelog_schema, channel};
use crate::session::{endless_source, text_batch};

/// What a statement came to.
pub enum Answer {
    /// It is done; the command tag.
    Done(String),
    /// Rows, and the tag that their number follows.
    Rows(RowStream, &'static str),
    /// Of statements that ran together, one after the other.
    Several(Vec<Answer>),
    Fetch {
        cursor: Name,
        count: FetchCount,
    },
    Copy(Copy, RowStream),
}

impl Client {
    /// Carries an action out as far as its answer begins.
    pub async fn act(&mut self, action: Action) -> Result<Answer> {
        let done = |tag: &str| Ok(Answer::Done(tag.to_string()));
        match action {
            Action::Planned(script) => self.planned(script).await,
            Action::Together(script) => self.together(script).await,
            Action::Catalog(question) => self.open(ResultQuery::Catalog(question)).await.map(rows),
            Action::Begin => {
                if self.transaction == TransactionStatus::Idle {
                    self.transaction = TransactionStatus::Transaction;
                } else {
                    self.output
                        .warning("there is already a transaction in progress");
                }
                done("BEGIN")
            }
            Action::Commit => {
                let tag = match self.transaction {
                    TransactionStatus::Error => "ROLLBACK",
                    _ => "COMMIT",
                };
                self.finish_transaction();
                done(tag)
            }
            Action::Rollback => {
                self.finish_transaction();
                done("ROLLBACK")
            }
            Action::Declare { name, hold, query } => {
                Ok(Answer::Done(self.declare(name, hold, query).await?))
            }
            Action::Fetch { cursor, count } => Ok(Answer::Fetch { cursor, count }),
            Action::Close(name) => Ok(Answer::Done(self.close_cursor(name.as_ref())?)),
            Action::Copy { copy, query } => {
                let (stream, _) = self.open(query).await?;
                Ok(Answer::Copy(Copy::new(&copy), stream))
            }
            Action::Deallocate(name) => self.deallocate(name.as_ref()).map(Answer::Done),
            Action::Discard => {
                self.discard();
                done("DISCARD ALL")
            }
            Action::Unlisten => done("UNLISTEN"),
            // There is one level of isolation, and nothing that would be isolated.
            Action::SetTransaction => done("SET"),
            Action::ShowJobs => Ok(Answer::Rows(RowStream::fixed(self.jobs()?), "SHOW")),
            Action::DropJob { name, if_exists } => {
                self.drop_job(&name, if_exists).await.map(Answer::Done)
            }
            Action::CreateJob { name, script } => {
                let name = JobName::Exactly(name.text);
                self.insert(script, name, true).await?;
                done("CREATE JOB")
            }
            Action::Setting(setting) => self.client_setting(setting),
        }
    }

    fn finish_transaction(&mut self) {
        if self.transaction == TransactionStatus::Idle {
            self.output.warning("there is no transaction in progress");
        }
        self.end_transaction();
    }

    async fn planned(&mut self, mut script: Script) -> Result<Answer> {
        match script.outcomes.pop() {
            None => Err(Failure::internal("a statement without an outcome").into()),
            Some(Outcome::Done(tag)) => Ok(Answer::Done(tag)),
            Some(Outcome::Rows { columns, rows }) => {
                let batch = text_batch(columns, &rows).map_err(|e| Failure::of_error(&e, ""))?;
                Ok(Answer::Rows(RowStream::fixed(batch), "SHOW"))
            }
            Some(Outcome::Text(text)) => {
                let lines: Vec<_> = text.lines().map(|line| vec![line.to_string()]).collect();
                let batch = text_batch(vec!["QUERY PLAN".into()], &lines);
                let batch = batch.map_err(|e| Failure::of_error(&e, ""))?;
                Ok(Answer::Rows(RowStream::fixed(batch), "EXPLAIN"))
            }
            Some(query @ Outcome::Query { .. }) => {
                let (kind, target) = match &query {
                    Outcome::Query { kind, target, .. } => (*kind, target.clone()),
                    _ => return Err(Failure::internal("a query that is none").into()),
                };
                script.outcomes.push(query);
                match kind {
                    QueryKind::Select | QueryKind::Subscribe => {
                        self.open(ResultQuery::Planned(script)).await.map(rows)
                    }
                    QueryKind::Insert => {
                        let n_rows = self.insert(script, JobName::Like(target), false).await?;
                        Ok(Answer::Done(format!("INSERT 0 {n_rows}")))
                    }
                    QueryKind::CreateTableAs => {
                        self.insert(script, JobName::Like(target), false).await?;
                        Ok(Answer::Done("CREATE TABLE AS".into()))
                    }
                }
            }
        }
    }

    /// Opens the result of a query, which runs as far ahead as a few batches; with the tag of its rows.
    pub async fn open(&mut self, query: ResultQuery) -> Result<(RowStream, &'static str)> {
        let script = match query {
            ResultQuery::Planned(script) => script,
            ResultQuery::Catalog(question) => {
                let (catalog, user) = (self.engine.catalog(), self.client_settings.user.clone());
                let batch = question.answer(&catalog, &user).await?;
                return Ok((RowStream::fixed(batch), "SELECT"));
            }
        };
        let described = ResultShape::of(&script)?;
        let (kind, view, tag) = if described.subscribed {
            (JobKind::Subscribe, View::Changelog, "SUBSCRIBE")
        } else {
            (JobKind::Select, View::Rows, "SELECT")
        };
        if let (Some(table), true, false) =
            (&described.endless, described.updating, described.subscribed)
        {
            let message =
                format!("this SELECT reads \"{table}\", which never ends, and its rows change");
            let hint = "SUBSCRIBE (SELECT …) gives the changes as they come";
            return Err(Failure::unsupported(message).hint(hint).into());
        }
        let schema = described.schema;
        if described.limit.is_some_and(|limit| limit.limit == Some(0)) {
            let none = arrow::record_batch::RecordBatch::new_empty(schema);
            return Ok((RowStream::fixed(none), tag));
        }
        let spec = JobSpec {
            name: JobName::Like(kind.as_str().into()),
            kind,
            uses: script.jobs[described.job].uses.clone(),
        };
        let (target, batches) = channel(view);
        let job = self.start(spec, script, target).await?;
        let ends =
            described.endless.is_none() || described.limit.is_some_and(|l| l.limit.is_some());
        let stream = RowStream::live(schema, batches, job, ends).limited(described.limit);
        Ok((stream, tag))
    }

    fn client_setting(&mut self, setting: ClientSetting) -> Result<Answer> {
        match setting {
            ClientSetting::Show(setting) => {
                let value = self.client_settings.get(setting).to_string();
                let batch = text_batch(vec![setting.name.to_string()], &[vec![value]]);
                let batch = batch.map_err(|e| Failure::of_error(&e, ""))?;
                Ok(Answer::Rows(RowStream::fixed(batch), "SHOW"))
            }
            ClientSetting::Set { setting, value } => {
                self.client_settings.set(setting, value.as_deref())?;
                if setting.is_reported {
                    let value = self.client_settings.get(setting).to_string();
                    self.output
                        .put(&ParameterStatus::new(setting.name.into(), value));
                }
                let tag = if value.is_some() { "SET" } else { "RESET" };
                Ok(Answer::Done(tag.to_string()))
            }
        }
    }

    fn deallocate(&mut self, name: Option<&Name>) -> Result<String> {
        match name {
            None => {
                self.statements.clear();
                Ok("DEALLOCATE ALL".into())
            }
            Some(name) => match self.statements.remove(&name.text) {
                Some(_) => Ok("DEALLOCATE".into()),
                None => Err(super::prepared::no_statement(&name.text).into()),
            },
        }
    }

    fn discard(&mut self) {
        self.statements.clear();
        self.portals.clear();
        self.cursors.clear();
        self.settings = Default::default();
        self.client_settings.reset_all();
    }
}

fn rows((stream, tag): (RowStream, &'static str)) -> Answer {
    Answer::Rows(stream, tag)
}

/// A table without end that a query reads.
pub fn endless(script: &Script, outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Query { job, sink, .. } => endless_source(&script.jobs[*job].graph, *sink),
        _ => None,
    }
}

/// What a client can be told of a result before it runs.
pub struct ResultShape {
    pub schema: SchemaRef,
    job: usize,
    subscribed: bool,
    updating: bool,
    endless: Option<String>,
    limit: Option<thalweg_planner::bind::RowLimit>,
}

impl ResultShape {
    /// Of a script of one query.
    pub fn of(script: &Script) -> Result<Self, Failure> {
        let Some(
            outcome @ Outcome::Query {
                job,
                sink,
                kind,
                limit,
                ..
            },
        ) = script.outcomes.last()
        else {
            return Err(Failure::internal("a result without a query"));
        };
        let node = script.jobs[*job].graph.node(*sink);
        let Op::Sink(spec) = &node.op else {
            return Err(Failure::internal("a result without a sink"));
        };
        let subscribed = *kind == QueryKind::Subscribe;
        Ok(Self {
            schema: if subscribed {
                changelog_schema()
            } else {
                spec.schema.clone()
            },
            job: *job,
            subscribed,
            updating: spec.updating,
            endless: endless(script, outcome),
            limit: *limit,
        })
    }
}
