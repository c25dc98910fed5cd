//! What a client sends.

use std::io;

use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::error::Refusal;

/// Bytes that are read at once.
const CHUNK: usize = 16 << 10;
/// Bytes that are read ahead while a statement runs: enough for the messages that drivers send in one go.
const MOST_AHEAD: usize = 1 << 20;
/// Bytes of the length of a message.
pub(crate) const LENGTH: usize = 4;

/// The reading half of a connection.
pub(crate) struct Incoming {
    stream: Box<dyn AsyncRead + Send + Unpin>,
    buffer: BytesMut,
    has_ended: bool,
}

impl Incoming {
    pub(crate) fn new(stream: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        Self { stream, buffer: BytesMut::new(), has_ended: false }
    }

    /// The body of the next first message; `None` at the end of the connection.
    pub(crate) async fn first(&mut self, most: usize) -> io::Result<Option<Result<Bytes, Refusal>>> {
        Ok(self.frame(0, most).await?.map(|frame| frame.map(|(_, body)| body)))
    }

    /// Type and body of the next message, of at most `most` bytes; `None` at the end of the connection.
    pub(crate) async fn message(&mut self, most: usize) -> io::Result<Option<Result<(u8, Bytes), Refusal>>> {
        self.frame(1, most).await
    }

    /// Whether the client is gone.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Ends when the client has gone. Reads ahead, so that the end is seen; with more than that ahead it cannot be.
    pub(crate) async fn client_gone(&mut self) {
        while !self.has_ended && self.buffer.len() < MOST_AHEAD {
            if self.read().await.is_err() {
                self.has_ended = true;
            }
        }
        if !self.has_ended {
            std::future::pending::<()>().await;
        }
    }

    /// A message whose length follows so many bytes of its type.
    async fn frame(&mut self, kind: usize, most: usize) -> io::Result<Option<Result<(u8, Bytes), Refusal>>> {
        loop {
            if let Some(length) = self.length_at(kind) {
                let Some(length) = usize::try_from(length).ok().filter(|length| *length >= LENGTH) else {
                    return Ok(Some(Err(Refusal::protocol("a message has an invalid length"))));
                };
                if length > most {
                    return Ok(Some(Err(Refusal::protocol(format!(
                        "a message has {length} bytes, and {most} are the most here"
                    )))));
                }
                if self.buffer.len() >= kind + length {
                    let mut frame = self.buffer.split_to(kind + length).freeze();
                    let letter = if kind == 1 { frame.get_u8() } else { 0 };
                    frame.advance(LENGTH);
                    return Ok(Some(Ok((letter, frame))));
                }
            }
            if self.has_ended {
                return Ok(None);
            }
            self.read().await?;
        }
    }

    fn length_at(&self, start: usize) -> Option<i32> {
        let bytes = self.buffer.get(start..start + LENGTH)?;
        Some(i32::from_be_bytes(bytes.try_into().ok()?))
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(CHUNK);
        if self.stream.read_buf(&mut self.buffer).await? == 0 {
            self.has_ended = true;
        }
        Ok(())
    }
}
