//! Rows as lines of JSON objects.

use arrow::datatypes::{Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use thalweg_dataflow::options::Options;
use thalweg_runtime::connector::ConnectorError;
use thalweg_runtime::pairing::PairedChanges;

use super::super::cells::{Cells, Spelling, check_fields};
use super::super::encode::{Encoder, append_only};
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
    let with_prefix = |(i, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
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
}

impl JsonEncoder {
    pub fn new(schema: &SchemaRef, options: &Options) -> Result<Self, ConnectorError> {
        let spelling = Spelling {
            epoch: epoch_of(options),
            ..spelling(options)
        };
        Ok(Self {
            objects: ObjectWriter::new(schema, spelling)?,
        })
    }
}

impl Encoder for JsonEncoder {
    fn begin(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        let columns = self.objects.columns(rows)?;
        for row in 0..rows.num_rows() {
            self.objects.object(&columns, row, out);
            out.push(b'\n');
        }
        Ok(())
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("json"))
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

/// What options say of the spelling, but for times.
pub fn spelling(options: &Options) -> Spelling {
    let decimals_as_text = options.text("json.decimal_encoding") == Some("string");
    Spelling {
        decimals_as_text,
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
