//! The writing half of a connection: messages are put into a buffer and flushed.

use std::io;

use bytes::{BufMut, BytesMut};
use pgwire::messages::Message;
use pgwire::messages::response::{
    CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus,
};
use tokio::io::AsyncWriteExt;
use tokio::net::tcp::OwnedWriteHalf;

use super::error::{Failure, notice, warning};

/// Above this many bytes rows are sent on before there are more.
const FLUSH_BYTES: usize = 64 << 10;

/// Messages on their way to a client. What has been put and not flushed outlives a query that is
/// cancelled: no message is ever cut.
pub struct Output {
    socket: OwnedWriteHalf,
    buffer: BytesMut,
}

impl Output {
    pub fn new(socket: OwnedWriteHalf) -> Self {
        Self {
            socket,
            buffer: BytesMut::new(),
        }
    }

    pub fn put<M: Message>(&mut self, message: &M) {
        let start = self.buffer.len();
        if message.encode(&mut self.buffer).is_err() {
            // Only a text of ours that is longer than such a message may be, as a tag: leave it out whole.
            self.buffer.truncate(start);
        }
    }

    pub fn byte(&mut self, byte: u8) {
        self.buffer.put_u8(byte);
    }

    /// A message whose body `write` appends, of any length.
    ///
    /// Errors: those of `write`, and a body that is longer than a message can be; nothing is then put.
    pub fn message<E: From<Failure>>(
        &mut self,
        tag: u8,
        write: impl FnOnce(&mut BytesMut) -> Result<(), E>,
    ) -> Result<(), E> {
        let start = self.buffer.len();
        self.buffer.put_u8(tag);
        self.buffer.put_i32(0);
        let written = write(&mut self.buffer).and_then(|()| {
            let length = i32::try_from(self.buffer.len() - start - 1);
            let too_long = |_| Failure::new("54000", "a row is longer than a message can be");
            let length = length.map_err(too_long)?;
            self.buffer[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
            Ok(())
        });
        if written.is_err() {
            self.buffer.truncate(start);
        }
        written
    }

    pub fn notice(&mut self, message: &str) {
        self.put(&notice(message));
    }

    pub fn warning(&mut self, message: &str) {
        self.put(&warning(message));
    }

    pub fn error(&mut self, failure: &Failure) {
        self.put(&failure.response());
    }

    pub fn complete(&mut self, tag: &str) {
        self.put(&CommandComplete::new(tag.to_string()));
    }

    pub fn empty_query(&mut self) {
        self.put(&EmptyQueryResponse::new());
    }

    pub fn ready(&mut self, status: TransactionStatus) {
        self.put(&ReadyForQuery::new(status));
    }

    /// Sends everything. Cancel-safe: what was sent is no longer in the buffer.
    pub async fn flush(&mut self) -> io::Result<()> {
        while !self.buffer.is_empty() {
            if self.socket.write_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        self.socket.flush().await
    }

    pub async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() > FLUSH_BYTES {
            self.flush().await
        } else {
            Ok(())
        }
    }

    /// Sends what there is and says good-bye.
    pub async fn close(&mut self) -> io::Result<()> {
        self.flush().await?;
        self.socket.shutdown().await
    }
}
