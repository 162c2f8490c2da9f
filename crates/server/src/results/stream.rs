//! Results on their way to one client, batch by batch as they arise.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::table::SinkSpec;
use thalweg_planner::bind::RowLimit;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter};
use tokio::sync::mpsc;

use super::ResultTarget;
use super::answer::Answer;
use super::changelog;
use crate::jobs::{Ended, Outcome, Owned};

/// Batches on their way before a slow client slows its job.
const BATCHES_IN_FLIGHT: usize = 4;

/// What of a result its client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Rows as they come; of an updating result the final ones, at its end.
    Rows,
    /// Every change.
    Changelog,
}

/// The sink of one query, and where its batches come out.
pub fn channel(view: View) -> (Arc<ClientTarget>, mpsc::Receiver<RecordBatch>) {
    let (batches, receiver) = mpsc::channel(BATCHES_IN_FLIGHT);
    (Arc::new(ClientTarget { view, batches }), receiver)
}

pub struct ClientTarget {
    view: View,
    batches: mpsc::Sender<RecordBatch>,
}

impl ResultTarget for ClientTarget {
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        let form = match self.view {
            View::Changelog => Form::Changelog,
            View::Rows if spec.updating => Form::Answer(spec.schema.clone()),
            View::Rows => Form::Rows,
        };
        Ok(Box::new(ClientSink {
            form,
            batches: self.batches.clone(),
        }))
    }
}

#[derive(Clone)]
enum Form {
    Rows,
    Changelog,
    Answer(SchemaRef),
}

struct ClientSink {
    form: Form,
    batches: mpsc::Sender<RecordBatch>,
}

impl Sink for ClientSink {
    fn is_parallel(&self) -> bool {
        false
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let answer = match &self.form {
            Form::Answer(schema) => Some(Answer::new(schema.clone())),
            _ => None,
        };
        Ok(Box::new(ClientWriter {
            form: self.form.clone(),
            answer,
            batches: self.batches.clone(),
        }))
    }
}

struct ClientWriter {
    form: Form,
    /// Accumulated where only the final rows are wanted.
    answer: Option<Answer>,
    batches: mpsc::Sender<RecordBatch>,
}

impl ClientWriter {
    async fn send(&self, batch: RecordBatch) -> Result<(), ConnectorError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let gone = |_| ConnectorError::io("the client", std::io::ErrorKind::BrokenPipe.into());
        self.batches.send(batch).await.map_err(gone)
    }
}

impl SinkWriter for ClientWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            match (&self.form, &mut self.answer, &input) {
                (_, Some(answer), _) => answer.apply(&input),
                (Form::Rows, _, SinkInput::Rows(rows)) => self.send((*rows).clone()).await,
                _ => self.send(changelog::changelog(&input)?).await,
            }
        })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async { Ok(()) })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            if let Some(answer) = self.answer.take() {
                for batch in answer.into_batches()? {
                    self.send(batch).await?;
                }
            }
            Ok(())
        })
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}

/// A result being read. Dropped before its end, its job ends with it.
pub struct RowStream {
    schema: SchemaRef,
    /// Whether there will be a last row.
    pub ends: bool,
    ready: VecDeque<RecordBatch>,
    live: Option<Live>,
    to_skip: u64,
    left: Option<u64>,
    warnings: Vec<String>,
}

struct Live {
    batches: mpsc::Receiver<RecordBatch>,
    job: Owned,
}

/// Why a result has no further rows.
#[derive(Debug)]
pub enum Broken {
    /// Its job failed: the outcome has the error.
    Failed(Arc<Ended>),
    /// Somebody else ended its job.
    Dropped,
}

impl RowStream {
    /// Rows that are there already.
    pub fn fixed(batch: RecordBatch) -> Self {
        Self::of(batch.schema(), vec![batch])
    }

    /// Batches that are there already.
    pub fn of(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self {
            schema,
            ends: true,
            ready: batches.into(),
            live: None,
            to_skip: 0,
            left: None,
            warnings: Vec::new(),
        }
    }

