//! Values as text, for tables and test suites.

use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use arrow::util::display::{ArrayFormatter, DurationFormat, FormatOptions};

/// How a value looks to a person: nulls as `NULL`, instants in ISO 8601.
pub const CELL_OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_null("NULL")
    .with_duration_format(DurationFormat::Pretty);

/// The values of a batch as text.
pub struct Cells<'a> {
    columns: Vec<ArrayFormatter<'a>>,
}

impl<'a> Cells<'a> {
    pub fn new(batch: &'a RecordBatch) -> Result<Self, ArrowError> {
        let columns = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c, &CELL_OPTIONS));
        Ok(Self {
            columns: columns.collect::<Result<_, _>>()?,
        })
    }

    pub fn text(&self, column: usize, row: usize) -> Result<String, ArrowError> {
        self.columns[column].value(row).try_to_string()
    }
}

/// Whether values of the type are whole numbers, other numbers, or neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Whole,
    Real,
    Other,
}

pub fn kind(data_type: &DataType) -> Kind {
    match data_type {
        t if t.is_integer() => Kind::Whole,
        t if t.is_floating() || t.is_decimal() => Kind::Real,
        _ => Kind::Other,
    }
}
