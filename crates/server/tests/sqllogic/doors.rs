//! The doors through which a suite is run, and what a value looks like in a suite.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};
use thalweg_server::engine::EngineOptions;
use thalweg_server::session::{Session, StatementResult};
use thalweg_server::text::{Cells, Kind, kind};

use crate::client::{Extended, Simple};

/// How a suite's statements reach the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// By calls.
    Session,
    /// As a client of PostgreSQL, in the simple protocol and in text.
    Simple,
    /// As a client of PostgreSQL, in the extended protocol and in binary where it has one statement.
    Extended,
}

impl Door {
    /// What a suite may ask for with `onlyif` and `skipif`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Simple | Self::Extended => "pgwire",
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    pub message: String,
    pub code: Option<String>,
}

pub type Output = Result<DBOutput<DefaultColumnType>, Refused>;

pub enum Database {
    Session(Box<Session>),
    Simple(Box<Simple>),
    Extended(Box<Extended>),
}

impl Database {
    pub async fn open(door: Door, parallelism: usize) -> Result<Self, Refused> {
        let options = EngineOptions {
            parallelism: Some(parallelism),
            ..EngineOptions::default()
        };
        Ok(match door {
            Door::Session => Self::Session(Box::new(Session::new(options))),
            Door::Simple => Self::Simple(Box::new(Simple::connect(options).await)),
            Door::Extended => Self::Extended(Box::new(Extended::connect(options).await)),
        })
    }

    fn warnings(&mut self) -> Vec<String> {
        match self {
            Self::Session(session) => session.warnings().to_vec(),
            Self::Simple(client) => client.warnings.clone(),
            Self::Extended(client) => client.warnings(),
        }
    }
}

#[async_trait]
impl AsyncDB for Database {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Output {
        if sql.trim().eq_ignore_ascii_case("show warnings") {
            let warnings = self.warnings();
            return Ok(DBOutput::Rows {
                types: vec![DefaultColumnType::Text],
                rows: warnings.into_iter().map(|warning| vec![warning]).collect(),
            });
        }
        match self {
            Self::Session(session) => by_session(session, sql).await,
            Self::Simple(client) => client.run(sql).await,
            Self::Extended(client) => client.run(sql).await,
        }
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "thalweg"
    }

    fn error_sql_state(error: &Refused) -> Option<String> {
        error.code.clone()
    }

    async fn sleep(duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

async fn by_session(session: &mut Session, sql: &str) -> Output {
    let results = session.execute(sql).await.map_err(|error| Refused {
        message: error.to_string(),
        code: Some(error.sqlstate().to_string()),
    })?;
    let last = results
        .into_iter()
        .rfind(|r| matches!(r, StatementResult::Rows { .. }));
    let Some(StatementResult::Rows { schema, batches }) = last else {
        return Ok(DBOutput::StatementComplete(0));
    };
    let types = schema
        .fields()
        .iter()
        .map(|field| column(kind(field.data_type())));
    let types = types.collect();
    let mut rows = Vec::new();
    for batch in &batches {
        let cells = Cells::new(batch).unwrap();
        for row in 0..batch.num_rows() {
            let texts = (0..batch.num_columns()).map(|column| cells.text(column, row).unwrap());
            rows.push(texts.map(or_empty).collect());
        }
    }
    Ok(DBOutput::Rows { types, rows })
}

pub fn column(kind: Kind) -> DefaultColumnType {
    match kind {
        Kind::Whole => DefaultColumnType::Integer,
        Kind::Real => DefaultColumnType::FloatingPoint,
        Kind::Other => DefaultColumnType::Text,
    }
}

pub fn or_empty(text: String) -> String {
    if text.is_empty() {
        "(empty)".into()
    } else {
        text
    }
}

/// A place for what a connection is told while nobody listens.
pub type Heard = Arc<std::sync::Mutex<Vec<String>>>;
