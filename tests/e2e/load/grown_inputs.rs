//! Grown inputs: only appended rows are loaded, and the table equals one loaded at once.

use std::fs;

use crate::harness::Project;
use crate::harness::inputs::{append, assert_same_as_fresh, contents, lines, put, rename};

/// A job with months as windows; `kind` is that of its family.
fn job(kind: &str) -> Project {
    let job = format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"10%\"\n[sources.s.columns]\nd = \"text\"\n\
         ts = \"timestamp\"\nv = \"int64\"\n[tables.T]\nrow_key = \"{{d}}#{{ts:%Y%m%d}}\"\nwindow = \"month\"\n[tables.T.families.A]\n\
         {kind}columns = [{{ qualifier = \"v\", value = \"{{v}}\", timestamp = 0 }}]\n\
         [exports.E]\nper = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\nformat = \"csv\"\nquery = {{ sql = \"select d, v from T order by d\" }}\n"
    );
    Project::new("j", &job)
}

const SUM: &str = "kind = \"sum\"\n";
const NEWEST: &str = "";

#[test]
fn grown_input_loads_although_another_input_is_missing() {
    let (both, own) = ([("y", 1, 2), ("z", 3, 7)], [("z", 3, 7), ("z", 4, 8)]);
    for (kind, gone, grown, more) in [
        (SUM, "in/a.csv", "in/b.csv", both),
        (SUM, "in/b.csv", "in/a.csv", both),
        (NEWEST, "in/a.csv", "in/b.csv", both),
        (NEWEST, "in/b.csv", "in/a.csv", own),
    ] {
        let project = job(kind);
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        project.ok(&["run", "j"]);
        rename(&project, gone, "gone.csv");
        append(&project, grown, &lines(&more));
        let told = format!("{grown} grew by {} bytes", lines(&more).len());
        let plan = project.ok(&["plan", "j"]);
        let bytes = format!("{} B", lines(&more).len());
        let is_planned = |line: &str| line.contains(grown) && line.contains("grown") && line.contains(&bytes);
        assert!(plan.lines().any(is_planned), "{plan}");
        let said = project.messages(&["run", "j"]);
        assert!(said.contains("inputs: 1 grown"), "{said}");
        assert!(said.contains(&format!("{told}: 2 rows are appended")), "{said}");
        // With the file restored, the table equals a fresh one.
        let held = contents(&project);
        rename(&project, "gone.csv", gone);
        assert_same_as_fresh(&project);
        assert_eq!(held, contents(&project));
    }
}

#[test]
fn grown_input_does_not_overwrite_a_later_input() {
    let project = job(NEWEST);
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    rename(&project, "in/b.csv", "gone.csv");
    append(&project, "in/a.csv", &lines(&[("y", 1, 2)]));
    let before = contents(&project);
    let told = project.fails(4, &["run", "j"]);
    assert!(told.contains("owed there: 3 rows of in/a.csv") && !told.contains("are rebuilt"), "{told}");
    assert!(told.contains("--without in/b.csv"), "{told}");
    assert_eq!(contents(&project), before);
    rename(&project, "gone.csv", "in/b.csv");
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=5 x#02=5 y#01=1");
    assert_same_as_fresh(&project);
    // The same value makes no difference.
    append(&project, "in/a.csv", &lines(&[("y", 1, 1)]));
    assert!(project.messages(&["run", "j"]).contains("in/a.csv grew by"));
    assert_same_as_fresh(&project);
}

#[test]
fn rows_of_another_file_do_not_keep_appended_rows_out() {
    // Whether the other file is new or has grown.
    for is_new in [true, false] {
        let project = job(NEWEST);
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        put(&project, "in/c.csv", &[("w", 1, 1)]);
        project.ok(&["run", "j"]);
        rename(&project, "in/c.csv", "gone.csv");
        append(&project, "in/a.csv", &lines(&[("x", 3, 7), ("z", 1, 1)]));
        append(&project, "in/b.csv", &lines(&[("y", 3, 1)]));

        if is_new {
            // It corrects a row of another file, which is no matter of the rows that were appended.
            put(&project, "in/d.csv", &[("y", 1, 9)]);
            let said = project.messages(&["run", "j"]);
            assert!(said.contains("in/a.csv grew by") && !said.contains("in/a.csv changed"), "{said}");
            assert_eq!(contents(&project), "w#01=1 x#01=5 x#02=5 x#03=7 y#01=9 y#03=1 z#01=1");
        } else {
            // Rows of `b` would hide one of the missing file.
            append(&project, "in/b.csv", &lines(&[("w", 1, 3)]));
            let told = project.fails(4, &["run", "j"]);
            assert!(told.contains("owed there: 3 rows of in/b.csv"), "{told}");
            assert!(
                told.contains("T: rows appended to in/b.csv differ from cells of window 2020-01 that may"),
                "{told}"
            );
            assert!(told.contains("in/a.csv grew by"), "{told}");
            assert_eq!(contents(&project), "w#01=1 x#01=5 x#02=5 x#03=7 y#01=1 z#01=1");
        }

        rename(&project, "gone.csv", "in/c.csv");
        project.ok(&["run", "j"]);
        assert_same_as_fresh(&project);
    }
}

