//! Exact decimals: from the digits as they are written, never through a float.

use arrow::datatypes::{Decimal128Type, Decimal256Type, DecimalType, i256};

use super::ValueFault;
use super::number::Number;

const POWERS: [u64; 20] = {
    let mut powers = [1u64; 20];
    let mut i = 1;
    while i < 20 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
};

/// The number in units of `10^-scale`. `text` is the number as it was scanned. Errors: `Fraction` where it
/// has digits (other than zero) that the scale cannot keep, `Range` where it does not fit.
#[inline]
pub fn scaled(number: &Number, text: &[u8], scale: i32) -> Result<i128, ValueFault> {
    let shift = number.exponent.saturating_add(scale);
    let magnitude = match shift {
        _ if !number.exact => {
            return scaled_slow(number, text, scale)?
                .to_i128()
                .ok_or(ValueFault::Range);
        }
        // 19 digits by 10^18 stay below 2^127.
        0..=18 => i128::from(number.mantissa) * i128::from(POWERS[shift as usize]),
        -19..0 => {
            let power = POWERS[-shift as usize];
            if !number.mantissa.is_multiple_of(power) {
                return Err(ValueFault::Fraction);
            }
            i128::from(number.mantissa / power)
        }
        _ => {
            return scaled_slow(number, text, scale)?
                .to_i128()
                .ok_or(ValueFault::Range);
        }
    };
    Ok(if number.negative {
        -magnitude
    } else {
        magnitude
    })
}

/// A value of `DECIMAL(precision, scale)`, precision at most 38.
#[inline]
pub fn decimal128(
    number: &Number,
    text: &[u8],
    precision: u8,
    scale: i8,
) -> Result<i128, ValueFault> {
    let value = scaled(number, text, scale.into())?;
    let fits = Decimal128Type::is_valid_decimal_precision(value, precision);
    if fits {
        Ok(value)
    } else {
        Err(ValueFault::Range)
    }
}

/// A value of `DECIMAL(precision, scale)`, precision at most 76.
pub fn decimal256(
    number: &Number,
    text: &[u8],
    precision: u8,
    scale: i8,
) -> Result<i256, ValueFault> {
    let value = scaled_slow(number, text, scale.into())?;
    let fits = Decimal256Type::is_valid_decimal_precision(value, precision);
    if fits {
        Ok(value)
    } else {
        Err(ValueFault::Range)
    }
}

/// Any number of digits: those that are significant are gathered one by one.
#[cold]
fn scaled_slow(number: &Number, text: &[u8], scale: i32) -> Result<i256, ValueFault> {
    let end = text
        .iter()
        .position(|b| matches!(b, b'e' | b'E'))
        .unwrap_or(text.len());
    let all: Vec<u8> = text[..end]
        .iter()
        .filter(|b| b.is_ascii_digit())
        .map(|b| b - b'0')
        .collect();
    let n_trailing = all.iter().rev().take_while(|d| **d == 0).count();
    let significant = &all[..all.len() - n_trailing];
    if significant.is_empty() {
        return Ok(i256::ZERO);
    }
    let trailing = i32::try_from(n_trailing).unwrap_or(i32::MAX);
    let shift = number
        .exponent
        .saturating_add(trailing)
        .saturating_add(scale);
    if shift < 0 {
        return Err(ValueFault::Fraction);
    }
    let ten = i256::from_i128(10);
    let zeros = (0..shift).map(|_| 0u8);
    let mut value = i256::ZERO;
    for digit in significant.iter().copied().chain(zeros) {
        let next = value
            .checked_mul(ten)
            .and_then(|v| v.checked_add(i256::from_i128(digit.into())));
        // Overflow ends the loop after at most 77 significant digits, whatever the exponent.
        value = next.ok_or(ValueFault::Range)?;
    }
    Ok(if number.negative {
        value.wrapping_neg()
    } else {
        value
    })
}

#[cfg(test)]
mod tests {
    use super::super::number::scan;
    use super::*;

    fn decimal(text: &str, precision: u8, scale: i8) -> Result<i128, ValueFault> {
        let (number, len) = scan(text.as_bytes()).expect("a number");
        assert_eq!(len, text.len());
        let narrow = decimal128(&number, text.as_bytes(), precision, scale);
        let wide = decimal256(&number, text.as_bytes(), precision, scale);
        assert_eq!(wide.map(|v| v.to_i128().unwrap()), narrow, "{text}");
        narrow
    }

    #[test]
    fn decimals_are_exact() {
        for (text, expected) in [
            ("50.00", 5000),
            ("50", 5000),
            ("5e1", 5000),
            ("50.000000", 5000),
            ("-0.01", -1),
            ("0.1", 10),
            ("1e-2", 1),
            ("0e-400", 0),
            ("0e400", 0),
            ("99999999.99", 9_999_999_999),
        ] {
            assert_eq!(decimal(text, 10, 2), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_not_rounded() {
        assert_eq!(decimal("0.001", 10, 2), Err(ValueFault::Fraction));
        assert_eq!(decimal("1e-400", 10, 2), Err(ValueFault::Fraction));
        assert_eq!(decimal("100000000", 10, 2), Err(ValueFault::Range));
        assert_eq!(decimal("1e400", 10, 2), Err(ValueFault::Range));
        assert_eq!(decimal("1e2147483647", 10, 2), Err(ValueFault::Range));
        assert_eq!(
            decimal("0.12345678901234567890123", 38, 20),
            Err(ValueFault::Fraction)
        );
    }

    #[test]
    fn the_widest_decimals_fit() {
        let nines = "9".repeat(38);
        assert_eq!(decimal(&nines, 38, 0), Ok(10i128.pow(38) - 1));
        assert_eq!(
            decimal(&format!("-0.{nines}"), 38, 38),
            Ok(1 - 10i128.pow(38))
        );
        assert_eq!(decimal(&format!("{nines}0"), 38, 0), Err(ValueFault::Range));

        let widest = "9".repeat(76);
        let (number, _) = scan(widest.as_bytes()).unwrap();
        let value = decimal256(&number, widest.as_bytes(), 76, 0).unwrap();
        assert_eq!(value.to_string(), widest);
        let wider = "9".repeat(77);
        let (number, _) = scan(wider.as_bytes()).unwrap();
        assert_eq!(
            decimal256(&number, wider.as_bytes(), 76, 0),
            Err(ValueFault::Range)
        );
    }
}
