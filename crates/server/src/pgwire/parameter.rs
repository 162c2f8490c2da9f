//! Values of parameters, from the wire to literals of the statement.

use arrow::datatypes::{DataType, Field};
use bytes::BytesMut;
use pgwire::api::Type;
use thalweg_planner::parameters::{self, Literal};

use super::encode::times;
use super::error::Failure;
use super::frontend::Body;
use super::types::{element_of, type_of};

/// The type that a parameter has for a client, where the statement tells its own.
pub fn inferred(data_type: Option<&DataType>) -> Type {
    match data_type {
        None | Some(DataType::Null) => Type::TEXT,
        // What clients have whole numbers for.
        Some(DataType::UInt64) => Type::INT8,
        Some(DataType::List(element)) if element.name() == parameters::OIDS => Type::OID_ARRAY,
        Some(DataType::Utf8View | DataType::LargeUtf8) => Type::TEXT,
        Some(DataType::Date64) => Type::DATE,
        Some(DataType::Timestamp(_, None)) => Type::TIMESTAMP,
        Some(DataType::Timestamp(_, Some(_))) => Type::TIMESTAMPTZ,
        Some(other) => type_of(&Field::new("", other.clone(), true)),
    }
}

/// The SQL name of a parameter's type. Errors: one that parameters cannot have.
fn sql_type(pg_type: &Type) -> Result<String, Failure> {
    if let Some(element) = element_of(pg_type) {
        return Ok(format!("{}[]", sql_type(&element)?));
    }
    let name = match *pg_type {
        Type::BOOL => "BOOLEAN",
        Type::INT2 => "SMALLINT",
        Type::INT4 => "INTEGER",
        Type::INT8 | Type::OID => "BIGINT",
        Type::FLOAT4 => "REAL",
        Type::FLOAT8 => "DOUBLE PRECISION",
        Type::NUMERIC => "DECIMAL(38, 10)",
        Type::DATE => "DATE",
        Type::TIME => "TIME",
        Type::TIMESTAMP => "TIMESTAMP",
        Type::TIMESTAMPTZ => "TIMESTAMP WITH TIME ZONE",
        Type::INTERVAL => "INTERVAL",
        Type::BYTEA => "BYTEA",
        Type::TEXT
        | Type::VARCHAR
        | Type::BPCHAR
        | Type::NAME
        | Type::UNKNOWN
        | Type::JSON
        | Type::JSONB
        | Type::UUID => "TEXT",
        _ => {
            let message = format!("parameters of type {} are not supported", pg_type.name());
            let hint = "pass it as text and cast it";
            return Err(Failure::unsupported(message).hint(hint));
        }
    };
    Ok(name.to_string())
}

/// A parameter that is not there yet, or NULL.
pub fn null(pg_type: &Type) -> Result<Literal, Failure> {
    Ok(Literal::Null(Some(sql_type(pg_type)?)))
}

/// The value of parameter `number`.
///
/// Errors: text or bytes that are no value of the type.
pub fn value(
    number: usize,
    pg_type: &Type,
    is_binary: bool,
    bytes: Option<&[u8]>,
) -> Result<Literal, Failure> {
    let Some(bytes) = bytes else {
        return null(pg_type);
    };
    let decoded = if is_binary {
        from_binary(pg_type, bytes)
    } else {
        std::str::from_utf8(bytes)
            .ok()
            .and_then(|text| from_text(pg_type, text))
    };
    sql_type(pg_type)?;
    decoded.ok_or_else(|| {
        let name = pg_type.name();
        let (code, what) = if is_binary {
            ("22P03", "binary data")
        } else {
            ("22P02", "text")
        };
        Failure::new(
            code,
            format!("parameter ${number}: {what} that is no {name}"),
        )
    })
}

fn from_text(pg_type: &Type, text: &str) -> Option<Literal> {
    if let Some(element) = element_of(pg_type) {
        let items = array_items(text.trim())?.into_iter();
        let elements = items.map(|item| match item {
            Some(text) => from_text(&element, &text),
            None => null(&element).ok(),
        });
        return array_of(&element, elements.collect::<Option<_>>()?);
    }
    let trimmed = text.trim();
    Some(match *pg_type {
        Type::BOOL => Literal::Bool(match trimmed.to_ascii_lowercase().as_str() {
            "t" | "true" | "y" | "yes" | "on" | "1" => true,
            "f" | "false" | "n" | "no" | "off" | "0" => false,
            _ => return None,
        }),
        Type::INT2 => integer(trimmed.parse::<i16>().ok()?.into()),
        Type::INT4 => integer(trimmed.parse::<i32>().ok()?.into()),
        Type::INT8 => integer(trimmed.parse().ok()?),
        Type::OID => integer(trimmed.parse::<u32>().ok()?.into()),
        Type::NUMERIC => decimal(trimmed)?,
        Type::FLOAT4 | Type::FLOAT8 => {
            trimmed.parse::<f64>().ok()?;
            typed(pg_type, trimmed)?
        }
        Type::BYTEA => Literal::Bytes(unescaped(text)?),
        Type::DATE | Type::TIME | Type::TIMESTAMP | Type::TIMESTAMPTZ | Type::INTERVAL => {
            typed(pg_type, trimmed)?
        }
        _ => Literal::Text(text.to_string()),
    })
}

