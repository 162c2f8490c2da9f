//! ISO 8601 durations, `P1Y2M3DT4H5M6.5S`, as Debezium spells intervals in its string mode.

use arrow::datatypes::IntervalMonthDayNano;

use super::super::value::ValueFault;

const SECOND: i64 = 1_000_000_000;

/// A whole text that is a duration. Errors: `Type`, `Range`, and `Fraction` for less than a nanosecond.
pub fn parse(text: &[u8]) -> Result<IntervalMonthDayNano, ValueFault> {
    let text = std::str::from_utf8(text).map_err(|_| ValueFault::Type)?;
    let text = text.strip_prefix('P').ok_or(ValueFault::Type)?;
    let (date, time) = text
        .split_once('T')
        .map_or((text, None), |(d, t)| (d, Some(t)));
    if date.is_empty() && time.is_none_or(str::is_empty) {
        return Err(ValueFault::Type);
    }
    let [mut months, mut days, mut nanos] = [0i64; 3];
    for (amount, unit) in parts(date)? {
        let (whole, fraction) = number(amount)?;
        if fraction != 0 {
            return Err(ValueFault::Type);
        }
        match unit {
            'Y' => add(&mut months, whole, 12)?,
            'M' => add(&mut months, whole, 1)?,
            'W' => add(&mut days, whole, 7)?,
            'D' => add(&mut days, whole, 1)?,
            _ => return Err(ValueFault::Type),
        }
    }
    for (amount, unit) in parts(time.unwrap_or_default())? {
        let (whole, fraction) = number(amount)?;
        let seconds = match unit {
            'H' => 3600,
            'M' => 60,
            'S' => 1,
            _ => return Err(ValueFault::Type),
        };
        add(&mut nanos, whole, seconds * SECOND)?;
        add(&mut nanos, fraction, seconds)?;
    }
    let narrow = |n: i64| i32::try_from(n).map_err(|_| ValueFault::Range);
    Ok(IntervalMonthDayNano::new(
        narrow(months)?,
        narrow(days)?,
        nanos,
    ))
}

fn add(sum: &mut i64, amount: i64, of: i64) -> Result<(), ValueFault> {
    let product = amount.checked_mul(of).ok_or(ValueFault::Range)?;
    *sum = sum.checked_add(product).ok_or(ValueFault::Range)?;
    Ok(())
}

/// `3D4H` as amounts with their units.
fn parts(mut text: &str) -> Result<Vec<(&str, char)>, ValueFault> {
    let mut parts = Vec::new();
    while !text.is_empty() {
        let end = text
            .find(|c: char| c.is_ascii_alphabetic())
            .ok_or(ValueFault::Type)?;
        let unit = text[end..].chars().next().ok_or(ValueFault::Type)?;
        parts.push((&text[..end], unit));
        text = &text[end + 1..];
    }
    Ok(parts)
}

/// A number and the billionths behind its point, both with its sign.
fn number(text: &str) -> Result<(i64, i64), ValueFault> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = digits.split_once(['.', ',']).unwrap_or((digits, "0"));
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return Err(ValueFault::Type);
    }
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 9 {
        return Err(ValueFault::Fraction);
    }
    let whole: i64 = whole.parse().map_err(|_| ValueFault::Range)?;
    let billionths: i64 = format!("{fraction:0<9}")
        .parse()
        .map_err(|_| ValueFault::Range)?;
    Ok((sign * whole, sign * billionths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        let of = IntervalMonthDayNano::new;
        for (text, expected) in [
            ("P1Y2M3DT4H5M6S", of(14, 3, 14_706 * SECOND)),
            ("PT0S", of(0, 0, 0)),
            ("P0D", of(0, 0, 0)),
            ("PT-1.5S", of(0, 0, -SECOND / 2 * 3)),
            ("P-1Y-2MT0.000000001S", of(-14, 0, 1)),
            ("P2W", of(0, 14, 0)),
            ("PT0.5H", of(0, 0, 1800 * SECOND)),
        ] {
            assert_eq!(parse(text.as_bytes()), Ok(expected), "{text}");
        }
        for text in [
            "", "P", "PT", "1Y", "P1", "P1X", "P1.5Y", "PT1D", "P--1Y", "PTS", "P1é", "PT1.S",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(ValueFault::Type), "{text}");
        }
        assert_eq!(parse(b"PT0.0000000001S"), Err(ValueFault::Fraction));
        assert_eq!(parse(b"P99999999999Y"), Err(ValueFault::Range));
    }
}
