//! What a statement may ask for: numbers in its text size nothing, and what would grow by powers is refused.

use super::served::Served;
use crate::harness::Project;
use crate::harness::system::processor_ticks;

fn loaded() -> Project {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project
}

#[test]
fn numbers_of_parameters_have_a_bound() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    for number in ["0", "65536", "4000000000", "99999999999", "99999999999999999999999999"] {
        for query in [format!("SELECT ${number}"), format!("SELECT relname FROM pg_class WHERE oid = ${number}")] {
            let Some(said) = served.refusal(&query) else { return };
            assert!(said.contains("ERROR:  42P02") && said.contains("65535"), "{query}: {said}");
            // psql describes it by Parse, which makes the list of types.
            project.write("described.sql", format!("{query} \\gdesc\n"));
            let file = project.path("described.sql").display().to_string();
            let ran = served.psql(&["-f", &file]).unwrap();
            assert!(ran.stderr.contains("42P02"), "{query}: {}{}", ran.stdout, ran.stderr);
        }
    }
    assert!(served.refusal("SELECT $1").unwrap().contains("42P02"));
    assert_eq!(served.rows("SELECT 1").unwrap(), "1");
}

#[test]
fn queries_that_grow_by_powers_are_refused() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let cube = (0..30).map(|place| format!("c{place}")).collect::<Vec<_>>().join(", ");
    let mut chain = "WITH a0 AS (SELECT oid FROM pg_class)".to_owned();
    for step in 1..30 {
        let before = step - 1;
        chain.push_str(&format!(", a{step} AS (SELECT x.oid FROM a{before} x JOIN a{before} y ON true)"));
    }
    chain.push_str(" SELECT count(*) FROM a29");
    let nested = format!("SELECT {}relname{} FROM pg_class", "quote_ident(".repeat(40), ")".repeat(40));
    for query in [
        format!("SELECT count(*) FROM pg_class GROUP BY CUBE ({cube})"),
        format!("SELECT count(*) FROM T GROUP BY CUBE ({cube})"),
        chain,
        nested,
    ] {
        let Some(said) = served.refusal(&query) else { return };
        assert!(said.contains("ERROR:  54001"), "{said}");
    }
    assert_eq!(served.rows("SELECT 1").unwrap(), "1");
}

#[test]
fn numbers_in_queries_size_nothing() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    for query in [
        "SELECT approx_percentile_cont(kwh, 0.5, 99999999999) FROM T",
        "SELECT array_length(range(1, 100000000000))",
        "SELECT array_resize([1], 100000000000)",
        "SELECT lpad('x', 2000000000)",
        "SELECT kwh FROM T ORDER BY kwh LIMIT 9000000000000000000",
        "SELECT lag(kwh, 9000000000) OVER (ORDER BY ts) FROM T",
        "SELECT ntile(9000000000000000000) OVER (ORDER BY ts) FROM T",
        "SELECT count(*) FROM pg_namespace, generate_series(1, 100000000000) AS g (x)",
        "SELECT c.relname, x FROM pg_class c, generate_series(1, 100000000000) AS g (x) LIMIT 1",
    ] {
        // It is answered or refused; the server lives in both cases.
        let script = format!("SET statement_timeout = '5s'; {query}");
        let Some(ran) = served.psql(&["-A", "-t", "-c", &script]) else { return };
        let is_told =
            ran.code == Some(0) || ["53200", "57014", "42000", "22003"].iter().any(|code| ran.stderr.contains(code));
        assert!(is_told, "{query}: {:?} {}{}", ran.code, ran.stdout, ran.stderr);
        assert_eq!(served.rows("SELECT 1").unwrap(), "1", "{query}");
    }
    let long = format!("SELECT '{}'", "x".repeat(3 << 20));
    project.write("long.sql", &long);
    let file = project.path("long.sql").display().to_string();
    let ran = served.psql(&["-A", "-t", "-f", &file]).unwrap();
    assert!(ran.stderr.contains("54000"), "{}", ran.stderr.chars().take(400).collect::<String>());
}

