//! Faults: what is wrong with a script, where, and what to do.

use std::fmt;

/// Line and column in the script, both from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub line: u64,
    pub column: u64,
}

/// What a fault is about, and so its SQLSTATE (PostgreSQL, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    Syntax,
    UndefinedTable,
    UndefinedColumn,
    UndefinedFunction,
    UndefinedObject,
    UndefinedParameter,
    DuplicateObject,
    /// What others depend on cannot be changed or dropped.
    InUse,
    InvalidOption,
    InvalidType,
    Grouping,
    /// Sound SQL that this version cannot run.
    Unsupported,
    /// SQL that no streaming engine could run rightly: it would be wrong, or never end.
    NotStreamable,
    /// A bug of ours.
    Internal,
}

impl FaultKind {
    pub fn sqlstate(self) -> &'static str {
        match self {
            Self::Syntax => "42601",
            Self::UndefinedTable => "42P01",
            Self::UndefinedColumn => "42703",
            Self::UndefinedFunction => "42883",
            Self::UndefinedObject => "42704",
            Self::UndefinedParameter => "42P02",
            Self::DuplicateObject => "42710",
            Self::InUse => "2BP01",
            Self::InvalidOption => "22023",
            Self::InvalidType => "42804",
            Self::Grouping => "42803",
            Self::Unsupported => "0A000",
            Self::NotStreamable => "0A000",
            Self::Internal => "XX000",
        }
    }
}

/// One fault of a script.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    pub kind: FaultKind,
    pub message: String,
    pub position: Option<Position>,
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            position: None,
            hint: None,
        }
    }

    pub fn at(mut self, position: Option<Position>) -> Self {
        self.position = self.position.or(position);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(Position { line, column }) = self.position {
            write!(f, " at {line}:{column}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " · hint: {hint}")?;
        }
        Ok(())
    }
}

/// The one of `candidates` that `word` was probably meant to be, for "did you mean".
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| {
            (
                strsim::damerau_levenshtein(&word, &candidate.to_lowercase()),
                candidate,
            )
        })
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().min(word.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `text` as the middle of a sentence. An acronym stays as it is.
pub fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (Some(first), Some(second)) if !second.is_uppercase() => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_string(),
    }
}
