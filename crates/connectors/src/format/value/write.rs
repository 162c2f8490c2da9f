//! Values as text, as [`super`] reads them: nothing is lost but what the type does not hold.

use arrow::array::types::ArrowPrimitiveType;
use arrow::datatypes::{Date32Type, IntervalMonthDayNano, TimeUnit, i256};

use super::unit_nanos;

/// A whole number.
pub fn int(value: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// The shortest text that reads back as the same float: `1.0`, `1e300`, `NaN`, `-Infinity`.
pub fn float<F: ryu::Float + Into<f64> + Copy>(value: F, out: &mut Vec<u8>) {
    let wide: f64 = value.into();
    let text = match wide {
        v if v.is_finite() => {
            return out.extend_from_slice(ryu::Buffer::new().format_finite(value).as_bytes());
        }
        v if v.is_nan() => "NaN",
        v if v > 0.0 => "Infinity",
        _ => "-Infinity",
    };
    out.extend_from_slice(text.as_bytes());
}

/// `value · 10^-scale`, with exactly `scale` digits behind the point.
pub fn decimal128(value: i128, scale: i8, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    decimal_digits(
        digits.format(value.unsigned_abs()).as_bytes(),
        value < 0,
        scale,
        out,
    );
}

/// As [`decimal128`].
pub fn decimal256(value: i256, scale: i8, out: &mut Vec<u8>) {
    let text = value.to_string();
    let digits = text.trim_start_matches('-').as_bytes();
    decimal_digits(digits, value.is_negative(), scale, out);
}

fn decimal_digits(digits: &[u8], is_negative: bool, scale: i8, out: &mut Vec<u8>) {
    if is_negative {
        out.push(b'-');
    }
    let n_fraction = usize::try_from(scale).unwrap_or(0);
    let n_whole = digits.len().saturating_sub(n_fraction);
    out.extend_from_slice(if n_whole == 0 {
        b"0"
    } else {
        &digits[..n_whole]
    });
    if n_fraction > 0 {
        out.push(b'.');
        out.resize(out.len() + n_fraction.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(&digits[n_whole..]);
    } else if digits != b"0" {
        out.resize(out.len() + usize::from(scale.unsigned_abs()), b'0');
    }
}

/// `YYYY-MM-DD`; a year of more than four digits, or before 0, has a sign (ISO 8601, expanded).
pub fn date(days: <Date32Type as ArrowPrimitiveType>::Native, out: &mut Vec<u8>) {
    date_of_days(days.into(), out);
}

/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `civil_from_days`.
fn date_of_days(days: i64, out: &mut Vec<u8>) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    match year {
        0..10_000 => two_twice(year, out),
        _ => {
            out.push(if year < 0 { b'-' } else { b'+' });
            out.extend_from_slice(format!("{:04}", year.unsigned_abs()).as_bytes());
        }
    }
    out.push(b'-');
    two(month, out);
    out.push(b'-');
    two(day, out);
}

#[inline]
fn two(number: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (number / 10) as u8, b'0' + (number % 10) as u8]);
}

#[inline]
fn two_twice(number: i64, out: &mut Vec<u8>) {
    two(number / 100, out);
    two(number % 100, out);
}

/// `HH:MM:SS`, with as many fraction digits as are needed.
pub fn time(since_midnight: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let nanos = since_midnight.saturating_mul(unit_nanos(unit));
    clock(nanos / 1_000_000_000, nanos % 1_000_000_000, out);
}

fn clock(seconds: i64, nanos: i64, out: &mut Vec<u8>) {
    let hours = seconds / 3600;
    if hours < 100 {
        two(hours, out)
    } else {
        int(hours, out)
    }
    out.push(b':');
    two(seconds / 60 % 60, out);
    out.push(b':');
    two(seconds % 60, out);
    fraction(nanos, out);
}

fn fraction(mut nanos: i64, out: &mut Vec<u8>) {
    if nanos == 0 {
        return;
    }
    let mut digits = *b".000000000";
    for digit in digits[1..].iter_mut().rev() {
        *digit = b'0' + (nanos % 10) as u8;
        nanos /= 10;
    }
    let n_zeros = digits.iter().rev().take_while(|d| **d == b'0').count();
    out.extend_from_slice(&digits[..10 - n_zeros]);
}

/// ISO 8601 in UTC, with `Z` where the column has a time zone.
pub fn timestamp(value: i64, unit: TimeUnit, has_zone: bool, out: &mut Vec<u8>) {
    let per_second = 1_000_000_000 / unit_nanos(unit);
    let (seconds, rest) = (value.div_euclid(per_second), value.rem_euclid(per_second));
    date_of_days(seconds.div_euclid(86_400), out);
    out.push(b'T');
    clock(seconds.rem_euclid(86_400), rest * unit_nanos(unit), out);
    if has_zone {
        out.push(b'Z');
    }
}

/// A number of `to` since the epoch or midnight. What is finer than `to` is dropped, towards the past.
pub fn in_unit(value: i64, from: TimeUnit, to: TimeUnit, out: &mut Vec<u8>) {
    let nanos = i128::from(value) * i128::from(unit_nanos(from));
    int(nanos.div_euclid(i128::from(unit_nanos(to))), out);
}

