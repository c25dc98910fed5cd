//! `CREATE EXTERNAL TABLE` in `tidetable sql`.

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::harness::Project;

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
