//! The columns of tables that declare none: from a schema file, a schema registry, the files themselves, or a sample of
//! records.
//!
//! Called by sessions before a script is planned. Here is I/O that the planner must not do.

use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema};
use thalweg_dataflow::options::{OptionFault, Options, Outline};
use thalweg_dataflow::table::{
    BadData, EventTimeSource, SourceSpec, WatermarkSpec, is_json, json_field,
};
use thalweg_runtime::connector::{ConnectorError, ConnectorFactory};

mod infer;
mod sample;

use infer::{Around, Objects};

use crate::format::{avro, csv, json, protobuf};
use crate::registry::Connectors;

/// How long a sample may take: a topic may be empty.
const PATIENCE: Duration = Duration::from_secs(10);

/// The columns of a table, or why they cannot be told. May block for seconds; inside a multi-threaded Tokio runtime
/// its other tasks go on.
pub fn columns(connectors: &Connectors, outline: &Outline) -> Result<Vec<Field>, OptionFault> {
    find(connectors, outline).map_err(|error| match error {
        ConnectorError::Configuration { message, hint } => OptionFault {
            option: None,
            message,
            hint,
        },
        other => OptionFault {
            option: None,
            message: format!("its columns cannot be found: {other}"),
            hint: Some("declare them".to_string()),
        },
    })
}

fn find(connectors: &Connectors, outline: &Outline) -> Result<Vec<Field>, ConnectorError> {
    let options = &outline.options;
    let format = outline.format.as_deref().unwrap_or_default();
    if let Some(found) = connectors.own_columns(outline)? {
        return Ok(found);
    }
    match format {
        "raw_string" => return Ok(vec![Field::new("value", DataType::Utf8, true)]),
        "raw_bytes" => return Ok(vec![Field::new("value", DataType::Binary, true)]),
        "json" if options.bool("json.unstructured") == Some(true) => {
            return Ok(vec![json_field("value", true)]);
        }
        "json" if outline.sample.is_none() && json::is_confluent(options) => {
            return json::discover(options);
        }
        "avro" => return avro::discover(options),
        "protobuf" => return protobuf::discover(options),
        _ => {}
    }
    let Some(n_records) = outline.sample else {
        return Err(undeclared());
    };
    match format {
        "json" | "debezium_json" => from_json(connectors, outline, n_records),
        "csv" => from_csv(connectors, outline, n_records),
        other => Err(ConnectorError::configuration(
            format!("columns of format '{other}' cannot be told from records"),
            Some("declare them".to_string()),
        )),
    }
}

fn undeclared() -> ConnectorError {
    let hint = "declare them, or add infer_schema = true";
    ConnectorError::configuration("it has no columns", Some(hint.to_string()))
}

fn from_json(
    connectors: &Connectors,
    outline: &Outline,
    n_records: usize,
) -> Result<Vec<Field>, ConnectorError> {
    let records = read(connectors, outline, "raw_bytes", byte_columns(), n_records)?;
    let mut shape = Objects::default();
    let around = match outline.format.as_deref() {
        Some("debezium_json") => Around::Envelope,
        _ if json::includes_schema(&outline.options) => Around::Payload,
        _ => Around::Nothing,
    };
    for record in &records {
        shape.add(json::body(record, &outline.options), around);
    }
    enough(shape.columns(), records.len())
}

fn from_csv(
    connectors: &Connectors,
    outline: &Outline,
    n_records: usize,
) -> Result<Vec<Field>, ConnectorError> {
    let first = read(connectors, outline, "raw_bytes", byte_columns(), 1)?;
    let head = first.first().map(Vec::as_slice).unwrap_or_default();
    let names = csv::header(&outline.options, head)?;
    let fields: Vec<_> = names
        .iter()
        .map(|name| Field::new(name, DataType::Utf8, true))
        .collect();
    let values = sample::texts(
        &source(connectors, outline, "csv", fields)?,
        n_records,
        PATIENCE,
    )?;
    let columns = names.iter().zip(&values).map(|(name, values)| {
        let data_type = infer::of_texts(values.iter().flatten().map(String::as_str));
        Field::new(name, data_type, true)
    });
    enough(columns.collect(), values.first().map_or(0, Vec::len))
}

fn enough(columns: Vec<Field>, n_records: usize) -> Result<Vec<Field>, ConnectorError> {
    if !columns.is_empty() {
        return Ok(columns);
    }
    let message = match n_records {
        0 => "its columns cannot be told: there is no record yet".to_string(),
        n => format!("its columns cannot be told from {n} records: none is an object with fields"),
    };
    Err(ConnectorError::configuration(
        message,
        Some("declare them".to_string()),
    ))
}

fn byte_columns() -> Vec<Field> {
    vec![Field::new("value", DataType::Binary, true)]
}

fn read(
    connectors: &Connectors,
    outline: &Outline,
    format: &str,
    columns: Vec<Field>,
    n_records: usize,
) -> Result<Vec<Vec<u8>>, ConnectorError> {
    let source = source(connectors, outline, format, columns)?;
    sample::bytes(&source, n_records, PATIENCE)
}

/// A source of the table's records in another format.
fn source(
    connectors: &Connectors,
    outline: &Outline,
    format: &str,
    columns: Vec<Field>,
) -> Result<Arc<dyn thalweg_runtime::connector::Source>, ConnectorError> {
    let schema = Arc::new(Schema::new(columns));
    let options: Options = connectors.sampling(outline);
    let spec = SourceSpec {
        table: outline.table.clone(),
        connector: outline.connector.clone(),
        format: Some(format.to_string()),
        options,
        bounded: true,
        declared: schema.clone(),
        physical: schema.clone(),
        metadata: Vec::new(),
        columns: Vec::new(),
        schema,
        event_time: EventTimeSource::Connector,
        watermark: WatermarkSpec::DEFAULT,
        idle_timeout: None,
        max_event_time_ahead: None,
        bad_data: BadData::Drop,
        updating: false,
        primary_key: Vec::new(),
    };
    connectors.source(&Arc::new(spec)).map(Arc::from)
}

/// A column as CREATE TABLE would declare it: `id BIGINT NOT NULL`.
pub fn describe(field: &Field) -> String {
    let data_type = if is_json(field) {
        "JSON".to_string()
    } else {
        crate::format::sql_type(field.data_type())
    };
    let null = if field.is_nullable() { "" } else { " NOT NULL" };
    format!("{} {data_type}{null}", field.name())
}
