//! What the jobs of the repository publish, byte by byte, whatever cargo features the build has: a dependency's feature that
//! one of ours turns on, such as another codec, is turned on for all of the build.
//!
//! `just test` checks this without features, and the tests of clusters with them, against the same snapshot. Where bytes change on
//! purpose: `INSTA_UPDATE=always cargo test --no-default-features --package e2e -- sample_bytes::`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::harness::{Project, repository};

/// The logical time of the runs.
pub const NOW: &str = "2026-01-15T06:00:00Z";

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The jobs of the repository and their data.
pub fn samples() -> Project {
    let project = Project::empty();
    for folder in ["jobs", "sample-data"] {
        copy(&repository().join(folder), &project.path(folder));
    }
    project
}

/// Published files, by their names below `exports/`, as parts: names of several contain the run. Lists and logs name the run, too.
pub fn parts(files: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, Vec<Vec<u8>>> {
    let mut parts: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
    for (name, bytes) in files {
        assert!(!name.contains(".tmp-"), "{name} was left behind");
        if let Some((part, _)) = name.rsplit_once('/').filter(|_| name.contains("/part-")) {
            parts.entry(part.to_owned()).or_default().push(bytes);
        }
    }
    parts
}

/// Published files of a root in a directory, by part.
pub fn published(project: &Project, root: &str) -> BTreeMap<String, Vec<Vec<u8>>> {
    let exports = format!("{root}/exports/");
    let files = project.files(exports.trim_end_matches('/')).into_iter();
    parts(files.map(|(name, bytes)| (name.strip_prefix(&exports).unwrap().to_owned(), bytes)).collect())
}

/// Compares the parts that all sample jobs have published in `root` at [`NOW`] with those of every other build.
pub fn assert_pinned(project: &Project, root: &str) {
    let mut lines = String::new();
    for (part, files) in published(project, root) {
        let mut hash = Sha256::new();
        for file in &files {
            hash.update((file.len() as u64).to_le_bytes());
            hash.update(file);
        }
        let hex: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let bytes: usize = files.iter().map(Vec::len).sum();
        writeln!(lines, "{part}: {} files, {bytes} bytes, {hex}", files.len()).unwrap();
    }
    insta::assert_snapshot!("sample_bytes", lines);
}

#[test]
fn sample_jobs_publish_the_same_bytes_in_every_build() {
    let project = samples();
    project.ok(&["run", "--all", "--root", "local", "--now", NOW]);
    assert_pinned(&project, "local");
}
