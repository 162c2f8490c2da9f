//! Instants: ISO 8601 text and numbers since the UTC epoch.
//!
//! A text with an offset is converted to UTC; one without is taken as UTC, with and without time zone
//! in the column's type alike.

use arrow::datatypes::TimeUnit;

use super::number::Number;
use super::{ValueFault, date, decimal, float, nanos_to_unit, time};

/// What a number in the place of a timestamp counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EpochUnit {
    /// Found out from the magnitude (semantics 6.4): below 10^11 seconds, below 10^14 milliseconds, below
    /// 10^17 microseconds, else nanoseconds. That is right for instants from 1973 to the year 5138.
    #[default]
    ByMagnitude,
    /// Always this unit.
    Fixed(TimeUnit),
    /// Numbers are no timestamps.
    Refused,
}

/// A whole text that is a timestamp, in `unit` since the epoch: `YYYY-MM-DD`, then optionally `T` or a
/// space and a time of day, then optionally `Z` or an offset.
#[inline]
pub fn parse(text: &[u8], unit: TimeUnit) -> Result<i64, ValueFault> {
    let date: &[u8; 10] = text.first_chunk().ok_or(ValueFault::Type)?;
    let days = date::from_ascii(date).ok_or(ValueFault::Type)?;
    let midnight = i64::from(days) * 86_400;
    if text.len() == 10 {
        return in_unit(midnight, 0, unit);
    }
    if !matches!(text[10], b'T' | b' ' | b't') {
        return Err(ValueFault::Type);
    }
    let (clock, len) = time::scan(&text[11..]).ok_or(ValueFault::Type)?;
    let offset = match &text[11 + len..] {
        [] | b"Z" | b"z" => 0,
        zone => offset_seconds(zone).ok_or(ValueFault::Type)?,
    };
    if clock.is_finer {
        return Err(ValueFault::Fraction);
    }
    let seconds = midnight + clock.nanos / 1_000_000_000 - offset;
    in_unit(seconds, clock.nanos % 1_000_000_000, unit)
}

#[inline]
fn in_unit(seconds: i64, nanos: i64, unit: TimeUnit) -> Result<i64, ValueFault> {
    if unit == TimeUnit::Nanosecond {
        // Ten thousand years of seconds fit an i64 in every unit but this.
        let instant = i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        return i64::try_from(instant).map_err(|_| ValueFault::Range);
    }
    nanos_to_unit(
        i128::from(seconds) * 1_000_000_000 + i128::from(nanos),
        unit,
    )
}

