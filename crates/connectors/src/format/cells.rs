//! Columns to be written value by value: what every text format does when it writes.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array,
    Decimal256Array, Float32Array, Float64Array, Int64Array, IntervalMonthDayNanoArray,
    StringArray, UInt64Array, UnionArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute;
use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit, i256};
use thalweg_dataflow::table::is_json;
use thalweg_runtime::connector::ConnectorError;

use super::value::{binary, decimal_bytes, sql_type, write};

/// How values are spelled where a format leaves the choice.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    /// Timestamps as numbers of this unit since the epoch, not as ISO 8601 text.
    pub epoch: Option<TimeUnit>,
    /// Dates as days since the epoch and times as numbers of `epoch` since midnight. Needs `epoch`.
    pub numeric_days: bool,
    /// Where numbers and text are told apart.
    pub decimals: Decimals,
    /// JSON as text with JSON in it, not as JSON.
    pub json_as_text: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decimals {
    Number,
    Text,
    /// Base64 of the unscaled value, big-endian two's complement; a reader must know the scale.
    Base64,
}

impl Spelling {
    /// Whatever reads best.
    pub const TEXT: Self = Self {
        epoch: None,
        numeric_days: false,
        decimals: Decimals::Number,
        json_as_text: false,
    };
}

/// A column, taken apart so that a value is a match and an index away. Rare encodings of the same
/// values (dictionaries, views, narrow integers) are converted as whole columns first.
pub struct Cells {
    nulls: Option<NullBuffer>,
    pub values: CellValues,
}

pub enum CellValues {
    Null,
    Bool(BooleanArray),
    Int(Int64Array),
    UInt(UInt64Array),
    Float32(Float32Array),
    Float64(Float64Array),
    Decimal128(Decimal128Array),
    Decimal256(Decimal256Array),
    Text(StringArray),
    Json(StringArray),
    Binary(BinaryArray),
    Date(Date32Array),
    Time {
        values: Int64Array,
        unit: TimeUnit,
    },
    Timestamp {
        values: Int64Array,
        unit: TimeUnit,
        has_zone: bool,
    },
    Interval(IntervalMonthDayNanoArray),
    Duration {
        values: Int64Array,
        unit: TimeUnit,
    },
    List {
        offsets: OffsetBuffer<i32>,
        items: Box<Cells>,
    },
    Struct(Vec<(String, Cells)>),
    Map {
        offsets: OffsetBuffer<i32>,
        keys: StringArray,
        values: Box<Cells>,
    },
    Union {
        array: UnionArray,
        children: Vec<(i8, Cells)>,
    },
}

impl Cells {
    pub fn new(array: &ArrayRef, field: &Field) -> Result<Self, ConnectorError> {
        use DataType as T;
        let to = |data_type: &T| compute::cast(array, data_type);
        let again = |data_type: &T| {
            let plain: ArrayRef = to(data_type)?;
            Self::new(&plain, &field.clone().with_data_type(data_type.clone()))
        };
        let int = || -> Result<_, ConnectorError> { Ok(to(&T::Int64)?.as_primitive().clone()) };
        let values = match array.data_type() {
            T::Null => CellValues::Null,
            T::Boolean => CellValues::Bool(array.as_boolean().clone()),
            T::Int8 | T::Int16 | T::Int32 | T::Int64 => CellValues::Int(int()?),
            T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => {
                CellValues::UInt(to(&T::UInt64)?.as_primitive().clone())
            }
            T::Float16 | T::Float32 => CellValues::Float32(to(&T::Float32)?.as_primitive().clone()),
            T::Float64 => CellValues::Float64(array.as_primitive().clone()),
            T::Decimal128(..) => CellValues::Decimal128(array.as_primitive().clone()),
            T::Decimal256(..) => CellValues::Decimal256(array.as_primitive().clone()),
            T::Decimal32(p, s) | T::Decimal64(p, s) => return again(&T::Decimal128(*p, *s)),
            T::Utf8 if is_json(field) => CellValues::Json(array.as_string().clone()),
            T::Utf8 => CellValues::Text(array.as_string().clone()),
            T::LargeUtf8 | T::Utf8View => return again(&T::Utf8),
            T::Binary => CellValues::Binary(array.as_binary().clone()),
            T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => return again(&T::Binary),
            T::Date32 => CellValues::Date(array.as_primitive().clone()),
            T::Date64 => return again(&T::Date32),
            &T::Time32(unit) => {
                let seconds = compute::cast(&to(&T::Int32)?, &T::Int64)?;
                CellValues::Time {
                    values: seconds.as_primitive().clone(),
                    unit,
                }
            }
            &T::Time64(unit) => CellValues::Time {
                values: int()?,
                unit,
            },
            T::Timestamp(unit, zone) => CellValues::Timestamp {
                values: int()?,
                unit: *unit,
                has_zone: zone.is_some(),
            },
            T::Interval(IntervalUnit::MonthDayNano) => {
                CellValues::Interval(array.as_primitive().clone())
            }
            T::Interval(_) => return again(&T::Interval(IntervalUnit::MonthDayNano)),
            &T::Duration(unit) => CellValues::Duration {
                values: int()?,
                unit,
            },
            T::List(item) => {
                let list = array.as_list::<i32>();
                let items = Box::new(Self::new(list.values(), item)?);
                CellValues::List {
                    offsets: list.offsets().clone(),
                    items,
                }
            }
            T::LargeList(item)
            | T::FixedSizeList(item, _)
            | T::ListView(item)
            | T::LargeListView(item) => {
                return again(&T::List(item.clone()));
            }
            T::Struct(fields) => {
                CellValues::Struct(named_cells(array.as_struct().columns(), fields)?)
            }
            T::Map(entries, _) => {
                let map = array.as_map();
                let keys = compute::cast(map.keys(), &T::Utf8)?.as_string().clone();
                let T::Struct(fields) = entries.data_type() else {
                    unreachable!("a map's entries are a struct")
                };
                let values = Box::new(Self::new(map.values(), &fields[1])?);
                CellValues::Map {
                    offsets: map.offsets().clone(),
                    keys,
                    values,
                }
            }
            T::Dictionary(_, value) => return again(value),
            T::RunEndEncoded(_, value) => return again(value.data_type()),
            T::Union(fields, _) => {
                let array = array.as_union().clone();
                let children = fields
                    .iter()
                    .map(|(id, f)| Ok((id, Self::new(array.child(id), f)?)));
                let children = children.collect::<Result<_, ConnectorError>>()?;
                CellValues::Union { array, children }
            }
        };
        Ok(Self {
            nulls: array.logical_nulls(),
            values,
        })
    }

    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|n| n.is_null(row))
    }
}

