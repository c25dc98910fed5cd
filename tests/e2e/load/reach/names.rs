//! Names that are not read are named.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::{count, job, notes, put_parquet, rows};
use crate::harness::{Project, gz};

#[test]
fn links_folders_and_other_encodings_are_named() {
    let project = Project::new("j", &job("\"in/*.csv\"", ""));
    project.write("in/1.csv", rows(0, 5));
    symlink("/nonexistent/2.csv", project.path("in/2.csv")).unwrap();
    symlink("loop.csv", project.path("in/loop.csv")).unwrap();
    fs::create_dir(project.path("in/dir.csv")).unwrap();
    fs::write(project.path("in").join(OsStr::from_bytes(b"K\xF6ln.csv")), rows(5, 5)).unwrap();

    let planned = project.messages(&["plan", "j"]);
    let record = project.run_job("j");
    for told in [&planned, &notes(&record)] {
        assert!(told.contains("in/2.csv (and 1 other in its folder) is not read: it is a link to nothing"), "{told}");
        assert!(told.contains("Add \"in/dir.csv/*.csv\" to `files`"), "{told}");
        assert!(told.contains("in/K\\xF6ln.csv is not read: its name is not UTF-8"), "{told}");
    }
    assert_eq!(count(&project), 5);
}

#[test]
fn linked_folders_below_two_stars_are_named() {
    let project = Project::new("j", &job("\"tree/**/*.csv\"", ""));
    project.write("tree/a/1.csv", rows(0, 5));
    project.write("far/3.csv", rows(5, 5));
    symlink("../far", project.path("tree/b")).unwrap();
    symlink("../nowhere", project.path("tree/c")).unwrap();
    let told = notes(&project.run_job("j"));
    assert!(told.contains("tree/b is not read: it is a link to a folder, which ** does not enter"), "{told}");
    assert!(told.contains("tree/c is not read: it is a link to nothing"), "{told}");

    // Following the note.
    project.write("jobs/j/job.toml", job("\"tree/**/*.csv\", \"tree/b\"", ""));
    project.ok(&["run", "j"]);
    assert_eq!(count(&project), 10);
}

#[test]
fn work_files_are_skipped_and_counted() {
    let project = Project::new("j", &job("\"out/**/*.parquet\"", ""));
    put_parquet(&project, "out/part-0.parquet", 0, 60);
    put_parquet(&project, "out/_temporary/0/attempt_1/part-1.parquet", 60, 30);
    put_parquet(&project, "out/.part-2.parquet", 100, 30);
    project.write("out/_SUCCESS", "");
    let told = notes(&project.run_job("j"));
    assert!(told.contains("2 files are skipped") && told.contains("work files"), "{told}");
    assert_eq!(count(&project), 60);

    // One that `files` writes out is read.
    project.write("jobs/j/job.toml", job("\"out/*.parquet\", \"out/.part-2.parquet\"", ""));
    project.ok(&["run", "j"]);
    assert_eq!(count(&project), 90);
}

#[test]
fn empty_files_and_headers_alone_are_named() {
    let project = Project::new("j", &job("\"in/*.csv\"", ""));
    project.write("in/1.csv", rows(0, 5));
    project.write("in/2.csv", "");
    project.write("in/3.csv", rows(0, 0));
    assert!(project.messages(&["plan", "j"]).contains("in/2.csv is empty"));
    let told = notes(&project.run_job("j"));
    assert!(told.contains("in/2.csv is empty; so it is with 1 other file of its folder"), "{told}");
    assert_eq!(count(&project), 5);
    assert_eq!(notes(&project.run_job("j")), "");
}

#[test]
fn unfinished_files_do_not_keep_others_from_being_loaded() {
    let project = Project::new("j", &job("\"in/*\"", ""));
    put_parquet(&project, "whole.parquet", 10, 10);
    let whole = fs::read(project.path("whole.parquet")).unwrap();
    let packed = gz(rows(20, 10));
    project.write("in/1.csv", rows(0, 10));
    project.write("in/2.parquet", &whole[..whole.len() / 2]);
    project.write("in/3.csv.gz", &packed[..packed.len() - 10]);
    project.write("in/4.zip", b"PK\x03\x04 and no more");
    let told = notes(&project.run_job("j"));
    for path in ["in/2.parquet", "in/3.csv.gz", "in/4.zip"] {
        assert!(told.contains(path) && told.contains("still being written"), "{path}: {told}");
    }
    assert_eq!(count(&project), 10);

    fs::remove_file(project.path("in/4.zip")).unwrap();
    project.write("in/2.parquet", &whole);
    project.write("in/3.csv.gz", &packed);
    assert_eq!(notes(&project.run_job("j")), "");
    assert_eq!(count(&project), 30);

    // A file that was loaded counts as it was, and one that stays cut is a failure.
    project.write("in/2.parquet", &whole[..whole.len() - 1]);
    project.write("in/5.csv", rows(30, 10));
    let old = fs::File::options().append(true).open(project.path("in/2.parquet")).unwrap();
    old.set_modified(SystemTime::now() - Duration::from_secs(86_400)).unwrap();
    let ran = project.run(&["run", "j"]);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("load in/2.parquet was left undone"), "{}", ran.stderr);
    assert_eq!(count(&project), 40);
}

#[test]
fn a_named_folder_stands_for_its_data_files() {
    let project = Project::new("j", &job("\"in\"", ""));
    project.write("in/1.csv", rows(0, 5));
    project.write("in/deep/2.csv", rows(5, 5));
    project.write("in/deep/about.md", "text");
    project.write("in/README.txt", "text");
    let told = notes(&project.run_job("j"));
    assert!(told.contains("in/deep/about.md is not read: its ending does not say what it holds"), "{told}");
    assert_eq!(count(&project), 10);
}
