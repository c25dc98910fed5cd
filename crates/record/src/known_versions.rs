//! Versions of tables that other files of a store name: lists of exports, records of runs, states of pushes.
//!
//! A manifest is removed by nothing but vacuum, and then the oldest go first. If the newest are gone (deleted by hand, lost with
//! a disk, not copied), the table looks as it was before: deleted rows are back. Other files still know better.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use tidetable_blobs::{Blobs, ETag, Listed, Listing};
use tidetable_store::published::Published;
use tidetable_store::{Snapshot, Store, StoreError, Version, ulid_text};

use crate::push::PushState;
use crate::run::RunRecord;
use crate::runs::Runs;

/// Records of runs that are asked at most for a table that is opened, the newest ones.
const NEWEST_RECORDS: usize = 16;
/// How much earlier than the newest version a run may have begun that committed a newer one: a delete is committed while runs go
/// on. Milliseconds.
const LONGEST_RUN: u128 = 24 * 60 * 60 * 1000;

/// A version without a manifest, newer than the newest that has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostVersion {
    /// Number of the version without a manifest.
    pub version: u64,
    /// The file that names it, inside the store.
    pub named_by: String,
}

/// Opens tables for reading in their newest version, and refuses one that has lost newer manifests. Tables that are opened by the
/// same value share what the lists of exports say.
///
/// A table costs the lists of exports, the pushes, and the records of runs since the version: few, since a nightly run changes its
/// tables each night. In a bucket lists and pushes are read while the version is, from the local disk if they are there; records
/// only if none of those names the version, so that a query needs no round trip more.
#[derive(Debug, Default)]
pub struct NewestVersions {
    /// What the lists of exports name.
    lists: OnceLock<KnownVersions>,
}

