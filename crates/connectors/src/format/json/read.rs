//! Reads one JSON value into a column, straight from the bytes. What JSON spells as another type than
//! the column's is refused, with few exceptions:
//!
//! | column | JSON |
//! |---|---|
//! | integers | numbers that are whole, however spelled (`68`, `68.0`, `1e3`), never `68.32`, never text |
//! | floats | numbers; the texts `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | DECIMAL | numbers and texts that are numbers, if scale and precision keep all digits; or base64, as [`Reading`] says |
//! | TEXT | text, never a number |
//! | BOOLEAN | `true`, `false` |
//! | BYTEA | base64 text |
//! | TIMESTAMP, DATE, TIME | ISO 8601 text; numbers as [`EpochUnit`] says |
//! | JSON | anything; kept as it is written |

use arrow::datatypes::TimeUnit;

use super::super::column::{Bools, Column, Lists, Text, Values};
use super::super::fault::Fault;
use super::super::value::number::{self, Number};
use super::super::value::timestamp::EpochUnit;
use super::super::value::{
    ValueFault, binary, date, decimal, decimal_bytes, float, int, interval, time, timestamp,
    unit_nanos,
};
use super::cursor::{Cursor, RawStr};
use super::object::ObjectReader;
use super::skip::{MAX_DEPTH, end_of_record, skip_value, too_deep};
use super::string::unescape_into;
use thalweg_runtime::connector::BadReason;

/// How values are spelled where JSON leaves that open.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading {
    /// What numbers in the place of timestamps count.
    pub epoch: EpochUnit,
    /// Texts in the place of decimals are base64 of the unscaled value (big-endian two's complement), with the
    /// column's scale. If not, they are digits.
    pub decimals_in_base64: bool,
}

impl Reading {
    fn is_base64(self, cursor: &Cursor<'_>) -> bool {
        self.decimals_in_base64 && cursor.peek() == b'"'
    }
}

/// What reading a column's values needs besides the column.
#[derive(Debug)]
pub enum Node {
    Leaf,
    Object(ObjectReader),
    List(Box<Node>),
}

impl Node {
    pub fn new(column: &Column) -> Self {
        match &column.values {
            Values::Struct(s) => Self::Object(ObjectReader::new(&s.columns)),
            Values::List(l) => Self::List(Box::new(Self::new(&l.items))),
            _ => Self::Leaf,
        }
    }
}

/// Why a value could not be read, before it is known how to say so.
enum Stop {
    /// The value is of another kind than the column wants, or is no JSON at all.
    Kind,
    Value(ValueFault),
    Fault(Box<Fault>),
}

impl From<Box<Fault>> for Stop {
    fn from(fault: Box<Fault>) -> Self {
        Self::Fault(fault)
    }
}

impl From<ValueFault> for Stop {
    fn from(fault: ValueFault) -> Self {
        Self::Value(fault)
    }
}

/// Pushes the value at hand, or a null, and steps over it. `depth` levels are open around it. After a fault
/// the column may hold anything behind its earlier values.
#[inline(always)]
pub fn read_value(
    cursor: &mut Cursor<'_>,
    column: &mut Column,
    node: &mut Node,
    depth: u32,
    how: Reading,
) -> Result<(), Box<Fault>> {
    if cursor.peek() == b'n' {
        return read_null(cursor, column);
    }
    let start = cursor.pos;
    match read_into(cursor, &mut column.values, node, depth, how) {
        Ok(()) => Ok(()),
        Err(stop) => {
            cursor.pos = start;
            Err(explain(stop, cursor, column, depth))
        }
    }
}

/// Pushes the value that a whole text of JSON is.
pub fn read_text(text: &[u8], column: &mut Column, node: &mut Node) -> Result<(), Box<Fault>> {
    let lines = super::without_line_ends(text);
    let mut cursor = Cursor::new(&lines, 0);
    cursor.skip_space();
    read_value(&mut cursor, column, node, 0, Reading::default())?;
    end_of_record(&mut cursor)
}

fn read_null(cursor: &mut Cursor<'_>, column: &mut Column) -> Result<(), Box<Fault>> {
    if !cursor.take_word(b"null") {
        return Err(cursor.unexpected("a value"));
    }
    if !column.field.is_nullable() {
        return Err(Fault::missing(true));
    }
    column.push_null();
    Ok(())
}

#[cold]
fn explain(stop: Stop, cursor: &mut Cursor<'_>, column: &Column, depth: u32) -> Box<Fault> {
    let fault = match stop {
        Stop::Fault(fault) => return fault,
        Stop::Value(fault) => fault,
        Stop::Kind => ValueFault::Type,
    };
    let start = cursor.pos;
    if let Err(malformed) = skip_value(cursor, depth + 1) {
        return malformed;
    }
    Fault::value(
        fault,
        &cursor.bytes[start..cursor.pos],
        column.field.data_type(),
    )
}

