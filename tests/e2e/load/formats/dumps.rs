//! Dumps of Bigtable as sources: Avro, Parquet and the CSV of `cbt`, cell by cell or as records of a layout.

use std::fs;

use serde_json::{Value, json};

use crate::harness::system::{measured, python, run_script};
use crate::harness::{Project, repository};

/// Readings whose cells have several versions, and integers that are added up.
pub const ORIGIN: &str = r#"
name = "origin"

[sources.readings]
files = ["in/*.csv"]
time = "ts"

[sources.readings.columns]
meter = "uint64"
ts = "timestamp"
kwh = "decimal(10,2)"
note = "text"

[tables.SENSOR]
row_key = "{meter:03}#{ts:%Y%m%d}"
granularity = "micros"

[tables.SENSOR.families.METER]
columns = [{ qualifier = "{ts:%H}", value = "{kwh}" }]

[tables.SENSOR.families."n-0.x"]
columns = [{ qualifier = "note", value = "{note}" }]
"#;

/// The time of a reading is that of its cells, so an hour has several versions.
const ROWS: &str = "meter,ts,kwh,note\n\
    1,2026-01-01T10:00:00.000001Z,1.50,a\n\
    1,2026-01-01T10:30:00Z,1.75,\"b,\"\"c\"\"\"\n\
    1,2026-01-02T00:00:00Z,2.00,d\n\
    2,2026-01-01T23:59:59.999999Z,0.25,e\n";

pub const ALL_CELLS: &str = "select encode(row_key, 'hex') as k, family, encode(qualifier, 'hex') as q, arrow_cast(timestamp, 'Int64') as t, \
    encode(value, 'hex') as v from cells.";

/// All cells of a table, in order.
pub fn cells(project: &Project, table: &str) -> String {
    project.csv(&format!("{ALL_CELLS}\"{table}\" order by 1, 2, 3, 4 desc"))
}

fn origin() -> Project {
    let project = Project::new("origin", ORIGIN);
    project.write("in/a.csv", ROWS);
    project.run_job("origin");
    project
}

/// Exports the table into a file of a format, and says how many cells that are.
fn dump(project: &Project, format: &str, to: &str) {
    fs::create_dir_all(project.path(to).parent().unwrap()).unwrap();
    project.ok(&["export", "SENSOR", "--format", format, "-O", to]);
}

/// A job that keeps the cells of the dumps that a pattern matches.
pub fn raw_job(files: &str, format: &str) -> String {
    format!(
        r#"
name = "raw"

[sources.cells]
files = ["{files}"]
format = "{format}"
time = "timestamp"
columns = {{ row_key = "text", qualifier = "text", timestamp = "timestamp", value_m = "text", value_n = "text" }}
families = {{ value_m = "METER", value_n = "n-0.x" }}

[tables.RAW]
row_key = "{{row_key:hex}}"
granularity = "micros"

[tables.RAW.families.METER]
columns = [{{ qualifier = "{{qualifier:hex}}", value = "{{value_m:hex}}" }}]

[tables.RAW.families."n-0.x"]
columns = [{{ qualifier = "{{qualifier:hex}}", value = "{{value_n:hex}}" }}]
"#
    )
}

const FORMATS: [(&str, &str); 3] = [("bigtable-parquet", "parquet"), ("bigtable-avro", "avro"), ("cbt-csv", "csv")];

#[test]
fn a_dump_gives_the_cells_that_it_was_made_of() {
    for (format, ending) in FORMATS {
        let project = origin();
        dump(&project, format, &format!("dumps/1.{ending}"));
        project.write("jobs/raw/job.toml", raw_job(&format!("dumps/*.{ending}"), format));
        let record = project.run_job("raw");
        assert_eq!(record["loads"][0]["rows_rejected"], 0, "{record}");
        assert_eq!(cells(&project, "RAW"), cells(&project, "SENSOR"), "{format}");
        // Nothing changed, so nothing is loaded.
        let record = project.run_job("raw");
        assert_eq!(record["loads"][0]["rows_read"], 0, "{record}");
    }
}

