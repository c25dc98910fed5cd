//! `psql`: statements, its commands about tables, files.

use super::served::{Served, all_types};
use crate::harness::Project;

fn served_sample() -> (Project, Served) {
    let project = Project::smart_meters();
    project.ok(&["run", "smart-meters"]);
    let served = Served::start(&project, &[]);
    (project, served)
}

#[test]
fn statements_are_answered() {
    let (project, served) = served_sample();
    assert!(served.said.contains("SENSOR") && served.said.contains(&served.address), "{}", served.said);
    assert!(served.said.contains("32 clients") && served.said.contains("64.00 MiB"), "{}", served.said);
    let Some(count) = served.rows("SELECT count(*) FROM SENSOR") else { return };
    assert_eq!(count, project.csv("SELECT count(*) FROM SENSOR").lines().nth(1).unwrap());
    assert_eq!(served.rows("SELECT 1; SELECT 2").unwrap(), "1\n2");
    assert_eq!(served.rows("BEGIN; SELECT 'a;b'; COMMIT").unwrap(), "BEGIN\na;b\nCOMMIT");
    assert_eq!(served.rows("SET search_path TO cells; SELECT count(*) > 0 FROM SENSOR").unwrap(), "SET\nt");
    assert_eq!(served.rows("SHOW server_version").unwrap(), "15.0");
    assert_eq!(served.rows("SELECT current_user, current_database(), 1").unwrap(), "ada|tidetable|1");
    let mixed = "SELECT current_user, count(*) FROM SENSOR WHERE meter > 0 GROUP BY 1";
    assert_eq!(served.rows(mixed).unwrap(), format!("ada|{count}"));
    let cursor = "BEGIN; DECLARE c CURSOR FOR SELECT v FROM generate_series(1, 5) AS s (v); FETCH 2 FROM c; \
                  MOVE 1 FROM c; FETCH ALL FROM c; CLOSE c; COMMIT";
    assert_eq!(served.rows(cursor).unwrap(), "BEGIN\nDECLARE CURSOR\n1\n2\nMOVE 1\n4\n5\nCLOSE CURSOR\nCOMMIT");
    let fetched = served.psql(&["-A", "-t", "-v", "FETCH_COUNT=1000", "-c", "SELECT meter, ts FROM SENSOR"]).unwrap();
    assert_eq!(fetched.stdout.lines().count().to_string(), count);
}

#[test]
fn refusals_have_a_code_and_a_sentence() {
    let (_project, served) = served_sample();
    for (statement, code, words) in [
        ("SELEC 1", "42601", "found: SELEC"),
        ("SELECT x FROM SENSOR", "42703", "x"),
        ("SELECT * FROM nowhere", "42P01", "nowhere"),
        ("SELECT * FROM records.nowhere", "42P01", "nowhere"),
        ("SELECT nothing(1)", "42883", "nothing"),
        ("INSERT INTO SENSOR VALUES (1)", "25006", "read-only"),
        ("CREATE TABLE a (b int)", "25006", "read-only"),
        ("COPY SENSOR FROM STDIN", "25006", "COPY FROM"),
        ("COPY (SELECT 1) TO '/tmp/x'", "0A000", "STDOUT"),
        ("COPY SENSOR TO STDOUT (ENCODING 'LATIN1')", "0A000", "UTF8"),
        ("PREPARE a AS SELECT 1", "0A000", "driver"),
        ("SELECT 1 / 0", "22012", "ero"),
        ("SELECT CAST('x' AS INT)", "22P02", "x"),
        ("SET client_encoding = 'LATIN1'", "22023", "UTF8"),
        ("FETCH 1 FROM c", "34000", "c"),
        ("SELECT * FROM '/etc/passwd'", "42P01", "passwd"),
        ("SELECT * FROM read_csv('/etc/passwd')", "42P01", "passwd"),
        ("SELECT 'nowhere'::regclass", "42P01", "nowhere"),
        ("BEGIN; SELECT x; SELECT 1", "42703", "x"),
    ] {
        let Some(said) = served.refusal(statement) else { return };
        assert!(said.contains(&format!("ERROR:  {code}")) && said.contains(words), "{statement}: {said}");
    }
    // A block that has failed takes only its end.
    let script = ["-c", "BEGIN", "-c", "SELECT x", "-c", "SELECT 1", "-c", "ROLLBACK", "-c", "SELECT 2"];
    let ran = served.psql(&[&["-A", "-t"], &script[..]].concat()).unwrap();
    assert_eq!(ran.stdout.trim(), "BEGIN\nROLLBACK\n2");
    assert!(ran.stderr.contains("25P02"), "{}", ran.stderr);
    // The place of a mistake is shown.
    assert!(served.refusal("SELECT meter,\n  x FROM SENSOR").unwrap().contains("LINE 2:   x FROM"));
}

