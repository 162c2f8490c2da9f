//! Puts the text of one field into a column.

use crate::format::column::{Column, Values};
use crate::format::fault::Fault;
use crate::format::json::{self, Node};
use crate::format::value::number::{Number, scan_lenient};
use crate::format::value::timestamp::EpochUnit;
use crate::format::value::{
    ValueFault, binary, date, decimal, float, int, interval, time, timestamp,
};

/// Pushes the value that `text` spells. After a fault the column may hold anything behind its
/// earlier values.
pub fn push(column: &mut Column, node: &mut Node, text: &[u8]) -> Result<(), Box<Fault>> {
    if matches!(column.values, Values::Struct(_) | Values::List(_)) {
        return json::read_text(text, column, node);
    }
    push_scalar(&mut column.values, text)
        .map_err(|fault| Fault::value(fault, &quoted(text), column.field.data_type()))
}

fn quoted(text: &[u8]) -> Vec<u8> {
    [b"\"", text, b"\""].concat()
}

#[inline]
fn push_scalar(values: &mut Values, text: &[u8]) -> Result<(), ValueFault> {
    match values {
        Values::Text(v) => v.push(text),
        Values::Int8(v) => v.push(whole(text)?),
        Values::Int16(v) => v.push(whole(text)?),
        Values::Int32(v) => v.push(whole(text)?),
        Values::Int64(v) => v.push(whole(text)?),
        Values::UInt8(v) => v.push(whole(text)?),
        Values::UInt16(v) => v.push(whole(text)?),
        Values::UInt32(v) => v.push(whole(text)?),
        Values::UInt64(v) => v.push(whole(text)?),
        Values::Float64(v) => v.push(float_of(text, float::float64, |special| special)?),
        Values::Float32(v) => v.push(float_of(text, float::float32, |special| special as f32)?),
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => {
            let (number, strict) = scan_lenient(text).ok_or(ValueFault::Type)?;
            values.push(decimal::decimal128(&number, &strict, *precision, *scale)?);
        }
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => {
            let (number, strict) = scan_lenient(text).ok_or(ValueFault::Type)?;
            values.push(decimal::decimal256(&number, &strict, *precision, *scale)?);
        }
        Values::Bool(v) => v.push(truth(text.trim_ascii()).ok_or(ValueFault::Type)?),
        Values::Timestamp { values, unit } => {
            values.push(match timestamp::parse(text.trim_ascii(), *unit) {
                Err(ValueFault::Type) => {
                    let (number, strict) = scan_lenient(text).ok_or(ValueFault::Type)?;
                    timestamp::from_number(&number, &strict, EpochUnit::ByMagnitude, *unit)?
                }
                parsed => parsed?,
            })
        }
        Values::Date(v) => v.push(date::parse(text.trim_ascii())?),
        Values::Time64 { values, unit } => values.push(time::parse(text.trim_ascii(), *unit)?),
        Values::Time32 { values, unit } => {
            let since_midnight = time::parse(text.trim_ascii(), *unit)?;
            values.push(i32::try_from(since_midnight).map_err(|_| ValueFault::Range)?);
        }
        Values::Interval(v) => v.push(interval::parse(text)?),
        Values::Binary(v) => {
            binary::decode_into(text, v.open_value())?;
            v.end_value();
        }
        Values::Json(v) => {
            json::check_record(text).map_err(|_| ValueFault::Type)?;
            v.push(text);
        }
        Values::Struct(_) | Values::List(_) => unreachable!("nested values are read as JSON"),
    }
    Ok(())
}

#[inline]
fn whole<T: TryFrom<i128>>(text: &[u8]) -> Result<T, ValueFault> {
    let (number, strict) = scan_lenient(text).ok_or(ValueFault::Type)?;
    int::integer(&number, &strict)
}

#[inline]
fn float_of<T>(
    text: &[u8],
    round: fn(&Number, &[u8]) -> Result<T, ValueFault>,
    narrow: fn(f64) -> T,
) -> Result<T, ValueFault> {
    match scan_lenient(text) {
        Some((number, strict)) => round(&number, &strict),
        None => float::special(text.trim_ascii())
            .map(narrow)
            .ok_or(ValueFault::Type),
    }
}

fn truth(text: &[u8]) -> Option<bool> {
    let is = |words: [&str; 2]| {
        words
            .iter()
            .any(|w| text.eq_ignore_ascii_case(w.as_bytes()))
    };
    if is(["true", "t"]) {
        return Some(true);
    }
    is(["false", "f"]).then_some(false)
}