#[test]
fn rejected_rows_keep_line_numbers_and_count_for_the_whole_file() {
    let project = job(SUM);
    let good: Vec<(&str, u32, i64)> = (1..=20).map(|day| ("x", day, 1)).collect();
    put(&project, "in/a.csv", &good);
    append(&project, "in/a.csv", "x,then,1\n");
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", "x,now,1\ny,2020-01-05T00:00:00Z,3\n");
    project.ok(&["run", "j"]);
    let rejects = project.sql("select line, raw from runs.rejects order by 1");
    let rejects: Vec<String> = rejects.iter().map(|row| format!("{} {}", row["line"], row["raw"])).collect();
    assert_eq!(rejects, ["22 \"x,then,1\"", "23 \"x,now,1\""]);
    assert_same_as_fresh(&project);
    let before = project.files("data/tables");
    append(&project, "in/a.csv", "x,later,1\n");
    assert!(project.fails(1, &["run", "j"]).contains("10%"));
    assert_eq!(project.files("data/tables"), before);
}

#[test]
fn changed_last_line_is_not_growth() {
    let project = job(SUM);
    project.write("in/a.csv", "d,ts,v\nx,2020-01-01T00:00:00Z,1\ny,2020-01-02T00:00:00Z,2");
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", "\nz,2020-01-02T00:00:00Z,3");
    assert!(project.messages(&["run", "j"]).contains(": 1 row is appended"));
    assert_same_as_fresh(&project);
    append(&project, "in/a.csv", "4\n");
    assert!(project.messages(&["run", "j"]).contains("in/a.csv changed"));
    assert_eq!(contents(&project), "x#01=1 y#02=2 z#02=34");
    assert_same_as_fresh(&project);
    // A file with changed rows has not grown, whatever follows.
    project
        .write("in/a.csv", "d,ts,v\nx,2020-01-01T00:00:00Z,9\ny,2020-01-02T00:00:00Z,2\nz,2020-01-02T00:00:00Z,34\n");
    append(&project, "in/a.csv", &lines(&[("z", 5, 1)]));
    assert!(project.messages(&["run", "j"]).contains("in/a.csv changed"));
    assert_same_as_fresh(&project);
}

#[test]
fn deletes_and_copies_apply_to_appended_rows() {
    let project = job(SUM);
    put(&project, "in/a.csv", &[("x", 1, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    fs::copy(project.path("in/a.csv"), project.path("in/c.csv")).unwrap();
    project.ok(&["run", "j"]);
    // The copy has the former content of the file and replaces it as an input.
    append(&project, "in/a.csv", &lines(&[("x", 1, 2), ("x", 2, 2)]));
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=12 x#02=2 y#01=1");
    assert_same_as_fresh(&project);
    project.ok(&["delete", "T", "--row", "x#20200101", "--yes"]);
    append(&project, "in/a.csv", &lines(&[("x", 1, 9), ("x", 2, 9)]));
    assert!(project.messages(&["run", "j"]).contains("in/a.csv grew by"));
    assert_eq!(contents(&project), "x#02=11 y#01=1");
}

#[test]
fn renamed_input_that_grew_loads_only_its_new_rows() {
    for (kind, neighbour) in [(SUM, false), (SUM, true), (NEWEST, false), (NEWEST, true)] {
        let project = job(kind);
        put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 5)]);
        put(&project, "in/b.csv", &[("y", 1, 1)]);
        project.ok(&["run", "j"]);
        rename(&project, "in/a.csv", "in/c.csv");
        let more = lines(&[("x", 3, 7), ("z", 3, 8)]);
        append(&project, "in/c.csv", &more);
        if neighbour {
            put(&project, "in/b.csv", &[("y", 1, 2)]);
        }
        // A file of the old content and others is no second growth of it.
        put(&project, "in/d.csv", &[("x", 1, 5), ("x", 2, 5), ("w", 4, 1)]);
        let said = project.messages(&["run", "j"]);
        let told =
            format!("in/c.csv is in/a.csv under another name and grew by {} bytes: 2 rows are appended", more.len());
        assert!(said.contains(&told), "{said}");
        assert!(!said.contains("is gone"), "{said}");
        let (x, y) = (if kind == SUM { 10 } else { 5 }, if neighbour { 2 } else { 1 });
        assert_eq!(contents(&project), format!("w#04=1 x#01={x} x#02={x} x#03=7 y#01={y} z#03=8"));
        assert_same_as_fresh(&project);
    }
}