#[test]
fn the_layout_of_a_table_reads_a_dump_back_into_records() {
    for (format, ending) in FORMATS {
        let project = origin();
        dump(&project, format, &format!("dumps/1.{ending}"));
        let readings = project.csv("select * from SENSOR order by meter, ts");
        let written = cells(&project, "SENSOR");
        let text = ORIGIN
            .replace("name = \"origin\"", "name = \"copy\"")
            .replace("SENSOR", "COPY")
            .replace("in/*.csv", &format!("dumps/*.{ending}"))
            .replace("time = \"ts\"", &format!("time = \"ts\"\nformat = \"{format}\"\nlayout = \"COPY\""));
        project.write("jobs/copy/job.toml", text);
        let record = project.run_job("copy");
        assert_eq!(
            (&record["loads"][0]["rows_rejected"], &record["loads"][0]["rows_read"]),
            (&json!(0), &json!(4)),
            "{record}"
        );
        assert_eq!(project.csv("select * from COPY order by meter, ts"), readings, "{format}");
        assert_eq!(cells(&project, "COPY"), written, "{format}");
    }
}

#[test]
fn rows_that_no_layout_wrote_are_rejected_with_their_reason() {
    let project = origin();
    project.write("dumps/1.csv", ",METER\n,10\n001#20260101,1.50@1767261600000000\nother,1@0\n002#20260101,x@0\n");
    let text = ORIGIN
        .replace("name = \"origin\"", "name = \"copy\"")
        .replace("SENSOR", "COPY")
        .replace("in/*.csv", "dumps/*.csv")
        .replace("time = \"ts\"", "time = \"ts\"\nmax_rejected = 2\nformat = \"cbt-csv\"\nlayout = \"COPY\"");
    project.write("jobs/copy/job.toml", text);
    let record = project.run_job("copy");
    assert_eq!(
        (&record["loads"][0]["rows_rejected"], &record["loads"][0]["rows_read"]),
        (&json!(2), &json!(3)),
        "{record}"
    );
    let rejected = project.rejected(&record);
    let reasons: Vec<(&Value, &Value)> = rejected.iter().map(|row| (&row["line"], &row["reason"])).collect();
    assert_eq!(
        reasons,
        [
            (&json!(2), &json!("its row key is not of the form of the layout's")),
            (&json!(3), &json!("the value of METER:10 is no decimal of its precision and scale")),
        ]
    );
}

