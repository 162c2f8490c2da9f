//! Calendar dates: `YYYY-MM-DD`, as days since 1970-01-01.

use super::ValueFault;

/// A whole text that is a date.
pub fn parse(text: &[u8]) -> Result<i32, ValueFault> {
    let text: &[u8; 10] = text.try_into().map_err(|_| ValueFault::Type)?;
    from_ascii(text).ok_or(ValueFault::Type)
}

/// Days of `YYYY-MM-DD` in the proleptic Gregorian calendar; nothing where that is no date.
#[inline]
pub fn from_ascii(text: &[u8; 10]) -> Option<i32> {
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two_digits(text[0], text[1])? * 100 + two_digits(text[2], text[3])?;
    let month = two_digits(text[5], text[6])?;
    let day = two_digits(text[8], text[9])?;
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    Some(days_from_civil(year as i32, month as i32, day as i32))
}

#[inline(always)]
pub(super) fn two_digits(tens: u8, ones: u8) -> Option<u32> {
    let (tens, ones) = (tens.wrapping_sub(b'0'), ones.wrapping_sub(b'0'));
    (tens < 10 && ones < 10).then(|| u32::from(tens) * 10 + u32::from(ones))
}

fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Source: Howard Hinnant, chrono-Compatible Low-Level Date Algorithms, `days_from_civil`; years from 0.
#[inline]
fn days_from_civil(year: i32, month: i32, day: i32) -> i32 {
    // Years begin in March here, so that the leap day is a year's last; 400 keep year 0 positive.
    let year = if month <= 2 { year - 1 } else { year } + 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let (era, year_of_era) = (year / 400, year % 400);
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    (era - 1) * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::{Datelike, NaiveDate};

    #[test]
    fn every_day_of_a_cycle_of_leap_years_and_the_ends_of_all_others() {
        let check = |date: NaiveDate| {
            let text = format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day());
            let days = date.signed_duration_since(NaiveDate::default()).num_days();
            assert_eq!(parse(text.as_bytes()).map(i64::from), Ok(days), "{text}");
        };
        let first = NaiveDate::from_ymd_opt(1900, 1, 1).unwrap();
        first.iter_days().take(146_097).for_each(check);
        for year in 0..10_000 {
            for (month, day) in [(1, 1), (2, 28), (3, 1), (12, 31)] {
                check(NaiveDate::from_ymd_opt(year, month, day).unwrap());
            }
        }
    }

    #[test]
    fn no_dates() {
        for text in [
            "",
            "2024-1-1",
            "2024-02-30",
            "2023-02-29",
            "1900-02-29",
            "2024-00-10",
            "2024-13-01",
            "2024-01-00",
            "2024/01/01",
            "2024-01-01T",
            "+2024-01-0",
            "20240101",
            "2024-01-0a",
        ] {
            assert_eq!(parse(text.as_bytes()), Err(ValueFault::Type), "{text}");
        }
        assert!(parse(b"2000-02-29").is_ok());
    }
}
