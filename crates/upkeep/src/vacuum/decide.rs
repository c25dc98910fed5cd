//! Vacuum decision: which files may be removed. Pure: uses listings and the SST ids of versions.

use std::collections::HashSet;

use crate::vacuum::options::VacuumOptions;

/// A file to remove.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removal {
    /// Path inside the store.
    pub path: String,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// What kind of file it is, and with that why it goes.
    pub kind: RemovalKind,
}

/// Kind of a file to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RemovalKind {
    /// The manifest of a removed version.
    Manifest,
    /// A checkpoint of a removed version.
    Checkpoint,
    /// An orphan SST: of removed versions, or never committed.
    Sst,
    /// An unfinished file of a killed writer.
    Leftover,
}

impl RemovalKind {
    pub(crate) fn is_sst(self) -> bool {
        self == Self::Sst
    }

    /// Why a file of this kind is removed, for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Manifest => "manifests of versions that are no longer kept",
            Self::Checkpoint => "checkpoints of versions that are no longer kept",
            Self::Sst => "SSTs that no kept version names",
            Self::Leftover => "files that a killed process left",
        }
    }
}

/// A file as the storage listed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundFile {
    pub(crate) path: String,
    pub(crate) bytes: u64,
    pub(crate) modified: Option<i64>,
}

impl FoundFile {
    /// The removal of this file, which is one of `kind`.
    fn removed_as(self, kind: RemovalKind) -> Removal {
        Removal { path: self.path, bytes: self.bytes, kind }
    }
}

/// The files of a table.
#[derive(Debug, Default)]
pub(crate) struct TableFiles {
    /// Manifests by version number, ascending.
    pub(crate) manifests: Vec<(u64, FoundFile)>,
    /// Checkpoints by version number, ascending.
    pub(crate) checkpoints: Vec<(u64, FoundFile)>,
    /// SSTs by id.
    pub(crate) ssts: Vec<(String, FoundFile)>,
    pub(crate) leftovers: Vec<FoundFile>,
}

/// The oldest version to keep: versions are removed from the first on while they are before `kept` and their
/// successor is old enough.
pub(crate) fn oldest_kept(manifests: &[(u64, FoundFile)], newest: u64, kept: u64, before: i64) -> u64 {
    let replaced_late = manifests.iter().find(|(number, file)| *number > 1 && !is_old(file, before));
    let oldest = replaced_late.map_or(newest, |(number, _)| number - 1).min(kept);
    // A missing version cannot be kept.
    let there = manifests.iter().map(|(number, _)| *number).find(|number| *number >= oldest);
    there.unwrap_or(newest)
}

/// The files to remove: none of `oldest` and later versions, which name the SSTs `named`; others if they are old
/// enough. Manifests come first, in ascending order.
pub(crate) fn decide(found: TableFiles, oldest: u64, named: &HashSet<String>, options: VacuumOptions) -> Vec<Removal> {
    let TableFiles { manifests, checkpoints, ssts, leftovers: unfinished } = found;
    let mut removals = Vec::new();
    for (kind, files) in [(RemovalKind::Manifest, manifests), (RemovalKind::Checkpoint, checkpoints)] {
        let before = files.into_iter().filter(|(number, _)| *number < oldest);
        removals.extend(before.map(|(_, file)| file.removed_as(kind)));
    }

    for (id, file) in ssts {
        let is_old = is_old(&file, options.before) || tidetable_sstable::failpoint!(VacuumUnderWay);
        if is_old && !named.contains(&id) {
            removals.push(file.removed_as(RemovalKind::Sst));
        }
    }

    removals.extend(leftovers(unfinished, options.half_written_before));
    removals
}

/// The unfinished files last written before `before`.
pub(crate) fn leftovers(files: Vec<FoundFile>, before: i64) -> impl Iterator<Item = Removal> {
    let old = files.into_iter().filter(move |file| is_old(file, before));
    old.map(|file| file.removed_as(RemovalKind::Leftover))
}

/// Whether a file is old; always true where the store keeps no times.
fn is_old(file: &FoundFile, before: i64) -> bool {
    file.modified.is_none_or(|modified| modified < before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, modified: i64) -> FoundFile {
        FoundFile { path: path.to_owned(), bytes: 1, modified: Some(modified) }
    }

    /// Version n was committed at time n.
    fn manifests(numbers: std::ops::RangeInclusive<u64>) -> Vec<(u64, FoundFile)> {
        numbers.map(|number| (number, file(&format!("m{number}"), number as i64))).collect()
    }

    fn options(before: i64) -> VacuumOptions {
        VacuumOptions { before, half_written_before: 5, keep_versions: 1 }
    }

    #[test]
    fn a_version_goes_when_the_one_after_it_is_old() {
        // Version 4 was replaced by 5 at time 5.
        assert_eq!(oldest_kept(&manifests(1..=9), 9, 9, 5), 4);
        assert_eq!(oldest_kept(&manifests(1..=9), 9, 9, 6), 5);
        assert_eq!(oldest_kept(&manifests(3..=9), 9, 9, 0), 3);
        assert_eq!(oldest_kept(&manifests(1..=9), 9, 9, 100), 9);
        assert_eq!(oldest_kept(&manifests(1..=9), 9, 6, 100), 6);
        assert_eq!(oldest_kept(&manifests(8..=9), 9, 1, 100), 8);
        assert_eq!(oldest_kept(&manifests(1..=1), 1, 1, 100), 1);
        assert_eq!(oldest_kept(&[], 0, 0, 100), 0);
    }

    #[test]
    fn what_is_kept_or_named_or_young_stays() {
        let found = TableFiles {
            manifests: manifests(1..=5),
            checkpoints: vec![(2, file("c2", 2)), (4, file("c4", 4))],
            ssts: ["named", "unused", "young"].map(|id| (id.to_owned(), file(id, i64::from(id == "young") * 9))).into(),
            leftovers: vec![file("half", 1), file("being written", 5)],
        };
        let removals = decide(found, 4, &["named".to_owned()].into(), options(9));
        let paths: Vec<&str> = removals.iter().map(|removal| removal.path.as_str()).collect();
        assert_eq!(paths, ["m1", "m2", "m3", "c2", "unused", "half"]);
    }
}
