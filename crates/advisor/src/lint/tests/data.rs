//! Rules that need data, on rows that are read and encoded: what trips them, and what does not.

use std::path::Path;

use tidetable_job::workload::Workload;
use tidetable_source::Storage;

use super::prices;
use super::*;
use crate::queries::{draw_specs, profiled_of};
use crate::trial::{Candidate, Trial, TrialOptions};

/// The findings of a job with its data.
pub(super) fn linted(project: &Path, job: &Job) -> Report {
    let storage = Storage::new(project.to_owned(), None);
    let trial = Trial::load(job, &storage, &Candidate::of_job(job, &[]).unwrap(), &TrialOptions::default()).unwrap();
    let facts = survey(job, &trial, None).unwrap();
    lint(job, Some(&facts), &prices())
}

/// The same with a file of queries.
fn linted_for(project: &Path, job: &Job, queries: &str) -> Report {
    let workload = Workload::parse(Path::new("q.toml"), queries.to_owned()).unwrap();
    let candidates = Candidate::of_job(job, &[]).unwrap();
    let specs = draw_specs(&workload.queries, &candidates[0].schema).unwrap();
    let profiled = profiled_of(&candidates, Some(&workload));
    let options = TrialOptions { draws: specs.clone(), profiled, ..TrialOptions::default() };
    let trial = Trial::load(job, &Storage::new(project.to_owned(), None), &candidates, &options).unwrap();
    lint(job, Some(&survey(job, &trial, Some((&workload, &specs))).unwrap()), &prices())
}

/// The findings of a table `T` over rows of (second, columns), where absent columns are null.
fn of_rows(row_key: &str, family: &str, rows: &[(usize, &str)]) -> Report {
    asked_rows(row_key, family, rows, None)
}

/// The same for queries.
pub(super) fn asked_rows(row_key: &str, family: &str, rows: &[(usize, &str)], queries: Option<&str>) -> Report {
    let (dir, job) = load(&format!(
        "name = \"case\"\n[sources.rows]\nfiles = [\"rows.csv\"]\ntime = \"ts\"\nmax_rejected = \"100%\"\ncolumns = {{ \
         ts = \"timestamp\", id = \"uint64\", user = \"text\", site = \"text\", week = \"text\", level = \"uint64\", \
         value = \"float64\" }}\n[tables.T]\nrow_key = \"{row_key}\"\n{family}"
    ));
    let line = |(second, columns): &(usize, &str)| {
        let columns: Vec<(&str, &str)> = columns.split(' ').filter_map(|column| column.split_once('=')).collect();
        let value = |name: &str| columns.iter().find(|(own, _)| *own == name).map_or("", |(_, value)| *value);
        let values: Vec<&str> = ["id", "user", "site", "week", "level", "value"].map(value).to_vec();
        let time = chrono::DateTime::from_timestamp(1_600_000_000 + *second as i64, 0).unwrap();
        format!("{},{}\n", time.to_rfc3339_opts(chrono::SecondsFormat::Secs, true), values.join(","))
    };
    let text: String = rows.iter().map(line).collect();
    fs::write(dir.path().join("rows.csv"), format!("ts,id,user,site,week,level,value\n{text}")).unwrap();
    queries.map_or_else(|| linted(dir.path(), &job), |queries| linted_for(dir.path(), &job, queries))
}

pub(super) const VALUE: &str =
    "[tables.T.families.F]\ngc = \"maxversions=1\"\ncolumns = [{ qualifier = \"V\", value = \"{value}\" }]\n";
const ITEMS: &str = "[tables.T.families.F]\ncolumns = [{ qualifier = \"{level}\", value = \"{value}\" }]\n";

/// Whether a rule finds something, with this key or value among its examples.
fn finds(report: &Report, rule: &str, example: &str) -> bool {
    let found = of_rule(report, rule);
    assert!(found.len() <= 1, "{rule}: {found:?}");
    found.first().is_some_and(|finding| example.is_empty() || finding.keys.iter().any(|key| key == example))
}