/// Seconds of `+hh`, `+hhmm` or `+hh:mm`.
fn offset_seconds(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = zone.split_first()?;
    let digits = match rest {
        [a, b] => [*a, *b, b'0', b'0'],
        [a, b, c, d] | [a, b, b':', c, d] => [*a, *b, *c, *d],
        _ => return None,
    };
    let hours = date::two_digits(digits[0], digits[1]).filter(|h| *h < 24)?;
    let minutes = date::two_digits(digits[2], digits[3]).filter(|m| *m < 60)?;
    let seconds = i64::from(hours * 3600 + minutes * 60);
    match sign {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

/// A number since the epoch, in `unit`. `text` is the number as it was scanned; it may have a
/// fraction, as long as the column can keep it.
pub fn from_number(
    number: &Number,
    text: &[u8],
    epoch: EpochUnit,
    unit: TimeUnit,
) -> Result<i64, ValueFault> {
    let counted = match epoch {
        EpochUnit::Refused => return Err(ValueFault::Type),
        EpochUnit::Fixed(counted) => counted,
        EpochUnit::ByMagnitude => by_magnitude(float::float64(number, text)?.abs()),
    };
    let digits_to_nanos = match counted {
        TimeUnit::Second => 9,
        TimeUnit::Millisecond => 6,
        TimeUnit::Microsecond => 3,
        TimeUnit::Nanosecond => 0,
    };
    nanos_to_unit(decimal::scaled(number, text, digits_to_nanos)?, unit)
}

fn by_magnitude(size: f64) -> TimeUnit {
    match size {
        s if s < 1e11 => TimeUnit::Second,
        s if s < 1e14 => TimeUnit::Millisecond,
        s if s < 1e17 => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::scan;
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    fn nanos(text: &str) -> Result<i64, ValueFault> {
        parse(text.as_bytes(), TimeUnit::Nanosecond)
    }

    #[test]
    fn iso_texts() {
        let base = 1_704_103_215 * SECOND; // 2024-01-01T10:00:15Z
        for (text, expected) in [
            ("2024-01-01T10:00:15Z", base),
            ("2024-01-01T10:00:15", base),
            ("2024-01-01 10:00:15", base),
            ("2024-01-01t10:00:15z", base),
            ("2024-01-01T10:00:15.020Z", base + 20_000_000),
            ("2024-01-01T10:00:15.123456789", base + 123_456_789),
            ("2024-01-01T12:00:15+02:00", base),
            ("2024-01-01T12:00:15+0200", base),
            ("2024-01-01 12:00:15+02", base),
            ("2024-01-01T04:30:15-05:30", base),
            ("2024-01-01T10:00", base - 15 * SECOND),
            ("2024-01-01", base - 36_015 * SECOND),
            ("1969-12-31T23:59:59.5", -SECOND / 2),
        ] {
            assert_eq!(nanos(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn no_timestamps() {
        for text in [
            "",
            "2024-01-01T",
            "2024-01-01T10",
            "2024-01-01X10:00:00",
            "2024-01-01T10:00:00Zulu",
            "2024-01-01T10:00:00+2",
            "2024-01-01T10:00:00+24:00",
            "2024-01-01T10:00:00.Z",
            "10:00:00",
            "2024-02-30T10:00:00Z",
            "2024-01-01T25:00:00Z",
            "1704103215",
        ] {
            assert_eq!(nanos(text), Err(ValueFault::Type), "{text}");
        }
    }

    #[test]
    fn instants_outside_the_unit_are_refused() {
        assert_eq!(nanos("2262-04-11T23:47:16.854775807Z"), Ok(i64::MAX));
        assert_eq!(
            nanos("2262-04-11T23:47:16.854775808Z"),
            Err(ValueFault::Range)
        );
        assert_eq!(nanos("0001-01-01T00:00:00Z"), Err(ValueFault::Range));
        assert_eq!(
            parse(b"0001-01-01T00:00:00Z", TimeUnit::Microsecond),
            Ok(-62_135_596_800_000_000)
        );
        assert_eq!(
            parse(b"2024-01-01T10:00:15.1234", TimeUnit::Millisecond),
            Err(ValueFault::Fraction)
        );
        assert_eq!(
            nanos("2024-01-01T10:00:15.1234567891"),
            Err(ValueFault::Fraction)
        );
    }

    fn number(text: &str, epoch: EpochUnit, unit: TimeUnit) -> Result<i64, ValueFault> {
        let (number, _) = scan(text.as_bytes()).expect("a number");
        from_number(&number, text.as_bytes(), epoch, unit)
    }

    #[test]
    fn numbers_count_by_their_magnitude() {
        let expected = Ok(1_704_103_215_000_000_000);
        for text in [
            "1704103215",
            "1704103215000",
            "1704103215000000",
            "1704103215000000000",
            "1704103215.000",
        ] {
            assert_eq!(
                number(text, EpochUnit::ByMagnitude, TimeUnit::Nanosecond),
                expected,
                "{text}"
            );
        }
        assert_eq!(
            number(
                "1704103215.25",
                EpochUnit::ByMagnitude,
                TimeUnit::Millisecond
            ),
            Ok(1_704_103_215_250)
        );
        assert_eq!(
            number("-1.5", EpochUnit::ByMagnitude, TimeUnit::Nanosecond),
            Ok(-1_500_000_000)
        );
    }

    #[test]
    fn a_fixed_unit_is_never_guessed() {
        let millis = EpochUnit::Fixed(TimeUnit::Millisecond);
        assert_eq!(number("5", millis, TimeUnit::Nanosecond), Ok(5_000_000));
        assert_eq!(
            number("1500", millis, TimeUnit::Second),
            Err(ValueFault::Fraction)
        );
        assert_eq!(
            number("5", EpochUnit::Refused, TimeUnit::Nanosecond),
            Err(ValueFault::Type)
        );
        assert_eq!(
            number("1e30", millis, TimeUnit::Nanosecond),
            Err(ValueFault::Range)
        );
    }
}
