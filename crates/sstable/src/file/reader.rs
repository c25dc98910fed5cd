//! The reader of a file: opens it, finds stripes by key, and copies stripes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tidetable_layout::StoredSchema;
use tidetable_layout::schema::KeyTail;

use crate::column::stream::PageSource;
use crate::error::{FilePart, ReadError};
use crate::file::filter::KeyFilter;
use crate::file::footer::Footer;
use crate::file::meta::{FilterRef, Meta};
use crate::format::{FOOTER_LEN, HEADER_LEN};
use crate::io::ReadAt;
use crate::io::ReadCounts;
use crate::io::checksum;
use crate::stats::StripeMeta;
use crate::stripe::{EncodedStripe, KeyHashes, StripeHead, schema_hash};

/// Bytes read when a file is opened: the footer and, for most files, meta, in one request.
const OPENING_READ: u64 = 32 << 10;

/// An open file: its stripe table in memory, and where its bytes are. Clones share what has been read.
#[derive(Debug, Clone)]
pub struct Reader {
    pub(crate) file: Arc<Open>,
    counts: Option<Arc<ReadCounts>>,
}

/// What clones of a reader share.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) footer: Footer,
    pub(crate) meta: Meta,
    pub(crate) tail: Arc<KeyTail>,
    /// The key filter, read by the first lookup; `None` if there is none or it is unreadable.
    filter: OnceLock<Option<KeyFilter>>,
}

impl Reader {
    /// Opens a file: reads only its footer and meta.
    ///
    /// # Errors
    /// If this is not a complete SST of a supported version, or if the source fails.
    pub fn open(source: Arc<dyn ReadAt>) -> Result<Self, ReadError> {
        let file_len = source.len();
        let least = (HEADER_LEN + FOOTER_LEN) as u64;
        if file_len < least {
            return Err(ReadError::Truncated { what: "file", offset: 0, wanted: least, length: file_len });
        }

        let end_len = file_len.min(OPENING_READ);
        let end = read(source.as_ref(), "footer", file_len - end_len, end_len)?;
        let footer = Footer::decode(&end.slice(end.len() - FOOTER_LEN..), file_len)?;

        let meta_len = file_len - FOOTER_LEN as u64 - footer.meta_offset;
        let bytes = if meta_len + FOOTER_LEN as u64 <= end_len {
            end.slice(end.len() - FOOTER_LEN - meta_len as usize..end.len() - FOOTER_LEN)
        } else {
            read(source.as_ref(), "meta", footer.meta_offset, meta_len)?
        };
        if !checksum::matches(checksum::in_file(footer.uid, footer.meta_offset, &bytes), footer.meta_checksum) {
            let offset = footer.meta_offset;
            return Err(ReadError::Checksum { stripe: None, stream: FilePart::Meta, page: 0, offset });
        }

        let meta = Meta::decode(bytes, footer.meta_offset, footer.version)?;
        let tail = Arc::new(meta.schema.tail.clone());
        Ok(Self { file: Arc::new(Open { source, footer, meta, tail, filter: OnceLock::new() }), counts: None })
    }

    /// A reader of the same file that counts what it reads.
    #[must_use]
    pub fn counted(&self, counts: Arc<ReadCounts>) -> Self {
        Self { file: Arc::clone(&self.file), counts: Some(counts) }
    }

    /// The schema of its rows, as stored in the file.
    pub fn schema(&self) -> &Arc<StoredSchema> {
        &self.file.meta.schema
    }

    /// The file's unique id, given by its writer.
    pub fn uid(&self) -> u128 {
        self.file.footer.uid
    }

