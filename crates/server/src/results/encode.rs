//! Results as lines: JSON, Debezium JSON, CSV. The encoding itself is that of the connectors' formats.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use thalweg_connectors::format::{Encoder, encoder};
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::{ConnectorError, SinkInput};

use super::print::Typeset;

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Json,
    Debezium,
    Csv,
}

impl Shape {
    fn format(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Debezium => "debezium_json",
            Self::Csv => "csv",
        }
    }
}

/// Sets every row or change as a line.
pub struct Lines {
    encoder: Box<dyn Encoder>,
    begun: bool,
    label: Option<Label>,
}

/// Wraps lines of JSON in an object that names their sink.
struct Label {
    prefix: Vec<u8>,
    lines: Vec<u8>,
}

impl Lines {
    /// With a label, which only JSON can have, each line becomes `{"sink": label, "value": line}`.
    pub fn new(
        schema: &SchemaRef,
        shape: Shape,
        label: Option<&str>,
    ) -> Result<Self, ConnectorError> {
        let encoder = encoder(
            shape.format(),
            &Options::default(),
            schema,
            shape == Shape::Debezium,
        )?;
        let label = label.map(|label| Label {
            prefix: format!("{{\"sink\":{},\"value\":", serde_json::Value::from(label))
                .into_bytes(),
            lines: Vec::new(),
        });
        Ok(Self {
            encoder,
            begun: false,
            label,
        })
    }

    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        if std::mem::replace(&mut self.begun, true) {
            Ok(())
        } else {
            self.encoder.begin(out)
        }
    }
}

impl Label {
    fn wrap(&mut self, out: &mut Vec<u8>) {
        for line in self
            .lines
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
        {
            out.extend_from_slice(&self.prefix);
            out.extend_from_slice(line);
            out.extend_from_slice(b"}\n");
        }
        self.lines.clear();
    }
}

impl Typeset for Lines {
    fn write(&mut self, input: &SinkInput<'_>, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.begin(out)?;
        match &mut self.label {
            None => self.encoder.write(input, out),
            Some(label) => {
                self.encoder.write(input, &mut label.lines)?;
                label.wrap(out);
                Ok(())
            }
        }
    }

    fn end_epoch(&mut self, _epoch: u64, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.begin(out)?;
        self.encoder.finish(out)
    }
}

/// Every row as a JSON object.
pub fn json_texts(rows: &RecordBatch) -> Result<Vec<String>, ConnectorError> {
    let mut text = Vec::new();
    encoder("json", &Options::default(), &rows.schema(), false)?.rows(rows, &mut text)?;
    let text = String::from_utf8(text)
        .map_err(|e| ConnectorError::Encode(format!("JSON that is not UTF-8: {e}")))?;
    Ok(text.lines().map(str::to_owned).collect())
}
