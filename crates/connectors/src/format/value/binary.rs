//! Bytes as base64 text (RFC 4648, section 4), with or without padding.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::ValueFault;

const ENGINE: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Appends the bytes that `text` stands for; nothing on a fault.
pub fn decode_into(text: &[u8], out: &mut Vec<u8>) -> Result<(), ValueFault> {
    let len = out.len();
    ENGINE.decode_vec(text, out).map_err(|_| {
        out.truncate(len);
        ValueFault::Type
    })
}

/// Appends `bytes` as text, with padding.
pub fn encode_into(bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    let written = ENGINE
        .encode_slice(bytes, &mut out[start..])
        .expect("the buffer has room for all of it");
    out.truncate(start + written);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_there_and_back() {
        for bytes in [&b""[..], b"f", b"fo", b"foo", &[0, 255, 128]] {
            let mut text = b"x".to_vec();
            encode_into(bytes, &mut text);
            let mut back = b"y".to_vec();
            decode_into(&text[1..], &mut back).unwrap();
            assert_eq!(&back[1..], bytes);
        }
        let mut out = Vec::new();
        decode_into(b"Zm8", &mut out).unwrap();
        assert_eq!(out, b"fo");
    }

    #[test]
    fn a_fault_appends_nothing() {
        let mut out = b"kept".to_vec();
        for text in [&b"Zm8!"[..], b"Zm9vYg==x", b"Z", b"Zm 8="] {
            assert_eq!(decode_into(text, &mut out), Err(ValueFault::Type));
        }
        assert_eq!(out, b"kept");
    }
}
