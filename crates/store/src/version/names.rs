//! Names of inputs that bring no rows of their own.
//!
//! A sequence belongs to a name from the time it is first seen, so that order and drops stay what they were whatever
//! becomes of the file. The names whose rows a table holds are its [`crate::Input`]s; these are the others.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use tidetable_source::ContentHash;

use crate::version::cow_list::CowList;

/// A name that was seen and under which the table holds no rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// Place among the inputs, as for those whose rows the table holds.
    pub sequence: u64,
    /// Path or URL, as the job sees it.
    pub path: String,
    /// What it held when it was last seen: the content of an input. `None` for an input that was taken out, which
    /// counts for nothing until it comes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// What a file held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// Bytes as stored.
    pub size: u64,
    /// Fingerprint of the file, as of [`crate::Input::version`].
    pub version: String,
    /// Hash of the bytes as stored.
    pub hash: ContentHash,
}

/// What has a name among the inputs of a version.
pub(crate) trait Named {
    /// Path or URL.
    fn path(&self) -> &str;
    /// Place among the inputs.
    fn sequence(&self) -> u64;
}

impl Named for Name {
    fn path(&self) -> &str {
        &self.path
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }
}

impl Named for crate::version::Input {
    fn path(&self) -> &str {
        &self.path
    }

    fn sequence(&self) -> u64 {
        self.sequence
    }
}

/// Takes items out by path, puts others in or in the place of those of the same path, and orders them by sequence.
pub(crate) fn put_named<T: Named>(items: &mut CowList<T>, gone: &[String], put: Vec<T>) {
    if !gone.is_empty() {
        let gone: HashSet<&str> = gone.iter().map(String::as_str).collect();
        items.retain(|item| !gone.contains(item.path()));
    }
    if put.is_empty() {
        return;
    }
    let places: HashMap<String, usize> = {
        let wanted: HashSet<&str> = put.iter().map(Named::path).collect();
        let found = items.iter().enumerate().filter(|(_, item)| wanted.contains(item.path()));
        found.map(|(at, item)| (item.path().to_owned(), at)).collect()
    };
    for item in put {
        match places.get(item.path()) {
            Some(at) => items.set(*at, item),
            None => items.push(item),
        }
    }
    items.sort_by_key(Named::sequence);
}