fn from_binary(pg_type: &Type, bytes: &[u8]) -> Option<Literal> {
    if let Some(element) = element_of(pg_type) {
        return binary_array(&element, bytes);
    }
    let mut out = BytesMut::new();
    Some(match *pg_type {
        Type::BOOL => Literal::Bool(*array::<1>(bytes)?.first()? != 0),
        Type::INT2 => integer(i16::from_be_bytes(array(bytes)?).into()),
        Type::INT4 => integer(i32::from_be_bytes(array(bytes)?).into()),
        Type::INT8 => integer(i64::from_be_bytes(array(bytes)?)),
        Type::OID => integer(u32::from_be_bytes(array(bytes)?).into()),
        Type::FLOAT4 => typed(pg_type, &f32::from_be_bytes(array(bytes)?).to_string())?,
        Type::FLOAT8 => typed(pg_type, &f64::from_be_bytes(array(bytes)?).to_string())?,
        Type::NUMERIC => decimal(&numeric(bytes)?)?,
        Type::BYTEA => Literal::Bytes(bytes.to_vec()),
        Type::DATE => {
            let days = i32::from_be_bytes(array(bytes)?).checked_add(times::EPOCH_DAYS)?;
            times::date(days, &mut out);
            typed(pg_type, std::str::from_utf8(&out).ok()?)?
        }
        Type::TIME => {
            let micros = i64::from_be_bytes(array(bytes)?);
            times::time(
                (0..86_400_000_000).contains(&micros).then_some(micros)?,
                &mut out,
            );
            typed(pg_type, std::str::from_utf8(&out).ok()?)?
        }
        Type::TIMESTAMP | Type::TIMESTAMPTZ => {
            let micros = i64::from_be_bytes(array(bytes)?).checked_add(times::EPOCH_MICROS)?;
            times::timestamp(micros.checked_mul(1000)?, &mut out);
            if *pg_type == Type::TIMESTAMPTZ {
                out.extend_from_slice(b"+00:00");
            }
            typed(pg_type, std::str::from_utf8(&out).ok()?)?
        }
        Type::INTERVAL => {
            let (micros, rest) = bytes.split_at_checked(8)?;
            let (days, months) = rest.split_at_checked(4)?;
            let micros = i64::from_be_bytes(array(micros)?);
            let (days, months) = (
                i32::from_be_bytes(array(days)?),
                i32::from_be_bytes(array(months)?),
            );
            let sign = if micros < 0 { "-" } else { "" };
            let (seconds, rest) = (
                micros.unsigned_abs() / 1_000_000,
                micros.unsigned_abs() % 1_000_000,
            );
            let text = format!("{months} months {days} days {sign}{seconds}.{rest:06} seconds");
            typed(pg_type, &text)?
        }
        Type::UUID => Literal::Text(uuid(array(bytes)?)),
        // A version precedes the text.
        Type::JSONB => match bytes.split_first()? {
            (1, text) => Literal::Text(std::str::from_utf8(text).ok()?.to_string()),
            _ => return None,
        },
        _ => Literal::Text(std::str::from_utf8(bytes).ok()?.to_string()),
    })
}

fn array_of(element: &Type, elements: Vec<Literal>) -> Option<Literal> {
    let element_type = sql_type(element).ok()?;
    Some(Literal::Array {
        elements,
        element_type,
    })
}

/// The elements of `{1,NULL,"a \"b\""}`; of one dimension.
fn array_items(text: &str) -> Option<Vec<Option<String>>> {
    let mut chars = text
        .strip_prefix('{')?
        .strip_suffix('}')?
        .chars()
        .peekable();
    let mut items = Vec::new();
    if chars.peek().is_none() {
        return Some(items);
    }
    loop {
        let (mut item, mut quoted, mut inside) = (String::new(), false, false);
        let is_last = loop {
            match chars.next() {
                None if inside => return None,
                None => break true,
                Some(',') if !inside => break false,
                Some('{' | '}') if !inside => return None,
                Some('"') => {
                    quoted = true;
                    inside = !inside;
                }
                Some('\\') => item.push(chars.next()?),
                Some(other) => item.push(other),
            }
        };
        let is_null = !quoted && item.trim().eq_ignore_ascii_case("null");
        items.push((!is_null).then_some(item));
        if is_last {
            return Some(items);
        }
    }
}

