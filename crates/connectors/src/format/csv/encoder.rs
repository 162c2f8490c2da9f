//! Rows as CSV records, nulls told from empty texts by quotes.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use thalweg_runtime::connector::{ConnectorError, SinkInput};
use thalweg_runtime::pairing::PairedChanges;

use super::Dialect;
use super::split::needs_quotes;
use crate::format::cells::{CellValues, Cells, Spelling, Token, check_fields};
use crate::format::encode::{Encoder, Lines, Messages, Records, append_only};
use crate::format::json::write_value;

pub struct CsvEncoder {
    dialect: Dialect,
    schema: SchemaRef,
    scratch: Vec<u8>,
}

impl CsvEncoder {
    pub fn new(dialect: Dialect, schema: &SchemaRef) -> Result<Self, ConnectorError> {
        check_fields(schema.fields())?;
        Ok(Self {
            dialect,
            schema: schema.clone(),
            scratch: Vec::new(),
        })
    }

    fn value(&mut self, cells: &Cells, row: usize, out: &mut Vec<u8>) {
        if cells.is_null(row) {
            return out.extend_from_slice(&self.dialect.null);
        }
        match &cells.values {
            CellValues::Text(v) | CellValues::Json(v) => {
                write_text(&self.dialect, v.value(row).as_bytes(), out)
            }
            values => {
                self.scratch.clear();
                match values.token(row, &Spelling::TEXT) {
                    Token::Other => write_value(cells, row, &Spelling::TEXT, &mut self.scratch),
                    Token::Bare | Token::Text => {
                        values.write_scalar(row, &Spelling::TEXT, &mut self.scratch)
                    }
                }
                write_text(&self.dialect, &self.scratch, out);
            }
        }
    }
}

fn write_text(dialect: &Dialect, text: &[u8], out: &mut Vec<u8>) {
    if !needs_quotes(dialect, text) {
        return out.extend_from_slice(text);
    }
    out.push(dialect.quote);
    for byte in text {
        if *byte == dialect.quote {
            out.push(dialect.quote);
        }
        out.push(*byte);
    }
    out.push(dialect.quote);
}

impl Encoder for CsvEncoder {
    fn begin(&mut self, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        if self.dialect.has_header {
            for (i, field) in self.schema.fields().iter().enumerate() {
                if i > 0 {
                    out.push(self.dialect.delimiter);
                }
                write_text(&self.dialect, field.name().as_bytes(), out);
            }
            out.push(b'\n');
        }
        Ok(())
    }

    fn rows(&mut self, rows: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        self.records(rows, &mut Lines(out))
    }

    fn changes(&mut self, _: &PairedChanges, _: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Err(append_only("csv"))
    }

    fn messages(
        &mut self,
        input: &SinkInput<'_>,
        out: &mut Messages,
    ) -> Result<(), ConnectorError> {
        match input {
            SinkInput::Rows(rows) => self.records(rows, out),
            SinkInput::Changes(_) => Err(append_only("csv")),
        }
    }

    fn finish(&mut self, _out: &mut Vec<u8>) -> Result<(), ConnectorError> {
        Ok(())
    }
}

impl CsvEncoder {
    fn records(
        &mut self,
        rows: &RecordBatch,
        out: &mut impl Records,
    ) -> Result<(), ConnectorError> {
        let columns = rows.columns().iter().zip(self.schema.fields());
        let columns = columns
            .map(|(c, f)| Cells::new(c, f))
            .collect::<Result<Vec<_>, _>>()?;
        for row in 0..rows.num_rows() {
            let buffer = out.open();
            let start = buffer.len();
            for (i, cells) in columns.iter().enumerate() {
                if i > 0 {
                    buffer.push(self.dialect.delimiter);
                }
                self.value(cells, row, buffer);
            }
            self.keep_from_being_blank(start, buffer)?;
            out.end();
        }
        Ok(())
    }

    /// A record of one empty null would be a blank line, which readers skip.
    fn keep_from_being_blank(&self, start: usize, out: &[u8]) -> Result<(), ConnectorError> {
        if out.len() > start || self.schema.fields().is_empty() {
            return Ok(());
        }
        let message = "a record of one null cannot be written: it would be a blank line; set 'csv.null', for example to 'NULL'";
        Err(ConnectorError::Encode(message.to_string()))
    }
}
