//! Values as PostgreSQL writes them, in text and in binary.
//!
//! A column is looked at once per batch; a value is then a branch and an append.

mod binary;
mod columns;
mod numeric;
mod text;
pub mod times;

#[cfg(test)]
mod tests;

use arrow::array::RecordBatch;
use bytes::{BufMut, BytesMut};

use super::error::Failure;
use super::frontend::Formats;
use columns::Column;

/// The rows of a batch, ready to be written.
pub struct Rows<'a> {
    columns: Vec<(Column<'a>, bool)>,
    n_rows: usize,
}

impl<'a> Rows<'a> {
    /// Errors: a column whose type results do not have.
    pub fn new(batch: &'a RecordBatch, formats: &Formats) -> Result<Self, Failure> {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).enumerate();
        let columns = columns
            .map(|(i, (field, array))| Ok((Column::new(field, array)?, formats.is_binary(i))));
        Ok(Self {
            columns: columns.collect::<Result<_, Failure>>()?,
            n_rows: batch.num_rows(),
        })
    }

    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The body of a DataRow.
    pub fn data_row(&self, row: usize, out: &mut BytesMut) -> Result<(), Failure> {
        let n_columns = i16::try_from(self.columns.len());
        out.put_i16(n_columns.map_err(|_| Failure::new("54011", "too many columns"))?);
        for (column, is_binary) in &self.columns {
            if column.is_null(row) {
                out.put_i32(-1);
                continue;
            }
            measured(out, |out| {
                if *is_binary {
                    column.binary(row, out)
                } else {
                    column.text(row, out);
                    Ok(())
                }
            })?;
        }
        Ok(())
    }

    pub fn n_columns(&self) -> usize {
        self.columns.len()
    }

    pub fn is_null(&self, row: usize, column: usize) -> bool {
        self.columns[column].0.is_null(row)
    }

    /// A value that is not null as text.
    pub fn text(&self, row: usize, column: usize, out: &mut BytesMut) {
        self.columns[column].0.text(row, out);
    }
}

/// Writes a value after its length in bytes.
fn measured(
    out: &mut BytesMut,
    write: impl FnOnce(&mut BytesMut) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let start = out.len();
    out.put_i32(0);
    write(out)?;
    let length = i32::try_from(out.len() - start - 4);
    let length =
        length.map_err(|_| Failure::new("54000", "a value is longer than a row can be"))?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
