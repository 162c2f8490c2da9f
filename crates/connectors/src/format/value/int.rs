//! Whole numbers of any width.

use super::number::Number;
use super::{ValueFault, decimal};

/// The number as an integer. A spelling with a point or an exponent counts where the number is whole
/// (`68.0`, `1e3`): nothing is lost by it. Errors: `Fraction` for `68.32`, `Range`.
#[inline]
pub fn integer<T: TryFrom<i128>>(number: &Number, text: &[u8]) -> Result<T, ValueFault> {
    let value = if number.exact && number.exponent == 0 {
        let magnitude = i128::from(number.mantissa);
        if number.negative {
            -magnitude
        } else {
            magnitude
        }
    } else {
        decimal::scaled(number, text, 0)?
    };
    T::try_from(value).map_err(|_| ValueFault::Range)
}

#[cfg(test)]
mod tests {
    use super::super::number::scan;
    use super::*;

    fn parse<T: TryFrom<i128>>(text: &str) -> Result<T, ValueFault> {
        integer(&scan(text.as_bytes()).expect("a number").0, text.as_bytes())
    }

    #[test]
    fn integers_reach_both_ends_of_their_range() {
        assert_eq!(parse("-9223372036854775808"), Ok(i64::MIN));
        assert_eq!(parse("9223372036854775807"), Ok(i64::MAX));
        assert_eq!(parse("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(parse::<i64>("9223372036854775808"), Err(ValueFault::Range));
        assert_eq!(parse::<u64>("18446744073709551616"), Err(ValueFault::Range));
        assert_eq!(parse::<u8>("256"), Err(ValueFault::Range));
        assert_eq!(parse::<u8>("-1"), Err(ValueFault::Range));
        assert_eq!(parse::<u8>("-0"), Ok(0));
        assert_eq!(parse::<i64>("1e30"), Err(ValueFault::Range));
    }

    #[test]
    fn whole_numbers_count_however_they_are_spelled_and_fractions_never() {
        assert_eq!(parse("68.0"), Ok(68i64));
        assert_eq!(parse("1e3"), Ok(1000i16));
        assert_eq!(parse("2500e-2"), Ok(25i8));
        assert_eq!(parse::<i64>("68.32"), Err(ValueFault::Fraction));
        assert_eq!(parse::<i64>("1e-1"), Err(ValueFault::Fraction));
    }
}
