//! Values of the wire as suites show them, where the two differ.

use pgwire::api::Type;

/// A value in text.
pub fn text(pg_type: &Type, value: &str) -> String {
    match *pg_type {
        Type::BOOL => if value == "t" { "true" } else { "false" }.to_string(),
        Type::TIMESTAMP => instant(value),
        Type::TIMESTAMPTZ => format!("{}Z", instant(value.strip_suffix("+00").unwrap())),
        Type::TIME => fraction(value),
        Type::FLOAT4 | Type::FLOAT8 => float(value),
        Type::INTERVAL => interval(value),
        Type::BYTEA => value.strip_prefix("\\x").unwrap().to_string(),
        _ if pg_type.name().starts_with('_') => array(pg_type, value),
        _ => value.to_string(),
    }
}

fn instant(value: &str) -> String {
    fraction(&value.replacen(' ', "T", 1))
}

/// Fractions of a second come in threes.
fn fraction(value: &str) -> String {
    match value.split_once('.') {
        None => value.to_string(),
        Some((head, digits)) => {
            let width = digits.len().div_ceil(3) * 3;
            format!("{head}.{digits:0<width$}")
        }
    }
}

/// `1 year 2 mons -3 days 04:05:06.7`
fn interval(value: &str) -> String {
    let (mut months, mut days, mut nanos) = (0, 0, 0);
    let mut words = value.split(' ');
    while let Some(word) = words.next() {
        match (word.split_once(':'), words.next()) {
            (Some((hours, rest)), None) => {
                let (minutes, seconds) = rest.split_once(':').unwrap();
                let parts =
                    [hours.trim_start_matches('-'), minutes].map(|n| n.parse::<f64>().unwrap());
                let seconds = parts[0] * 3600.0 + parts[1] * 60.0 + seconds.parse::<f64>().unwrap();
                let sign = if hours.starts_with('-') { -1 } else { 1 };
                nanos = sign * (seconds * 1e6).round() as i64 * 1000;
            }
            (_, Some("year" | "years")) => months += 12 * word.parse::<i32>().unwrap(),
            (_, Some("mon" | "mons")) => months += word.parse::<i32>().unwrap(),
            (_, Some("day" | "days")) => days = word.parse().unwrap(),
            other => panic!("{value}: {other:?}"),
        }
    }
    let value = arrow::datatypes::IntervalMonthDayNano::new(months, days, nanos);
    binary::arrow_text(arrow::array::IntervalMonthDayNanoArray::from(vec![value]))
}

fn float(value: &str) -> String {
    match value {
        "Infinity" => "inf".to_string(),
        "-Infinity" => "-inf".to_string(),
        "NaN" => "NaN".to_string(),
        _ if value.contains('.') && !value.contains('e') => value.to_string(),
        _ if value.contains('e') => value
            .replace("e+", "e")
            .replace("e0", "e")
            .replace("e-0", "e-"),
        _ => format!("{value}.0"),
    }
}

/// Arrays without commas or quotes in their elements, as suites have them.
fn array(pg_type: &Type, value: &str) -> String {
    let element = match pg_type.kind() {
        tokio_postgres::types::Kind::Array(element) => element,
        other => panic!("{other:?}"),
    };
    let inner = value
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap();
    let elements = inner
        .split(',')
        .filter(|element| !element.is_empty())
        .map(|item| match item {
            "NULL" => "NULL".to_string(),
            quoted => text(element, quoted.trim_matches('"')),
        });
    format!("[{}]", elements.collect::<Vec<_>>().join(", "))
}

/// A line without what differs for a client.
pub fn canonical(line: &str) -> String {
    let plain = line.replace('"', "").replace(": ", ":").replace(", ", ",");
    // What is finer than a microsecond no client sees.
    plain
        .replace("NULL", "null")
        .replace(".999999999", ".999999")
}

pub mod binary {
    //! Values in binary.

    use super::{Type, text};
    use tokio_postgres::types::{FromSql, Kind};

    /// A value as it came.
    pub struct Bytes(pub Vec<u8>);

    impl<'a> FromSql<'a> for Bytes {
        fn from_sql(
            _: &Type,
            raw: &'a [u8],
        ) -> Result<Self, Box<dyn std::error::Error + Sync + Send>> {
            Ok(Self(raw.to_vec()))
        }

