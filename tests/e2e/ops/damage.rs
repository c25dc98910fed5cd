//! Damaged files give an error that names the file, never a wrong answer.

use std::collections::BTreeMap;
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

const DAYS: &str = readings_job!(
    "in/*.csv",
    "",
    "[exports.E]\nper = \"day\"\nname = \"E_{day:%Y%m%d}\"\n\
     query = { sql = \"select meter, ts, kwh from T order by meter, ts\" }\n"
);

/// Two days of one reading each, published.
fn two_days() -> Project {
    let project = Project::new("j", DAYS);
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1.5\n2,2020-01-02T10:00:00Z,2.5\n");
    project.run_job("j");
    project
}

/// Copies the root as `cp -a` does: same times, other inodes.
fn copied(project: &Project) {
    let _ = fs::remove_dir_all(project.path("copy"));
    let done =
        std::process::Command::new("cp").arg("-a").args(["data", "copy"].map(|root| project.path(root))).status();
    assert!(done.unwrap().success());
}

#[test]
fn a_copied_root_trusts_no_other_bytes() {
    let project = two_days();
    let count: &[&str] =
        &["sql", "--root", "copy", "--output", "csv", "-c", "select count(*), sum(kwh) from exports.E"];
    copied(&project);
    assert!(project.ok(count).contains("2,4.0"));
    let (first, second) = ("copy/exports/E_20200101/part-0.parquet", "copy/exports/E_20200102/part-0.parquet");
    let published = fs::read(project.path(first)).unwrap();
    let mut flipped = published.clone();
    flipped[published.len() / 3] ^= 1;
    let damages = [
        ("emptied", Vec::new()),
        ("of another day", fs::read(project.path(second)).unwrap()),
        ("a flipped bit", flipped),
        ("truncated", published[..published.len() - 1].to_vec()),
    ];
    for (what, bytes) in damages {
        // In place, and by a new file.
        for replaces in [false, true] {
            copied(&project);
            if replaces {
                fs::remove_file(project.path(first)).unwrap();
            }
            project.write(first, &bytes);
            let said = project.fails(1, count);
            assert!(said.contains("E_20200101/part-0.parquet"), "{what}: {said}");
            assert_eq!(project.run(&["verify", "--exports", "--root", "copy"]).code, Some(1), "{what}");
            // The job publishes it again.
            project.ok(&["run", "j", "--root", "copy"]);
            assert!(project.ok(count).contains("2,4.0"), "{what}");
        }
    }
}

#[test]
fn a_restored_root_trusts_no_other_bytes() {
    let project = two_days();
    project.ok(&["backup", "vault"]);
    project.ok(&["restore", "vault", "restored"]);
    let count: &[&str] = &["sql", "--root", "restored", "-c", "select count(*) as n from exports.E"];
    assert_eq!(project.json(count)[0]["n"], 2);

    let (first, second) = ("restored/exports/E_20200101/part-0.parquet", "restored/exports/E_20200102/part-0.parquet");
    for bytes in [Vec::new(), fs::read(project.path(second)).unwrap()] {
        project.write(first, &bytes);
        for args in [count, &["verify", "--exports", "--root", "restored"]] {
            let ran = project.run(args);
            let said = ran.stdout + &ran.stderr;
            assert_eq!(ran.code, Some(1), "{args:?}: {said}");
            assert!(said.contains("E_20200101/part-0.parquet"), "{args:?}: {said}");
        }
    }
    project.ok(&["run", "j", "--root", "restored"]);
    assert_eq!(project.json(count)[0]["n"], 2);
}

