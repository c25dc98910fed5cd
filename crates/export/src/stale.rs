//! Finds the parts of an export that are out of date. Pure functions.

use std::collections::BTreeMap;
use std::fmt;

use tidetable_store::published::Published;

/// Why a part must be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It was never published.
    Missing,
    /// Its query or settings changed.
    QueryChanged,
    /// A table it was made from has changed, or is another table.
    SourceChanged {
        /// Name of the table in SQL.
        table: String,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("it was never published"),
            Self::QueryChanged => f.write_str("its query or its settings changed"),
            Self::SourceChanged { table } => write!(f, "table {table} changed"),
        }
    }
}

/// A part to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stale {
    /// Label of the part.
    pub label: String,
    /// Why it must be published again.
    pub reason: Reason,
}

/// The stale ones among `parts` (label, and for every table the last version that changed it), in their
/// order. `query` is the fingerprint of the query and its settings.
pub fn stale(published: &Published, parts: &[(String, BTreeMap<String, u64>)], query: &str) -> Vec<Stale> {
    let mut stale = Vec::new();
    for (label, sources) in parts {
        if let Some(reason) = reason_of(published, label, sources, query) {
            tracing::debug!(export = published.name, part = label, reason = %reason, "part_stale");
            stale.push(Stale { label: label.clone(), reason });
        }
    }

    stale
}

/// Why the part with this label must be published; `None` if it is as its query and its `sources` would make it now.
fn reason_of(published: &Published, label: &str, sources: &BTreeMap<String, u64>, query: &str) -> Option<Reason> {
    let (made_by, made_from) = match (published.parts.get(label), published.empty.get(label)) {
        (Some(part), _) => (&part.query, &part.sources),
        (None, Some(empty)) => (&empty.query, &empty.sources),
        (None, None) => return Some(Reason::Missing),
    };
    if made_by != query {
        return Some(Reason::QueryChanged);
    }

    let changed = sources.iter().find(|(table, version)| made_from.get(*table) != Some(*version));
    let gone = made_from.keys().find(|table| !sources.contains_key(*table));
    let table = changed.map(|(table, _)| table).or(gone)?;
    Some(Reason::SourceChanged { table: table.clone() })
}

#[cfg(test)]
mod tests {
    use tidetable_store::published::Part;

    use super::*;

    fn sources(versions: &[(&str, u64)]) -> BTreeMap<String, u64> {
        versions.iter().map(|(table, version)| ((*table).to_owned(), *version)).collect()
    }

    #[test]
    fn parts_are_stale_for_a_reason() {
        let part = Part { query: "q1".to_owned(), sources: sources(&[("A", 3), ("B", 1)]), ..Part::default() };
        let published = Published { parts: BTreeMap::from([("2018-01-01".to_owned(), part)]), ..Published::default() };
        let first = |versions: &[(&str, u64)], query: &str| {
            let parts = [("2018-01-01".to_owned(), sources(versions))];
            stale(&published, &parts, query).pop().map(|stale| stale.reason)
        };
        let changed = |table: &str| Some(Reason::SourceChanged { table: table.to_owned() });
        assert_eq!(first(&[("A", 3), ("B", 1)], "q1"), None);
        assert_eq!(first(&[("A", 3), ("B", 1)], "q2"), Some(Reason::QueryChanged));
        assert_eq!(first(&[("A", 3), ("B", 2)], "q1"), changed("B"));
        // Versions of a rebuilt table start at 1 again.
        assert_eq!(first(&[("A", 1), ("B", 1)], "q1"), changed("A"));
        assert_eq!(first(&[("A", 3)], "q1"), changed("B"));
        let missing = stale(&published, &[("2018-01-02".to_owned(), sources(&[("A", 3)]))], "q1");
        assert_eq!(missing, [Stale { label: "2018-01-02".to_owned(), reason: Reason::Missing }]);
    }
}