    /// The rows of a job that runs.
    pub fn live(
        schema: SchemaRef,
        batches: mpsc::Receiver<RecordBatch>,
        job: Owned,
        ends: bool,
    ) -> Self {
        Self {
            schema,
            ends,
            ready: VecDeque::new(),
            live: Some(Live { batches, job }),
            to_skip: 0,
            left: None,
            warnings: Vec::new(),
        }
    }

    pub fn limited(mut self, limit: Option<RowLimit>) -> Self {
        if let Some(RowLimit { offset, limit }) = limit {
            self.to_skip = offset;
            self.left = limit;
        }
        self
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Late rows, dropped records: known when the result has come to its end.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The next rows, at most `max_rows` of them; `None`: there are no more. Cancel-safe.
    pub async fn next(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, Broken> {
        if max_rows == 0 {
            return Ok(None);
        }
        loop {
            if self.left == Some(0) {
                self.ready.clear();
                self.live = None;
            }
            if let Some(batch) = self.ready.pop_front() {
                if let Some(batch) = self.cut(batch, max_rows) {
                    return Ok(Some(batch));
                }
                continue;
            }
            let Some(live) = &mut self.live else {
                return Ok(None);
            };
            if let Some(batch) = live.batches.recv().await {
                self.ready.push_back(batch);
                continue;
            }
            let ended = live.job.job().ended().await;
            self.live = None;
            match &ended.outcome {
                Outcome::Finished => self.warnings.extend(ended.warnings.iter().cloned()),
                Outcome::Failed(_) => return Err(Broken::Failed(ended)),
                Outcome::Cancelled => return Err(Broken::Dropped),
            }
        }
    }

    /// What of a batch is wanted now; the rest goes back.
    fn cut(&mut self, batch: RecordBatch, max_rows: usize) -> Option<RecordBatch> {
        let n_rows = batch.num_rows();
        let n_skipped = usize::try_from(self.to_skip)
            .unwrap_or(usize::MAX)
            .min(n_rows);
        self.to_skip -= n_skipped as u64;
        let left = self
            .left
            .map_or(usize::MAX, |n| usize::try_from(n).unwrap_or(usize::MAX));
        let n_taken = (n_rows - n_skipped).min(left).min(max_rows);
        if n_skipped + n_taken < n_rows {
            let n_rest = n_rows - n_skipped - n_taken;
            self.ready
                .push_front(batch.slice(n_skipped + n_taken, n_rest));
        }
        if n_taken == 0 {
            return None;
        }
        if let Some(left) = &mut self.left {
            *left -= n_taken as u64;
        }
        Some(batch.slice(n_skipped, n_taken))
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::{AsArray, Int64Array};
    use arrow::datatypes::{DataType, Field, Int64Type, Schema};

    use super::*;

    fn stream(limit: Option<RowLimit>) -> RowStream {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        let values = Arc::new(Int64Array::from_iter_values(0..10));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![values]).unwrap();
        RowStream::fixed(batch).limited(limit)
    }

    async fn rows(stream: &mut RowStream, max_rows: usize) -> Option<Vec<i64>> {
        let batch = stream.next(max_rows).await.unwrap()?;
        Some(
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec(),
        )
    }

    #[tokio::test]
    async fn rows_come_in_the_portions_that_are_asked_for() {
        let mut all = stream(None);
        assert_eq!(rows(&mut all, 4).await.unwrap(), [0, 1, 2, 3]);
        assert_eq!(rows(&mut all, 1).await.unwrap(), [4]);
        assert_eq!(rows(&mut all, usize::MAX).await.unwrap().len(), 5);
        assert_eq!(rows(&mut all, 1).await, None);
    }

    #[tokio::test]
    async fn a_limit_counts_after_the_offset() {
        let limit = |offset, limit| Some(RowLimit { offset, limit });
        let mut some = stream(limit(3, Some(4)));
        assert_eq!(rows(&mut some, 3).await.unwrap(), [3, 4, 5]);
        assert_eq!(rows(&mut some, 3).await.unwrap(), [6]);
        assert_eq!(rows(&mut some, 3).await, None);
        assert_eq!(rows(&mut stream(limit(0, Some(0))), 3).await, None);
        assert_eq!(rows(&mut stream(limit(99, None)), 3).await, None);
        assert_eq!(rows(&mut stream(limit(9, None)), 3).await.unwrap(), [9]);
    }
}
