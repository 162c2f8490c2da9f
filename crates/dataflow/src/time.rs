//! Event time, watermarks and durations. All instants are nanoseconds since the UTC epoch.

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;

/// A claim that event time has reached an instant (nanoseconds since the UTC epoch).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watermark(i64);

impl Watermark {
    /// Nothing is claimed yet.
    pub const NONE: Self = Self(i64::MIN);
    /// The end of a bounded input: closes every window, expires no keyed state (semantics 2.3).
    pub const END: Self = Self(i64::MAX);

    pub fn at(nanos: i64) -> Self {
        // The two ends are reserved; an instant there is 292 years away from the epoch.
        Self(nanos.clamp(i64::MIN + 1, i64::MAX - 1))
    }

    /// The instant reached, as far as windows are concerned: `i64::MAX` at the end of input.
    pub fn nanos(self) -> i64 {
        self.0
    }

    /// The instant reached, where it is neither absent nor the end of a bounded input.
    pub fn finite(self) -> Option<i64> {
        (self != Self::NONE && self != Self::END).then_some(self.0)
    }

    pub fn has_reached(self, nanos: i64) -> bool {
        self.0 >= nanos
    }
}

/// The event time of a row that has none: a constant, or the row of a global aggregate over no input. It
/// lies in no window, and what is grouped by it does not expire.
pub const TIMELESS: i64 = i64::MAX;

/// Nanoseconds of a duration written as in SQL: `'1 hour'`, `'5 minutes 30 seconds'`, `'250 ms'`,
/// `'00:05:00'`; `'0'` is zero. Months and years are refused, for they have no exact length.
pub fn parse_duration(text: &str) -> Result<i64, String> {
    let trimmed = text.trim();
    if trimmed == "0" {
        return Ok(0);
    }
    if trimmed.parse::<f64>().is_ok() {
        return Err(format!(
            "'{trimmed}' has no unit; write for example '{trimmed} seconds'"
        ));
    }
    let interval = parse_interval_month_day_nano(trimmed).map_err(|_| {
        format!(
            "'{trimmed}' is not a duration; write for example '5 minutes' or '250 milliseconds'"
        )
    })?;
    if interval.months != 0 {
        return Err(format!(
            "'{trimmed}' has no exact length: months and years vary; write days or hours"
        ));
    }
    i64::from(interval.days)
        .checked_mul(86_400_000_000_000)
        .and_then(|d| d.checked_add(interval.nanoseconds))
        .ok_or_else(|| format!("'{trimmed}' is longer than 292 years"))
}

/// A duration for people: `1d`, `90s`, `1h 30m`, `250ms`.
pub fn format_duration(nanos: i64) -> String {
    const UNITS: [(&str, i64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ];
    if nanos == 0 {
        return "0s".to_string();
    }
    let mut rest = nanos.unsigned_abs();
    let mut parts = Vec::new();
    for (unit, size) in UNITS {
        let n = rest / size as u64;
        rest %= size as u64;
        if n > 0 {
            parts.push(format!("{n}{unit}"));
        }
    }
    let sign = if nanos < 0 { "-" } else { "" };
    format!("{sign}{}", parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_parse_in_the_spellings_of_sql() {
        let sec = 1_000_000_000;
        for (text, nanos) in [
            ("1 hour", 3600 * sec),
            ("5 minutes 30 seconds", 330 * sec),
            ("250 milliseconds", sec / 4),
            ("1 day", 86_400 * sec),
            ("0", 0),
        ] {
            assert_eq!(parse_duration(text), Ok(nanos), "{text}");
        }
        assert!(
            parse_duration("1 month")
                .unwrap_err()
                .contains("no exact length")
        );
        assert!(parse_duration("10").unwrap_err().contains("no unit"));
        assert!(
            parse_duration("soon")
                .unwrap_err()
                .contains("not a duration")
        );
    }

    #[test]
    fn durations_print_for_people() {
        assert_eq!(format_duration(5_400_000_000_000), "1h 30m");
        assert_eq!(format_duration(0), "0s");
        assert_eq!(format_duration(-250_000_000), "-250ms");
    }

    #[test]
    fn the_end_of_input_closes_windows_but_is_not_finite() {
        assert!(Watermark::END.has_reached(i64::MAX - 1));
        assert_eq!(Watermark::END.finite(), None);
        assert_eq!(Watermark::at(5).finite(), Some(5));
    }
}
