//! Escapes in strings.

use super::super::fault::Fault;

/// Appends what `text`, taken from between quotes, stands for. On a fault `out` holds some of it.
#[cold]
pub fn unescape_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), Box<Fault>> {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1).copied().unwrap_or(b' ');
        rest = rest.get(at + 2..).unwrap_or_default();
        let plain = match escape {
            b'"' | b'\\' | b'/' => escape,
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'u' => {
                let (character, len) = unicode(rest)?;
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[len..];
                continue;
            }
            other => {
                return Err(Fault::malformed(format!(
                    "a string has the unknown escape \\{}",
                    other.escape_ascii()
                )));
            }
        };
        out.push(plain);
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The character behind `\u`, and how many bytes spell it. One outside the basic plane is spelled as
/// two surrogates (RFC 8259, section 7).
fn unicode(text: &[u8]) -> Result<(char, usize), Box<Fault>> {
    let high = hex4(text)?;
    if let Some(character) = char::from_u32(high) {
        return Ok((character, 4));
    }
    let low = match text.get(4..6) {
        Some(b"\\u") => hex4(&text[6..])?,
        _ => 0,
    };
    if !(0xd800..0xdc00).contains(&high) || !(0xdc00..0xe000).contains(&low) {
        return Err(Fault::malformed("a string has half a surrogate pair"));
    }
    let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    let character = char::from_u32(code).expect("two surrogates give a code point");
    Ok((character, 10))
}

fn hex4(text: &[u8]) -> Result<u32, Box<Fault>> {
    let digits = text.first_chunk::<4>().and_then(|digits| {
        digits
            .iter()
            .try_fold(0, |code, d| Some(code * 16 + char::from(*d).to_digit(16)?))
    });
    digits.ok_or_else(|| Fault::malformed("a string has an incomplete \\u escape"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unescape(text: &str) -> Result<String, String> {
        let mut out = Vec::new();
        unescape_into(text.as_bytes(), &mut out).map_err(|f| f.message())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn escapes() {
        assert_eq!(
            unescape(r#"a\"b\\c\/d\b\f\n\r\te"#).unwrap(),
            "a\"b\\c/d\u{8}\u{c}\n\r\te"
        );
        assert_eq!(unescape(r"\u0041\u00e9\u20AC").unwrap(), "Aé€");
        assert_eq!(unescape(r"x\ud83d\ude00y").unwrap(), "x😀y");
        assert_eq!(unescape(r"\u0000").unwrap(), "\0");
    }

    #[test]
    fn broken_escapes() {
        for text in [
            r"\x",
            r"\",
            r"\u12",
            r"\u12g4",
            r"\u+123",
            r"\ud83d",
            r"\ud83dx",
            r"\ud83d\u0041",
            r"\ude00",
            r"\ud83d\ud83d",
        ] {
            assert!(unescape(text).is_err(), "{text}");
            assert!(
                serde_json::from_str::<String>(&format!("\"{text}\"")).is_err(),
                "{text}"
            );
        }
    }
}
