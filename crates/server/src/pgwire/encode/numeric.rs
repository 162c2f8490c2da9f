//! Decimals and floating numbers.

use std::fmt::Write;

use arrow::datatypes::i256;
use bytes::{BufMut, BytesMut};

/// The digits of a number without its sign, most significant first, without leading zeros.
pub struct Digits {
    digits: [u8; 80],
    start: usize,
    pub is_negative: bool,
}

impl Digits {
    pub fn of_u64(n: u64) -> Self {
        Self::of_u128(n.into(), false)
    }

    pub fn of_i128(n: i128) -> Self {
        Self::of_u128(n.unsigned_abs(), n < 0)
    }

    fn of_u128(mut n: u128, is_negative: bool) -> Self {
        let mut digits = [0; 80];
        let mut start = digits.len();
        // Division of 128 bits is slow: take off what 64 can hold at a time.
        const CHUNK: u128 = 10_000_000_000_000_000_000;
        while n > 0 {
            let mut low = (n % CHUNK) as u64;
            n /= CHUNK;
            let end = start;
            while low > 0 || (n > 0 && end - start < 19) {
                start -= 1;
                digits[start] = (low % 10) as u8;
                low /= 10;
            }
        }
        Self {
            digits,
            start,
            is_negative,
        }
    }

    pub fn of_i256(n: i256) -> Self {
        let text = n.to_string();
        let (is_negative, text) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.as_str()),
        };
        let mut digits = [0; 80];
        let text = text.trim_start_matches('0').as_bytes();
        // 77 digits at most.
        let start = digits.len() - text.len();
        for (digit, byte) in digits[start..].iter_mut().zip(text) {
            *digit = byte - b'0';
        }
        Self {
            digits,
            start,
            is_negative,
        }
    }

    fn get(&self) -> &[u8] {
        &self.digits[self.start..]
    }

    /// `-12.50`: with as many digits after the point as the scale says.
    pub fn text(&self, scale: i8, out: &mut BytesMut) {
        let digits = self.get();
        if self.is_negative {
            out.put_u8(b'-');
        }
        let after = usize::try_from(scale).unwrap_or(0);
        let whole = digits.len().saturating_sub(after);
        match &digits[..whole] {
            [] => out.put_u8(b'0'),
            whole => whole.iter().for_each(|digit| out.put_u8(b'0' + digit)),
        }
        if scale < 0 && !digits.is_empty() {
            out.put_bytes(b'0', usize::from(scale.unsigned_abs()));
        }
        if after > 0 {
            out.put_u8(b'.');
            out.put_bytes(b'0', after.saturating_sub(digits.len()));
            digits[whole..]
                .iter()
                .for_each(|digit| out.put_u8(b'0' + digit));
        }
    }

    /// Base-10000 digits around the point. Source: numeric_send in PostgreSQL's
    /// src/backend/utils/adt/numeric.c.
    pub fn binary(&self, scale: i8, out: &mut BytesMut) {
        let digits = self.get();
        let scale = i32::from(scale);
        // The power of ten that the first digit of a group of four has at its end.
        let power = |group: i32| group * 4;
        let n_digits = digits.len() as i32;
        // Groups are aligned to the point: the number is sum(group[i] * 10000^(weight - i)).
        let top = n_digits - scale;
        let weight = (top + 3).div_euclid(4) - 1;
        let bottom = -(scale.max(0) + 3).div_euclid(4);
        let digit = |power: i32| {
            let from_right = power + scale;
            let index = n_digits - 1 - from_right;
            usize::try_from(index)
                .ok()
                .and_then(|i| digits.get(i))
                .copied()
                .unwrap_or(0)
        };
        let group = |g: i32| {
            (0..4)
                .rev()
                .fold(0_i16, |sum, i| sum * 10 + i16::from(digit(power(g) + i)))
        };
        let mut last = bottom;
        while last <= weight && group(last) == 0 {
            last += 1;
        }
        let n_groups = if n_digits == 0 {
            0
        } else {
            (weight - last + 1).max(0)
        };
        out.put_i16(n_groups as i16);
        out.put_i16(if n_groups == 0 { 0 } else { weight as i16 });
        out.put_u16(if self.is_negative { 0x4000 } else { 0 });
        out.put_i16(scale.max(0) as i16);
        for i in 0..n_groups {
            out.put_i16(group(weight - i));
        }
    }
}

/// The shortest text that reads back as the same number, with an exponent where PostgreSQL has one.
pub fn float8(value: f64, out: &mut BytesMut) {
    match special(value) {
        Some(text) => out.put_slice(text.as_bytes()),
        None => shortest(format_args!("{value:e}"), 15, out),
    }
}

pub fn float4(value: f32, out: &mut BytesMut) {
    match special(value.into()) {
        Some(text) => out.put_slice(text.as_bytes()),
        None => shortest(format_args!("{value:e}"), 6, out),
    }
}

fn special(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value == f64::INFINITY {
        Some("Infinity")
    } else if value == f64::NEG_INFINITY {
        Some("-Infinity")
    } else {
        None
    }
}

/// From `-1.25e-7`: exponents below -4 and from `precision` on stay.
fn shortest(scientific: std::fmt::Arguments<'_>, precision: i32, out: &mut BytesMut) {
    let mut buffer = Short::default();
    // Long enough for every number.
    let _ = buffer.write_fmt(scientific);
    let text = std::str::from_utf8(&buffer.bytes[..buffer.len]).unwrap_or_default();
    let (text, sign) = match text.strip_prefix('-') {
        Some(text) => (text, "-"),
        None => (text, ""),
    };
    out.put_slice(sign.as_bytes());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (first, rest) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent < -4 || exponent >= precision {
        out.put_slice(mantissa.as_bytes());
        out.put_u8(b'e');
        out.put_u8(if exponent < 0 { b'-' } else { b'+' });
        super::times::padded(exponent.unsigned_abs().into(), 2, out);
    } else if exponent < 0 {
        out.put_slice(b"0.");
        out.put_bytes(b'0', (-exponent - 1) as usize);
        out.put_slice(first.as_bytes());
        out.put_slice(rest.as_bytes());
    } else {
        let before = (exponent as usize).min(rest.len());
        out.put_slice(first.as_bytes());
        out.put_slice(&rest.as_bytes()[..before]);
        out.put_bytes(b'0', exponent as usize - before);
        if before < rest.len() {
            out.put_u8(b'.');
            out.put_slice(&rest.as_bytes()[before..]);
        }
    }
}

/// Text of a number on the stack.
struct Short {
    bytes: [u8; 40],
    len: usize,
}

impl Default for Short {
    fn default() -> Self {
        Self {
            bytes: [0; 40],
            len: 0,
        }
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        let end = self.len + text.len();
        let room = self.bytes.get_mut(self.len..end).ok_or(std::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}
