//! One connection, from its opening to its end.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Duration, timeout};

use super::backend::Output;
use super::backends::{Backends, Registered};
use super::client::{Client, Result, Stop};
use super::error::Failure;
use super::frontend::{Frontend, Opening, Startup};
use super::interrupt::{Interrupted, Interrupts, shutting_down, until};
use super::read::{Incoming, ReadError, Reader};
use super::startup;
use crate::engine::Engine;

/// A client that connects and says nothing gives its place up.
const STARTUP_PATIENCE: Duration = Duration::from_secs(60);
/// How long a client may take to read why its connection ends.
const FAREWELL_PATIENCE: Duration = Duration::from_secs(5);

/// What connections share.
pub struct Shared {
    pub engine: Arc<Engine>,
    pub backends: Arc<Backends>,
    /// Raised when the server goes down.
    pub shutdown: watch::Receiver<bool>,
}

/// Serves a connection to its end.
pub async fn serve(shared: Arc<Shared>, socket: TcpStream, peer: SocketAddr) {
    // Without it small answers would wait for one another. Where it fails they do.
    let _ = socket.set_nodelay(true);
    let (read, write) = socket.into_split();
    let (mut reader, mut output) = (Reader::new(read), Output::new(write));
    let mut shutdown = shared.shutdown.clone();
    let opening = tokio::select! {
        opening = timeout(STARTUP_PATIENCE, open(&shared, &mut reader, &mut output)) => opening,
        () = until(&mut shutdown) => return,
    };
    let (startup, registered) = match opening {
        Ok(Ok(Some(opened))) => opened,
        Ok(Ok(None) | Err(ReadError::Gone)) | Err(_) => return,
        Ok(Err(ReadError::Failed(failure))) => {
            tracing::debug!(%peer, failure.message, "a connection did not open");
            farewell(&mut output, &failure.fatal()).await;
            return;
        }
    };
    match startup::Asked::of(&startup) {
        Err(failure) => farewell(&mut output, &failure.fatal()).await,
        Ok(asked) => {
            let client = startup::open(&shared.engine, &startup, asked, &registered, output);
            let mut connection = Connection::new(client, reader, &registered, &shared);
            connection.run().await;
        }
    }
}

/// The start-up packet, after those that precede it; `None`: a connection that only cancels.
async fn open(
    shared: &Shared,
    reader: &mut Reader,
    output: &mut Output,
) -> Result<Option<(Startup, Registered)>, ReadError> {
    // One of each kind of encryption may be asked for, not more.
    for _ in 0..3 {
        match reader.opening().await? {
            Opening::Encryption => {
                output.byte(b'N');
                output.flush().await?;
            }
            Opening::Cancel { pid, secret } => {
                shared.backends.cancel(pid, &secret);
                return Ok(None);
            }
            Opening::Startup(startup) => {
                return Ok(Some((startup, shared.backends.register())));
            }
        }
    }
    Err(Failure::protocol("encryption was asked for too often").into())
}

async fn farewell(output: &mut Output, failure: &Failure) {
    output.error(failure);
    // Whether it was read makes no difference any more.
    let _ = timeout(FAREWELL_PATIENCE, output.close()).await;
}

struct Connection {
    client: Client,
    incoming: Incoming,
    interrupts: Interrupts,
    /// An error of the extended protocol: everything up to the next Sync is skipped.
    skipping: bool,
}

impl Connection {
    fn new(client: Client, reader: Reader, registered: &Registered, shared: &Shared) -> Self {
        let incoming = Incoming::start(reader);
        let interrupts = Interrupts {
            cancels: registered.cancels.clone(),
            gone: incoming.gone(),
            shutdown: shared.shutdown.clone(),
        };
        Self {
            client,
            incoming,
            interrupts,
            skipping: false,
        }
    }

    async fn run(&mut self) {
        let end = self.messages().await;
        if let Some(failure) = end {
            farewell(&mut self.client.output, &failure).await;
        }
    }

    /// Works messages off until the connection ends; with what the client is told last.
    async fn messages(&mut self) -> Option<Failure> {
        loop {
            // More may be there already: their answers go out together.
            let message = match self.incoming.next().now_or_never() {
                Some(message) => message,
                None => {
                    match self.interrupts.unless(self.client.output.flush()).await {
                        Ok(Ok(())) | Err(Interrupted::Cancelled) => {}
                        Ok(Err(_)) | Err(Interrupted::Gone) => return None,
                        Err(Interrupted::ShuttingDown) => return Some(shutting_down()),
                    }
                    tokio::select! {
                        biased;
                        message = self.incoming.next() => message,
                        () = until(&mut self.interrupts.shutdown) => return Some(shutting_down()),
                    }
                }
            };
            let message = match message? {
                Ok(message) => message,
                Err(failure) if failure.is_fatal => return Some(failure),
                Err(failure) => {
                    // A message that cannot be read ends as its statement would.
                    self.client.output.error(&failure);
                    self.client.fail();
                    self.skipping = true;
                    continue;
                }
            };
            if let Some(end) = self.message(message).await {
                return end;
            }
        }
    }

    /// Deals with one message; `Some`: it ends the connection.
    async fn message(&mut self, message: Frontend) -> Option<Option<Failure>> {
        let is_simple = matches!(message, Frontend::Query(_));
        match message {
            Frontend::Terminate => {
                // What came before is answered; whether it is read makes no difference any more.
                let _ = self.interrupts.unless(self.client.output.flush()).await;
                return Some(None);
            }
            Frontend::Copy => return None,
            Frontend::Sync => {
                self.skipping = false;
                self.client.sync();
                return None;
            }
            Frontend::Flush => {
                // Without further ado, as nothing may follow for a while.
                let flushed = self.interrupts.unless(self.client.output.flush()).await;
                return matches!(flushed, Ok(Err(_)) | Err(Interrupted::Gone)).then_some(None);
            }
            _ if self.skipping && !is_simple => return None,
            _ => {}
        }
        self.interrupts.begin();
        let work = async {
            match message {
                Frontend::Query(text) => self.client.simple(&text).await,
                message => self.client.extended(message).await,
            }
        };
        let failure = match self.interrupts.unless(work).await {
            Ok(Ok(())) => None,
            Ok(Err(Stop::Failed(failure))) => Some(failure),
            Ok(Err(Stop::Disconnected)) | Err(Interrupted::Gone) => return Some(None),
            Err(interrupted) => Some(interrupted.failure()),
        };
        if let Some(failure) = failure {
            if failure.is_fatal {
                return Some(Some(failure));
            }
            self.client.output.error(&failure);
            self.client.fail();
            self.skipping = !is_simple;
        }
        if is_simple {
            self.skipping = false;
            self.client.output.ready(self.client.transaction);
        }
        None
    }
}
