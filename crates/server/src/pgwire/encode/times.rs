//! Dates, times and intervals: arithmetic, and PostgreSQL's ISO style. What is finer than a microsecond
//! is cut off, as the protocol has no room for it.

use bytes::{BufMut, BytesMut};

/// Days from 1970-01-01 to 2000-01-01, which the binary formats count from.
pub const EPOCH_DAYS: i32 = 10_957;
pub const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * DAY_MICROS;
const DAY_MICROS: i64 = 86_400_000_000;

pub fn micros(nanos: i64) -> i64 {
    nanos.div_euclid(1000)
}

/// `2024-01-31`; before the year 1 `0044-03-15 BC`.
pub fn date(days: i32, out: &mut BytesMut) {
    let before_christ = ymd(days.into(), out);
    if before_christ {
        out.put_slice(b" BC");
    }
}

/// `2024-01-31 10:00:15.5`.
pub fn timestamp(nanos: i64, out: &mut BytesMut) {
    let micros = micros(nanos);
    ymd(micros.div_euclid(DAY_MICROS), out);
    out.put_u8(b' ');
    time(micros.rem_euclid(DAY_MICROS), out);
}

/// Year, month and day of the proleptic Gregorian calendar. Source: Howard Hinnant, "chrono-Compatible
/// Low-Level Date Algorithms", civil_from_days.
fn ymd(days: i64, out: &mut BytesMut) -> bool {
    let z = days + 719_468;
    let (era, of_era) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let before_christ = year <= 0;
    padded(if before_christ { 1 - year } else { year } as u64, 4, out);
    out.put_u8(b'-');
    padded(month as u64, 2, out);
    out.put_u8(b'-');
    padded(day as u64, 2, out);
    before_christ
}

/// `10:00:15.5`, of microseconds that are not negative.
pub fn time(micros: i64, out: &mut BytesMut) {
    let seconds = micros / 1_000_000;
    padded((seconds / 3600) as u64, 2, out);
    out.put_u8(b':');
    padded((seconds / 60 % 60) as u64, 2, out);
    out.put_u8(b':');
    padded((seconds % 60) as u64, 2, out);
    let mut fraction = micros % 1_000_000;
    if fraction > 0 {
        let mut digits = 6;
        while fraction % 10 == 0 {
            fraction /= 10;
            digits -= 1;
        }
        out.put_u8(b'.');
        padded(fraction as u64, digits, out);
    }
}

/// `1 year 2 mons -3 days 04:05:06.7`; nothing at all is `00:00:00`.
pub fn interval(months: i32, days: i32, nanos: i64, out: &mut BytesMut) {
    let start = out.len();
    let part = |n: i32, unit: &str, out: &mut BytesMut| {
        if n != 0 {
            if out.len() > start {
                out.put_u8(b' ');
            }
            integer(n.into(), out);
            out.put_u8(b' ');
            out.put_slice(unit.as_bytes());
            if n != 1 {
                out.put_u8(b's');
            }
        }
    };
    part(months / 12, "year", out);
    part(months % 12, "mon", out);
    part(days, "day", out);
    // Towards zero, as the sign stands apart.
    let micros = nanos / 1000;
    if micros != 0 || out.len() == start {
        if out.len() > start {
            out.put_u8(b' ');
        }
        if micros < 0 {
            out.put_u8(b'-');
        }
        time(micros.abs(), out);
    }
}

pub fn integer(n: i64, out: &mut BytesMut) {
    if n < 0 {
        out.put_u8(b'-');
    }
    padded(n.unsigned_abs(), 1, out);
}

/// At least `width` digits.
pub fn padded(mut n: u64, width: usize, out: &mut BytesMut) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while n > 0 {
        start -= 1;
        digits[start] = b'0' + (n % 10) as u8;
        n /= 10;
    }
    let start = start.min(digits.len() - width);
    out.put_slice(&digits[start..]);
}
