//! From a path to the files it means.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, glob_with};
use thalweg_runtime::connector::ConnectorError;

/// A file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub path: String,
    /// Bytes.
    pub len: u64,
}

/// The one file at `path`. Errors: it is missing, a directory, or may not be read.
pub fn single(path: &str) -> Result<Vec<Found>, ConnectorError> {
    if Path::new(path).is_dir() {
        let hint = "use connector = 'filesystem' for a directory";
        return Err(ConnectorError::configuration(
            format!("\"{path}\" is a directory"),
            Some(hint.to_string()),
        ));
    }
    if is_pattern(path) && !Path::new(path).exists() {
        let message = format!("file \"{path}\" does not exist");
        let hint = "use connector = 'filesystem' for a pattern";
        return Err(ConnectorError::configuration(
            message,
            Some(hint.to_string()),
        ));
    }
    Ok(vec![found(path)?])
}

/// The files of a directory, or those that match a pattern, in the order of their names. Names that
/// begin with `.` or `_` are passed over: files in the making, and what other systems leave beside data.
///
/// Errors: there is none, or one may not be read.
pub fn many(path: &str) -> Result<Vec<Found>, ConnectorError> {
    let mut paths = if Path::new(path).is_dir() {
        directory(path)?
    } else {
        matches(path)?
    };
    paths.sort();
    if paths.is_empty() {
        return Err(nothing(path));
    }
    paths.iter().map(|p| found(p)).collect()
}

/// Whether `path` is a pattern rather than a name.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '['])
}

fn directory(path: &str) -> Result<Vec<String>, ConnectorError> {
    let failed = |e| ConnectorError::io(format!("read directory \"{path}\""), e);
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        if entry.is_file() && !is_hidden(&entry) {
            paths.push(utf8(entry)?);
        }
    }
    Ok(paths)
}

fn matches(pattern: &str) -> Result<Vec<String>, ConnectorError> {
    let options = MatchOptions {
        require_literal_separator: true,
        require_literal_leading_dot: true,
        ..Default::default()
    };
    let found = glob_with(pattern, options).map_err(|e| {
        ConnectorError::configuration(
            format!("\"{pattern}\" is not a pattern for files: {e}"),
            None,
        )
    })?;
    let mut paths = Vec::new();
    for entry in found {
        let entry = entry.map_err(|e| {
            let what = format!("read \"{}\"", e.path().display());
            ConnectorError::io(what, e.into())
        })?;
        if !entry.is_dir() && !is_hidden(&entry) {
            paths.push(utf8(entry)?);
        }
    }
    Ok(paths)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|n| {
        n.as_encoded_bytes().starts_with(b".") || n.as_encoded_bytes().starts_with(b"_")
    })
}

fn utf8(path: PathBuf) -> Result<String, ConnectorError> {
    path.into_os_string().into_string().map_err(|path| {
        let message = format!("the file name \"{}\" is not UTF-8", path.display());
        ConnectorError::configuration(message, Some("rename it".to_string()))
    })
}

/// Opens the file too, so that a missing permission shows before the job begins.
fn found(path: &str) -> Result<Found, ConnectorError> {
    let metadata = fs::metadata(path).map_err(|e| cannot_open(path, e))?;
    if !metadata.is_file() {
        let hint = "pipes and devices cannot be read again after a failure; write their content to a file first";
        let message = format!("\"{path}\" is not a regular file");
        return Err(ConnectorError::configuration(
            message,
            Some(hint.to_string()),
        ));
    }
    File::open(path).map_err(|e| cannot_open(path, e))?;
    Ok(Found {
        path: path.to_string(),
        len: metadata.len(),
    })
}

/// The error of a file that could not be opened for reading.
pub fn cannot_open(path: &str, error: io::Error) -> ConnectorError {
    match error.kind() {
        io::ErrorKind::NotFound => ConnectorError::configuration(
            format!("file \"{path}\" does not exist"),
            where_we_are(path),
        ),
        _ => ConnectorError::io(format!("open \"{path}\""), error),
    }
}

fn nothing(path: &str) -> ConnectorError {
    if is_pattern(path) {
        return ConnectorError::configuration(
            format!("no file matches \"{path}\""),
            where_we_are(path),
        );
    }
    if Path::new(path).is_dir() {
        let message = format!("there is no file in directory \"{path}\"");
        let hint = "files whose names begin with . or _ do not count, nor do those in directories below; '**/*' finds those";
        return ConnectorError::configuration(message, Some(hint.to_string()));
    }
    ConnectorError::configuration(format!("\"{path}\" does not exist"), where_we_are(path))
}

/// A hint for relative paths.
fn where_we_are(path: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    Path::new(path)
        .is_relative()
        .then(|| format!("relative paths start from {}", here.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn files(names: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        dir
    }

    fn names(dir: &TempDir, path: &str) -> Result<Vec<String>, String> {
        let full = dir.path().join(path);
        let found = many(full.to_str().unwrap()).map_err(|e| e.to_string())?;
        let prefix = format!("{}/", dir.path().display());
        Ok(found
            .into_iter()
            .map(|f| f.path.replace(&prefix, ""))
            .collect())
    }

    fn hint(error: &ConnectorError) -> &str {
        let ConnectorError::Configuration { hint, .. } = error else {
            panic!("{error}")
        };
        hint.as_deref().unwrap_or_default()
    }

    #[test]
    fn directories_and_patterns_give_sorted_files_without_hidden_ones() {
        let dir = files(&[
            "b.json",
            "a.json",
            "c.csv",
            ".d.json",
            "_SUCCESS",
            "deep/e.json",
            "deep/.f/g.json",
        ]);
        assert_eq!(names(&dir, "").unwrap(), ["a.json", "b.json", "c.csv"]);
        assert_eq!(names(&dir, "*.json").unwrap(), ["a.json", "b.json"]);
        assert_eq!(
            names(&dir, "**/*.json").unwrap(),
            ["a.json", "b.json", "deep/e.json"]
        );
        assert_eq!(names(&dir, "[ab].*").unwrap(), ["a.json", "b.json"]);
        assert_eq!(names(&dir, "c.csv").unwrap(), ["c.csv"]);
        let found = many(dir.path().join("a.json").to_str().unwrap()).unwrap();
        assert_eq!(found[0].len, 6);
    }

    #[test]
    fn what_is_not_there_is_named_with_a_hint() {
        let dir = files(&[".hidden"]);
        assert!(
            names(&dir, "*.json")
                .unwrap_err()
                .starts_with("no file matches")
        );
        assert!(
            names(&dir, "")
                .unwrap_err()
                .starts_with("there is no file in directory")
        );
        assert!(names(&dir, "[").unwrap_err().contains("is not a pattern"));
        let error = single("no/such/file.ndjson").unwrap_err();
        assert_eq!(
            error.to_string(),
            "file \"no/such/file.ndjson\" does not exist"
        );
        assert!(hint(&error).starts_with("relative paths start from /"));
        assert!(
            many("no/such")
                .unwrap_err()
                .to_string()
                .contains("does not exist")
        );
    }

    #[test]
    fn what_is_not_a_file_is_refused() {
        let dir = files(&["a"]);
        let error = single(dir.path().to_str().unwrap()).unwrap_err();
        assert!(error.to_string().ends_with("is a directory"));
        assert_eq!(hint(&error), "use connector = 'filesystem' for a directory");
        assert_eq!(
            hint(&single("*.json").unwrap_err()),
            "use connector = 'filesystem' for a pattern"
        );
        assert!(
            single("/dev/null")
                .unwrap_err()
                .to_string()
                .contains("not a regular file")
        );
    }
}
