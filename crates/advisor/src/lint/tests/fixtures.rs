//! A job for each rule that trips it, and one beside it that does not.

use super::*;

mod data;

/// A job with its data.
#[derive(Debug)]
pub(crate) struct Case {
    /// Columns of its source beside `ts` and `value`, as in TOML.
    columns: &'static str,
    /// Its tables, as in TOML.
    tables: String,
    /// Its data, if the rule needs some.
    pub(crate) data: Option<DataFacts>,
}

impl Case {
    /// The job file.
    pub(crate) fn text(&self) -> String {
        let columns = if self.columns.is_empty() { String::new() } else { format!(", {}", self.columns) };
        format!(
            "name = \"case\"\n[sources.rows]\nfiles = [\"rows.csv\"]\ntime = \"ts\"\n\
             columns = {{ ts = \"timestamp\", value = \"float64\"{columns} }}\n\n{}",
            self.tables
        )
    }
}

/// What trips a rule, and what does not.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) rule: &'static str,
    pub(crate) severity: Severity,
    pub(crate) trips: Case,
    /// Speaks less gravely, or not at all.
    pub(crate) twin: Case,
}

/// A table with one family and one column that the newest value replaces.
fn table(row_key: &str) -> String {
    columns(row_key, "gc = \"maxversions=1\"\ncolumns = [{ qualifier = \"V\", value = \"{value}\" }]")
}

fn columns(row_key: &str, family: &str) -> String {
    format!("[tables.T]\nrow_key = \"{row_key}\"\n\n[tables.T.families.F]\n{family}\n")
}

fn of(rule: &'static str, severity: Severity, columns: &'static str, trips: String, twin: String) -> Fixture {
    let case = |tables| Case { columns, tables, data: None };
    Fixture { rule, severity, trips: case(trips), twin: case(twin) }
}

fn keys(rule: &'static str, severity: Severity, columns: &'static str, trips: &str, twin: &str) -> Fixture {
    of(rule, severity, columns, table(trips), table(twin))
}

/// The same case, with data for its table `T`.
fn with(fixture: Fixture, trips: TableFacts, twin: TableFacts) -> Fixture {
    let data = |facts: TableFacts| Some(DataFacts { tables: vec![TableFacts { name: "T".to_owned(), ..facts }] });
    let Fixture { rule, severity, trips: trip_case, twin: twin_case } = fixture;
    Fixture {
        rule,
        severity,
        trips: Case { data: data(trips), ..trip_case },
        twin: Case { data: data(twin), ..twin_case },
    }
}

fn values(name: &str, values: &[&str]) -> TableFacts {
    let values = values
        .iter()
        .enumerate()
        .map(|(at, text)| ValueFacts { text: (*text).to_owned(), rows: 1, first: at as i64 })
        .collect();
    TableFacts { fields: vec![FieldFacts { name: name.to_owned(), values, complete: true }], ..TableFacts::default() }
}

fn tables(count: usize, of: impl Fn(usize) -> String) -> String {
    (0..count).map(|at| of(at).replace("tables.T", &format!("tables.T{at}")) + "\n").collect()
}

/// Tables of as many shapes.
fn different(count: usize) -> String {
    tables(count, |at| table(&format!("{at}#{{user}}#{{ts:ms}}")))
}

