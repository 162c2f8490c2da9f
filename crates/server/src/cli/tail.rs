//! `thalweg tail`: records of a table, straight from its connector.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::Schema;
use arrow::record_batch::RecordBatch;
use base64::Engine;
use futures::future::select_all;
use serde_json::{Value, json};
use thalweg_connectors::format::{self, Messages};
use thalweg_dataflow::change::record_batch;
use thalweg_dataflow::marks::ChangeOp;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::SourceSpec;
use thalweg_planner::ScriptOptions;
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::{
    BadReason, BadRecord, ConnectorError, Read, Records, SinkInput, Source, SplitReader,
};

use super::args::TailArgs;
use super::exit::Exit;
use super::input::SqlText;
use super::report;
use super::signals::Interrupts;
use crate::engine::EngineOptions;
use crate::error::{Error, Result};
use crate::results::Output;
use crate::session::Session;

pub fn tail(args: TailArgs) -> Result<Exit> {
    let script = SqlText::read(&args.script)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|e| Error::io("worker threads", e))?;
    let outcome = runtime.block_on(tail_table(args, &script));
    // A reader may wait for a broker; it must not keep the process.
    runtime.shutdown_background();
    outcome
}

async fn tail_table(args: TailArgs, script: &SqlText) -> Result<Exit> {
    let mut session = Session::new(EngineOptions::default());
    match session.plan(&script.text, &ScriptOptions::default()) {
        Ok(_) => {}
        Err(Error::Faults(faults)) => return Ok(report::faults(script, &faults)),
        Err(other) => return Err(other),
    }
    let (spec, source) = session.source(&args.table)?;
    let mut interrupts = Interrupts::listen().map_err(|e| Error::io("signals", e))?;
    let output = Output::stdout();
    let printer = Printer::new(&spec, args.json);
    let limit = match args.records {
        0 => usize::MAX,
        n => n,
    };
    tokio::select! {
        ended = print_all(source.as_ref(), &printer, &output, limit) => ended?,
        () = interrupts.next() => {}
        () = output.closed() => {}
    }
    Ok(Exit::Ok)
}

/// Reads all splits side by side, so that an empty one holds up no other, until `left` records are printed or all end.
async fn print_all(
    source: &dyn Source,
    printer: &Printer,
    output: &Output,
    mut left: usize,
) -> Result<()> {
    let splits = source.splits(1)?;
    let opened = splits.iter().map(|split| source.open(split, None, 0));
    let mut readers = opened.collect::<Result<Vec<_>, _>>()?;
    while left > 0 && !readers.is_empty() {
        let (read, index) = next(&mut readers, left.min(MAX_RECORDS)).await;
        match read? {
            Read::End => drop(readers.remove(index)),
            Read::Lost(lost) => tracing::warn!("records were lost: {}", lost.message),
            Read::Records(records) => {
                let n_records = records.rows.num_rows() + records.bad.len();
                left = left.saturating_sub(n_records);
                output.write(printer.print(records)?).await?;
            }
        }
    }
    Ok(())
}

/// A read asks for this many at most.
const MAX_RECORDS: usize = 1000;

/// The first read that is ready, and whose. The others have consumed nothing (they are cancel-safe).
async fn next(
    readers: &mut [Box<dyn SplitReader>],
    max_records: usize,
) -> (Result<Read, ConnectorError>, usize) {
    let reads = readers.iter_mut().map(|reader| reader.read(max_records));
    let (read, index, _) = select_all(reads).await;
    (read, index)
}

struct Printer {
    spec: Arc<SourceSpec>,
    as_json: bool,
}

/// A record as text, with its position in its split.
type Line = (i64, Vec<u8>);

impl Printer {
    fn new(spec: &Arc<SourceSpec>, as_json: bool) -> Self {
        let spec = spec.clone();
        Self { spec, as_json }
    }

    /// The records in the order in which they stand in their split.
    fn print(&self, records: Records) -> Result<Vec<u8>> {
        let mut bad = records.bad.clone();
        let rows = self.rows(&records, &mut bad)?;
        let mut lines = Vec::new();
        for (batch, first) in &rows {
            self.lines(batch, *first, &records, &bad, &mut lines)?;
        }
        lines.extend(bad.iter().map(|record| (record.offset, self.bad(record))));
        // Positions of rows are known only where there is something to put between them.
        if !bad.is_empty() {
            lines.sort_by_key(|(offset, _)| *offset);
        }
        Ok(lines.into_iter().flat_map(|(_, line)| line).collect())
    }

