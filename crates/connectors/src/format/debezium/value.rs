//! Reads one value of an image into its column. What Debezium spells as JSON formats do is left to them; here is what
//! it spells in its own ways, and what it has in the place of values that are not there or have no end.
//!
//! | column | Debezium |
//! |---|---|
//! | TIMESTAMP | a number in the schema's unit, else as `json.timestamp_format` says, else by magnitude; ISO text |
//! | DATE | days since the epoch; ISO text, with or without `Z` |
//! | TIME | a number in the schema's unit, else in that of `json.timestamp_format`, else microseconds; text |
//! | INTERVAL | a number (microseconds, or the schema's unit); ISO 8601 duration; PostgreSQL's text |
//! | DECIMAL, REAL, DOUBLE | a number, text, base64 of the unscaled value, `{"scale":…,"value":…}` |
//! | BYTEA | base64 or hexadecimal text, as `debezium.binary` says |
//! | JSON | text that is JSON |

use arrow::datatypes::{IntervalMonthDayNano, TimeUnit};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use thalweg_runtime::connector::BadReason;

use super::super::column::{Column, Text, Values};
use super::super::fault::Fault;
use super::super::json::{
    Cursor, Node, Reading, check_record, read_value, skip_value, unescape_into,
};
use super::super::value::timestamp::EpochUnit;
use super::super::value::{ValueFault, date, excerpt, float, int, number, time, unit_nanos};
use super::decimal::{Unscaled, is_ambiguous};
use super::duration;
use super::schema::Meaning;
use super::settings::{BinaryText, DecimalText, Settings};

/// What a value's reading needs to know of the record around it.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    pub settings: &'a Settings,
    /// The envelope says where the row comes from: Debezium wrote it, and not one who embeds JSON as it is.
    pub has_source: bool,
}

/// What was at hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Value,
    /// A value that is not in the record and has not changed. A null stands for it in the column.
    Unavailable,
}

/// How far a value that needs a way of its own has been read.
enum Special {
    Pushed,
    /// It needs none: JSON's way, in which numbers in the place of times count this.
    None(EpochUnit),
}

/// Why a value could not be read.
enum Stop {
    Value(ValueFault),
    Fault(Box<Fault>),
}