/// Columns with their names.
pub fn named_cells<'a>(
    columns: &[ArrayRef],
    fields: impl IntoIterator<Item = &'a Arc<Field>>,
) -> Result<Vec<(String, Cells)>, ConnectorError> {
    let cells = columns
        .iter()
        .zip(fields)
        .map(|(c, f)| Ok((f.name().clone(), Cells::new(c, f)?)));
    cells.collect()
}

/// What kind of token a value becomes where numbers and text are told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A number, `true` or `false`.
    Bare,
    /// Text without anything that needs an escape.
    Text,
    /// Text, JSON or a nested value, which formats treat in their own ways.
    Other,
}

impl CellValues {
    /// What [`write_scalar`](Self::write_scalar) will write.
    #[inline]
    pub fn token(&self, row: usize, spelling: &Spelling) -> Token {
        let is_text = match self {
            Self::Null | Self::Bool(_) | Self::Int(_) | Self::UInt(_) => false,
            Self::Float32(v) => !v.value(row).is_finite(),
            Self::Float64(v) => !v.value(row).is_finite(),
            Self::Decimal128(_) | Self::Decimal256(_) => spelling.decimals != Decimals::Number,
            Self::Timestamp { .. } => spelling.epoch.is_none(),
            Self::Date(_) | Self::Time { .. } => !spelling.numeric_days,
            Self::Binary(_) | Self::Interval(_) | Self::Duration { .. } => true,
            Self::Text(_)
            | Self::Json(_)
            | Self::List { .. }
            | Self::Struct(_)
            | Self::Map { .. }
            | Self::Union { .. } => return Token::Other,
        };
        if is_text { Token::Text } else { Token::Bare }
    }

    /// Appends the value in a row, which is not null. Only for values whose token is not
    /// [`Token::Other`].
    #[inline]
    pub fn write_scalar(&self, row: usize, spelling: &Spelling, out: &mut Vec<u8>) {
        match (self, spelling.epoch) {
            (Self::Int(v), _) => write::int(v.value(row), out),
            (Self::UInt(v), _) => write::int(v.value(row), out),
            (Self::Float64(v), _) => write::float(v.value(row), out),
            (Self::Float32(v), _) => write::float(v.value(row), out),
            (Self::Bool(v), _) => {
                out.extend_from_slice(if v.value(row) { b"true" } else { b"false" })
            }
            (Self::Decimal128(v), _) if spelling.decimals == Decimals::Base64 => {
                decimal_bytes::base64_into(i256::from_i128(v.value(row)), out);
            }
            (Self::Decimal256(v), _) if spelling.decimals == Decimals::Base64 => {
                decimal_bytes::base64_into(v.value(row), out);
            }
            (Self::Decimal128(v), _) => write::decimal128(v.value(row), v.scale(), out),
            (Self::Decimal256(v), _) => write::decimal256(v.value(row), v.scale(), out),
            (Self::Binary(v), _) => binary::encode_into(v.value(row), out),
            (Self::Timestamp { values, unit, .. }, Some(epoch)) => {
                write::in_unit(values.value(row), *unit, epoch, out);
            }
            (
                Self::Timestamp {
                    values,
                    unit,
                    has_zone,
                },
                None,
            ) => {
                write::timestamp(values.value(row), *unit, *has_zone, out);
            }
            (Self::Date(v), Some(_)) if spelling.numeric_days => write::int(v.value(row), out),
            (Self::Date(v), _) => write::date(v.value(row), out),
            (Self::Time { values, unit }, Some(epoch)) if spelling.numeric_days => {
                write::in_unit(values.value(row), *unit, epoch, out);
            }
            (Self::Time { values, unit }, _) => write::time(values.value(row), *unit, out),
            (Self::Interval(v), _) => write::interval(v.value(row), out),
            (Self::Duration { values, unit }, _) => write::duration(values.value(row), *unit, out),
            (Self::Null, _) => {}
            (
                Self::Text(_)
                | Self::Json(_)
                | Self::List { .. }
                | Self::Struct(_)
                | Self::Map { .. }
                | Self::Union { .. },
                _,
            ) => unreachable!("no scalar of fixed spelling"),
        }
    }
}

/// Checks once, before anything is written, that every column can be.
pub fn check_fields<'a>(
    fields: impl IntoIterator<Item = &'a Arc<Field>>,
) -> Result<(), ConnectorError> {
    for field in fields {
        let empty = arrow::array::new_empty_array(field.data_type());
        Cells::new(&empty, field).map_err(|_| {
            let what = sql_type(field.data_type());
            let message = format!(
                "column \"{}\" has type {what}, which cannot be written",
                field.name()
            );
            ConnectorError::configuration(message, None)
        })?;
    }
    Ok(())
}
