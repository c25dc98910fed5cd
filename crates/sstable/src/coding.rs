//! Integers and blocks in byte strings: writing appends to a `Vec`, reading goes through [`Input`], which checks every length.

use bytes::Bytes;
pub(crate) use tidetable_layout::varint::{put_varint, take_varint, unzigzag, zigzag};

use crate::error::ReadError;

/// Appends a block: the length of `bytes` as a varint, then `bytes`.
pub(crate) fn put_block(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads a byte string from front to back. Never panics; every failure says what was being read and about where. Cheap to clone, and
/// what is taken shares the bytes.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    bytes: Bytes,
    /// The index of the next byte.
    at: usize,
    /// The offset of `bytes` in the file, for errors.
    base: u64,
    /// What is being read, for errors.
    what: &'static str,
}

impl Input {
    /// An input over `bytes`, which lie at offset `base` of the file. `what` names them in errors, such as "stripe head".
    pub(crate) fn new(bytes: Bytes, base: u64, what: &'static str) -> Self {
        Self { bytes, at: 0, base, what }
    }

    /// Names the part that is read from here on, for errors.
    pub(crate) fn on(&mut self, what: &'static str) -> &mut Self {
        self.what = what;
        self
    }

    /// The offset in the file of the next byte.
    pub(crate) fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// The error for damage at the current position.
    pub(crate) fn corrupt(&self) -> ReadError {
        ReadError::Corrupt { what: self.what, offset: self.offset() }
    }

    /// The number of bytes that have not been read.
    pub(crate) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Reads `len` bytes, without copying them.
    pub(crate) fn take(&mut self, len: usize) -> Result<Bytes, ReadError> {
        if len > self.left() {
            return Err(self.corrupt());
        }
        let part = self.bytes.slice(self.at..self.at + len);
        self.at += len;
        Ok(part)
    }

    /// Reads all that is left, without copying it.
    pub(crate) fn rest(&mut self) -> Bytes {
        let part = self.bytes.slice(self.at..);
        self.at = self.bytes.len();
        part
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ReadError> {
        let array = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()).copied();
        let array = array.ok_or_else(|| self.corrupt())?;
        self.at += N;
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, ReadError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, ReadError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, ReadError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, ReadError> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, ReadError> {
        self.array().map(u128::from_le_bytes)
    }

    /// Reads what [`put_varint`] appended; more than 64 bits are an error.
    pub(crate) fn varint(&mut self) -> Result<u64, ReadError> {
        let mut rest = self.bytes.get(self.at..).unwrap_or_default();
        let value = take_varint(&mut rest).ok_or_else(|| self.corrupt())?;
        self.at = self.bytes.len() - rest.len();
        Ok(value)
    }

    /// Reads a varint that counts something. A count over `most` is an error, so callers can allocate by it.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, ReadError> {
        let value = self.varint()?;
        usize::try_from(value).ok().filter(|count| *count <= most).ok_or_else(|| self.corrupt())
    }

    /// Reads what [`put_block`] appended.
    pub(crate) fn block(&mut self) -> Result<Bytes, ReadError> {
        let len = self.count(self.left())?;
        self.take(len)
    }

    /// Reads a block as an input of its own, whose errors say `what` and offsets in the file.
    pub(crate) fn nested(&mut self, what: &'static str) -> Result<Self, ReadError> {
        let bytes = self.block()?;
        let base = self.offset() - bytes.len() as u64;
        Ok(Self::new(bytes, base, what))
    }

    /// Fails if any byte is left: the writer appended nothing else.
    pub(crate) fn finish(&self) -> Result<(), ReadError> {
        if self.left() == 0 { Ok(()) } else { Err(self.corrupt()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_round_trip() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            put_block(&mut out, b"end");
            let mut input = Input::new(out.into(), 0, "test");
            assert_eq!(input.varint().unwrap(), value);
            assert_eq!(input.block().unwrap(), "end");
            input.finish().unwrap();
        }
    }

    #[test]
    fn overlong_and_short_are_errors() {
        for bytes in [&[0xffu8; 10][..], &[0x80], &[]] {
            assert!(Input::new(Bytes::copy_from_slice(bytes), 0, "test").varint().is_err());
        }
        assert!(Input::new(Bytes::from_static(&[5, 1]), 0, "test").block().is_err());
    }
}
