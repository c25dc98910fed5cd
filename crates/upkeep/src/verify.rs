//! Verify: reads manifests and every byte of every SST back, to find damage.
//!
//! Nothing is changed, and damage is reported file by file.

use std::collections::HashMap;
use std::sync::Arc;

use rayon::prelude::*;
use tidetable_layout::StoredSchema;
use tidetable_sstable::{ReadError, Reader};
use tidetable_store::limits::rows_over_limits;
use tidetable_store::version::{Sst, Version};
use tidetable_store::{Result, StoreError, Table};

/// Options of a verify.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VerifyOptions {
    /// Verify the SSTs of all versions, not only of the newest.
    pub all_versions: bool,
    /// Check only sizes and checksums, without decoding values.
    pub checksums_only: bool,
}

/// Result of verifying a table.
#[derive(Debug)]
pub struct TableReport {
    /// Name of the table that was verified.
    pub table: String,
    /// Numbers of the verified versions, ascending.
    pub versions: Vec<u64>,
    /// Damage of its manifests.
    pub manifests: Vec<StoreError>,
    /// Its SSTs, by window and sequence number, those of the newest version first.
    pub ssts: Vec<SstReport>,
    /// Rows of the newest version over a limit, which cannot be read or compacted: left by builds without this check.
    pub rows: Vec<StoreError>,
}

/// Result of verifying an SST.
#[derive(Debug)]
pub struct SstReport {
    /// The SST as its manifest describes it.
    pub sst: Sst,
    /// Start of its window, microseconds since the epoch.
    pub window: i64,
    /// The newest version that names it.
    pub version: u64,
    /// Its damage; empty if it is sound.
    pub damage: Vec<StoreError>,
}

impl SstReport {
    /// Starts of its windows, ascending.
    pub fn windows(&self) -> Vec<i64> {
        self.sst.multi_window.as_ref().map_or_else(|| vec![self.window], |multi_window| multi_window.windows.clone())
    }
}

impl TableReport {
    /// Whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.manifests.is_empty() && self.rows.is_empty() && self.damaged().next().is_none()
    }

    /// The SSTs with any damage, in the order of the report.
    pub fn damaged(&self) -> impl Iterator<Item = &SstReport> {
        self.ssts.iter().filter(|report| !report.damage.is_empty())
    }
}

/// Reads the table back, on all cores, and compares every file with its manifest. The report of a table without
/// versions is empty.
///
/// # Errors
/// If the store cannot be listed; an unreadable file is reported as damage.
pub fn verify(table: &Table, options: VerifyOptions) -> Result<TableReport> {
    let mut numbers = table.version_numbers()?;
    let mut manifests = Vec::new();
    let expected = table.manifests().kept()?.oldest..;
    if let Some((missing, _)) = expected.zip(&numbers).find(|(expected, found)| expected != *found) {
        manifests.push(table.manifests().missing(missing));
    }
    if !options.all_versions {
        numbers = numbers.split_off(numbers.len().saturating_sub(1));
    }

    let mut versions = Vec::with_capacity(numbers.len());
    let mut named = NamedSsts::default();
    let mut newest = None;
    for number in numbers.into_iter().rev() {
        let read = table.version(number).and_then(|version| {
            if versions.is_empty() && !options.checksums_only {
                newest = Some(version.clone());
            }
            named.add(table, version)
        });
        match read {
            Ok(()) => versions.push(number),
            Err(error) => manifests.push(error),
        }
    }
    versions.reverse();

    let ssts = named.files.par_iter().map(|file| file.report(table, options)).collect();
    let rows = match newest {
        Some(newest) => rows_over_limits(table, &newest).unwrap_or_else(|error| vec![error]),
        None => Vec::new(),
    };
    Ok(TableReport { table: table.name().to_owned(), versions, manifests, ssts, rows })
}