#[test]
fn commands_about_tables_are_answered() {
    let (_project, served) = served_sample();
    let Some(ran) = served.psql(&["-c", "\\dt"]) else { return };
    assert!(ran.stdout.contains("records | SENSOR | table | tidetable"), "{}{}", ran.stdout, ran.stderr);
    let said = |command: &str| {
        let ran = served.psql(&["-c", command]).unwrap();
        assert!(ran.code == Some(0) && !ran.stderr.contains("ERROR"), "{command}: {}{}", ran.stdout, ran.stderr);
        format!("{}{}", ran.stdout, ran.stderr)
    };
    for name in ["SENSOR", "\"SENSOR\"", "records.SENSOR"] {
        let table = said(&format!("\\d {name}"));
        assert!(table.contains("Table \"records.SENSOR\""), "{table}");
        for column in ["meter", "timestamp with time zone", "double precision", "numeric(20,0)"] {
            assert!(table.contains(column), "{column}: {table}");
        }
    }
    assert!(said("\\d rows.SENSOR").contains("| json"));
    assert!(said("\\l").contains("tidetable | tidetable | UTF8"));
    assert!(said("\\dn").contains("exports"));
    assert!(said("\\dv *.*").contains("rows"));
    assert!(said("\\d").contains("SENSOR"));
    let ran = served.psql(&["-c", "\\d nowhere"]).unwrap();
    assert!(ran.stderr.contains("Did not find any relation named"), "{}{}", ran.stdout, ran.stderr);
    for command in [
        "\\d+ SENSOR",
        "\\dt *.*",
        "\\d runs.runs",
        "\\du",
        "\\df",
        "\\di",
        "\\ds",
        "\\dm",
        "\\dT",
        "\\dx",
        "\\dp",
        "\\db",
        "\\dL",
        "\\do",
        "\\dc",
        "\\dD",
        "\\dE",
        "\\des",
        "\\dew",
        "\\dRp",
        "\\dRs",
        "\\dy",
        "\\dO",
        "\\dd",
        "\\ddp",
        "\\dF",
        "\\drds",
        "\\conninfo",
        "\\encoding",
    ] {
        said(command);
    }
}

#[test]
fn files_are_copied() {
    let project = all_types();
    let served = Served::start(&project, &[]);
    let file = project.path("out.csv");
    let query = "SELECT id, name, price, ok FROM T ORDER BY id LIMIT 20";
    let copy = format!("\\copy ({query}) to '{}' with (format csv, header)", file.display());
    let Some(ran) = served.psql(&["-c", &copy]) else { return };
    assert_eq!(ran.stdout.trim(), "COPY 20", "{}", ran.stderr);
    let expected = project.csv(query).replace(",true\n", ",t\n").replace(",false\n", ",f\n");
    assert_eq!(project.read("out.csv"), expected);
    // However long the query is, and with the quotes that are asked for.
    let columns = (0..500).map(|place| format!("{place} AS c{place}")).collect::<Vec<_>>().join(", ");
    let long = served.rows(&format!("COPY (SELECT {columns}) TO STDOUT (FORMAT csv)")).unwrap();
    assert!(long.starts_with("0,1,2,") && long.ends_with(",499"), "{long}");
    let quoted =
        "COPY (SELECT 'a''b' AS a, 1 AS b, NULL AS c) TO STDOUT (FORMAT csv, QUOTE '''', FORCE_QUOTE *, NULL '-')";
    assert_eq!(served.rows(quoted).unwrap(), "'a''b','1',-");
    let text = served.rows("COPY (SELECT 'a\tb' AS a, NULL AS b, 1.50 AS c) TO STDOUT").unwrap();
    assert_eq!(text, "a\\tb\t\\N\t1.50");
}

#[test]
fn newer_versions_are_seen_where_that_is_asked() {
    let job = readings_job!("*.csv", "", "");
    let project = Project::new("j", job);
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    let (pinned, following) = (Served::start(&project, &[]), Served::start(&project, &["--follow"]));
    let tables = "SELECT string_agg(table_name, ',' ORDER BY table_name) FROM information_schema.tables WHERE table_schema = 'records'";
    for served in [&pinned, &following] {
        let Some(found) = served.rows(&format!("SELECT count(*) FROM T; {tables}")) else { return };
        assert_eq!(found, "1\nT");
    }

    project.write("two.csv", "meter,ts,kwh\n2,2024-01-01T00:00:00Z,2.5\n");
    project.ok(&["run", "j"]);
    let other = job.replace("tables.T", "tables.U").replace("name = \"j\"", "name = \"k\"");
    project.write("jobs/k/job.toml", other);
    project.ok(&["run", "k"]);
    assert_eq!(pinned.rows("SELECT count(*) FROM T").unwrap(), "1");
    assert_eq!(
        following.rows(&format!("SELECT count(*) FROM T; {tables}; SELECT count(*) FROM U")).unwrap(),
        "2\nT,U\n2"
    );
}

#[cfg(feature = "bigtable")]
#[test]
fn one_process_serves_both_kinds_of_clients() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    use crate::harness::system::KilledOnDrop;

    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    let mut command = project.command(&["serve", "--bind", "127.0.0.1:0", "--postgres", "127.0.0.1:0"]);
    let mut process = KilledOnDrop(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let bigtable = lines.next().unwrap();
    let address = bigtable.strip_prefix("export BIGTABLE_EMULATOR_HOST=").unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());
    let postgres = lines.next().unwrap();
    let address = postgres.strip_prefix("postgresql://").unwrap().strip_suffix("/tidetable").unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());

    crate::harness::system::signal(process.0.id(), "-TERM");
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
    let pins = project.path("data/tables/T/pin");
    assert!(!pins.exists() || std::fs::read_dir(pins).unwrap().next().is_none());
}
