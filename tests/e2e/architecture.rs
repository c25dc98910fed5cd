//! Rules between crates, and limits of files, that the compiler does not check.

use std::collections::BTreeMap;
use std::fs;

use crate::harness::repository;

/// Crates from bottom to top: each may depend on those before it.
const FLOORS: [&str; 22] = [
    "layout",
    "source",
    "sstable",
    "blobs",
    "store",
    "ingest",
    "upkeep",
    "cells",
    "record",
    "functions",
    "upstream",
    "sql",
    "export",
    "job",
    "runner",
    "page",
    "advisor",
    "serving",
    "bigtable",
    "postgres",
    "cluster",
    "cli",
];
/// Crates that only tests may use.
const DEV_ONLY: [&str; 4] = ["bench", "bucket-server", "proof", "testkit"];

/// The workspace crates that each crate depends on: normal and dev-dependencies.
fn dependencies() -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let mut all = BTreeMap::new();
    for folder in fs::read_dir(repository().join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (mut normal, mut dev) = (Vec::new(), Vec::new());
        let mut section = "";
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let Some(rest) = line.strip_prefix("tidetable-") else { continue };
            let name = rest.split(['.', ' ', '=']).next().unwrap().to_owned();
            match section {
                "[dependencies]" => normal.push(name),
                "[dev-dependencies]" => dev.push(name),
                other => panic!("{}: a dependency under {other}", folder.display()),
            }
        }
        all.insert(folder.file_name().unwrap().to_str().unwrap().to_owned(), (normal, dev));
    }
    all
}

#[test]
fn crates_depend_only_on_lower_crates() {
    let all = dependencies();
    let mut known: Vec<&str> = FLOORS.iter().chain(&DEV_ONLY).copied().collect();
    known.sort_unstable();
    assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), known, "give a new crate its floor");
    for (name, (normal, _)) in &all {
        if DEV_ONLY.contains(&name.as_str()) {
            continue;
        }
        for below in normal {
            assert!(!DEV_ONLY.contains(&below.as_str()), "{name} depends on {below}, which is for tests");
            let floor = |name: &str| FLOORS.iter().position(|floor| *floor == name);
            if let (Some(here), Some(there)) = (floor(name), floor(below)) {
                assert!(there < here, "{name} depends on {below}, which is not below it");
            }
        }
    }
}

#[test]
fn only_crates_of_sql_depend_on_datafusion() {
    // Ballista carries units of work as plans.
    let known = ["functions", "upstream", "sql", "export", "cluster"];
    for crate_name in FLOORS {
        let manifest = fs::read_to_string(repository().join("crates").join(crate_name).join("Cargo.toml")).unwrap();
        let knows = manifest.contains("datafusion");
        assert!(!knows || known.contains(&crate_name), "{crate_name} depends on DataFusion");
    }
}

#[test]
fn layout_and_sstable_depend_on_no_io_crate() {
    for crate_name in ["layout", "sstable"] {
        let manifest = fs::read_to_string(repository().join("crates").join(crate_name).join("Cargo.toml")).unwrap();
        for banned in ["tokio", "object_store", "futures"] {
            assert!(!manifest.contains(banned), "{crate_name} depends on {banned}");
        }
    }
}

#[test]
fn architecture_names_every_crate() {
    let architecture = fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    for crate_name in FLOORS.iter().chain(&DEV_ONLY) {
        assert!(architecture.contains(&format!("crates/{crate_name}")), "ARCHITECTURE.md does not name {crate_name}");
    }
    assert!(architecture.lines().count() <= 150);
    let wide: Vec<&str> = architecture.lines().filter(|line| line.chars().count() > 100).collect();
    assert!(wide.is_empty(), "lines of ARCHITECTURE.md with more than 100 characters: {wide:#?}");
}

#[test]
fn files_have_at_most_600_lines_of_code() {
    let mut folders = vec![repository().join("crates"), repository().join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with("//"));
                let count = lines.count();
                assert!(count <= 600, "{} has {count} lines of code", path.display());
            }
        }
    }
}
