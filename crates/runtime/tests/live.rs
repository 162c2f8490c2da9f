//! Jobs over a source that grows and loses records while it is read.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::Column;
use thalweg_dataflow::plan::{Graph, Input, JobSettings, Op, Properties};
use thalweg_dataflow::table::{BadData, EventTimeSource, SinkSpec, SourceSpec, WatermarkSpec};
use thalweg_runtime::connector::*;
use thalweg_runtime::job::{self, Environment, JobHandle};
use tokio::sync::mpsc;

/// Splits named by the one number that each holds; `lost` holds none any more.
struct Growing {
    found: tokio::sync::Mutex<mpsc::UnboundedReceiver<Result<SplitId, ConnectorError>>>,
    committed: Committed,
}

type Committed = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

struct OneNumber {
    split: String,
    is_read: bool,
}

struct NoOrigins;

impl Origins for NoOrigins {
    fn bad_record(&self, _: usize, _: BadReason, message: String) -> BadRecord {
        panic!("{message}")
    }
}

impl Source for Growing {
    fn splits(&self, _: usize) -> Result<Vec<SplitId>, ConnectorError> {
        Ok(Vec::new())
    }

    fn open(
        &self,
        split: &SplitId,
        _: Option<&Offset>,
        _: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        Ok(Box::new(OneNumber {
            split: split.0.to_string(),
            is_read: false,
        }))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        Some(self)
    }
}

impl LiveSource for Growing {
    fn new_splits(&self) -> BoxFuture<'_, Result<Vec<SplitId>, ConnectorError>> {
        Box::pin(async {
            match self.found.lock().await.recv().await {
                Some(found) => Ok(vec![found?]),
                None => std::future::pending().await,
            }
        })
    }

    fn committed(&self, positions: &[(SplitId, Offset)]) {
        let positions = positions
            .iter()
            .map(|(s, o)| (s.0.to_string(), o.0.clone()));
        *self.committed.lock().unwrap() = positions.collect();
    }
}

impl SplitReader for OneNumber {
    fn read(&mut self, _: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move {
            if self.is_read {
                std::future::pending::<()>().await;
            }
            self.is_read = true;
            let Ok(number) = self.split.parse::<i64>() else {
                let message = "they were deleted".to_string();
                return Ok(Read::Lost(Lost {
                    n_records: 3,
                    message,
                }));
            };
            let rows =
                RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(vec![number]))])?;
            Ok(Read::Records(Records {
                rows,
                times: Some(vec![number].into()),
                marks: None,
                origins: Arc::new(NoOrigins),
                bad: Vec::new(),
                n_bytes: 1,
            }))
        })
    }

    fn offset(&self) -> Offset {
        Offset(vec![u8::from(self.is_read)])
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

#[derive(Clone, Default)]
struct Collected(Arc<Mutex<Vec<i64>>>);

impl Sink for Collected {
    fn is_parallel(&self) -> bool {
        true
    }

    fn open(&self, _: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(self.clone()))
    }
}

impl SinkWriter for Collected {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        let SinkInput::Rows(rows) = input else {
            panic!("append-only input comes as rows")
        };
        let numbers = rows.column(0).as_primitive::<Int64Type>().values();
        self.0.lock().unwrap().extend(numbers);
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_epoch(&mut self, _: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}

struct Factory(Mutex<Option<Growing>>, Collected);

impl ConnectorFactory for Factory {
    fn source(&self, _: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        Ok(Box::new(self.0.lock().unwrap().take().expect("one source")))
    }

    fn sink(&self, _: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(self.1.clone()))
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]))
}

fn graph() -> Graph {
    let source = SourceSpec {
        table: "numbers".into(),
        connector: "growing".into(),
        format: None,
        options: Default::default(),
        bounded: false,
        declared: schema(),
        physical: schema(),
        metadata: vec![],
        columns: vec![Arc::new(Column::new("n", 0))],
        schema: schema(),
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data: BadData::Fail,
        updating: false,
        primary_key: vec![],
    };
    let sink = SinkSpec {
        table: "out".into(),
        connector: "collect".into(),
        format: None,
        options: Default::default(),
        schema: schema(),
        updating: false,
        key: None,
    };
    let (mut graph, none) = (Graph::default(), Properties::default);
    let from = graph.add(Op::Source(Arc::new(source)), vec![], schema(), none());
    let inputs = vec![Input::forward(from)];
    graph.add(Op::Sink(Arc::new(sink)), inputs, schema(), none());
    graph
}

struct Running {
    job: JobHandle,
    found: mpsc::UnboundedSender<Result<SplitId, ConnectorError>>,
    out: Collected,
    committed: Committed,
}

fn start() -> Running {
    let (found, receiver) = mpsc::unbounded_channel();
    let (out, committed) = (Collected::default(), Committed::default());
    let source = Growing {
        found: tokio::sync::Mutex::new(receiver),
        committed: committed.clone(),
    };
    let factory = Arc::new(Factory(Mutex::new(Some(source)), out.clone()));
    let settings = JobSettings {
        parallelism: Some(2),
        flush_interval: Duration::from_millis(5).as_nanos() as i64,
        ..JobSettings::default()
    };
    let environment = Environment::open(factory, None).unwrap();
    let job = job::start(&graph(), &settings, &environment).unwrap();
    Running {
        job,
        found,
        out,
        committed,
    }
}

impl Running {
    fn find(&self, split: &str) {
        self.found.send(Ok(SplitId(split.into()))).unwrap();
    }

    async fn until(&self, reached: impl Fn(&Self) -> bool) {
        while !reached(self) {
            tokio::task::yield_now().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn splits_that_are_found_are_read_by_subtasks_that_had_none() {
    let mut running = start();
    // Epochs pass, and a source that may grow has not ended.
    let epochs = |r: &Running| r.job.metrics().epochs.load(Ordering::Relaxed);
    running.until(|r| epochs(r) >= 2).await;
    for (n, split) in ["7", "8", "9"].into_iter().enumerate() {
        running.find(split);
        running.until(|r| r.out.0.lock().unwrap().len() > n).await;
    }
    running.job.drain();
    running.job.wait().await.unwrap();
    let mut rows = running.out.0.lock().unwrap().clone();
    rows.sort_unstable();
    assert_eq!(rows, [7, 8, 9]);
    let mut committed = running.committed.lock().unwrap().clone();
    committed.sort();
    let read = |split: &str| (split.to_string(), vec![1]);
    assert_eq!(
        committed,
        [read("7"), read("8"), read("9")],
        "told at the end"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lost_records_are_counted_and_reading_goes_on() {
    let mut running = start();
    running.find("lost");
    running.find("4");
    running.until(|r| !r.out.0.lock().unwrap().is_empty()).await;
    let lost = |r: &Running| r.job.metrics().lost_records.load(Ordering::Relaxed);
    running.until(|r| lost(r) == 3).await;
    running.job.drain();
    running.job.wait().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_cannot_look_for_splits_fails_its_job() {
    let mut running = start();
    let gone = ConnectorError::configuration("the topic is gone", None);
    running.found.send(Err(gone)).unwrap();
    let error = running.job.wait().await.unwrap_err();
    assert_eq!(error.to_string(), "table \"numbers\": the topic is gone");
}
