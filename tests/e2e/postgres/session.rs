//! Settings of a session, blocks, and statements about them.

use super::served::Served;
use crate::harness::Project;

fn loaded() -> Project {
    let project = Project::new("j", readings_job!("*.csv", "", ""));
    project.write("one.csv", "meter,ts,kwh\n1,2024-01-01T00:00:00Z,1.5\n");
    project.ok(&["run", "j"]);
    project
}

#[test]
fn local_settings_end_with_their_block() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let script = "BEGIN; SET LOCAL search_path TO cells; SHOW search_path; COMMIT; SHOW search_path";
    let Some(found) = served.rows(script) else { return };
    assert_eq!(found, "BEGIN\nSET\ncells\nCOMMIT\nrecords");
    let script = "BEGIN; SET search_path TO cells; ROLLBACK; SHOW search_path";
    assert_eq!(served.rows(script).unwrap(), "BEGIN\nSET\nROLLBACK\nrecords");
    // Several statements that are sent together are a block of their own.
    assert_eq!(served.rows("SET LOCAL search_path TO cells; SHOW search_path").unwrap(), "SET\ncells");
    let alone = served.psql(&["-A", "-t", "-c", "SET LOCAL search_path TO cells", "-c", "SHOW search_path"]).unwrap();
    assert_eq!(alone.stdout.trim(), "SET\nrecords", "{}", alone.stderr);
    assert!(alone.stderr.contains("25P01"), "{}", alone.stderr);
}

#[test]
fn options_of_the_connection_are_settings() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let asks = |options: &str| {
        served.psql_as(
            "ada",
            &[("PGOPTIONS", options)],
            &["-A", "-t", "-c", "SHOW search_path", "-c", "SHOW statement_timeout"],
        )
    };
    let Some(ran) = asks("-c search_path=cells --statement-timeout=5s") else { return };
    assert_eq!(ran.stdout.trim(), "cells\n5s", "{}", ran.stderr);
    for wrong in ["-c statement_timeout=-1", "-c intervalstyle=iso_8601", "-x 7"] {
        let ran = asks(wrong).unwrap();
        assert_eq!(ran.code, Some(2), "{wrong}: {}", ran.stdout);
        assert!(ran.stderr.contains("FATAL"), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn settings_that_are_not_followed_are_refused() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    for (statement, code) in [
        ("SET statement_timeout = -1", "22023"),
        ("SET intervalstyle = 'sql_standard'", "22023"),
        ("SET bytea_output = 'escape'", "22023"),
        ("SET standard_conforming_strings = off", "22023"),
        ("RESET nothing", "42704"),
        ("DISCARD everything", "42601"),
        ("BEGIN; DISCARD ALL", "25001"),
        ("SELECT set_config('search_path', 'cells', false) FROM T", "0A000"),
    ] {
        let Some(said) = served.refusal(statement) else { return };
        assert!(said.contains(&format!("ERROR:  {code}")), "{statement}: {said}");
    }
    let script = "SELECT set_config('search_path', 'cells', false); SELECT current_schema; RESET ALL; SHOW search_path";
    assert_eq!(served.rows(script).unwrap(), "cells\ncells\nRESET\nrecords");
}

#[test]
fn the_search_path_decides_what_is_visible() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let visible = "SELECT string_agg(n.nspname || '.' || c.relname, ' ') FROM pg_class c \
                   JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = 'T' AND pg_table_is_visible(c.oid)";
    let Some(found) = served.rows(&format!("{visible}; SET search_path TO rows; {visible}")) else { return };
    assert_eq!(found, "records.T\nSET\nrows.T");
    let schemas = "SELECT current_schemas(true), current_schemas(false)";
    assert_eq!(
        served.rows(&format!("SET search_path TO cells; {schemas}")).unwrap(),
        "SET\n{pg_catalog,cells}|{cells}"
    );
    let columns = served.rows("SHOW COLUMNS FROM records.T").unwrap();
    assert!(columns.contains("|records|T|kwh|") && !columns.contains("|cells|"), "{columns}");
}

#[test]
fn statements_stay_prepared_unless_all_is_discarded() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    let cursor = "DECLARE c CURSOR WITH HOLD FOR SELECT 1 AS a";
    for (discard, remains) in [("PLANS", true), ("TEMP", true), ("SEQUENCES", true), ("ALL", false)] {
        let args = ["-A", "-t", "-c", cursor, "-c", &format!("DISCARD {discard}"), "-c", "FETCH ALL FROM c"];
        let Some(ran) = served.psql(&args) else { return };
        assert!(ran.stdout.contains(&format!("DISCARD {discard}")), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.ends_with("\n1\n"), remains, "{discard}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.stderr.contains("34000"), !remains, "{discard}: {}", ran.stderr);
    }
}

#[test]
fn catalogs_are_read_as_postgresql_reads_them() {
    let project = loaded();
    let served = Served::start(&project, &[]);
    for (query, expected) in [
        ("SELECT count(*) FROM pg_index HAVING count(*) = 0", "0"),
        ("SELECT bool_and(indisprimary) IS NULL FROM pg_index", "t"),
        ("WITH pg_index AS (SELECT 1 AS a) SELECT a FROM pg_index, pg_namespace WHERE nspname = 'records'", "1"),
        (
            "SELECT ARRAY(SELECT nspname FROM pg_namespace WHERE nspname LIKE 'r%' ORDER BY nspname DESC)",
            "{runs,rows,records}",
        ),
        ("SELECT ARRAY(SELECT nspname FROM pg_namespace WHERE nspname LIKE 'r%' ORDER BY 1 LIMIT 2)", "{records,rows}"),
        ("SELECT ARRAY(SELECT nspname FROM pg_namespace WHERE nspname LIKE 'r%' ORDER BY oid DESC LIMIT 1)", "{runs}"),
        ("SELECT ARRAY(SELECT DISTINCT nspowner FROM pg_namespace ORDER BY 1)", "{10}"),
        ("SELECT ARRAY(SELECT nspname FROM pg_namespace WHERE nspname = 'nowhere')", "{}"),
    ] {
        let Some(found) = served.rows(query) else { return };
        assert_eq!(found, expected, "{query}");
    }
}
