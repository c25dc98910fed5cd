//! A connection: requests in, replies out.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use httparse::{Status, parse_chunk_size};

use super::request::Head;
use super::response::Response;

/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// Most bytes of first line and headers.
const MOST_HEAD: usize = 64 << 10;
/// Most bytes of a body.
const MOST_BODY: usize = 1 << 30;
/// Replies up to this size are sent in one piece with their headers.
const SMALL: u64 = 64 << 10;

/// A connection to a client.
#[derive(Debug)]
pub(crate) struct Line {
    stream: TcpStream,
    buffer: BytesMut,
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Line {
    /// Takes over a connection.
    ///
    /// # Errors
    /// Those of setting it up.
    pub fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: BytesMut::new() })
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let len = self.buffer.len();
        self.buffer.resize(len + PIECE, 0);
        let read = loop {
            match self.stream.read(&mut self.buffer[len..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.buffer.truncate(len + *read.as_ref().unwrap_or(&0));
        Ok(read? > 0)
    }

    /// Reads until the buffer has `len` bytes.
    fn need(&mut self, len: usize) -> io::Result<()> {
        while self.buffer.len() < len {
            if !self.fill()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(())
    }

    /// The next first line with its headers; `None` at the end.
    ///
    /// # Errors
    /// Those of the connection; no HTTP; too many bytes.
    pub fn read_head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(head) = Head::parse(&self.buffer)? {
                self.buffer.advance(head.bytes.len());
                return Ok(Some(head));
            }
            if self.buffer.len() > MOST_HEAD {
                return Err(wrong("too many bytes of headers"));
            }
            if !self.fill()? {
                return if self.buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }

    /// The body of the request of `head`.
    ///
    /// # Errors
    /// Those of the connection; a wrong length; too many bytes.
    pub fn read_body(&mut self, head: &Head) -> io::Result<Bytes> {
        let chunked = head.says("transfer-encoding", "chunked");
        let len: usize = match head.header("content-length") {
            Some(text) if !chunked => text.trim().parse().map_err(|_| wrong("invalid Content-Length"))?,
            _ => 0,
        };
        if len > MOST_BODY {
            return Err(wrong("a body over 1 GiB"));
        }
        if head.says("expect", "100-continue") && (chunked || self.buffer.len() < len) {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if chunked {
            return self.read_chunks();
        }
        self.buffer.reserve(len.saturating_sub(self.buffer.len()));
        self.need(len)?;
        Ok(self.buffer.split_to(len).freeze())
    }

    /// A body in chunks (RFC 9112, 7.1); trailers are skipped.
    fn read_chunks(&mut self) -> io::Result<Bytes> {
        let mut body = BytesMut::new();
        loop {
            let (start, len) = loop {
                match parse_chunk_size(&self.buffer).map_err(|_| wrong("invalid chunk"))? {
                    Status::Complete((start, len)) => break (start, len as usize),
                    Status::Partial if self.fill()? => {}
                    Status::Partial => return Err(io::ErrorKind::UnexpectedEof.into()),
                }
            };
            self.buffer.advance(start);

            if len == 0 {
                break;
            }
            if body.len().saturating_add(len) > MOST_BODY {
                return Err(wrong("a body over 1 GiB"));
            }
            self.need(len + 2)?;
            body.extend_from_slice(&self.buffer[..len]);
            self.buffer.advance(len + 2);
        }

        // Trailers, up to an empty line.
        loop {
            match self.buffer.windows(2).position(|two| two == b"\r\n") {
                Some(0) => {
                    self.buffer.advance(2);
                    return Ok(body.freeze());
                }
                Some(end) => self.buffer.advance(end + 2),
                None if self.fill()? => {}
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
    }

    /// Sends a reply.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn write(&mut self, response: &Response) -> io::Result<()> {
        let mut head = response.head().into_bytes();
        if response.len() <= SMALL {
            response.body.iter().for_each(|piece| head.extend_from_slice(piece));
            return self.stream.write_all(&head);
        }
        self.stream.write_all(&head)?;
        response.body.iter().try_for_each(|piece| self.stream.write_all(piece))
    }

    /// Sends a reply up to the middle of its body, and closes the connection.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn write_half(mut self, response: &Response) -> io::Result<()> {
        self.stream.write_all(response.head().as_bytes())?;
        let mut left = response.len() / 2;
        for piece in &response.body {
            let sent = left.min(piece.len() as u64);
            self.stream.write_all(&piece[..sent as usize])?;
            left -= sent;
        }
        self.close()
    }

    /// Closes the connection in good order.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn close(self) -> io::Result<()> {
        self.stream.shutdown(Shutdown::Both)
    }

    /// Resets the connection: the client gets an error of its own, not an end.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn reset(self) -> io::Result<()> {
        // Closing a socket that lingers for no time sends RST.
        socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))
    }
}