#[test]
fn lost_newest_manifests_are_found_by_what_else_names_them() {
    let project = two_days();
    project.ok(&["delete", "T", "--row", "001#20200101", "--yes"]);
    project.ok(&["run", "j"]);
    let query: &[&str] = &["sql", "-c", "select count(*) as n from T"];
    assert_eq!(project.json(&["sql", "-c", "select count(*) as n from T"])[0]["n"], 1);
    project.lose_newest_manifest("T");
    for args in [
        query,
        &["run", "j"],
        &["plan", "j"],
        &["verify"],
        &["verify", "T"],
        &["doctor"],
        &["read", "T"],
        &["export", "T", "--to", "x.csv"],
        &["describe", "T"],
        &["heatmap", "T"],
        &["compact", "T"],
        &["drop-rows", "T", "--prefix", "002", "--yes"],
        &["vacuum", "--older-than", "0s", "--yes"],
        &["vacuum", "T", "--older-than", "0s", "--yes"],
        &["repair", "T"],
        &["backup", "vault"],
    ] {
        let ran = project.run(args);
        let said = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, Some(1), "{args:?}: {said}");
        assert!(said.contains("exports/E.json") || said.contains("runs/"), "{args:?}: {said}");
        assert!(said.contains("names version"), "{args:?}: {said}");
    }
    for args in [&["tables"][..], &["status"]] {
        let ran = project.run(args);
        assert!(ran.code == Some(0) && ran.stderr.contains("names version"), "{args:?}: {}", ran.stderr);
    }
    // An older version can still be asked for.
    assert_eq!(project.json(&["sql", "-c", "select count(*) as n from \"T@1\""])[0]["n"], 2);
    project.ok(&["doctor", "--fix"]);
    project.ok(&["doctor"]);
    project.ok(&["verify"]);
    project.ok(&["run", "j"]);
    assert_eq!(project.json(query)[0]["n"], 2, "deletes have to be repeated");
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
    // A table of the same name that was made later is another one.
    fs::remove_dir_all(project.path("data/tables/T")).unwrap();
    project.ok(&["run", "j", "--rebuild"]);
    assert_eq!(project.json(query)[0]["n"], 2);
    project.ok(&["doctor"]);
}

#[test]
fn what_only_lost_versions_hold_is_not_given_up_in_silence() {
    for damaged in ["the newest", "one before it"] {
        let project = two_days();
        for day in [3, 4] {
            project.write(&format!("in/{day}.csv"), format!("meter,ts,kwh\n{day},2020-01-0{day}T10:00:00Z,1\n"));
            project.run_job("j");
        }
        fs::rename(project.path("in/3.csv"), project.path("3.csv")).unwrap();
        fs::rename(project.path("in/4.csv"), project.path("4.csv")).unwrap();
        let manifests: Vec<String> = project.files("data/tables/T/manifest").into_keys().collect();
        match damaged {
            "the newest" => fs::remove_file(project.path(manifests.last().unwrap())).unwrap(),
            _ => project.write(&manifests[manifests.len() - 2], "{}"),
        }

        let before = project.files("data");
        let ran = project.run(&["doctor", "--fix"]);
        let told = (ran.stdout + &ran.stderr).replace("\n            ", " ");
        assert_eq!(ran.code, Some(1), "{damaged}: {told}");
        assert!(told.contains("in/4.csv") && told.contains("gone since"), "{damaged}: {told}");
        assert!(told.contains("tidetable doctor --fix --without in/4.csv") || damaged != "the newest", "{told}");
        assert_eq!(project.files("data/tables"), before_in(&before, "data/tables"), "{damaged}");

        // Back where they were, they are loaded again, and the days stay.
        fs::rename(project.path("3.csv"), project.path("in/3.csv")).unwrap();
        fs::rename(project.path("4.csv"), project.path("in/4.csv")).unwrap();
        project.ok(&["doctor", "--fix"]);
        project.ok(&["run", "j"]);
        assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 4, "{damaged}");
        assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 4, "{damaged}");
    }

    // Or it is given up by name.
    let project = two_days();
    project.write("in/3.csv", "meter,ts,kwh\n3,2020-01-03T10:00:00Z,1\n");
    project.run_job("j");
    fs::remove_file(project.path("in/3.csv")).unwrap();
    project.lose_newest_manifest("T");
    project.fails(1, &["doctor", "--fix"]);
    project.ok(&["doctor", "--fix", "--without", "in/3.csv"]);
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
}

