//! Jobs that read a topic into memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow::array::AsArray;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use datafusion::physical_expr::expressions::Column;
use thalweg_connectors::Connectors;
use thalweg_dataflow::options::{Options, Registry};
use thalweg_dataflow::plan::{Graph, Input, JobSettings, Op, Properties};
use thalweg_dataflow::table::{
    BadData, EventTimeSource, ExprRef, MetadataColumn, SinkSpec, SourceSpec, WatermarkSpec,
};
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::{
    BoxFuture, ConnectorError, ConnectorFactory, Sink, SinkInput, SinkWriter, Source,
};
use thalweg_runtime::job::{self, Environment, JobHandle};
use thalweg_runtime::metrics::JobMetrics;
use thalweg_testkit::kafka::Broker;
use tokio::sync::Notify;

/// Nothing here takes that long: what does, hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A table over a topic, read by a job of `parallelism`.
pub struct Table {
    pub columns: Vec<Field>,
    pub metadata: Vec<(&'static str, Field)>,
    pub options: Vec<(String, String)>,
    pub format: &'static str,
    pub bad_data: BadData,
    pub parallelism: usize,
    pub settings: JobSettings,
}

impl Table {
    /// With one column `n BIGINT` of JSON, read from the oldest record on.
    pub fn new(bootstrap: &str, topic: &str) -> Self {
        let settings = JobSettings {
            flush_interval: Duration::from_millis(50).as_nanos() as i64,
            ..JobSettings::default()
        };
        let table = Self {
            columns: vec![Field::new("n", DataType::Int64, true)],
            metadata: Vec::new(),
            options: Vec::new(),
            format: "json",
            bad_data: BadData::Fail,
            parallelism: 2,
            settings,
        };
        table
            .option("bootstrap_servers", bootstrap)
            .option("topic", topic)
            .option("source.offset", "earliest")
    }

    pub fn of(broker: &Broker, topic: &str) -> Self {
        Self::new(&broker.bootstrap(), topic)
    }

    pub fn option(mut self, name: &str, value: &str) -> Self {
        self.options.push((name.to_string(), value.to_string()));
        self
    }

    pub fn column(mut self, name: &str, data_type: DataType) -> Self {
        self.columns = vec![Field::new(name, data_type, true)];
        self
    }

    pub fn format(mut self, format: &'static str) -> Self {
        self.format = format;
        self
    }

    pub fn metadata(mut self, key: &'static str, data_type: DataType) -> Self {
        self.metadata.push((key, Field::new(key, data_type, true)));
        self
    }

    pub fn bad_data(mut self, bad_data: BadData) -> Self {
        self.bad_data = bad_data;
        self
    }

    pub fn parallelism(mut self, parallelism: usize) -> Self {
        self.parallelism = parallelism;
        self
    }

    fn spec(&self) -> SourceSpec {
        let connectors = Connectors::standard();
        let declaration = connectors.connector("kafka").unwrap();
        let options =
            Options::resolve(&self.options.iter().cloned().collect(), declaration.options);
        let physical = Arc::new(Schema::new(self.columns.clone()));
        let metadata = self.metadata.iter().map(|(key, field)| MetadataColumn {
            key: key.to_string(),
            field: field.clone(),
        });
        let metadata: Vec<_> = metadata.collect();
        let fields: Vec<_> = self
            .columns
            .iter()
            .chain(metadata.iter().map(|m| &m.field))
            .cloned()
            .collect();
        let column = |(i, f): (usize, &Field)| Arc::new(Column::new(f.name(), i)) as ExprRef;
        SourceSpec {
            table: "t".to_string(),
            connector: "kafka".to_string(),
            format: Some(self.format.to_string()),
            bounded: options.text("source.bounded").is_some(),
            options,
            declared: physical.clone(),
            physical,
            metadata,
            columns: fields.iter().enumerate().map(column).collect(),
            schema: Arc::new(Schema::new(fields)),
            event_time: EventTimeSource::Connector,
            watermark: WatermarkSpec::DEFAULT,
            idle_timeout: None,
            max_event_time_ahead: None,
            bad_data: self.bad_data.clone(),
            updating: false,
            primary_key: Vec::new(),
        }
    }

