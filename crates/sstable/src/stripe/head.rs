//! The head of a stripe, decoded.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use tidetable_layout::schema::KeyTail;
use tidetable_layout::{Keys, StoredSchema};

use crate::coding::Input;
use crate::error::ReadError;
use crate::format::MAX_RECORDS;
use crate::group::GroupHead;
use crate::keys;
use crate::stats::StripeMeta;

/// The decoded head of a stripe; group heads are decoded lazily.
#[derive(Debug)]
pub(crate) struct StripeHead {
    pub(crate) keys: Keys,
    /// The size of the encoded keys in bytes.
    pub(crate) key_bytes: usize,
    groups: Vec<LazyGroup>,
}

/// A group head as bytes, and decoded after its first use.
#[derive(Debug)]
struct LazyGroup {
    input: Input,
    head: OnceLock<GroupHead>,
}

impl StripeHead {
    /// Decodes a head whose checksum has been checked: the keys, and where each group begins.
    ///
    /// # Errors
    /// If the bytes are damaged or contradict `meta`.
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
        let keys = keys::read(&mut section, rows, tail)?;
        section.finish()?;

        let mut groups = Vec::with_capacity(schema.groups.len());
        for _ in &schema.groups {
            groups.push(LazyGroup { input: input.nested("group")?, head: OnceLock::new() });
        }
        input.finish()?;
        Ok(Self { keys, key_bytes, groups })
    }

    /// The head of group `index`, decoded on first use.
    ///
    /// # Errors
    /// If there is no such group or its head is damaged.
    pub(crate) fn group(
        &self,
        index: usize,
        schema: &StoredSchema,
        meta: &StripeMeta,
    ) -> Result<&GroupHead, ReadError> {
        let corrupt = ReadError::Corrupt { what: "group", offset: meta.offset };
        let parts = (self.groups.get(index), schema.groups.get(index), meta.records.get(index));
        let (Some(lazy), Some(group), Some(_)) = parts else { return Err(corrupt) };
        if let Some(head) = lazy.head.get() {
            return Ok(head);
        }

        let head = GroupHead::read(lazy.input.clone(), index, group, self.keys.len(), meta)?;
        Ok(lazy.head.get_or_init(|| head))
    }
}
