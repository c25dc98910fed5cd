//! Event times: repeated and missing local times, times outside the range of queries, truncated digits.

use serde_json::Value;

use crate::harness::Project;

/// A job `t` over in/*.csv; `source` declares its event time `ts`.
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

/// The half hours of Paris around both clock changes of 2021, as they are written.
const PARIS: &str = "id,day,clock\n\
    a,2021-03-28,01:30:00\nb,2021-03-28,02:30:00\nc,2021-03-28,03:30:00\n\
    d,2021-10-31,01:30:00\ne,2021-10-31,02:30:00\nf,2021-10-31,03:30:00\n";

#[test]
fn local_times_agree_across_columns_and_expressions() {
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
        let rejected = project.rejected(&record);
        assert_eq!((rejected.len(), &rejected[0]["line"], &rejected[0]["column"]), (1, &3.into(), &"ts".into()));
        assert!(rejected[0]["reason"].as_str().unwrap().contains("does not exist in Europe/Paris"), "{rejected:?}");
        assert_eq!(record["loads"][0]["repeated_times"], 1, "{source}");
        assert!(note(&record, "1 local time occurs twice"), "{}", record["notes"]);
        assert_eq!(project.sql("SELECT repeated_times FROM runs.loads")[0]["repeated_times"], 1);
        // And in a query.
        let asked = "SELECT cast(cast('2021-10-31 02:30:00' as timestamp) AT TIME ZONE 'Europe/Paris' AS bigint) AS t";
        assert_eq!(project.sql(asked)[0]["t"], 1_635_640_200_000_000_i64);
        let skipped = asked.replace("10-31", "03-28");
        assert!(project.fails(1, &["sql", "-c", &skipped]).contains("does not exist in Europe/Paris"));
    }
}

#[test]
fn times_in_the_future_are_told() {
    let project = Project::new("t", &job("columns = { id = \"text\", ts = \"timestamp\" }"));
    project.write("in/a.csv", "id,ts\na,2021-04-01T10:00:00Z\n");
    let record = project.run_job("t");
    assert!(!note(&record, "in the future"), "{}", record["notes"]);
    project.write("in/b.csv", "id,ts\na,2021-04-02T10:00:00Z\nb,2162-11-16T10:00:00Z\n");
    project.write("in/c.csv", "id,ts\na,2161-04-02T10:00:00Z\n");
    let record = project.run_job("t");
    let told = "in/b.csv (and 1 other file) has readings of 2162-11-16, in the future";
    assert!(note(&record, told), "{}", record["notes"]);
}

#[test]
fn times_outside_the_query_range_are_rejected() {
    let project = Project::new("t", &job("columns = { id = \"text\", ts = \"timestamp\" }"));
    project.write(
        "in/a.csv",
        "id,ts\na,2262-04-11T23:47:16.854775Z\nb,0000-12-31T23:00:00Z\nc,9999-12-31T23:30:00-01:00\nd,2020-01-01T00:00:00Z\n",
    );
    let record = project.run_job("t");
    assert_eq!((&record["rows_rejected"], project.sql("SELECT id FROM T").len()), (&2.into(), 2));
    let places: Vec<(Value, Value, Value)> = project
        .rejected(&record)
        .iter()
        .map(|row| (row["file"].clone(), row["line"].clone(), row["column"].clone()))
        .collect();
    assert_eq!(places, [3, 4].map(|line| ("in/a.csv".into(), line.into(), "ts".into())));
    assert!(project.rejected(&record)[0]["reason"].as_str().unwrap().contains("the years 1 to 9999"));

    // Made by an expression.
    let project = Project::new(
        "t",
        &job("columns = { id = \"text\", day = \"timestamp\" }\nderive = { ts = \"day + interval '8000 years'\" }")
            .replace("{ts:us}", "{ts:%Y}"),
    );
    project.write("in/a.csv", "id,day\na,1950-01-01T00:00:00Z\nb,2000-01-01T00:00:00Z\n");
    let record = project.run_job("t");
    assert_eq!(project.sql("SELECT id FROM T").len(), 1);
    let row = &project.rejected(&record)[0];
    assert_eq!((&row["file"], &row["line"], &row["column"]), (&"in/a.csv".into(), &3.into(), &"ts".into()));
}

/// A table of readings, one made of it, and what is published of both.
const ALL_YEARS: &str = r#"
name = "t"
[sources.r]
files = ["in/*.csv"]
time = "ts"
columns = { id = "text", ts = "timestamp", v = "float64" }

