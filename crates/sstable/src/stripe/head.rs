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
    pub(crate) key_bytes: usize,
    groups: Vec<(Input, OnceLock<GroupHead>)>,
}

impl StripeHead {
    /// Decodes a head with a valid checksum.
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
        let groups = schema
            .groups
            .iter()
            .map(|_| Ok((input.nested("group")?, OnceLock::new())))
            .collect::<Result<_, ReadError>>()?;
        input.finish()?;
        Ok(Self { keys, key_bytes, groups })
    }

    /// The head of group `index`, decoded on first use.
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
