//! The worked cases of the guides that only data or queries can show: each rejected key speaks, no chosen one errs.

use std::path::Path;

use super::data::{VALUE, asked_rows, linted};
use super::*;

/// Games of two players on one day, and on the next.
const GAMES: &[(usize, &str)] = &[
    (0, "site=LoL user=Corrie level=1 value=4.25"),
    (60, "site=LoL user=Jo level=2 value=1"),
    (86_400, "site=LoL user=Corrie level=3 value=2"),
];
const OF_PLAYER: &str = "[query.games]\nwhere = \"user = $user\"\n";
const OF_GAME: &str = "[query.games]\nwhere = \"site = $site and user = $user\"\nmust = \"range\"\n";
const OF_DAY: &str = "[query.day]\nwhere = \"ts >= $day and ts < $day + interval '1 day'\"\n";
/// Player and value in a cell each.
const PLAYER: &str = "[tables.T.families.F]\ngc = \"maxversions=1\"\n\
                      columns = [{ qualifier = \"U\", value = \"{user}\" }, { qualifier = \"V\", value = \"{value}\" }]\n";
/// Level and value in a cell each.
const CELLS: &str = "[tables.T.families.F]\ngc = \"maxversions=1\"\n\
                     columns = [{ qualifier = \"L\", value = \"{level}\" }, { qualifier = \"V\", value = \"{value}\" }]\n";

/// Row key, family, rows by second, queries, and the rule that speaks.
type Case<'a> = (&'a str, &'a str, &'a [(usize, &'a str)], Option<&'a str>, &'a str);

#[test]
fn rejected_keys_speak() {
    let long = format!("user={} value=1", "x".repeat(5000));
    let ids: Vec<String> = (0..30).map(|at| format!("id=1000{at:02} value=1")).collect();
    let ids: Vec<(usize, &str)> = ids.iter().enumerate().map(|(at, row)| (at, row.as_str())).collect();
    let every_second: Vec<(usize, &str)> = (0..100).map(|at| (at, "user=a value=1")).collect();
    let hosts: &[(usize, &str)] = &[
        (0, "site=drive.google.com value=1"),
        (1, "site=maps.google.com value=1"),
        (2, "site=en.wikipedia.org value=1"),
    ];
    let places: &[(usize, &str)] = &[
        (0, "user=bangalore site=india value=1"),
        (1, "user=delhi site=india value=1"),
        (2, "user=lapaz site=bolivia value=1"),
    ];
    let numbers: &[(usize, &str)] = &[(0, "id=3 value=1"), (1, "id=20 value=1")];
    let cases: &[Case<'_>] = &[
        // Games won by a player: the query must read the table.
        ("{site}#{ts:%Y%m%d}", PLAYER, GAMES, Some(OF_PLAYER), "Q1"),
        ("LoL#{ts:%Y%m%d}", PLAYER, GAMES, Some(OF_PLAYER), "Q1"),
        ("LoL#{ts:%Y%m%d}", PLAYER, GAMES, Some(OF_PLAYER), "K1"),
        // Devices by day alone.
        ("{site}#{user}#{ts:%Y%m%d}", VALUE, GAMES, Some(OF_DAY), "Q1"),
        ("{user}#memusage", VALUE, &every_second, None, "K7"),
        ("{id:06}", VALUE, &ids, None, "K2"),
        ("{id}", VALUE, numbers, None, "K4"),
        ("{site}#{ts:ms}", VALUE, hosts, None, "K5"),
        ("{site:domain}", VALUE, hosts, None, "K6"),
        ("{user}#{site}#{ts:ms}", VALUE, places, None, "K11"),
        ("{user}#{ts:ms}", VALUE, &[(0, long.as_str()), (0, "user=a value=1")], None, "K8"),
        // One-byte cells against one message.
        ("{user}#{ts:ms}", CELLS, &[(0, "user=a level=1 value=2")], None, "C4"),
    ];
    for (key, family, rows, queries, rule) in cases {
        let report = asked_rows(key, family, rows, *queries);
        assert!(!of_rule(&report, rule).is_empty(), "{key} does not trip {rule}: {:?}", report.findings);
    }
}

#[test]
fn chosen_keys_do_not_err_on_their_data() {
    for (key, queries) in [
        ("{site}#{user}#{ts:%Y%m%d}", Some(OF_GAME)),
        ("{site}#{user}#{ts:%Y%m%d%H%M%S}", Some(OF_GAME)),
        ("{site}#{user}#{ts:ms}", None),
        ("{site}#{user}#{ts:ms-reversed}", None),
        ("{level:05}#{user}", None),
    ] {
        let report = asked_rows(key, CELLS, GAMES, queries);
        let errors: Vec<_> = report.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{key}: {errors:?}");
        assert!(of_rule(&report, "Q1").is_empty() && of_rule(&report, "R4").is_empty(), "{key}: {:?}", report.findings);
    }
}

/// The sample of market-data has no two messages of one symbol in one millisecond, nor has the set that its script makes, so
/// their keys lose nothing. Of a feed that sends two the first would be lost.
#[test]
fn two_quotes_of_one_millisecond_overwrite_each_other() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let dir = tempfile::tempdir().unwrap();
    let (own, data) = (dir.path().join("jobs/market-data"), dir.path().join("sample-data/market-data"));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&data).unwrap();
    fs::write(dir.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
    for name in ["job.toml", "trade_rollup.sql"] {
        fs::copy(repository.join("jobs/market-data").join(name), own.join(name)).unwrap();
    }
    let sample = fs::read_to_string(repository.join("sample-data/market-data/2015-03-16.csv")).unwrap();
    let quote = sample.lines().find(|line| line.contains("ZXZZT,600.54,600.59,")).unwrap();
    let found = |more: &str| {
        fs::write(data.join("1.csv"), format!("{sample}{more}")).unwrap();
        let project = Project::find(dir.path()).unwrap();
        let report = linted(dir.path(), &Job::load(&project, "market-data").unwrap());
        let found = of_rule(&report, "K15");
        found
            .iter()
            .map(|it| (it.table.clone().unwrap(), it.severity, it.measure.unwrap().measured, it.keys.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(found(""), []);
    let again = found(&format!("{}\n", quote.replace("600.54", "600.53")));
    let [(table, severity, rows, keys)] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((table.as_str(), *severity, *rows), ("QUOTE", Severity::Error, 1.0));
    assert!(keys[0].starts_with("NASDAQ#ZXZZT#1426"), "{keys:?}");
    // The same quote once more loses nothing, but of a table with a `where` it is not known what repeats.
    let again = found(&format!("{quote}\n"));
    let [(table, severity, rows, _)] = again.as_slice() else { panic!("{again:?}") };
    assert_eq!((table.as_str(), *severity, *rows), ("QUOTE", Severity::Error, 1.0));
}
