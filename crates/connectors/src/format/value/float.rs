//! Floats, rounded correctly from their decimal text.

use super::ValueFault;
use super::number::Number;

const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
];

/// The nearest `f64`. Errors: `Range` where that would be infinite.
///
/// Mantissa and power of ten are both exact where they are small, so that one operation rounds once
/// (Clinger, How to Read Floating Point Numbers Accurately, PLDI 1990).
#[inline]
pub fn float64(number: &Number, text: &[u8]) -> Result<f64, ValueFault> {
    const MAX_EXACT: u64 = 1 << 53;
    let power = POWERS.get(number.exponent.unsigned_abs() as usize);
    let Some(&power) = power.filter(|_| number.exact && number.mantissa <= MAX_EXACT) else {
        return finite(lexical_core::parse::<f64>(text).ok(), f64::is_finite);
    };
    let mantissa = number.mantissa as f64;
    let value = if number.exponent < 0 {
        mantissa / power
    } else {
        mantissa * power
    };
    Ok(if number.negative { -value } else { value })
}

/// The nearest `f32`, not the `f32` nearest to the nearest `f64`. Errors: as [`float64`].
#[inline]
pub fn float32(number: &Number, text: &[u8]) -> Result<f32, ValueFault> {
    const MAX_EXACT: u64 = 1 << 24;
    let power = POWERS[..11].get(number.exponent.unsigned_abs() as usize);
    let Some(&power) = power.filter(|_| number.exact && number.mantissa <= MAX_EXACT) else {
        return finite(lexical_core::parse::<f32>(text).ok(), f32::is_finite);
    };
    let (mantissa, power) = (number.mantissa as f32, power as f32);
    let value = if number.exponent < 0 {
        mantissa / power
    } else {
        mantissa * power
    };
    Ok(if number.negative { -value } else { value })
}

fn finite<T: Copy>(value: Option<T>, is_finite: fn(T) -> bool) -> Result<T, ValueFault> {
    let value = value.ok_or(ValueFault::Type)?;
    if is_finite(value) {
        Ok(value)
    } else {
        Err(ValueFault::Range)
    }
}

/// The floats that have no digits, as we write them.
pub fn special(text: &[u8]) -> Option<f64> {
    match text {
        b"NaN" => Some(f64::NAN),
        b"Infinity" => Some(f64::INFINITY),
        b"-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::scan;
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn parse64(text: &str) -> Result<f64, ValueFault> {
        float64(&scan(text.as_bytes()).expect("a number").0, text.as_bytes())
    }

    fn parse32(text: &str) -> Result<f32, ValueFault> {
        float32(&scan(text.as_bytes()).expect("a number").0, text.as_bytes())
    }

    #[test]
    fn floats_round_as_the_standard_library_does() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..20_000 {
            let digits: u64 = rng.random::<u64>() >> rng.random_range(0..64);
            let text = match rng.random_range(0..3) {
                0 => format!("{digits}e{}", rng.random_range(-330..300)),
                1 => format!("-{}.{:05}", digits >> 20, rng.random_range(0..100_000)),
                _ => format!("{}", f64::from_bits(digits).abs()),
            };
            if text.contains("inf") || text.contains("NaN") {
                continue;
            }
            let (expected, narrow): (f64, f32) = (text.parse().unwrap(), text.parse().unwrap());
            assert_eq!(
                parse64(&text).ok(),
                Some(expected).filter(|v| v.is_finite()),
                "{text}"
            );
            assert_eq!(
                parse32(&text).ok(),
                Some(narrow).filter(|v| v.is_finite()),
                "{text}"
            );
        }
    }

    #[test]
    fn ends_of_the_range() {
        assert!(parse64("-0").unwrap().is_sign_negative());
        assert_eq!(parse64("1e400"), Err(ValueFault::Range));
        assert_eq!(parse32("1e39"), Err(ValueFault::Range));
        assert_eq!(parse64("1e-400"), Ok(0.0));
        assert_eq!(special(b"-Infinity"), Some(f64::NEG_INFINITY));
        assert_eq!(special(b"nan"), None);
    }
}
