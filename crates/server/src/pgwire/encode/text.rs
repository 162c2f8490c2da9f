//! Values in text, as PostgreSQL's output functions write them.

use arrow::array::ListArray;
use bytes::{BufMut, BytesMut};

use super::columns::{Column, Values};
use super::numeric::{Digits, float4, float8};
use super::times;

impl Column<'_> {
    /// A value that is not null.
    pub fn text(&self, row: usize, out: &mut BytesMut) {
        match &self.values {
            Values::Bool(values) => out.put_u8(if values.value(row) { b't' } else { b'f' }),
            Values::Int2(ints) | Values::Int4(ints) | Values::Int8(ints) => {
                times::integer(ints.get(row), out);
            }
            Values::UInt64(values) => times::padded(values[row], 1, out),
            Values::Decimal128(values, scale) => Digits::of_i128(values[row]).text(*scale, out),
            Values::Decimal256(values, scale) => Digits::of_i256(values[row]).text(*scale, out),
            Values::Float4(values) => float4(values[row], out),
            Values::Float8(values) => float8(values[row], out),
            Values::Text(values) => out.put_slice(values.value(row).as_bytes()),
            Values::Bytes(values) => hex(values.value(row), out),
            Values::Date(values) => times::date(values[row], out),
            Values::Time(values) => times::time(times::micros(values[row]), out),
            Values::Timestamp(values) => times::timestamp(values[row], out),
            Values::Timestamptz(values) => {
                times::timestamp(values[row], out);
                out.put_slice(b"+00");
            }
            Values::Interval(values) => {
                let value = values[row];
                times::interval(value.months, value.days, value.nanoseconds, out);
            }
            Values::Array(elements, list, _) => array(elements, list, row, out),
            Values::Json(texts) => out.put_slice(texts[row].as_bytes()),
            Values::Nothing => {}
        }
    }
}

/// `\x0aff`
fn hex(bytes: &[u8], out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.reserve(2 + bytes.len() * 2);
    out.put_slice(b"\\x");
    for byte in bytes {
        out.put_u8(DIGITS[usize::from(byte >> 4)]);
        out.put_u8(DIGITS[usize::from(byte & 15)]);
    }
}

/// `{1,NULL,"with, comma"}`
fn array(elements: &Column<'_>, list: &ListArray, row: usize, out: &mut BytesMut) {
    let offsets = list.value_offsets();
    out.put_u8(b'{');
    for (n, element) in (offsets[row] as usize..offsets[row + 1] as usize).enumerate() {
        if n > 0 {
            out.put_u8(b',');
        }
        if elements.is_null(element) {
            out.put_slice(b"NULL");
            continue;
        }
        let start = out.len();
        elements.text(element, out);
        quote(start, out);
    }
    out.put_u8(b'}');
}

/// Puts quotes around what is from `start` on, where an array needs them.
fn quote(start: usize, out: &mut BytesMut) {
    let text = &out[start..];
    let plain = !text.is_empty()
        && !text.eq_ignore_ascii_case(b"null")
        && !text
            .iter()
            .any(|byte| byte.is_ascii_whitespace() || b"{}\",\\\x0b".contains(byte));
    if plain {
        return;
    }
    let text = out.split_off(start);
    out.put_u8(b'"');
    for byte in &text {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(*byte);
    }
    out.put_u8(b'"');
}
