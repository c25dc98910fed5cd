//! `tidetable verify`.

use crate::harness::{Project, flip_bit, json_lines};

#[test]
fn verify_finds_a_flipped_bit() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let said = project.ok(&["verify"]);
    assert!(said.starts_with("SENSOR: sound; version 1, "), "{said}");
    for args in [["verify", "SENSOR"], ["verify", "--checksums"]] {
        let rows = project.json(&args);
        assert!(!rows.is_empty() && rows.iter().all(|row| row["sound"] == true && row["damage"] == ""), "{rows:?}");
    }

    let files = project.files("data/tables").into_iter().filter(|(name, _)| name.ends_with(".sst"));
    let (name, _) = files.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    flip_bit(project.path(&name));
    let inside = name.strip_prefix("data/").unwrap();
    for args in [&["verify", "--output", "json"][..], &["verify", "--output", "json", "--checksums"]] {
        let ran = project.run(args);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        assert!(ran.stderr.contains("1 file damaged"), "{}", ran.stderr);
        let damaged: Vec<_> = json_lines(&ran.stdout).into_iter().filter(|row| row["sound"] == false).collect();
        assert_eq!(damaged.len(), 1);
        assert_eq!(damaged[0]["file"], inside);
        assert!(damaged[0]["damage"].as_str().unwrap().contains("page"), "{damaged:?}");
    }
    let ran = project.run(&["verify", "SENSOR"]);
    assert!(ran.stdout.contains("SENSOR: damaged") && ran.stdout.contains(inside), "{}", ran.stdout);
}

#[test]
fn errors_of_files_name_the_root_once() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let files = project.files("data/tables").into_iter().filter(|(name, _)| name.ends_with(".sst"));
    let (name, bytes) = files.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    project.write(&name, vec![7; bytes.len()]);
    let inside = name.strip_prefix("data/").unwrap();
    let root = format!("in the root {}", project.path("data").display());

    let told = project.fails(1, &["verify", "SENSOR"]);
    assert_eq!(told.matches(&root).count(), 1, "{told}");
    let told = project.fails(1, &["sql", "-c", "SELECT sum(kwh) FROM SENSOR"]);
    assert!(told.contains(inside) && told.matches(&root).count() == 1, "{told}");
    let told = project.fails(1, &["sql", "--log", "json", "-c", "SELECT sum(kwh) FROM SENSOR"]);
    assert_eq!(json_lines(&told)[0]["root"], project.path("data").to_str().unwrap(), "{told}");
    // Other errors are of no root.
    assert!(!project.fails(2, &["sql", "-c", "SELECT nothing FROM SENSOR"]).contains("in the root"));
}

#[test]
fn verify_refuses_an_unknown_table() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let said = project.fails(2, &["verify", "SENSORS"]);
    assert!(said.contains("there is no table SENSORS") && said.contains("SENSOR"), "{said}");
}

#[test]
fn the_advice_is_of_what_is_damaged() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let files = project.files("data/exports").into_iter().filter(|(name, _)| name.ends_with(".parquet"));
    flip_bit(project.path(&files.map(|(name, _)| name).next().unwrap()));
    let said = project.fails(1, &["verify", "--all"]);
    assert!(said.contains("1 file damaged: run the job") && !said.contains("repair"), "{said}");
    project.ok(&["run", "smart-meters"]);
    project.ok(&["verify", "--all"]);

    let files = project.files("data/tables").into_iter().filter(|(name, _)| name.ends_with(".sst"));
    flip_bit(project.path(&files.map(|(name, _)| name).next().unwrap()));
    let said = project.fails(1, &["verify", "--all"]);
    assert!(said.contains("tidetable repair TABLE --yes") && !said.contains("--force"), "{said}");
}

#[test]
fn files_of_rejected_rows_are_verified_as_doctor_does() {
    let project = Project::new("j", readings_job!("in/*.csv", "max_rejected = \"90%\"", ""));
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-01T10:00:00Z,1\nx,2020-01-01T10:00:00Z,1\ny,2020-01-01T10:00:00Z,1\n",
    );
    let record = project.run_job("j");
    let file = format!("data/{}", record["rejected"].as_str().unwrap());
    assert!(project.ok(&["verify", "--all"]).contains("rejected rows: sound; 1 file of"));

    let whole = project.read(&file);
    let first = whole.lines().next().unwrap();
    for (text, damage) in [
        (format!("{first}\n"), "it holds 1 row, and its run rejected 2: its end is missing"),
        (format!("{first}\n{{\"file\n"), "line 2"),
    ] {
        project.write(&file, text);
        let ran = project.run(&["verify", "--all"]);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("rejected rows: damaged") && ran.stdout.contains(damage), "{}", ran.stdout);
        assert!(ran.stderr.contains("1 file damaged: run `tidetable doctor`"), "{}", ran.stderr);
        assert!(project.fails(1, &["doctor"]).contains("damaged"));
    }
}

#[test]
fn damage_of_an_older_version_is_mended_as_advised() {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    let before = project.files("data/tables").into_keys().filter(|name| name.ends_with(".sst"));
    let before: Vec<String> = before.collect();
    project.ok(&["run", "smart-meters", "--rebuild"]);
    flip_bit(project.path(&before[0]));

    project.ok(&["verify"]);
    let said = project.fails(1, &["verify", "--all-versions"]);
    assert!(said.contains("tidetable vacuum TABLE --older-than 0s --yes") && !said.contains("repair TABLE"), "{said}");
    project.ok(&["vacuum", "SENSOR", "--older-than", "0s", "--yes"]);
    project.ok(&["verify", "--all-versions"]);
}
