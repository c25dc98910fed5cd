//! From inputs to exports, in few steps: files of a source are one place, and so are the parts of an export.

use std::collections::BTreeMap;

use tidetable_record::RunRecord;
use tidetable_store::Version;
use tidetable_store::published::Published;

use crate::report::lineage::{Lineage, LinkKind};

/// A place that rows pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// What it is.
    pub kind: PlaceKind,
    /// Name of the source, table or export.
    pub name: String,
}

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    /// Files of a source.
    Source,
    /// A table.
    Table,
    /// An export.
    Export,
}

impl PlaceKind {
    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Table => "table",
            Self::Export => "export",
        }
    }
}

/// Rows that pass from one place to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// From where.
    pub from: Place,
    /// Into what.
    pub into: Place,
    /// Inputs read, or parts published.
    pub items: u64,
    /// Rows read, or published.
    pub rows: u64,
    /// Rows rejected.
    pub rejected: u64,
}

/// The steps of a job, those with equal ends summed.
pub(super) fn steps(
    lineage: &Lineage,
    versions: &BTreeMap<String, Version>,
    lists: &[Published],
    runs: &[RunRecord],
) -> Vec<Step> {
    let parts =
        lists.iter().flat_map(|list| list.parts.values().map(|part| (part.folder.as_str(), list.name.as_str())));
    let exports: BTreeMap<&str, &str> = parts.collect();
    let loads = runs.iter().flat_map(|run| &run.loads);
    let sources: BTreeMap<&str, &str> = loads.map(|load| (load.table.as_str(), load.source.as_str())).collect();
    let mut links: Vec<_> = versions.keys().filter_map(|table| lineage.of(table, None)).flatten().collect();
    links.sort_unstable();
    links.dedup();
    let mut steps: BTreeMap<(Place, Place), (u64, u64, u64)> = BTreeMap::new();
    for link in &links {
        let place = |(kind, name): &(LinkKind, String)| match kind {
            LinkKind::Input => {
                let source = sources.get(link.into.1.as_str()).copied().unwrap_or("inputs");
                Some(Place { kind: PlaceKind::Source, name: source.to_owned() })
            }
            LinkKind::Table => Some(Place { kind: PlaceKind::Table, name: name.clone() }),
            // Parts of other jobs' exports are theirs.
            LinkKind::Part => {
                exports.get(name.as_str()).map(|export| Place { kind: PlaceKind::Export, name: (*export).to_owned() })
            }
        };
        if let (Some(from), Some(into)) = (place(&link.from), place(&link.into)) {
            let sums = steps.entry((from, into)).or_default();
            *sums = (sums.0 + 1, sums.1 + link.rows, sums.2 + link.rejected);
        }
    }
    let step = |((from, into), (items, rows, rejected))| Step { from, into, items, rows, rejected };
    steps.into_iter().map(step).collect()
}
