//! Columns to key bytes: first how long each row gets, then a column at a time into place.

use arrow::array::*;
use arrow::buffer::NullBuffer;
use arrow::compute::cast;
use arrow::datatypes::DataType;

use super::*;
use crate::state::fixed::{FixedType, with_fixed_type};

pub(super) fn encode(
    columns: &[ArrayRef],
    n_rows: usize,
    floats: Floats,
) -> Result<KeyRows, KeyError> {
    let columns: Vec<Column> = columns
        .iter()
        .map(|c| Column::new(c, floats))
        .collect::<Result<_, _>>()?;
    let mut lengths = vec![0; n_rows];
    columns.iter().for_each(|c| c.add_lengths(&mut lengths));
    let (mut rows, mut cursors) = KeyRows::with_lengths(lengths);
    columns
        .iter()
        .for_each(|c| c.write(rows.bytes_mut(), &mut cursors, floats));
    Ok(rows)
}

/// A column, ready to be written.
enum Column<'a> {
    Fixed {
        column: &'a ArrayRef,
        nulls: Option<NullBuffer>,
        width: usize,
    },
    Bool {
        column: &'a BooleanArray,
    },
    Bytes {
        column: Bytes<'a>,
        nulls: Option<NullBuffer>,
    },
    /// Anything else, its rows encoded one by one beforehand.
    Rows(KeyRows),
}

