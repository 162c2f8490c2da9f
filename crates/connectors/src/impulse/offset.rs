//! Names and positions of impulse splits, as they are committed.

use thalweg_runtime::connector::{ConnectorError, Offset, SplitId};

/// Split `index` of `of` has the counters `index`, `index + of`, `index + 2 · of`, … Its name is
/// `index/of`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    pub index: u64,
    pub of: u64,
}

impl Share {
    pub fn name(self) -> SplitId {
        SplitId(format!("{}/{}", self.index, self.of).into())
    }

    pub fn parse(id: &SplitId) -> Result<Self, ConnectorError> {
        let parsed = id.0.split_once('/').and_then(|(index, of)| {
            let share = Self {
                index: index.parse().ok()?,
                of: of.parse().ok()?,
            };
            (share.index < share.of).then_some(share)
        });
        parsed.ok_or_else(|| {
            ConnectorError::configuration(
                format!("'{}' is not a split of an impulse source", id.0),
                None,
            )
        })
    }
}

/// What a restart needs. Bytes: version (1), next counter (8, little endian), event time of counter 0
/// in ns (8, little endian).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    pub next: u64,
    pub start: i64,
}

const VERSION: u8 = 1;

impl Position {
    pub fn encode(self) -> Offset {
        let mut bytes = vec![VERSION];
        bytes.extend(self.next.to_le_bytes());
        bytes.extend(self.start.to_le_bytes());
        Offset(bytes)
    }

    pub fn decode(offset: &Offset) -> Result<Self, ConnectorError> {
        let parsed = match offset.0.as_slice() {
            [VERSION, rest @ ..] if rest.len() == 16 => rest.split_first_chunk::<8>(),
            _ => None,
        };
        let (next, start) = parsed
            .and_then(|(next, rest)| Some((next, rest.first_chunk::<8>()?)))
            .ok_or_else(|| {
                ConnectorError::configuration(
                    "the stored position of an impulse source cannot be read",
                    None,
                )
            })?;
        Ok(Self {
            next: u64::from_le_bytes(*next),
            start: i64::from_le_bytes(*start),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_positions_survive_being_stored() {
        let share = Share { index: 1, of: 3 };
        assert_eq!(Share::parse(&share.name()).unwrap(), share);
        for wrong in ["", "3/3", "a/b", "1"] {
            assert!(Share::parse(&SplitId(wrong.into())).is_err(), "{wrong}");
        }
        let position = Position {
            next: u64::MAX - 1,
            start: -5,
        };
        assert_eq!(Position::decode(&position.encode()).unwrap(), position);
        assert_eq!(
            Position { next: 1, start: 2 }.encode().0,
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]
        );
        assert!(Position::decode(&Offset(vec![2; 17])).is_err());
        assert!(Position::decode(&Offset(vec![])).is_err());
    }
}