#[test]
fn versions_that_held_nothing_more_of_gone_inputs_are_given_up() {
    let project = two_days();
    project.write("in/b.csv", "meter,ts,kwh\n3,2020-01-03T10:00:00Z,1\n");
    project.run_job("j");

    // The lost version tells that one input is gone, and another has a new name.
    fs::rename(project.path("in/a.csv"), project.path("a.csv")).unwrap();
    fs::rename(project.path("in/b.csv"), project.path("in/c.csv")).unwrap();
    project.write("in/d.csv", "meter,ts,kwh\n4,2020-01-04T10:00:00Z,1\n");
    project.run_job("j");
    project.lose_newest_manifest("T");

    project.ok(&["doctor", "--fix"]);
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from T")[0]["n"], 4);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 4);
}

#[test]
fn what_unreadable_records_name_is_given_up_by_a_pattern_only() {
    let project = two_days();
    project.write("in/3.csv", "meter,ts,kwh\n3,2020-01-03T10:00:00Z,1\n");
    project.run_job("j");
    fs::remove_file(project.path("in/3.csv")).unwrap();
    let runs = fs::read_dir(project.path("data/runs")).unwrap();
    let newest = runs.map(|run| run.unwrap().file_name().into_string().unwrap()).max().unwrap();
    let record = format!("runs/{newest}");
    project.write(&format!("data/{record}"), "{");
    project.lose_newest_manifest("T");

    // The first fix moves the record away, and what it named stays unknown.
    for path in [record.clone(), format!("quarantine/{record}")] {
        let ran = project.run(&["doctor", "--fix", "--without", "in/3.csv"]);
        let told = (ran.stdout + &ran.stderr).replace("\n            ", " ");
        assert_eq!(ran.code, Some(1), "{told}");
        assert!(told.contains(&format!("is unknown: {path} cannot be read")), "{told}");
        assert!(told.contains("tidetable doctor --fix --without '*'"), "{told}");
    }
    project.ok(&["doctor", "--fix", "--without", "*"]);
    project.ok(&["run", "j"]);
    assert_eq!(project.sql("select count(*) as n from exports.E")[0]["n"], 2);
}

/// Those of `files` below a folder.
fn before_in(files: &BTreeMap<String, Vec<u8>>, folder: &str) -> BTreeMap<String, Vec<u8>> {
    files
        .iter()
        .filter(|(name, _)| name.starts_with(folder))
        .map(|(name, bytes)| (name.clone(), bytes.clone()))
        .collect()
}

#[test]
fn a_part_newer_than_its_list_is_named_so() {
    let project = two_days();
    let list = project.path("data/exports/E.json");
    let (text, time) = (fs::read(&list).unwrap(), fs::metadata(&list).unwrap().modified().unwrap());
    project.write("in/a.csv", "meter,ts,kwh\n1,2020-01-01T10:00:00Z,7\n2,2020-01-02T10:00:00Z,2.5\n");
    project.run_job("j");
    // The run that published it could not write the list, as on a full disk.
    fs::write(&list, text).unwrap();
    fs::File::options().write(true).open(&list).unwrap().set_modified(time).unwrap();
    for args in [&["sql", "-c", "select * from exports.E"][..], &["verify", "--exports"]] {
        let ran = project.run(args);
        let said = ran.stdout + &ran.stderr;
        assert_eq!(ran.code, Some(1), "{args:?}: {said}");
        assert!(said.contains("newer than its list") && said.contains("E_20200101/part-0.parquet"), "{args:?}: {said}");
    }
    project.run_job("j");
    assert_eq!(project.sql("select sum(kwh) as n from exports.E")[0]["n"], 9.5);
    project.ok(&["verify", "--exports"]);
}
