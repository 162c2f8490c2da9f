//! Names of partitions as splits, and positions in them as they are committed.

use thalweg_runtime::connector::{ConnectorError, Offset, SplitId};

/// The name of a partition as a split: `topic/3`.
pub fn split_of(topic: &str, partition: i32) -> SplitId {
    SplitId(format!("{topic}/{partition}").into())
}

/// The number of the partition that a split names.
pub fn partition_of(topic: &str, split: &SplitId) -> Result<i32, ConnectorError> {
    let number = split
        .0
        .strip_prefix(topic)
        .and_then(|rest| rest.strip_prefix('/'))
        .and_then(|number| number.parse().ok())
        .filter(|number| *number >= 0);
    number.ok_or_else(|| {
        let message = format!("'{}' is no partition of topic \"{topic}\"", split.0);
        let hint = "the state was made for another topic: start with another directory";
        ConnectorError::configuration(message, Some(hint.to_string()))
    })
}

const VERSION: u8 = 1;

/// What stands for a beginning that was not known when the position was taken.
const UNKNOWN: i64 = -1;

/// The offset of the next record to read; `None`: nothing was read yet, and reading begins at the oldest record.
///
/// Bytes: version (1), offset (8, little endian), −1 where there is none.
pub fn encode(next: Option<i64>) -> Offset {
    let mut bytes = vec![VERSION];
    bytes.extend(next.unwrap_or(UNKNOWN).to_le_bytes());
    Offset(bytes)
}

pub fn decode(offset: &Offset) -> Result<Option<i64>, ConnectorError> {
    let next = match offset.0.as_slice() {
        [VERSION, next @ ..] => next.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    };
    match next {
        Some(UNKNOWN) => Ok(None),
        Some(next) if next >= 0 => Ok(Some(next)),
        _ => Err(ConnectorError::configuration(
            "the stored position in a partition cannot be read",
            None,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_being_stored() {
        for topic in ["orders", "a.b/c", "1"] {
            assert_eq!(partition_of(topic, &split_of(topic, 12)).unwrap(), 12);
        }
        for wrong in ["orders", "orders/", "orders/x", "orders/-1", "others/3"] {
            assert!(partition_of("orders", &SplitId(wrong.into())).is_err());
        }
    }

    #[test]
    fn positions_survive_being_stored() {
        assert_eq!(encode(Some(300)).0, [1, 44, 1, 0, 0, 0, 0, 0, 0]);
        for next in [None, Some(0), Some(i64::MAX)] {
            assert_eq!(decode(&encode(next)).unwrap(), next);
        }
        for wrong in [&[][..], &[1, 2], &[2, 0, 0, 0, 0, 0, 0, 0, 0], &[1; 10]] {
            assert!(decode(&Offset(wrong.to_vec())).is_err());
        }
        let negative = [&[VERSION][..], &(-7i64).to_le_bytes()].concat();
        assert!(decode(&Offset(negative)).is_err());
    }
}