impl NewestVersions {
    /// The newest version of a table that must exist.
    ///
    /// # Errors
    /// [`StoreError::NoTable`], [`StoreError::VersionLost`], or if it cannot be read.
    pub fn snapshot(&self, store: &Store, table: &str) -> Result<Snapshot, StoreError> {
        let blobs = store.blobs().as_ref();
        if !blobs.capabilities().round_trips {
            let snapshot = store.snapshot(table)?;
            self.check(store, table, snapshot.version())?;
            return Ok(snapshot);
        }
        let (snapshot, known) = std::thread::scope(|scope| {
            let known = scope.spawn(|| self.lists_and_pushes(blobs, table));
            let snapshot = store.snapshot(table);
            (snapshot, known.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let snapshot = snapshot?;
        check_with(known?, store, table, snapshot.version())?;
        Ok(snapshot)
    }

    /// Refuses `newest`, the newest version of a table that has a manifest, if other files name a newer one.
    ///
    /// # Errors
    /// [`StoreError::VersionLost`], or if the store cannot be listed.
    pub fn check(&self, store: &Store, table: &str, newest: &Version) -> Result<(), StoreError> {
        let known = self.lists_and_pushes(store.blobs().as_ref(), table)?;
        check_with(known, store, table, newest)
    }

    /// As [`Self::check`] for the newest version with a manifest; a table without versions has lost none.
    ///
    /// # Errors
    /// As [`Self::check`], or if the newest manifest cannot be read.
    pub fn check_latest(&self, store: &Store, table: &str) -> Result<(), StoreError> {
        match store.table(table).latest()? {
            Some(newest) => self.check(store, table, &newest),
            None => Ok(()),
        }
    }

    /// What the lists of exports and the pushes of a table name. Files that cannot be read are left out.
    fn lists_and_pushes(&self, blobs: &dyn Blobs, table: &str) -> Result<KnownVersions, StoreError> {
        let pushes_in = format!("pushes/{table}");
        let (exports, pushes) = blobs.list_both("exports", &pushes_in)?;
        let pushes = match pushes {
            Some(pushes) => pushes,
            None => blobs.list_files(&pushes_in, Listing::Names)?,
        };
        let exports = if self.lists.get().is_none() { exports } else { Vec::new() };

        let (exports, pushes) = (json_files("exports", exports), json_files(&pushes_in, pushes));
        let mut read = blobs.read_listed(&[exports.clone(), pushes].concat())?.into_iter();
        let mut of_lists = KnownVersions::default();
        for ((path, _), read) in exports.iter().zip(read.by_ref()) {
            if let Some(list) = read.and_then(|read| serde_json::from_slice(&read.bytes).ok()) {
                of_lists.add_naming_list(path, &list);
            }
        }
        let mut known = self.lists.get_or_init(|| of_lists).clone();
        for push in read.flatten().filter_map(|read| serde_json::from_slice(&read.bytes).ok()) {
            known.add_push(table, push);
        }
        Ok(known)
    }
}

/// Checks a version by what lists and pushes name, and by the records of the runs since.
fn check_with(mut known: KnownVersions, store: &Store, table: &str, newest: &Version) -> Result<(), StoreError> {
    let blobs = store.blobs().as_ref();
    let is_named = known.names_itself(table, newest);
    if !blobs.capabilities().round_trips || !is_named {
        let mut runs = blobs.list_after("runs", &first_run(&newest.commit))?;
        runs.drain(..runs.len().saturating_sub(NEWEST_RECORDS));
        for read in blobs.read_listed(&json_files("runs", runs))?.into_iter().flatten() {
            if let Ok(record) = serde_json::from_slice(&read.bytes) {
                known.add_record(&record);
            }
        }
    }
    known.check(store, table, newest)
}

/// The paths of the JSON files of a list of `directory`, with their tags.
fn json_files(directory: &str, files: Vec<Listed>) -> Vec<(String, Option<ETag>)> {
    let files = files.into_iter().filter(|file| file.name.ends_with(".json"));
    files.map(|file| (format!("{directory}/{}", file.name), file.e_tag)).collect()
}

/// The name that comes before those of all runs that may have gone on when `commit`, the id of a version's commit, was made, and after
/// it.
pub fn first_run(commit: &str) -> String {
    let committed = u128::from_str_radix(commit, 16).unwrap_or_default() >> 80;
    ulid_text(committed.saturating_sub(LONGEST_RUN) << 80)
}

/// The newest version of each table that each file names.
#[derive(Debug, Clone, Default)]
pub struct KnownVersions {
    by_table: BTreeMap<String, Vec<Mention>>,
}

/// What a file says of a table.
#[derive(Debug, Clone)]
struct Mention {
    version: u64,
    /// The UUID of the table, where the file has it.
    table_uuid: Option<String>,
    /// The run that wrote it, where the file has no UUID. Runs and UUIDs of tables are ULIDs, which ascend with time: a run after
    /// the table was made names this table, and no earlier one of the same name.
    run: String,
    named_by: String,
}

/// What a list of an export says of versions: lists of many parts are long, and each session reads them.
#[derive(Deserialize)]
struct NamingList {
    parts: BTreeMap<String, NamingPart>,
}

#[derive(Deserialize)]
struct NamingPart {
    sources: BTreeMap<String, u64>,
    run: String,
}

impl KnownVersions {
    /// What the lists of exports, the pushes of `tables` and the newest `records` records of runs name. Files that cannot be
    /// read are left out.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn of(blobs: &dyn Blobs, tables: &[String], records: usize) -> Result<Self, StoreError> {
        let mut known = Self::of_records(blobs, tables, records)?;
        known.add_lists(blobs)?;
        Ok(known)
    }

    /// As [`Self::of`], without the lists of exports: a run reads those of its job anyway, and [adds](Self::add_list) them.
    ///
    /// # Errors
    /// As [`Self::of`].
    pub fn of_records(blobs: &dyn Blobs, tables: &[String], records: usize) -> Result<Self, StoreError> {
        let mut known = Self::default();
        for record in Runs::of(blobs).newest_first(None)?.take(records).flatten() {
            known.add_record(&record);
        }
        for table in tables {
            for push in PushState::of_table(blobs, table)? {
                known.add_push(table, push);
            }
        }
        Ok(known)
    }

    fn add_lists(&mut self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let files = blobs.list("exports")?.into_iter().filter(|file| file.ends_with(".json"));
        let paths: Vec<String> = files.map(|file| format!("exports/{file}")).collect();
        for (path, bytes) in paths.iter().zip(blobs.read_all(&paths)?) {
            if let Some(list) = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()) {
                self.add_naming_list(path, &list);
            }
        }
        Ok(())
    }

    fn add_naming_list(&mut self, path: &str, list: &NamingList) {
        list.parts.values().for_each(|part| self.add_part(path, &part.sources, &part.run));
    }

    /// Adds what the state of a push names.
    fn add_push(&mut self, table: &str, push: PushState) {
        let named_by = format!("the state of its push to {}", push.target);
        let (table_uuid, run) = (Some(push.table_uuid), String::new());
        self.add(table, Mention { version: push.version, named_by, table_uuid, run });
    }

    /// Adds what the list of an export names.
    pub fn add_list(&mut self, list: &Published) {
        let path = format!("exports/{}.json", list.name);
        list.parts.values().for_each(|part| self.add_part(&path, &part.sources, &part.run));
    }

    fn add_part(&mut self, path: &str, sources: &BTreeMap<String, u64>, run: &str) {
        for (table, version) in sources {
            let (run, named_by) = (run.to_owned(), path.to_owned());
            self.add(table, Mention { version: *version, table_uuid: None, run, named_by });
        }
    }

    /// Adds what the record of a run names.
    pub fn add_record(&mut self, record: &RunRecord) {
        for load in &record.loads {
            let run = record.run.clone();
            self.add(&load.table, Mention { version: load.version, table_uuid: None, run, named_by: record.path() });
        }
    }

    fn add(&mut self, table: &str, mention: Mention) {
        let mentions = self.by_table.entry(table.to_owned()).or_default();
        // Of each file the newest version, and of equal ones the latest run, say most.
        match mentions.iter_mut().find(|known| known.named_by == mention.named_by) {
            Some(known) if (known.version, &known.run) < (mention.version, &mention.run) => *known = mention,
            Some(_) => {}
            None => mentions.push(mention),
        }
    }

    /// The newest version of a table that is named and has no manifest, if the newest manifest is that of `newest`.
    pub fn lost(&self, table: &str, newest: &Version) -> Option<LostVersion> {
        let mentions = self.mentions(table, newest);
        let last = mentions.filter(|mention| mention.version > newest.number).max_by_key(|mention| mention.version)?;
        Some(LostVersion { version: last.version, named_by: last.named_by.clone() })
    }

    /// Whether a file names `newest` itself. The run that made the table began before it, so its lists count here, too.
    fn names_itself(&self, table: &str, newest: &Version) -> bool {
        let first = first_run(&newest.table_uuid);
        let is_of_table = |mention: &Mention| match &mention.table_uuid {
            Some(uuid) => *uuid == newest.table_uuid,
            None => mention.run > first,
        };
        let mentions = self.by_table.get(table).map(Vec::as_slice).unwrap_or_default();
        mentions.iter().any(|mention| mention.version == newest.number && is_of_table(mention))
    }

    /// What files say of a table, without what they say of an earlier one of the same name.
    fn mentions<'a>(&'a self, table: &str, newest: &'a Version) -> impl Iterator<Item = &'a Mention> {
        let born = u128::from_str_radix(&newest.table_uuid, 16).map(ulid_text).unwrap_or_default();
        let mentions = self.by_table.get(table).map(Vec::as_slice).unwrap_or_default();
        mentions.iter().filter(move |mention| match &mention.table_uuid {
            Some(uuid) => *uuid == newest.table_uuid,
            None => mention.run.len() == born.len() && mention.run > born,
        })
    }

    /// Refuses the version `newest` of a table that has lost newer ones. The table is looked at once more: a run may have committed
    /// since `newest` was read.
    ///
    /// # Errors
    /// [`StoreError::VersionLost`], or if the table cannot be read.
    pub fn check(&self, store: &Store, table: &str, newest: &Version) -> Result<(), StoreError> {
        if self.lost(table, newest).is_none() {
            return Ok(());
        }
        // A store that follows its own commits would not look.
        let store = Store::new(Arc::clone(store.blobs()));
        let Some(newest) = store.table(table).latest()? else { return Ok(()) };
        let Some(LostVersion { version, named_by }) = self.lost(table, &newest) else { return Ok(()) };
        Err(StoreError::VersionLost { table: table.to_owned(), newest: newest.number, version, named_by })
    }
}

#[cfg(test)]
mod tests {
    use tidetable_layout::{SourceSchema, TableSpec};
    use tidetable_store::published::Part;
    use tidetable_store::version::TableIdentity;