#[inline(always)]
fn read_into(
    cursor: &mut Cursor<'_>,
    values: &mut Values,
    node: &mut Node,
    depth: u32,
    how: Reading,
) -> Result<(), Stop> {
    match values {
        Values::Int8(v) => v.push(whole(cursor)?),
        Values::Int16(v) => v.push(whole(cursor)?),
        Values::Int32(v) => v.push(whole(cursor)?),
        Values::Int64(v) => v.push(whole(cursor)?),
        Values::UInt8(v) => v.push(whole(cursor)?),
        Values::UInt16(v) => v.push(whole(cursor)?),
        Values::UInt32(v) => v.push(whole(cursor)?),
        Values::UInt64(v) => v.push(whole(cursor)?),
        Values::Float64(v) => v.push(read_float(cursor, float::float64, |special| special)?),
        Values::Float32(v) => v.push(read_float(cursor, float::float32, |special| {
            special as f32
        })?),
        Values::Decimal128 {
            values,
            precision,
            scale,
        } => {
            values.push(if how.is_base64(cursor) {
                let (unscaled, scale) = (with_text(cursor, decimal_bytes::from_base64)?, *scale);
                decimal_bytes::to_decimal128(unscaled, scale, *precision, scale)?
            } else {
                let (number, text) = number_or_text(cursor)?;
                decimal::decimal128(&number, text, *precision, *scale)?
            });
        }
        Values::Decimal256 {
            values,
            precision,
            scale,
        } => {
            values.push(if how.is_base64(cursor) {
                let (unscaled, scale) = (with_text(cursor, decimal_bytes::from_base64)?, *scale);
                decimal_bytes::to_decimal256(unscaled, scale, *precision, scale)?
            } else {
                let (number, text) = number_or_text(cursor)?;
                decimal::decimal256(&number, text, *precision, *scale)?
            });
        }
        Values::Text(v) => read_string_into(cursor, v)?,
        Values::Timestamp { values, unit } => {
            values.push(read_timestamp(cursor, how.epoch, *unit)?)
        }
        Values::Bool(v) => read_bool(cursor, v)?,
        Values::Json(v) => read_json(cursor, v, depth)?,
        Values::Date(v) => v.push(read_date(cursor, how.epoch)?),
        Values::Time64 { values, unit } => values.push(read_time(cursor, how.epoch, *unit)?),
        Values::Time32 { values, unit } => {
            let since_midnight = read_time(cursor, how.epoch, *unit)?;
            values.push(i32::try_from(since_midnight).map_err(|_| ValueFault::Range)?);
        }
        Values::Interval(v) => v.push(with_text(cursor, interval::parse)?),
        Values::Binary(v) => {
            with_text(cursor, |text| binary::decode_into(text, v.open_value()))?;
            v.end_value();
        }
        Values::Struct(s) => {
            let Node::Object(reader) = node else {
                unreachable!("made from the column")
            };
            if cursor.peek() != b'{' {
                return Err(Stop::Kind);
            }
            let row = s.len();
            reader.read(cursor, &mut s.columns, row, depth + 1, how)?;
            s.end_value();
        }
        Values::List(l) => {
            let Node::List(item) = node else {
                unreachable!("made from the column")
            };
            read_list(cursor, l, item, depth + 1, how)?;
        }
    }
    Ok(())
}

#[inline(always)]
fn read_number<'a>(cursor: &mut Cursor<'a>) -> Result<(Number, &'a [u8]), Stop> {
    let rest = cursor.rest();
    let (number, len) = number::scan(rest).ok_or(Stop::Kind)?;
    cursor.pos += len;
    Ok((number, &rest[..len]))
}

#[inline(always)]
fn whole<T: TryFrom<i128>>(cursor: &mut Cursor<'_>) -> Result<T, Stop> {
    let (number, text) = read_number(cursor)?;
    Ok(int::integer(&number, text)?)
}

#[inline(always)]
fn read_float<T>(
    cursor: &mut Cursor<'_>,
    round: fn(&Number, &[u8]) -> Result<T, ValueFault>,
    narrow: fn(f64) -> T,
) -> Result<T, Stop> {
    if cursor.peek() == b'"' {
        let special = float::special(read_string(cursor)?.text);
        return special.map(narrow).ok_or(Stop::Kind);
    }
    let (number, text) = read_number(cursor)?;
    Ok(round(&number, text)?)
}

/// Producers that fear for their decimals write them as text.
#[inline(always)]
fn number_or_text<'a>(cursor: &mut Cursor<'a>) -> Result<(Number, &'a [u8]), Stop> {
    if cursor.peek() != b'"' {
        return read_number(cursor);
    }
    let text = read_string(cursor)?.text;
    let (number, len) = number::scan(text).ok_or(Stop::Kind)?;
    if len == text.len() {
        Ok((number, text))
    } else {
        Err(Stop::Kind)
    }
}

