//! Streams: an entry in the stripe head, and pages.
//!
//! ```text
//! entry   codec u8 | validity u8 (0 all have values, 1 pages say) | setup block
//!         | page count varint | (length varint, checksum u64) each
//! ```
//! Pages are contiguous in the order of the entries, so a page's offset is the sum of the lengths before it.

use std::borrow::Cow;
use std::ops::Range;

use arrow::buffer::{BooleanBuffer, NullBuffer};
use bytes::Bytes;

use crate::coding::{Input, put_block, put_varint};
use crate::column::validity;
use crate::error::{FilePart, ReadError, WriteError};
use crate::format::{Codec, PAGE_RECORDS};
use crate::io::{ReadAt, ReadCounts, checksum};

/// Which records of a stream have a value.
#[derive(Clone, Copy)]
pub(crate) struct Validity<'a> {
    /// The number of records, with or without values.
    pub(crate) records: usize,
    /// The nulls, as many as records; `None` if every record has a value.
    pub(crate) nulls: Option<&'a NullBuffer>,
}

impl Validity<'_> {
    /// The number of non-null values in each page, in order.
    pub(crate) fn page_counts(&self) -> Vec<usize> {
        (0..self.records.div_ceil(PAGE_RECORDS))
            .map(|page| {
                let range = page_range(page, self.records);
                range.len() - self.nulls.map_or(0, |nulls| nulls.slice(range.start, range.len()).null_count())
            })
            .collect()
    }

    /// The non-null values of `all`, which has a value or a placeholder for each record.
    pub(crate) fn dense<'v, T: Copy>(&self, all: &'v [T]) -> Cow<'v, [T]> {
        match self.nulls {
            None => all.into(),
            Some(nulls) => nulls.valid_indices().map(|index| all[index]).collect::<Vec<_>>().into(),
        }
    }
}

/// Collects the pages of a stripe, which follow its head in the file.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) data: Vec<u8>,
}

impl Pages {
    /// Appends a stream: its entry to `head`, its pages here. `page(index, out)` appends the non-null values of page `index`; it is
    /// called for each page in order, if pages of this codec store values.
    ///
    /// # Errors
    /// Those of `page`.
    pub(crate) fn put(
        &mut self,
        head: &mut Vec<u8>,
        codec: Codec,
        setup: &[u8],
        Validity { records, nulls }: Validity<'_>,
        mut page: impl FnMut(usize, &mut Vec<u8>) -> Result<(), WriteError>,
    ) -> Result<(), WriteError> {
        head.push(codec as u8);
        head.push(u8::from(nulls.is_some()));
        put_block(head, setup);
        let count = if codec.fills_pages() || nulls.is_some() { records.div_ceil(PAGE_RECORDS) } else { 0 };
        put_varint(head, count as u64);

        for index in 0..count {
            let start = self.data.len();
            if let Some(nulls) = nulls {
                let range = page_range(index, records);
                validity::put(&mut self.data, &nulls.slice(range.start, range.len()));
            }
            if codec.fills_pages() {
                page(index, &mut self.data)?;
            }

            put_varint(head, (self.data.len() - start) as u64);
            head.extend_from_slice(&checksum::in_stripe(start as u64, &self.data[start..]).to_le_bytes());
        }
        Ok(())
    }
}

/// The records of page `index` of a stream of `records`.
pub(crate) fn page_range(index: usize, records: usize) -> Range<usize> {
    let start = index * PAGE_RECORDS;
    start..(start + PAGE_RECORDS).min(records)
}

/// The location of a page among the stripe's pages, and its checksum.
#[derive(Debug, Clone, Copy)]
struct PageEntry {
    /// In bytes from the first page of the stripe.
    offset: u64,
    len: usize,
    checksum: u64,
}

/// A stream's decoded entry: all that is known of it without reading its pages.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) part: FilePart,
    pub(crate) codec: Codec,
    pub(crate) records: usize,
    pub(crate) setup: Input,
    gaps: bool,
    pages: Vec<PageEntry>,
}

