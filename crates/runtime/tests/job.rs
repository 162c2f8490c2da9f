//! Whole jobs over an in-memory source and sink: epochs, watermarks, drains, failures.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::{Arc, Mutex};

use arrow::array::{AsArray, Int64Array};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::Column;
use thalweg_dataflow::plan::{Graph, Input, JobSettings, Op, Properties};
use thalweg_dataflow::table::{BadData, EventTimeSource, SinkSpec, SourceSpec, WatermarkSpec};
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::*;
use thalweg_runtime::job::{self, Environment};

/// Splits of consecutive numbers; the event time of a number is itself, in seconds.
struct Numbers {
    n_splits: usize,
    per_split: i64,
    /// After its numbers, a split is silent instead of ending.
    endless: bool,
    bad_at: Option<i64>,
}

struct NumbersReader {
    next: i64,
    end: i64,
    endless: bool,
    bad_at: Option<i64>,
}

struct NoOrigins;

impl Origins for NoOrigins {
    fn bad_record(&self, row: usize, reason: BadReason, message: String) -> BadRecord {
        let place = format!("row {row}");
        BadRecord {
            reason,
            message,
            raw: None,
            topic: "numbers".into(),
            partition: 0,
            offset: row as i64,
            place,
        }
    }
}

impl Source for Numbers {
    fn splits(&self, _: usize) -> Result<Vec<SplitId>, ConnectorError> {
        Ok((0..self.n_splits)
            .map(|i| SplitId(i.to_string().into()))
            .collect())
    }

    fn open(
        &self,
        split: &SplitId,
        _: Option<&Offset>,
        _: usize,
    ) -> Result<Box<dyn SplitReader>, ConnectorError> {
        let i: i64 = split.0.parse().expect("made above");
        let next = i * self.per_split;
        Ok(Box::new(NumbersReader {
            next,
            end: next + self.per_split,
            endless: self.endless,
            bad_at: self.bad_at,
        }))
    }

    fn live(&self) -> Option<&dyn LiveSource> {
        None
    }
}

impl SplitReader for NumbersReader {
    fn read(&mut self, max_rows: usize) -> BoxFuture<'_, Result<Read, ConnectorError>> {
        Box::pin(async move {
            if self.next == self.end {
                if self.endless {
                    std::future::pending::<()>().await;
                }
                return Ok(Read::End);
            }
            let end = self.end.min(self.next + max_rows.min(7) as i64);
            let mut bad = Vec::new();
            if let Some(at) = self.bad_at.filter(|at| (self.next..end).contains(at)) {
                bad.push(NoOrigins.bad_record(at as usize, BadReason::Type, "not a number".into()));
            }
            let values: Vec<i64> = (self.next..end)
                .filter(|n| Some(*n) != self.bad_at)
                .collect();
            self.next = end;
            let times = values.iter().map(|n| n * 1_000_000_000).collect();
            let rows = RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values))])?;
            let (times, marks, origins) = (Some(times), None, Arc::new(NoOrigins));
            Ok(Read::Records(Records {
                rows,
                times,
                marks,
                origins,
                bad,
                n_bytes: 1,
            }))
        })
    }

    fn offset(&self) -> Offset {
        Offset(self.next.to_be_bytes().to_vec())
    }

    fn is_caught_up(&self) -> bool {
        true
    }
}

/// Keeps the rows of each epoch.
#[derive(Clone, Default)]
struct Collected {
    epochs: Arc<Mutex<Vec<Vec<i64>>>>,
    finished: Arc<Mutex<bool>>,
}

struct Collector {
    to: Collected,
    current: Vec<i64>,
}

impl Sink for Collected {
    fn is_parallel(&self) -> bool {
        false
    }

    fn open(&self, _: usize) -> Result<Box<dyn SinkWriter>, ConnectorError> {
        Ok(Box::new(Collector {
            to: self.clone(),
            current: Vec::new(),
        }))
    }
}

impl SinkWriter for Collector {
    fn write<'a>(&'a mut self, input: SinkInput<'a>) -> BoxFuture<'a, Result<(), ConnectorError>> {
        let SinkInput::Rows(rows) = input else {
            panic!("append-only input comes as rows")
        };
        self.current
            .extend(rows.column(0).as_primitive::<Int64Type>().values());
        Box::pin(std::future::ready(Ok(())))
    }

    fn end_epoch(&mut self, _: u64) -> BoxFuture<'_, Result<(), ConnectorError>> {
        self.to
            .epochs
            .lock()
            .unwrap()
            .push(std::mem::take(&mut self.current));
        Box::pin(std::future::ready(Ok(())))
    }

    fn finish(&mut self) -> BoxFuture<'_, Result<(), ConnectorError>> {
        *self.to.finished.lock().unwrap() = true;
        Box::pin(std::future::ready(Ok(())))
    }

    fn n_bytes(&self) -> u64 {
        0
    }
}

