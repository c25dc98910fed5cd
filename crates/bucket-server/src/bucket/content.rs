//! The bytes of an object.

use std::ops::Range;

use bytes::Bytes;
use xxhash_rust::xxh3::Xxh3;

/// Bytes in one piece for each part uploaded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Content {
    pieces: Vec<Bytes>,
}

impl From<Bytes> for Content {
    fn from(bytes: Bytes) -> Self {
        Self { pieces: vec![bytes] }
    }
}

impl Content {
    /// The pieces of all, in order.
    pub fn of(contents: impl IntoIterator<Item = Self>) -> Self {
        Self { pieces: contents.into_iter().flat_map(|content| content.pieces).collect() }
    }

    /// The number of bytes of all pieces.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.len() as u64).sum()
    }

    /// The bytes of `range`, as far as there are any, without copying.
    pub fn slice(&self, range: Range<u64>) -> Vec<Bytes> {
        let mut start = 0;
        let mut slices = Vec::new();
        for piece in &self.pieces {
            let end = start + piece.len() as u64;
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                slices.push(piece.slice((from - start) as usize..(to - start) as usize));
            }
            start = end;
        }
        slices
    }

    /// The ETag, in quotes: equal for equal bytes. S3 does not promise an MD5 sum, and that of an encrypted bucket is none.
    pub fn etag(&self) -> String {
        let mut hash = Xxh3::new();
        self.pieces.iter().for_each(|piece| hash.update(piece));
        format!("\"{:032x}\"", hash.digest128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_may_cross_pieces() {
        let content = Content::of([Bytes::from_static(b"abc").into(), Bytes::from_static(b"defg").into()]);
        assert_eq!((content.len(), content.slice(2..5).concat()), (7, b"cde".to_vec()));
        assert_eq!(content.slice(5..100).concat(), b"fg");
        assert_eq!(content.etag(), Content::from(Bytes::from_static(b"abcdefg")).etag());
        assert_ne!(content.etag(), Content::from(Bytes::from_static(b"abcdef")).etag());
    }
}