impl From<ValueFault> for Stop {
    fn from(fault: ValueFault) -> Self {
        Self::Value(fault)
    }
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

/// Pushes the value at hand, or a null, and steps over it. After a fault the column may hold anything behind its
/// earlier values.
pub fn read(
    cursor: &mut Cursor<'_>,
    column: &mut Column,
    node: &mut Node,
    meaning: Meaning,
    around: Surroundings<'_>,
) -> Result<Found, Box<Fault>> {
    if matches!(cursor.peek(), b'"' | b'[')
        && is_unavailable(cursor, &column.values, around.settings)
    {
        skip_value(cursor, 2)?;
        column.push_null();
        return Ok(Found::Unavailable);
    }
    let start = cursor.pos;
    let special = match cursor.peek() {
        b'n' => Ok(Special::None(around.settings.epoch)),
        _ => read_special(cursor, &mut column.values, meaning, around),
    };
    match special {
        Ok(Special::Pushed) => Ok(Found::Value),
        Ok(Special::None(epoch)) => {
            let how = Reading {
                epoch,
                ..Reading::default()
            };
            read_value(cursor, column, node, 1, how).map(|()| Found::Value)
        }
        Err(Stop::Fault(fault)) => Err(fault),
        Err(Stop::Value(fault)) => {
            cursor.pos = start;
            skip_value(cursor, 2)?;
            let text = &cursor.bytes[start..cursor.pos];
            Err(Fault::value(fault, text, column.field.data_type()))
        }
    }
}

/// Whether the value at hand stands for one that is not in the record.
fn is_unavailable(cursor: &Cursor<'_>, values: &Values, settings: &Settings) -> bool {
    let unavailable = &settings.unavailable;
    let rest = cursor.rest();
    let is_text = |rest: &[u8], text: &[u8]| {
        let behind = rest.strip_prefix(b"\"").and_then(|r| r.strip_prefix(text));
        behind.is_some_and(|r| r.first() == Some(&b'"'))
    };
    match values {
        Values::Text(_) | Values::Json(_) => is_text(rest, &unavailable.text),
        Values::Decimal128 { .. } | Values::Decimal256 { .. } => {
            is_text(rest, &unavailable.base64) || is_text(rest, &unavailable.text)
        }
        Values::Binary(_) => {
            let text = match settings.binary {
                BinaryText::Hex => &unavailable.hex,
                BinaryText::Base64 | BinaryText::UrlSafe => &unavailable.base64,
            };
            is_text(rest, text)
        }
        Values::List(_) => {
            let items = rest.get(1..).unwrap_or_default();
            let is_one = is_text(items, &unavailable.text)
                && items.get(unavailable.text.len() + 2) == Some(&b']');
            is_one || rest.starts_with(&unavailable.list)
        }
        _ => false,
    }
}

fn read_special(
    cursor: &mut Cursor<'_>,
    values: &mut Values,
    meaning: Meaning,
    around: Surroundings<'_>,
) -> Result<Special, Stop> {
    let settings = around.settings;
    let is_text = cursor.peek() == b'"';
    match values {
        Values::Timestamp { values, unit } if !is_text => match meaning {
            Meaning::Instant(counted) => {
                refuse_infinity(cursor)?;
                return Ok(Special::None(EpochUnit::Fixed(counted)));
            }
            Meaning::Days => values.push(midnight(days(cursor)?, *unit)?),
            _ => {
                refuse_infinity(cursor)?;
                return Ok(Special::None(settings.epoch));
            }
        },
        Values::Date(v) if is_text => v.push(date::parse(without_z(cursor.string()?.text))?),
        Values::Date(v) if settings.epoch != EpochUnit::Refused || meaning == Meaning::Days => {
            v.push(days(cursor)?);
        }
        Values::Time64 { values, unit } if is_text => {
            values.push(time::parse(without_z(cursor.string()?.text), *unit)?);
        }
        Values::Time32 { values, unit } if is_text => {
            let since_midnight = time::parse(without_z(cursor.string()?.text), *unit)?;
            values.push(i32::try_from(since_midnight).map_err(|_| ValueFault::Range)?);
        }
        Values::Time64 { .. } | Values::Time32 { .. } => {
            return Ok(Special::None(match (meaning, settings.epoch) {
                (Meaning::TimeOfDay(counted), _) => EpochUnit::Fixed(counted),
                (_, EpochUnit::ByMagnitude) => EpochUnit::Fixed(TimeUnit::Microsecond),
                (_, epoch) => epoch,
            }));
        }
        Values::Interval(v) if cursor.rest().starts_with(b"\"P") => {
            v.push(duration::parse(cursor.string()?.text)?);
        }
        Values::Interval(v) if !is_text => v.push(length_of_time(cursor, meaning)?),
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => {
            let (precision, scale) = (*precision, *scale);
            match decimal_bytes(cursor, meaning, scale.into(), settings)? {
                None => return Ok(Special::None(settings.epoch)),
                Some(unscaled) => values.push(unscaled.decimal128(precision, scale)?),
            }
        }
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => {
            let (precision, scale) = (*precision, *scale);
            match decimal_bytes(cursor, meaning, scale.into(), settings)? {
                None => return Ok(Special::None(settings.epoch)),
                Some(unscaled) => values.push(unscaled.decimal256(precision, scale)?),
            }
        }
        Values::Float64(v) => match scaled_bytes(cursor, meaning)? {
            None => return Ok(Special::None(settings.epoch)),
            Some(unscaled) => v.push(nearest(unscaled, float::float64)?),
        },
        Values::Float32(v) => match scaled_bytes(cursor, meaning)? {
            None => return Ok(Special::None(settings.epoch)),
            Some(unscaled) => v.push(nearest(unscaled, float::float32)?),
        },
        Values::Text(v) => match scaled_bytes(cursor, meaning)? {
            None => return Ok(Special::None(settings.epoch)),
            Some(unscaled) => v.push(unscaled.to_text().as_bytes()),
        },
        Values::Json(v) if is_text && holds_json(meaning, around) => read_json_text(cursor, v)?,
        Values::Binary(v) if is_text && settings.binary != BinaryText::Base64 => {
            let bytes = decoded(cursor.string()?.text, settings.binary)?;
            v.push(&bytes);
        }
        _ => return Ok(Special::None(settings.epoch)),
    }
    Ok(Special::Pushed)
}

/// The numbers that PostgreSQL's driver has for infinite timestamps, in milli- and microseconds. As nanoseconds they
/// would be instants of the year 2262, and of 1677.
fn refuse_infinity(cursor: &Cursor<'_>) -> Result<(), Stop> {
    const INFINITIES: [&[u8]; 4] = [
        b"9223372036825200000",
        b"-9223372036832400000",
        b"9223372036825200",
        b"-9223372036832400",
    ];
    let rest = cursor.rest();
    let n = rest
        .iter()
        .take_while(|b| b.is_ascii_digit() || **b == b'-')
        .count();
    match INFINITIES.contains(&&rest[..n]) {
        true => Err(Fault::new(BadReason::Range, "the timestamp is infinite").into()),
        false => Ok(()),
    }
}

fn whole<T: TryFrom<i128>>(cursor: &mut Cursor<'_>) -> Result<T, ValueFault> {
    let rest = cursor.rest();
    let (number, len) = number::scan(rest).ok_or(ValueFault::Type)?;
    cursor.pos += len;
    int::integer(&number, &rest[..len])
}

/// Days since the epoch. PostgreSQL's infinite dates are millions of years away, where nothing can show them.
fn days(cursor: &mut Cursor<'_>) -> Result<i32, ValueFault> {
    const MILLENNIA: i32 = 95_000_000;
    let days: i32 = whole(cursor)?;
    match (-MILLENNIA..=MILLENNIA).contains(&days) {
        true => Ok(days),
        false => Err(ValueFault::Range),
    }
}

fn midnight(days: i32, unit: TimeUnit) -> Result<i64, ValueFault> {
    let per_day = 86_400 * (1_000_000_000 / unit_nanos(unit));
    i64::from(days)
        .checked_mul(per_day)
        .ok_or(ValueFault::Range)
}

fn without_z(text: &[u8]) -> &[u8] {
    text.strip_suffix(b"Z").unwrap_or(text)
}

fn length_of_time(
    cursor: &mut Cursor<'_>,
    meaning: Meaning,
) -> Result<IntervalMonthDayNano, ValueFault> {
    let unit = match meaning {
        Meaning::Duration(unit) => unit,
        _ => TimeUnit::Microsecond,
    };
    let length: i64 = whole(cursor)?;
    let nanos = length
        .checked_mul(unit_nanos(unit))
        .ok_or(ValueFault::Range)?;
    Ok(IntervalMonthDayNano::new(0, 0, nanos))
}

/// The decimal at hand, where it is spelled in bytes. `scale` is the column's.
fn decimal_bytes(
    cursor: &mut Cursor<'_>,
    meaning: Meaning,
    scale: i32,
    settings: &Settings,
) -> Result<Option<Unscaled>, Stop> {
    if cursor.peek() != b'"' || matches!(meaning, Meaning::Decimal { .. }) {
        return scaled_bytes(cursor, meaning);
    }
    if meaning != Meaning::Unknown || settings.decimals == DecimalText::Number {
        return Ok(None);
    }
    let start = cursor.pos;
    let text = cursor.string()?.text;
    let is_number = number::scan(text).is_some_and(|(_, len)| len == text.len());
    match settings.decimals {
        DecimalText::Unknown if is_number && is_ambiguous(text) => {
            let message = format!(
                "\"{}\" may be a number or base64 of one; say which with json.decimal_encoding",
                excerpt(text)
            );
            Err(Fault::new(BadReason::Type, message).into())
        }
        DecimalText::Unknown if is_number => {
            cursor.pos = start;
            Ok(None)
        }
        _ => Ok(Some(Unscaled::from_base64(text, scale)?)),
    }
}

/// The number at hand, where it is in bytes and its scale is known.
fn scaled_bytes(cursor: &mut Cursor<'_>, meaning: Meaning) -> Result<Option<Unscaled>, Stop> {
    match (cursor.peek(), meaning) {
        (b'"', Meaning::Decimal { scale }) => {
            Ok(Some(Unscaled::from_base64(cursor.string()?.text, scale)?))
        }
        (b'{', _) => variable_scale(cursor).map(Some),
        _ => Ok(None),
    }
}

/// `{"scale":9,"value":"J+QbMka+ybFuOYEV"}`, as Debezium spells numbers of a type without a scale.
fn variable_scale(cursor: &mut Cursor<'_>) -> Result<Unscaled, Stop> {
    let (mut scale, mut value) = (None, None);
    cursor.pos += 1;
    cursor.skip_space();
    while !cursor.take(b'}') {
        let key = cursor.string()?.text;
        cursor.skip_space();
        if !cursor.take(b':') {
            return Err(cursor.unexpected("':'").into());
        }
        cursor.skip_space();
        match key {
            b"scale" => scale = Some(whole::<i32>(cursor)?),
            b"value" if cursor.peek() == b'"' => value = Some(cursor.string()?.text),
            _ => skip_value(cursor, 3)?,
        }
        cursor.skip_space();
        if cursor.take(b',') {
            cursor.skip_space();
        } else if cursor.peek() != b'}' {
            return Err(cursor.unexpected("',' or '}'").into());
        }
    }
    match (scale, value) {
        (Some(scale), Some(value)) => Ok(Unscaled::from_base64(value, scale)?),
        _ => Err(ValueFault::Type.into()),
    }
}

fn nearest<T>(
    unscaled: Unscaled,
    round: fn(&number::Number, &[u8]) -> Result<T, ValueFault>,
) -> Result<T, ValueFault> {
    let text = unscaled.to_text();
    let (number, _) = number::scan(text.as_bytes()).ok_or(ValueFault::Type)?;
    round(&number, text.as_bytes())
}

/// Whether text in the place of JSON holds JSON, and is not JSON itself.
fn holds_json(meaning: Meaning, around: Surroundings<'_>) -> bool {
    match meaning {
        Meaning::Unknown => around.has_source,
        _ => true,
    }
}

fn read_json_text(cursor: &mut Cursor<'_>, values: &mut Text) -> Result<(), Stop> {
    let raw = cursor.string()?;
    let mut text = Vec::with_capacity(raw.text.len());
    match raw.has_escapes {
        true => unescape_into(raw.text, &mut text)?,
        false => text.extend_from_slice(raw.text),
    }
    if let Err(fault) = check_record(&text) {
        let message = format!("the text is not JSON: {}", fault.message());
        return Err(Fault::new(BadReason::Type, message).into());
    }
    values.push(text.trim_ascii());
    Ok(())
}

fn decoded(text: &[u8], spelling: BinaryText) -> Result<Vec<u8>, ValueFault> {
    match spelling {
        BinaryText::Hex => unhex(text).ok_or(ValueFault::Type),
        BinaryText::Base64 | BinaryText::UrlSafe => {
            URL_SAFE.decode(text).map_err(|_| ValueFault::Type)
        }
    }
}

fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    let pairs = text.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs
        .map(|pair| Some((digit(pair[0])? << 4) | digit(pair[1])?))
        .collect()
}
