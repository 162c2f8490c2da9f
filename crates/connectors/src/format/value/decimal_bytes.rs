//! Decimals as bytes: the unscaled value in two's complement, big-endian, as Avro's `decimal` and Kafka
//! Connect's `Decimal` have it. The scale is known from elsewhere.

use arrow::datatypes::{Decimal128Type, Decimal256Type, DecimalType, i256};

use super::{ValueFault, binary};

/// The unscaled value. No bytes are 0.
pub fn from_bytes(bytes: &[u8]) -> Result<i256, ValueFault> {
    let fill = if bytes.first().is_some_and(|b| *b >= 0x80) {
        0xff
    } else {
        0
    };
    let (extra, rest) = bytes.split_at(bytes.len().saturating_sub(32));
    let mut whole = [fill; 32];
    whole[32 - rest.len()..].copy_from_slice(rest);
    let is_sign = extra.iter().all(|b| *b == fill) && (whole[0] >= 0x80) == (fill == 0xff);
    if !is_sign {
        return Err(ValueFault::Range);
    }
    Ok(i256::from_be_bytes(whole))
}

/// The same from base64 text.
pub fn from_base64(text: &[u8]) -> Result<i256, ValueFault> {
    let mut bytes = Vec::with_capacity(32);
    binary::decode_into(text, &mut bytes)?;
    from_bytes(&bytes)
}

/// Appends the fewest bytes that hold the value.
pub fn bytes_into(unscaled: i256, out: &mut Vec<u8>) {
    let bytes = unscaled.to_be_bytes();
    out.extend_from_slice(&bytes[n_sign_bytes(&bytes)..]);
}

/// Appends them as base64 text.
pub fn base64_into(unscaled: i256, out: &mut Vec<u8>) {
    let bytes = unscaled.to_be_bytes();
    binary::encode_into(&bytes[n_sign_bytes(&bytes)..], out);
}

/// Leading bytes that only repeat the sign.
fn n_sign_bytes(bytes: &[u8; 32]) -> usize {
    let is_sign =
        |pair: &[u8]| (pair[0] == 0 && pair[1] < 0x80) || (pair[0] == 0xff && pair[1] >= 0x80);
    bytes.windows(2).take_while(|pair| is_sign(pair)).count()
}

/// A value of `DECIMAL(precision, scale)` from one with scale `from`. Errors: digits that would be lost.
pub fn to_decimal128(
    unscaled: i256,
    from: i8,
    precision: u8,
    scale: i8,
) -> Result<i128, ValueFault> {
    let value = rescale(unscaled, from, scale)?
        .to_i128()
        .ok_or(ValueFault::Range)?;
    let fits = Decimal128Type::is_valid_decimal_precision(value, precision);
    fits.then_some(value).ok_or(ValueFault::Range)
}

/// The same for precisions above 38.
pub fn to_decimal256(
    unscaled: i256,
    from: i8,
    precision: u8,
    scale: i8,
) -> Result<i256, ValueFault> {
    let value = rescale(unscaled, from, scale)?;
    let fits = Decimal256Type::is_valid_decimal_precision(value, precision);
    fits.then_some(value).ok_or(ValueFault::Range)
}

fn rescale(unscaled: i256, from: i8, to: i8) -> Result<i256, ValueFault> {
    let shift = i32::from(to) - i32::from(from);
    if shift == 0 || unscaled == i256::ZERO {
        return Ok(unscaled);
    }
    let power = i256::from_i128(10).checked_pow(shift.unsigned_abs());
    match power {
        Some(power) if shift > 0 => unscaled.checked_mul(power).ok_or(ValueFault::Range),
        Some(power) if unscaled.wrapping_rem(power) == i256::ZERO => {
            Ok(unscaled.wrapping_div(power))
        }
        None if shift > 0 => Err(ValueFault::Range),
        _ => Err(ValueFault::Fraction),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide(value: i128) -> i256 {
        i256::from_i128(value)
    }

    #[test]
    fn bytes_are_the_shortest_twos_complement() {
        for (value, bytes) in [
            (0, &[0][..]),
            (1, &[1]),
            (-1, &[0xff]),
            (127, &[0x7f]),
            (128, &[0, 0x80]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
            // 1234.50 as a Debezium connector writes it: "AeI6".
            (123_450, &[0x01, 0xe2, 0x3a]),
        ] {
            let mut out = Vec::new();
            bytes_into(wide(value), &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(from_bytes(bytes), Ok(wide(value)));
        }
        assert_eq!(from_base64(b"AeI6"), Ok(wide(123_450)));
        assert_eq!(from_base64(b"A!"), Err(ValueFault::Type));
        for value in [i256::MAX, i256::MIN] {
            let mut out = Vec::new();
            bytes_into(value, &mut out);
            assert_eq!(from_bytes(&out), Ok(value));
        }
    }

    #[test]
    fn more_bytes_than_needed_are_read_and_too_many_digits_refused() {
        assert_eq!(from_bytes(&[]), Ok(i256::ZERO));
        assert_eq!(
            from_bytes(&[[0; 40].as_slice(), &[5]].concat()),
            Ok(wide(5))
        );
        assert_eq!(from_bytes(&[0xff; 40]), Ok(wide(-1)));
        let too_large = [&[1][..], &[0; 32]].concat();
        assert_eq!(from_bytes(&too_large), Err(ValueFault::Range));
        // 33 bytes of which the first is the sign of a value that fills the others.
        let unsigned = [&[0][..], &[0xff; 32]].concat();
        assert_eq!(from_bytes(&unsigned), Err(ValueFault::Range));
    }

    #[test]
    fn scales_change_only_where_no_digit_is_lost() {
        assert_eq!(to_decimal128(wide(12_300), 3, 10, 1), Ok(123));
        assert_eq!(to_decimal128(wide(123), 1, 10, 3), Ok(12_300));
        assert_eq!(
            to_decimal128(wide(12_345), 3, 10, 1),
            Err(ValueFault::Fraction)
        );
        assert_eq!(to_decimal128(wide(123), 0, 2, 0), Err(ValueFault::Range));
        assert_eq!(to_decimal128(wide(1), 0, 38, 100), Err(ValueFault::Range));
        assert_eq!(
            to_decimal128(wide(1), 100, 38, 0),
            Err(ValueFault::Fraction)
        );
        assert_eq!(to_decimal128(wide(0), 100, 38, 0), Ok(0));
        assert_eq!(
            to_decimal256(wide(1), 0, 76, 75),
            Ok(wide(10).checked_pow(75).unwrap())
        );
    }
}
