//! `tidetable read`: selection and order of rows and cells.

use serde_json::{Value, json};

use crate::harness::{Project, Ran, json_lines};

const JOB: &str = readings_job!("in/*.csv", "", "");

/// Meters 1 to 300, two cells each: so many that reading backwards takes several pieces.
fn project() -> Project {
    let project = Project::new("j", &JOB.replace("\"{ts:%H%M}\"", "\"{ts:%H}00\""));
    let mut rows = String::from("meter,ts,kwh\n");
    for meter in 1..=300 {
        for time in ["00:00", "00:30", "12:00"] {
            rows.push_str(&format!("{meter},2020-01-01T{time}:00Z,{meter}.5\n"));
        }
    }
    project.write("in/a.csv", rows);
    project.ok(&["run", "j"]);
    project
}

fn read(project: &Project, more: &[&str]) -> Vec<Value> {
    project.json(&[&["read", "T"], more].concat())
}

fn keys(project: &Project, more: &[&str]) -> Vec<String> {
    read(project, more).iter().map(|row| row["key"].as_str().unwrap()[..3].to_owned()).collect()
}

#[test]
fn ranges_without_a_key_or_time_are_refused() {
    let project = project();
    for (range, says) in [
        (["--start", "z", "--end", "a"], "no row key lies between --start \"z\" and --end \"a\""),
        (["--start", "a", "--end", "a"], "no row key lies between"),
        (["--from", "2020-01-02", "--to", "2020-01-01"], "no time lies between --from 2020-01-02"),
    ] {
        let told = project.fails(2, &[&["read", "T"][..], &range].concat());
        assert!(told.contains(says), "{told}");
    }
}

#[test]
fn a_row_that_is_not_there_is_said() {
    let project = project();
    let told = |args: &[&str]| project.messages(&[&["read", "T"], args].concat());
    for output in ["table", "json", "csv"] {
        assert_eq!(told(&["--row", "999", "--output", output]), "no row 999 in T\n");
    }
    let key = read(&project, &["--limit", "1"])[0]["key"].as_str().unwrap().to_owned();
    assert_eq!(told(&["--row", &key]), "");
    assert_eq!(told(&["--row", &key, "--from", "2021-01-01"]), format!("no row {key} with such cells in T\n"));
    assert_eq!(told(&["--prefix", "9"]), "no such rows in T\n");
    assert_eq!(told(&["--limit", "0"]), "");
}

#[test]
fn rows_are_selected_by_regex_limit_and_direction() {
    let project = project();
    assert_eq!(keys(&project, &["--regex", "..7#2020010[12]", "--prefix", "01"]), ["017"]);
    // The whole key must match.
    assert!(keys(&project, &["--regex", "007"]).is_empty());
    assert_eq!(keys(&project, &["--regex", "(00|29).*", "--count", "2"]), ["001", "002"]);
    let all = keys(&project, &[]);
    let mut backward = all.clone();
    backward.reverse();
    assert_eq!((all.len(), keys(&project, &["--reverse"])), (300, backward));
    assert_eq!(keys(&project, &["--reversed", "--limit", "2"]), ["300", "299"]);
    assert_eq!(keys(&project, &["--reverse", "--start", "010", "--end", "013"]), ["012", "011", "010"]);
    assert_eq!(keys(&project, &["--reverse", "--keys-only", "--regex", ".*1#.*", "--limit", "2"]), ["291", "281"]);
    assert_eq!(keys(&project, &["--reverse", "--row", "007#20200101"]), ["007"]);
    assert!(keys(&project, &["--limit", "0"]).is_empty());
    assert!(project.fails(2, &["read", "T", "--regex", "("]).contains("regex"));
}

#[test]
fn cells_are_selected_by_column_time_and_number() {
    let project = project();
    let cells = |more: &[&str]| {
        let rows = read(&project, &[&["--row", "001#20200101"], more].concat());
        let cell =
            |cell: &Value| format!("{} {}", cell["qualifier"].as_str().unwrap(), cell["timestamp"].as_str().unwrap());
        rows.iter().flat_map(|row| row["cells"].as_array().unwrap().iter().map(cell)).collect::<Vec<_>>()
    };
    let [newer, older, noon] = ["0000 2020-01-01T00:30:00Z", "0000 2020-01-01T00:00:00Z", "1200 2020-01-01T12:00:00Z"];
    assert_eq!(cells(&[]), [newer, older, noon]);
    assert_eq!(cells(&["--columns", "M:0000"]), [newer, older]);
    assert_eq!(cells(&["--columns", "N,M:1200"]), [noon]);
    assert_eq!(cells(&["--columns", ":1200"]), [noon]);
    assert_eq!(cells(&["--cells-per-column", "1"]), [newer, noon]);
    assert_eq!(cells(&["--from", "2020-01-01T00:30:00Z", "--to", "2020-01-01T12:00"]), [newer]);
    assert_eq!(cells(&["--to", "2020-01-01"]), Vec::<String>::new());
    assert_eq!(cells(&["--from", "yesterday"]), Vec::<String>::new());
    // A row without selected cells is left out and not counted.
    assert_eq!(keys(&project, &["--columns", "M:9999", "--limit", "3"]), Vec::<String>::new());
    assert_eq!(keys(&project, &["--columns", "M:1200", "--keys-only", "--limit", "1", "--reverse"]), ["300"]);
}