    use super::*;
    use crate::load::LoadRecord;

    /// A UUID of a table and a run of the time `at`.
    fn uuid(at: u128) -> String {
        format!("{:032x}", at << 80)
    }

    fn run(at: u128) -> String {
        ulid_text(at << 80)
    }

    fn newest(number: u64) -> Version {
        let table = TableIdentity {
            job: "j".to_owned(),
            spec: TableSpec::default(),
            source: SourceSchema { fields: Vec::new(), time: 0 },
            layout: String::new(),
            gc: BTreeMap::new(),
        };
        let mut version = Version::empty(table);
        (version.number, version.table_uuid) = (number, uuid(5));
        version
    }

    fn list(version: u64, run: String) -> Published {
        let sources = BTreeMap::from([("T".to_owned(), version)]);
        let part = Part { sources, run, ..Part::default() };
        let parts = BTreeMap::from([("all".to_owned(), part)]);
        Published { name: "E".to_owned(), parts, ..Published::default() }
    }

    #[test]
    fn a_version_that_a_later_run_names_is_lost() {
        let mut known = KnownVersions::default();
        known.add_list(&list(3, run(7)));
        let lost = known.lost("T", &newest(2)).unwrap();
        assert_eq!((lost.version, lost.named_by.as_str()), (3, "exports/E.json"));
        assert_eq!(known.lost("T", &newest(3)), None);
        assert_eq!(known.lost("U", &newest(2)), None);
        let load = LoadRecord { table: "T".to_owned(), version: 5, ..LoadRecord::default() };
        known.add_record(&RunRecord { run: run(8), loads: vec![load], ..RunRecord::default() });
        assert_eq!(known.lost("T", &newest(4)).unwrap().named_by, format!("runs/{}.json", run(8)));
    }

