//! What stands around records: lengths, and the place of a message type in a registered schema.

use super::super::fault::Fault;

/// An unsigned number in groups of 7 bits, and how many bytes it takes; `None`: more bytes are needed.
pub fn varint(bytes: &[u8]) -> Result<Option<(u64, usize)>, Box<Fault>> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate() {
        if i == 9 && *byte > 1 || i > 9 {
            return Err(Fault::malformed("a length has more than 64 bits"));
        }
        value |= u64::from(byte & 0x7f) << (7 * i);
        if *byte < 0x80 {
            return Ok(Some((value, i + 1)));
        }
    }
    Ok(None)
}

pub fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Message types may be nested this deep.
const MAX_PATH: u64 = 32;

/// The path to the message type in its schema, and how many bytes it takes: how many indexes there are, and
/// these, all in zigzag; a single 0 stands for the first type of the schema.
pub fn path(bytes: &[u8]) -> Result<(Vec<usize>, usize), Box<Fault>> {
    let mut at = 0;
    let mut next = || -> Result<u64, Box<Fault>> {
        let found = varint(bytes.get(at..).unwrap_or_default())?;
        let (value, len) =
            found.ok_or_else(|| Fault::malformed("the path to the message type is cut off"))?;
        at += len;
        match value & 1 {
            0 => Ok(value >> 1),
            _ => Err(Fault::malformed(
                "the path to the message type has a negative index",
            )),
        }
    };
    let n = next()?;
    if n > MAX_PATH {
        return Err(Fault::malformed("the path to the message type is too long"));
    }
    let mut indexes = Vec::new();
    for _ in 0..n {
        indexes.push(usize::try_from(next()?).unwrap_or(usize::MAX));
    }
    if indexes.is_empty() {
        indexes.push(0);
    }
    Ok((indexes, at))
}

pub fn write_path(path: &[usize], out: &mut Vec<u8>) {
    if path == [0] {
        return out.push(0);
    }
    write_varint((path.len() as u64) << 1, out);
    for index in path {
        write_varint((*index as u64) << 1, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_there_and_back() {
        for (indexes, bytes) in [
            (&[0][..], &[0][..]),
            (&[1], &[2, 2]),
            (&[2, 0, 130], &[6, 4, 0, 0x84, 2]),
        ] {
            let mut out = Vec::new();
            write_path(indexes, &mut out);
            assert_eq!(out, bytes);
            assert_eq!(path(bytes).unwrap(), (indexes.to_vec(), bytes.len()));
        }
        // The long way to say the first type.
        assert_eq!(path(&[2, 0, 9]).unwrap(), (vec![0], 2));
        for wrong in [&[][..], &[2], &[1], &[2, 1], &[0xff, 0xff, 3], &[0xff; 11]] {
            assert!(path(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn lengths_may_lack_bytes() {
        assert_eq!(varint(&[0x96, 1, 9]).unwrap(), Some((150, 2)));
        assert_eq!(varint(&[0x96]).unwrap(), None);
        assert!(varint(&[0xff; 12]).is_err());
    }
}