impl Stream {
    /// Decodes the entry of a stream of `records` records. `next` is the offset of its first page among the stripe's pages, and is
    /// advanced past its last.
    ///
    /// # Errors
    /// If the entry is damaged, or its page count does not fit the number of records.
    pub(crate) fn read(input: &mut Input, part: FilePart, records: usize, next: &mut u64) -> Result<Self, ReadError> {
        input.on("stream");
        let codec = input.u8()?;
        let codec = Codec::of(codec).ok_or_else(|| input.corrupt())?;
        let gaps = match input.u8()? {
            0 => false,
            1 => true,
            _ => return Err(input.corrupt()),
        };
        let setup = input.nested("stream setup")?;

        let all = records.div_ceil(PAGE_RECORDS);
        let count = input.count(all)?;
        if count != if gaps || codec.fills_pages() { all } else { 0 } || (codec == Codec::Step && gaps) {
            return Err(input.corrupt());
        }

        let mut pages = Vec::with_capacity(count);
        for _ in 0..count {
            let len = input.count(u32::MAX as usize)?;
            pages.push(PageEntry { offset: *next, len, checksum: input.u64()? });
            *next += len as u64;
        }
        Ok(Self { part, codec, records, setup, gaps, pages })
    }

    /// The size of its pages in bytes.
    pub(crate) fn page_bytes(&self) -> u64 {
        self.pages.iter().map(|page| page.len as u64).sum()
    }

    /// The number of its pages.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Offset among the stripe's pages and length of each page.
    #[cfg(test)]
    pub(crate) fn places(&self) -> impl Iterator<Item = (u64, usize)> {
        self.pages.iter().map(|page| (page.offset, page.len))
    }

    /// Whether every record of the stream has a value.
    pub(crate) fn gapless(&self) -> bool {
        !self.gaps && (self.codec != Codec::Absent || self.records == 0)
    }
}

/// A page of a stream with the part of it that a read wants. Checked against its checksum, not yet decoded.
pub(crate) struct Page {
    /// The encoded non-null values of the whole page.
    pub(crate) payload: Bytes,
    /// The offset of the payload in the file, for errors.
    pub(crate) offset: u64,
    /// The index in the stream of the page's first record.
    pub(crate) first: usize,
    /// The wanted records, relative to the page.
    pub(crate) wanted: Range<usize>,
    /// The number of non-null values of the whole page.
    pub(crate) present: usize,
    /// The non-null values of wanted records, relative to the page.
    pub(crate) values: Range<usize>,
    /// Validity of the wanted records, if the page has nulls.
    pub(crate) mask: Option<BooleanBuffer>,
}

impl Page {
    /// The error for damage in this page; `what` names what was decoded.
    pub(crate) fn corrupt(&self, what: &'static str) -> ReadError {
        ReadError::Corrupt { what, offset: self.offset }
    }
}

/// Where the pages of one stripe are read from.
pub(crate) struct PageSource<'a> {
    /// The bytes of the file.
    pub(crate) source: &'a dyn ReadAt,
    /// The index of the stripe in the file, for errors.
    pub(crate) stripe: usize,
    /// The offset in the file of the stripe's first page.
    pub(crate) start: u64,
    /// The size of all its pages in bytes.
    pub(crate) len: u64,
    /// All its pages, if they were read in one request.
    pub(crate) whole: Option<Bytes>,
    /// Counters that are increased by what is read.
    pub(crate) counts: Option<&'a ReadCounts>,
}