    #[test]
    fn a_push_alone_names_a_lost_version() {
        let root = tempfile::tempdir().unwrap();
        let blobs = tidetable_blobs::LocalBlobs::new(root.path().to_owned());
        let push = PushState {
            table: "T".to_owned(),
            table_uuid: uuid(5),
            target: "projects/p/instances/i/tables/T".to_owned(),
            version: 3,
            ..PushState::default()
        };
        push.save(&blobs, "a").unwrap();

        let known = KnownVersions::of(&blobs, &["T".to_owned()], 16).unwrap();
        let lost = known.lost("T", &newest(2)).unwrap();
        assert_eq!(
            (lost.version, lost.named_by.as_str()),
            (3, "the state of its push to projects/p/instances/i/tables/T")
        );
        assert_eq!(known.lost("T", &newest(3)), None);

        let opened = NewestVersions::default().lists_and_pushes(&blobs, "T").unwrap();
        assert_eq!(opened.lost("T", &newest(2)).map(|lost| lost.version), Some(3));
    }

    #[test]
    fn the_run_that_made_a_table_names_its_first_version() {
        let mut known = KnownVersions::default();
        let mut newest = newest(1);
        newest.table_uuid = uuid(u128::from(u32::MAX));
        known.add_list(&list(1, run(u128::from(u32::MAX) - 1)));
        assert!(known.names_itself("T", &newest) && known.lost("T", &newest).is_none());
        newest.number = 2;
        assert!(!known.names_itself("T", &newest));
    }

    #[test]
    fn what_was_said_of_an_earlier_table_of_the_name_does_not_count() {
        let mut known = KnownVersions::default();
        known.add_list(&list(9, run(4)));
        assert_eq!(known.lost("T", &newest(1)), None);
        for (uuid, version) in [(uuid(4), 9), (uuid(5), 2)] {
            known.add("T", Mention { version, table_uuid: Some(uuid.clone()), run: String::new(), named_by: uuid });
        }
        assert_eq!(known.lost("T", &newest(1)).map(|lost| lost.version), Some(2));
    }
}
