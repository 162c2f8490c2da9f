//! What the tests of several connectors share.

use std::collections::BTreeMap;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use arrow::array::{Int64Array, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::{BadData, EventTimeSource, SinkSpec, SourceSpec, WatermarkSpec};

/// The result of a future that never waits, as those of files are.
pub fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}

pub fn schema(columns: &[(&str, DataType)]) -> SchemaRef {
    Arc::new(Schema::new(
        columns
            .iter()
            .map(|(n, t)| Field::new(*n, t.clone(), true))
            .collect::<Vec<_>>(),
    ))
}

pub fn options(given: &[(&str, &str)]) -> Options {
    let given: BTreeMap<_, _> = given
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    Options::resolve(&given, &[])
}

pub fn source_spec(
    connector: &str,
    format: Option<&str>,
    columns: &[(&str, DataType)],
    given: &[(&str, &str)],
) -> Arc<SourceSpec> {
    Arc::new(SourceSpec {
        table: "t".to_string(),
        connector: connector.to_string(),
        format: format.map(str::to_string),
        options: options(given),
        bounded: true,
        declared: schema(columns),
        physical: schema(columns),
        metadata: Vec::new(),
        columns: Vec::new(),
        schema: schema(columns),
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data: BadData::Fail,
        updating: false,
        primary_key: Vec::new(),
    })
}

pub fn sink_spec(
    connector: &str,
    format: Option<&str>,
    columns: &[(&str, DataType)],
    given: &[(&str, &str)],
) -> Arc<SinkSpec> {
    Arc::new(SinkSpec {
        table: "t".to_string(),
        connector: connector.to_string(),
        format: format.map(str::to_string),
        options: options(given),
        schema: schema(columns),
        updating: false,
        key: None,
    })
}

/// Rows of one column `n`.
pub fn numbers(values: Range<i64>) -> RecordBatch {
    let schema = schema(&[("n", DataType::Int64)]);
    RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from_iter_values(values))])
        .expect("one column")
}

/// Rows of one column `value`.
pub fn texts(values: &[&str]) -> RecordBatch {
    let schema = schema(&[("value", DataType::Utf8)]);
    RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(values.to_vec()))])
        .expect("one column")
}