struct Factory(Mutex<Option<Numbers>>, Collected);

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

fn graph(bounded: bool, bad_data: BadData) -> Graph {
    let source = SourceSpec {
        table: "numbers".into(),
        connector: "numbers".into(),
        format: None,
        options: Default::default(),
        bounded,
        declared: schema(),
        physical: schema(),
        metadata: vec![],
        columns: vec![Arc::new(Column::new("n", 0))],
        schema: schema(),
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data,
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
    let mut graph = Graph::default();
    let from = graph.add(
        Op::Source(Arc::new(source)),
        vec![],
        schema(),
        Properties::default(),
    );
    graph.add(
        Op::Sink(Arc::new(sink)),
        vec![Input::forward(from)],
        schema(),
        Properties::default(),
    );
    graph
}

fn settings(parallelism: usize) -> JobSettings {
    JobSettings {
        parallelism: Some(parallelism),
        ..JobSettings::default()
    }
}

fn start(numbers: Numbers, graph: &Graph, settings: &JobSettings) -> (job::JobHandle, Collected) {
    let out = Collected::default();
    let factory = Arc::new(Factory(Mutex::new(Some(numbers)), out.clone()));
    let environment = Environment::open(factory, None).expect("a temporary state directory");
    (
        job::start(graph, settings, &environment).expect("the job starts"),
        out,
    )
}

fn bounded(n_splits: usize, per_split: i64) -> Numbers {
    Numbers {
        n_splits,
        per_split,
        endless: false,
        bad_at: None,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bounded_job_ends_with_every_row_once_at_any_parallelism() {
    for parallelism in [1, 2, 3] {
        let (mut job, out) = start(
            bounded(5, 1000),
            &graph(true, BadData::Fail),
            &settings(parallelism),
        );
        job.wait().await.unwrap();
        let mut rows: Vec<i64> = out.epochs.lock().unwrap().concat();
        rows.sort_unstable();
        assert_eq!(rows, (0..5000).collect::<Vec<_>>());
        assert!(
            *out.finished.lock().unwrap(),
            "the sink is finished in good order"
        );
    }
}

#[tokio::test]
async fn rule_4_2_epoch_max_rows_ends_an_epoch_after_exactly_so_many_rows() {
    let settings = JobSettings {
        epoch_max_rows: Some(10),
        ..settings(1)
    };
    let (mut job, out) = start(bounded(1, 35), &graph(true, BadData::Fail), &settings);
    job.wait().await.unwrap();
    let sizes: Vec<usize> = out.epochs.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes[..4], [10, 10, 10, 5]);
}

#[tokio::test]
async fn rule_4_2_at_interval_zero_every_row_is_an_epoch() {
    let settings = JobSettings {
        flush_interval: 0,
        ..settings(4)
    };
    let (mut job, out) = start(bounded(2, 3), &graph(true, BadData::Fail), &settings);
    job.wait().await.unwrap();
    let epochs = out.epochs.lock().unwrap().clone();
    assert_eq!(
        epochs
            .iter()
            .filter(|e| !e.is_empty())
            .cloned()
            .collect::<Vec<_>>(),
        (0..6).map(|n| vec![n]).collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_delivers_what_was_read_and_ends_an_endless_job() {
    let numbers = Numbers {
        endless: true,
        ..bounded(2, 100)
    };
    let (mut job, out) = start(numbers, &graph(false, BadData::Fail), &settings(2));
    while job
        .metrics()
        .rows_in
        .load(std::sync::atomic::Ordering::Relaxed)
        < 200
    {
        tokio::task::yield_now().await;
    }
    job.drain();
    job.wait().await.unwrap();
    assert_eq!(out.epochs.lock().unwrap().concat().len(), 200);
    assert!(*out.finished.lock().unwrap());
}

#[tokio::test]
async fn rule_8_1_a_bad_record_fails_the_job_by_name_or_is_dropped_with_its_neighbours_intact() {
    let bad = |policy| {
        let numbers = Numbers {
            bad_at: Some(3),
            ..bounded(1, 10)
        };
        start(numbers, &graph(true, policy), &settings(1))
    };
    let (mut job, _) = bad(BadData::Fail);
    match job.wait().await {
        Err(error @ RuntimeError::BadRecord { .. }) => {
            assert_eq!(
                error.to_string(),
                "bad record in table \"numbers\" at row 3: not a number"
            );
            assert!(error.is_deterministic());
        }
        other => panic!("expected the bad record, got {other:?}"),
    }
    let (mut job, out) = bad(BadData::Drop);
    job.wait().await.unwrap();
    assert_eq!(
        out.epochs.lock().unwrap().concat(),
        [0, 1, 2, 4, 5, 6, 7, 8, 9]
    );
    assert_eq!(job.metrics().bad_records().into_values().sum::<u64>(), 1);
}
