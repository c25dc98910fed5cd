//! Aggregate families and upserts give the same answers as a fresh load.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;

use crate::harness::Project;
use crate::harness::cells::cell_integer;

const FILES: usize = 24;
const EMPLOYEES: usize = 3;
const JOB: &str = r#"
name = "sales"

[sources.sales]
files = ["sample-data/sales/*.csv"]
time = "ts"
columns = { employee = "text", ts = "timestamp", customer = "uint64", cents = "int64" }

[tables.SALES]
row_key = "{employee}"

[tables.SALES.families.total]
kind = "sum"
columns = [{ qualifier = "{ts:%Y-%m}", value = "{cents}", timestamp = 0 }]

[tables.SALES.families.least]
kind = "min"
columns = [{ qualifier = "{ts:%Y-%m}", value = "{cents}", timestamp = 0 }]

[tables.SALES.families.most]
kind = "max"
columns = [{ qualifier = "{ts:%Y-%m}", value = "{cents}", timestamp = 0 }]

[tables.SALES.families.customers]
kind = "hll"
columns = [{ qualifier = "{ts:%Y-%m}", value = "{customer}", timestamp = 0 }]
"#;

/// Sales of a file: all employees on four days of two months.
fn sales(file: usize) -> String {
    let mut text = String::from("employee,ts,customer,cents\n");
    for sale in 0..40 {
        let (employee, day) = (sale % EMPLOYEES, ["01-30", "01-31", "02-01", "02-02"][sale % 4]);
        let (customer, cents) = ((file * 7 + sale * 3) % 50, (file as i64 * 31 + sale as i64 * 17) % 1000 - 200);
        text.push_str(&format!("e{employee},2020-{day}T{:02}:00:00Z,{customer},{cents}\n", sale % 24));
    }
    text
}

fn path(file: usize) -> String {
    format!("sample-data/sales/{file:02}.csv")
}

fn project(files: &BTreeMap<usize, String>) -> Project {
    let project = Project::new("sales", JOB);
    files.iter().for_each(|(file, text)| project.write(&path(*file), text));
    project
}

/// Everything that SQL shows of the table.
fn contents(project: &Project) -> Vec<Value> {
    let mut all = project.sql("select * from cells.SALES order by row_key, family, qualifier");
    assert_eq!(all.len(), EMPLOYEES * 2 * 4, "a cell for each employee, month and family");
    all.extend(project.sql("select * from SALES order by employee, ts"));
    all.extend(project.sql("select ts, sum(cents) as s from SALES group by ts order by ts"));
    all.extend(project.sql(
        "select row_key, qualifier, hll_estimate(value) as n from cells.SALES where family = 'customers' order by 1, 2",
    ));
    all
}

/// Expected values by employee and month: total, minimum, maximum, distinct customers.
fn expected(files: &BTreeMap<usize, String>) -> BTreeMap<(String, String), (i64, i64, i64, usize)> {
    let mut sales: BTreeMap<(String, String), (Vec<i64>, BTreeSet<String>)> = BTreeMap::new();
    for line in files.values().flat_map(|text| text.lines().skip(1)) {
        let fields: Vec<&str> = line.split(',').collect();
        let found = sales.entry((fields[0].to_owned(), fields[1][..7].to_owned())).or_default();
        found.0.push(fields[3].parse().unwrap());
        found.1.insert(fields[2].to_owned());
    }
    let of = |(cents, customers): (Vec<i64>, BTreeSet<String>)| {
        (cents.iter().sum(), *cents.iter().min().unwrap(), *cents.iter().max().unwrap(), customers.len())
    };
    sales.into_iter().map(|(key, found)| (key, of(found))).collect()
}