/// PostgreSQL's spelling: `1 mons -2 days 03:04:05.5`.
pub fn interval(value: IntervalMonthDayNano, out: &mut Vec<u8>) {
    let start = out.len();
    for (number, unit) in [(value.months, " mons "), (value.days, " days ")] {
        if number != 0 {
            int(number, out);
            out.extend_from_slice(unit.as_bytes());
        }
    }
    if value.nanoseconds != 0 || out.len() == start {
        duration(value.nanoseconds, TimeUnit::Nanosecond, out);
    } else {
        out.pop();
    }
}

/// `[-]HH:MM:SS[.fraction]`, with as many hours as there are.
pub fn duration(value: i64, unit: TimeUnit, out: &mut Vec<u8>) {
    let per_second = 1_000_000_000 / unit_nanos(unit);
    if value < 0 {
        out.push(b'-');
    }
    // The remainder of the lowest value is smaller in size than it, so that it can be negated.
    let (seconds, rest) = (value / per_second, (value % per_second).abs());
    match seconds.checked_abs() {
        Some(seconds) => clock(seconds, rest * unit_nanos(unit), out),
        None => out.extend_from_slice(b"2562047788015215:30:08"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::value::{
        date as read_date, interval as read_interval, timestamp as read_timestamp,
    };
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn floats() {
        for (value, expected) in [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e300, "1e300"),
            (0.1, "0.1"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(text(|out| float(value, out)), expected);
        }
        assert_eq!(text(|out| float(0.1f32, out)), "0.1");
    }

    #[test]
    fn decimals_keep_every_digit() {
        for (value, scale, expected) in [
            (5000, 2, "50.00"),
            (-1, 2, "-0.01"),
            (0, 2, "0.00"),
            (12, 0, "12"),
            (12, -2, "1200"),
            (0, -2, "0"),
            (i128::MIN, 38, "-1.70141183460469231731687303715884105728"),
        ] {
            assert_eq!(text(|out| decimal128(value, scale, out)), expected);
            assert_eq!(
                text(|out| decimal256(i256::from_i128(value), scale, out)),
                expected
            );
        }
    }

    #[test]
    fn dates_and_timestamps_are_read_back() {
        let mut rng = StdRng::seed_from_u64(3);
        for _ in 0..2000 {
            let days = rng.random_range(-719_528..2_932_897);
            assert_eq!(
                read_date::parse(text(|out| date(days, out)).as_bytes()),
                Ok(days)
            );
            let nanos: i64 = rng.random::<i64>() >> rng.random_range(0..40);
            let written = text(|out| timestamp(nanos, TimeUnit::Nanosecond, true, out));
            assert_eq!(
                read_timestamp::parse(written.as_bytes(), TimeUnit::Nanosecond),
                Ok(nanos),
                "{written}"
            );
        }
    }

    #[test]
    fn fraction_digits_only_as_needed() {
        let at = |millis| text(|out| timestamp(millis, TimeUnit::Millisecond, false, out));
        assert_eq!(at(1_704_103_215_020), "2024-01-01T10:00:15.02");
        assert_eq!(at(1_704_103_215_000), "2024-01-01T10:00:15");
        assert_eq!(at(-1), "1969-12-31T23:59:59.999");
        assert_eq!(
            text(|out| time(1, TimeUnit::Nanosecond, out)),
            "00:00:00.000000001"
        );
        assert_eq!(
            text(|out| timestamp(i64::MAX, TimeUnit::Second, true, out)),
            "+292277026596-12-04T15:30:07Z"
        );
    }

    #[test]
    fn other_units_lose_only_what_is_finer() {
        let micros =
            |nanos| text(|out| in_unit(nanos, TimeUnit::Nanosecond, TimeUnit::Microsecond, out));
        assert_eq!(
            (micros(1_500), micros(-1), micros(2_000)),
            ("1".into(), "-1".into(), "2".into())
        );
        assert_eq!(
            text(|out| in_unit(i64::MAX, TimeUnit::Second, TimeUnit::Nanosecond, out)).len(),
            28
        );
    }

    #[test]
    fn intervals_are_read_back() {
        for (months, days, nanos, expected) in [
            (0, 0, 0, "00:00:00"),
            (1, 0, 0, "1 mons"),
            (-1, 2, -11_045_500_000_000, "-1 mons 2 days -03:04:05.5"),
            (0, 0, 360_000_000_000_000, "100:00:00"),
            (
                i32::MIN,
                i32::MAX,
                i64::MAX,
                "-2147483648 mons 2147483647 days 2562047:47:16.854775807",
            ),
        ] {
            let value = IntervalMonthDayNano::new(months, days, nanos);
            let written = text(|out| interval(value, out));
            assert_eq!(written, expected);
            assert_eq!(read_interval::parse(written.as_bytes()), Ok(value));
        }
        assert_eq!(
            text(|out| duration(i64::MIN, TimeUnit::Second, out)),
            "-2562047788015215:30:08"
        );
        assert_eq!(
            text(|out| duration(i64::MIN, TimeUnit::Nanosecond, out)),
            "-2562047:47:16.854775808"
        );
        assert_eq!(
            text(|out| duration(-1_500, TimeUnit::Millisecond, out)),
            "-00:00:01.5"
        );
    }
}
