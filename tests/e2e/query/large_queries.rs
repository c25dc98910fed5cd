//! `tidetable sql --memory`: sorts, groups and joins spill to disk, give the same rows and leave no files behind. Statements that
//! are large themselves, or that are interrupted.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::harness::Project;
use crate::harness::system::{KilledOnDrop, processor_ticks, signal, ticks_until_the_end, wait_for};

/// Rows of more than 100 bytes each, twice what the queries may hold.
const ROWS: &str =
    "(select value as n, repeat(cast(value * 7919 % 100003 as varchar), 20) as t from generate_series(1, 200000))";

fn project() -> Project {
    let project = Project::empty();
    fs::create_dir_all(project.path("tmp")).unwrap();
    project
}

/// The command, whose temporary files go where the test sees them.
fn sql(project: &Project, args: &[&str]) -> Command {
    let mut command = project.command(&[&["sql"], args].concat());
    command.env("TMPDIR", project.path("tmp"));
    command
}

fn ok(project: &Project, args: &[&str]) -> String {
    let output = sql(project, args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(is_clean(project), "{args:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn is_clean(project: &Project) -> bool {
    fs::read_dir(project.path("tmp")).unwrap().next().is_none()
}

/// How often the parts of a plan wrote to disk.
fn spills(project: &Project, query: &str) -> u64 {
    let plan = ok(project, &["--memory", "16MiB", "--output", "json", "-c", &format!("explain analyze {query}")]);
    let counts = plan.split("spill_count=").skip(1);
    counts.map(|rest| rest.chars().take_while(char::is_ascii_digit).collect::<String>().parse::<u64>().unwrap()).sum()
}

#[test]
fn sorts_groups_and_joins_spill_to_disk() {
    let project = project();
    for (name, query) in [
        ("sort", format!("select n, t from {ROWS} order by t, n")),
        ("group", format!("select t, count(*) as c, sum(n) as s from {ROWS} group by t order by t")),
        ("join", format!("select a.n, b.n as m, a.t from {ROWS} a join {ROWS} b on a.t = b.t order by a.n, m")),
        (
            "outer join",
            format!("select a.n, b.n as m from {ROWS} a full join {ROWS} b on a.n = b.n + 100000 order by a.n, m"),
        ),
        // Sides of different lengths and types, so that DataFusion swaps them, and a condition that is not symmetric.
        (
            "join with a condition",
            format!(
                "select a.n, b.m from {ROWS} a join (select n as m, n + 0.5 as x, t from {ROWS} s where n < 150000) b \
                 on a.t = b.t and a.n < b.x order by a.n, b.m"
            ),
        ),
        (
            "outer join with a condition",
            format!(
                "select a.n, b.m from {ROWS} a left join (select n as m, t from {ROWS} s where n < 150000) b \
                 on a.t = b.t and a.n % 50 = 0 and a.n < b.m order by a.n, b.m"
            ),
        ),
        (
            "semi join",
            format!("select a.n from {ROWS} a where a.t in (select b.t from {ROWS} b where b.n > 50000) order by a.n"),
        ),
        (
            "windows of different orders",
            format!(
                "select n, sum(n) over (order by t, n) as s, row_number() over (order by n desc) as r, \
                 lag(n) over (order by t desc, n) as l from {ROWS} order by n"
            ),
        ),
    ] {
        assert!(spills(&project, &query) > 0, "{name}");
        for (file, memory) in [("small.csv", "16MiB"), ("large.csv", "8GiB")] {
            ok(&project, &["--memory", memory, "-O", file, "-c", &query]);
        }
        let (small, large) = (project.read("small.csv"), project.read("large.csv"));
        assert!(small == large && small.lines().count() > 100_000, "{name}: {} lines", small.lines().count());
    }
    // NaN cannot be joined by merging; a hash table of them fits.
    let floats = "select case when value % 1000 = 0 then 'nan'::double else value::double end as x from generate_series(1, 20000)";
    let exists =
        format!("with n as ({floats}) select count(*) as n from n a where exists (select 1 from n b where a.x = b.x)");
    assert_eq!(ok(&project, &["--memory", "16MiB", "--output", "csv", "-c", &exists]), "n\n20000\n");
    // A query that fits does not spill.
    assert_eq!(spills(&project, "select value from generate_series(1, 1000) order by value desc"), 0);
}

#[test]
fn early_end_leaves_no_spill_files() {
    let project = project();
    let query = format!("select n, t from {ROWS} order by t, n");
    let mut child = sql(&project, &["--memory", "16MiB", "--output", "csv", "-c", &query])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The reader closes its end.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(0), 1), "{said}");
    assert!(said.starts_with("no job of this project has run yet"), "{said}");
    assert!(is_clean(&project));
    // A query that fails late.
    let fails = format!("select n, t, 1 / (200000 - n) as x from {ROWS} order by t, n, x");
    let output = sql(&project, &["--memory", "16MiB", "-c", &fails]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(is_clean(&project));
    // And those that cannot do with so little: any, and one that must hold all to know that nothing is unknown.
    let unknown = format!("select count(*) from {ROWS} where t not in (select nullif(t, '') from {ROWS})");
    for (memory, query) in [("1KiB", &query), ("16MiB", &unknown)] {
        let output = sql(&project, &["--memory", memory, "-c", query]).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("does not fit into its memory limit") && told.contains("raise the limit"), "{told}");
        assert!(told.lines().count() < 5 && is_clean(&project), "{told}");
    }
    assert_eq!(sql(&project, &["--memory", "much", "-c", "select 1"]).output().unwrap().status.code(), Some(2));
}

