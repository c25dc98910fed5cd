//! From inputs to exports, in few steps: files of a source are one place, and so are the parts of an export.

use std::collections::BTreeMap;

use tidetable_record::RunRecord;
use tidetable_store::Version;
use tidetable_store::published::Published;

use crate::report::lineage::{Lineage, LinkKind};

/// A place that rows pass.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Whether it is a source, a table or an export.
    pub kind: PlaceKind,
    /// Name of the source, table or export.
    pub name: String,
}

/// What a place is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlaceKind {
    /// Files of a source.
    Source,
    /// A table of the job.
    Table,
    /// An export, with all its parts.
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
    /// The place that the rows come from.
    pub from: Place,
    /// The place that the rows go to.
    pub into: Place,
    /// Inputs read, or parts published.
    pub items: u64,
    /// Rows read, or published.
    pub rows: u64,
    /// Rows that were rejected on the way.
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

    let mut steps: BTreeMap<(Place, Place), Step> = BTreeMap::new();
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
            let ends = (from.clone(), into.clone());
            let step = steps.entry(ends).or_insert_with(|| Step { from, into, items: 0, rows: 0, rejected: 0 });
            step.items += 1;
            step.rows += link.rows;
            step.rejected += link.rejected;
        }
    }
    steps.into_values().collect()
}