/// Of at most one dimension. Source: array_recv in PostgreSQL's src/backend/utils/adt/arrayfuncs.c.
fn binary_array(element: &Type, bytes: &[u8]) -> Option<Literal> {
    let mut body = Body(bytes);
    let n_dimensions = body.i32().ok()?;
    let _has_nulls = body.i32().ok()?;
    if body.i32().ok()? as u32 != element.oid() {
        return None;
    }
    let n_elements = match n_dimensions {
        0 => 0,
        1 => {
            let n = body.i32().ok()?;
            let _lower_bound = body.i32().ok()?;
            n
        }
        _ => return None,
    };
    let elements = (0..n_elements).map(|_| match body.i32().ok()? {
        -1 => null(element).ok(),
        length => from_binary(element, body.bytes(usize::try_from(length).ok()?).ok()?),
    });
    let elements = elements.collect::<Option<Vec<_>>>()?;
    body.0.is_empty().then(|| array_of(element, elements))?
}

fn array<const N: usize>(bytes: &[u8]) -> Option<[u8; N]> {
    bytes.try_into().ok()
}

fn integer(n: i64) -> Literal {
    Literal::Integer(n.to_string())
}

fn typed(pg_type: &Type, text: &str) -> Option<Literal> {
    Some(Literal::Typed {
        text: text.to_string(),
        sql_type: sql_type(pg_type).ok()?,
    })
}

/// A decimal with the precision and scale that its digits need, within 76.
fn decimal(text: &str) -> Option<Literal> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = !(whole.is_empty() && fraction.is_empty());
    if !is_number || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let precision = whole.trim_start_matches('0').len() + fraction.len();
    if precision > 76 {
        return None;
    }
    let sql_type = format!("DECIMAL({}, {})", precision.max(1), fraction.len());
    let text = text.to_string();
    Some(Literal::Typed { text, sql_type })
}

/// The text of a binary `numeric`. Source: numeric_recv in PostgreSQL's src/backend/utils/adt/numeric.c.
fn numeric(bytes: &[u8]) -> Option<String> {
    let mut body = Body(bytes);
    let mut next = || body.i16().ok();
    let (n_groups, weight, sign, scale) = (next()?, next()?, next()? as u16, next()?);
    let sign = match sign {
        0 => "",
        0x4000 => "-",
        _ => return None,
    };
    if !(0..=76).contains(&scale) || !(-20..=20).contains(&weight) {
        return None;
    }
    let groups = (0..n_groups).map(|_| next().filter(|group| (0..10_000).contains(group)));
    let groups: Vec<i16> = groups.collect::<Option<_>>()?;
    let group = |power: i16| {
        let index = usize::try_from(weight - power).ok();
        index.and_then(|i| groups.get(i)).copied().unwrap_or(0)
    };
    let whole: String = (0..=weight.max(0))
        .rev()
        .map(|p| format!("{:04}", group(p)))
        .collect();
    let n_after = (scale + 3) / 4;
    let after: String = (1..=n_after).map(|p| format!("{:04}", group(-p))).collect();
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let after = &after[..usize::try_from(scale).ok()?];
    let point = if after.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{after}"))
}

/// `\x0aff`, or the older form with octal escapes.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .map(|byte| char::from(byte).to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()?;
        let pairs = digits.chunks(2).map(|pair| match pair {
            [high, low] => Some(high << 4 | low),
            _ => None,
        });
        return pairs.collect();
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        if *byte != b'\\' {
            bytes.push(*byte);
            rest = after;
        } else if let Some(after) = after.strip_prefix(b"\\") {
            bytes.push(b'\\');
            rest = after;
        } else {
            let (octal, after) = after.split_at_checked(3)?;
            let value = u16::from_str_radix(std::str::from_utf8(octal).ok()?, 8).ok()?;
            bytes.push(u8::try_from(value).ok()?);
            rest = after;
        }
    }
    Some(bytes)
}

