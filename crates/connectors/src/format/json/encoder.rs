//! Rows as JSON objects.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::options::Options;
use thalweg_dataflow::table::json_field;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::super::cells::{Cells, Decimals, Spelling, check_fields};
use super::super::confluent;
use super::super::encode::{Encoder, Lines, Messages, Records, append_only};
use super::super::registry::{self, Subject};
use super::connect::{self, Wrapping};
use super::json_schema;
use super::write::{write_string, write_value};

/// Writes the columns of a schema as the fields of objects.
pub struct ObjectWriter {
    schema: SchemaRef,
    /// Per column, what comes before its value: `{"id":`, then `,"name":`.
    prefixes: Vec<Vec<u8>>,
    spelling: Spelling,
}

impl ObjectWriter {
    pub fn new(schema: &SchemaRef, spelling: Spelling) -> Result<Self, ConnectorError> {
        check_fields(schema.fields())?;
        Ok(Self {
            schema: schema.clone(),
            prefixes: prefixes(schema),
            spelling,
        })
    }

    /// The columns of `rows`, ready for [`object`](Self::object).
    pub fn columns(&self, rows: &RecordBatch) -> Result<Vec<Cells>, ConnectorError> {
        let columns = rows.columns().iter().zip(self.schema.fields());
        columns
            .map(|(column, field)| Cells::new(column, field))
            .collect()
    }

    /// Appends one row as an object, without a line end.
    #[inline]
    pub fn object(&self, columns: &[Cells], row: usize, out: &mut Vec<u8>) {
        if columns.is_empty() {
            out.push(b'{');
        }
        for (column, prefix) in columns.iter().zip(&self.prefixes) {
            out.extend_from_slice(prefix);
            write_value(column, row, &self.spelling, out);
        }
        out.push(b'}');
    }
}

fn prefixes(schema: &Schema) -> Vec<Vec<u8>> {
    let with_prefix = |(i, field): (usize, &Arc<arrow::datatypes::Field>)| {
        let mut prefix = vec![if i == 0 { b'{' } else { b',' }];
        write_string(field.name().as_bytes(), &mut prefix);
        prefix.push(b':');
        prefix
    };
    schema
        .fields()
        .iter()
        .enumerate()
        .map(with_prefix)
        .collect()
}

/// The encoder of `format = 'json'`.
pub struct JsonEncoder {
    objects: ObjectWriter,
    wrapping: Wrapping,
    /// The only column is the record.
    is_document: bool,
}

impl JsonEncoder {
    /// Registers the records' schema where options name a registry. Errors: that fails; a type that cannot be
    /// written.
    pub fn new(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        let spelling = row_spelling(options);
        let mut encoder = Self::plain(schema, options, spelling, "Value")?;
        if is_confluent(options) {
            let text = json_schema::of_rows(schema, &spelling).to_string();
            let id = registry::register(options, registry::Kind::Json, &text, Subject::Value)?;
            encoder.wrapping.before = confluent::header(id).to_vec();
        }
        Ok(encoder)
    }

    /// Of the keys of messages: as [`new`](Self::new), but without a registry.
    pub fn of_keys(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        Self::plain(schema, options, row_spelling(options), "Key")
    }

    fn plain(
        schema: &SchemaRef,
        options: &Options,
        spelling: Spelling,
        name: &str,
    ) -> Result<Self, ConnectorError> {
        let wrapping = if includes_schema(options) {
            let name = format!("{}.{name}", stem(options));
            Wrapping::new(&connect::row_schema(schema, &spelling, &name))
        } else {
            Wrapping::default()
        };
        let is_document = options.bool("json.unstructured") == Some(true);
        let objects = match schema.fields().first().filter(|_| is_document) {
            // Text is JSON here, whatever the column says.
            Some(only) => {
                let only = json_field(only.name(), only.is_nullable());
                ObjectWriter::new(&Arc::new(Schema::new(vec![only])), spelling)?
            }
            None => ObjectWriter::new(schema, spelling)?,
        };
        Ok(Self {
            objects,
            wrapping,
            is_document,
        })
    }

    fn records(&self, rows: &RecordBatch, out: &mut impl Records) -> Result<(), ConnectorError> {
        let columns = self.objects.columns(rows)?;
        for row in 0..rows.num_rows() {
            let buffer = out.open();
            buffer.extend_from_slice(&self.wrapping.before);
            match columns.first().filter(|_| self.is_document) {
                Some(only) => write_value(only, row, &self.objects.spelling, buffer),
                None => self.objects.object(&columns, row, buffer),
            }
            buffer.extend_from_slice(self.wrapping.after);
            out.end();
        }
        Ok(())
    }
}

impl Encoder for JsonEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.records(rows, &mut Lines(out))
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("json"))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        match input {
            SinkInput::Rows(rows) => self.records(rows, out),
            SinkInput::Changes(_) => Err(append_only("json")),
        }
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

pub fn includes_schema(options: &Options) -> bool {
    options.bool("json.include_schema") == Some(true)
}

pub fn is_confluent(options: &Options) -> bool {
    options.bool("json.confluent_schema_registry") == Some(true)
}

/// What names of schemas begin with: the topic, where there is one.
pub fn stem(options: &Options) -> &str {
    options.text("topic").unwrap_or("thalweg")
}

fn row_spelling(options: &Options) -> Spelling {
    Spelling {
        epoch: epoch_of(options),
        ..spelling(options)
    }
}

/// What options say of the spelling, but for times.
pub fn spelling(options: &Options) -> Spelling {
    let with_schema = includes_schema(options);
    let decimals = match options.text("json.decimal_encoding") {
        Some("string") => Decimals::Text,
        Some("bytes") => Decimals::Base64,
        // What Connect's Decimal is; a number might come out as a float.
        None if with_schema => Decimals::Base64,
        _ => Decimals::Number,
    };
    Spelling {
        decimals,
        json_as_text: with_schema,
        ..Spelling::TEXT
    }
}

/// The unit that `json.timestamp_format` asks for; `None`: text, or unset.
pub fn epoch_of(options: &Options) -> Option<TimeUnit> {
    match super::epoch_unit(options) {
        super::EpochUnit::Fixed(unit) => Some(unit),
        super::EpochUnit::Refused | super::EpochUnit::ByMagnitude => None,
    }
}