/// Rows made of a text for each place.
fn rows(count: usize, row: impl Fn(usize) -> (usize, String)) -> Vec<(usize, String)> {
    (0..count).map(row).collect()
}

/// Checks that a rule finds something in the first rows, and nothing in the second.
fn pair(rule: &str, example: &str, row_key: &str, family: &str, trips: &[(usize, String)], twin: &[(usize, String)]) {
    let of = |rows: &[(usize, String)]| {
        let rows: Vec<(usize, &str)> = rows.iter().map(|(second, columns)| (*second, columns.as_str())).collect();
        of_rows(row_key, family, &rows)
    };
    let tripped = of(trips);
    assert!(finds(&tripped, rule, example), "{rule}: {:?}", tripped.findings);
    let quiet = of(twin);
    assert!(of_rule(&quiet, rule).is_empty(), "{rule} twin: {:?}", of_rule(&quiet, rule));
}

/// The same in rows given as text.
fn few(rule: &str, example: &str, row_key: &str, family: &str, trips: &[(usize, &str)], twin: &[(usize, &str)]) {
    let owned = |rows: &[(usize, &str)]| -> Vec<(usize, String)> {
        rows.iter().map(|(second, columns)| (*second, (*columns).to_owned())).collect()
    };
    pair(rule, example, row_key, family, &owned(trips), &owned(twin));
}

#[test]
fn values_of_keys() {
    let sequence = |step: usize| rows(30, move |at| (at, format!("id={} value=1", 100 + at * step % 30)));
    pair("K2", "00129", "{id:05}", VALUE, &sequence(1), &sequence(7));
    let sites = |names: [&str; 3]| -> Vec<(usize, String)> {
        names.iter().enumerate().map(|(at, name)| (at, format!("site={name} value=1"))).collect()
    };
    let [own, other] = [
        ["drive.google.com", "maps.google.com", "en.wikipedia.org"],
        ["a.example.com", "b.example.com", "c.example.com"],
    ];
    pair("K5", "maps.google.com", "{site}#{ts:ms}", VALUE, &sites(own), &sites(other));
    let domains = |count: usize| rows(count, |at| (at, format!("site=s{at}.example.com value=1")));
    pair("K6", "com.example.s0", "{site:domain}", VALUE, &domains(10), &domains(11));
    few(
        "K11",
        "bangalore",
        "{user}#{site}#{ts:ms}",
        VALUE,
        &[
            (0, "user=bangalore site=india value=1"),
            (1, "user=delhi site=india value=1"),
            (2, "user=lapaz site=bolivia value=1"),
        ],
        &[
            (0, "user=paris site=france value=1"),
            (1, "user=paris site=texas value=1"),
            (2, "user=lyon site=france value=1"),
        ],
    );
    few(
        "K12",
        "week1",
        "{user}#{week}",
        VALUE,
        &[(0, "user=a week=week1 value=1")],
        &[(0, "user=a week=2021-W09 value=1")],
    );
    let mails = |count: usize| {
        rows(10, move |at| {
            (at, if at < count { format!("user=u{at}@example.org value=1") } else { format!("user=u{at} value=1") })
        })
    };
    pair("K13", "u0…", "{user}#{ts:ms}", VALUE, &mails(9), &mails(8));
    few(
        "K14",
        "",
        "{user}#{ts:ms}",
        VALUE,
        &[(0, "user=a#b value=1"), (1, "user=c value=1")],
        &[(0, "user=a value=1")],
    );
}