fn uuid(bytes: [u8; 16]) -> String {
    let hex = |part: &[u8]| part.iter().map(|b| format!("{b:02x}")).collect::<String>();
    let parts = [
        &bytes[..4],
        &bytes[4..6],
        &bytes[6..8],
        &bytes[8..10],
        &bytes[10..],
    ];
    parts.map(hex).join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pg_type: Type, is_binary: bool, bytes: &[u8]) -> String {
        match value(1, &pg_type, is_binary, Some(bytes)) {
            Ok(Literal::Bool(truth)) => truth.to_string(),
            Ok(Literal::Integer(text) | Literal::Text(text)) => text,
            Ok(Literal::Typed { text, sql_type }) => format!("{text}::{sql_type}"),
            Ok(Literal::Bytes(bytes)) => format!("{bytes:?}"),
            Ok(Literal::Array { elements, .. }) => format!("{elements:?}"),
            Ok(Literal::Null(_)) => "null".into(),
            Err(failure) => failure.message,
        }
    }

    #[test]
    fn text_becomes_literals_of_its_type() {
        let text = |pg_type, text: &str| shown(pg_type, false, text.as_bytes());
        assert_eq!(text(Type::BOOL, "on"), "true");
        assert_eq!(text(Type::INT4, " -7 "), "-7");
        assert_eq!(
            text(Type::INT2, "40000"),
            "parameter $1: text that is no int2"
        );
        assert_eq!(text(Type::NUMERIC, "-012.50"), "-012.50::DECIMAL(4, 2)");
        assert_eq!(
            text(Type::NUMERIC, "NaN"),
            "parameter $1: text that is no numeric"
        );
        assert_eq!(text(Type::BYTEA, "\\x0aFF"), "[10, 255]");
        assert_eq!(text(Type::BYTEA, "a\\\\\\377"), "[97, 92, 255]");
        assert_eq!(text(Type::TEXT, "'; DROP TABLE t"), "'; DROP TABLE t");
        assert_eq!(
            text(Type::POINT, "(1,2)"),
            "parameters of type point are not supported"
        );
        assert_eq!(value(1, &Type::INT4, false, None), null(&Type::INT4));
    }

    #[test]
    fn arrays_are_of_one_dimension() {
        let integers = |elements: &[Option<&str>]| {
            let literal = |element: &Option<&str>| match element {
                Some(digits) => Literal::Integer(digits.to_string()),
                None => null(&Type::INT4).unwrap(),
            };
            let elements = elements.iter().map(literal).collect();
            Literal::Array {
                elements,
                element_type: "INTEGER".into(),
            }
        };
        let text = |text: &str| value(1, &Type::INT4_ARRAY, false, Some(text.as_bytes()));
        assert_eq!(
            text("{1, NULL,-2}"),
            Ok(integers(&[Some("1"), None, Some("-2")]))
        );
        assert_eq!(text("{}"), Ok(integers(&[])));
        assert_eq!(
            array_items(r#"{"a,b","NULL",null,"\"\\"}"#).unwrap(),
            [
                Some("a,b".into()),
                Some("NULL".into()),
                None,
                Some("\"\\".into())
            ]
        );
        for wrong in ["", "{", "{1", "{{1}}", "{\"}", "{a}"] {
            assert!(text(wrong).is_err(), "{wrong}");
        }
        let words = [1, 1, 23, 2, 1, 4, 7, -1];
        let bytes: Vec<u8> = words
            .iter()
            .flat_map(|word: &i32| word.to_be_bytes())
            .collect();
        let binary = |bytes: &[u8]| value(1, &Type::INT4_ARRAY, true, Some(bytes));
        assert_eq!(binary(&bytes), Ok(integers(&[Some("7"), None])));
        for end in 0..bytes.len() {
            assert!(binary(&bytes[..end]).is_err(), "{end}");
        }
    }

    #[test]
    fn binary_becomes_the_same_literals() {
        let binary = |pg_type, bytes: &[u8]| shown(pg_type, true, bytes);
        assert_eq!(binary(Type::INT8, &(-7_i64).to_be_bytes()), "-7");
        assert_eq!(binary(Type::DATE, &0_i32.to_be_bytes()), "2000-01-01::DATE");
        assert_eq!(
            binary(Type::TIMESTAMPTZ, &1_500_000_i64.to_be_bytes()),
            "2000-01-01 00:00:01.5+00:00::TIMESTAMP WITH TIME ZONE"
        );
        // 12345678.9: groups 1234, 5678, 9000.
        let numeric = [0, 3, 0, 1, 0x40, 0, 0, 1, 4, 0xd2, 0x16, 0x2e, 0x23, 0x28];
        assert_eq!(
            binary(Type::NUMERIC, &numeric),
            "-12345678.9::DECIMAL(9, 1)"
        );
        assert_eq!(binary(Type::JSONB, b"\x01{}"), "{}");
        for pg_type in [
            Type::INT8,
            Type::NUMERIC,
            Type::UUID,
            Type::TIME,
            Type::INTERVAL,
        ] {
            for wrong in [&b""[..], b"xyz", &[0xff; 8], &[0xff; 100]] {
                let is_refused = value(1, &pg_type, true, Some(wrong)).is_err();
                assert!(
                    is_refused || pg_type == Type::INT8 && wrong.len() == 8,
                    "{pg_type}"
                );
            }
        }
    }
}