#[test]
fn errors_of_the_store_have_their_codes() {
    let project = loaded();
    let files = project.files("data/tables").into_keys().filter(|name| name.ends_with(".sst"));
    let file = project.path(&files.max().unwrap());
    let served = Served::start(&project, &[]);

    let mut bytes = std::fs::read(&file).unwrap();
    let sound = bytes.clone();
    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
    std::fs::write(&file, &bytes).unwrap();
    let query = "SELECT max(kwh), count(DISTINCT meter) FROM T";
    let Some(said) = served.refusal(query) else { return };
    assert!(said.contains("ERROR:  XX001") && said.contains("damaged"), "{said}");

    std::fs::remove_file(&file).unwrap();
    let said = served.refusal(query).unwrap();
    assert!(said.contains("ERROR:  XX001") && said.contains("missing"), "{said}");

    std::fs::write(&file, &sound).unwrap();
    assert_eq!(served.rows(query).unwrap(), "1.5|1");
}

#[test]
fn long_statements_are_answered_and_deep_ones_refused() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let ask = |text: String| {
        project.write("asked.sql", text);
        served.psql(&["-A", "-t", "-f", &project.path("asked.sql").display().to_string()])
    };
    let from = "FROM (VALUES (1), (2), (3)) AS t (v)";
    for (op, of, count) in [(" AND ", "v <> 1", "2"), (" OR ", "v = 1", "1")] {
        let Some(ran) = ask(format!("SELECT count(*) {from} WHERE {}", vec![of; 3_000].join(op))) else { return };
        assert_eq!(ran.stdout.trim(), count, "{op}: {}", ran.stderr);
    }
    for level in ["(", "NOT ", "1 + "] {
        let ran = ask(format!("SELECT {}true", level.repeat(100_000))).unwrap();
        assert!(ran.stderr.contains("ERROR:  54001"), "{level}: {}", ran.stderr.chars().take(400).collect::<String>());
        assert_eq!(served.rows("SELECT 1").unwrap(), "1", "{level}");
    }
}

#[test]
fn a_client_that_goes_ends_the_planning_of_its_query() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    // Planned by rules for long, and run in no time: each query reads the one before.
    let steps = (1..400).map(|step| {
        let before = step - 1;
        format!(", a{step} AS (SELECT max(v + 1) AS v, min(v) AS w FROM a{before} GROUP BY v % 2)")
    });
    let chain = format!("WITH a0 AS (SELECT 1 AS v){} SELECT v FROM a399", steps.collect::<String>());
    project.write("long.sql", format!("SET statement_timeout = '500ms'; {chain};"));
    let file = project.path("long.sql").display().to_string();
    let Some(ran) = served.psql(&["-A", "-t", "-f", &file]) else { return };
    assert!(ran.stderr.contains("ERROR:  57014"), "{}{}", ran.stdout, ran.stderr);

    let seen = processor_ticks(&served.process.0);
    assert_eq!(served.rows("SELECT 1").unwrap(), "1");
    std::thread::sleep(std::time::Duration::from_secs(3));
    let since = processor_ticks(&served.process.0) - seen;
    // As of an interrupted statement: a debug build ends a rule first.
    assert!(since < 150, "{since} ticks after the end");
}

#[test]
fn a_table_that_has_lost_its_newest_manifest_is_not_answered() {
    let project = loaded();
    project.write("two.csv", "meter,ts,kwh\n2,2024-01-01T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    project.lose_newest_manifest("T");

    let served = Served::start(&project, &[]);
    let Some(said) = served.refusal("SELECT count(*) FROM T") else { return };
    assert!(said.contains("names version 2"), "{said}");
    assert_eq!(served.rows("SELECT count(*) FROM \"T@1\"").unwrap(), "1");
}
