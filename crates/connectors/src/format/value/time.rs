//! Times of day: `HH:MM[:SS[.fraction]]`.

use arrow::datatypes::TimeUnit;

use super::date::two_digits;
use super::{ValueFault, nanos_to_unit};

/// A whole text that is a time of day, since midnight in `unit`.
pub fn parse(text: &[u8], unit: TimeUnit) -> Result<i64, ValueFault> {
    let (clock, len) = scan(text).ok_or(ValueFault::Type)?;
    if len != text.len() {
        return Err(ValueFault::Type);
    }
    if clock.is_finer {
        return Err(ValueFault::Fraction);
    }
    nanos_to_unit(clock.nanos.into(), unit)
}

/// A time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds since midnight.
    pub nanos: i64,
    /// There were digits below a nanosecond other than zero.
    pub is_finer: bool,
}

/// The time at the start of `text` and its length; nothing where there is none.
#[inline]
pub fn scan(text: &[u8]) -> Option<(Clock, usize)> {
    let hm: &[u8; 5] = text.first_chunk()?;
    let (hour, minute) = (two_digits(hm[0], hm[1])?, two_digits(hm[3], hm[4])?);
    if hm[2] != b':' || hour > 23 || minute > 59 {
        return None;
    }
    let minutes = i64::from(hour * 60 + minute);
    let Some(&[b':', tens, ones]) = text[5..].first_chunk() else {
        return Some((
            Clock {
                nanos: minutes * 60_000_000_000,
                is_finer: false,
            },
            5,
        ));
    };
    let second = two_digits(tens, ones).filter(|s| *s < 60)?;
    let whole = (minutes * 60 + i64::from(second)) * 1_000_000_000;
    if text.get(8) != Some(&b'.') {
        return Some((
            Clock {
                nanos: whole,
                is_finer: false,
            },
            8,
        ));
    }
    let (fraction, is_finer, n_digits) = fraction(&text[9..])?;
    Some((
        Clock {
            nanos: whole + fraction,
            is_finer,
        },
        9 + n_digits,
    ))
}

/// Nanoseconds of the digits behind a point, whether more are lost, and how many digits there are.
#[inline]
pub(super) fn fraction(text: &[u8]) -> Option<(i64, bool, usize)> {
    let (mut nanos, mut is_finer, mut n_digits) = (0i64, false, 0);
    while let Some(digit) = text
        .get(n_digits)
        .map(|b| b.wrapping_sub(b'0'))
        .filter(|d| *d < 10)
    {
        if n_digits < 9 {
            nanos = nanos * 10 + i64::from(digit);
        } else {
            is_finer |= digit != 0;
        }
        n_digits += 1;
    }
    const POWERS: [i64; 10] = [
        1_000_000_000,
        100_000_000,
        10_000_000,
        1_000_000,
        100_000,
        10_000,
        1_000,
        100,
        10,
        1,
    ];
    (n_digits > 0).then(|| (nanos * POWERS[n_digits.min(9)], is_finer, n_digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day() {
        for (text, nanos) in [
            ("00:00", 0),
            ("00:00:01", 1_000_000_000),
            ("00:00:00.5", 500_000_000),
            ("00:00:00.000000001", 1),
            ("00:00:00.0000000010", 1),
            ("23:59:59.999999999", 86_399_999_999_999),
        ] {
            assert_eq!(
                parse(text.as_bytes(), TimeUnit::Nanosecond),
                Ok(nanos),
                "{text}"
            );
        }
        for text in [
            "",
            "1:00",
            "24:00:00",
            "00:60:00",
            "00:00:60",
            "00:00:00.",
            "00:00:0",
            "00:00Z",
            "00-00",
        ] {
            assert_eq!(
                parse(text.as_bytes(), TimeUnit::Nanosecond),
                Err(ValueFault::Type),
                "{text}"
            );
        }
    }

    #[test]
    fn digits_that_the_column_cannot_keep_are_refused() {
        let parse = |text: &str, unit| parse(text.as_bytes(), unit);
        assert_eq!(parse("00:00:01.500", TimeUnit::Millisecond), Ok(1500));
        assert_eq!(
            parse("00:00:01.0005", TimeUnit::Millisecond),
            Err(ValueFault::Fraction)
        );
        assert_eq!(
            parse("00:00:01.0000000005", TimeUnit::Nanosecond),
            Err(ValueFault::Fraction)
        );
    }
}
