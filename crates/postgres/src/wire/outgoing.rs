//! What is sent to a client.

use std::io;

use bytes::{Buf, BufMut, BytesMut};
use pgwire::messages::Message;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::encode::{Format, Rows};
use crate::error::Refusal;

/// Bytes that wait before they are sent.
const CHUNK: usize = 64 << 10;

/// The writing half of a connection, with messages that wait to be sent.
pub(crate) struct Outgoing {
    stream: Box<dyn AsyncWrite + Send + Unpin>,
    buffer: BytesMut,
    /// Bytes of whole messages at the start of the buffer.
    finished: usize,
}

impl Outgoing {
    pub(crate) fn new(stream: Box<dyn AsyncWrite + Send + Unpin>) -> Self {
        Self { stream, buffer: BytesMut::new(), finished: 0 }
    }

    /// Appends a message.
    ///
    /// # Errors
    /// If it is longer than clients take.
    pub(crate) fn put(&mut self, message: &impl Message) -> Result<(), Refusal> {
        message.encode(&mut self.buffer).map_err(|error| Refusal::internal(error.to_string()))?;
        self.finished = self.buffer.len();
        Ok(())
    }

    /// Drops the message that was being written when a panic ended it: what follows would be taken for a part of it.
    pub(crate) fn drop_unfinished(&mut self) {
        self.buffer.truncate(self.finished);
    }

    /// Appends a message with a row.
    pub(crate) fn put_row(&mut self, rows: &Rows, row: usize, formats: &[Format]) {
        self.put_framed(b'D', |buffer| {
            buffer.put_i16(i16::try_from(rows.columns().len()).unwrap_or(i16::MAX));
            rows.write(row, formats, buffer);
        });
    }

    /// Appends a message with data of a COPY.
    pub(crate) fn put_copied(&mut self, write: impl FnOnce(&mut BytesMut)) {
        self.put_framed(b'd', write);
    }

    fn put_framed(&mut self, kind: u8, write: impl FnOnce(&mut BytesMut)) {
        self.buffer.put_u8(kind);
        let start = self.buffer.len();
        self.buffer.put_i32(0);
        write(&mut self.buffer);
        let length = i32::try_from(self.buffer.len() - start).unwrap_or(i32::MAX);
        if let Some(place) = self.buffer.get_mut(start..start + size_of::<i32>()) {
            place.copy_from_slice(&length.to_be_bytes());
        }
        self.finished = self.buffer.len();
    }

    /// Sends what waits if it is much.
    ///
    /// # Errors
    /// If the client is gone.
    pub(crate) async fn flush_full(&mut self) -> io::Result<()> {
        if self.buffer.len() < CHUNK {
            return Ok(());
        }
        self.flush().await
    }

    /// Sends all that waits. What was not sent when this is dropped still waits, and no byte is sent twice.
    ///
    /// # Errors
    /// If the client is gone.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        while !self.buffer.is_empty() {
            let sent = self.stream.write(&self.buffer).await?;
            if sent == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.buffer.advance(sent);
            self.finished = self.finished.saturating_sub(sent);
        }
        self.stream.flush().await
    }

    /// Ends the connection.
    pub(crate) async fn shut(&mut self) {
        // A client that is gone needs no end.
        let _ = self.stream.shutdown().await;
    }
}
