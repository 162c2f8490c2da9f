//! Scripts for operator tests: rows and barriers in, text out.

use std::sync::Arc;

use arrow::array::{Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::functions_aggregate::{count::count_udaf, sum::sum_udaf};
use datafusion::logical_expr::AggregateUDF;
use datafusion::physical_expr::aggregate::AggregateExprBuilder;
use datafusion::physical_expr::expressions::Column;
use thalweg_dataflow::plan::{AggregateCall, AggregateState, ColumnAggregate, NodeId};
use thalweg_dataflow::{ChangeBatch, Watermark};

use super::OperatorContext;
use crate::metrics::JobMetrics;
use crate::operator::{Barrier, Operator};
use crate::state::StateStore;

/// Minutes in the nanoseconds of event time: scripts count in minutes.
pub const MINUTE: i64 = 60_000_000_000;

/// Input of all scripts: key, value.
pub fn input_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("k", DataType::Utf8, true),
        Field::new("v", DataType::Int64, true),
    ]))
}

/// `sum(v)` and `count(*)`-like `count(v)`.
pub fn sum_and_count() -> Vec<AggregateCall> {
    vec![
        call(sum_udaf(), ColumnAggregate::Sum),
        call(count_udaf(), ColumnAggregate::Count),
    ]
}

fn call(function: Arc<AggregateUDF>, state: ColumnAggregate) -> AggregateCall {
    let function = AggregateExprBuilder::new(function, vec![Arc::new(Column::new("v", 1))])
        .schema(input_schema())
        .alias("call")
        .build()
        .expect("a known aggregate");
    AggregateCall {
        function: Arc::new(function),
        args: vec![1],
        filter: None,
        state: AggregateState::Columns(state),
    }
}

/// `k, sum, count` behind window bounds where there are any.
pub fn output_schema(windowed: bool) -> SchemaRef {
    let instant = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let mut fields = Vec::new();
    if windowed {
        fields.push(Field::new("window_start", instant.clone(), false));
        fields.push(Field::new("window_end", instant, false));
    }
    fields.push(Field::new("k", DataType::Utf8, true));
    fields.push(Field::new("sum", DataType::Int64, true));
    fields.push(Field::new("count", DataType::Int64, false));
    Arc::new(Schema::new(fields))
}

/// What the plan says of the output of a partial aggregate by window.
pub fn partial_schema() -> SchemaRef {
    let fields = output_schema(true).fields()[..3].to_vec();
    let n_rows = Arc::new(Field::new("n_rows", DataType::Int64, false));
    Arc::new(Schema::new(
        fields.into_iter().chain([n_rows]).collect::<Vec<_>>(),
    ))
}

pub fn context(windowed: bool, updating_input: bool) -> OperatorContext {
    OperatorContext {
        node: NodeId(1),
        input_schema: Some(input_schema()),
        output_schema: output_schema(windowed),
        updating_input,
        net_input: updating_input,
        store: StateStore::open(&scratch()).expect("a fresh directory"),
        first_table: 1,
        metrics: Arc::new(JobMetrics::default()),
        memory_bytes: 1 << 20,
        vnodes: (0..=u8::MAX).collect(),
        rejected: Default::default(),
    }
}

/// A directory for one script; the system clears it away.
fn scratch() -> std::path::PathBuf {
    tempfile::tempdir().expect("a temporary directory").keep()
}

/// A row of a script: key, value, minute, diff.
pub type Row<'a> = (&'a str, i64, i64, i64);

/// A batch of rows; with multiplicities where one is not 1.
pub fn batch(rows: &[Row<'_>]) -> ChangeBatch {
    let k = StringArray::from_iter_values(rows.iter().map(|r| r.0));
    let v = Int64Array::from_iter_values(rows.iter().map(|r| r.1));
    let batch =
        RecordBatch::try_new(input_schema(), vec![Arc::new(k), Arc::new(v)]).expect("columns fit");
    let times = rows.iter().map(|r| r.2 * MINUTE).collect();
    let append = rows.iter().all(|r| r.3 == 1);
    let diffs = (!append).then(|| rows.iter().map(|r| r.3).collect());
    ChangeBatch::new(batch, times, diffs)
}

pub fn push(operator: &mut dyn Operator, rows: &[Row<'_>]) {
    operator.push(0, batch(rows)).expect("the rows are good");
    assert!(
        operator.pull().expect("nothing fails").is_none(),
        "aggregates emit at barriers only"
    );
}

/// Ends an epoch with a watermark at this minute; gives the output, one line a change: `-` and `+`, doubled where it
/// is an expiry, then the columns; window bounds in minutes.
pub fn barrier(operator: &mut dyn Operator, epoch: u64, minute: Option<i64>) -> Vec<String> {
    let watermark = minute.map_or(Watermark::NONE, |m| Watermark::at(m * MINUTE));
    end_epoch(operator, epoch, watermark)
}

pub fn end_epoch(operator: &mut dyn Operator, epoch: u64, watermark: Watermark) -> Vec<String> {
    let barrier = Barrier {
        epoch,
        watermark,
        idle: false,
        commit: false,
        last: watermark == Watermark::END,
    };
    operator.barrier(&barrier).expect("nothing fails");
    let mut lines = Vec::new();
    while let Some(batch) = operator.pull().expect("nothing fails") {
        for row in 0..batch.n_rows() {
            lines.push(line(&batch, row));
        }
    }
    lines
}

fn line(batch: &ChangeBatch, row: usize) -> String {
    let sign = if batch.diff(row) < 0 { "-" } else { "+" };
    let sign = if batch.is_expiry() {
        sign.repeat(2)
    } else {
        sign.to_string()
    };
    let options = FormatOptions::default().with_null("null");
    let cells: Vec<String> = batch
        .rows()
        .columns()
        .iter()
        .map(|column| match column.data_type() {
            DataType::Timestamp(_, _) => {
                let ns = arrow::compute::cast(column, &DataType::Int64)
                    .expect("a timestamp is a number");
                let ns = ns
                    .as_any()
                    .downcast_ref::<Int64Array>()
                    .expect("cast to it")
                    .value(row);
                (ns / MINUTE).to_string()
            }
            _ => ArrayFormatter::try_new(column, &options)
                .expect("printable")
                .value(row)
                .to_string(),
        })
        .collect();
    format!("{sign} {}", cells.join(" "))
}
