//! Cursors: DECLARE, FETCH, CLOSE.

use std::time::Duration;

use pgwire::messages::response::TransactionStatus;
use thalweg_planner::parse::statement::{FetchCount, Name};
use tokio::time::Instant;

use super::client::{Client, Result};
use super::error::Failure;
use super::frontend::Formats;
use super::plan::ResultQuery;
use super::rows::{Portion, Sent, send};
use crate::results::RowStream;

pub struct Cursor {
    pub stream: RowStream,
    /// It outlives its transaction.
    pub hold: bool,
}

impl Client {
    /// Opens a cursor; its query runs from now on, as far ahead as a few batches.
    pub async fn declare(&mut self, name: Name, hold: bool, query: ResultQuery) -> Result<String> {
        if !hold && self.transaction != TransactionStatus::Transaction {
            let message = "DECLARE CURSOR can only be used in transaction blocks";
            let failure = Failure::new("25P01", message);
            return Err(failure.hint("BEGIN first, or declare it WITH HOLD").into());
        }
        if self.cursors.contains_key(&name.text) || self.portals.contains_key(&name.text) {
            let message = format!("cursor \"{}\" already exists", name.text);
            return Err(Failure::new("42P03", message).into());
        }
        let (stream, _) = self.open(query).await?;
        self.cursors.insert(name.text, Cursor { stream, hold });
        Ok("DECLARE CURSOR".into())
    }

    /// Sends the next rows of a cursor.
    pub async fn fetch(
        &mut self,
        cursor: &Name,
        count: FetchCount,
        formats: &Formats,
    ) -> Result<String> {
        // A fetch that fails or is cancelled takes its cursor with it.
        let taken = self.cursors.remove(&cursor.text);
        let mut taken = taken.ok_or_else(|| no_cursor(&cursor.text))?;
        let portion = Portion {
            max_rows: match count {
                FetchCount::All => None,
                FetchCount::Rows(n) => Some(n),
            },
            deadline: (!taken.stream.ends).then(|| Instant::now() + self.fetch_timeout()),
        };
        let Sent { n_rows, .. } =
            send(&mut self.output, &mut taken.stream, formats, portion).await?;
        self.cursors.insert(cursor.text.clone(), taken);
        Ok(format!("FETCH {n_rows}"))
    }

    fn fetch_timeout(&self) -> Duration {
        self.client_settings.fetch_timeout()
    }

    pub fn close_cursor(&mut self, name: Option<&Name>) -> Result<String> {
        match name {
            None => {
                self.cursors.clear();
                Ok("CLOSE CURSOR ALL".into())
            }
            Some(name) => match self.cursors.remove(&name.text) {
                Some(_) => Ok("CLOSE CURSOR".into()),
                None => Err(no_cursor(&name.text).into()),
            },
        }
    }
}

pub fn no_cursor(name: &str) -> Failure {
    Failure::new("34000", format!("cursor \"{name}\" does not exist"))
}
