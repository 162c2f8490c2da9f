//! Intervals: months, days and nanoseconds.

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::IntervalMonthDayNano;

use super::ValueFault;
use super::time::fraction;

/// A whole text that is an interval in PostgreSQL's spelling: `1 mon 2 days -03:04:05.5`.
pub fn parse(text: &[u8]) -> Result<IntervalMonthDayNano, ValueFault> {
    parse_words(
        std::str::from_utf8(text)
            .map_err(|_| ValueFault::Type)?
            .trim(),
    )
    .ok_or(ValueFault::Type)
}

fn parse_words(text: &str) -> Option<IntervalMonthDayNano> {
    let last = text.rsplit(' ').next().filter(|word| word.contains(':'));
    let Some(clock) = last else {
        return parse_units(text);
    };
    let nanos = parse_clock(clock)?;
    let units = text[..text.len() - clock.len()].trim_end();
    if units.is_empty() {
        return Some(IntervalMonthDayNano::new(0, 0, nanos));
    }
    let interval = parse_units(units)?;
    let nanos = interval.nanoseconds.checked_add(nanos)?;
    Some(IntervalMonthDayNano::new(
        interval.months,
        interval.days,
        nanos,
    ))
}

/// Numbers with units. A number without one is refused: Arrow would take it for months.
fn parse_units(text: &str) -> Option<IntervalMonthDayNano> {
    let has_units = text.ends_with(|c: char| c.is_ascii_alphabetic());
    has_units.then(|| parse_interval_month_day_nano(text).ok())?
}

/// Nanoseconds of `[-]H:MM:SS[.fraction]`.
fn parse_clock(text: &str) -> Option<i64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let mut parts = text.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next().unwrap_or("00"));
    let (seconds, digits) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let is_number = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let below_60 = |s: &str| s.parse::<i64>().ok().filter(|n| *n < 60);
    if parts.next().is_some() || ![hours, minutes, seconds, digits].into_iter().all(is_number) {
        return None;
    }
    let (nanos, is_finer, _) = fraction(digits.as_bytes())?;
    if is_finer {
        return None;
    }
    let minutes = hours
        .parse::<i64>()
        .ok()?
        .checked_mul(60)?
        .checked_add(below_60(minutes)?)?;
    let seconds = minutes.checked_mul(60)?.checked_add(below_60(seconds)?)?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(nanos)
        .map(|n| sign * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_in_sql_spelling() {
        let hours = 11_045_500_000_000;
        for (text, months, days, nanos) in [
            ("1 mon 2 days 03:04:05.5", 1, 2, hours),
            ("1 mon 2 days -03:04:05.5", 1, 2, -hours),
            ("03:04:05.500000000", 0, 0, hours),
            ("100:00", 0, 0, 360_000_000_000_000),
            ("1 year 1 second", 12, 0, 1_000_000_000),
            ("-5 days", 0, -5, 0),
        ] {
            let expected = IntervalMonthDayNano::new(months, days, nanos);
            assert_eq!(parse(text.as_bytes()), Ok(expected), "{text}");
        }
    }

    #[test]
    fn no_intervals() {
        for text in [
            "",
            "5",
            "soon",
            "1 day 5",
            "1:60",
            "1:00:60",
            "1:2:3:4",
            ":",
            "1:-1",
            "1:00:00.0000000001",
            "9999999999999:00",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(ValueFault::Type), "{text}");
        }
    }
}
