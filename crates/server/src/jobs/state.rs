//! How a job does, and how it ended.

use std::sync::Arc;

use crate::error::Error;

#[derive(Debug, Clone)]
pub enum JobState {
    Running,
    /// It has been asked to end, and works off what it has read.
    Draining,
    Ended(Arc<Ended>),
}

impl JobState {
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// `running`, `draining`, `finished`, `failed`, `cancelled`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Draining => "draining",
            Self::Ended(ended) => match ended.outcome {
                Outcome::Finished => "finished",
                Outcome::Failed(_) => "failed",
                Outcome::Cancelled => "cancelled",
            },
        }
    }

    /// Why it failed.
    pub fn reason(&self) -> Option<String> {
        match self {
            Self::Ended(ended) => ended.outcome.error().map(|error| error.to_string()),
            _ => None,
        }
    }
}

/// How a job ended.
#[derive(Debug)]
pub struct Ended {
    pub outcome: Outcome,
    /// What went missing without being an error: late rows, dropped records.
    pub warnings: Vec<String>,
}

#[derive(Debug)]
pub enum Outcome {
    /// Its sources ended, or it was drained.
    Finished,
    Failed(Error),
    Cancelled,
}

impl Outcome {
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Failed(error) => Some(error),
            _ => None,
        }
    }
}

impl Ended {
    /// Of a job whose supervisor has gone with the runtime.
    pub(super) fn unknown() -> Self {
        Self {
            outcome: Outcome::Cancelled,
            warnings: Vec::new(),
        }
    }
}
