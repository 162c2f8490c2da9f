//! Standard output, shared by every result that prints.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use thalweg_runtime::connector::ConnectorError;
use tokio::runtime::Handle;
use tokio::sync::watch;

/// An output on which several writers take turns, each with whole lines.
///
/// A reader that goes away (`| head`) is no error: the rest is swallowed, and [`Output::closed`] tells
/// the command line that nobody listens any more. Writing happens on a thread for blocking calls, so
/// that a slow reader holds up its own results and nothing else.
pub struct Output {
    writer: Arc<Mutex<dyn Write + Send>>,
    threads: Handle,
    closed: watch::Sender<bool>,
}

impl Output {
    /// Inside a Tokio runtime.
    pub fn new(writer: impl Write + Send + 'static) -> Self {
        Self {
            writer: Arc::new(Mutex::new(writer)),
            threads: Handle::current(),
            closed: watch::Sender::new(false),
        }
    }

    pub fn stdout() -> Self {
        Self::new(io::stdout())
    }

    /// Writes all of `text` without another writer's in between, and flushes.
    pub async fn write(&self, text: Vec<u8>) -> Result<(), ConnectorError> {
        if text.is_empty() || *self.closed.borrow() {
            return Ok(());
        }
        let writer = self.writer.clone();
        let written = self.threads.spawn_blocking(move || {
            let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
            writer.write_all(&text).and_then(|()| writer.flush())
        });
        let outcome = written.await.unwrap_or_else(|e| Err(io::Error::other(e)));
        match outcome {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.send_replace(true);
                Ok(())
            }
            other => other.map_err(|e| ConnectorError::io("standard output", e)),
        }
    }

    /// Resolves once the reader has gone.
    pub async fn closed(&self) {
        // The sender lives in `self`, so waiting cannot fail.
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_reader_that_goes_away_ends_the_output_quietly() {
        let (reader, writer) = io::pipe().unwrap();
        let out = Output::new(writer);
        drop(reader);
        out.write(b"nobody reads this".to_vec()).await.unwrap();
        out.closed().await;
        out.write(b"nor this".to_vec()).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_is_an_error_that_says_where() {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let err = Output::new(full).write(b"x".to_vec()).await.unwrap_err();
        assert!(err.to_string().starts_with("standard output: "), "{err}");
    }
}
