//! Results in memory: what a session gives back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter};

use super::ResultTarget;
use super::answer::Answer;
use super::changelog;

/// A finished result.
#[derive(Debug)]
pub struct Collected {
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
}

/// Collects results by the name of their sink.
#[derive(Debug, Default)]
pub struct Collector {
    /// Sinks whose changelog is wanted instead of its answer.
    pub subscribed: Vec<String>,
    collected: Arc<Mutex<HashMap<String, Held>>>,
}

#[derive(Debug)]
enum Held {
    Answer(SchemaRef, Answer),
    Changelog(Vec<RecordBatch>),
}

impl Collector {
    pub fn new(subscribed: Vec<String>) -> Self {
        Self {
            subscribed,
            collected: Arc::default(),
        }
    }

    /// The result of the sink `table`, once its job has ended. `None` if no such sink was opened.
    pub fn take(&self, table: &str) -> Result<Option<Collected>, ConnectorError> {
        match lock(&self.collected).remove(table) {
            None => Ok(None),
            Some(Held::Changelog(batches)) => Ok(Some(Collected {
                schema: changelog::schema(),
                batches,
            })),
            Some(Held::Answer(schema, answer)) => Ok(Some(Collected {
                schema,
                batches: answer.into_batches()?,
            })),
        }
    }
}

impl ResultTarget for Collector {
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        let held = if self.subscribed.contains(&spec.table) {
            Held::Changelog(Vec::new())
        } else {
            Held::Answer(spec.schema.clone(), Answer::new(spec.schema.clone()))
        };
        lock(&self.collected).insert(spec.table.clone(), held);
        Ok(Box::new(CollectSink {
            table: spec.table.clone(),
            collected: self.collected.clone(),
        }))
    }
}

#[derive(Clone)]
struct CollectSink {
    table: String,
    collected: Arc<Mutex<HashMap<String, Held>>>,
}

impl Sink for CollectSink {
    fn is_parallel(&self) -> bool {
        false
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(self.clone()))
    }
}

impl SinkWriter for CollectSink {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            match lock(&self.collected).get_mut(&self.table) {
                Some(Held::Answer(_, answer)) => answer.apply(&input),
                Some(Held::Changelog(batches)) => {
                    batches.push(changelog::changelog(&input)?);
                    Ok(())
                }
                // Taken: nobody waits for it any more.
                None => Ok(()),
            }
        })
    }

    fn end_epoch(&mut self, _epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async { Ok(()) })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async { Ok(()) })
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}

/// A poisoned lock means that a writer panicked, which its job reports.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