fn spawned(mut command: Command) -> KilledOnDrop {
    KilledOnDrop(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
}

/// Whether a process has a temporary file open.
fn spills_now(project: &Project, child: &Child) -> bool {
    let folder = project.path("tmp").canonicalize().unwrap();
    let Ok(files) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return false };
    files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target.starts_with(&folder)))
}

#[test]
fn signals_leave_no_spill_files() {
    let project = project();
    let rows = ROWS.replace("200000", "50000000");
    for (name, number) in [("-INT", None), ("-TERM", Some(15)), ("-HUP", Some(1)), ("-KILL", Some(9))] {
        let query = format!("select n, t from {rows} order by t, n");
        let mut child = spawned(sql(&project, &["--memory", "16MiB", "-c", &query]));
        wait_for("a spill", || spills_now(&project, &child.0));
        signal(child.0.id(), name);
        let status = child.0.wait().unwrap();
        assert_eq!((status.signal(), status.code()), (number, number.is_none().then_some(130)), "{name}");
        assert!(is_clean(&project), "{name}");
    }
}

/// The time of the processor that a statement takes, ticks.
fn ticks_of(project: &Project, statement: &str) -> u64 {
    project.write("timed.sql", statement);
    ticks_until_the_end(&mut spawned(sql(project, &["-f", "timed.sql"])).0)
}

#[test]
fn planning_grows_with_the_length_of_a_statement_and_no_faster() {
    let project = project();
    let from = "from (values (1), (2)) as t (v)";
    let sum = |terms| format!("select {} as n {from} order by n", vec!["v"; terms].join(" + "));
    let union = |terms| vec![format!("select v + 1 {from}"); terms].join(" union all ");
    let distinct = |terms| vec![format!("select v + 1 {from}"); terms].join(" union ");
    let condition = |terms| format!("select v {from} where {}", vec!["not (v = 3 and v > 4)"; terms].join(" and "));
    for long in [&sum as &dyn Fn(usize) -> String, &union, &distinct, &condition] {
        let (short, long) = (ticks_of(&project, &long(200)), ticks_of(&project, &long(800)));
        assert!(long < 6 * short + 200, "200 terms take {short} ticks, 800 take {long}");
    }

    for levels in ["(", "not ", "1 + "] {
        let refused = ticks_of(&project, &format!("select {}true", levels.repeat(100_000)));
        assert!(refused < 300, "{levels:?}: {refused} ticks");
    }
}

#[test]
fn an_interrupt_ends_what_takes_hours() {
    let project = project();
    // A constant is computed by the planner, a value of a row when the query is executed: both by one call of a function.
    for query in [
        "select levenshtein(repeat('a', 2000000), repeat('b', 2000000))",
        "select levenshtein(repeat('a', v), repeat('b', v)) from (values (2000000)) as t (v)",
        "select count(*) from generate_series(1, 2) as t (v) where levenshtein(repeat('a', v * 2000000), repeat('b', 2000000)) > 1",
    ] {
        // A file is written by another way than text.
        let args = if query.contains("values") { vec!["-O", "rows.parquet", "-c", query] } else { vec!["-c", query] };
        let mut child = spawned(sql(&project, &args));
        // A second: starting takes less.
        wait_for("the call", || processor_ticks(&child.0) > 100);
        signal(child.0.id(), "-INT");
        let before = processor_ticks(&child.0);
        let worked = ticks_until_the_end(&mut child.0) - before;
        assert_eq!(child.0.wait().unwrap().code(), Some(130), "{args:?}");
        // Work, not time: how busy the machine is does not matter.
        assert!(worked < 300, "{args:?}: {worked} ticks of work after the signal");
    }
    assert!(!project.path("rows.parquet").exists());
}

#[test]
fn long_statements_are_answered_and_deep_ones_refused() {
    let project = project();
    let from = "from (values (1), (2), (3)) as t (v)";
    for (op, of, count) in [("and", "v <> 1", 2), ("or", "v = 1", 1)] {
        project.write(
            "long.sql",
            format!("select count(*) as n {from} where {}", vec![of; 3_000].join(&format!(" {op} "))),
        );
        let found = project.ok(&["sql", "--output", "csv", "-f", "long.sql"]);
        assert_eq!(found, format!("n\n{count}\n"));
    }
    let sum = format!("select {} as n {from} order by n", vec!["v"; 800].join(" + "));
    assert_eq!(project.ok(&["sql", "--output", "csv", "-c", &sum]), "n\n800\n1600\n2400\n");
    for (levels, said) in
        [("(", "50 levels of parentheses"), ("not ", "50 nested expressions"), ("1 + ", "1000 chained")]
    {
        project.write("deep.sql", format!("select {}true", levels.repeat(100_000)));
        let told = project.fails(2, &["sql", "-f", "deep.sql"]);
        assert!(told.contains(said) && told.contains("split it") && told.len() < 4_000, "{told}");
    }
}