    /// Starts a job that reads it. Must be called in a runtime.
    pub fn start(&self) -> Result<Job, RuntimeError> {
        let (spec, out) = (Arc::new(self.spec()), Collected::default());
        let graph = graph(&spec);
        let factory = Arc::new(Factory(Connectors::standard(), out.clone()));
        let settings = JobSettings {
            parallelism: Some(self.parallelism),
            ..self.settings.clone()
        };
        let environment = Environment::open(factory, None).unwrap();
        let handle = job::start(&graph, &settings, &environment)?;
        let schema = spec.schema.clone();
        Ok(Job {
            handle,
            out,
            schema,
        })
    }

    /// Reads it to its end.
    pub async fn read(self) -> Read {
        let mut job = self.option("source.bounded", "latest").start().unwrap();
        let result = timely(job.handle.wait()).await;
        result.unwrap();
        job.so_far()
    }

    /// The error with which reading it ends.
    pub async fn fails(self) -> RuntimeError {
        match self.option("source.bounded", "latest").start() {
            Err(error) => error,
            Ok(mut job) => timely(job.handle.wait()).await.unwrap_err(),
        }
    }
}

fn graph(spec: &Arc<SourceSpec>) -> Graph {
    let (mut graph, none) = (Graph::default(), Properties::default);
    let schema = spec.schema.clone();
    let from = graph.add(Op::Source(spec.clone()), vec![], schema.clone(), none());
    let sink = SinkSpec {
        table: "out".into(),
        connector: "collect".into(),
        format: None,
        options: Options::default(),
        schema: schema.clone(),
        updating: false,
        key: None,
    };
    let inputs = vec![Input::forward(from)];
    graph.add(Op::Sink(Arc::new(sink)), inputs, schema, none());
    graph
}

/// A running job.
pub struct Job {
    pub handle: JobHandle,
    out: Collected,
    schema: SchemaRef,
}

impl Job {
    pub fn metrics(&self) -> Arc<JobMetrics> {
        self.handle.metrics()
    }

    pub fn lost(&self) -> u64 {
        self.metrics().lost_records.load(Ordering::Relaxed)
    }

    /// What has been read by now.
    pub fn so_far(&self) -> Read {
        let batches = self.out.batches.lock().unwrap();
        Read(concat_batches(&self.schema, batches.iter()).unwrap())
    }

    /// Waits until so many rows have been read, and gives them.
    pub async fn rows(&self, n_rows: usize) -> Read {
        timely(async {
            loop {
                let arrived = self.out.arrived.notified();
                let read = self.so_far();
                if read.0.num_rows() >= n_rows {
                    return read;
                }
                arrived.await;
            }
        })
        .await
    }

    /// Drains it, and gives all that was read.
    pub async fn drain(mut self) -> Read {
        self.handle.drain();
        timely(self.handle.wait()).await.unwrap();
        self.so_far()
    }

    /// Waits for it to fail.
    pub async fn fails(mut self) -> RuntimeError {
        timely(self.handle.wait()).await.unwrap_err()
    }
}

/// Panics instead of hanging.
pub async fn timely<T>(future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(HANGS, future).await {
        Ok(value) => value,
        Err(_) => panic!("this hangs"),
    }
}

/// Rows that were read, in the order of reading.
#[derive(Debug)]
pub struct Read(pub RecordBatch);

impl Read {
    /// A column of whole numbers, in order.
    pub fn numbers(&self, column: &str) -> Vec<i64> {
        let column = cast(self.0.column_by_name(column).unwrap(), &DataType::Int64).unwrap();
        let mut values: Vec<_> = column
            .as_primitive::<Int64Type>()
            .iter()
            .flatten()
            .collect();
        values.sort_unstable();
        values
    }

    /// A column as text, in the order of reading; null is `∅`.
    pub fn texts(&self, column: &str) -> Vec<String> {
        let column = cast(self.0.column_by_name(column).unwrap(), &DataType::Utf8).unwrap();
        let texts = column.as_string::<i32>();
        let text = |t: Option<&str>| t.unwrap_or("∅").to_string();
        texts.iter().map(text).collect()
    }
}

#[derive(Clone, Default)]
struct Collected {
    batches: Arc<Mutex<Vec<RecordBatch>>>,
    arrived: Arc<Notify>,
}

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
        self.batches.lock().unwrap().push(rows.clone());
        self.arrived.notify_waiters();
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

struct Factory(Connectors, Collected);

impl ConnectorFactory for Factory {
    fn source(&self, spec: &Arc<SourceSpec>) -> Result<Box<dyn Source>, ConnectorError> {
        self.0.source(spec)
    }

    fn sink(&self, _: &Arc<SinkSpec>) -> Result<Box<dyn Sink>, ConnectorError> {
        Ok(Box::new(self.1.clone()))
    }
}