fn check(project: &Project, files: &BTreeMap<usize, String>) {
    let expected = expected(files);
    assert_eq!(expected.len(), EMPLOYEES * 2);
    for ((employee, month), (total, least, most, customers)) in expected {
        let cell = |family: &str, column: &str| {
            let asked = format!("row_key = '{employee}' and qualifier = '{month}' and family = '{family}'");
            project.sql(&format!("select {column} as v from cells.SALES where {asked}")).remove(0)["v"].clone()
        };
        for (family, value) in [("total", total), ("least", least), ("most", most)] {
            assert_eq!(cell_integer(&cell(family, "value")), value, "{family} of {employee} in {month}");
        }
        assert_eq!(cell("customers", "hll_estimate(value)"), customers, "{employee} in {month}");
        let record = format!("select cents from SALES where employee = '{employee}' and ts = '{month}-01'");
        assert_eq!(project.sql(&record)[0]["cents"], total);
    }
    assert_eq!(contents(project), contents(&fresh(files)));
}

fn fresh(files: &BTreeMap<usize, String>) -> Project {
    let project = project(files);
    project.run_job("sales");
    project
}

#[test]
fn aggregates_count_only_live_inputs() {
    let mut files: BTreeMap<usize, String> = (0..FILES).map(|file| (file, sales(file))).collect();
    let project = project(&BTreeMap::new());
    let run = || project.ok(&["run", "sales", "--output", "json"]);
    // Every few files make an SST of each day.
    for (file, text) in &files {
        project.write(&path(*file), text);
        if file % 5 == 4 {
            run();
        }
    }
    run();
    let ssts = project.files("data/tables/SALES/sst").len();
    assert!(ssts >= 8, "{ssts}");
    check(&project, &files);

    let before = contents(&project);
    fs::copy(project.path(&path(3)), project.path("sample-data/sales/again.csv")).unwrap();
    run();
    assert_eq!(contents(&project), before, "the same file under another name counts once");

    // One row corrected, one removed, and one moved to another month.
    let mut lines: Vec<String> = files[&5].lines().map(str::to_owned).collect();
    lines[1] = "e0,2020-01-30T00:00:00Z,49,123456".to_owned();
    lines.remove(8);
    lines[9] = lines[9].replace("2020-01", "2020-02").replace("-30T", "-02T").replace("-31T", "-02T");
    files.insert(5, lines.join("\n") + "\n");
    project.write(&path(5), &files[&5]);
    run();
    check(&project, &files);

    files.insert(FILES, sales(FILES + 9));
    project.write(&path(FILES), &files[&FILES]);
    run();
    check(&project, &files);

    project.ok(&["compact", "SALES"]);
    check(&project, &files);
}

