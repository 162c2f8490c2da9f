//! Names of file splits and positions in them, as they are committed.

use thalweg_runtime::connector::{ConnectorError, Offset, SplitId};

/// Part `index` of `of` of one file. Its name is `index/of path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub index: u64,
    pub of: u64,
    pub path: String,
}

impl Part {
    pub fn name(&self) -> SplitId {
        SplitId(format!("{}/{} {}", self.index, self.of, self.path).into())
    }

    pub fn parse(id: &SplitId) -> Result<Self, ConnectorError> {
        let parsed = id.0.split_once(' ').and_then(|(share, path)| {
            let (index, of) = share.split_once('/')?;
            let part = Self {
                index: index.parse().ok()?,
                of: of.parse().ok()?,
                path: path.to_string(),
            };
            (part.index < part.of).then_some(part)
        });
        parsed.ok_or_else(|| {
            ConnectorError::configuration(format!("'{}' is not a split of a file", id.0), None)
        })
    }
}

/// A position in a part: bytes (behind decompression), or rows of a Parquet file.
///
/// Bytes: version (1), position (8, little endian), 1 where the part is exhausted, else 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub at: u64,
    pub is_end: bool,
}

const VERSION: u8 = 1;

impl Position {
    pub fn encode(self) -> Offset {
        let mut bytes = vec![VERSION];
        bytes.extend(self.at.to_le_bytes());
        bytes.push(u8::from(self.is_end));
        Offset(bytes)
    }

    /// The beginning where there is no offset.
    pub fn decode(offset: Option<&Offset>) -> Result<Self, ConnectorError> {
        let Some(offset) = offset else {
            return Ok(Self::default());
        };
        match offset.0.as_slice() {
            [VERSION, at @ .., end @ (0 | 1)] if at.len() == 8 => {
                let at = at.first_chunk::<8>().expect("the length has been checked");
                Ok(Self {
                    at: u64::from_le_bytes(*at),
                    is_end: *end == 1,
                })
            }
            _ => Err(ConnectorError::configuration(
                "the stored position in a file cannot be read",
                None,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_stored_whatever_the_path() {
        for path in ["orders.ndjson", "a b/0/1 c#2/3.csv", ""] {
            let part = Part {
                index: 2,
                of: 4,
                path: path.to_string(),
            };
            assert_eq!(Part::parse(&part.name()).unwrap(), part);
        }
        for wrong in ["", "orders.ndjson", "4/4 x", "1/x y"] {
            assert!(Part::parse(&SplitId(wrong.into())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn positions_survive_being_stored() {
        let position = Position {
            at: 300,
            is_end: true,
        };
        assert_eq!(position.encode().0, [1, 44, 1, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(
            Position::decode(Some(&position.encode())).unwrap(),
            position
        );
        assert_eq!(
            Position::decode(None).unwrap(),
            Position {
                at: 0,
                is_end: false
            }
        );
        for wrong in [
            &[][..],
            &[1],
            &[2, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            &[1, 0, 0, 0, 0, 0, 0, 0, 0, 7],
        ] {
            assert!(Position::decode(Some(&Offset(wrong.to_vec()))).is_err());
        }
    }
}