    /// The table's columns, with the position of each batch's first row; rows in which one cannot be computed become
    /// bad records.
    fn rows(
        &self,
        records: &Records,
        bad: &mut Vec<BadRecord>,
    ) -> Result<Vec<(RecordBatch, usize)>> {
        if let Ok(all) = self.columns(&records.rows) {
            return Ok(vec![(all, 0)]);
        }
        let mut rows = Vec::new();
        for row in 0..records.rows.num_rows() {
            match self.columns(&records.rows.slice(row, 1)) {
                Ok(batch) => rows.push((batch, row)),
                Err(message) => {
                    bad.push(records.origins.bad_record(row, BadReason::Type, message));
                }
            }
        }
        Ok(rows)
    }

    fn columns(&self, rows: &RecordBatch) -> Result<RecordBatch, String> {
        let expressions = self.spec.columns.iter().zip(self.spec.schema.fields());
        let evaluated = expressions.map(|(expr, field)| {
            let value = expr.evaluate(rows);
            let array = value.and_then(|value| value.into_array(rows.num_rows()));
            array.map_err(|source| {
                let context = format!("column \"{}\"", field.name());
                RuntimeError::Expression { context, source }.to_string()
            })
        });
        let columns: Vec<ArrayRef> = evaluated.collect::<Result<_, String>>()?;
        let fields = self.spec.schema.fields().iter().zip(&columns);
        // Whether a column may be null is for queries to know; here whatever was read is shown.
        let fields = fields.map(|(field, column)| {
            let field = field.as_ref().clone().with_nullable(true);
            field.with_data_type(column.data_type().clone())
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        record_batch(schema, columns, rows.num_rows()).map_err(|e| e.to_string())
    }

    fn lines(
        &self,
        batch: &RecordBatch,
        first: usize,
        records: &Records,
        bad: &[BadRecord],
        lines: &mut Vec<Line>,
    ) -> Result<()> {
        let mut encoder = format::encoder("json", &Options::default(), &batch.schema(), false)?;
        let mut messages = Messages::default();
        encoder.messages(&SinkInput::Rows(batch), &mut messages)?;
        for (i, row) in messages.iter().enumerate() {
            let offset = if bad.is_empty() {
                0
            } else {
                let origins = &records.origins;
                origins
                    .bad_record(first + i, BadReason::Type, String::new())
                    .offset
            };
            lines.push((offset, self.row(row, records, first + i)));
        }
        Ok(())
    }

    fn row(&self, row: &[u8], records: &Records, index: usize) -> Vec<u8> {
        let op = records
            .marks
            .as_ref()
            .map(|marks| word(marks.ops.value(index)));
        let mut line = match (self.as_json, op) {
            (true, Some(op)) => format!("{{\"op\":\"{op}\",\"row\":").into_bytes(),
            (true, None) => b"{\"row\":".to_vec(),
            (false, Some(op)) => format!("{op} ").into_bytes(),
            (false, None) => Vec::new(),
        };
        line.extend_from_slice(row);
        if self.as_json {
            line.push(b'}');
        }
        line.push(b'\n');
        line
    }

    fn bad(&self, record: &BadRecord) -> Vec<u8> {
        if !self.as_json {
            let mut line = format!("! {}: {}\n", record.place, record.message).into_bytes();
            if let Some(raw) = &record.raw {
                line.extend_from_slice(&readable(raw));
                line.push(b'\n');
            }
            return line;
        }
        let mut bad = json!({
            "reason": record.reason.as_str(),
            "message": record.message,
            "place": record.place,
            "topic": &*record.topic,
            "partition": record.partition,
            "offset": record.offset,
        });
        match record.raw.as_deref().map(std::str::from_utf8) {
            None => bad["raw"] = Value::Null,
            Some(Ok(text)) => bad["raw"] = text.into(),
            Some(Err(_)) => {
                let raw = record.raw.as_deref().unwrap_or_default();
                let base64 = base64::engine::general_purpose::STANDARD.encode(raw);
                bad["raw_base64"] = base64.into();
            }
        }
        format!("{}\n", json!({"bad": bad})).into_bytes()
    }
}

/// What a record of a changelog does.
fn word(op: i8) -> &'static str {
    match ChangeOp::of(op) {
        Some(ChangeOp::Write) => "write",
        Some(ChangeOp::Read) => "read",
        Some(ChangeOp::Delete) => "delete",
        Some(ChangeOp::Truncate) => "truncate",
        None => "unknown",
    }
}

/// Bytes as they are where they are text without control characters, if not with escapes.
fn readable(raw: &[u8]) -> Vec<u8> {
    match std::str::from_utf8(raw) {
        Ok(text) if !text.chars().any(|c| c.is_control() && c != '\t') => raw.to_vec(),
        _ => raw.escape_ascii().collect(),
    }
}
