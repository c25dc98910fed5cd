//! Damaged files give an error that names the file, never a wrong answer.

use std::fs;

use crate::harness::Project;

const QUERY: &[&str] = &[
    "sql",
    "--output",
    "csv",
    "-c",
    "select count(*), sum(cast(round(kwh * 100) as bigint)), min(ts), max(ts), sum(meter) from SENSOR",
];

/// The largest SST, inside the project.
fn an_sst(project: &Project) -> String {
    let files = project.files("data/tables");
    files.into_iter().filter(|(name, _)| name.ends_with(".sst")).max_by_key(|(_, bytes)| bytes.len()).unwrap().0
}

#[test]
fn truncated_sst_is_named() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let sst = an_sst(&project);
    let bytes = fs::read(project.path(&sst)).unwrap();
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        fs::write(project.path(&sst), &bytes[..length]).unwrap();
        let said = project.fails(1, QUERY);
        let name = sst.strip_prefix("data/").unwrap();
        assert!(said.contains(name), "{length}: {said}");
    }
}

#[test]
fn flipped_bit_is_an_error_or_changes_nothing() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let right = project.ok(QUERY);
    let sst = an_sst(&project);
    let bytes = fs::read(project.path(&sst)).unwrap();
    let mut errors = 0;
    for at in (0..bytes.len()).step_by(bytes.len() / 48) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(project.path(&sst), &flipped).unwrap();
        let ran = project.run(QUERY);
        match ran.code {
            Some(0) => assert_eq!(ran.stdout, right, "byte {at}"),
            _ => {
                errors += 1;
                assert_eq!(ran.code, Some(1), "byte {at}: {}", ran.stderr);
                assert!(ran.stderr.contains(sst.strip_prefix("data/").unwrap()), "byte {at}: {}", ran.stderr);
                assert!(!ran.stderr.contains("panicked"), "byte {at}: {}", ran.stderr);
            }
        }
    }
    assert!(errors >= 40, "only {errors} flips were noticed");
}

#[test]
fn damaged_page_is_named() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let sst = an_sst(&project);
    let mut bytes = fs::read(project.path(&sst)).unwrap();
    // Most of a file is values, and its first third is inside the stripe.
    let at = bytes.len() / 3;
    bytes[at] ^= 4;
    fs::write(project.path(&sst), &bytes).unwrap();
    let said = project.fails(1, QUERY);
    assert!(said.contains("stripe 0") && said.contains("page"), "{said}");
}

#[test]
fn swapped_or_missing_sst_is_an_error() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let ssts: Vec<String> =
        project.files("data/tables").into_keys().filter(|name| name.ends_with(".sst")).take(2).collect();
    fs::copy(project.path(&ssts[0]), project.path(&ssts[1])).unwrap();
    let said = project.fails(1, QUERY);
    assert!(said.contains(ssts[1].strip_prefix("data/").unwrap()), "{said}");
    fs::remove_file(project.path(&ssts[1])).unwrap();
    let said = project.fails(1, QUERY);
    assert!(said.contains(ssts[1].strip_prefix("data/").unwrap()), "{said}");
}

#[test]
fn changed_manifest_is_an_error() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let manifest = project.files("data/tables/SENSOR/manifest").into_keys().next().unwrap();
    let text = project.read(&manifest);
    let changed = text.replacen("\"rows\":20", "\"rows\":21", 1);
    assert_ne!(text, changed);
    project.write(&manifest, changed);
    let said = project.fails(1, &["read", "SENSOR", "--limit", "1"]);
    assert!(said.contains("00000000000000000001.json") && said.contains("checksum"), "{said}");
}