[tables.T]
row_key = "{id}#{ts:%Y%m%d}"
[tables.T.families.F]
columns = [{ qualifier = "{ts:%H%M%S}", value = "{v}", timestamp = 0 }]

[tables.D]
from = { query = { sql = "SELECT id, date_bin(interval '12 hours', ts) AS ts, sum(v) AS v FROM T GROUP BY 1, 2" } }
row_key = "{id}#{ts:%Y%m%d%H}"
[tables.D.families.F]
columns = [{ qualifier = "SUM", value = "{v}", timestamp = 0 }]

[exports.DAYS]
per = "day"
name = "DAYS_{day:%Y%m%d}"
query = { sql = "SELECT id, ts, v FROM T" }

[exports.MONTHS]
per = "month"
name = "MONTHS_{month:%Y%m}"
format = "csv"
query = { sql = "SELECT id, ts, v FROM D" }
"#;

#[test]
fn times_of_all_years_are_loaded_queried_and_published() {
    let times = ["0001-01-01T00:00:00Z", "1500-02-28T12:00:00Z", "2020-01-01T00:00:00Z", "2262-04-12T00:00:00Z"];
    let times = [&times[..], &["9999-12-31T23:59:59Z"]].concat();
    let project = Project::new("t", ALL_YEARS);
    let rows: String = times.iter().enumerate().map(|(at, time)| format!("a,{time},{at}\n")).collect();
    project.write("in/a.csv", format!("id,ts,v\n{rows}"));
    let record = project.run_job("t");
    assert_eq!((&record["outcome"], &record["rows_rejected"]), (&"ok".into(), &0.into()), "{record}");
    let asked = |query: &str| -> Vec<String> {
        project.sql(query).iter().map(|row| row["x"].as_str().map_or(row["x"].to_string(), str::to_owned)).collect()
    };
    assert_eq!(asked("SELECT ts AS x FROM T ORDER BY ts"), times);
    assert_eq!(asked("SELECT ts AS x FROM T WHERE ts >= '9999-12-31'"), times[4..]);
    assert_eq!(
        asked("SELECT ts AS x FROM T WHERE ts < '0001-01-02' OR CAST(ts AS DATE) = '2262-04-12' ORDER BY x"),
        [times[0], times[3]]
    );
    let cut = |function: &str| asked(&format!("SELECT {function} AS x FROM T ORDER BY x"));
    let years = ["0001", "1500", "2020", "2262", "9999"];
    assert_eq!(cut("date_trunc('year', ts)"), years.map(|year| format!("{year}-01-01T00:00:00Z")));
    assert_eq!(cut("date_trunc('hour', ts)")[4], "9999-12-31T23:00:00Z");
    assert_eq!(
        cut("date_bin(interval '12 hours', ts)")[1..],
        ["1500-02-28T12:00:00Z", "2020-01-01T00:00:00Z", "2262-04-12T00:00:00Z", "9999-12-31T12:00:00Z"]
    );
    assert_eq!(cut("date_bin(interval '1 year', ts, '2000-07-01')")[0], "0000-07-01T00:00:00Z");
    assert_eq!(cut("date_part('year', ts)"), ["1", "1500", "2020", "2262", "9999"]);
    assert_eq!(cut("to_char(ts, '%Y-%m-%d %H')")[4], "9999-12-31 23");
    assert_eq!(cut("CAST(ts AT TIME ZONE 'Asia/Tokyo' AS DATE)")[3], "2262-04-12");
    assert_eq!(cut("to_unixtime(ts)")[4], "253402300799");
    assert_eq!(
        cut("to_local_time(arrow_cast(ts, 'Timestamp(Microsecond, Some(\"Asia/Tokyo\"))'))")[3],
        "2262-04-12T09:00:00"
    );
    assert_eq!(cut("ts - interval '1 second'")[4], "9999-12-31T23:59:58Z");
    assert_eq!(cut("CAST(date_part('epoch', ts) AS BIGINT)")[0], "-62135596800");
    assert_eq!(asked("SELECT max(ts) AS x FROM T"), times[4..]);
    // The derived table, and the published files.
    assert_eq!(asked("SELECT ts AS x FROM D ORDER BY ts")[4], "9999-12-31T12:00:00Z");
    for (year, time) in years.iter().zip(&times) {
        let day = time[4..10].replace('-', "");
        assert_eq!(asked(&format!("SELECT ts AS x FROM exports.\"DAYS_{year}{day}\"")), [*time]);
    }
    assert_eq!(asked("SELECT v AS x FROM exports.\"MONTHS_999912\""), ["4.0"]);
    assert!(project.ok(&["read", "T"]).contains("a#00010101"));
    // One of the last days changes alone.
    project.write("in/b.csv", "id,ts,v\na,9999-12-31T00:00:00Z,9\n");
    let record = project.run_job("t");
    assert_eq!(record["outcome"], "ok");
    assert_eq!(asked("SELECT count(*) AS x FROM exports.\"DAYS_99991231\""), ["2"]);
    project.ok(&["verify"]);
    project.ok(&["compact", "T", "--full"]);
    assert_eq!(asked("SELECT count(*) AS x FROM T"), ["6"]);
    assert_eq!(project.run_job("t")["outcome"], "ok");
    assert_eq!(asked("SELECT count(*) AS x FROM T"), ["6"]);
    project.ok(&["status"]);
}