#[test]
fn sum_overflow_is_an_error() {
    let sale = |day: &str| format!("e0,2020-01-{day}T00:00:00Z,1,9223372036854775807\n");
    let header = "employee,ts,customer,cents\n";
    let files = BTreeMap::from([(0, format!("{header}{0}{0}", sale("30")))]);
    let project = project(&files);
    let said = project.fails(1, &["run", "sales"]);
    for part in ["total:2020-01", "row e0", "SALES", "nothing was changed"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(project.files("data/tables").is_empty());

    // Two windows or two loads overflow only together.
    project.write(&path(0), format!("{header}{}{}", sale("30"), sale("31")));
    let said = project.fails(1, &["run", "sales"]);
    assert!(said.contains("total:2020-01") && said.contains("row e0") && said.contains("SALES"), "{said}");
    project.write(&path(0), format!("{header}{}", sale("30")));
    project.run_job("sales");
    let before = project.sql("select cents from SALES");
    project.write(&path(1), format!("{header}e1,2020-01-30T00:00:00Z,1,5\n{}", sale("31")));
    let said = project.fails(1, &["run", "sales"]);
    assert!(said.contains("total:2020-01") && said.contains("row e0"), "{said}");
    assert_eq!(project.sql("select cents from SALES"), before);
    // A row that lowers the sum is loaded, and then there is room again.
    project.write(&path(1), format!("{header}e0,2020-01-31T00:00:00Z,1,-7\n"));
    project.run_job("sales");
    project.write(&path(2), format!("{header}e0,2020-02-01T00:00:00Z,1,1\ne0,2020-01-01T00:00:00Z,1,7\n"));
    project.run_job("sales");
    for command in [&["verify", "SALES"][..], &["compact", "--full", "SALES"], &["read", "SALES"]] {
        project.ok(command);
    }
    let total = project.sql("select cents from SALES order by ts");
    assert_eq!(total.iter().map(|row| row["cents"].as_i64().unwrap()).collect::<Vec<_>>(), [i64::MAX, 1]);
}

#[test]
fn memory_budget_has_a_minimum() {
    let project = project(&BTreeMap::from([(0, sales(0))]));
    let said = project.fails(2, &["run", "sales", "--memory", "1KiB"]);
    assert!(said.contains("--memory") && said.contains("16MiB"), "{said}");
    project.ok(&["run", "sales", "--memory", "16MiB"]);
    project.ok(&["run", "sales", "--rebuild", "--memory", "16MiB"]);
}

const CURRENT: &str = r#"
name = "current"

[sources.metrics]
files = ["sample-data/metrics/*.csv"]
time = "ts"
columns = { host = "text", ts = "timestamp", cpu = "decimal(5,2)", disk = "uint64" }

[tables.CURRENT_METRIC]
row_key = "{host}"
window = "none"
upsert = "row"

[tables.CURRENT_METRIC.families.METRIC]
columns = [
  { qualifier = "HOSTNAME", value = "{host}" },
  { qualifier = "CPU", value = "{cpu}" },
  { qualifier = "DISK", value = "{disk}" },
]
"#;

#[test]
fn upsert_replaces_the_row_with_the_newest_event() {
    let project = Project::new("current", CURRENT);
    let write = |name: &str, rows: &str| {
        project.write(&format!("sample-data/metrics/{name}.csv"), format!("host,ts,cpu,disk\n{rows}"))
    };
    let shown = || project.csv("select host, ts, cpu, disk from CURRENT_METRIC order by host");
    let cells = || project.sql("select qualifier from cells.CURRENT_METRIC where row_key = 'a'").len();
    write("1", "a,2020-01-01T00:00:00Z,0.10,5\na,2020-01-02T00:00:00Z,0.20,\nb,2020-01-02T00:00:00Z,0.30,7\n");
    project.run_job("current");
    assert_eq!(shown(), "host,ts,cpu,disk\na,2020-01-02T00:00:00Z,0.20,\nb,2020-01-02T00:00:00Z,0.30,7\n");
    assert_eq!(cells(), 2, "the disk of the older sample is gone");

    // A late row changes nothing, a newer one replaces the whole row, and of two of one instant the later input wins.
    write("2", "a,2020-01-01T12:00:00Z,0.40,9\nb,2020-01-03T00:00:00Z,,8\n");
    project.run_job("current");
    write("3", "a,2020-01-02T00:00:00Z,,6\n");
    project.run_job("current");
    let newest = "host,ts,cpu,disk\na,2020-01-02T00:00:00Z,,6\nb,2020-01-03T00:00:00Z,,8\n";
    assert_eq!(shown(), newest);
    assert_eq!(project.csv("select cpu from CURRENT_METRIC order by host"), "cpu\n\"\"\n\"\"\n");
    project.ok(&["run", "current", "--rebuild"]);
    assert_eq!(shown(), newest, "one load gives the same");
    write("2", "b,2020-01-01T00:00:00Z,0.50,8\n");
    project.run_job("current");
    assert!(shown().contains("b,2020-01-02T00:00:00Z,0.30,7"), "what a sample replaced is there again without it");
}

#[test]
fn upsert_of_nulls_empties_the_row_and_keeps_its_time() {
    let project = Project::new("current", CURRENT);
    let rows = [
        "a,2020-01-03T00:00:00Z,0.10,5\nb,2020-01-01T00:00:00Z,0.30,7\n",
        // The nulls empty `a`; those of `b` are late.
        "a,2020-01-05T00:00:00Z,,\nb,2019-12-31T00:00:00Z,,\n",
        "a,2020-01-04T00:00:00Z,0.20,6\n",
        "a,2020-01-05T00:00:01Z,0.40,\n",
    ];
    let shown = || {
        let cells = project.sql(
            "select row_key, qualifier, value from cells.CURRENT_METRIC where qualifier <> 'HOSTNAME' order by 1, 2",
        );
        let text = |cell: &Value, name: &str| cell[name].as_str().unwrap().to_owned();
        let records = project.sql("select host from CURRENT_METRIC where cpu is not null or disk is not null");
        let cell = |cell: &Value| format!("{}:{}", text(cell, "row_key"), text(cell, "qualifier"));
        (cells.iter().map(cell).collect::<Vec<_>>(), records.len())
    };
    let newest: [(&[&str], usize); 4] = [
        (&["a:CPU", "a:DISK", "b:CPU", "b:DISK"], 2),
        (&["b:CPU", "b:DISK"], 1),
        (&["b:CPU", "b:DISK"], 1),
        (&["a:CPU", "b:CPU", "b:DISK"], 2),
    ];
    for (at, (rows, (cells, records))) in rows.iter().zip(newest).enumerate() {
        project.write(&format!("sample-data/metrics/{at}.csv"), format!("host,ts,cpu,disk\n{rows}"));
        let before = (at > 0).then(|| project.sql("select count(*) as n from CURRENT_METRIC"));
        let said = project.ok(&["run", "current"]);
        assert!(!said.contains("without a value"), "{said}");
        let is = |shown: (Vec<String>, usize), step: &str| {
            assert_eq!(
                (shown.0.iter().map(String::as_str).collect::<Vec<_>>(), shown.1),
                (cells.to_vec(), records),
                "{step} {at}"
            );
        };
        is(shown(), "load");
        let counts = project.sql("select count(*) as n from CURRENT_METRIC");
        if at == 2 {
            assert_eq!(Some(&counts), before.as_ref(), "a late sample changes nothing");
        }
        project.ok(&["compact", "--full", "CURRENT_METRIC"]);
        is(shown(), "compaction");
        assert_eq!(project.sql("select count(*) as n from CURRENT_METRIC"), counts);
        project.ok(&["verify", "CURRENT_METRIC"]);
        project.ok(&["run", "current", "--rebuild"]);
        is(shown(), "rebuild");
        assert_eq!(project.sql("select count(*) as n from CURRENT_METRIC"), counts);
    }
}

#[test]
fn empty_qualifier_is_stored_and_null_qualifier_is_rejected() {
    let job = r#"
name = "q"
[sources.s]
files = ["in/*.csv"]
time = "ts"
columns = { id = "text", ts = "timestamp", q = "text", v = "uint64" }
max_rejected = "100%"
[tables.Q]
row_key = "{id}"
[tables.Q.families.A]
columns = [{ qualifier = "{q}", value = "{v}" }]
"#;
    let project = Project::new("q", job);
    let day = "2020-01-01T00:00:00Z";
    project.write("in/1.csv", format!("id,ts,q,v\na,{day},x,1\nb,{day},\"\",2\nc,{day},,3\nd,{day},x,\n"));
    let record: Value = serde_json::from_str(project.ok(&["run", "q", "--output", "json"]).trim()).unwrap();
    let stats = &record["loads"][0];
    let count = |name: &str| stats[name].as_u64().unwrap();
    assert_eq!([count("rows_read"), count("rows_accepted"), count("rows_rejected"), count("cells")], [4, 3, 1, 2]);
    assert_eq!((count("rows_empty"), stats["first_empty"]["line"].as_u64()), (1, Some(5)));
    let rows = project.sql("select id, q, v from Q order by id");
    let shown: Vec<_> = rows.iter().map(|row| (row["id"].as_str().unwrap(), row["q"].as_str().unwrap())).collect();
    assert_eq!(shown, [("a", "x"), ("b", "")]);
    let said = project.ok(&["rejects", "q"]);
    assert!(said.contains("qualifier is null"), "{said}");
}
