//! The door for clients of PostgreSQL: `thalweg serve`.
//!
//! Each connection is a task with a session of its own on the engine that all of them share. The
//! messages are those of the `pgwire` crate; the loop around them is our own, because a result that
//! never ends must be sent as it comes, and must end with its client (`docs/decisions/0013`).
//!
//! Nobody is asked who they are, so nothing but loopback addresses are listened on.

mod backend;
mod backends;
mod catalog;
mod client;
mod client_settings;
mod connection;
mod copy;
mod cursor;
mod encode;
mod error;
mod execute;
mod extended;
mod frontend;
mod insert;
mod interrupt;
mod jobs;
mod parameter;
mod plan;
mod prepared;
mod read;
mod rows;
mod simple;
mod startup;
mod types;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep};

use crate::engine::Engine;
use crate::error::{Error, Result};
use backends::Backends;
use connection::Shared;

/// After a failure to accept, which a moment may mend: too many open files.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Listens for clients.
pub struct Server {
    listener: TcpListener,
    engine: Arc<Engine>,
}

impl Server {
    /// Errors: an address that others can reach; one that is taken.
    pub async fn bind(address: SocketAddr, engine: Arc<Engine>) -> Result<Self> {
        if !address.ip().is_loopback() {
            return Err(Error::Usage(format!(
                "--listen {address}: only loopback addresses are listened on, as there is no authentication yet"
            )));
        }
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|e| Error::io(format!("listening on {address}"), e))?;
        Ok(Self { listener, engine })
    }

    /// Where it listens, with the port that the system chose for port 0.
    pub fn address(&self) -> Result<SocketAddr> {
        let address = self.listener.local_addr();
        address.map_err(|e| Error::io("the listening socket", e))
    }

    /// Serves clients until `shutdown` is raised, then tells them so and returns when they are gone.
    pub async fn run(self, mut shutdown: watch::Receiver<bool>) {
        let shared = Arc::new(Shared {
            engine: self.engine,
            backends: Arc::new(Backends::default()),
            shutdown: shutdown.clone(),
        });
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((socket, peer)) => {
                        connections.spawn(connection::serve(shared.clone(), socket, peer));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        sleep(ACCEPT_AGAIN).await;
                    }
                },
                Some(ended) = connections.join_next() => log_panic(ended),
                () = interrupt::until(&mut shutdown) => break,
            }
        }
        drop(self.listener);
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    }
}

/// A connection that panics is a bug of ours; the others go on.
fn log_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended by a bug; please report this");
    }
}
