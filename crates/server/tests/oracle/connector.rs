//! A source that gives scripted rows and records where each epoch cut them, and a sink that records
//! what comes out.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use arrow::compute::cast;
use arrow::record_batch::RecordBatch;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::options::{ConnectorDecl, FormatDecl, OptionFault, Registry, TableCheck};
use thalweg_dataflow::table::{SinkSpec, SourceSpec};
use thalweg_runtime::connector::{
    BadReason, BadRecord, BoxFuture, ConnectorError, ConnectorFactory, LiveSource, Marks, Offset,
    Origins, Read, Records, Sink, SinkInput, SinkWriter, Source, SplitId, SplitReader,
};
use thalweg_runtime::pairing::PairedChanges;

use crate::input::{Change, Cuts, Input, Record as Said, Row, batch};

/// Declares the connector `oracle` with the formats `rows` and `changelog`.
pub struct OracleRegistry {
    connector: ConnectorDecl,
    formats: [FormatDecl; 2],
}

impl OracleRegistry {
    pub fn new() -> Self {
        let format = |name, reads_changelog| FormatDecl {
            name,
            meaning: "rows of a test",
            options: &[],
            can_read: true,
            can_write: false,
            takes_updates: false,
            reads_changelog,
        };
        let connector = ConnectorDecl {
            name: "oracle",
            meaning: "rows of a test",
            options: &[],
            can_read: true,
            can_write: false,
            formats: &["rows", "changelog"],
            default_format: |_| None,
            fixed_columns: &[],
            metadata: &[],
            takes_updates: false,
            bounded: |_| true,
        };
        Self {
            connector,
            formats: [format("rows", false), format("changelog", true)],
        }
    }
}

impl Registry for OracleRegistry {
    fn connectors(&self) -> Vec<&ConnectorDecl> {
        vec![&self.connector]
    }

    fn formats(&self) -> Vec<&FormatDecl> {
        self.formats.iter().collect()
    }

    fn check_table(&self, _: &TableCheck<'_>) -> Result<(), OptionFault> {
        Ok(())
    }
}

/// What one run of a job took in and gave out.
#[derive(Debug, Default)]
pub struct Record {
    /// By table and split: how many of its changes had been read at each cut. A split that has ended
    /// has no further cuts.
    pub cuts: BTreeMap<(String, usize), Vec<usize>>,
    /// In the order in which they were written, with their epochs, counted from 1.
    pub outputs: Vec<(u64, Output)>,
    /// Positions of the sink's key; `None` inside where it has none.
    pub key: Option<Option<Vec<usize>>>,
    pub n_epochs: u64,
}

#[derive(Debug)]
pub enum Output {
    Rows(RecordBatch),
    Changes(PairedChanges),
}

pub type Shared = Arc<Mutex<Record>>;

pub fn locked(record: &Shared) -> MutexGuard<'_, Record> {
    record.lock().expect("no holder of the lock panics")
}

/// In place of the connectors of a run.
pub struct NoConnectors;

impl ConnectorFactory for NoConnectors {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Err(ConnectorError::configuration(
            format!("no source {}", spec.table),
            None,
        ))
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Err(ConnectorError::configuration(
            format!("no sink {}", spec.table),
            None,
        ))
    }
}

/// Makes the sources and the sink of one run.
pub struct OracleFactory {
    pub input: Arc<Input>,
    pub record: Shared,
}

impl ConnectorFactory for OracleFactory {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(OracleSource {
            spec: spec.clone(),
            input: self.input.clone(),
            record: self.record.clone(),
        }))
    }

    fn sink(&self, spec: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        locked(&self.record).key = Some(spec.updating.then(|| spec.key.clone()).flatten());
        Ok(Box::new(OracleSink {
            record: self.record.clone(),
            parallel: self.input.reading.parallel_sink,
        }))
    }
}

struct OracleSource {
    spec: Arc<SourceSpec>,
    input: Arc<Input>,
    record: Shared,
}

impl Source for OracleSource {
    fn splits(&self, _: usize) -> Result<Vec<SplitId>, ConnectorError> {
        let n = self.input.tables[self.spec.table.as_str()].splits.len();
        Ok((0..n).map(|i| SplitId(i.to_string().into())).collect())
    }

    fn open(
        &self,
        split: &SplitId,
        _: Option<&Offset>,
        _: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let index: usize = split.0.parse().expect("splits are numbered");
        let reading = &self.input.reading;
        locked(&self.record)
            .cuts
            .insert((self.spec.table.clone(), index), Vec::new());
        Ok(Box::new(OracleReader {
            spec: self.spec.clone(),
            input: self.input.clone(),
            record: self.record.clone(),
            split: index,
            rng: StdRng::seed_from_u64(reading.seed ^ index as u64),
            at: 0,
            since_cut: Cell::new(0),
            ended: false,
        }))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        None
    }
}

