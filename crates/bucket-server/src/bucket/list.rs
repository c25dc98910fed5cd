//! Lists of objects, by pages.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::object::Object;

/// Most bytes of a key.
pub(crate) const MOST_KEY: usize = 1024;

/// What a request lists: a page of the keys with a prefix.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    pub prefix: String,
    /// Keys with it after the prefix are shown as one common prefix, up to it.
    pub delimiter: Option<String>,
    /// Keys and common prefixes after this.
    pub after: Option<String>,
    /// Most keys and common prefixes.
    pub most: usize,
}

/// A page of a list, in the order of bytes.
#[derive(Debug)]
pub(crate) struct Listing<'a> {
    pub objects: Vec<(&'a str, &'a Object)>,
    pub prefixes: Vec<String>,
    /// The last key or common prefix, if there are more after it.
    pub next: Option<String>,
}

impl ListQuery {
    /// The page of `objects`, by the order of bytes.
    pub fn page<'a>(&self, objects: &'a BTreeMap<String, Object>) -> Listing<'a> {
        let mut page = Listing { objects: Vec::new(), prefixes: Vec::new(), next: None };
        let mut from = match self.after.as_deref() {
            Some(after) if after >= self.prefix.as_str() => Bound::Excluded(after.to_owned()),
            _ => Bound::Included(self.prefix.clone()),
        };

        let mut last = None;
        while let Some((key, object)) = objects.range((from, Bound::Unbounded)).next() {
            if !key.starts_with(&self.prefix) {
                break;
            }
            let common = self.common(key);
            // S3 leaves out common prefixes that are not after the start.
            let passed = common.as_ref().is_some_and(|common| self.after.as_ref().is_some_and(|after| common <= after));
            if !passed {
                if page.objects.len() + page.prefixes.len() >= self.most {
                    page.next = last;
                    break;
                }
                last = Some(common.clone().unwrap_or_else(|| key.clone()));
                match &common {
                    Some(common) => page.prefixes.push(common.clone()),
                    None => page.objects.push((key, object)),
                }
            }
            from = Bound::Excluded(common.map_or_else(|| key.clone(), |common| behind(&common)));
        }
        page
    }

    /// The common prefix of `key`, if it is in one.
    fn common(&self, key: &str) -> Option<String> {
        let delimiter = self.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())?;
        let end = key[self.prefix.len()..].find(delimiter)? + self.prefix.len() + delimiter.len();
        Some(key[..end].to_owned())
    }
}

/// A text behind all keys that begin with `prefix`, which have at most [`MOST_KEY`] bytes.
fn behind(prefix: &str) -> String {
    format!("{prefix}{}", "\u{10ffff}".repeat(MOST_KEY / 4 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bucket::{Attributes, Content};

    fn objects(keys: &[&str]) -> BTreeMap<String, Object> {
        let object = |generation| Object {
            content: Content::default(),
            etag: String::new(),
            modified: chrono::DateTime::UNIX_EPOCH,
            generation,
            attributes: Attributes::default(),
        };
        keys.iter().map(|key| ((*key).to_owned(), object(1))).collect()
    }

    fn pages(query: &ListQuery, objects: &BTreeMap<String, Object>) -> Vec<Vec<String>> {
        let (mut query, mut pages) = (query.clone(), Vec::new());
        loop {
            let page = query.page(objects);
            let keys = page.objects.iter().map(|(key, _)| (*key).to_owned());
            let mut all: Vec<String> = keys.chain(page.prefixes.iter().cloned()).collect();
            all.sort();
            pages.push(all);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return pages,
            }
        }
    }

    #[test]
    fn pages_of_any_size_list_all_once_in_order() {
        let objects = objects(&["a", "d/1", "d/2", "d/e/1", "d/\u{10ffff}", "d0", "e/1", "é", "z/"]);
        for (prefix, delimiter, expected) in [
            ("", None, vec!["a", "d/1", "d/2", "d/e/1", "d/\u{10ffff}", "d0", "e/1", "z/", "é"]),
            ("", Some("/"), vec!["a", "d/", "d0", "e/", "z/", "é"]),
            ("d/", Some("/"), vec!["d/1", "d/2", "d/e/", "d/\u{10ffff}"]),
            ("d/e", None, vec!["d/e/1"]),
            ("none", Some("/"), vec![]),
        ] {
            for most in 1..=10 {
                let delimiter = delimiter.map(str::to_owned);
                let query = ListQuery { prefix: prefix.to_owned(), delimiter, after: None, most };
                let pages = pages(&query, &objects);
                assert_eq!(pages.concat(), expected, "{query:?}");
                assert!(pages.iter().rev().skip(1).all(|page| page.len() == most), "{pages:?}");
            }
        }
    }

    #[test]
    fn a_start_is_not_listed_itself() {
        let objects = objects(&["d/1", "d/2", "e/1", "f"]);
        let list = |after: &str, delimiter: Option<&str>| {
            let (after, delimiter) = (Some(after.to_owned()), delimiter.map(str::to_owned));
            pages(&ListQuery { prefix: String::new(), delimiter, after, most: 2 }, &objects).concat()
        };
        assert_eq!(list("d/1", None), ["d/2", "e/1", "f"]);
        assert_eq!(list("d/1", Some("/")), ["e/", "f"], "d/ is before the start");
        assert_eq!(list("a", Some("/")), ["d/", "e/", "f"]);
        assert_eq!(list("f", None), [""; 0]);
    }
}
