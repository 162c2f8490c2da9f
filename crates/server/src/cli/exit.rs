//! Exit codes; the manual and `--help` list them.

use std::process::ExitCode;

/// Ordered by how much they matter: of several, the greatest is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    Ok,
    /// A job, a file or a disk failed.
    Failed,
    /// The command line asks for what cannot be.
    Usage,
    /// The script has faults.
    FaultySql,
    /// Aborted by a second interrupt, as a shell reports a process that SIGINT ended.
    Aborted,
}

impl Exit {
    pub fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::FaultySql => 10,
            Self::Aborted => 130,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