        fn accepts(_: &Type) -> bool {
            true
        }
    }

    fn int<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap()
    }

    pub fn shown(pg_type: &Type, bytes: &[u8]) -> String {
        match *pg_type {
            Type::BOOL => (bytes == [1]).to_string(),
            Type::INT2 => i16::from_be_bytes(int(bytes)).to_string(),
            Type::INT4 => i32::from_be_bytes(int(bytes)).to_string(),
            Type::INT8 => i64::from_be_bytes(int(bytes)).to_string(),
            Type::FLOAT4 => {
                let value = f32::from_be_bytes(int(bytes));
                arrow_text(arrow::array::Float32Array::from(vec![value]))
            }
            Type::FLOAT8 => {
                let value = f64::from_be_bytes(int(bytes));
                arrow_text(arrow::array::Float64Array::from(vec![value]))
            }
            Type::NUMERIC => numeric(bytes),
            Type::BYTEA => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            Type::DATE => {
                let days = i32::from_be_bytes(int(bytes)) + 10_957;
                arrow_text(arrow::array::Date32Array::from(vec![days]))
            }
            Type::TIME => {
                let nanos = i64::from_be_bytes(int(bytes)) * 1000;
                arrow_text(arrow::array::Time64NanosecondArray::from(vec![nanos]))
            }
            Type::TIMESTAMP => arrow_text(timestamps(bytes)),
            Type::TIMESTAMPTZ => arrow_text(timestamps(bytes).with_timezone("+00:00")),
            Type::INTERVAL => {
                let value = arrow::datatypes::IntervalMonthDayNano::new(
                    i32::from_be_bytes(int(&bytes[12..])),
                    i32::from_be_bytes(int(&bytes[8..12])),
                    i64::from_be_bytes(int(&bytes[..8])) * 1000,
                );
                arrow_text(arrow::array::IntervalMonthDayNanoArray::from(vec![value]))
            }
            _ => match pg_type.kind() {
                Kind::Array(element) => array(element, bytes),
                _ => text(pg_type, std::str::from_utf8(bytes).unwrap()),
            },
        }
    }

    fn timestamps(bytes: &[u8]) -> arrow::array::TimestampNanosecondArray {
        let micros = i64::from_be_bytes(int(bytes)) + 946_684_800_000_000;
        arrow::array::TimestampNanosecondArray::from(vec![micros * 1000])
    }

    pub fn arrow_text(array: impl arrow::array::Array) -> String {
        arrow::util::display::array_value_to_string(&array, 0).unwrap()
    }

    /// Base-10000 digits: the whole ones first, `scale` decimal digits after the point.
    fn numeric(bytes: &[u8]) -> String {
        let word = |i: usize| i16::from_be_bytes(int(&bytes[i * 2..i * 2 + 2]));
        let (n, weight, sign, scale) = (word(0), word(1), word(2), word(3) as usize);
        let group = |power: i16| {
            let index = weight - power;
            if (0..n).contains(&index) {
                word(4 + index as usize)
            } else {
                0
            }
        };
        let whole: String = (0..=weight.max(0))
            .rev()
            .map(|p| format!("{:04}", group(p)))
            .collect();
        let after: String = (1..=scale.div_ceil(4) as i16)
            .map(|p| format!("{:04}", group(-p)))
            .collect();
        let whole = whole.trim_start_matches('0');
        let whole = if whole.is_empty() { "0" } else { whole };
        let sign = if sign == 0 { "" } else { "-" };
        let point = if scale == 0 { "" } else { "." };
        format!("{sign}{whole}{point}{}", &after[..scale])
    }

    fn array(element: &Type, bytes: &[u8]) -> String {
        let word = |at: usize| i32::from_be_bytes(int(&bytes[at..at + 4]));
        if word(0) == 0 {
            return "[]".to_string();
        }
        assert_eq!((word(0), word(16)), (1, 1), "one dimension from 1");
        assert_eq!(word(8) as u32, element.oid());
        let mut at = 20;
        let elements = (0..word(12)).map(|_| {
            let length = word(at);
            at += 4;
            if length < 0 {
                return "NULL".to_string();
            }
            let value = &bytes[at..at + length as usize];
            at += length as usize;
            shown(element, value)
        });
        format!("[{}]", elements.collect::<Vec<_>>().join(", "))
    }
}