/// The arrays whose values are strings of bytes.
enum Bytes<'a> {
    Utf8(&'a StringArray),
    LargeUtf8(&'a LargeStringArray),
    Utf8View(&'a StringViewArray),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
}

/// Runs `$body` with `$column` bound to the array within, whichever it is.
macro_rules! with_bytes {
    ($bytes:expr, $column:ident => $body:expr) => {
        match $bytes {
            Bytes::Utf8($column) => $body,
            Bytes::LargeUtf8($column) => $body,
            Bytes::Utf8View($column) => $body,
            Bytes::Binary($column) => $body,
            Bytes::LargeBinary($column) => $body,
            Bytes::BinaryView($column) => $body,
            Bytes::FixedSizeBinary($column) => $body,
        }
    };
}

impl<'a> Bytes<'a> {
    fn new(column: &'a ArrayRef) -> Option<Self> {
        Some(match column.data_type() {
            DataType::Utf8 => Self::Utf8(column.as_string()),
            DataType::LargeUtf8 => Self::LargeUtf8(column.as_string()),
            DataType::Utf8View => Self::Utf8View(column.as_string_view()),
            DataType::Binary => Self::Binary(column.as_binary()),
            DataType::LargeBinary => Self::LargeBinary(column.as_binary()),
            DataType::BinaryView => Self::BinaryView(column.as_binary_view()),
            DataType::FixedSizeBinary(_) => Self::FixedSizeBinary(column.as_fixed_size_binary()),
            _ => return None,
        })
    }
}

impl<'a> Column<'a> {
    fn new(column: &'a ArrayRef, floats: Floats) -> Result<Self, KeyError> {
        macro_rules! fixed {
            ($t:ty) => {{
                let width = size_of::<<$t as ArrowPrimitiveType>::Native>();
                Ok(Self::Fixed {
                    column,
                    nulls: some_nulls(column),
                    width,
                })
            }};
        }
        if let Some(bytes) = Bytes::new(column) {
            return Ok(Self::Bytes {
                column: bytes,
                nulls: some_nulls(column),
            });
        }
        with_fixed_type!(column.data_type() => fixed!(),
            DataType::Boolean => Ok(Self::Bool { column: column.as_boolean() }),
            _ => Ok(Self::Rows(encode_rows(column, floats)?)))
    }

    /// Adds to each length what the column needs for that row.
    fn add_lengths(&self, lengths: &mut [usize]) {
        match self {
            Self::Fixed {
                nulls: None, width, ..
            } => lengths.iter_mut().for_each(|l| *l += 1 + width),
            Self::Fixed {
                nulls: Some(nulls),
                width,
                ..
            } => {
                let valid = nulls.iter();
                lengths
                    .iter_mut()
                    .zip(valid)
                    .for_each(|(l, v)| *l += 1 + if v { *width } else { 0 });
            }
            Self::Bool { column } => {
                lengths
                    .iter_mut()
                    .enumerate()
                    .for_each(|(r, l)| *l += 1 + usize::from(column.is_valid(r)));
            }
            Self::Bytes { column, nulls } => with_bytes!(column, c => {
                for (row, length) in lengths.iter_mut().enumerate() {
                    *length += match is_valid(nulls, row) {
                        true => 1 + escaped_length(as_bytes(c.value(row))),
                        false => 1,
                    };
                }
            }),
            Self::Rows(rows) => lengths
                .iter_mut()
                .zip(rows.iter())
                .for_each(|(l, r)| *l += r.len()),
        }
    }

    /// Writes each row at its cursor and moves the cursor on.
    fn write(&self, bytes: &mut [u8], cursors: &mut [usize], floats: Floats) {
        match self {
            Self::Fixed { column, nulls, .. } => {
                macro_rules! write {
                    ($t:ty) => {
                        write_fixed::<$t>(column.as_primitive(), nulls, bytes, cursors, floats)
                    };
                }
                with_fixed_type!(column.data_type() => write!(), _ => unreachable!("checked in new"));
            }
            Self::Bool { column } => {
                for (row, cursor) in cursors.iter_mut().enumerate() {
                    match column.is_valid(row) {
                        true => put(bytes, cursor, &[VALUE, u8::from(column.value(row))]),
                        false => put(bytes, cursor, &[NULL]),
                    }
                }
            }
            Self::Bytes { column, nulls } => with_bytes!(column, c => {
                for (row, cursor) in cursors.iter_mut().enumerate() {
                    match is_valid(nulls, row) {
                        true => {
                            put(bytes, cursor, &[VALUE]);
                            put_escaped(bytes, cursor, as_bytes(c.value(row)));
                        }
                        false => put(bytes, cursor, &[NULL]),
                    }
                }
            }),
            Self::Rows(rows) => {
                cursors
                    .iter_mut()
                    .zip(rows.iter())
                    .for_each(|(c, row)| put(bytes, c, row));
            }
        }
    }
}

fn write_fixed<T: FixedType>(
    column: &PrimitiveArray<T>,
    nulls: &Option<NullBuffer>,
    bytes: &mut [u8],
    cursors: &mut [usize],
    floats: Floats,
) {
    let width = size_of::<T::Native>();
    for (row, (cursor, &value)) in cursors.iter_mut().zip(column.values()).enumerate() {
        if is_valid(nulls, row) {
            let to = &mut bytes[*cursor..*cursor + 1 + width];
            to[0] = VALUE;
            let value = match floats {
                Floats::Canonical => T::canonical(value),
                Floats::Exact => value,
            };
            T::write_ordered(value, &mut to[1..]);
            *cursor += 1 + width;
        } else {
            put(bytes, cursor, &[NULL]);
        }
    }
}

fn some_nulls(column: &ArrayRef) -> Option<NullBuffer> {
    column.nulls().filter(|n| n.null_count() > 0).cloned()
}

#[inline(always)]
fn is_valid(nulls: &Option<NullBuffer>, row: usize) -> bool {
    nulls.as_ref().is_none_or(|n| n.is_valid(row))
}

#[inline(always)]
fn put(bytes: &mut [u8], cursor: &mut usize, value: &[u8]) {
    bytes[*cursor..*cursor + value.len()].copy_from_slice(value);
    *cursor += value.len();
}

fn as_bytes<T: AsRef<[u8]> + ?Sized>(value: &T) -> &[u8] {
    value.as_ref()
}

fn escaped_length(value: &[u8]) -> usize {
    value.len() + value.iter().filter(|&&b| b == 0).count() + TERMINATOR.len()
}

fn put_escaped(bytes: &mut [u8], cursor: &mut usize, value: &[u8]) {
    if value.contains(&0) {
        for (i, part) in value.split(|&b| b == 0).enumerate() {
            if i > 0 {
                put(bytes, cursor, &ESCAPED_ZERO);
            }
            put(bytes, cursor, part);
        }
    } else {
        put(bytes, cursor, value);
    }
    put(bytes, cursor, &TERMINATOR);
}

/// Nested columns: rows in terms of the rows of their children.
fn encode_rows(column: &ArrayRef, floats: Floats) -> Result<KeyRows, KeyError> {
    let n_rows = column.len();
    match column.data_type() {
        DataType::Null => Ok(rows_of(n_rows, |_, out| out.push(NULL))),
        DataType::Dictionary(_, value) => encode(&[cast(column, value)?], n_rows, floats),
        DataType::Struct(_) => {
            let column = column.as_struct();
            let fields = encode(column.columns(), n_rows, floats)?;
            Ok(optional_rows(column, |row, out| {
                out.extend_from_slice(fields.row(row))
            }))
        }
        DataType::List(_) => {
            let column = column.as_list::<i32>();
            let ends = column.value_offsets();
            encode_lists(column, column.values(), floats, |row| {
                ends[row] as usize..ends[row + 1] as usize
            })
        }
        DataType::LargeList(_) => {
            let column = column.as_list::<i64>();
            let ends = column.value_offsets();
            encode_lists(column, column.values(), floats, |row| {
                ends[row] as usize..ends[row + 1] as usize
            })
        }
        DataType::FixedSizeList(_, n) => {
            let column = column.as_fixed_size_list();
            let n = *n as usize;
            encode_lists(column, column.values(), floats, |row| {
                row * n..(row + 1) * n
            })
        }
        DataType::Map(..) => {
            let column = column.as_map();
            let ends = column.value_offsets();
            let entries: ArrayRef = std::sync::Arc::new(column.entries().clone());
            encode_lists(column, &entries, floats, |row| {
                ends[row] as usize..ends[row + 1] as usize
            })
        }
        other => Err(KeyError::UnsupportedType(other.clone())),
    }
}

fn encode_lists(
    column: &dyn Array,
    values: &ArrayRef,
    floats: Floats,
    range: impl Fn(usize) -> std::ops::Range<usize>,
) -> Result<KeyRows, KeyError> {
    let elements = encode(std::slice::from_ref(values), values.len(), floats)?;
    Ok(optional_rows(column, |row, out| {
        for element in range(row) {
            out.push(ELEMENT);
            out.extend_from_slice(elements.row(element));
        }
        out.push(END);
    }))
}

fn optional_rows(column: &dyn Array, value: impl Fn(usize, &mut Vec<u8>)) -> KeyRows {
    rows_of(column.len(), |row, out| {
        if column.is_valid(row) {
            out.push(VALUE);
            value(row, out);
        } else {
            out.push(NULL);
        }
    })
}

fn rows_of(n_rows: usize, write: impl Fn(usize, &mut Vec<u8>)) -> KeyRows {
    let mut rows = KeyRows {
        bytes: Vec::new(),
        offsets: vec![0],
    };
    for row in 0..n_rows {
        write(row, &mut rows.bytes);
        rows.offsets.push(rows.bytes.len());
    }
    rows
}