/// Every fixture.
pub(crate) fn fixtures() -> Vec<Fixture> {
    use Severity::{Error, Info, Warn};
    let user = "user = \"text\"";
    let number = "id = \"uint64\", user = \"text\"";
    let mut all = vec![
        keys("K1", Error, user, "{ts:ms}#{user}", "{user}#{ts:ms}"),
        keys("K1", Error, user, "EVENT#{ts:ms}", "EVENT#{user}#{ts:ms}"),
        keys("K1", Error, user, "{ts:ms-reversed}#{user}", "{user}#{ts:ms-reversed}"),
        keys("K1", Error, user, "{ts:%Y%m}-{ts:%d}#{user}", "{user}#{ts:%Y%m}-{ts:%d}"),
        keys("K1", Error, "", "{ts:ms}", "{salt(ts, 3)}#{ts:ms}"),
        keys(
            "K1",
            Warn,
            "due = \"date\", user = \"text\"",
            "{due:%Y%m%d}#{user}#{ts:ms}",
            "{user}#{due:%Y%m%d}#{ts:ms}",
        ),
        keys("K3", Warn, user, "{user:hash}#{ts:ms}", "{user}#{ts:ms}"),
        keys("K3", Warn, number, "{id:hash}{ts:ms}", "{id:reversed}#{ts:ms}"),
        keys("K4", Error, number, "{user}#{id}", "{user}#{id:05}"),
        keys("K4", Warn, number, "{id}#{ts:ms}", "{id:05}#{ts:ms}"),
        keys("K4", Error, "rate = \"float64\"", "{rate}", "{salt(ts, 3)}#{ts:ms}"),
        with(
            keys("K4", Error, number, "{id}#{ts:ms}", "{id}#{ts:ms}"),
            values("id", &["3", "20"]),
            values("id", &["13", "20"]),
        ),
        keys("K8", Warn, user, &format!("{}#{{user}}", "x".repeat(99)), &format!("{}#{{user}}", "x".repeat(98))),
        keys("K8", Error, user, &format!("{}#{{user}}", "x".repeat(4095)), &format!("{}#{{user}}", "x".repeat(4094))),
        keys("K9", Warn, user, "{salt(ts, 3)}#{ts:ms}", "{salt(user, 3)}#{user}#{ts:ms}"),
        keys("K9", Info, "", "{salt(ts, 3)}#{ts:ms}", "X#{ts:ms}"),
        keys("K10", Info, user, "{user}#{ts:ms-reversed}", "{user}#{ts:ms}"),
        keys("K12", Error, user, "{user}#{ts:%m%d}", "{user}#{ts:%Y%m%d}"),
        keys("K12", Error, user, "{user}#{ts:%H%M}", "{user}#{ts:%Y%m%d}#{ts:%H%M}"),
        keys("K12", Warn, "user = \"text\", week = \"text\"", "{user}#{week}", "{user}#{week}#{ts:%Y}"),
        with(
            keys("K12", Error, "user = \"text\", week = \"text\"", "{user}#{week}", "{user}#{week}"),
            values("week", &["2021-W09", "week1"]),
            values("week", &["2021-W09"]),
        ),
        keys("K13", Warn, "user_email = \"text\"", "{user_email}#{ts:ms}", "{user_email:hash}#{ts:ms}"),
        keys(
            "K16",
            Warn,
            "kind = \"text\", tenant_id = \"text\"",
            "{kind}#{tenant_id}#{ts:ms}",
            "{tenant_id}#{kind}#{ts:ms}",
        ),
        of(
            "K16",
            Warn,
            "kind = \"text\", tenant = \"text\"",
            tables(2, |at| {
                table("{kind}#{ts:ms}").replace("row_key", &format!("where = \"tenant = 't{at}'\"\nrow_key"))
            }),
            tables(1, |at| {
                table("{kind}#{ts:ms}").replace("row_key", &format!("where = \"tenant = 't{at}'\"\nrow_key"))
            }),
        ),
        keys("K17", Warn, number, "{id:be}#{user}", "{id:020}#{user}"),
        of(
            "R4",
            Warn,
            user,
            columns("{user}", "columns = [{ qualifier = \"V\", value = \"{value}\" }]"),
            columns("{user}#{ts:%Y%m%d}", "columns = [{ qualifier = \"V\", value = \"{value}\" }]"),
        ),
        of(
            "R4",
            Warn,
            user,
            columns("{user}", "gc = \"never\"\ncolumns = [{ qualifier = \"V\", value = \"{value}\" }]"),
            columns("{user}", "gc = \"maxage=30d\"\ncolumns = [{ qualifier = \"V\", value = \"{value}\" }]"),
        ),
        of("C1", Warn, user, families(101), families(100)),
        of("C2", Info, user, named(21), named(20)),
        keys("C8", Warn, number, "{user}#{id:05}", "{user}#{id:05}#{ts:ms}"),
        of("T1", Warn, user, different(101), different(100)),
        of("T1", Error, user, different(1001), different(1000)),
        of(
            "T2",
            Warn,
            user,
            tables(2, |_| table("{user}#{ts:ms}")),
            tables(2, |at| table("{user}#{ts:ms}").replace("\"V\"", &format!("\"V{at}\""))),
        ),
        of(
            "A1",
            Warn,
            user,
            format!("{}\n[lint]\nK99 = \"why\"\n", table("{user}#{ts:ms}")),
            format!("{}\n[lint]\nK1 = \"why\"\n", table("{user}#{ts:ms}")),
        ),
    ];
    all.extend(data::fixtures());
    all
}

/// A table with as many families.
fn families(count: usize) -> String {
    let family =
        |at| format!("[tables.T.families.F{at}]\ncolumns = [{{ qualifier = \"V\", value = \"{{value}}\" }}]\n");
    format!("[tables.T]\nrow_key = \"{{user}}#{{ts:ms}}\"\n{}", (0..count).map(family).collect::<String>())
}

/// A table whose only column has as many bytes of names.
fn named(bytes: usize) -> String {
    let qualifier = "q".repeat(bytes - 1);
    columns("{user}#{ts:ms}", &format!("columns = [{{ qualifier = \"{qualifier}\", value = \"{{value}}\" }}]"))
}
