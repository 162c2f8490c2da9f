//! Intervals: months, days and nanoseconds.

use arrow::compute::kernels::cast_utils::parse_interval_month_day_nano;
use arrow::datatypes::IntervalMonthDayNano;

use super::ValueFault;

/// A whole text that is an interval in SQL's spelling: `1 mon 2 days 03:04:05.5`.
pub fn parse(text: &[u8]) -> Result<IntervalMonthDayNano, ValueFault> {
    let text = std::str::from_utf8(text).map_err(|_| ValueFault::Type)?;
    parse_interval_month_day_nano(text).map_err(|_| ValueFault::Type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_in_sql_spelling() {
        let expected = IntervalMonthDayNano::new(1, 2, 11_045_500_000_000);
        assert_eq!(parse(b"1 mon 2 days 03:04:05.5"), Ok(expected));
        assert_eq!(parse(b"soon"), Err(ValueFault::Type));
    }
}