#[test]
fn truncated_digits_are_reported_and_leap_seconds_are_accepted() {
    let project = Project::new("t", &job("columns = { id = \"text\", ts = \"timestamp\" }"));
    project.write(
        "in/a.csv",
        "id,ts\na,2020-01-01T00:00:00.123456789Z\nb,2020-01-01T00:00:00.123456000Z\nc,2016-12-31T23:59:60Z\nd,2016-12-31T23:58:60Z\n",
    );
    let record = project.run_job("t");
    assert_eq!(record["loads"][0]["cut_times"], 1);
    assert!(note(&record, "1 time has digits beyond the microsecond"), "{}", record["notes"]);
    assert_eq!(project.sql("SELECT ts FROM T WHERE id = 'c'")[0]["ts"], "2017-01-01T00:00:00Z");
    assert_eq!(project.sql("SELECT ts FROM T WHERE id = 'a'")[0]["ts"], "2020-01-01T00:00:00.123456Z");
    assert_eq!((project.rejected(&record).len(), &project.rejected(&record)[0]["line"]), (1, &5.into()));
}

/// A job `t` over files of `id`, `ts` in Paris, with this rule for the hour that occurs twice.
fn paris(rule: &str) -> Project {
    let format = if rule.is_empty() { String::new() } else { format!(", ambiguous = \"{rule}\"") };
    let source = format!(
        "[sources.r.columns]\nid = \"text\"\nts = {{ format = \"%Y-%m-%d %H:%M\", timezone = \"Europe/Paris\"{format} }}"
    );
    Project::new("t", &job(&source).replace("in/*.csv", "in/*"))
}

