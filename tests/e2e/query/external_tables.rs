//! `CREATE EXTERNAL TABLE` in `tidetable sql`.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::harness::{Project, gz};

/// A store with a table, and files of meters in every form beside it.
fn project() -> Project {
    let project = Project::smart_meters();
    project.run_job("smart-meters");
    project.write("meters.csv", "meter,town\n7,Ghent\n42,Lyon\n");
    for file in ["meters.parquet", "meters.arrow", "folder/part 1.parquet"] {
        std::fs::create_dir_all(project.path("folder")).unwrap();
        project.ok(&["sql", "-c", "select * from 'meters.csv'", "-O", file]);
    }
    project
}

#[test]
fn times_of_csv_keep_their_zone() {
    let project = Project::empty();
    let rows: String =
        (0..20_000).map(|at| format!("{at},2020-01-01T00:{:02}:00+01:00,2020-01-01 05:00:00\n", at % 60)).collect();
    project.write("a.csv", format!("n,at,local\n{rows}"));
    project.write("b.csv.gz", gz("at;n\n2020-01-01T00:00:00Z;1\n;2\n"));
    let first = project.ok(&[
        "sql",
        "--output",
        "csv",
        "-c",
        "select at, local, arrow_typeof(local) as t from 'a.csv' where n = 61",
    ]);
    assert_eq!(first, "at,local,t\n2019-12-31T23:01:00Z,2020-01-01T05:00:00,Timestamp(s)\n");

    for table in ["'a.csv'", "read_csv('*.csv')", "made"] {
        let made = "create external table made stored as csv location 'a.csv' options ('format.has_header' 'true');";
        let query =
            format!("{made} select min(at) as at, count(*) as n from {table} where at < '2020-01-01T00:01:00+01:00'");
        let found = project.json(&["sql", "-c", &query]);
        assert_eq!(found, [json!({ "at": "2019-12-31T23:00:00Z", "n": 334 })], "{table}");
    }
    // The first file may show no zone, and a zone may be a name; times of both kinds stay as they are written.
    project.write("more/a.csv", "n,at\n");
    project.write("more/b.csv", "n,at\n1,2020-01-01T00:00:00+01:00\n");
    let more = project.json(&["sql", "-c", "select at from 'more/*.csv'"]);
    assert_eq!(more, [json!({ "at": "2019-12-31T23:00:00Z" })]);
    project.write("mixed.csv", "at\n2020-01-01T00:00:00+01:00\n2020-01-01T05:00:00\n");
    let mixed = project.json(&["sql", "-c", "select at from 'mixed.csv'"]);
    assert_eq!(mixed, [json!({ "at": "2020-01-01T00:00:00+01:00" }), json!({ "at": "2020-01-01T05:00:00" })]);

    let packed = project.json(&["sql", "-c", "select max(at) as at, count(*) as n from 'b.csv.gz'"]);
    assert_eq!(packed, [json!({ "at": "2020-01-01T00:00:00Z", "n": 2 })]);
}

