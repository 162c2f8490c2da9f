//! The reading half of a connection: packets and messages, framed and bounded.
//!
//! Once a connection is open a task of its own reads ahead, so that a client which goes away is noticed
//! while its query runs, and not at the next write.

use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::error::Failure;
use super::frontend::{Frontend, MAX_STARTUP_BYTES, Opening, unknown};

/// Longer messages are refused, and not more is read ahead of what the connection has worked off.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// What reading came to.
#[derive(Debug)]
pub enum ReadError {
    /// The client has gone.
    Gone,
    /// What it sent makes no sense.
    Failed(Failure),
}

impl From<io::Error> for ReadError {
    fn from(_: io::Error) -> Self {
        // Whatever the socket says, there is nobody to be told.
        Self::Gone
    }
}

impl From<Failure> for ReadError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

pub struct Reader {
    socket: BufReader<OwnedReadHalf>,
}

impl Reader {
    pub fn new(socket: OwnedReadHalf) -> Self {
        Self {
            socket: BufReader::new(socket),
        }
    }

    /// The next packet of a connection that is not open yet.
    pub async fn opening(&mut self) -> Result<Opening, ReadError> {
        let length = self.socket.read_i32().await?;
        let length = usize::try_from(length)
            .ok()
            .filter(|n| (8..=MAX_STARTUP_BYTES).contains(n))
            .ok_or_else(|| Failure::protocol("invalid length of startup packet").fatal())?;
        let mut packet = vec![0; length - 4];
        self.socket.read_exact(&mut packet).await?;
        Ok(Opening::decode(&packet)?)
    }

    async fn message(&mut self, ahead: &Arc<Semaphore>) -> Result<Raw, ReadError> {
        let tag = self.socket.read_u8().await?;
        if !Frontend::is_known(tag) {
            return Err(unknown(tag).into());
        }
        let length = self.socket.read_i32().await?;
        let length = usize::try_from(length)
            .ok()
            .and_then(|n| n.checked_sub(4))
            .ok_or_else(|| Failure::protocol("invalid message length").fatal())?;
        if length > MAX_MESSAGE_BYTES {
            let message = format!("a message of {length} bytes is too long");
            let failure = Failure::new("54000", message).fatal();
            let hint = format!("at most {MAX_MESSAGE_BYTES} bytes");
            return Err(failure.hint(hint).into());
        }
        // An empty message takes room as well.
        let n_permits = length.clamp(64, MAX_MESSAGE_BYTES) as u32;
        let permit = ahead.clone().acquire_many_owned(n_permits).await;
        let permit = permit.map_err(|_| ReadError::Gone)?;
        let mut body = Vec::new();
        // Grows with what comes, not with what is claimed.
        let read = (&mut self.socket)
            .take(length as u64)
            .read_to_end(&mut body)
            .await?;
        if read < length {
            return Err(ReadError::Gone);
        }
        Ok(Raw {
            tag,
            body,
            _permit: permit,
        })
    }
}

/// A message as it came.
pub struct Raw {
    tag: u8,
    body: Vec<u8>,
    /// Gives its room back when the message has been dealt with.
    _permit: OwnedSemaphorePermit,
}

/// Messages that have been read ahead, and whether the client is still there.
pub struct Incoming {
    messages: mpsc::UnboundedReceiver<Result<Raw, Failure>>,
    gone: watch::Receiver<bool>,
    reading: tokio::task::JoinHandle<()>,
}

impl Incoming {
    /// Reads on in a task of its own.
    pub fn start(mut reader: Reader) -> Self {
        // Bounded by the bytes in it.
        let (sender, messages) = mpsc::unbounded_channel();
        let (gone, client) = watch::channel(false);
        let reading = tokio::spawn(async move {
            let ahead = Arc::new(Semaphore::new(MAX_MESSAGE_BYTES));
            loop {
                let (message, last) = match reader.message(&ahead).await {
                    Ok(raw) => (Ok(raw), false),
                    // What follows cannot be told apart; the connection ends with this.
                    Err(ReadError::Failed(failure)) => (Err(failure), true),
                    Err(ReadError::Gone) => break,
                };
                if sender.send(message).is_err() {
                    break;
                }
                if last {
                    return;
                }
            }
            // Also after good-bye, when everything that came before has been dealt with or given up.
            gone.send_replace(true);
        });
        Self {
            messages,
            gone: client,
            reading,
        }
    }

    /// The next message; `None`: the client has gone. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Frontend, Failure>> {
        let raw = self.messages.recv().await?;
        Some(raw.and_then(|raw| Frontend::decode(raw.tag, &raw.body)))
    }

    /// Becomes true when the client has gone.
    pub fn gone(&self) -> watch::Receiver<bool> {
        self.gone.clone()
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.reading.abort();
    }
}