#[inline(always)]
fn read_string<'a>(cursor: &mut Cursor<'a>) -> Result<RawStr<'a>, Stop> {
    if cursor.peek() != b'"' {
        return Err(Stop::Kind);
    }
    Ok(cursor.string()?)
}

#[inline(always)]
fn read_string_into(cursor: &mut Cursor<'_>, values: &mut Text) -> Result<(), Stop> {
    let raw = read_string(cursor)?;
    if raw.has_escapes {
        unescape_into(raw.text, values.open_value())?;
        values.end_value();
    } else {
        values.push(raw.text);
    }
    Ok(())
}

/// What `parse` makes of the text at hand.
#[inline(always)]
fn with_text<T>(
    cursor: &mut Cursor<'_>,
    parse: impl FnOnce(&[u8]) -> Result<T, ValueFault>,
) -> Result<T, Stop> {
    let raw = read_string(cursor)?;
    if !raw.has_escapes {
        return Ok(parse(raw.text)?);
    }
    let mut text = Vec::with_capacity(raw.text.len());
    unescape_into(raw.text, &mut text)?;
    Ok(parse(&text)?)
}

#[inline(always)]
fn read_timestamp(cursor: &mut Cursor<'_>, epoch: EpochUnit, unit: TimeUnit) -> Result<i64, Stop> {
    if cursor.peek() == b'"' {
        return with_text(cursor, |text| timestamp::parse(text, unit));
    }
    let (number, text) = read_number(cursor)?;
    Ok(timestamp::from_number(&number, text, epoch, unit)?)
}

/// A number is days since the epoch, as Debezium and Avro count dates.
fn read_date(cursor: &mut Cursor<'_>, epoch: EpochUnit) -> Result<i32, Stop> {
    if cursor.peek() == b'"' || epoch == EpochUnit::Refused {
        return with_text(cursor, date::parse);
    }
    whole(cursor)
}

/// A number counts since midnight, in a unit that must be known: a magnitude tells nothing.
fn read_time(cursor: &mut Cursor<'_>, epoch: EpochUnit, unit: TimeUnit) -> Result<i64, Stop> {
    let EpochUnit::Fixed(_) = epoch else {
        return with_text(cursor, |text| time::parse(text, unit));
    };
    if cursor.peek() == b'"' {
        return with_text(cursor, |text| time::parse(text, unit));
    }
    let (number, text) = read_number(cursor)?;
    let since_midnight = timestamp::from_number(&number, text, epoch, unit)?;
    let day = 86_400 * (1_000_000_000 / unit_nanos(unit));
    if (0..day).contains(&since_midnight) {
        Ok(since_midnight)
    } else {
        Err(ValueFault::Range.into())
    }
}

fn read_bool(cursor: &mut Cursor<'_>, values: &mut Bools) -> Result<(), Stop> {
    let is_true = cursor.take_word(b"true");
    if !is_true && !cursor.take_word(b"false") {
        return Err(Stop::Kind);
    }
    values.push(is_true);
    Ok(())
}

fn read_json(cursor: &mut Cursor<'_>, values: &mut Text, depth: u32) -> Result<(), Stop> {
    let start = cursor.pos;
    skip_value(cursor, depth + 1)?;
    values.push(&cursor.bytes[start..cursor.pos]);
    Ok(())
}

fn read_list(
    cursor: &mut Cursor<'_>,
    lists: &mut Lists,
    item: &mut Node,
    depth: u32,
    how: Reading,
) -> Result<(), Stop> {
    if depth >= MAX_DEPTH {
        return Err(too_deep().into());
    }
    if !cursor.take(b'[') {
        return Err(Stop::Kind);
    }
    cursor.skip_space();
    if !cursor.take(b']') {
        read_items(cursor, lists, item, depth, how)?;
    }
    let n_items = lists.n_open_items();
    if let Some(n) = lists.fixed.filter(|n| *n != n_items) {
        let message = format!("an array of {n_items} where {n} are declared");
        return Err(Fault::new(BadReason::Type, message).into());
    }
    lists.end_value();
    Ok(())
}

fn read_items(
    cursor: &mut Cursor<'_>,
    lists: &mut Lists,
    item: &mut Node,
    depth: u32,
    how: Reading,
) -> Result<(), Box<Fault>> {
    for index in 0.. {
        read_value(cursor, &mut lists.items, item, depth, how).map_err(|f| f.in_item(index))?;
        cursor.skip_space();
        if cursor.take(b']') {
            break;
        }
        if !cursor.take(b',') {
            return Err(cursor.unexpected("',' or ']'"));
        }
        cursor.skip_space();
    }
    Ok(())
}
