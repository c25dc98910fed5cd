//! One stripe: rows to bytes, and its head back.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tidetable_layout::{Block, Group, GroupBlock, KeyTail, Keys, StoredSchema};
use xxhash_rust::xxh3::xxh3_64;

use crate::error::{ReadError, WriteError};
use crate::format::{MAX_RAW_BYTES, MAX_RECORDS};
use crate::group::{self, GroupHead};
use crate::key_page;
use crate::options::WriteOptions;
use crate::stats::{StripeMeta, cells_of};
use crate::stream::Pages;
use crate::wire::{Input, put_block, put_varint};

/// With as many rows a prefix, the filter covers prefixes, and row keys need no hash.
const ROWS_A_PREFIX: usize = 4;

/// A stripe that a [`crate::Writer`] can place.
#[derive(Debug, Clone)]
pub struct EncodedStripe {
    pub(crate) head: Bytes,
    pub(crate) pages: Bytes,
    /// Offset and head checksum are the writer's to fill in.
    pub(crate) meta: StripeMeta,
    pub(crate) schema: u64,
    pub(crate) hashes: Hashes,
}

impl EncodedStripe {
    /// What the stripe holds; its offset is not known yet.
    pub fn meta(&self) -> &StripeMeta {
        &self.meta
    }

    /// Bytes it takes in a file.
    pub fn len(&self) -> usize {
        self.head.len() + self.pages.len()
    }

    /// Never: a stripe holds a row at least.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Hashes of the keys of a stripe, for the filter.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hashes {
    /// Of whole row keys; `None` if prefixes are so few that they will do.
    pub(crate) keys: Option<Vec<u64>>,
    /// Of distinct prefixes.
    pub(crate) prefixes: Vec<u64>,
}

impl Hashes {
    pub(crate) fn of(keys: &Keys, rows: Range<usize>) -> Self {
        let of = &keys.prefix_of()[rows.clone()];
        let (Some(first), Some(last)) = (of.first(), of.last()) else { return Self::default() };
        let prefixes: Vec<u64> = (*first..=*last).map(|prefix| xxh3_64(keys.prefix(prefix as usize))).collect();
        let few = !keys.tail_shape().parts.is_empty() && prefixes.len() * ROWS_A_PREFIX <= rows.len();
        let mut scratch = Vec::new();
        let keys = (!few).then(|| {
            rows.map(|row| {
                scratch.clear();
                keys.write(row, &mut scratch);
                xxh3_64(&scratch)
            })
            .collect()
        });
        Self { keys, prefixes }
    }
}

/// Tells schemas apart.
pub(crate) fn schema_hash(schema: &StoredSchema) -> Result<u64, serde_json::Error> {
    Ok(xxh3_64(&serde_json::to_vec(schema)?))
}

/// Encodes all rows of `block` as one stripe. Pure: stripes of one file may be encoded at the same time.
///
/// # Errors
/// If the block is not complete, sorted and of `schema`, or over a limit of the format.
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
    key_page::put(&mut section, &block.keys, rows.clone(), options.level)?;
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
        let found = group::put(&mut section, &mut pages, (index, group), part, rows.clone(), options.level)?;
        put_block(&mut head, &section);
        meta.records.push(found.records);
        meta.one_version_each.push(found.one_version_each);
        meta.fills_rows.push(found.fills_rows);
        meta.group_cells.push(cells_of(group, found.records, &found.columns, filled(group, part, rows.clone())));
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
        hashes: Hashes::of(&block.keys, rows),
    })
}

/// How many of the rows have records, if it is they that count as cells.
pub(crate) fn filled(group: &Group, block: &GroupBlock, rows: Range<usize>) -> u64 {
    if group.keeps_alike() { rows.filter(|row| !block.records(*row).is_empty()).count() as u64 } else { 0 }
}

/// A stripe as its head says it is; groups are read when they are asked for.
#[derive(Debug)]
pub(crate) struct StripeHead {
    pub(crate) keys: Keys,
    pub(crate) key_bytes: usize,
    groups: Vec<(Input, OnceLock<GroupHead>)>,
}

impl StripeHead {
    /// Reads a head whose checksum has been checked.
    pub(crate) fn read(
        bytes: Bytes,
        meta: &StripeMeta,
        schema: &StoredSchema,
        tail: &Arc<KeyTail>,
    ) -> Result<Self, ReadError> {
        let mut input = Input::new(bytes, meta.offset, "stripe head");
        let rows = input.count(MAX_RECORDS)?;
        if rows as u64 != meta.rows {
            return Err(input.corrupt());
        }
        let mut section = input.nested("row keys")?;
        let key_bytes = section.left();
        let keys = key_page::read(&mut section, rows, tail)?;
        section.finish()?;
        let groups = schema
            .groups
            .iter()
            .map(|_| Ok((input.nested("group")?, OnceLock::new())))
            .collect::<Result<_, ReadError>>()?;
        input.finish()?;
        Ok(Self { keys, key_bytes, groups })
    }

    /// The head of group `index`, read when first asked for.
    pub(crate) fn group(
        &self,
        index: usize,
        schema: &StoredSchema,
        meta: &StripeMeta,
    ) -> Result<&GroupHead, ReadError> {
        let corrupt = ReadError::Corrupt { what: "group", offset: meta.offset };
        let parts = (self.groups.get(index), schema.groups.get(index), meta.records.get(index));
        let (Some((input, slot)), Some(group), Some(_)) = parts else { return Err(corrupt) };
        if let Some(head) = slot.get() {
            return Ok(head);
        }
        let head = GroupHead::read(input.clone(), (index, group), self.keys.len(), meta)?;
        Ok(slot.get_or_init(|| head))
    }
}
