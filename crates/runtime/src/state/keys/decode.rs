//! Key bytes back to columns.

use std::sync::Arc;

use arrow::array::*;
use arrow::buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Fields};

use super::*;
use crate::state::fixed::{FixedType, with_fixed_type};

/// The bytes of a null, which stand for the fields of a struct that is null itself.
const NULL_KEY: &[u8] = &[NULL];

/// Reads one column from the front of each row and moves the rows on.
pub(super) fn column(data_type: &DataType, rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    macro_rules! fixed {
        ($t:ty) => {
            fixed::<$t>(data_type, rows)
        };
    }
    with_fixed_type!(data_type => fixed!(),
        DataType::Null => nothing(rows),
        DataType::Boolean => booleans(rows),
        DataType::Binary => Ok(Arc::new(binary(rows)?)),
        DataType::Utf8 => Ok(Arc::new(text(binary(rows)?)?)),
        DataType::LargeBinary | DataType::BinaryView => Ok(cast(&binary(rows)?, data_type)?),
        DataType::LargeUtf8 | DataType::Utf8View => Ok(cast(&text(binary(rows)?)?, data_type)?),
        DataType::FixedSizeBinary(width) => fixed_size_binary(binary(rows)?, *width),
        DataType::Dictionary(_, value) => Ok(cast(&column(value, rows)?, data_type)?),
        DataType::Struct(fields) => structs(fields, rows),
        DataType::List(field) => {
            let (offsets, values, nulls) = lists(field, rows)?;
            Ok(Arc::new(ListArray::try_new(field.clone(), offsets, values, nulls)?))
        },
        DataType::LargeList(field) => {
            let (offsets, values, nulls) = lists(field, rows)?;
            let wide = offsets.iter().map(|&o| i64::from(o)).collect();
            let offsets = OffsetBuffer::new(wide);
            Ok(Arc::new(LargeListArray::try_new(field.clone(), offsets, values, nulls)?))
        },
        DataType::FixedSizeList(field, n) => fixed_size_lists(field, *n, rows),
        DataType::Map(field, sorted) => {
            let (offsets, values, nulls) = lists(field, rows)?;
            let entries = values.as_struct().clone();
            Ok(Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *sorted)?))
        },
        other => Err(KeyError::UnsupportedType(other.clone())))
}

fn malformed<T>(what: &str) -> Result<T, KeyError> {
    Err(KeyError::Malformed(what.into()))
}

fn take<'a>(row: &mut &'a [u8], n: usize) -> Result<&'a [u8], KeyError> {
    match row.split_at_checked(n) {
        Some((front, rest)) => {
            *row = rest;
            Ok(front)
        }
        None => malformed("they end within a value"),
    }
}

/// Whether a value follows, rather than a null.
fn has_value(row: &mut &[u8]) -> Result<bool, KeyError> {
    match take(row, 1)? {
        [NULL] => Ok(false),
        [VALUE] => Ok(true),
        _ => malformed("neither a null nor a value"),
    }
}

fn some_nulls(valid: Vec<bool>) -> Option<NullBuffer> {
    Some(NullBuffer::from(valid)).filter(|n| n.null_count() > 0)
}

fn fixed<T: FixedType>(data_type: &DataType, rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    let mut values = Vec::with_capacity(rows.len());
    let mut valid = Vec::with_capacity(rows.len());
    for row in rows {
        let is_valid = has_value(row)?;
        values.push(match is_valid {
            true => T::read_ordered(take(row, size_of::<T::Native>())?),
            false => T::Native::default(),
        });
        valid.push(is_valid);
    }
    let array = PrimitiveArray::<T>::try_new(values.into(), some_nulls(valid))?;
    Ok(Arc::new(array.with_data_type(data_type.clone())))
}

fn nothing(rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    for row in rows.iter_mut() {
        if has_value(row)? {
            return malformed("a value of type null");
        }
    }
    Ok(Arc::new(NullArray::new(rows.len())))
}

fn booleans(rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    let value = |row: &mut &[u8]| {
        Ok(if has_value(row)? {
            Some(take(row, 1)? == [1])
        } else {
            None
        })
    };
    let values = rows
        .iter_mut()
        .map(value)
        .collect::<Result<BooleanArray, KeyError>>()?;
    Ok(Arc::new(values))
}

fn binary(rows: &mut [&[u8]]) -> Result<BinaryArray, KeyError> {
    let mut bytes = Vec::new();
    let mut ends = vec![0i32];
    let mut valid = Vec::with_capacity(rows.len());
    for row in rows {
        valid.push(has_value(row)?);
        if valid.last() == Some(&true) {
            unescape(row, &mut bytes)?;
        }
        match i32::try_from(bytes.len()) {
            Ok(end) => ends.push(end),
            Err(_) => return malformed("strings of more than 2 GiB in one batch"),
        }
    }
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    Ok(BinaryArray::try_new(
        offsets,
        Buffer::from_vec(bytes),
        some_nulls(valid),
    )?)
}