/// All damage of an SST.
fn verify_sst(table: &Table, file: &SstToVerify, checksums_only: bool) -> Vec<StoreError> {
    let sst = &file.sst;
    let reader = match table.ssts().open_fresh(sst) {
        Ok(reader) => reader,
        Err(error) => return vec![error],
    };
    if tidetable_sstable::failpoint!(VerifyOpensOnly) {
        return Vec::new();
    }

    let swept = reader.sweep();
    let is_sound = swept.damage.is_empty();
    let mut differs = differences(sst, &reader);
    if **reader.schema() != *file.schema {
        differs.push("the schema of its rows");
    }
    // Redundant after a damaged page.
    if is_sound && swept.checksum.map(|checksum| format!("{checksum:032x}")).as_ref() != Some(&sst.checksum) {
        differs.push("the checksum of the whole file");
    }

    let mut unreadable: Vec<ReadError> = Vec::new();
    if is_sound && !checksums_only {
        let stripes = (0..reader.stripes().len()).into_par_iter();
        unreadable = stripes.filter_map(|stripe| reader.verify_stripe(stripe).err()).collect();
    }

    let path = table.sst_path(&sst.id);
    let damaged = |source: ReadError| StoreError::Sst { path: path.clone(), source };
    let mut damage: Vec<StoreError> = swept.damage.into_iter().map(damaged).collect();
    damage.extend(differs.into_iter().map(|reason| StoreError::Differs { path: path.clone(), reason }));
    damage.extend(unreadable.into_iter().map(damaged));
    damage
}

/// An SST to verify, with its description.
struct SstToVerify {
    sst: Sst,
    window: i64,
    version: u64,
    schema: Arc<StoredSchema>,
}

impl SstToVerify {
    /// Reads the file back.
    fn report(&self, table: &Table, options: VerifyOptions) -> SstReport {
        SstReport {
            sst: self.sst.clone(),
            window: self.window,
            version: self.version,
            damage: verify_sst(table, self, options.checksums_only),
        }
    }
}

/// The SSTs of several versions, each once.
#[derive(Default)]
struct NamedSsts {
    files: Vec<SstToVerify>,
    places: HashMap<String, usize>,
    /// Layout fingerprint and schema of the version added last.
    schema: Option<(String, Arc<StoredSchema>)>,
}

impl NamedSsts {
    /// Adds the SSTs of a version older than those added before.
    fn add(&mut self, table: &Table, version: Version) -> Result<()> {
        let schema = match &self.schema {
            Some((layout, schema)) if *layout == version.table.layout => Arc::clone(schema),
            _ => Arc::clone(table.layout(&version)?.stored()),
        };
        self.schema = Some((version.table.layout.clone(), Arc::clone(&schema)));

        for window in &version.windows {
            for sst in &window.ssts {
                if let Some(file) = self.places.get(&sst.id).and_then(|place| self.files.get(*place)) {
                    // Versions may differ in its position among others, but not in its content.
                    let (seqno, level, multi_window) = (file.sst.seqno, file.sst.level, file.sst.multi_window.clone());
                    if (Sst { seqno, level, multi_window, ..sst.clone() }) != file.sst {
                        let path = table.manifests().path(version.number);
                        let reason = format!("it describes SST {} otherwise than version {}", sst.id, file.version);
                        return Err(StoreError::Manifest { path, reason });
                    }
                    continue;
                }

                self.places.insert(sst.id.clone(), self.files.len());
                let (number, schema) = (version.number, Arc::clone(&schema));
                self.files.push(SstToVerify { sst: sst.clone(), window: window.start, version: number, schema });
            }
        }
        Ok(())
    }
}

/// Differences between the index of a file and its manifest.
fn differences(sst: &Sst, reader: &Reader) -> Vec<&'static str> {
    let stripes = reader.stripes();
    let held = reader.summary();
    let first_key = stripes.first().map(|stripe| &stripe.first_key[..]);
    let last_key = stripes.last().map(|stripe| &stripe.last_key[..]);
    let times = stripes.iter().filter_map(|stripe| stripe.timestamps);

    let agreements = [
        ("the number of its rows", held.rows == sst.rows),
        ("the number of its cells", held.cells == sst.cells),
        ("its first key", first_key == Some(&sst.first_key[..])),
        ("its last key", last_key == Some(&sst.last_key[..])),
        ("its least timestamp", times.clone().map(|(least, _)| least).min() == sst.min_timestamp),
        ("its greatest timestamp", times.map(|(_, greatest)| greatest).max() == sst.max_timestamp),
    ];
    agreements.into_iter().filter(|(_, agrees)| !agrees).map(|(what, _)| what).collect()
}
