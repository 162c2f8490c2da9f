//! Sends the rows of a result.

use std::pin::pin;

use futures::future::poll_immediate;
use tokio::time::{Instant, timeout_at};

use super::backend::Output;
use super::client::{Result, Stop};
use super::encode::Rows;
use super::error::Failure;
use super::frontend::Formats;
use crate::results::{Broken, RowStream};

/// Which rows of a result are to be sent now.
#[derive(Debug, Clone, Copy)]
pub struct Portion {
    /// `None`: all there are.
    pub max_rows: Option<u64>,
    /// No longer than until then.
    pub deadline: Option<Instant>,
}

impl Portion {
    pub const ALL: Self = Self {
        max_rows: None,
        deadline: None,
    };
}

/// What has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub n_rows: u64,
    /// There are no more.
    pub is_end: bool,
}

/// Sends rows as they come: what is there is flushed before more is waited for.
pub async fn send(
    output: &mut Output,
    stream: &mut RowStream,
    formats: &Formats,
    portion: Portion,
) -> Result<Sent> {
    let mut n_rows = 0;
    loop {
        let left = portion.max_rows.map_or(u64::MAX, |max| max - n_rows);
        let sent = |is_end| Ok(Sent { n_rows, is_end });
        if left == 0 {
            return sent(false);
        }
        let Some(next) = next_batch(output, stream, left, portion.deadline).await? else {
            return sent(false);
        };
        let Some(batch) = next else {
            for warning in stream.take_warnings() {
                output.warning(&warning);
            }
            return sent(true);
        };
        let rows = Rows::new(&batch, formats)?;
        for row in 0..rows.n_rows() {
            output.message(b'D', |out| rows.data_row(row, out))?;
            output.flush_if_full().await?;
        }
        n_rows += rows.n_rows() as u64;
        // Rows that never have to be waited for would never let it come.
        if portion
            .deadline
            .is_some_and(|deadline| Instant::now() >= deadline)
        {
            return Ok(Sent {
                n_rows,
                is_end: false,
            });
        }
    }
}

/// `None`: the deadline has come first.
pub async fn next_batch(
    output: &mut Output,
    stream: &mut RowStream,
    max_rows: u64,
    deadline: Option<Instant>,
) -> Result<Option<Option<arrow::record_batch::RecordBatch>>> {
    let max_rows = usize::try_from(max_rows).unwrap_or(usize::MAX);
    let mut next = pin!(stream.next(max_rows));
    let batch = match poll_immediate(next.as_mut()).await {
        Some(batch) => batch,
        None => {
            output.flush().await?;
            match deadline {
                None => next.await,
                Some(deadline) => match timeout_at(deadline, next).await {
                    Ok(batch) => batch,
                    Err(_) => return Ok(None),
                },
            }
        }
    };
    Ok(Some(batch.map_err(broken)?))
}

fn broken(broken: Broken) -> Stop {
    let failure = match broken {
        Broken::Dropped => Failure::new("57014", "the job of this query was ended by DROP JOB"),
        Broken::Failed(ended) => match ended.outcome.error() {
            Some(error) => Failure::of_error(error, ""),
            None => Failure::internal("a job failed without an error"),
        },
    };
    failure.into()
}
