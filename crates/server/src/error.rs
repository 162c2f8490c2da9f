//! What can go wrong between a script and its results.

use std::fmt;
use std::io;

use thalweg_planner::Fault;
use thalweg_runtime::RuntimeError;
use thalweg_runtime::connector::ConnectorError;

use crate::jobs::NameTaken;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The script is wrong; every fault that was found, in the order of position.
    #[error("{}", FaultList(.0))]
    Faults(Vec<Fault>),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
    /// A query that was to be run to its end, over a source that has none.
    #[error("{what} reads \"{table}\", which never ends")]
    NeverEnds { what: &'static str, table: String },
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    JobName(#[from] NameTaken),
    /// A request on the command line that the script does not allow.
    #[error("{0}")]
    Usage(String),
    #[error("{name} is not UTF-8 text: line {line}")]
    NotText { name: String, line: usize },
    #[error(transparent)]
    Output(#[from] ConnectorError),
    #[error("columns could not be handled: {0}")]
    Arrow(#[from] arrow::error::ArrowError),
}

impl Error {
    pub fn io(what: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            what: what.into(),
            source,
        }
    }

    /// The SQLSTATE of the error (PostgreSQL, appendix A).
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Self::Faults(faults) => faults.first().map_or("XX000", |f| f.kind.sqlstate()),
            Self::NeverEnds { .. } => "0A000",
            Self::Io { .. } => "58030",
            Self::NotText { .. } => "22021",
            Self::Usage(_) => "0A000",
            Self::JobName(_) => "42710",
            Self::Output(_) => "58030",
            Self::Arrow(_) => "XX000",
            Self::Runtime(e) => runtime_sqlstate(e),
        }
    }

    /// Whether a reader of our output went away, which nobody needs to be told.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(
            self,
            Self::Runtime(RuntimeError::Connector { source: ConnectorError::Io { source, .. }, .. })
                if source.kind() == io::ErrorKind::BrokenPipe
        )
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Runtime(RuntimeError::BadRecord { table, .. }) => Some(format!(
                "to go on without such records, declare table \"{table}\" with bad_data = 'drop', or keep them in a table with 'dead_letter'"
            )),
            Self::Runtime(RuntimeError::Connector {
                source: ConnectorError::Configuration { hint, .. },
                ..
            })
            | Self::Output(ConnectorError::Configuration { hint, .. }) => hint.clone(),
            Self::NeverEnds { .. } => {
                Some("run it with `thalweg run`, which prints results as they come".into())
            }
            _ => None,
        }
    }
}

fn runtime_sqlstate(error: &RuntimeError) -> &'static str {
    match error {
        RuntimeError::BadRecord { .. } => "22P02",
        RuntimeError::Overflow(_) => "22003",
        RuntimeError::Expression { .. } => "22000",
        RuntimeError::Connector { .. } | RuntimeError::Io { .. } | RuntimeError::State { .. } => {
            "58030"
        }
        _ => "XX000",
    }
}

/// Faults, one a line.
struct FaultList<'a>(&'a [Fault]);

impl fmt::Display for FaultList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}