#[test]
fn external_tables_are_joined() {
    let project = project();
    for (form, location) in [
        ("CSV", "meters.csv"),
        ("PARQUET", "meters.parquet"),
        ("parquet", "folder/"),
        ("PARQUET", "folder/*.parquet"),
        ("ARROW", "meters.arrow"),
    ] {
        let script = format!(
            "create external table meters stored as {form} location '{location}';\n\
             select m.town, count(*) as n from SENSOR s join meters m on s.meter = m.meter group by m.town order by m.town"
        );
        let found = project.json(&["sql", "-c", &script]);
        assert_eq!(
            found,
            [json!({ "town": "Ghent", "n": 360 }), json!({ "town": "Lyon", "n": 360 })],
            "{form} {location}"
        );
    }
    let columns = "create external table m (a bigint, b varchar) stored as csv location 'meters.csv' \
                   options ('format.has_header' 'true'); select b, a + 1 as a from m order by a desc limit 1";
    let found = project.json(&["sql", "-c", columns]);
    assert_eq!(found, [json!({ "b": "Lyon", "a": 43 })]);
    // Tables of a script on standard input are listed and queried.
    let mut child =
        project.command(&["sql", "--output", "csv"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let script = b"create external table meters stored as csv location 'meters.csv';\n\
                   create external table if not exists meters stored as csv location 'meters.csv';\n\
                   select table_schema, table_name from information_schema.tables where table_name in ('meters', 'SENSOR') \
                   and table_schema = 'records' order by table_name;\n\
                   create or replace external table meters stored as parquet location 'meters.parquet';\n\
                   select count(*) as n from records.meters;";
    child.stdin.take().unwrap().write_all(script).unwrap();
    let output = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!(output, "table_schema,table_name\nrecords,SENSOR\nrecords,meters\nn\n2\n");
    // The table ends with the command, and the store holds nothing of it.
    assert!(project.fails(2, &["sql", "-c", "select * from meters"]).contains("meters"));
    assert_eq!(project.json(&["tables"]).iter().filter(|row| row["name"] == "meters").count(), 0);
}

#[test]
fn patterns_match_directories() {
    let project = project();
    for (folder, town) in [("a_1", "Ghent"), ("a_2", "Lyon"), ("a_2/deep", "Bern"), ("b_1", "Nice")] {
        std::fs::create_dir_all(project.path(folder)).unwrap();
        let query = format!("select 7 as meter, '{town}' as town");
        project.ok(&["sql", "-c", &query, "-O", &format!("{folder}/x.parquet")]);
    }
    project.write("a_1/notes.txt", "no table");
    let towns = |location: &str| {
        let script = format!(
            "create external table m stored as parquet location '{location}'; \
             select string_agg(town, ' ' order by town) as towns from m"
        );
        project.json(&["sql", "-c", &script])[0]["towns"].clone()
    };
    assert_eq!(towns("a_*/*.parquet"), "Ghent Lyon");
    assert_eq!(towns("?_1/x.parquet"), "Ghent Nice");
    assert_eq!(towns(&project.path("a_*/x.*").display().to_string()), "Ghent Lyon");
    assert_eq!(towns("**/x.parquet"), "Bern Ghent Lyon Nice");
    let none = "create external table m stored as parquet location 'c_*/*.parquet'";
    assert!(project.fails(2, &["sql", "-c", none]).contains("there is no file or directory c_*/*.parquet"));
}

#[test]
fn unsupported_declarations_are_errors() {
    let project = project();
    let fails = |statement: &str| {
        let told = project.fails(2, &["sql", "-c", statement]);
        assert!(told.starts_with("error: ") && !told.contains("panicked"), "{told}");
        told
    };
    assert!(fails("create external table m stored as orc location 'meters.csv'").contains("PARQUET, CSV, ARROW"));
    assert!(fails("create external table m stored as json location 'meters.csv'").contains("PARQUET, CSV, ARROW"));
    assert!(
        fails("create external table m stored as csv location 'no.csv'")
            .contains("there is no file or directory no.csv")
    );
    // The file is wrong here, and not the statement.
    let damaged = "create external table m stored as parquet location 'meters.csv'";
    assert!(project.fails(1, &["sql", "-c", damaged]).contains("Invalid Parquet file"));
    let taken = "create external table SENSOR stored as csv location 'meters.csv'";
    assert!(fails(taken).contains("there is a table SENSOR already"));
    let replaced = taken.replace("create", "create or replace");
    assert!(fails(&replaced).contains("there is a table SENSOR already"));
    let twice = "create external table m stored as csv location 'meters.csv';";
    assert!(fails(&twice.repeat(2)).contains("there is a table m already"));
    let named = "create external table cells.m stored as csv location 'meters.csv'";
    assert!(fails(named).contains("write the name alone, not cells.m"));
    let elsewhere = "create external table m stored as csv location 's3://nowhere/m.csv'";
    assert!(project.fails(2, &["sql", "-c", elsewhere]).contains("s3://nowhere/m.csv is a URL"));
    assert!(project.fails(2, &["sql", "-c", "select * from 's3://nowhere/m.csv'"]).contains("load it with a job"));
    // Statements that write or change a table are refused.
    for statement in [
        "create table m as select 1 as one",
        "create view m as select 1 as one",
        "drop table SENSOR",
        "insert into SENSOR select * from SENSOR",
        "copy SENSOR to 'x.parquet'",
        "create external table m stored as csv location 'meters.csv'; drop table m",
        "create external table m stored as csv location 'meters.csv'; insert into m values (1, 'x')",
    ] {
        assert!(fails(statement).contains("not supported"), "{statement}");
    }
    for (statement, command) in [
        ("delete from SENSOR where meter = 7", "tidetable delete TABLE --row KEY"),
        ("update SENSOR set meter = 7", "tidetable run JOB"),
        ("insert into SENSOR select * from SENSOR", "tidetable run JOB"),
    ] {
        assert!(fails(statement).contains(command), "{statement}");
    }
    assert!(!project.path("x.parquet").exists());
    assert_eq!(project.read("meters.csv"), "meter,town\n7,Ghent\n42,Lyon\n");
    // A query of an export reads only the store.
    let job = project
        .read("jobs/smart-meters/job.toml")
        .replace("{ file = \"sensor_day.sql\" }", &format!("{{ sql = \"{taken}\" }}"));
    project.write("jobs/smart-meters/job.toml", job);
    project.fails(2, &["check", "smart-meters"]);
}

#[test]
fn functions_read_files_as_in_duckdb() {
    let project = project();
    project.write("semicolons.txt", "7;Ghent\n42;Lyon\n");
    project.write("meters.json", "{\"meter\":7,\"town\":\"Ghent\"}\n{\"meter\":42,\"town\":\"Lyon\"}\n");
    for relation in [
        "read_csv('meters.csv')",
        "READ_CSV_AUTO('meter*.csv')",
        "read_csv('semicolons.txt', delim = ';', header = false) as t(meter, town)",
        "read_parquet('folder/*.parquet')",
        "read_parquet(['meters.parquet'])",
        "read_json('meters.json')",
    ] {
        let found = project.json(&["sql", "-c", &format!("select meter, town from {relation} order by meter")]);
        let wanted = [json!({ "meter": 7, "town": "Ghent" }), json!({ "meter": 42, "town": "Lyon" })];
        assert_eq!(found, wanted, "{relation}");
    }
    for (wrong, part) in [
        ("read_csv('none.csv')", "there is no file or directory none.csv"),
        ("read_csv('meters.csv', skip = 1)", "takes paths in quotes"),
        ("read_parquet(7)", "takes paths in quotes"),
    ] {
        let said = project.fails(2, &["sql", "-c", &format!("select * from {wrong}")]);
        assert!(said.contains(part), "{wrong}: {said}");
    }
}

/// Compressed with a program of the machine; `None` if it is missing.
fn compressed(project: &Project, program: &str, file: &str) -> Option<()> {
    let status = std::process::Command::new(program).args(["-kfq", file]).current_dir(project.path("")).status();
    status.ok().filter(std::process::ExitStatus::success).map(drop)
}

#[test]
fn text_is_read_as_it_is_written() {
    let project = project();
    for (file, text) in [
        ("comma.csv", "meter,town\n7,Ghent\n42,Lyon\n"),
        ("semicolon.csv", "meter;town\n7;Ghent\n42;Lyon\n"),
        ("tab.tsv", "meter\ttown\n7\tGhent\n42\tLyon\n"),
        ("bar.txt", "meter|town\n7|Ghent\n42|Lyon\n"),
        ("quoted.csv", "'meter';'town'\n'7';'Ghent'\n'42';'Lyon'\n"),
        ("marked.csv", "\u{FEFF}meter,town\n7,Ghent\n42,Lyon\n"),
        ("preamble.csv", "Towns of the meters\n\nmeter;town;note\n7;Ghent;a\n42;Lyon;b\n42;Lyon;c\n7;Ghent;d\n"),
        ("lines.json", "{\"meter\":7,\"town\":\"Ghent\"}\n{\"meter\":42,\"town\":\"Lyon\"}\n"),
        ("lines.ndjson", "{\"meter\":7,\"town\":\"Ghent\"}\n{\"meter\":42,\"town\":\"Lyon\"}\n"),
        ("array.json", " [{\"meter\":7,\"town\":\"Ghent\"},\n {\"meter\":42,\"town\":\"Lyon\"}]\n"),
    ] {
        project.write(&format!("text/{file}"), text);
        let path = format!("text/{file}");
        let mut paths = vec![
            path.clone(),
            path.replacen("text/", "te*/", 1),
            path.replacen(file, &format!("{}*", &file[..file.len() - 1]), 1),
        ];
        if compressed(&project, "gzip", &path).is_some() {
            paths.push(format!("{path}.gz"));
        }
        if compressed(&project, "zstd", &path).is_some() {
            paths.push(format!("{path}.zst"));
        }
        let function = if file.ends_with("json") { "read_json" } else { "read_csv" };
        for path in paths {
            for relation in [format!("'{path}'"), format!("{function}('{path}')")] {
                if path.ends_with('*') && relation.starts_with('\'') {
                    continue;
                }
                let query = format!("select distinct meter + 0 as meter, town from {relation} order by meter");
                let found = project.json(&["sql", "-c", &query]);
                let wanted = [json!({ "meter": 7, "town": "Ghent" }), json!({ "meter": 42, "town": "Lyon" })];
                assert_eq!(found, wanted, "{relation}");
            }
        }
        std::fs::remove_dir_all(project.path("text")).unwrap();
    }

    // Without a header, columns are called by their place; what the query says goes first.
    project.write("plain.txt", "7;Ghent\n42;Lyon\n");
    for (relation, rows) in
        [("'plain.txt'", 2), ("read_csv('plain.txt')", 2), ("read_csv('plain.txt', header = true)", 1)]
    {
        let found = project.json(&["sql", "-c", &format!("select count(*) as n from {relation}")]);
        assert_eq!(found[0]["n"], rows, "{relation}");
    }
    let found = project.json(&["sql", "-c", "select * from read_csv('plain.txt') as t(meter, town) order by meter"]);
    assert_eq!(found[0], json!({ "meter": 7, "town": "Ghent" }));
}

#[test]
fn a_compressed_file_is_read_whole_and_a_damaged_one_named() {
    let project = project();
    let rows = "select value as n, repeat('x', 50) as t from generate_series(1, 60000)";
    for (file, output) in [("large.csv", "csv"), ("large.json", "json")] {
        project.ok(&["sql", "-c", rows, "--output", output, "-O", file]);
        if compressed(&project, "gzip", file).is_none() {
            return;
        }
        let query = format!("select count(*) as n, sum(n) as s, max(length(t)) as l from '{file}.gz'");
        assert_eq!(project.json(&["sql", "-c", &query]), [json!({ "n": 60_000, "s": 1_800_030_000_u64, "l": 50 })]);
        let whole = std::fs::read(project.path(&format!("{file}.gz"))).unwrap();
        project.write(&format!("cut.{output}.gz"), &whole[..whole.len() / 2]);
        let told = project.fails(1, &["sql", "-c", &format!("select count(*), max(t) from 'cut.{output}.gz'")]);
        assert!(told.contains(&format!("cut.{output}.gz")), "{told}");
    }
    project.write("wrong.csv.gz", "meter,town\n7,Ghent\n");
    assert!(project.fails(1, &["sql", "-c", "select * from 'wrong.csv.gz'"]).contains("wrong.csv.gz"));
}

#[test]
fn a_pattern_without_a_match_is_named() {
    let project = project();
    for relation in [
        "'none*.csv'",
        "'none*.csv.gz'",
        "'none*.parquet'",
        "'no/*.json'",
        "read_csv('none*.csv')",
        "read_parquet(['meters.parquet', 'none*.parquet'])",
    ] {
        let told = project.fails(2, &["sql", "-c", &format!("select * from {relation}")]);
        assert!(told.contains("there is no file or directory no"), "{relation}: {told}");
    }
}

#[test]
fn a_file_is_read_in_two_ways_by_one_statement() {
    let project = project();
    project.write("two.csv", "Towns\n\nmeter;town\n7;Ghent\n42;Lyon\n7;Ghent\n42;Lyon\n");
    // Without a header and by commas, each line is a row.
    let query = "select (select count(*) from 'two.csv') as rows, \
                 (select count(*) from read_csv('two.csv', delim = '#', header = false)) as lines, \
                 (select count(*) from read_csv('two.csv', delim = ';')) as again";
    let alone =
        project.json(&["sql", "-c", "select count(*) as n from read_csv('two.csv', delim = '#', header = false)"]);
    let found = project.json(&["sql", "-c", query]);
    assert_eq!(found, [json!({ "rows": 4, "lines": alone[0]["n"], "again": 4 })]);
    assert!(alone[0]["n"].as_u64() > Some(4), "{alone:?}");
}

#[test]
fn marks_of_later_files_are_no_text() {
    let project = project();
    project.write("in/a.csv", "meter,town\n7,Ghent\n");
    project.write("in/b.csv", "\u{FEFF}meter,town\n42,Lyon\n");
    project.write("in/a.json", "{\"meter\":7}\n");
    project.write("in/b.json", "\u{FEFF}{\"meter\":42}\n");
    for relation in
        ["'in/*.csv'", "read_csv('in')", "'in/*.json'", "read_json('in')", "read_json(['in/a.json', 'in/b.json'])"]
    {
        let found = project.json(&["sql", "-c", &format!("select sum(meter) as n from {relation}")]);
        assert_eq!(found[0]["n"], 49, "{relation}");
    }
}

#[test]
fn a_directory_stands_for_its_files_of_the_format() {
    let project = project();
    project.write("in/site=A/a.csv", "meter,town\n7,Ghent\n");
    project.write("in/site=B/b.csv", "meter,town\n42,Lyon\n");
    let sum = |relation: &str| {
        project.json(&["sql", "-c", &format!("select sum(meter) as n from {relation}")])[0]["n"].clone()
    };
    assert_eq!(sum("read_csv('in')"), 49);
    assert_eq!(sum("'in'"), 49);

    // The same, with a file that is decompressed, beside one of another format.
    project.write("more/readme.md", "# no table\n");
    project.write("more/site=A/a.csv", "meter,town\n7,Ghent\n");
    project.write("more/site=B/b.tsv", "\u{FEFF}meter,town\n42,Lyon\n");
    if compressed(&project, "gzip", "more/site=B/b.tsv").is_some() {
        std::fs::remove_file(project.path("more/site=B/b.tsv")).unwrap();
    }
    assert_eq!(sum("read_csv('more/')"), 49);
    let found = project.json(&["sql", "-c", "select meter, site from read_csv('more') order by meter"]);
    assert_eq!(found, [json!({ "meter": 7, "site": "A" }), json!({ "meter": 42, "site": "B" })]);

    project.write("none/readme.md", "# no table\n");
    let told = project.fails(2, &["sql", "-c", "select * from read_csv('none')"]);
    assert!(told.contains("there is no file or directory none/*.csv"), "{told}");
}

#[test]
fn errors_over_sound_arrow_files_are_not_their_damage() {
    let project = project();
    std::fs::create_dir_all(project.path("in")).unwrap();
    let write = |query: &str, file: &str| drop(project.ok(&["sql", "-c", query, "-O", file]));
    write("select 1 as a, 2 as b, 'x' as c", "in/1.arrow");
    let told = project.fails(1, &["sql", "-c", "select cast(c as int) from 'in/1.arrow'"]);
    assert!(told.contains("'x'") && !told.contains("damaged"), "{told}");
    let null = "create external table t (a bigint not null) stored as arrow location 'null.arrow'; select a from t";
    write("select cast(null as bigint) as a", "null.arrow");
    let told = project.fails(1, &["sql", "-c", null]);
    assert!(told.contains("null.arrow") && !told.contains("damaged"), "{told}");

    // Columns are taken by their place.
    for (other, problem) in [
        ("select 3 as b, 4 as a, 'y' as c", "column a is at place 2"),
        ("select 'three' as a, 4 as b, 'y' as c", "column a is "),
        ("select 3 as a", "in/2.arrow"),
    ] {
        write(other, "in/2.arrow");
        let declared = "create external table t (a bigint, b bigint) stored as arrow location 'in'; \
                        select sum(a) as a, sum(b) as b from t";
        let told = project.fails(1, &["sql", "-c", declared]);
        assert!(told.contains(problem) && told.contains("2.arrow") && !told.contains("damaged"), "{other}: {told}");
    }
    write("select 3 as a, 4 as b, 'y' as c", "in/2.arrow");
    let sums = project.json(&["sql", "-c", "select sum(a) as a, sum(b) as b from 'in/*.arrow'"]);
    assert_eq!(sums, [json!({ "a": 4, "b": 6 })]);
}
