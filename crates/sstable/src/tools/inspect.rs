//! Inspection: how the bytes of a file are distributed over its parts, for `tidetable inspect` and table reports.

use serde::Serialize;
use tidetable_layout::ColumnRef;

use crate::error::ReadError;
use crate::file::Reader;
use crate::format::{FOOTER_LEN, HEADER_LEN};

/// The size of each part of a file. Serialized as it is for `--json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// The format version of the file.
    pub version: u32,
    /// The unique id of the file, 32 hexadecimal digits.
    pub uid: String,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// What the filter hashes: `none`, `keys` or `prefixes`.
    pub filter: &'static str,
    /// Bytes of the filter; 0 if there is none.
    pub filter_bytes: u64,
    /// Bytes of schema, metadata and stripe table, compressed.
    pub meta_bytes: u64,
    /// Bytes of header and footer, the same in all files.
    pub frame_bytes: u64,
    /// The stripes in key order.
    pub stripes: Vec<StripeInspection>,
}

/// The size of each part of a stripe, and what it holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StripeInspection {
    /// The offset of its first byte in the file.
    pub offset: u64,
    /// The size of the stripe in bytes, head and pages.
    pub bytes: u64,
    /// The number of rows.
    pub rows: u64,
    /// The number of records of each group.
    pub records: Vec<u64>,
    /// The number of cells, of all groups.
    pub cells: u64,
    /// Bytes of the head, with everything that is not pages.
    pub head_bytes: u64,
    /// Bytes of the encoded row keys, which are part of the head.
    pub key_bytes: u64,
    /// Bytes of the qualifier dictionary of each group, in the head.
    pub qualifier_bytes: Vec<u64>,
    /// Distinct patterns of each group; `None` where records are stored one by one.
    #[serde(rename = "shapes")]
    pub patterns: Vec<Option<usize>>,
    /// Its streams, of all groups, in the order of their pages.
    pub chunks: Vec<ChunkInspection>,
}

/// One stream of a stripe: its codec and its size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChunkInspection {
    /// The kind of stream, as [`FilePart`](crate::FilePart) shows itself.
    pub stream: String,
    /// Index of the group it belongs to.
    #[serde(skip)]
    pub group: usize,
    /// The column it belongs to; `None` for timestamps and qualifiers.
    #[serde(skip)]
    pub column: Option<ColumnRef>,
    /// The name of its codec, such as `pco`.
    pub codec: &'static str,
    /// The number of its pages.
    pub pages: usize,
    /// Bytes of its setup, which are part of the head.
    pub setup_bytes: usize,
    /// Bytes of its pages.
    pub page_bytes: u64,
}

impl Reader {
    /// The sizes of all parts of the file. Reads the heads of all stripes, no pages.
    ///
    /// # Errors
    /// If a head is damaged.
    pub fn inspect(&self) -> Result<Inspection, ReadError> {
        let stripes = (0..self.stripes().len()).map(|index| self.inspect_stripe(index)).collect::<Result<_, _>>()?;
        let footer = &self.file.footer;
        Ok(Inspection {
            version: footer.version,
            uid: format!("{:032x}", footer.uid),
            bytes: footer.file_len,
            filter: self.file.meta.filter.kind.name(),
            filter_bytes: self.file.meta.filter.len,
            meta_bytes: footer.file_len - FOOTER_LEN as u64 - footer.meta_offset,
            frame_bytes: (HEADER_LEN + FOOTER_LEN) as u64,
            stripes,
        })
    }

    fn inspect_stripe(&self, index: usize) -> Result<StripeInspection, ReadError> {
        let meta = self.entry(index)?;
        let head = self.head(index, meta)?;
        let (mut qualifier_bytes, mut patterns, mut chunks) = (Vec::new(), Vec::new(), Vec::new());

        for at in 0..self.schema().groups.len() {
            let group = head.group(at, self.schema(), meta)?;
            qualifier_bytes.push(group.dictionary_bytes() as u64);
            patterns.push(group.pattern_count());
            chunks.extend(group.streams().map(|stream| ChunkInspection {
                stream: stream.part.to_string(),
                group: at,
                column: stream.part.column(),
                codec: stream.codec.name(),
                pages: stream.page_count(),
                setup_bytes: stream.setup.left(),
                page_bytes: stream.page_bytes(),
            }));
        }

        Ok(StripeInspection {
            offset: meta.offset,
            bytes: meta.len,
            rows: meta.rows,
            records: meta.records.clone(),
            cells: meta.cells,
            head_bytes: meta.head_len,
            key_bytes: head.key_bytes as u64,
            qualifier_bytes,
            patterns,
            chunks,
        })
    }
}
