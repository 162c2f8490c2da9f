//! Ctrl-C and SIGTERM: the first drains, the second aborts.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Requests to stop, from a terminal (SIGINT) or a supervisor (SIGTERM).
pub struct Interrupts {
    interrupt: Signal,
    terminate: Signal,
}

impl Interrupts {
    /// From here on the signals no longer end the process by themselves. Inside a Tokio runtime.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// The next request. Cancel-safe.
    pub async fn next(&mut self) {
        let seen = tokio::select! {
            seen = self.interrupt.recv() => seen,
            seen = self.terminate.recv() => seen,
        };
        if seen.is_none() {
            // The stream of signals has ended with the runtime: nothing will come any more.
            std::future::pending::<()>().await;
        }
    }
}
