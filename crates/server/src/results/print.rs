//! Results on an output: JSON lines, tables or CSV.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use clap::ValueEnum;
use thalweg_dataflow::table::SinkSpec;
use thalweg_runtime::connector::{BoxFuture, ConnectorError, Sink, SinkInput, SinkWriter};

use super::ResultTarget;
use super::encode::{Lines, Shape};
use super::output::Output;
use super::table::Tables;

/// How results are laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Layout {
    /// One JSON object a line; Debezium change events where the result is updating
    Json,
    /// Tables for people: the final answer where the sources end, else the changes of each epoch
    Table,
    /// A header and a line a row; only for one result, and only if rows are never taken back
    Csv,
}

/// What is known of a result beside its specification.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// Printed with every row.
    pub label: Option<String>,
    /// The changelog itself is wanted, as of SUBSCRIBE, even where rows are only added.
    pub changelog: bool,
    /// All sources end, so that there will be a final answer.
    pub ends: bool,
}

/// Prints results, each as `shown` says by the name of its sink.
pub struct Printer {
    pub layout: Layout,
    pub output: Arc<Output>,
    pub shown: HashMap<String, Shown>,
    /// Results that `shown` does not name are printed with the name of their sink.
    pub label_others: bool,
}

impl ResultTarget for Printer {
    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        let shown = self
            .shown
            .get(&spec.table)
            .cloned()
            .unwrap_or_else(|| Shown {
                label: self.label_others.then(|| spec.table.clone()),
                ..Shown::default()
            });
        if self.layout == Layout::Csv && (shown.changelog || (spec.updating && !shown.ends)) {
            return Err(ConnectorError::configuration(
                "CSV cannot say that a row changes or goes away",
                Some("use --format json, which prints change events".into()),
            ));
        }
        Ok(Box::new(PrintSink {
            layout: self.layout,
            output: self.output.clone(),
            spec: spec.clone(),
            shown,
        }))
    }
}

struct PrintSink {
    layout: Layout,
    output: Arc<Output>,
    spec: Arc<SinkSpec>,
    shown: Shown,
}

impl Sink for PrintSink {
    fn is_parallel(&self) -> bool {
        false
    }

    fn open(&self, _subtask: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        let text: Box<dyn Typeset> = match self.layout {
            Layout::Json => {
                let updating = self.spec.updating || self.shown.changelog;
                let shape = if updating {
                    Shape::Debezium
                } else {
                    Shape::Json
                };
                Box::new(Lines::new(
                    &self.spec.schema,
                    shape,
                    self.shown.label.as_deref(),
                )?)
            }
            Layout::Table => Box::new(Tables::new(&self.spec, self.shown.clone())),
            Layout::Csv => Box::new(Lines::new(&self.spec.schema, Shape::Csv, None)?),
        };
        // CSV has no changes: an updating result is accumulated, and its answer set at the end.
        let text = match self.layout {
            Layout::Csv if self.spec.updating => {
                Box::new(super::answer::AtEnd::new(&self.spec.schema, text))
            }
            _ => text,
        };
        Ok(Box::new(PrintWriter {
            text,
            output: self.output.clone(),
            pending: Vec::new(),
            n_bytes: 0,
        }))
    }
}

/// Turns rows and changes into text.
pub trait Typeset: Send {
    fn write(&mut self, input: &SinkInput<'_>, out: &mut Vec<u8>) -> Result<(), ConnectorError>;

    fn end_epoch(&mut self, epoch: u64, out: &mut Vec<u8>) -> Result<(), ConnectorError>;

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError>;
}

/// Text that waits for its epoch to end goes out earlier above this many bytes.
const PENDING_BYTES: usize = 1 << 20;

struct PrintWriter {
    text: Box<dyn Typeset>,
    output: Arc<Output>,
    /// Whole lines.
    pending: Vec<u8>,
    n_bytes: u64,
}

impl PrintWriter {
    async fn flush(&mut self) -> Result<(), ConnectorError> {
        self.n_bytes += self.pending.len() as u64;
        self.output.write(std::mem::take(&mut self.pending)).await
    }
}

impl SinkWriter for PrintWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.text.write(&input, &mut self.pending)?;
            if self.pending.len() > PENDING_BYTES {
                self.flush().await
            } else {
                Ok(())
            }
        })
    }

    fn end_epoch(&mut self, epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.text.end_epoch(epoch, &mut self.pending)?;
            self.flush().await
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(async move {
            self.text.finish(&mut self.pending)?;
            self.flush().await
        })
    }

    fn n_bytes(&self) -> u64 {
        self.n_bytes
    }
}

/// Sets one batch that is complete by itself.
pub fn set_batch(
    batch: &RecordBatch,
    layout: Layout,
    out: &mut Vec<u8>,
) -> Result<(), ConnectorError> {
    let schema = batch.schema();
    let mut text: Box<dyn Typeset> = match layout {
        Layout::Json => Box::new(Lines::new(&schema, Shape::Json, None)?),
        Layout::Csv => Box::new(Lines::new(&schema, Shape::Csv, None)?),
        Layout::Table => Box::new(Tables::answer(schema)),
    };
    text.write(&SinkInput::Rows(batch), out)?;
    text.finish(out)
}
