//! Reads the body of a message. Each length is checked before it is used.

use bytes::{Buf, Bytes};

use crate::error::{Refusal, code};

/// The rest of the body of a message.
#[derive(Debug)]
pub(crate) struct Body(pub(crate) Bytes);

impl Body {
    fn require(&self, bytes: usize) -> Result<(), Refusal> {
        match self.0.len() >= bytes {
            true => Ok(()),
            false => Err(Refusal::protocol("a message is shorter than what it holds")),
        }
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Refusal> {
        self.require(1)?;
        Ok(self.0.get_u8())
    }

    pub(crate) fn short(&mut self) -> Result<i16, Refusal> {
        self.require(2)?;
        Ok(self.0.get_i16())
    }

    pub(crate) fn integer(&mut self) -> Result<i32, Refusal> {
        self.require(4)?;
        Ok(self.0.get_i32())
    }

    /// A number of items that follow, each of at least `least` bytes.
    pub(crate) fn count(&mut self, least: usize) -> Result<usize, Refusal> {
        let count = usize::from(self.short()?.cast_unsigned());
        self.require(count * least)?;
        Ok(count)
    }

    /// Text up to a zero byte.
    pub(crate) fn text(&mut self) -> Result<String, Refusal> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or_else(|| Refusal::protocol("a text of a message has no end"))?;
        let text = self.0.split_to(end);
        self.0.advance(1);
        let not_utf8 = |_| Refusal::fatal(code::ENCODING, "a text of a message is not UTF-8, the only encoding here");
        String::from_utf8(text.to_vec()).map_err(not_utf8)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Result<Bytes, Refusal> {
        self.require(count)?;
        Ok(self.0.split_to(count))
    }

    /// Bytes after their length; `None` if that is negative, which stands for null.
    pub(crate) fn value(&mut self) -> Result<Option<Bytes>, Refusal> {
        match usize::try_from(self.integer()?) {
            Ok(length) => self.bytes(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