    /// The size of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.file.footer.file_len
    }

    /// The metadata that its writer's caller attached.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.file.meta.metadata
    }

    /// The stripe table: location and statistics of each stripe, in key order.
    pub fn stripes(&self) -> &[StripeMeta] {
        &self.file.meta.stripes
    }

    /// Whether the file may contain this key; `false` is definite. The filter is read on first use; if it is unreadable every
    /// key may be contained, and [`Self::verify`] reports the damage.
    pub fn may_contain(&self, key: &[u8]) -> bool {
        self.filter().is_none_or(|filter| filter.may_contain(key))
    }

    /// The filter, if there is one and it can be read.
    pub(crate) fn filter(&self) -> Option<&KeyFilter> {
        self.file.filter.get_or_init(|| self.read_filter().ok().flatten()).as_ref()
    }

    fn read_filter(&self) -> Result<Option<KeyFilter>, ReadError> {
        let FilterRef { offset, len, .. } = self.file.meta.filter;
        self.decode_filter(read(self.file.source.as_ref(), "filter", offset, len)?)
    }

    pub(crate) fn decode_filter(&self, bytes: Bytes) -> Result<Option<KeyFilter>, ReadError> {
        let FilterRef { kind, offset, checksum, .. } = self.file.meta.filter;
        if !checksum::matches(checksum::in_file(self.uid(), offset, &bytes), checksum) {
            return Err(ReadError::Checksum { stripe: None, stream: FilePart::Filter, page: 0, offset });
        }
        KeyFilter::read(kind, bytes, offset, &self.file.tail)
    }

    /// The stripes that may hold rows with keys in `[start, end)`; without `end` there is no upper bound.
    pub fn stripes_in(&self, start: &[u8], end: Option<&[u8]>) -> Range<usize> {
        let first = self.stripes().partition_point(|stripe| {
            let last = stripe.last_key.as_ref();
            last < start || last == start && crate::failpoint!(SeparatorOffByOne)
        });
        let last = end.map_or(self.stripes().len(), |end| {
            self.stripes().partition_point(|stripe| stripe.first_key.as_ref() < end)
        });
        first..last.max(first)
    }

    /// Stripe `index` as it is, for the [`crate::file::writer::Writer`] of another file of the same schema. Checks every checksum but
    /// decodes keys only.
    ///
    /// # Errors
    /// If there is no such stripe or the bytes are damaged.
    pub fn copy_stripe(&self, index: usize) -> Result<EncodedStripe, ReadError> {
        let meta = self.entry(index)?;
        let head_bytes = self.head_bytes(index, meta)?;
        let head = StripeHead::read(head_bytes.clone(), meta, self.schema(), &self.file.tail)?;
        let pages = self.pages(index, meta, true)?;

        for index in 0..self.schema().groups.len() {
            let group = head.group(index, self.schema(), meta)?;
            group.streams().try_for_each(|stream| pages.check_all(stream))?;
        }

        let corrupt = ReadError::Corrupt { what: "schema", offset: self.file.footer.meta_offset };
        Ok(EncodedStripe {
            head: head_bytes,
            pages: pages.whole.unwrap_or_default(),
            meta: meta.clone(),
            schema: schema_hash(self.schema()).map_err(|_| corrupt)?,
            hashes: KeyHashes::of(&head.keys, 0..head.keys.len()),
        })
    }

    /// Announces that the stripes in `range` will be read soon, so that a remote source can fetch them in one request.
    pub fn will_read(&self, range: Range<usize>) {
        let stripes = self.stripes().get(range).unwrap_or_default();
        if let (Some(first), Some(last)) = (stripes.first(), stripes.last()) {
            self.file.source.will_read(first.offset..last.offset + last.len);
        }
    }

    /// The entry of stripe `index` in the stripe table.
    pub(crate) fn entry(&self, index: usize) -> Result<&StripeMeta, ReadError> {
        let stripes = self.stripes().len();
        self.stripes().get(index).ok_or(ReadError::NoSuchStripe { stripe: index, stripes })
    }

    /// The head of stripe `index`, decoded.
    pub(crate) fn head(&self, index: usize, meta: &StripeMeta) -> Result<StripeHead, ReadError> {
        StripeHead::read(self.head_bytes(index, meta)?, meta, self.schema(), &self.file.tail)
    }

    /// The bytes of the head of stripe `index`, if their checksum matches.
    fn head_bytes(&self, index: usize, meta: &StripeMeta) -> Result<Bytes, ReadError> {
        let bytes = read(self.file.source.as_ref(), "stripe head", meta.offset, meta.head_len)?;
        if !checksum::matches(checksum::in_file(self.uid(), meta.offset, &bytes), meta.head_checksum) {
            let offset = meta.offset;
            return Err(ReadError::Checksum { stripe: Some(index), stream: FilePart::StripeHead, page: 0, offset });
        }
        if let Some(counts) = &self.counts {
            counts.head(meta.head_len);
        }
        Ok(bytes)
    }

    /// The pages of stripe `index`; with `at_once` all are read in one request, otherwise each stream when it is needed.
    pub(crate) fn pages(&self, index: usize, meta: &StripeMeta, at_once: bool) -> Result<PageSource<'_>, ReadError> {
        let (start, len) = (meta.offset + meta.head_len, meta.len - meta.head_len);
        let source = self.file.source.as_ref();
        let whole = at_once.then(|| read(source, "stripe", start, len)).transpose()?;
        let counts = self.counts.as_deref();
        if let (Some(counts), Some(whole)) = (counts, &whole) {
            counts.page_bytes(whole.len() as u64);
        }
        Ok(PageSource { source, stripe: index, start, len, whole, counts })
    }
}

/// Reads `len` bytes at `offset`. `what` names them if the file is too short for them.
pub(crate) fn read(source: &dyn ReadAt, what: &'static str, offset: u64, len: u64) -> Result<Bytes, ReadError> {
    let length = source.len();
    let truncated = ReadError::Truncated { what, offset, wanted: len, length };
    let fits = offset.checked_add(len).is_some_and(|end| end <= length);

    let Some(size) = usize::try_from(len).ok().filter(|_| fits) else { return Err(truncated) };
    let bytes = source.read_at(offset, size)?;
    if bytes.len() == size { Ok(bytes) } else { Err(truncated) }
}
