//! Decimals as Kafka Connect spells them: base64 of the unscaled value, big-endian in two's complement, with a scale
//! beside it. Exact, or a fault.

use arrow::datatypes::{Decimal128Type, Decimal256Type, DecimalType, i256};

use super::super::value::{ValueFault, binary};

/// A number, in units of `10^-scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unscaled {
    value: i256,
    scale: i32,
}

impl Unscaled {
    /// Of the text of a JSON string. Errors: `Type` for what is no base64 (with its padding), `Range` for more digits
    /// than any column has.
    pub fn from_base64(text: &[u8], scale: i32) -> Result<Self, ValueFault> {
        let mut bytes = Vec::with_capacity(text.len());
        if text.is_empty() || !text.len().is_multiple_of(4) {
            return Err(ValueFault::Type);
        }
        binary::decode_into(text, &mut bytes)?;
        let negative = bytes.first().ok_or(ValueFault::Type)? & 0x80 != 0;
        let mut wide = [if negative { 0xff } else { 0 }; 32];
        let start = wide
            .len()
            .checked_sub(bytes.len())
            .ok_or(ValueFault::Range)?;
        wide[start..].copy_from_slice(&bytes);
        Ok(Self {
            value: i256::from_be_bytes(wide),
            scale,
        })
    }

    /// In units of `10^-scale`. Errors: `Fraction` where digits would be lost, `Range`.
    fn rescaled(self, scale: i32) -> Result<i256, ValueFault> {
        let ten = i256::from_i128(10);
        let mut value = self.value;
        if value == i256::ZERO {
            return Ok(value);
        }
        // A value that is not zero has at most 78 digits, so both loops end early.
        for _ in self.scale..scale {
            value = value.checked_mul(ten).ok_or(ValueFault::Range)?;
        }
        for _ in scale..self.scale {
            if value.wrapping_rem(ten) != i256::ZERO {
                return Err(ValueFault::Fraction);
            }
            value = value.wrapping_div(ten);
        }
        Ok(value)
    }

    pub fn decimal128(self, precision: u8, scale: i8) -> Result<i128, ValueFault> {
        let value = self
            .rescaled(scale.into())?
            .to_i128()
            .ok_or(ValueFault::Range)?;
        match Decimal128Type::is_valid_decimal_precision(value, precision) {
            true => Ok(value),
            false => Err(ValueFault::Range),
        }
    }

    pub fn decimal256(self, precision: u8, scale: i8) -> Result<i256, ValueFault> {
        let value = self.rescaled(scale.into())?;
        match Decimal256Type::is_valid_decimal_precision(value, precision) {
            true => Ok(value),
            false => Err(ValueFault::Range),
        }
    }

    /// As a JSON number: `-12.50`, `15e20`.
    pub fn to_text(self) -> String {
        let digits = self.value.to_string();
        let (sign, digits) = match digits.strip_prefix('-') {
            Some(rest) => ("-", rest),
            None => ("", digits.as_str()),
        };
        match usize::try_from(self.scale) {
            Ok(0) => format!("{sign}{digits}"),
            Ok(scale) if scale <= 1000 => {
                let padded = format!("{digits:0>width$}", width = scale + 1);
                let (whole, fraction) = padded.split_at(padded.len() - scale);
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!("{sign}{digits}e{}", -i64::from(self.scale)),
        }
    }
}

/// Whether a text is base64 as much as it is a number, so that nobody can say what it stands for.
pub fn is_ambiguous(number: &[u8]) -> bool {
    number.len().is_multiple_of(4)
        && number
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || *b == b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base64(text: &str, scale: i32) -> Unscaled {
        Unscaled::from_base64(text.as_bytes(), scale).unwrap()
    }

    #[test]
    fn unscaled_values_are_exact() {
        assert_eq!(base64("AeI6", 2).decimal128(12, 2), Ok(123_450));
        assert_eq!(base64("AeI6", 2).decimal128(12, 1), Ok(12_345));
        assert_eq!(
            base64("AeI6", 2).decimal128(12, 0),
            Err(ValueFault::Fraction)
        );
        assert_eq!(base64("AeI6", 2).decimal128(12, 4), Ok(12_345_000));
        assert_eq!(base64("AeI6", 2).decimal128(5, 2), Err(ValueFault::Range));
        assert_eq!(base64("/w==", 0).decimal128(3, 0), Ok(-1));
        assert_eq!(base64("AA==", 400).decimal128(3, 0), Ok(0));
        assert_eq!(base64("AQ==", -2).decimal128(3, 0), Ok(100));
        assert_eq!(
            base64("AQ==", i32::MAX).decimal128(3, 0),
            Err(ValueFault::Fraction)
        );
        assert_eq!(
            base64("AQ==", i32::MIN).decimal128(3, 0),
            Err(ValueFault::Range)
        );
        let wide = base64("J+QbMka+ybFuOYEV", 9);
        assert_eq!(
            wide.decimal128(38, 9),
            Ok(12_345_678_901_234_567_890_123_456_789)
        );
        assert_eq!(
            wide.decimal256(40, 10).unwrap().to_string(),
            "123456789012345678901234567890"
        );
        assert_eq!(wide.to_text(), "12345678901234567890.123456789");
    }

    #[test]
    fn texts_of_all_scales() {
        assert_eq!(base64("/w==", 0).to_text(), "-1");
        assert_eq!(base64("/w==", 3).to_text(), "-0.001");
        assert_eq!(base64("AQ==", -3).to_text(), "1e3");
        assert_eq!(base64("AQ==", 2000).to_text(), "1e-2000");
    }

    #[test]
    fn what_is_no_unscaled_value() {
        for text in ["", "A", "AeI", "====", "NaN!", "AeI6\n"] {
            assert_eq!(
                Unscaled::from_base64(text.as_bytes(), 0),
                Err(ValueFault::Type),
                "{text}"
            );
        }
        let long = "A".repeat(48);
        assert_eq!(
            Unscaled::from_base64(long.as_bytes(), 0),
            Err(ValueFault::Range)
        );
    }

    #[test]
    fn some_texts_may_be_either() {
        for (text, expected) in [
            ("1234", true),
            ("1e10", true),
            ("12", false),
            ("12.3", false),
            ("-123", false),
        ] {
            assert_eq!(is_ambiguous(text.as_bytes()), expected, "{text}");
        }
    }
}
