//! Where streams are written, and the nulls that are collected when they are read.

use arrow::buffer::{BooleanBuffer, NullBuffer};

use crate::column::stream::{Page, Pages};
use crate::options::Compression;

/// The target of a stream: its entry goes to `head`, its pages to `pages`.
pub(crate) struct Target<'a> {
    pub(crate) head: &'a mut Vec<u8>,
    pub(crate) pages: &'a mut Pages,
    pub(crate) level: Compression,
}

/// Collects nulls while pages are read.
pub(super) struct Nulls {
    bits: Vec<bool>,
    any: bool,
}

impl Nulls {
    pub(super) fn new() -> Self {
        Self { bits: Vec::new(), any: false }
    }

    /// Adds the validity of `page`, which follows `done` records.
    pub(super) fn add(&mut self, page: &Page, done: usize) {
        if let Some(mask) = &page.mask {
            self.any = true;
            self.bits.resize(done, true);
            self.bits.extend(mask.iter());
        }
    }

    pub(super) fn finish(mut self, records: usize) -> Option<NullBuffer> {
        self.any
            .then(|| {
                self.bits.resize(records, true);
                NullBuffer::new(BooleanBuffer::from(self.bits))
            })
            .filter(|nulls| nulls.null_count() > 0)
    }
}
