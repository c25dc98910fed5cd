//! What a run knows of pulls: the list of a pull decides which families its cells have and where rows come from.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_job::{Job, Push, Source, Table, TableInput};
use tidetable_layout::TableSpec;
use tidetable_layout::error::LostReason;
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::Granularity;
use tidetable_record::PullOrigins;
use tidetable_source::PulledDirectory;
use tidetable_store::{Store, StoreError};

use crate::fault::error::RunError;

/// For each table, the tables of Bigtable that its rows were pulled from.
pub(crate) type Origins = BTreeMap<String, PullOrigins>;

/// Checks that the job loads each family that was pulled: cells of one without a column would be lost.
///
/// # Errors
/// [`RunError::PulledFamily`].
pub(crate) fn holds_all(source: &Source, tables: &[&Table], pulled: &[PulledDirectory]) -> Result<(), RunError> {
    for PulledDirectory { directory, list } in pulled {
        for family in &list.families {
            let is_declared = source.spec.columns.iter().any(|column| column.name == family.column);
            if !is_declared || tables.iter().all(|table| is_absent(table, &family.column)) {
                return Err(RunError::PulledFamily {
                    directory: directory.clone(),
                    family: family.name.clone(),
                    column: family.column.clone(),
                    table: list.table().to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// Whether no cell of a table holds the values of a column of its source.
fn is_absent(table: &Table, column: &str) -> bool {
    table.layout.lost().iter().any(|lost| lost.column == column && lost.why == LostReason::Absent)
}

/// Whether a table of pulled cells has other families or timestamps now than in `stored`, its newest version, and
/// nothing else changed: its job follows the table of Bigtable.
pub(crate) fn follows(stored: &TableSpec, now: &TableSpec, pulled: &[PulledDirectory]) -> bool {
    let is_raw = !pulled.is_empty() && pulled.iter().all(|pulled| pulled.list.raw && pulled.list.decides());
    let rest = |spec: &TableSpec| TableSpec {
        families: Vec::new(),
        granularity: Granularity::default(),
        ..TableSpec::clone(spec)
    };
    is_raw && families(stored) != families(now) && rest(stored) == rest(now)
}

/// What Bigtable knows of the cells of a table: families with their kinds, and the granularity of timestamps.
fn families(spec: &TableSpec) -> (Granularity, BTreeMap<&str, Merge>) {
    let families = spec.families.iter().map(|family| (family.name.as_str(), family.kind));
    (spec.granularity, families.collect())
}

/// The directories of pulls that the patterns of each source reach.
pub(crate) type Pulls<'a> = BTreeMap<&'a str, &'a [PulledDirectory]>;

/// The origins of the tables of a job. Those of tables of other jobs are in the store.
///
/// # Errors
/// If they cannot be read.
pub(crate) fn origins(job: &Job, pulls: &Pulls<'_>, store: &Store) -> Result<Origins, StoreError> {
    let mut origins = Origins::new();
    for table in &job.tables {
        let found = match &table.from {
            TableInput::Source(source) => {
                let pulled = pulls.get(source.as_str()).copied().unwrap_or_default();
                PullOrigins {
                    sources: pulled.iter().map(|pulled| pulled.list.table().to_owned()).collect(),
                    raw: pulled.iter().any(|pulled| pulled.list.raw),
                }
            }
            TableInput::Query { shape, .. } => {
                PullOrigins { sources: sources_of_query(&shape.reads, &origins, store)?, raw: false }
            }
        };
        origins.insert(table.spec.name.clone(), found);
    }
    Ok(origins)
}

/// The tables of Bigtable that the rows of the tables `reads` were pulled from: by `known`, or else by the store.
fn sources_of_query(reads: &[String], known: &Origins, store: &Store) -> Result<BTreeSet<String>, StoreError> {
    let mut sources = BTreeSet::new();
    for read in reads {
        match known.get(read) {
            Some(known) => sources.extend(known.sources.iter().cloned()),
            None => sources.extend(PullOrigins::load(store.blobs().as_ref(), read)?.sources),
        }
    }
    Ok(sources)
}

/// Refuses pushes into a table that the rows were pulled from.
///
/// # Errors
/// [`RunError::PushToSource`].
pub(crate) fn check_pushes(pushes: &[Push], origins: &Origins) -> Result<(), RunError> {
    for push in pushes.iter().filter(|push| !push.to_source) {
        let target = push.target();
        if origins.get(&push.table).is_some_and(|origins| origins.sources.contains(&target)) {
            return Err(RunError::PushToSource { push: push.name.clone(), table: push.table.clone(), target });
        }
    }
    Ok(())
}

/// Keeps the origins in the store, where pushes look.
///
/// # Errors
/// If they cannot be written.
pub(crate) fn save(origins: Origins, store: &Store) -> Result<(), StoreError> {
    origins.into_iter().try_for_each(|(table, origins)| origins.save(store.blobs().as_ref(), &table))
}

#[cfg(test)]
mod tests {
    use tidetable_layout::spec::FamilySpec;
    use tidetable_source::{PULL_FORMAT, PullList};

    use super::*;

    fn spec(families: &[(&str, Merge)]) -> TableSpec {
        let family = |(name, kind): &(&str, Merge)| FamilySpec {
            name: (*name).to_owned(),
            kind: *kind,
            ..FamilySpec::default()
        };
        TableSpec { families: families.iter().map(family).collect(), ..TableSpec::default() }
    }

    #[test]
    fn a_table_follows_the_families_of_its_source_alone() {
        let list = PullList { format: PULL_FORMAT, source: "t".to_owned(), raw: true, ..PullList::default() };
        let raw = [PulledDirectory { directory: "d".to_owned(), list: list.clone() }];
        let records = [PulledDirectory { list: PullList { raw: false, ..list }, ..raw[0].clone() }];
        let (one, two) = (spec(&[("a", Merge::Newest)]), spec(&[("a", Merge::Newest), ("b", Merge::Sum)]));
        let micros = TableSpec { granularity: Granularity::Micros, ..one.clone() };
        assert!(follows(&one, &two, &raw) && follows(&two, &one, &raw) && follows(&one, &micros, &raw));
        assert!(!follows(&one, &one, &raw) && !follows(&one, &two, &records) && !follows(&one, &two, &[]));
        let other_key = TableSpec { row_key: "{a}".to_owned(), ..two };
        assert!(!follows(&one, &other_key, &raw));
    }
}
