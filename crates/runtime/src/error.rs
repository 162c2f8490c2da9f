//! What can go wrong while a job runs.

use arrow::error::ArrowError;
use datafusion::error::DataFusionError;

use crate::connector::{BadRecord, ConnectorError};

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// A record was rejected and the table says `bad_data = 'fail'`. Deterministic: the same record would fail again.
    #[error("bad record in table \"{table}\" at {}: {}", record.place, record.message)]
    BadRecord {
        table: String,
        record: Box<BadRecord>,
    },
    #[error("table \"{table}\": {source}")]
    Connector {
        table: String,
        #[source]
        source: ConnectorError,
    },
    /// An expression failed on a row: a cast, a division, an overflow.
    #[error("{context}: {}", in_short(source))]
    Expression {
        context: String,
        #[source]
        source: DataFusionError,
    },
    /// An exact aggregate left its type's range.
    #[error("{0}")]
    Overflow(String),
    #[error("state in {path}: {source}")]
    State {
        path: String,
        #[source]
        source: rocksdb::Error,
    },
    #[error("state in {path} is in use: another thalweg runs on this directory")]
    StateLocked { path: String },
    #[error(
        "state in {path} has format {found}, and this version reads {expected}; \
         use the version that wrote it, or start with another directory"
    )]
    StateVersion {
        path: String,
        found: String,
        expected: String,
    },
    /// Stored bytes that this version cannot read.
    #[error("corrupt state in table {table}: {message}")]
    StateCorrupt { table: String, message: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: std::io::Error,
    },
    #[error("columns could not be handled: {0}")]
    Arrow(#[from] ArrowError),
    /// A plan that this runtime does not know how to build, or an invariant that does not hold.
    #[error("internal error: {0}; please report this")]
    Internal(String),
    /// A task of the job ended without saying why.
    #[error("a task of the job panicked: {0}; please report this")]
    Panic(String),
}

impl RuntimeError {
    /// Whether the same input would fail in the same way again, so that a restart is pointless.
    pub fn is_deterministic(&self) -> bool {
        match self {
            Self::Connector { source, .. } => !matches!(source, ConnectorError::Io { .. }),
            Self::State { .. } | Self::Io { .. } => false,
            _ => true,
        }
    }
}

/// What happened to a row, without the names of the libraries that it happened in.
fn in_short(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => arrow_in_short(error),
        DataFusionError::Execution(message) => message.clone(),
        other => other.strip_backtrace(),
    }
}

fn arrow_in_short(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".into(),
        ArrowError::ArithmeticOverflow(what) => match what.strip_prefix("Overflow happened on: ") {
            Some(operands) => format!("{operands} does not fit its type"),
            None => what.clone(),
        },
        ArrowError::CastError(what)
        | ArrowError::ParseError(what)
        | ArrowError::ComputeError(what)
        | ArrowError::InvalidArgumentError(what) => lower_first(what),
        other => other.to_string(),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(chars).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_expressions_are_short() {
        let told = |error: ArrowError| {
            let source = DataFusionError::from(error).context("somewhere deep");
            let context = "expression a / b".to_string();
            RuntimeError::Expression { context, source }.to_string()
        };
        assert_eq!(
            told(ArrowError::DivideByZero),
            "expression a / b: division by zero"
        );
        assert_eq!(
            told(ArrowError::ArithmeticOverflow(
                "Overflow happened on: 2 * 9".into()
            )),
            "expression a / b: 2 * 9 does not fit its type"
        );
        assert_eq!(
            told(ArrowError::CastError("Cannot cast 'x'".into())),
            "expression a / b: cannot cast 'x'"
        );
    }
}
