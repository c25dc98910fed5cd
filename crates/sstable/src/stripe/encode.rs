//! Encoding of stripes: the rows of a block to a head and pages.

use std::ops::Range;

use bytes::Bytes;
use tidetable_layout::{Block, Group, GroupBlock, StoredSchema};

use crate::coding::{put_block, put_varint};
use crate::column::stream::Pages;
use crate::error::WriteError;
use crate::format::{MAX_RAW_BYTES, MAX_RECORDS};
use crate::options::WriteOptions;
use crate::stats::{StripeMeta, cells_of};
use crate::stripe::hashes::{KeyHashes, schema_hash};
use crate::{group, keys};

/// An encoded stripe, which a [`crate::file::Writer`] places in a file. Its bytes do not depend on the file or the place.
#[derive(Debug, Clone)]
pub struct EncodedStripe {
    pub(crate) head: Bytes,
    pub(crate) pages: Bytes,
    /// Offset and head checksum depend on the place; the writer sets them.
    pub(crate) meta: StripeMeta,
    pub(crate) schema: u64,
    pub(crate) hashes: KeyHashes,
}

impl EncodedStripe {
    /// The stripe's statistics; the offset is not set yet.
    pub fn meta(&self) -> &StripeMeta {
        &self.meta
    }

    /// The encoded size in bytes, head and pages.
    pub fn len(&self) -> usize {
        self.head.len() + self.pages.len()
    }

    /// Always false: a stripe has at least one row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Encodes all rows of `block` as one stripe. Pure: the stripes of a file can be encoded in parallel.
///
/// # Errors
/// If the block is incomplete, unsorted, not of `schema`, or over a limit of the format.
pub fn encode_stripe(
    schema: &StoredSchema,
    options: &WriteOptions,
    block: &Block,
) -> Result<EncodedStripe, WriteError> {
    encode_rows(schema, options, block, 0..block.keys.len())
}

/// Encodes the rows `rows` of `block` as one stripe, as [`encode_stripe`] does, without copying them first.
///
/// # Errors
/// As [`encode_stripe`].
pub fn encode_rows(
    schema: &StoredSchema,
    options: &WriteOptions,
    block: &Block,
    rows: Range<usize>,
) -> Result<EncodedStripe, WriteError> {
    if rows.is_empty() || rows.end > block.keys.len() {
        return Err(WriteError::NoRows);
    }
    if rows.len() > MAX_RECORDS {
        return Err(WriteError::TooLarge { what: "rows of a stripe", found: rows.len(), limit: MAX_RECORDS });
    }

    let (mut head, mut section, mut pages) = (Vec::new(), Vec::new(), Pages::default());
    put_varint(&mut head, rows.len() as u64);
    keys::put(&mut section, &block.keys, rows.clone(), options.level)?;
    put_block(&mut head, &section);
    let mut meta = StripeMeta {
        offset: 0,
        len: 0,
        first_key: block.keys.get(rows.start).into(),
        last_key: block.keys.get(rows.end - 1).into(),
        rows: rows.len() as u64,
        records: Vec::with_capacity(schema.groups.len()),
        one_version_each: Vec::with_capacity(schema.groups.len()),
        fills_rows: Vec::with_capacity(schema.groups.len()),
        group_cells: Vec::with_capacity(schema.groups.len()),
        cells: 0,
        timestamps: None,
        columns: Vec::with_capacity(schema.groups.len()),
        head_len: 0,
        head_checksum: 0,
    };

    for (index, group) in schema.groups.iter().enumerate() {
        let missing = WriteError::Shape { group: index, what: "the group is missing" };
        let part = block.groups.get(index).and_then(Option::as_ref).ok_or(missing)?;
        section.clear();
        let found = group::put(&mut section, &mut pages, index, group, part, rows.clone(), options.level)?;
        put_block(&mut head, &section);

        meta.records.push(found.records);
        meta.one_version_each.push(found.one_version_each);
        meta.fills_rows.push(found.fills_rows);
        meta.group_cells.push(cells_of(group, found.records, &found.columns, filled_rows(group, part, rows.clone())));
        meta.columns.push(found.columns);
        meta.timestamps = match (meta.timestamps, found.timestamps) {
            (Some((low, high)), Some((least, greatest))) => Some((low.min(least), high.max(greatest))),
            (one, other) => one.or(other),
        };
    }

    if head.len() > MAX_RAW_BYTES {
        return Err(WriteError::TooLarge { what: "head of a stripe", found: head.len(), limit: MAX_RAW_BYTES });
    }
    meta.cells = meta.group_cells.iter().sum();
    meta.head_len = head.len() as u64;
    meta.len = (head.len() + pages.data.len()) as u64;

    Ok(EncodedStripe {
        head: head.into(),
        pages: pages.data.into(),
        meta,
        schema: schema_hash(schema)?,
        hashes: KeyHashes::of(&block.keys, rows),
    })
}

/// The number of rows with records, if these count as cells.
pub(crate) fn filled_rows(group: &Group, block: &GroupBlock, rows: Range<usize>) -> u64 {
    if group.keeps_duplicates() { rows.filter(|row| !block.records(*row).is_empty()).count() as u64 } else { 0 }
}
