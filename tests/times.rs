//! Times that are read: local times that occur twice or never, times beyond what queries can work with, digits that are cut.

use serde_json::Value;

use crate::harness::{Project, json_lines};

/// A job `t` over in/*.csv, whose time `ts` is what `source` says.
fn job(source: &str) -> String {
    format!(
        "name = \"t\"\n[sources.r]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\nmax_rejected = \"100%\"\n{source}\n\
         [tables.T]\nrow_key = \"{{id}}#{{ts:us}}\"\ngranularity = \"micros\"\n\
         [tables.T.families.F]\ncolumns = [{{ qualifier = \"V\", value = \"{{id}}\" }}]\n"
    )
}

fn note(record: &Value, part: &str) -> bool {
    record["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains(part))
}

fn rejected(project: &Project, record: &Value) -> Vec<Value> {
    json_lines(&project.read(&format!("data/{}", record["rejected"].as_str().unwrap())))
}

/// The half hours of Paris around both clock changes of 2021, as they are written.
const PARIS: &str = "id,day,clock\n\
    a,2021-03-28,01:30:00\nb,2021-03-28,02:30:00\nc,2021-03-28,03:30:00\n\
    d,2021-10-31,01:30:00\ne,2021-10-31,02:30:00\nf,2021-10-31,03:30:00\n";

#[test]
fn local_times_mean_the_same_wherever_they_are_read() {
    let ways = [
        // The format of a column, and expressions.
        (
            "[sources.r.columns]\nid = \"text\"\nts = { format = \"%Y-%m-%d %H:%M:%S\", timezone = \"Europe/Paris\" }",
            PARIS.replace("day,clock", "ts").replace(",01", " 01").replace(",02", " 02").replace(",03", " 03"),
        ),
        (
            "columns = { id = \"text\", day = \"text\", clock = \"text\" }\n\
             derive = { ts = \"cast(day || ' ' || clock as timestamp) at time zone 'Europe/Paris'\" }",
            PARIS.to_owned(),
        ),
        (
            "columns = { id = \"text\", day = \"date\", clock = \"text\" }\n\
             derive = { ts = \"to_timestamp_seconds(cast(date_part('epoch', day) as bigint) + 3600 * \
             cast(split_part(clock, ':', 1) as bigint) + 60 * cast(split_part(clock, ':', 2) as bigint)) \
             at time zone 'Europe/Paris'\" }",
            PARIS.to_owned(),
        ),
    ];
    for (source, text) in ways {
        let project = Project::new("t", &job(source));
        project.write("in/a.csv", text);
        let record = project.run_job("t");
        let times: Vec<String> = project
            .sql("SELECT id, ts FROM T ORDER BY ts")
            .iter()
            .map(|row| format!("{} {}", row["id"].as_str().unwrap(), row["ts"].as_str().unwrap()))
            .collect();
        let wanted = [
            "a 2021-03-28T00:30:00Z",
            "c 2021-03-28T01:30:00Z",
            "d 2021-10-30T23:30:00Z",
            // The first of two.
            "e 2021-10-31T00:30:00Z",
            "f 2021-10-31T02:30:00Z",
        ];
        assert_eq!(times, wanted, "{source}");
        let rejected = rejected(&project, &record);
        assert_eq!((rejected.len(), &rejected[0]["line"], &rejected[0]["column"]), (1, &3.into(), &"ts".into()));
        assert!(rejected[0]["reason"].as_str().unwrap().contains("does not exist in Europe/Paris"), "{rejected:?}");
        assert_eq!(record["loads"][0]["repeated_times"], 1, "{source}");
        assert!(note(&record, "1 local times occur twice"), "{}", record["notes"]);
        assert_eq!(project.sql("SELECT repeated_times FROM runs.loads")[0]["repeated_times"], 1);
        // And in a query.
        let asked = "SELECT cast(cast('2021-10-31 02:30:00' as timestamp) AT TIME ZONE 'Europe/Paris' AS bigint) AS t";
        assert_eq!(project.sql(asked)[0]["t"], 1_635_640_200_000_000_i64);
        let skipped = asked.replace("10-31", "03-28");
        assert!(project.fails(1, &["sql", "-c", &skipped]).contains("does not exist in Europe/Paris"));
    }
}

#[test]
fn times_that_queries_cannot_work_with_are_rejected_with_their_place() {
    let project = Project::new("t", &job("columns = { id = \"text\", ts = \"timestamp\" }"));
    project.write(
        "in/a.csv",
        "id,ts\na,2262-04-11T23:47:16.854775Z\nb,2262-04-12T00:00:00Z\nc,9999-12-31T00:00:00Z\nd,2020-01-01T00:00:00Z\n",
    );
    let record = project.run_job("t");
    assert_eq!((&record["rows_rejected"], project.sql("SELECT id FROM T").len()), (&2.into(), 2));
    let places: Vec<(Value, Value, Value)> = rejected(&project, &record)
        .iter()
        .map(|row| (row["file"].clone(), row["line"].clone(), row["column"].clone()))
        .collect();
    assert_eq!(places, [3, 4].map(|line| ("in/a.csv".into(), line.into(), "ts".into())));
    assert!(rejected(&project, &record)[0]["reason"].as_str().unwrap().contains("2262-04-11T23:47:16.854775Z"));
    // What is in the table does not stop a query.
    for asked in
        ["date_trunc('day', ts)", "date_trunc('year', ts)", "date_bin(interval '1 hour', ts)", "cast(ts as timestamp)"]
    {
        assert_eq!(project.sql(&format!("SELECT {asked} AS t FROM T")).len(), 2, "{asked}");
    }

    // Made by an expression.
    let project = Project::new(
        "t",
        &job("columns = { id = \"text\", day = \"timestamp\" }\nderive = { ts = \"day + interval '300 years'\" }"),
    );
    project.write("in/a.csv", "id,day\na,1950-01-01T00:00:00Z\nb,1970-01-01T00:00:00Z\n");
    let record = project.run_job("t");
    assert_eq!(project.sql("SELECT id FROM T").len(), 1);
    let row = &rejected(&project, &record)[0];
    assert_eq!((&row["file"], &row["line"], &row["column"]), (&"in/a.csv".into(), &3.into(), &"ts".into()));
}

#[test]
fn what_is_cut_is_told_and_a_leap_second_is_a_time() {
    let project = Project::new("t", &job("columns = { id = \"text\", ts = \"timestamp\" }"));
    project.write(
        "in/a.csv",
        "id,ts\na,2020-01-01T00:00:00.123456789Z\nb,2020-01-01T00:00:00.123456000Z\nc,2016-12-31T23:59:60Z\nd,2016-12-31T23:58:60Z\n",
    );
    let record = project.run_job("t");
    assert_eq!(record["loads"][0]["cut_times"], 1);
    assert!(note(&record, "1 times have digits beyond the microsecond"), "{}", record["notes"]);
    assert_eq!(project.sql("SELECT ts FROM T WHERE id = 'c'")[0]["ts"], "2017-01-01T00:00:00Z");
    assert_eq!(project.sql("SELECT ts FROM T WHERE id = 'a'")[0]["ts"], "2020-01-01T00:00:00.123456Z");
    assert_eq!((rejected(&project, &record).len(), &rejected(&project, &record)[0]["line"]), (1, &5.into()));
}