fn unescape(row: &mut &[u8], out: &mut Vec<u8>) -> Result<(), KeyError> {
    loop {
        let Some(zero) = row.iter().position(|&b| b == 0) else {
            return malformed("a string without an end");
        };
        out.extend_from_slice(take(row, zero)?);
        match take(row, 2)? {
            end if end == TERMINATOR => return Ok(()),
            zero if zero == ESCAPED_ZERO => out.push(0),
            _ => return malformed("a bare zero byte in a string"),
        }
    }
}

fn text(bytes: BinaryArray) -> Result<StringArray, KeyError> {
    let (offsets, values, nulls) = bytes.into_parts();
    Ok(StringArray::try_new(offsets, values, nulls)?)
}

fn fixed_size_binary(bytes: BinaryArray, width: i32) -> Result<ArrayRef, KeyError> {
    let values = bytes.iter();
    Ok(Arc::new(
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, width)?,
    ))
}

fn structs(fields: &Fields, rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    let valid = rows
        .iter_mut()
        .map(has_value)
        .collect::<Result<Vec<_>, _>>()?;
    let mut columns = Vec::with_capacity(fields.len());
    for field in fields {
        let mut fronts: Vec<&[u8]> = rows
            .iter()
            .zip(&valid)
            .map(|(row, &v)| if v { *row } else { NULL_KEY })
            .collect();
        columns.push(column(field.data_type(), &mut fronts)?);
        for ((row, front), _) in rows.iter_mut().zip(fronts).zip(&valid).filter(|(_, v)| **v) {
            *row = front;
        }
    }
    let nulls = some_nulls(valid);
    if fields.is_empty() {
        return Ok(Arc::new(StructArray::new_empty_fields(rows.len(), nulls)));
    }
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        nulls,
    )?))
}

type Lists = (OffsetBuffer<i32>, ArrayRef, Option<NullBuffer>);

fn lists(field: &FieldRef, rows: &mut [&[u8]]) -> Result<Lists, KeyError> {
    let mut elements: Vec<&[u8]> = Vec::new();
    let mut lengths = Vec::with_capacity(rows.len());
    let mut valid = Vec::with_capacity(rows.len());
    for row in rows {
        let before = elements.len();
        valid.push(has_value(row)?);
        if valid.last() == Some(&true) {
            split_list(field, row, &mut elements)?;
        }
        lengths.push(elements.len() - before);
    }
    let values = column(field.data_type(), &mut elements)?;
    Ok((
        OffsetBuffer::from_lengths(lengths),
        values,
        some_nulls(valid),
    ))
}

/// Gives where each element of a list starts, and moves the row past the list.
fn split_list<'a>(
    field: &Field,
    row: &mut &'a [u8],
    elements: &mut Vec<&'a [u8]>,
) -> Result<(), KeyError> {
    loop {
        match take(row, 1)? {
            [END] => return Ok(()),
            [ELEMENT] => {
                elements.push(row);
                skip(field.data_type(), row)?;
            }
            _ => return malformed("neither an element nor the end of a list"),
        }
    }
}

/// Moves the row past one value.
fn skip(data_type: &DataType, row: &mut &[u8]) -> Result<(), KeyError> {
    if let DataType::Dictionary(_, value) = data_type {
        return skip(value, row);
    }
    if !has_value(row)? {
        return Ok(());
    }
    macro_rules! width {
        ($t:ty) => {
            take(row, size_of::<<$t as ArrowPrimitiveType>::Native>()).map(drop)
        };
    }
    with_fixed_type!(data_type => width!(),
        DataType::Boolean => take(row, 1).map(drop),
        DataType::Struct(fields) => fields.iter().try_for_each(|f| skip(f.data_type(), row)),
        DataType::List(f) | DataType::LargeList(f) | DataType::FixedSizeList(f, _) | DataType::Map(f, _) => {
            split_list(f, row, &mut Vec::new())
        },
        _ => unescape(row, &mut Vec::new()))
}

fn fixed_size_lists(field: &FieldRef, n: i32, rows: &mut [&[u8]]) -> Result<ArrayRef, KeyError> {
    let mut elements: Vec<&[u8]> = Vec::new();
    let mut valid = Vec::with_capacity(rows.len());
    for row in rows {
        let before = elements.len();
        valid.push(has_value(row)?);
        if valid.last() == Some(&true) {
            split_list(field, row, &mut elements)?;
        }
        // The elements of a null list are there, and mean nothing.
        if valid.last() == Some(&true) && elements.len() - before != n as usize {
            return malformed("a list of another length");
        }
        elements.resize(before + n as usize, NULL_KEY);
    }
    let values = column(field.data_type(), &mut elements)?;
    Ok(Arc::new(FixedSizeListArray::try_new(
        field.clone(),
        n,
        values,
        some_nulls(valid),
    )?))
}