#[test]
fn rows_and_cells() {
    few(
        "K15",
        "a#1600000000000",
        "{user}#{ts:ms}",
        VALUE,
        &[(0, "user=a value=1"), (0, "user=a value=2")],
        &[(0, "user=a value=1"), (1, "user=a value=2")],
    );
    let every_second = |count: usize| rows(count, |at| (at, format!("user=a level={at} value=1")));
    pair("K7", "a", "{user}", ITEMS, &every_second(100), &every_second(99));
    pair("R3", "a", "{user}", ITEMS, &every_second(100), &every_second(99));
    pair(
        "W2",
        "a",
        "{user}",
        ITEMS,
        &rows(14_001, |at| (0, format!("user=a level={at} value=1"))),
        &rows(14_000, |at| (0, format!("user=a level={at} value=1"))),
    );
    few(
        "C5",
        "a#20200913",
        "{user}#{ts:%Y%m%d}",
        VALUE,
        &[(0, "user=a value=1"), (60, "user=a value=2")],
        &[(0, "user=a value=1"), (86_400, "user=a value=2")],
    );
    let named = |name: &str| {
        format!("[tables.T.families.F]\ncolumns = [{{ qualifier = \"{name}\", value = \"{{value}}\" }}]\n")
    };
    // Beside the qualifier a cell has 27 bytes: key 15, family 1, value 3, timestamp 8. Of 37 bytes 11 are names, of 38 bytes 12.
    let of = |name: &str| of_rows("{user}#{ts:ms}", &named(name), &[(0, "user=a value=0.5")]);
    assert!(!finds(&of("CELLPHONES"), "C2", "") && finds(&of("CELLPHONES2"), "C2", ""));
    let both = "[tables.T.families.A]\ncolumns = [{ qualifier = \"V\", value = \"{value}\" }]\n\
                [tables.T.families.B]\ncolumns = [{ qualifier = \"L\", value = \"{level}\" }]\n";
    few(
        "T3",
        "",
        "{user}#{ts:ms}",
        both,
        &[(0, "user=a value=1"), (1, "user=a level=1")],
        &[(0, "user=a value=1 level=1"), (1, "user=a level=1")],
    );
}

#[test]
fn writes_over_time() {
    // Twenty ids write in every second: new ones, or the same.
    let growing = rows(800, |at| (at / 20, format!("id={at} value=1")));
    assert!(finds(&of_rows("{id:05}", VALUE, &borrowed(&growing)), "W1", ""));
    let even = rows(800, |at| (at / 20, format!("id={} value=1", at % 20)));
    assert!(!finds(&of_rows("{id:05}#{ts:ms}", VALUE, &borrowed(&even)), "W1", ""));
    let burst = |most: usize| -> Vec<(usize, String)> {
        let row = |second: usize, of: usize| (second, format!("id={of} value=1"));
        (0..43).flat_map(|second| (0..if second < 3 { most } else { 1 }).map(move |of| row(second, of))).collect()
    };
    assert!(finds(&of_rows("{id:05}#{ts:ms}", VALUE, &borrowed(&burst(5))), "W3", ""));
    assert!(!finds(&of_rows("{id:05}#{ts:ms}", VALUE, &borrowed(&burst(4))), "W3", ""));
}

fn borrowed(rows: &[(usize, String)]) -> Vec<(usize, &str)> {
    rows.iter().map(|(second, columns)| (*second, columns.as_str())).collect()
}

/// Errors of the jobs of the repository on their sample data, each the point of its sample.
const MEANT: &[(&str, &str, &str)] = &[
    ("schema-patterns", "FRIENDS_AS_ROWS", "K4"),
    // `week1` of the guides, which comes again every year.
    ("schema-patterns", "WEEK_NEW_COLUMNS", "K12"),
    ("schema-patterns", "WEEK_NEW_CELLS", "K12"),
];

#[test]
fn samples_of_the_repository_have_no_errors_but_those_they_show() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = Project::find(&repository).unwrap();
    let mut errors = Vec::new();
    for name in project.jobs() {
        let job = Job::load(&project, &name).unwrap();
        for finding in linted(&project.dir, &job).findings {
            if finding.severity == Severity::Error {
                errors.push((name.clone(), finding.table.unwrap_or_default(), finding.rule.id));
            }
        }
    }
    let meant: Vec<_> =
        MEANT.iter().map(|(job, table, rule)| ((*job).to_owned(), (*table).to_owned(), *rule)).collect();
    assert_eq!(errors, meant);
}

