//! What is stored of a key: described byte by byte in `docs/state-format.md`.

use crate::error::RuntimeError;

/// What there is under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is known of it.
    Absent,
    Present,
    /// The row was deleted, which a read of an older snapshot must not undo.
    Deleted,
}

/// Where a change stands in its database's history.
///
/// The position in the log decides where both have one, for it is exact; else the time of the change, which two
/// clocks may have told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// In the log; larger is later.
    pub log: Option<i64>,
    /// When the change was made, ns since the UTC epoch.
    pub time: Option<i64>,
}

impl Position {
    pub const UNKNOWN: Self = Self {
        log: None,
        time: None,
    };

    pub fn is_known(&self) -> bool {
        self.log.is_some() || self.time.is_some()
    }

    /// Whether this is surely earlier in history. Of what is equal nobody can say; the record that comes
    /// later is then as good as the earlier one.
    pub fn is_before(&self, other: &Self) -> bool {
        match (self.log, other.log) {
            (Some(own), Some(other)) => own < other,
            _ => matches!((self.time, other.time), (Some(own), Some(other)) if own < other),
        }
    }
}

/// What is known of a key, without the row's image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub kind: Kind,
    /// Event time of the row, or of its deletion, ns.
    pub time: i64,
    pub position: Position,
}

impl Entry {
    pub const ABSENT: Self = Self {
        kind: Kind::Absent,
        time: i64::MIN,
        position: Position::UNKNOWN,
    };
}

const PRESENT: u8 = 1;
const HAS_LOG: u8 = 2;
const HAS_TIME: u8 = 4;

/// Writes an entry into `out`, which is cleared first.
pub fn encode(entry: &Entry, image: &[u8], out: &mut Vec<u8>) {
    let Position { log, time } = entry.position;
    out.clear();
    let flag = |is: bool, flag: u8| if is { flag } else { 0 };
    out.push(
        flag(entry.kind == Kind::Present, PRESENT)
            | flag(log.is_some(), HAS_LOG)
            | flag(time.is_some(), HAS_TIME),
    );
    out.extend_from_slice(&entry.time.to_le_bytes());
    log.iter()
        .chain(&time)
        .for_each(|n| out.extend_from_slice(&n.to_le_bytes()));
    out.extend_from_slice(image);
}

/// An entry and the image behind it. Errors: `StateCorrupt`.
pub fn decode(bytes: &[u8]) -> Result<(Entry, &[u8]), RuntimeError> {
    parse(bytes).ok_or_else(|| RuntimeError::StateCorrupt {
        table: "rows of a changelog".into(),
        message: format!("an entry of {} bytes ends early", bytes.len()),
    })
}

fn parse(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let (&flags, mut rest) = bytes.split_first()?;
    let time = take(&mut rest)?;
    let log = if flags & HAS_LOG != 0 {
        Some(take(&mut rest)?)
    } else {
        None
    };
    let source_time = if flags & HAS_TIME != 0 {
        Some(take(&mut rest)?)
    } else {
        None
    };
    let kind = if flags & PRESENT != 0 {
        Kind::Present
    } else {
        Kind::Deleted
    };
    let position = Position {
        log,
        time: source_time,
    };
    Some((
        Entry {
            kind,
            time,
            position,
        },
        rest,
    ))
}

fn take(rest: &mut &[u8]) -> Option<i64> {
    let (front, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(i64::from_le_bytes(*front))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored state depends on these bytes: a change is a change of the format.
    #[test]
    fn bytes_are_what_they_always_were() {
        let row = Entry {
            kind: Kind::Present,
            time: 1,
            position: Position {
                log: Some(2),
                time: None,
            },
        };
        let mut bytes = vec![9];
        encode(&row, b"ab", &mut bytes);
        assert_eq!(
            bytes,
            [&[3][..], &1u64.to_le_bytes(), &2u64.to_le_bytes(), b"ab"].concat()
        );
        assert_eq!(decode(&bytes).unwrap(), (row, &b"ab"[..]));

        let gone = Entry {
            kind: Kind::Deleted,
            time: -1,
            position: Position {
                log: None,
                time: Some(3),
            },
        };
        encode(&gone, b"", &mut bytes);
        assert_eq!(bytes, [&[4][..], &[255; 8], &3u64.to_le_bytes()].concat());
        assert_eq!(decode(&bytes).unwrap(), (gone, &b""[..]));
        assert!(decode(&bytes[..16]).is_err() && decode(&[]).is_err());
    }

    #[test]
    fn the_log_decides_before_the_clock() {
        let at = |log, time| Position { log, time };
        assert!(at(Some(1), Some(9)).is_before(&at(Some(2), Some(1))));
        assert!(!at(Some(2), Some(1)).is_before(&at(Some(2), Some(9))));
        assert!(at(None, Some(1)).is_before(&at(Some(2), Some(9))));
        assert!(!at(Some(1), None).is_before(&at(None, Some(9))));
        assert!(!at(None, None).is_before(&at(Some(1), Some(1))));
    }
}
