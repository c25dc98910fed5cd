//! Uploads in parts.

use std::collections::BTreeMap;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use xxhash_rust::xxh3::xxh3_128;

use super::content::Content;
use super::object::Attributes;
use super::refusal::Refusal;

/// An upload under way.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    pub key: String,
    pub attributes: Attributes,
    pub initiated: DateTime<Utc>,
    parts: BTreeMap<u32, (Content, String)>,
}

/// A part as a client names it to complete an upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPart {
    /// Its number, 1 to 10,000.
    pub number: u32,
    pub etag: String,
}

impl Upload {
    /// An upload without parts.
    pub fn new(key: String, attributes: Attributes, initiated: DateTime<Utc>) -> Self {
        Self { key, attributes, initiated, parts: BTreeMap::new() }
    }

    /// Puts a part, in the place of one of its number; returns its ETag.
    ///
    /// # Errors
    /// For numbers other than 1 to 10,000.
    pub fn put(&mut self, number: u32, content: Content) -> Result<String, Refusal> {
        if !(1..=10_000).contains(&number) {
            return Err(Refusal::new(400, "InvalidArgument", "part numbers go from 1 to 10000"));
        }
        let etag = content.etag();
        self.parts.insert(number, (content, etag.clone()));
        Ok(etag)
    }

    /// Content and ETag of the named parts; all but the last must have `least` bytes.
    ///
    /// # Errors
    /// Parts that are missing, out of order or too small.
    pub fn assemble(&self, named: &[NamedPart], least: u64) -> Result<(Content, String), Refusal> {
        if named.is_empty() {
            return Err(Refusal::new(400, "MalformedXML", "an upload is completed with one part or more"));
        }
        if named.windows(2).any(|two| two[0].number >= two[1].number) {
            return Err(Refusal::new(400, "InvalidPartOrder", "parts are named in ascending order"));
        }

        let (mut contents, mut etags) = (Vec::new(), String::new());
        for (at, part) in named.iter().enumerate() {
            let named_etag = part.etag.trim_matches('"');
            let found = self.parts.get(&part.number).filter(|(_, etag)| etag.trim_matches('"') == named_etag);
            let Some((content, etag)) = found else {
                return Err(Refusal::new(400, "InvalidPart", format!("there is no part {} of this ETag", part.number)));
            };
            if at + 1 < named.len() && content.len() < least {
                let small = format!("part {} has {} bytes, not {least}", part.number, content.len());
                return Err(Refusal::new(400, "EntityTooSmall", small));
            }
            etags.push_str(etag);
            contents.push(content.clone());
        }
        Ok((Content::of(contents), format!("\"{:032x}-{}\"", xxh3_128(etags.as_bytes()), named.len())))
    }

    /// An upload that a client left behind a week before.
    pub fn stale(&self) -> Self {
        let initiated = self.initiated - chrono::TimeDelta::days(7);
        let mut stale = Self::new(self.key.clone(), self.attributes.clone(), initiated);
        // The number is in range.
        let _ = stale.put(1, Bytes::from_static(b"left behind").into());
        stale
    }
}
