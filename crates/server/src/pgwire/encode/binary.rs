//! Values in binary, as PostgreSQL's send functions write them.

use arrow::array::ListArray;
use bytes::{BufMut, BytesMut};
use pgwire::api::Type;

use super::columns::{Column, Values};
use super::measured;
use super::numeric::Digits;
use super::times::{EPOCH_DAYS, EPOCH_MICROS, micros};
use crate::pgwire::error::Failure;

impl Column<'_> {
    /// A value that is not null. Errors: a date beyond what the format can say.
    pub fn binary(&self, row: usize, out: &mut BytesMut) -> Result<(), Failure> {
        match &self.values {
            Values::Bool(values) => out.put_u8(values.value(row).into()),
            // The types of a column bound its values.
            Values::Int2(ints) => out.put_i16(ints.get(row) as i16),
            Values::Int4(ints) => out.put_i32(ints.get(row) as i32),
            Values::Int8(ints) => out.put_i64(ints.get(row)),
            Values::UInt64(values) => Digits::of_u64(values[row]).binary(0, out),
            Values::Decimal128(values, scale) => Digits::of_i128(values[row]).binary(*scale, out),
            Values::Decimal256(values, scale) => Digits::of_i256(values[row]).binary(*scale, out),
            Values::Float4(values) => out.put_f32(values[row]),
            Values::Float8(values) => out.put_f64(values[row]),
            Values::Bytes(values) => out.put_slice(values.value(row)),
            Values::Date(values) => {
                let days = values[row].checked_sub(EPOCH_DAYS);
                let beyond = || Failure::new("22008", "date out of range");
                out.put_i32(days.ok_or_else(beyond)?);
            }
            Values::Time(values) => out.put_i64(micros(values[row])),
            Values::Timestamp(values) | Values::Timestamptz(values) => {
                // Microseconds of what fits 64 bits of nanoseconds leave room.
                out.put_i64(micros(values[row]) - EPOCH_MICROS);
            }
            Values::Interval(values) => {
                let value = values[row];
                out.put_i64(value.nanoseconds / 1000);
                out.put_i32(value.days);
                out.put_i32(value.months);
            }
            Values::Array(elements, list, element_type) => {
                array(elements, list, element_type, row, out)?;
            }
            // Text and JSON are their text.
            Values::Text(_) | Values::Json(_) | Values::Nothing => self.text(row, out),
        }
        Ok(())
    }
}

/// One dimension, from 1. Source: array_send in PostgreSQL's src/backend/utils/adt/arrayfuncs.c.
fn array(
    elements: &Column<'_>,
    list: &ListArray,
    element_type: &Type,
    row: usize,
    out: &mut BytesMut,
) -> Result<(), Failure> {
    let offsets = list.value_offsets();
    let range = offsets[row] as usize..offsets[row + 1] as usize;
    let has_nulls = range.clone().any(|element| elements.is_null(element));
    out.put_i32(i32::from(!range.is_empty()));
    out.put_i32(has_nulls.into());
    out.put_u32(element_type.oid());
    if range.is_empty() {
        return Ok(());
    }
    out.put_i32(offsets[row + 1] - offsets[row]);
    out.put_i32(1);
    for element in range {
        if elements.is_null(element) {
            out.put_i32(-1);
        } else {
            measured(out, |out| elements.binary(element, out))?;
        }
    }
    Ok(())
}
