//! A position in Avro's binary encoding, and the primitives at it.

use super::super::fault::Fault;

/// Items of no bytes (nulls, empty records) that a record may have besides those that take bytes: a count costs a few
/// bytes and could claim any number of them.
const EMPTY_ITEMS: usize = 4096;

pub struct Cursor<'a> {
    rest: &'a [u8],
    /// Items of arrays and maps that the record may still have.
    n_items_left: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(record: &'a [u8]) -> Self {
        Self {
            rest: record,
            n_items_left: record.len() + EMPTY_ITEMS,
        }
    }

    pub fn n_left(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    pub fn byte(&mut self) -> Result<u8, Box<Fault>> {
        let (first, rest) = self.rest.split_first().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(*first)
    }

    /// A long, in zigzag and groups of 7 bits.
    #[inline]
    pub fn long(&mut self) -> Result<i64, Box<Fault>> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                if shift == 63 && byte > 1 {
                    break;
                }
                return Ok((value >> 1) as i64 ^ -((value & 1) as i64));
            }
        }
        Err(Fault::malformed("a number has more than 64 bits"))
    }

    #[inline]
    pub fn int(&mut self) -> Result<i32, Box<Fault>> {
        let long = self.long()?;
        i32::try_from(long)
            .map_err(|_| Fault::malformed(format!("{long} is out of range for an int")))
    }

    #[inline]
    pub fn boolean(&mut self) -> Result<bool, Box<Fault>> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::malformed(format!("the byte {other} is no boolean"))),
        }
    }

    #[inline]
    pub fn float(&mut self) -> Result<f32, Box<Fault>> {
        self.array().map(f32::from_le_bytes)
    }

    #[inline]
    pub fn double(&mut self) -> Result<f64, Box<Fault>> {
        self.array().map(f64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Box<Fault>> {
        let (first, rest) = self.rest.split_first_chunk().ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(*first)
    }

    /// So many bytes.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], Box<Fault>> {
        let (taken, rest) = self.rest.split_at_checked(n).ok_or_else(cut_off)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Bytes behind their length.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Box<Fault>> {
        let len = self.long()?;
        let len =
            usize::try_from(len).map_err(|_| Fault::malformed(format!("{len} is no length")))?;
        self.take(len)
    }

    /// How many items the next block of an array or map has; 0: there is none.
    pub fn block(&mut self) -> Result<usize, Box<Fault>> {
        let count = self.long()?;
        if count < 0 {
            // Its length in bytes follows, for readers that skip it.
            self.long()?;
        }
        let count = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
        match self.n_items_left.checked_sub(count) {
            Some(left) => self.n_items_left = left,
            None => {
                return Err(Fault::malformed(format!(
                    "{count} items are more than the record holds"
                )));
            }
        }
        Ok(count)
    }
}

#[cold]
fn cut_off() -> Box<Fault> {
    Fault::malformed("the record is cut off")
}

/// Appends a long, in zigzag and groups of 7 bits.
#[inline]
pub fn write_long(value: i64, out: &mut Vec<u8>) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends bytes behind their length.
#[inline]
pub fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longs_go_there_and_back() {
        // The examples of the specification, and the ends.
        for (value, bytes) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (-64, &[0x7f]),
            (64, &[0x80, 1]),
            (
                i64::MAX,
                &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ),
            (
                i64::MIN,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            ),
        ] {
            let mut out = Vec::new();
            write_long(value, &mut out);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(Cursor::new(bytes).long().unwrap(), value);
        }
    }

    #[test]
    fn what_is_no_number_or_length() {
        assert!(Cursor::new(&[0xff; 10]).long().is_err());
        assert!(
            Cursor::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2])
                .long()
                .is_err()
        );
        assert!(Cursor::new(&[0x80]).long().is_err());
        assert!(Cursor::new(&[1]).bytes().is_err());
        assert!(Cursor::new(&[4, b'a']).bytes().is_err());
        assert!(Cursor::new(&[2]).boolean().is_err());
        // A billion nulls in five bytes.
        let mut out = Vec::new();
        write_long(1_000_000_000, &mut out);
        assert!(Cursor::new(&out).block().is_err());
    }
}
