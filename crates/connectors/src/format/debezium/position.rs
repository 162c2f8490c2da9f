//! Where a change stands in its database's history, from the envelope's `source`.
//!
//! | database | position |
//! |---|---|
//! | PostgreSQL | `lsn` |
//! | MySQL, MariaDB | the number at the end of `file`, then `pos` |
//! | Oracle | `scn` |
//! | others | none; the time alone |
//!
//! The time is `ts_ns`, `ts_us` or `ts_ms`, whichever is there and finest.

use super::super::fault::Fault;
use super::super::json::{Cursor, Shape, skip_value};
use super::super::value::number;

/// What `source` tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SourceInfo {
    /// Larger is later, within one database.
    pub position: Option<i64>,
    /// ns since the UTC epoch.
    pub time: Option<i64>,
    /// The row was read by a snapshot, whatever the operation is called.
    pub is_snapshot: bool,
}

const NAMES: [&str; 8] = [
    "lsn", "file", "pos", "scn", "ts_ms", "ts_us", "ts_ns", "snapshot",
];
const LSN: usize = 0;
const FILE: usize = 1;
const POS: usize = 2;
const SCN: usize = 3;
const TS_MS: usize = 4;
const TS_US: usize = 5;
const TS_NS: usize = 6;
const SNAPSHOT: usize = 7;

/// Bits for the position in a file of MySQL's binary log; the rest is for the number of the file.
const POS_BITS: u32 = 40;

#[derive(Debug)]
pub struct SourceReader {
    shape: Shape,
}

impl SourceReader {
    pub fn new() -> Self {
        Self {
            shape: Shape::new(NAMES.into_iter()),
        }
    }

    /// Reads the object at hand. What is missing or not as expected is not told.
    pub fn read(&mut self, cursor: &mut Cursor<'_>) -> Result<SourceInfo, Box<Fault>> {
        let mut values: [&[u8]; NAMES.len()] = [&b"null"[..]; NAMES.len()];
        cursor.pos += 1;
        cursor.skip_space();
        let mut place = 0;
        while !cursor.take(b'}') {
            let key = self.shape.key(cursor, place)?;
            let start = cursor.pos;
            skip_value(cursor, 2)?;
            if let Some(key) = key {
                values[key] = &cursor.bytes[start..cursor.pos];
            }
            cursor.skip_space();
            if cursor.take(b',') {
                cursor.skip_space();
            }
            place += 1;
        }
        Ok(SourceInfo {
            position: position(&values),
            time: time(&values),
            is_snapshot: !matches!(values[SNAPSHOT], b"null" | b"false" | b"\"false\""),
        })
    }
}

fn position(values: &[&[u8]; NAMES.len()]) -> Option<i64> {
    if let Some(lsn) = whole(values[LSN]) {
        return Some(lsn);
    }
    if let (Some(file), Some(pos)) = (trailing_number(unquoted(values[FILE])), whole(values[POS])) {
        let fits = file >> (63 - POS_BITS) == 0 && pos >> POS_BITS == 0;
        return fits.then_some((file << POS_BITS) | pos);
    }
    whole(unquoted(values[SCN]))
}

fn time(values: &[&[u8]; NAMES.len()]) -> Option<i64> {
    [(TS_NS, 1), (TS_US, 1_000), (TS_MS, 1_000_000)]
        .into_iter()
        .find_map(|(key, nanos)| whole(values[key])?.checked_mul(nanos))
}

fn whole(text: &[u8]) -> Option<i64> {
    let (number, len) = number::scan(text)?;
    let is_whole = len == text.len() && number.exact && number.exponent == 0;
    let magnitude = i64::try_from(number.mantissa).ok().filter(|_| is_whole)?;
    Some(if number.negative {
        -magnitude
    } else {
        magnitude
    })
}

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"")
        .and_then(|text| text.strip_suffix(b"\""))
        .unwrap_or(text)
}

/// 12 of `mysql-bin.000012`.
fn trailing_number(text: &[u8]) -> Option<i64> {
    let n_digits = text.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&text[text.len() - n_digits..]).ok()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Option<i64>, Option<i64>, bool) {
        let info = SourceReader::new()
            .read(&mut Cursor::new(text.as_bytes(), 0))
            .unwrap();
        (info.position, info.time, info.is_snapshot)
    }

    #[test]
    fn each_database_has_its_position() {
        for (text, position) in [
            (r#"{"lsn":30857344,"scn":"7"}"#, Some(30_857_344)),
            (
                r#"{"file":"mysql-bin.000002","pos":5,"row":0}"#,
                Some((2 << 40) | 5),
            ),
            (r#"{"file":"mysql-bin.9999999999999","pos":5}"#, None),
            (r#"{"file":"binlog","pos":5}"#, None),
            (r#"{"scn":"16483829"}"#, Some(16_483_829)),
            (r#"{"lsn":null}"#, None),
            (r#"{"lsn":{"a":[1]}, "change_lsn" : "00:1"}"#, None),
            ("{}", None),
        ] {
            assert_eq!(read(text).0, position, "{text}");
        }
    }

    #[test]
    fn the_finest_time_counts_and_snapshots_are_marked() {
        let text =
            r#"{"ts_ms":1,"snapshot":"first_in_data_collection","ts_us":1500,"ts_ns":1500001}"#;
        assert_eq!(read(text), (None, Some(1_500_001), true));
        assert_eq!(
            read(r#"{"ts_ms":2,"snapshot":"false"}"#),
            (None, Some(2_000_000), false)
        );
        assert_eq!(
            read(r#"{"ts_ms":9223372036854775807,"snapshot":false}"#),
            (None, None, false)
        );
        assert_eq!(read(r#"{"snapshot":true}"#), (None, None, true));
    }
}