#[test]
fn a_row_of_an_instant_grows_by_its_entities() {
    // 12 ids of two sites every minute, all at the same instant; there will be 10 million.
    let aligned = rows(240, |at| (at / 12 * 60, format!("site=s{} id={} value=1", at % 2, at % 12)));
    let queries = "keep = \"30d\"\n[scale]\nentities = { id = 10_000_000 }\nevery = \"1m\"\n[query.q]\nper_second = 1\n\
                   where = \"site = $site and ts >= $hour and ts < $hour + interval '1 hour'\"\n";
    let ids =
        "[tables.T.families.F]\ngc = \"maxversions=1\"\ncolumns = [{ qualifier = \"{id}\", value = \"{value}\" }]\n";
    let report = asked_rows("{site}#{ts:ms}", ids, &borrowed(&aligned), Some(queries));
    let found = of_rule(&report, "R1");
    // Six cells: a key of 16 bytes, family 1, qualifier 1 or 2, value 3, timestamp 8; 10,000,000 / 12 times as many.
    let bytes = found.first().and_then(|finding| finding.measure).map(|measure| measure.measured);
    assert_eq!(bytes.map(f64::round), Some(145_833_333.0), "{found:?}");
    assert!(found[0].message.contains("175 bytes x 833333 entities"), "{}", found[0].message);
    // The id in the key keeps the rows as they are.
    let report = asked_rows("{site}#{id:08}#{ts:ms}", VALUE, &borrowed(&aligned), Some(queries));
    assert!(of_rule(&report, "R1").is_empty(), "{:?}", of_rule(&report, "R1"));
}

#[test]
fn seconds_of_one_slice_are_not_many() {
    // 200 seconds of an hour, all in its first four minutes: 41 slices of 5 s, and one at the end.
    let crowded = rows(201, |at| (if at < 200 { at } else { 3599 }, "user=a level=1 value=1".to_owned()));
    let queries = "keep = \"62m\"\n[query.q]\nper_second = 1\nwhere = \"user = $user\"\n";
    let slices = |rows: &[(usize, String)]| {
        let report = asked_rows("{user}", ITEMS, &borrowed(rows), Some(queries));
        of_rule(&report, "K7").first().and_then(|finding| finding.measure).map(|measure| measure.measured)
    };
    assert_eq!(slices(&crowded), None);
    let spread = rows(201, |at| (at * 18, "user=a level=1 value=1".to_owned()));
    assert_eq!(slices(&spread), Some(207.0));
}

#[test]
fn no_day_is_named_after_cells_are_dropped() {
    // A version a second of one row: 100 MB after some 25 days.
    let growing = rows(400, |at| (at, "user=a level=1 value=1.25".to_owned()));
    let day = |gc: &str, queries: Option<&str>| {
        let family = format!("[tables.T.families.F]\n{gc}columns = [{{ qualifier = \"V\", value = \"{{value}}\" }}]\n");
        let report = asked_rows("{user}", &family, &borrowed(&growing), queries);
        ["R1", "R3"]
            .map(|rule| of_rule(&report, rule).iter().any(|finding| finding.message.contains("100 MB on 2020-")))
    };
    let kept = |keep: &str| format!("keep = \"{keep}\"\n[query.q]\nper_second = 1\nwhere = \"user = $user\"\n");
    assert_eq!(day("", None), [true, true]);
    assert_eq!(day("gc = \"maxage=7d\"\n", None), [false, false]);
    assert_eq!(day("gc = \"maxage=7d and maxversions=1\"\n", None), [true, true]);
    // At scale R1 gives the size at the end, and R3 the day.
    assert_eq!(day("", Some(&kept("7d"))), [false, false]);
    assert_eq!(day("", Some(&kept("90d"))), [false, true]);
}
