//! Parsers of single values, shared by all text formats.
//!
//! Strict on purpose (semantics 8.1): a text becomes exactly the value that it spells, or a
//! [`ValueFault`]. Nothing is rounded, wrapped around or cut off.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};
use thalweg_runtime::connector::BadReason;

pub mod binary;
pub mod date;
pub mod decimal;
pub mod decimal_bytes;
pub mod float;
pub mod int;
pub mod interval;
pub mod number;
pub mod time;
pub mod timestamp;
pub mod write;

/// Why a text is not a value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueFault {
    /// It does not spell such a value at all.
    Type,
    /// It spells one that lies outside the type's range.
    Range,
    /// It has digits after the point that the type cannot keep.
    Fraction,
}

impl ValueFault {
    /// The label of the metric, and the fault for a person: `text` as it came, `data_type` the column's.
    pub fn describe(self, text: &str, data_type: &DataType) -> (BadReason, String) {
        match self {
            Self::Type => (
                BadReason::Type,
                format!("{text} is not {}", noun(data_type)),
            ),
            Self::Range => (
                BadReason::Range,
                format!("{text} is out of range for {}", sql_type(data_type)),
            ),
            Self::Fraction if data_type.is_integer() => {
                (BadReason::Type, format!("{text} is not a whole number"))
            }
            Self::Fraction => {
                let message = format!(
                    "{text} has more fraction digits than {} keeps",
                    sql_type(data_type)
                );
                (BadReason::Range, message)
            }
        }
    }
}

/// What a value of a type is called in a message: `a whole number`.
pub fn noun(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "true or false",
        t if t.is_integer() => "a whole number",
        t if t.is_numeric() => "a number",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "base64 text",
        DataType::Date32 | DataType::Date64 => "a date",
        DataType::Time32(_) | DataType::Time64(_) => "a time of day",
        DataType::Timestamp(..) => "a timestamp",
        DataType::Interval(_) => "an interval",
        DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..) => "an array",
        DataType::Struct(_) => "an object",
        _ => "a value of the column's type",
    }
}

/// The SQL name of a type, for messages.
pub fn sql_type(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INT",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "TINYINT UNSIGNED",
        DataType::UInt16 => "SMALLINT UNSIGNED",
        DataType::UInt32 => "INT UNSIGNED",
        DataType::UInt64 => "BIGINT UNSIGNED",
        DataType::Float32 => "REAL",
        DataType::Float64 => "DOUBLE",
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            return format!("DECIMAL({p}, {s})");
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "TEXT",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BYTEA",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(unit) | DataType::Time64(unit) => return format!("TIME{}", digits(*unit)),
        DataType::Timestamp(unit, zone) => {
            let zone = if zone.is_some() {
                " WITH TIME ZONE"
            } else {
                ""
            };
            return format!("TIMESTAMP{}{zone}", digits(*unit));
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => "INTERVAL",
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            return format!("{}[]", sql_type(item.data_type()));
        }
        DataType::Struct(_) => "STRUCT",
        other => return other.to_string(),
    };
    name.to_string()
}

fn digits(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "(6)",
        TimeUnit::Nanosecond => "",
    }
}

/// How many nanoseconds a unit has.
pub fn unit_nanos(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// `nanos` in `unit`, where it is a whole number of them that fits.
pub(crate) fn nanos_to_unit(nanos: i128, unit: TimeUnit) -> Result<i64, ValueFault> {
    let per_unit = i128::from(unit_nanos(unit));
    if nanos % per_unit != 0 {
        return Err(ValueFault::Fraction);
    }
    i64::try_from(nanos / per_unit).map_err(|_| ValueFault::Range)
}

/// `text` for a message: valid, bounded in length.
pub fn excerpt(text: &[u8]) -> String {
    const MAX_CHARS: usize = 60;
    let shown = String::from_utf8_lossy(&text[..text.len().min(4 * MAX_CHARS + 4)]);
    match shown.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &shown[..end]),
        None => shown.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_say_what_was_found_and_what_the_column_is() {
        let of = |fault: ValueFault, data_type| fault.describe("68.32", &data_type);
        assert_eq!(
            of(ValueFault::Fraction, DataType::Int64),
            (BadReason::Type, "68.32 is not a whole number".into())
        );
        assert_eq!(
            of(ValueFault::Fraction, DataType::Decimal128(5, 1)),
            (
                BadReason::Range,
                "68.32 has more fraction digits than DECIMAL(5, 1) keeps".into()
            )
        );
        assert_eq!(
            of(ValueFault::Range, DataType::UInt8),
            (
                BadReason::Range,
                "68.32 is out of range for TINYINT UNSIGNED".into()
            )
        );
        assert_eq!(
            of(ValueFault::Type, DataType::Date32).1,
            "68.32 is not a date"
        );
    }

    #[test]
    fn excerpts_are_short_and_never_cut_a_character() {
        assert_eq!(excerpt(b"short"), "short");
        let long = "ä".repeat(100_000);
        assert_eq!(excerpt(long.as_bytes()).chars().count(), 61);
        assert_eq!(excerpt(b"\xff"), "\u{fffd}");
    }
}
