//! Where a script comes from.

use std::io::Read;
use std::path::Path;

use super::args::ScriptArgs;
use crate::error::{Error, Result};

/// A script's text and the name by which messages refer to it.
#[derive(Debug)]
pub struct SqlText {
    pub name: String,
    pub text: String,
}

impl SqlText {
    /// Errors: a file that is missing, unreadable or not UTF-8.
    pub fn read(args: &ScriptArgs) -> Result<Self> {
        match (&args.execute, &args.file) {
            (Some(text), _) => Ok(Self {
                name: "-e".into(),
                text: text.clone(),
            }),
            (None, Some(path)) if path == Path::new("-") => {
                let mut bytes = Vec::new();
                std::io::stdin()
                    .read_to_end(&mut bytes)
                    .map_err(|e| Error::io("standard input", e))?;
                Self::decode("standard input".into(), bytes)
            }
            (None, Some(path)) => {
                let name = path.display().to_string();
                let bytes = std::fs::read(path).map_err(|e| Error::io(name.clone(), e))?;
                Self::decode(name, bytes)
            }
            (None, None) => unreachable!("clap requires one of the two"),
        }
    }

    fn decode(name: String, bytes: Vec<u8>) -> Result<Self> {
        match String::from_utf8(bytes) {
            // A byte-order mark is no SQL; editors on Windows leave one.
            Ok(text) => Ok(Self {
                name,
                text: text
                    .strip_prefix('\u{feff}')
                    .map(str::to_owned)
                    .unwrap_or(text),
            }),
            Err(e) => {
                let at = e.utf8_error().valid_up_to();
                let line = 1 + e.as_bytes()[..at].iter().filter(|b| **b == b'\n').count();
                Err(Error::NotText { name, line })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_refused_with_their_line() {
        let err =
            SqlText::decode("x.sql".into(), b"SELECT 1;\nSELECT '\xff'".to_vec()).unwrap_err();
        assert_eq!(err.to_string(), "x.sql is not UTF-8 text: line 2");
        assert_eq!(
            SqlText::decode("x".into(), b"\xef\xbb\xbfSELECT 1".to_vec())
                .unwrap()
                .text,
            "SELECT 1"
        );
    }
}