#[test]
fn columns_with_a_comma_can_be_selected() {
    let project = Project::new("j", &JOB.replace("\"{ts:%H%M}\"", "\"{ts:%H},{ts:%M}\""));
    project.write(
        "in/a.csv",
        "meter,ts,kwh\n1,2020-01-01T00:00:00Z,1\n1,2020-01-01T00:30:00Z,2\n1,2020-01-01T12:00:00Z,3\n",
    );
    project.ok(&["run", "j"]);
    let cells = |more: &[&str]| -> Vec<String> {
        let rows = read(&project, more);
        let cells = rows.iter().flat_map(|row| row["cells"].as_array().unwrap());
        cells.map(|cell| cell["qualifier"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(cells(&["--columns", r"M:00\,30"]), ["00,30"]);
    assert_eq!(cells(&["--columns", r"M:00\,30,N,:12\,00"]), ["00,30", "12,00"]);
    assert_eq!(cells(&["--columns", r"M:00\,00", "--columns", r"M:12\,00"]), ["00,00", "12,00"]);
    assert!(project.ok(&["read", "--help"]).contains(r"`\,`"));
}

#[test]
fn times_are_printed_as_in_queries() {
    let project = project();
    let by_sql = project.sql("select qualifier, timestamp from cells.T where row_key = '001#20200101'");
    let by_read = read(&project, &["--row", "001#20200101"]).remove(0)["cells"].take();
    let times = |cells: &[Value]| cells.iter().map(|cell| cell["timestamp"].clone()).collect::<Vec<_>>();
    assert_eq!(times(&by_sql), times(by_read.as_array().unwrap()));
    assert_eq!(by_sql[0]["timestamp"], json!("2020-01-01T00:30:00Z"));
    let csv = project.ok(&["read", "T", "--output", "csv", "--limit", "1"]);
    assert!(csv.contains("\n001#20200101,M:0000,2020-01-01T00:30:00Z,1.5\n"), "{csv}");
}

/// Three columns, and this many meters a day; a stripe has 65,536 rows. The key has the meter first or the day.
fn large(key: &str, days: &[&str], meters: u64) -> Project {
    const JOB: &str = concat!(
        "name = \"j\"\n[sources.readings]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n",
        "[sources.readings.columns]\nmeter = \"uint64\"\nts = \"timestamp\"\n",
        "a = \"int64\"\nb = \"int64\"\nc = \"int64\"\n",
        "[tables.T]\nrow_key = \"KEY\"\n[tables.T.families.M]\n",
        "columns = [{ each = \"*\", except = [\"meter\", \"ts\"], qualifier = \"{column}\", value = \"{value}\" }]\n",
    );
    let project = Project::new("j", &JOB.replace("KEY", key));
    for day in days {
        let mut rows = String::from("meter,ts,a,b,c\n");
        for meter in 0..meters {
            let [a, b, c] = [7_919, 6_007, 104_729].map(|factor| meter * factor % 10_007);
            rows.push_str(&format!("{meter},{day}T00:00:00Z,{a},{b},{c}\n"));
        }
        project.write(&format!("in/{day}.csv"), rows);
    }
    project.ok(&["run", "j"]);
    project
}

/// The rows of a read, and what it read of the SSTs.
struct Counted {
    rows: Vec<Value>,
    stripes: u64,
    pages: u64,
}

fn counted(project: &Project, more: &[&str]) -> Counted {
    let args = [&["read", "T", "--output", "json", "--log", "json"], more].concat();
    let ran = Ran::of(project.command(&args).env("RUST_LOG", "tidetable_cells=debug"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = json_lines(&ran.stderr).remove(0);
    let count = |name: &str| said[name].as_u64().unwrap_or_else(|| panic!("no {name}: {said}"));
    Counted { rows: json_lines(&ran.stdout), stripes: count("stripes"), pages: count("pages") }
}

/// Stripes whose statistics exclude the times of a read, the pages of values that it decoded, and its rows.
fn skipped(project: &Project, more: &[&str]) -> (u64, u64, usize) {
    let args = [&["read", "SENSOR", "--output", "json", "--log", "json"], more].concat();
    let ran = Ran::of(project.command(&args).env("RUST_LOG", "tidetable_cells=debug,tidetable_store=debug"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events = json_lines(&ran.stderr);
    let by_times = |event: &&Value| event["reason"] == "statistics exclude the filter";
    let skipped = events.iter().filter(by_times).filter_map(|event| event["stripes"].as_u64()).sum();
    let pages = events.iter().find_map(|event| event["pages"].as_u64()).unwrap();
    (skipped, pages, json_lines(&ran.stdout).len())
}

#[test]
fn times_skip_the_stripes_of_others_also_beside_cells_at_timestamp_0() {
    // Each of 15 days is a stripe with 20 rows; `METER:ID` has no time of its own.
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    let (from, to) = ("2018-01-05T00:00:00Z", "2018-01-07T00:00:00Z");
    assert_eq!(skipped(&project, &["--from", from, "--to", to]), (13, 2, 2 * 20));
    assert_eq!(skipped(&project, &["--from", from, "--to", to, "--reverse"]).2, 2 * 20);
    assert_eq!(skipped(&project, &["--from", "2018-01-16T00:00:00Z"]), (14, 1, 20));
    assert_eq!(skipped(&project, &["--from", "2019-01-01T00:00:00Z"]), (15, 0, 0));
    // From the epoch on, all rows have the cell at timestamp 0.
    let (skipped, _, rows) = skipped(&project, &["--to", to]);
    assert_eq!((skipped, rows), (0, 15 * 20));
}

#[test]
fn only_selected_columns_are_decoded() {
    let project = large("{meter:06}", &["2020-01-01"], 5_000);
    let keys = counted(&project, &["--keys-only"]).pages;
    let pages = |columns: &str| counted(&project, &["--columns", columns]).pages - keys;
    let [a, b, c] = ["M:a", ":b", "N,M:c"].map(pages);
    assert!(a > 0 && b > 0 && c > 0, "{a} {b} {c}");
    assert_eq!(pages("M:a,M:b"), a + b);
    assert_eq!(pages("M"), a + b + c);
    let all = counted(&project, &[]);
    assert_eq!((all.pages - keys, all.rows.len()), (a + b + c, 5_000));
}

#[test]
fn reading_backward_reads_few_stripes() {
    let days = ["2020-01-01", "2020-01-02"];
    // Days one after the other, and days that share their range of keys; the file of a day has two stripes.
    for (key, overlapping) in [("{ts:%Y%m%d}#{meter:06}", 1), ("{meter:06}#{ts:%Y%m%d}", 2)] {
        let project = large(key, &days, 70_000);
        let forward = counted(&project, &["--keys-only"]);
        assert_eq!((forward.rows.len(), forward.stripes), (140_000, 4));
        let mut backward = counted(&project, &["--keys-only", "--reverse"]);
        backward.rows.reverse();
        assert!(backward.rows == forward.rows, "{key}");
        assert!(backward.stripes <= 2 * forward.stripes, "{key}: {}", backward.stripes);

        let first = counted(&project, &["--limit", "1"]);
        assert!(first.stripes <= overlapping, "{key}: {}", first.stripes);
        let last = counted(&project, &["--reverse", "--limit", "1"]);
        assert_eq!(last.rows[0]["key"], forward.rows[139_999]["key"]);
        assert!(last.stripes <= 2 * overlapping, "{key}: {}", last.stripes);
    }
}

#[test]
fn patterns_match_keys_that_are_not_utf8() {
    let job = JOB.replace("meter = \"uint64\"", "meter = \"text\"").replace("{meter:03}#{ts:%Y%m%d}", "{meter:hex}");
    let project = Project::new("j", &job);
    let rows = ["61", "6162ff", "c3a9", "c3a961", "ff00", "ff61"].map(|key| format!("{key},2020-01-01T00:00:00Z,1\n"));
    project.write("in/a.csv", format!("meter,ts,kwh\n{}", rows.concat()));
    project.ok(&["run", "j"]);
    let keys = |pattern: &str| {
        let found = project.ok(&["read", "T", "--keys-only", "--output", "csv", "--regex", pattern]);
        found.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(".*").len(), 6);
    assert_eq!(keys("ab."), [r"ab\xff"]);
    assert_eq!(keys(r"\xff.*"), [r"\xff\x00", r"\xffa"]);
    // In a key that is UTF-8, a letter is one character.
    assert_eq!(keys("."), ["a", "é"]);
    assert_eq!(keys("[é]a"), ["éa"]);
}

#[test]
fn patterns_narrow_the_scan() {
    let project = large("{meter:06}", &["2020-01-01"], 70_000);
    let stripes = |pattern: &str, rows: usize| {
        let found = counted(&project, &["--regex", pattern]);
        assert_eq!(found.rows.len(), rows, "{pattern}");
        found.stripes
    };
    assert_eq!(stripes("00000[12].*", 2), 1);
    assert_eq!(stripes(".*77", 700), 2);
}
