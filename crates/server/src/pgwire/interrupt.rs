//! What ends a statement from outside: a cancel request, a client that goes away, the server's own end.

use std::future::Future;

use tokio::sync::watch;

use super::error::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupted {
    Cancelled,
    Gone,
    ShuttingDown,
}

pub struct Interrupts {
    pub cancels: watch::Receiver<u64>,
    pub gone: watch::Receiver<bool>,
    pub shutdown: watch::Receiver<bool>,
}

impl Interrupts {
    /// A cancel request that comes too late for one statement is not meant for the next.
    pub fn begin(&mut self) {
        self.cancels.borrow_and_update();
    }

    /// Does `work` unless it is interrupted; it is then dropped where it waits.
    pub async fn unless<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Interrupted> {
        tokio::select! {
            biased;
            interrupted = self.next() => Err(interrupted),
            done = work => Ok(done),
        }
    }

    async fn next(&mut self) -> Interrupted {
        tokio::select! {
            biased;
            () = until(&mut self.gone) => Interrupted::Gone,
            () = until(&mut self.shutdown) => Interrupted::ShuttingDown,
            () = once_more(&mut self.cancels) => Interrupted::Cancelled,
        }
    }
}

/// Waits until it says so; for ever where nobody is left to say it.
pub async fn until(flag: &mut watch::Receiver<bool>) {
    if flag.wait_for(|raised| *raised).await.is_err() {
        std::future::pending::<()>().await;
    }
}

async fn once_more(counter: &mut watch::Receiver<u64>) {
    if counter.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Interrupted {
    pub fn failure(self) -> Failure {
        match self {
            Self::Cancelled => Failure::new("57014", "canceling statement due to user request"),
            Self::ShuttingDown => shutting_down(),
            Self::Gone => Failure::new("08006", "the client has gone").fatal(),
        }
    }
}

pub fn shutting_down() -> Failure {
    let message = "terminating connection due to administrator command";
    Failure::new("57P01", message).fatal()
}
