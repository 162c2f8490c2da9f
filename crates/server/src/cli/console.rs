//! Standard output and error of the commands themselves. `println!` and `eprintln!` panic when the
//! reader has gone; a command must not.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::error::{Error, Result};

/// Prints to standard output. A reader that has gone is no error.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Error::io("standard output", e)),
        _ => Ok(()),
    }
}

/// A line on standard error. Where that is closed, nobody can be told so.
pub fn tell(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
