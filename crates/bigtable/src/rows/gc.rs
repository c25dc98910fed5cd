//! Garbage-collection rules applied to rows of Bigtable: the service collects at leisure, so a read may show what has expired.

use std::collections::BTreeMap;

use tidetable_store::{GcRule, Snapshot, StoreError};

use crate::client::{Cell, Row};
use crate::error::Result;

/// The rules of a table at a logical time.
#[derive(Debug, Clone, Default)]
pub struct GcView {
    rules: BTreeMap<String, GcRule>,
    now: i64,
}

impl GcView {
    /// The rules of the version of `snapshot`, at `now`, microseconds since the epoch.
    ///
    /// # Errors
    /// If this build cannot read a rule.
    pub fn new(snapshot: &Snapshot, now: i64) -> Result<Self> {
        let version = snapshot.version();
        let mut rules = BTreeMap::new();
        for (family, text) in &version.table.gc {
            let rule = GcRule::parse(text).map_err(|error| StoreError::Layout {
                table: snapshot.table().name().to_owned(),
                reason: format!("gc of family {family}: {error}"),
            })?;
            rules.insert(family.clone(), rule);
        }
        Ok(Self { rules, now })
    }

    /// Removes the expired cells of a row. Returns their number.
    pub fn apply(&self, row: &mut Row) -> u64 {
        if self.rules.is_empty() {
            return 0;
        }
        let before = row.cells.len();
        let mut last: Option<Cell> = None;
        let mut newer = 0;
        row.cells.retain(|cell| {
            let same = last.as_ref().is_some_and(|last| last.family == cell.family && last.qualifier == cell.qualifier);
            newer = if same { newer + 1 } else { 0 };
            if !same {
                last = Some(cell.clone());
            }
            self.rules.get(&*cell.family).is_none_or(|rule| !rule.drops(newer, cell.timestamp, self.now))
        });
        (before - row.cells.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expired_cells_are_removed_by_column() {
        let rules = BTreeMap::from([("f".to_owned(), GcRule::parse("maxversions=1 or maxage=1s").unwrap())]);
        let view = GcView { rules, now: 5_000_000 };
        let cell = |family: &str, qualifier: &'static str, timestamp| Cell {
            family: family.into(),
            qualifier: qualifier.into(),
            timestamp,
            value: "v".into(),
        };
        let cells = vec![
            cell("f", "a", 4_500_000),
            cell("f", "a", 4_400_000),
            cell("f", "b", 3_000_000),
            cell("f", "c", 4_000_000),
            cell("g", "a", 1),
            cell("g", "a", 0),
        ];
        let mut row = Row { key: "r".into(), cells };
        assert_eq!(view.apply(&mut row), 2);
        let left: Vec<(&[u8], i64)> = row.cells.iter().map(|cell| (&*cell.qualifier, cell.timestamp)).collect();
        assert_eq!(left, [(&b"a"[..], 4_500_000), (b"c", 4_000_000), (b"a", 1), (b"a", 0)]);
    }
}
