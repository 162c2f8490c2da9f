//! Errors and notices as a client is told them: severity, SQLSTATE, message, hint, position.

use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use thalweg_planner::{Fault, Position};

use crate::error::Error;

/// Why a statement, or a connection, fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The connection ends with it.
    pub is_fatal: bool,
    pub code: &'static str,
    pub message: String,
    pub detail: Option<String>,
    pub hint: Option<String>,
    /// Character in the query's text, from 1.
    pub position: Option<usize>,
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            is_fatal: false,
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
        }
    }

    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new("08P01", message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new("0A000", message)
    }

    pub fn internal(message: impl std::fmt::Display) -> Self {
        let message = format!("internal error: {message}; please report this");
        Self::new("XX000", message)
    }

    pub fn fatal(mut self) -> Self {
        self.is_fatal = true;
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The first fault, which the client's text is marked at; the others stand in the detail.
    pub fn of_faults(faults: &[Fault], text: &str) -> Self {
        let Some((first, others)) = faults.split_first() else {
            return Self::internal("a failure without a fault");
        };
        let mut failure = Self::new(first.kind.sqlstate(), &first.message);
        failure.hint = first.hint.clone();
        failure.position = first.position.and_then(|at| character(text, at));
        if !others.is_empty() {
            let lines: Vec<_> = others.iter().map(Fault::to_string).collect();
            failure.detail = Some(lines.join("\n"));
        }
        failure
    }

    pub fn of_error(error: &Error, text: &str) -> Self {
        match error {
            Error::Faults(faults) => Self::of_faults(faults, text),
            other => {
                let mut failure = Self::new(other.sqlstate(), other.to_string());
                failure.hint = other.hint();
                failure
            }
        }
    }

    pub fn response(&self) -> ErrorResponse {
        let severity = if self.is_fatal { "FATAL" } else { "ERROR" };
        let mut fields = head(severity, self.code, &self.message);
        let more = [
            (b'D', self.detail.clone()),
            (b'H', self.hint.clone()),
            (b'P', self.position.map(|position| position.to_string())),
        ];
        fields.extend(
            more.into_iter()
                .filter_map(|(field, value)| Some((field, without_zero(value?)))),
        );
        ErrorResponse::new(fields)
    }
}

/// Something that is no error.
pub fn notice(message: &str) -> NoticeResponse {
    NoticeResponse::new(head("NOTICE", "00000", message))
}

/// What went missing, or was done otherwise than asked.
pub fn warning(message: &str) -> NoticeResponse {
    NoticeResponse::new(head("WARNING", "01000", message))
}

fn head(severity: &str, code: &str, message: &str) -> Vec<(u8, String)> {
    vec![
        (b'S', severity.to_string()),
        (b'V', severity.to_string()),
        (b'C', code.to_string()),
        (b'M', without_zero(message.to_string())),
    ]
}

/// A zero byte would end the field, and the rest be read as others.
fn without_zero(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "\u{fffd}")
    } else {
        text
    }
}

/// The number of the character at a position, from 1; `None` outside of the text.
fn character(text: &str, at: Position) -> Option<usize> {
    let line = usize::try_from(at.line).ok()?.checked_sub(1)?;
    let before: usize = text
        .split_inclusive('\n')
        .take(line)
        .map(|l| l.chars().count())
        .sum();
    let position = before + usize::try_from(at.column).ok()?;
    (at.column > 0 && position <= text.chars().count() + 1).then_some(position)
}

#[cfg(test)]
mod tests {
    use thalweg_planner::FaultKind;

    use super::*;

    #[test]
    fn positions_count_characters_of_the_whole_text() {
        let at = |line, column| character("sélect\n  x\n", Position { line, column });
        assert_eq!(at(1, 1), Some(1));
        assert_eq!(at(1, 4), Some(4));
        assert_eq!(at(2, 3), Some(10));
        assert_eq!(at(9, 99), None);
        assert_eq!(at(0, 1), None);
        assert_eq!(at(1, 0), None);
    }

    #[test]
    fn the_first_fault_is_the_error_and_the_others_its_detail() {
        let at = |column| Some(Position { line: 1, column });
        let faults = [
            Fault::new(FaultKind::UndefinedColumn, "no a")
                .at(at(8))
                .hint("b"),
            Fault::new(FaultKind::UndefinedTable, "no t").at(at(15)),
        ];
        let failure = Failure::of_faults(&faults, "SELECT a FROM t");
        assert_eq!((failure.code, failure.position), ("42703", Some(8)));
        assert_eq!(failure.hint.as_deref(), Some("b"));
        assert_eq!(failure.detail.as_deref(), Some("no t at 1:15"));
    }
}
