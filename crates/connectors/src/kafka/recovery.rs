//! Records that are gone before they were read, and what is done about it.

use std::sync::Arc;

use rdkafka::Offset;
use thalweg_runtime::connector::{ConnectorError, Lost};

use super::client::Lookup;
use super::consumer::SubtaskConsumer;
use super::place::Place;

/// How records came to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The log begins behind the position, or ends before it.
    OutOfRange,
    /// The topic is another one under the same name.
    Recreated,
    /// There is no such topic or partition any more.
    Deleted,
}

impl Loss {
    /// The error of a job that is to fail, having read up to `position`.
    pub fn error(self, place: &Place, position: Option<i64>) -> ConnectorError {
        let what = match self {
            Self::OutOfRange => "the records that were to be read next are gone",
            Self::Recreated => "the topic was deleted and created again while it was read",
            Self::Deleted => "the topic or this partition of it was deleted while it was read",
        };
        let at = position.map_or_else(String::new, |p| format!(", offset {p}"));
        let hint =
            "with fail_on_data_loss = 'false' reading goes on at the oldest record that there is";
        ConnectorError::configuration(format!("{place}{at}: {what}"), Some(hint.to_string()))
    }

    fn message(self, place: &Place, position: i64, oldest: i64) -> String {
        match self {
            Self::OutOfRange | Self::Deleted => {
                format!("{place}: offset {position} is gone, reading goes on at {oldest}")
            }
            Self::Recreated => {
                format!(
                    "{place}: the topic was created again after offset {position}, reading begins at {oldest}"
                )
            }
        }
    }
}

/// Goes on at the oldest record that is left. Blocks until the brokers have answered. Gives the offset of that record.
pub fn go_on_at_oldest(
    loss: Loss,
    place: &Place,
    position: Option<i64>,
    lookup: &Lookup,
    consumer: &Arc<SubtaskConsumer>,
) -> Result<(i64, Lost), ConnectorError> {
    let (oldest, _) = lookup.ends(place.partition)?;
    consumer
        .reassign(place.partition, Offset::Offset(oldest))
        .map_err(|e| {
            ConnectorError::configuration(format!("{place} cannot be read again: {e}"), None)
        })?;
    let position = position.unwrap_or(0);
    let lost = Lost {
        // Of another topic it is not known how many were not read of the one before it.
        n_records: match loss {
            Loss::OutOfRange => u64::try_from(oldest - position).unwrap_or(0),
            Loss::Recreated | Loss::Deleted => 0,
        },
        message: loss.message(place, position, oldest),
    };
    Ok((oldest, lost))
}
