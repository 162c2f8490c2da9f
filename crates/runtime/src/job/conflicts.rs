//! What a job must not do with files: read one that it replaces, or write one twice.
//!
//! Checked before a sink is opened, since opening empties the file.

use std::path::{Path, PathBuf};

use crate::connector::ConnectorError;
use crate::error::RuntimeError;

/// A table and the files that are its own.
pub struct Files<'a> {
    pub table: &'a str,
    pub paths: Vec<PathBuf>,
}

/// Errors: `Connector` with the names of both tables and the file.
pub fn refuse(read: &[Files<'_>], replaced: &[Files<'_>]) -> Result<(), RuntimeError> {
    for (i, sink) in replaced.iter().enumerate() {
        for path in &sink.paths {
            let has = |files: &&Files<'_>| files.paths.iter().any(|p| is_same(p, path));
            let shown = path.display();
            if let Some(source) = read.iter().find(has) {
                let what = format!(
                    "writes to \"{shown}\", which table \"{}\" reads: it would be emptied before it is read",
                    source.table
                );
                return Err(conflict(sink.table, what, "write to another file"));
            }
            if let Some(other) = replaced[..i].iter().find(has) {
                let what = format!(
                    "writes to \"{shown}\", and so does table \"{}\": the two would overwrite each other",
                    other.table
                );
                let hint = "give each its own file, or insert into one table";
                return Err(conflict(sink.table, what, hint));
            }
        }
    }
    Ok(())
}

fn conflict(table: &str, what: String, hint: &str) -> RuntimeError {
    RuntimeError::Connector {
        table: table.to_string(),
        source: ConnectorError::configuration(what, Some(hint.to_string())),
    }
}

/// Whether two paths lead to one regular file, whatever they are called. Pipes and terminals are no such file:
/// there is nothing in them to lose.
fn is_same(a: &Path, b: &Path) -> bool {
    if !is_regular(a) || !is_regular(b) {
        return a == b && !a.exists();
    }
    matches!((identity(a), identity(b)), (Some(a), Some(b)) if a == b)
}

fn is_regular(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file())
}

#[cfg(unix)]
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|m| (m.dev(), m.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(table: &str, path: PathBuf) -> Files<'_> {
        Files {
            table,
            paths: vec![path],
        }
    }

    #[test]
    fn a_file_is_the_same_by_whatever_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.ndjson");
        std::fs::write(&file, "{}").unwrap();
        let linked = dir.path().join("b.ndjson");
        std::fs::hard_link(&file, &linked).unwrap();
        let detour = dir.path().join(".").join("a.ndjson");
        for other in [linked, detour] {
            let error = refuse(&[files("t", file.clone())], &[files("s", other)]).unwrap_err();
            assert!(
                error.to_string().contains("which table \"t\" reads"),
                "{error}"
            );
        }
        let fresh = dir.path().join("c.ndjson");
        refuse(&[files("t", file)], &[files("s", fresh)]).unwrap();
    }

    #[test]
    fn two_sinks_of_one_new_file_are_refused() {
        let path = PathBuf::from("/nowhere/out.ndjson");
        let sinks = [files("a", path.clone()), files("b", path)];
        let error = refuse(&[], &sinks).unwrap_err().to_string();
        assert!(error.starts_with("table \"b\": writes to"), "{error}");
        // A device takes what several write.
        let device = PathBuf::from("/dev/null");
        refuse(&[], &[files("a", device.clone()), files("b", device)]).unwrap();
    }
}