#[test]
fn the_newest_dump_replaces_the_older_ones() {
    let project = origin();
    dump(&project, "bigtable-avro", "dumps/2026-01-01/part-00000-of-00001.avro");
    project.write("jobs/raw/job.toml", raw_job("dumps/*/*.avro", "bigtable-avro"));
    project.run_job("raw");
    let first = cells(&project, "RAW");

    // A later night without meter 2, with a new reading, in a folder of its own.
    project
        .write("in/a.csv", ROWS.replace("2,2026-01-01T23:59:59.999999Z,0.25,e\n", "1,2026-01-03T00:00:00Z,9.00,z\n"));
    project.run_job("origin");
    dump(&project, "bigtable-avro", "dumps/2026-01-02/part-00000-of-00001.avro");
    let plan = project.ok(&["plan", "raw"]);
    assert!(plan.contains("dumps/2026-01-01/part-00000-of-00001.avro"), "{plan}");
    let ran = project.succeeds(&["run", "raw"]);
    assert!(
        format!("{}{}", ran.stdout, ran.stderr)
            .contains("dumps/2026-01-01/part.avro is not read: it is an older dump, which the newest replaces"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    let second = cells(&project, "RAW");
    assert_eq!(second, cells(&project, "SENSOR"));
    assert!(first.contains("3030322332303236") && !second.contains("3030322332303236"), "{second}");

    // An older dump that is read again changes nothing; without any dump the table stays.
    fs::remove_dir_all(project.path("dumps/2026-01-02")).unwrap();
    project.run_job("raw");
    assert_eq!(cells(&project, "RAW"), first);
    fs::remove_dir_all(project.path("dumps/2026-01-01")).unwrap();
    project.run(&["run", "raw"]);
    assert_eq!(cells(&project, "RAW"), first);
}

#[test]
fn files_of_one_night_beside_each_other_are_never_added_up() {
    let project = origin();
    dump(&project, "bigtable-parquet", "dumps/2026-01-01.parquet");
    project.write("in/a.csv", "meter,ts,kwh,note\n7,2026-02-01T00:00:00Z,1.00,x\n");
    project.run_job("origin");
    dump(&project, "bigtable-parquet", "dumps/2026-01-02.parquet");
    project.write("jobs/raw/job.toml", raw_job("dumps/*.parquet", "bigtable-parquet"));
    project.run_job("raw");
    assert_eq!(cells(&project, "RAW"), cells(&project, "SENSOR"));
}

#[test]
fn what_is_no_whole_dump_is_named_and_not_loaded() {
    let project = origin();
    for (format, ending) in FORMATS {
        dump(&project, format, &format!("good/1.{ending}"));
    }
    let run = |format: &str, file: &str, bytes: &[u8]| {
        project.write(file, bytes);
        project.write("jobs/raw/job.toml", raw_job(file, format));
        let ran = project.run(&["run", "raw"]);
        assert_ne!(ran.code, Some(0), "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(project.run(&["sql", "-c", "select count(*) from cells.RAW"]).code != Some(0), "{file} was loaded");
        (ran.code, ran.stderr)
    };
    let good = |ending: &str| fs::read(project.path(&format!("good/1.{ending}"))).unwrap();
    let cut = |ending: &str| {
        let mut bytes = good(ending);
        bytes.truncate(bytes.len() - 3);
        bytes
    };
    let sequence = b"SEQ\x06!org.apache.hadoop.hbase.io.ImmutableBytesWritable%org.apache.hadoop.hbase.client.Result";

    let mut damaged = good("avro");
    let place = damaged.len() - 30;
    damaged[place] ^= 0xff;
    for (format, file, bytes, wanted) in [
        ("bigtable-parquet", "bad/1.parquet", cut("parquet"), "bad/1.parquet: the end of the Parquet file is missing"),
        ("bigtable-avro", "bad/2.avro", cut("avro"), "bad/2.avro: the end of the Avro file is missing"),
        ("cbt-csv", "bad/3.csv", cut("csv"), "bad/3.csv: the end of the cbt CSV file is missing"),
        ("bigtable-avro", "bad/4.avro", damaged, "bad/4.avro, block 1 at byte"),
        (
            "bigtable-avro",
            "bad/5.avro",
            sequence.to_vec(),
            "bad/5.avro: this is a Hadoop SequenceFile, which is not read; dump the table as Avro or Parquet",
        ),
        ("bigtable-parquet", "bad/6.parquet", sequence.to_vec(), "bad/6.parquet: this is a Hadoop SequenceFile"),
        ("cbt-csv", "bad/7.csv", sequence.to_vec(), "bad/7.csv: this is a Hadoop SequenceFile"),
        (
            "cbt-csv",
            "bad/8.csv",
            ROWS.as_bytes().to_vec(),
            "bad/8.csv: this is no dump of Bigtable: it has meter, ts, kwh, note; a dump has `key` and `cells`",
        ),
        (
            "bigtable-avro",
            "bad/9-00001-of-00003.avro",
            good("avro"),
            "bad/9.avro: 2 of its 3 files are missing (9-00000-of-00003.avro, 9-00002-of-00003.avro); the dump is still being \
             written, or was copied in part: it is not loaded",
        ),
    ] {
        let (code, said) = run(format, file, &bytes);
        let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(wanted), "{file}: {said}");
        assert_eq!(code, Some(1), "{file}: {said}");
    }
    let (_, said) = run("bigtable-parquet", "bad/a.parquet", &parquet_of_columns(&project));
    assert!(said.contains("this is no dump of Bigtable: it has meter"), "{said}");
}

/// A Parquet file of columns.
fn parquet_of_columns(project: &Project) -> Vec<u8> {
    project.ok(&["export", "-c", "select meter from SENSOR", "-O", "columns.parquet"]);
    fs::read(project.path("columns.parquet")).unwrap()
}

#[test]
fn one_cut_shard_keeps_the_whole_dump_from_being_loaded() {
    let project = origin();
    dump(&project, "bigtable-avro", "d/1/part-00000-of-00002.avro");
    project.write("d/1/part-00001-of-00002.avro", b"Obj\x01");
    project.write("jobs/raw/job.toml", raw_job("d/*/*.avro", "bigtable-avro"));
    let said = project.fails(1, &["run", "raw"]);
    assert!(said.contains("d/1/part-00001-of-00002.avro: the end of the Avro file is missing"), "{said}");
    assert_ne!(project.run(&["sql", "-c", "select * from cells.RAW"]).code, Some(0));
}

#[test]
fn families_that_no_column_holds_stop_a_run() {
    let project = origin();
    dump(&project, "bigtable-avro", "dumps/1.avro");
    let text = raw_job("dumps/*.avro", "bigtable-avro");
    let text = text.split("\n[tables.RAW.families.\"n-0.x\"]").next().unwrap();
    let text = text.replace(", value_n = \"n-0.x\" }", " }").replace(", value_n = \"text\" }", " }");
    project.write("jobs/raw/job.toml", &text);
    let said = project.fails(1, &["run", "raw"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains(
            "dumps/1.avro: it has cells of family \"n-0.x\", which no column holds: add a column, such as value_n_0_x = \"text\""
        ),
        "{said}"
    );

    // `value` holds the cells of all families, and a table may take some of them.
    let text = text
        .replace("value_m = \"text\" }", "family = \"text\", value = \"text\" }")
        .replace("families = { value_m = \"METER\" }\n", "")
        .replace("row_key = \"{row_key:hex}\"", "row_key = \"{row_key:hex}\"\nwhere = \"family = 'METER'\"")
        .replace("value_m:hex", "value:hex");
    project.write("jobs/raw/job.toml", text);
    project.run_job("raw");
    let metered: String = cells(&project, "SENSOR")
        .lines()
        .filter(|line| !line.contains("n-0.x"))
        .map(|line| format!("{line}\n"))
        .collect();
    assert_eq!(cells(&project, "RAW"), metered);
}

#[test]
fn unusual_cells_are_kept_as_they_are() {
    let project = Project::empty();
    let Some(python) = python(&project, "pyarrow") else { return };
    fs::create_dir_all(project.path("dumps")).unwrap();
    let file = project.path("dumps/odd.avro");
    run_script(&python, "load/formats/dumps_write.py", ["odd".as_ref(), file.as_os_str()]);
    let said = project.ok(&["new", "odd", "--from", "dumps/odd.avro"]);
    assert!(
        said.contains("This is a dump of Bigtable") && said.contains("table ODD with row key {row_key:hex}"),
        "{said}"
    );
    let text = project.read("jobs/odd/job.toml");
    assert!(text.contains("\"a-b.c_D\"") && text.contains("layout = \"ODD\""), "{text}");
    project.run_job("odd");
    assert_eq!(
        cells(&project, "ODD"),
        "k,family,q,t,v\n\
         61,sum,6e,9223372036854775806,8000000000000000\n\
         61,sum,6e,1,0000010000000000\n\
         fffe,a-b.c_D,,0,c328\n\
         fffe,a-b.c_D,00ff,9223372036854775807,\n"
    );

    // Back into a dump, and from there: the same cells.
    project.ok(&["export", "ODD", "--format", "bigtable-avro", "-O", "dumps/p.avro"]);
    let before = cells(&project, "ODD");
    let text = text.replace("dumps/odd.avro", "dumps/p.avro");
    project.write("jobs/odd/job.toml", text);
    project.run_job("odd");
    assert_eq!(cells(&project, "ODD"), before);

    // Upkeep changes nothing, also not of the last microseconds that there are.
    project.ok(&["compact", "ODD", "--full"]);
    project.ok(&["verify", "ODD"]);
    assert_eq!(cells(&project, "ODD"), before);

    // Cells of an aggregate family as the integers that they are.
    let text = project.read("jobs/odd/job.toml").replace("value_sum = \"text\"", "value_sum = \"int64\"");
    let text = text.replace("families.\"sum\"]\n", "families.\"sum\"]\nkind = \"max\"\n");
    let text = text.replace("{value_sum:hex}", "{value_sum}");
    project.write("jobs/odd/job.toml", text);
    project.ok(&["run", "odd", "--rebuild"]);
    assert_eq!(cells(&project, "ODD"), before);
}

#[test]
fn rows_of_many_cells_take_bounded_memory() {
    let project = Project::empty();
    let Some(python) = python(&project, "pyarrow") else { return };
    fs::create_dir_all(project.path("dumps")).unwrap();
    let mut counted = Vec::new();
    for ending in ["avro", "parquet"] {
        let file = project.path(&format!("dumps/large.{ending}"));
        let args = [ending.as_ref(), file.as_os_str(), "20000".as_ref()];
        run_script(&python, "load/formats/dumps_write.py", args);
        let job = format!("{ending}-dump");
        project.ok(&["new", &job, "--from", &format!("dumps/large.{ending}")]);
        let measured = measured(&mut project.command(&["run", &job]));
        assert!(measured.status.success() && measured.most < 512, "{ending}: {} MiB {}", measured.most, measured.said);
        let table = format!("{}_DUMP", ending.to_uppercase());
        counted.push(project.csv(&format!(
            "select count(*) as cells, count(distinct row_key) as \"rows\", min(length(value)) as least, max(arrow_cast(timestamp, 'Int64')) as last from cells.{table}"
        )));
    }
    assert_eq!(counted[0], counted[1]);
    assert_eq!(counted[0], "cells,rows,least,last\n120000,20001,1,1700000000000001\n");
}

#[test]
fn the_sample_dump_gives_the_day_tables_of_its_origin() {
    let project = Project::smart_meters();
    let job = repository().join("jobs/bigtable-dump/job.toml");
    project.write("jobs/bigtable-dump/job.toml", fs::read_to_string(job).unwrap());
    let dump = "sample-data/bigtable-dump/2018-01-05";
    for file in fs::read_dir(repository().join(dump)).unwrap() {
        let file = file.unwrap();
        project.write(&format!("{dump}/{}", file.file_name().to_str().unwrap()), fs::read(file.path()).unwrap());
    }
    project.run_job("smart-meters");
    let record = project.run_job("bigtable-dump");
    assert_eq!(record["loads"][0]["rows_rejected"], 0, "{record}");
    for day in ["20180102", "20180103", "20180104"] {
        let [dumped, origin] =
            ["DUMPED", "SENSOR"].map(|table| project.csv(&format!("select * from exports.{table}_{day}")));
        assert_eq!(dumped.lines().count(), 481, "{day}");
        assert_eq!(dumped, origin, "{day}");
    }
    let days = project.sql("select count(distinct cast(ts as date)) as days from DUMPED_SENSOR");
    assert_eq!(days, [json!({ "days": 3 })]);

    // Without one of its shards it is no dump, and the table stays.
    fs::remove_file(project.path(&format!("{dump}/part-00001-of-00002.avro"))).unwrap();
    let said = project.fails(1, &["run", "bigtable-dump"]);
    assert!(said.contains("1 of its 2 files is missing (part-00001-of-00002.avro)"), "{said}");
    assert_eq!(project.sql("select count(*) as n from DUMPED_SENSOR"), [json!({ "n": 1440 })]);
}

/// A dump of one cell for each of these keys.
fn cbt(keys: &[&str], micros: &str) -> String {
    let rows: String = keys.iter().map(|key| format!("{key},v@{micros}\n")).collect();
    format!(",METER\n,q\n{rows}")
}

fn keys(project: &Project) -> String {
    let rows = project.sql("select distinct cast(row_key as varchar) as k from cells.RAW order by 1");
    rows.iter().map(|row| row["k"].as_str().unwrap()).collect()
}

#[test]
fn the_former_dump_goes_only_with_the_next_one() {
    let project = Project::new("raw", &raw_job("d/{day:%Y-%m-%d}.cbt.csv", "cbt-csv"));
    project.write("d/2026-01-01.cbt.csv", cbt(&["a", "b"], "86400000000"));
    project.run_job("raw");
    project.write("d/2026-01-02.cbt.csv", cbt(&["a", "c"], "86400000000"));
    project.ok(&["run", "raw", "--day", "2026-01-01"]);
    assert_eq!(keys(&project), "ab", "a day that the newest dump is not of");
    project.run_job("raw");
    assert_eq!(keys(&project), "ac");

    // A dump that has only been begun takes nothing away.
    project.write("d/2026-01-03.cbt.csv", "");
    project.fails(1, &["run", "raw"]);
    assert_eq!(keys(&project), "ac");
    project.write("d/2026-01-03.cbt.csv", cbt(&[], ""));
    project.ok(&["run", "raw"]);
    assert_eq!(keys(&project), "ac");
}

#[test]
fn cells_of_one_millisecond_are_kept_or_rejected() {
    let job = raw_job("d/*.cbt.csv", "cbt-csv").replace("time = ", "max_rejected = \"100%\"\ntime = ");
    for (job, cells) in [(job.replace("granularity = \"micros\"\n", ""), 0), (job, 2)] {
        let project = Project::new("raw", &job);
        project.write("d/1.cbt.csv", ",METER\n,q\na,1@1500\na,2@1600\n");
        let ran = project.succeeds(&["run", "raw"]);
        assert_eq!(project.sql("select count(*) as n from cells.RAW")[0]["n"], cells);
        let told = "has microseconds, and the table keeps milliseconds";
        assert_eq!(ran.stdout.contains(told), cells == 0, "{}", ran.stdout);
    }
}

#[test]
fn a_family_has_one_column_with_a_name_of_its_own() {
    for (families, wanted) in [
        ("families = { qualifier = \"n\", ", "holds a part of each cell"),
        ("families = { value_o = \"METER\", ", "family `METER` has the column `value_o`"),
    ] {
        let job = raw_job("d/*.cbt.csv", "cbt-csv").replace("families = { ", families);
        let job = job.replace("value_m = \"text\", ", "value_m = \"text\", value_o = \"text\", ");
        let told = Project::new("raw", &job).fails(2, &["check", "raw"]);
        assert!(told.contains(wanted), "{families}: {told}");
    }
}