impl PageSource<'_> {
    /// Calls `take` with the pages of `stream` that contain the records `range`, in order. The pages are read in one request.
    ///
    /// # Errors
    /// If a page cannot be read, its checksum does not match, or its validity is damaged; and those of `take`.
    pub(crate) fn pages(
        &self,
        stream: &Stream,
        range: Range<usize>,
        mut take: impl FnMut(Page) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        if range.is_empty() {
            return Ok(());
        }

        let span = range.start / PAGE_RECORDS..(range.end - 1) / PAGE_RECORDS + 1;
        let entries = stream.pages.get(span.clone()).unwrap_or_default();
        let base = entries.first().map_or(0, |entry| entry.offset);
        let end = entries.last().map_or(base, |entry| entry.offset + entry.len as u64);
        let bytes = self.bytes(base, end)?;
        if let Some(counts) = self.counts {
            counts.pages_of(entries.len());
        }

        for index in span.clone() {
            let records = page_range(index, stream.records);
            let wanted = range.start.max(records.start) - records.start..range.end.min(records.end) - records.start;
            let page = match entries.get(index - span.start) {
                Some(entry) => {
                    let payload = self.check(stream, index, entry, &bytes, base)?;
                    page_of(stream, payload, self.start + entry.offset, records, wanted)?
                }
                None => page_of(stream, Bytes::new(), self.start, records, wanted)?,
            };
            take(page)?;
        }
        Ok(())
    }

    /// Compares every checksum of `stream`, without decoding.
    pub(crate) fn check_all(&self, stream: &Stream) -> Result<(), ReadError> {
        for (index, entry) in stream.pages.iter().enumerate() {
            let bytes = self.bytes(entry.offset, entry.offset + entry.len as u64)?;
            self.check(stream, index, entry, &bytes, entry.offset)?;
        }
        Ok(())
    }

    /// The bytes from `base` to `end` of the stripe's pages.
    fn bytes(&self, base: u64, end: u64) -> Result<Bytes, ReadError> {
        if end > self.len {
            return Err(ReadError::Corrupt { what: "page table", offset: self.start });
        }
        if base == end {
            return Ok(Bytes::new());
        }

        let len = (end - base) as usize;
        match &self.whole {
            // In bounds: `whole` has `self.len` bytes.
            Some(whole) => Ok(whole.slice(base as usize..end as usize)),
            None => {
                if let Some(counts) = self.counts {
                    counts.page_bytes(len as u64);
                }
                Ok(self.source.read_at(self.start + base, len)?)
            }
        }
    }

    /// The bytes of page `page` of `stream`, if their checksum matches. `bytes` contains them and begins at offset `base`.
    fn check(
        &self,
        stream: &Stream,
        page: usize,
        entry: &PageEntry,
        bytes: &Bytes,
        base: u64,
    ) -> Result<Bytes, ReadError> {
        let start = (entry.offset - base) as usize;
        let failed = ReadError::Checksum {
            stripe: Some(self.stripe),
            stream: stream.part,
            page,
            offset: self.start + entry.offset,
        };
        if start + entry.len > bytes.len() {
            return Err(failed);
        }

        let payload = bytes.slice(start..start + entry.len);
        if checksum::matches(checksum::in_stripe(entry.offset, &payload), entry.checksum) {
            Ok(payload)
        } else {
            Err(failed)
        }
    }
}

/// Decodes the validity of a page, whose records are `records` of the stream, and finds the values of its `wanted` records.
fn page_of(
    stream: &Stream,
    bytes: Bytes,
    offset: u64,
    records: Range<usize>,
    wanted: Range<usize>,
) -> Result<Page, ReadError> {
    let mut input = Input::new(bytes, offset, "validity");
    let validity = if stream.gaps { validity::read(&mut input, records.len())? } else { None };
    let present = validity.as_ref().map_or(records.len(), BooleanBuffer::count_set_bits);

    let values = match &validity {
        Some(validity) => {
            let skipped = validity.slice(0, wanted.start).count_set_bits();
            skipped..skipped + validity.slice(wanted.start, wanted.len()).count_set_bits()
        }
        None => wanted.clone(),
    };
    let mask = validity.map(|validity| validity.slice(wanted.start, wanted.len()));
    let offset = input.offset();
    Ok(Page { payload: input.rest(), offset, first: records.start, wanted, present, values, mask })
}