/// The times of a series as `HH:MM` in UTC, in order.
fn utc_of(project: &Project, id: &str) -> String {
    let rows = project.sql(&format!("select to_char(ts, '%H:%M') as at from T where id = '{id}' order by ts"));
    rows.iter().map(|row| row["at"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Half hours of two meters around the hour that occurs twice, meter by meter or time by time.
fn night(by_meter: bool) -> Vec<String> {
    let clocks = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"];
    let row = |id: &str, clock: &str| format!("{id},2021-10-31 {clock}\n");
    match by_meter {
        true => ["a", "b"].iter().flat_map(|id| clocks.iter().map(move |clock| row(id, clock))).collect(),
        false => clocks.iter().flat_map(|clock| ["a", "b"].iter().map(move |id| row(id, clock))).collect(),
    }
}

#[test]
fn the_order_of_a_file_tells_the_passes_of_the_hour_that_occurs_twice() {
    let told = "23:30 00:00 00:30 01:00 01:30 02:00";
    for by_meter in [true, false] {
        let mut rows = night(by_meter);
        for falling in [false, true] {
            let project = paris("by-order");
            project.write("in/a.csv", format!("id,ts\n{}", rows.concat()));
            let record = project.run_job("t");
            assert_eq!([utc_of(&project, "a"), utc_of(&project, "b")], [told; 2], "{by_meter} {falling}");
            assert!(!note(&record, "clock"), "{record}");
            rows.reverse();
        }
    }

    // A file that grows within the hour goes on where it was.
    let project = paris("by-order");
    let rows = night(false);
    for end in [3, 5, 7, 8, 12] {
        project.write("in/a.csv", format!("id,ts\n{}", rows[..end].concat()));
        project.ok(&["run", "t"]);
    }
    assert_eq!([utc_of(&project, "a"), utc_of(&project, "b")], [told; 2]);
    assert!(project.ok(&["plan", "t"]).contains("nothing to do"));

    // Rows of two kinds at each time, whose series no key tells: the source names it. A second table that has more does no harm.
    let both = |series: &str, more: &str| {
        let project = paris("by-order");
        let text = project.read("jobs/t/job.toml").replace("time = \"ts\"\n", &format!("time = \"ts\"\n{series}"));
        let text = text.replace("id = \"text\"\n", "id = \"text\"\nkind = \"text\"\nn = \"int64\"\n");
        project.write("jobs/t/job.toml", text + more);
        let mut rows = String::new();
        for (n, clock) in ["01:00", "02:00", "02:00", "03:00"].iter().enumerate() {
            for kind in ["p", "q"] {
                rows.push_str(&format!("{kind},{kind},{n},2021-10-31 {clock}\n"));
            }
        }
        project.write("in/a.csv", format!("id,kind,n,ts\n{rows}"));
        project.ok(&["run", "t"]);
        project
    };
    let second = "[tables.V]\nrow_key = \"{id}#{n}#{ts:us}\"\n[tables.V.families.F]\ncolumns = [{ qualifier = \"V\", value = \"{n}\" }]\n";
    for (series, more) in [("", ""), ("series = [\"kind\"]\n", ""), ("", second)] {
        let project = both(series, more);
        assert_eq!([utc_of(&project, "p"), utc_of(&project, "q")], ["23:00 00:00 01:00 02:00"; 2], "{series}{more}");
    }
    let unknown = paris("by-order").read("jobs/t/job.toml").replace("time =", "series = [\"idd\"]\ntime =");
    let refused = Project::new("t", &unknown).fails(2, &["check", "t"]);
    assert!(refused.contains("idd") && refused.contains("did you mean `id`"), "{refused}");

    // Times of other formats, and rejected rows between.
    let project = paris("by-order");
    let rows = night(true).concat().replace("a,2021-10-31 01:30\n", "a,2021-10-31 01:30\na,soon\n");
    project.write("rows.csv", format!("id,ts\n{rows}"));
    project.ok(&["sql", "-c", "select id, cast(ts as varchar) as ts from 'rows.csv'", "-O", "rows.parquet"]);
    project.write("in/rows.parquet", std::fs::read(project.path("rows.parquet")).unwrap());
    project.ok(&["run", "t"]);
    assert_eq!([utc_of(&project, "a"), utc_of(&project, "b")], [told; 2]);
}

#[test]
fn one_instant_of_the_hour_that_occurs_twice_can_be_named() {
    for (rule, told, is_noted) in [("", "23:30 00:00 02:00", true), ("later", "23:30 01:00 02:00", false)] {
        let project = paris(rule);
        project.write("in/a.csv", "id,ts\na,2021-10-31 01:30\na,2021-10-31 02:00\na,2021-10-31 03:00\n");
        let record = project.run_job("t");
        assert_eq!(utc_of(&project, "a"), told, "{rule}");
        assert_eq!(note(&record, "clocks"), is_noted, "{record}");
    }

    // Another rule is another reading of the files.
    let project = paris("");
    project.write("in/a.csv", format!("id,ts\n{}", night(true).concat()));
    project.ok(&["run", "t"]);
    assert_eq!(utc_of(&project, "a"), "23:30 00:00 00:30 02:00");
    let text =
        project.read("jobs/t/job.toml").replace("\"Europe/Paris\"", "\"Europe/Paris\", ambiguous = \"by-order\"");
    project.write("jobs/t/job.toml", &text);
    project.ok(&["run", "t", "--rebuild"]);
    assert_eq!(utc_of(&project, "a"), "23:30 00:00 00:30 01:00 01:30 02:00");

    project.write("jobs/t/job.toml", text.replace("by-order", "both"));
    let told = project.fails(2, &["check", "t"]);
    assert!(told.contains("by-order"), "{told}");
    for zone in ["", ", timezone = \"UTC\"", ", timezone = \"Etc/GMT-1\""] {
        let project = Project::new("t", &text.replace(", timezone = \"Europe/Paris\"", zone));
        let told = project.ok(&["check", "t", "--output", "json"]);
        assert!(told.contains("`ambiguous` of column ts of source r changes nothing"), "{told}");
    }
}
