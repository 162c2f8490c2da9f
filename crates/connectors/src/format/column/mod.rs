//! Typed columns that grow value by value and can be rolled back: where decoders put what they read.
//!
//! A record that turns out bad halfway is taken back with [`Column::truncate`], so that no other row
//! is touched by it.

use std::sync::Arc;

use arrow::array::{ArrayRef, BooleanArray, BooleanBufferBuilder};
use arrow::buffer::NullBuffer;
use arrow::compute;
use arrow::datatypes::{DataType, FieldRef, IntervalMonthDayNano, IntervalUnit, TimeUnit, i256};
use thalweg_dataflow::table::is_json;
use thalweg_runtime::connector::ConnectorError;

mod nested;
mod numbers;
pub mod text;

pub use nested::{Lists, Structs};
pub use numbers::Numbers;
pub use text::Text;

use crate::format::value::sql_type;

/// One column of a batch in the making.
#[derive(Debug)]
pub struct Column {
    pub field: FieldRef,
    pub values: Values,
}

/// The values of a column, by what they mean rather than by how they are stored.
#[derive(Debug)]
pub enum Values {
    Bool(Bools),
    Int8(Numbers<i8>),
    Int16(Numbers<i16>),
    Int32(Numbers<i32>),
    Int64(Numbers<i64>),
    UInt8(Numbers<u8>),
    UInt16(Numbers<u16>),
    UInt32(Numbers<u32>),
    UInt64(Numbers<u64>),
    Float32(Numbers<f32>),
    Float64(Numbers<f64>),
    Decimal128 {
        values: Numbers<i128>,
        precision: u8,
        scale: i8,
    },
    Decimal256 {
        values: Numbers<i256>,
        precision: u8,
        scale: i8,
    },
    /// Days since 1970-01-01.
    Date(Numbers<i32>),
    Time32 {
        values: Numbers<i32>,
        unit: TimeUnit,
    },
    Time64 {
        values: Numbers<i64>,
        unit: TimeUnit,
    },
    Timestamp {
        values: Numbers<i64>,
        unit: TimeUnit,
    },
    Interval(Numbers<IntervalMonthDayNano>),
    Text(Text),
    /// Text that is valid JSON.
    Json(Text),
    Binary(Text),
    Struct(Structs),
    List(Lists),
}

/// The same expression for whichever storage a column has.
macro_rules! each {
    ($values:expr, $v:ident => $body:expr) => {
        match $values {
            Values::Bool($v) => $body,
            Values::Int8($v) => $body,
            Values::Int16($v) => $body,
            Values::Int32($v) => $body,
            Values::Int64($v) => $body,
            Values::UInt8($v) => $body,
            Values::UInt16($v) => $body,
            Values::UInt32($v) => $body,
            Values::UInt64($v) => $body,
            Values::Float32($v) => $body,
            Values::Float64($v) => $body,
            Values::Decimal128 { values: $v, .. } => $body,
            Values::Decimal256 { values: $v, .. } => $body,
            Values::Date($v) => $body,
            Values::Time32 { values: $v, .. } => $body,
            Values::Time64 { values: $v, .. } => $body,
            Values::Timestamp { values: $v, .. } => $body,
            Values::Interval($v) => $body,
            Values::Text($v) | Values::Json($v) | Values::Binary($v) => $body,
            Values::Struct($v) => $body,
            Values::List($v) => $body,
        }
    };
}

impl Column {
    /// An empty column. Errors: a type that no text format can be read into.
    pub fn new(field: &FieldRef) -> Result<Self, ConnectorError> {
        Ok(Self {
            field: Arc::clone(field),
            values: Values::new(field)?,
        })
    }

    pub fn name(&self) -> &str {
        self.field.name()
    }

    #[inline]
    pub fn len(&self) -> usize {
        each!(&self.values, v => v.len())
    }

    /// Appends a null, whether the field allows one or not: under a null struct it must be possible.
    #[inline]
    pub fn push_null(&mut self) {
        each!(&mut self.values, v => v.push_null());
    }

    /// Drops all values from `len` on.
    pub fn truncate(&mut self, len: usize) {
        each!(&mut self.values, v => v.truncate(len));
    }

    /// Takes the values as an array of the field's type, leaving an empty column with as much room.
    pub fn take(&mut self) -> Result<ArrayRef, ConnectorError> {
        let data_type = self.field.data_type();
        let array: ArrayRef = match &mut self.values {
            Values::Bool(v) => v.take(),
            Values::Text(v) | Values::Json(v) => v.take_text()?,
            Values::Binary(v) => v.take_binary()?,
            Values::Struct(v) => v.take(data_type)?,
            Values::List(v) => v.take(data_type)?,
            numbers => take_numbers(numbers, data_type)?,
        };
        if array.data_type() == data_type {
            Ok(array)
        } else {
            Ok(compute::cast(&array, data_type)?)
        }
    }
}