#[test]
fn renamed_input_that_grew_keeps_its_place() {
    let project = job(NEWEST);
    put(&project, "in/a.csv", &[("x", 1, 5)]);
    put(&project, "in/b.csv", &[("y", 1, 1)]);
    project.ok(&["run", "j"]);
    // A cell of a later file stays: the windows are rebuilt.
    rename(&project, "in/a.csv", "in/0.csv");
    append(&project, "in/0.csv", &lines(&[("y", 1, 9), ("x", 2, 9)]));
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("in/0.csv changed: the windows it touches are rebuilt"), "{said}");
    assert_eq!(contents(&project), "x#01=5 x#02=9 y#01=1");
    assert_same_as_fresh(&project);
    // Its deleted rows stay deleted, also in a rebuild, and a run before did not find it.
    project.ok(&["delete", "T", "--row", "x#20200102", "--yes"]);
    rename(&project, "in/0.csv", "0.csv");
    assert!(project.messages(&["run", "j"]).contains("in/0.csv is gone"));
    rename(&project, "0.csv", "in/00.csv");
    append(&project, "in/00.csv", &lines(&[("x", 2, 8), ("x", 3, 8)]));
    project.ok(&["run", "j", "--rebuild"]);
    assert_eq!(contents(&project), "x#01=5 x#03=8 y#01=1");
}

#[test]
fn longest_of_several_missing_inputs_has_grown() {
    let project = job(SUM);
    put(&project, "in/a.csv", &[("x", 1, 5)]);
    put(&project, "in/b.csv", &[("x", 1, 5), ("x", 2, 5)]);
    put(&project, "in/empty.csv", &[]);
    project.ok(&["run", "j"]);
    for file in ["a", "b", "empty"] {
        fs::remove_file(project.path(&format!("in/{file}.csv"))).unwrap();
    }
    put(&project, "in/c.csv", &[("x", 1, 5), ("x", 2, 5), ("x", 3, 5)]);
    // The header alone is no content.
    put(&project, "in/d.csv", &[("y", 1, 1)]);
    let said = project.messages(&["run", "j"]);
    assert!(said.contains("in/c.csv is in/b.csv under another name"), "{said}");
    assert!(said.contains("inputs: 1 new, 1 grown"), "{said}");
    assert_eq!(contents(&project), "x#01=10 x#02=5 x#03=5 y#01=1");
    // A changed last line is a new file.
    put(&project, "in/e.csv", &[("x", 1, 50)]);
    assert!(!project.messages(&["run", "j"]).contains("in/a.csv under another name"));
    assert_eq!(contents(&project), "x#01=60 x#02=5 x#03=5 y#01=1");
}

#[test]
fn lines_go_on_to_end_with_returns_whatever_ends_appended_ones() {
    let project = job(NEWEST);
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 6)]);
    project.write("in/a.csv", project.read("in/a.csv").replace('\n', "\r"));
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", &lines(&[("x", 3, 7)]));
    assert!(project.messages(&["run", "j"]).contains("inputs: 1 grown"));
    append(&project, "in/a.csv", &lines(&[("x", 4, 8)]).replace('\n', "\r\n"));
    assert!(project.messages(&["run", "j"]).contains("inputs: 1 grown"));

    // When another file changes, it is read again by the same rule.
    put(&project, "in/b.csv", &[("x", 2, 9)]);
    project.ok(&["run", "j"]);
    put(&project, "in/b.csv", &[("x", 3, 9)]);
    project.ok(&["run", "j"]);
    assert_eq!(contents(&project), "x#01=5 x#02=6 x#03=9 x#04=8");
}

#[test]
fn file_that_ends_lines_with_returns_is_not_empty_behind_skipped_lines() {
    let project = job(NEWEST);
    project.write("jobs/j/job.toml", project.read("jobs/j/job.toml").replace("time =", "csv = { skip = 1 }\ntime ="));
    put(&project, "in/a.csv", &[("x", 1, 5), ("x", 2, 6)]);
    let text = format!("told\n{}", project.read("in/a.csv"));
    project.write("in/a.csv", text.replace('\n', "\r"));
    project.ok(&["run", "j"]);
    append(&project, "in/a.csv", &lines(&[("x", 3, 7)]));
    assert!(project.messages(&["run", "j"]).contains("inputs: 1 grown"));
    assert_eq!(contents(&project), "x#01=5 x#02=6 x#03=7");
}
