//! One scanner for all numbers: integers, floats, decimals and epoch times share it.

/// A number as written: `mantissa · 10^exponent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    pub negative: bool,
    /// All digits without the point; meaningless where `exact` is false.
    pub mantissa: u64,
    /// Powers of ten, saturating far outside of what any type can hold.
    pub exponent: i32,
    /// Whether the digits fit into `mantissa`; if not, the text must be looked at again.
    pub exact: bool,
}

/// Digits that a `u64` holds whatever they are.
const MAX_EXACT_DIGITS: usize = 19;

/// Scans the JSON number (RFC 8259, section 6) at the start of `text`; the number and its length
/// in bytes, or nothing where there is none. What follows it is the caller's business.
#[inline]
pub fn scan(text: &[u8]) -> Option<(Number, usize)> {
    let negative = text.first() == Some(&b'-');
    let first = usize::from(negative);
    let (mut mantissa, mut pos) = digits(text, first, 0);
    let n_whole = pos - first;
    if n_whole == 0 || (n_whole > 1 && text[first] == b'0') {
        return None;
    }
    let (mut n_digits, mut exponent) = (n_whole, 0);
    if text.get(pos) == Some(&b'.') {
        let point = pos;
        (mantissa, pos) = digits(text, point + 1, mantissa);
        let n_fraction = pos - point - 1;
        if n_fraction == 0 {
            return None;
        }
        n_digits += n_fraction;
        exponent = -i32::try_from(n_fraction).unwrap_or(i32::MAX);
    }
    if matches!(text.get(pos), Some(b'e' | b'E')) {
        let (power, end) = scan_exponent(text, pos + 1)?;
        exponent = exponent.saturating_add(power);
        pos = end;
    }
    Some((
        Number {
            negative,
            mantissa,
            exponent,
            exact: n_digits <= MAX_EXACT_DIGITS,
        },
        pos,
    ))
}

/// Appends the digits at `pos` to `mantissa`, wrapping; also where they end.
#[inline(always)]
fn digits(text: &[u8], mut pos: usize, mut mantissa: u64) -> (u64, usize) {
    while let Some(digit) = text
        .get(pos)
        .map(|b| b.wrapping_sub(b'0'))
        .filter(|d| *d < 10)
    {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        pos += 1;
    }
    (mantissa, pos)
}

#[cold]
fn scan_exponent(text: &[u8], mut pos: usize) -> Option<(i32, usize)> {
    let negative = text.get(pos) == Some(&b'-');
    if matches!(text.get(pos), Some(b'-' | b'+')) {
        pos += 1;
    }
    let first = pos;
    let mut power = 0i32;
    while let Some(digit) = text.get(pos).filter(|b| b.is_ascii_digit()) {
        power = power
            .saturating_mul(10)
            .saturating_add(i32::from(digit - b'0'));
        pos += 1;
    }
    (pos > first).then_some((if negative { -power } else { power }, pos))
}

/// Scans a whole text that people or spreadsheets wrote: spaces around it, a plus sign, leading
/// zeros, `.5` and `5.` are understood as well. The number and the text in the strict spelling, or nothing.
pub fn scan_lenient(text: &[u8]) -> Option<(Number, std::borrow::Cow<'_, [u8]>)> {
    let text = text.trim_ascii();
    if let Some((number, len)) = scan(text)
        && len == text.len()
    {
        return Some((number, text.into()));
    }
    let strict = normalize(text)?;
    let (number, len) = scan(&strict)?;
    (len == strict.len()).then_some((number, strict.into()))
}

fn normalize(text: &[u8]) -> Option<Vec<u8>> {
    let (sign, text) = match text.split_first()? {
        (b'+', rest) => (&b""[..], rest),
        (b'-', rest) => (&b"-"[..], rest),
        _ => (&b""[..], text),
    };
    let end = text
        .iter()
        .position(|b| matches!(b, b'e' | b'E'))
        .unwrap_or(text.len());
    let (plain, exponent) = text.split_at(end);
    let point = plain.iter().position(|&b| b == b'.').unwrap_or(plain.len());
    let (whole, fraction) = plain.split_at(point);
    let fraction = fraction.get(1..).unwrap_or_default();
    if (whole.is_empty() && fraction.is_empty()) || !whole.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let n_zeros = whole.iter().take_while(|b| **b == b'0').count();
    let mut strict = sign.to_vec();
    strict.extend_from_slice(if n_zeros == whole.len() {
        b"0"
    } else {
        &whole[n_zeros..]
    });
    if !fraction.is_empty() {
        strict.push(b'.');
        strict.extend_from_slice(fraction);
    }
    strict.extend_from_slice(exponent);
    Some(strict)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(negative: bool, mantissa: u64, exponent: i32) -> Number {
        Number {
            negative,
            mantissa,
            exponent,
            exact: true,
        }
    }

    #[test]
    fn numbers_are_scanned_up_to_their_end() {
        for (text, expected, len) in [
            ("0", number(false, 0, 0), 1),
            ("-12,", number(true, 12, 0), 3),
            ("50.00}", number(false, 5000, -2), 5),
            ("5e1", number(false, 5, 1), 3),
            ("1.5E-3 ", number(false, 15, -4), 6),
            ("1e+2", number(false, 1, 2), 4),
            (
                "9999999999999999999",
                number(false, 9_999_999_999_999_999_999, 0),
                19,
            ),
        ] {
            assert_eq!(scan(text.as_bytes()), Some((expected, len)), "{text}");
        }
        let (long, len) = scan(b"12345678901234567890").unwrap();
        assert!(!long.exact && len == 20);
        assert_eq!(scan(b"1e99999999999").unwrap().0.exponent, i32::MAX);
        assert_eq!(scan(b"1.5e-99999999999").unwrap().0.exponent, -i32::MAX - 1);
    }

    #[test]
    fn what_json_does_not_allow_is_no_number() {
        for text in [
            "", "-", "+1", "01", "-00", ".5", "5.", "1.e2", "1e", "1e+", "NaN", "--1", "x",
        ] {
            assert_eq!(scan(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn texts_outside_json_may_be_spelled_freely() {
        for (text, strict) in [
            (" 12 ", "12"),
            ("+5", "5"),
            ("007", "7"),
            ("-000", "-0"),
            (".5", "0.5"),
            ("5.", "5"),
            ("+01.50e3", "1.50e3"),
        ] {
            let (_, found) = scan_lenient(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert_eq!(found.as_ref(), strict.as_bytes(), "{text}");
        }
        for text in [
            "", " ", ".", "+", "-", "e5", "1 2", "1,5", "0x10", "+-1", "1.2.3", "1_000",
        ] {
            assert_eq!(scan_lenient(text.as_bytes()), None, "{text}");
        }
    }
}