fn take_numbers(values: &mut Values, data_type: &DataType) -> Result<ArrayRef, ConnectorError> {
    match values {
        Values::Int8(v) => v.take(data_type),
        Values::Int16(v) => v.take(data_type),
        Values::Int32(v) | Values::Date(v) | Values::Time32 { values: v, .. } => v.take(data_type),
        Values::Int64(v)
        | Values::Time64 { values: v, .. }
        | Values::Timestamp { values: v, .. } => v.take(data_type),
        Values::UInt8(v) => v.take(data_type),
        Values::UInt16(v) => v.take(data_type),
        Values::UInt32(v) => v.take(data_type),
        Values::UInt64(v) => v.take(data_type),
        Values::Float32(v) => v.take(data_type),
        Values::Float64(v) => v.take(data_type),
        Values::Decimal128 { values: v, .. } => v.take(data_type),
        Values::Decimal256 { values: v, .. } => v.take(data_type),
        Values::Interval(v) => v.take(data_type),
        Values::Bool(_)
        | Values::Text(_)
        | Values::Json(_)
        | Values::Binary(_)
        | Values::Struct(_)
        | Values::List(_) => unreachable!("only columns of numbers come here"),
    }
}

impl Values {
    fn new(field: &FieldRef) -> Result<Self, ConnectorError> {
        use DataType as T;
        Ok(match field.data_type() {
            T::Boolean => Self::Bool(Bools::default()),
            T::Int8 => Self::Int8(Numbers::default()),
            T::Int16 => Self::Int16(Numbers::default()),
            T::Int32 => Self::Int32(Numbers::default()),
            T::Int64 => Self::Int64(Numbers::default()),
            T::UInt8 => Self::UInt8(Numbers::default()),
            T::UInt16 => Self::UInt16(Numbers::default()),
            T::UInt32 => Self::UInt32(Numbers::default()),
            T::UInt64 => Self::UInt64(Numbers::default()),
            T::Float32 => Self::Float32(Numbers::default()),
            T::Float64 => Self::Float64(Numbers::default()),
            &T::Decimal128(precision, scale) => Self::Decimal128 {
                values: Numbers::default(),
                precision,
                scale,
            },
            &T::Decimal256(precision, scale) => Self::Decimal256 {
                values: Numbers::default(),
                precision,
                scale,
            },
            T::Date32 => Self::Date(Numbers::default()),
            &T::Time32(unit) => Self::Time32 {
                values: Numbers::default(),
                unit,
            },
            &T::Time64(unit) => Self::Time64 {
                values: Numbers::default(),
                unit,
            },
            &T::Timestamp(unit, _) => Self::Timestamp {
                values: Numbers::default(),
                unit,
            },
            T::Interval(IntervalUnit::MonthDayNano) => Self::Interval(Numbers::default()),
            T::Utf8 | T::LargeUtf8 | T::Utf8View if is_json(field) => Self::Json(Text::default()),
            T::Utf8 | T::LargeUtf8 | T::Utf8View => Self::Text(Text::default()),
            T::Binary | T::LargeBinary | T::BinaryView => Self::Binary(Text::default()),
            T::Struct(fields) => Self::Struct(Structs::new(fields)?),
            T::List(item) => Self::List(Lists::new(item, None)?),
            T::FixedSizeList(item, n) => Self::List(Lists::new(item, usize::try_from(*n).ok())?),
            other => {
                return Err(ConnectorError::configuration(
                    format!(
                        "column \"{}\" has type {}, which cannot be read",
                        field.name(),
                        sql_type(other)
                    ),
                    None,
                ));
            }
        })
    }
}

/// Which values are null, by their positions. Costs nothing until the first one.
#[derive(Debug, Default)]
pub struct Nulls {
    /// Validity of the values up to the last null; those after it are all valid.
    valid: Option<BooleanBufferBuilder>,
}

impl Nulls {
    /// Notes that the value at `at`, behind all others, is null.
    pub fn push_null(&mut self, at: usize) {
        let valid = self
            .valid
            .get_or_insert_with(|| BooleanBufferBuilder::new(at + 1));
        valid.append_n(at - valid.len(), true);
        valid.append(false);
    }

    pub fn truncate(&mut self, len: usize) {
        if let Some(valid) = self.valid.as_mut().filter(|v| v.len() > len) {
            valid.truncate(len);
        }
    }

    /// The validity of `len` values; `None` where all are valid.
    pub fn take(&mut self, len: usize) -> Option<NullBuffer> {
        let mut valid = self.valid.take()?;
        valid.append_n(len - valid.len(), true);
        Some(NullBuffer::new(valid.finish())).filter(|n| n.null_count() > 0)
    }
}

/// Booleans, a bit each.
#[derive(Debug)]
pub struct Bools {
    values: BooleanBufferBuilder,
    nulls: Nulls,
}

impl Default for Bools {
    fn default() -> Self {
        Self {
            values: BooleanBufferBuilder::new(0),
            nulls: Nulls::default(),
        }
    }
}

impl Bools {
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn push(&mut self, value: bool) {
        self.values.append(value);
    }

    pub fn push_null(&mut self) {
        self.nulls.push_null(self.values.len());
        self.values.append(false);
    }

    fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
        self.nulls.truncate(len);
    }

    fn take(&mut self) -> ArrayRef {
        let values = self.values.finish();
        let nulls = self.nulls.take(values.len());
        Arc::new(BooleanArray::new(values, nulls))
    }
}

#[cfg(test)]
mod tests;
