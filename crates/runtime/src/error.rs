//! What can go wrong while a job runs.

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
    #[error("{context}: {source}")]
    Expression {
        context: String,
        #[source]
        source: datafusion::error::DataFusionError,
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
    Arrow(#[from] arrow::error::ArrowError),
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
