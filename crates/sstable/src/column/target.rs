//! Where streams are written, and the nulls that are collected when they are read.

use arrow::array::BooleanBufferBuilder;
use arrow::buffer::NullBuffer;

use crate::column::stream::{Page, Pages};
use crate::options::Compression;

/// The target of a stream: its entry goes to `head`, its pages to `pages`.
pub(crate) struct Target<'a> {
    pub(crate) head: &'a mut Vec<u8>,
    pub(crate) pages: &'a mut Pages,
    pub(crate) level: Compression,
}

/// Collects the nulls of a column while its pages are read. Columns without nulls pay nothing.
pub(super) struct Nulls {
    /// The validity up to the last page with nulls; `None` as long as no page had any.
    bits: Option<BooleanBufferBuilder>,
}

impl Nulls {
    pub(super) fn new() -> Self {
        Self { bits: None }
    }

    /// Adds the validity of `page`, before which `done` records were read.
    pub(super) fn add(&mut self, page: &Page, done: usize) {
        if let Some(mask) = &page.mask {
            let bits = self.bits.get_or_insert_with(|| BooleanBufferBuilder::new(done + mask.len()));
            bits.append_n(done.saturating_sub(bits.len()), true);
            bits.append_buffer(mask);
        }
    }

    /// The nulls of all `records` records; `None` if there are none.
    pub(super) fn finish(self, records: usize) -> Option<NullBuffer> {
        let mut bits = self.bits?;
        bits.append_n(records.saturating_sub(bits.len()), true);
        Some(NullBuffer::new(bits.finish())).filter(|nulls| nulls.null_count() > 0)
    }
}