struct OracleReader {
    spec: Arc<SourceSpec>,
    input: Arc<Input>,
    record: Shared,
    split: usize,
    rng: StdRng,
    at: usize,
    since_cut: Cell<usize>,
    ended: bool,
}

impl OracleReader {
    fn changes(&self) -> &[Change] {
        &self.input.tables[self.spec.table.as_str()].splits[self.split]
    }

    /// Rows that may be given before the next cut.
    fn allowed(&self) -> usize {
        match self.input.reading.cuts {
            Cuts::Gates(n) => n - self.since_cut.get().min(n),
            Cuts::Rows(_) | Cuts::EachRow => usize::MAX,
        }
    }

    fn next(&mut self, max_rows: usize) -> Result<Read, ConnectorError> {
        let left = self.changes().len() - self.at;
        if left == 0 {
            self.ended = true;
            return Ok(Read::End);
        }
        let wanted = self.rng.random_range(1..=self.input.reading.max_batch);
        let n = wanted.min(max_rows).min(self.allowed()).min(left);
        let changes = &self.changes()[self.at..self.at + n];
        let records = self.records(changes)?;
        self.at += n;
        self.since_cut.set(self.since_cut.get() + n);
        Ok(Read::Records(records))
    }

    /// All but stale reads stand in the log, one after another.
    fn marks(&self, changes: &[Change]) -> Marks {
        let op = |change: &Change| match change.record {
            Said::Write => ChangeOp::Write,
            Said::StaleRead => ChangeOp::Read,
            Said::Delete => ChangeOp::Delete,
        };
        let position = |(i, change): (usize, &Change)| match change.record {
            Said::StaleRead => 0,
            Said::Write | Said::Delete => 1 + (self.at + i) as i64,
        };
        Marks {
            positions: changes
                .iter()
                .enumerate()
                .map(position)
                .collect::<Vec<_>>()
                .into(),
            ..Marks::of(changes.iter().map(op))
        }
    }

    fn records(&self, changes: &[Change]) -> Result<Records, ConnectorError> {
        let rows: Vec<&Row> = changes.iter().map(|c| &c.row).collect();
        let all = batch(&rows);
        let schema = self.spec.record_schema();
        let column = |field: &arrow::datatypes::FieldRef| {
            let column = all
                .column_by_name(field.name())
                .expect("the table declares these columns");
            cast(column, field.data_type())
        };
        let columns = schema
            .fields()
            .iter()
            .map(column)
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Records {
            rows: thalweg_dataflow::change::record_batch(schema, columns, changes.len())?,
            times: None,
            marks: self.spec.updating.then(|| self.marks(changes)),
            origins: Arc::new(NoOrigins),
            bad: Vec::new(),
            n_bytes: changes.len() as u64,
        })
    }
}

impl SplitReader for OracleReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move {
            let at_gate = self.allowed() == 0 && self.at < self.changes().len();
            if at_gate {
                // The next read, after the cut, finds the gate open.
                std::future::pending::<()>().await;
            }
            self.next(max_rows)
        })
    }

    /// Asked for at every barrier, for every epoch of the test is committed.
    fn offset(&self) -> Offset {
        if !self.ended {
            let key = (self.spec.table.clone(), self.split);
            locked(&self.record)
                .cuts
                .entry(key)
                .or_default()
                .push(self.at);
            self.since_cut.set(0);
        }
        Offset(self.at.to_le_bytes().to_vec())
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

/// No row of these tests is ever rejected; if one is, the failure says so.
struct NoOrigins;

impl Origins for NoOrigins {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let place = format!("row {row} of a batch");
        BadRecord {
            reason,
            message,
            raw: None,
            topic: "oracle".into(),
            partition: 0,
            offset: row as i64,
            place,
        }
    }
}

struct OracleSink {
    record: Shared,
    parallel: bool,
}

impl Sink for OracleSink {
    fn is_parallel(&self) -> bool {
        self.parallel
    }

    fn open(&self, _: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(OracleWriter {
            record: self.record.clone(),
            epoch: 1,
        }))
    }
}

struct OracleWriter {
    record: Shared,
    epoch: u64,
}

impl SinkWriter for OracleWriter {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        let output = match input {
            SinkInput::Rows(rows) => Output::Rows(rows.clone()),
            SinkInput::Changes(changes) => Output::Changes(changes.clone()),
        };
        locked(&self.record).outputs.push((self.epoch, output));
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_epoch(&mut self, epoch: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        assert_eq!(epoch, self.epoch, "epochs end in order, each once");
        self.epoch += 1;
        let mut record = locked(&self.record);
        record.n_epochs = record.n_epochs.max(epoch);
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}
