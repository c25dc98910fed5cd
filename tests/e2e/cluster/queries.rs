//! Queries that executors run have the answers of this process, or are refused by name.

use super::same_results::{JOB, NOW, readings};
use super::servers::{Cluster, executor, scheduler};
use crate::harness::{Project, repository};

/// What must run on executors: scans, filters, groups, windows, limits, cells, rows, exports.
const RUN: &[&str] = &[
    "select count(*) as n from T",
    "select meter, ts, kwh from T where meter = 3 order by ts",
    "select meter, ts from T where ts >= '2020-01-03' and ts < '2020-01-05' and kwh > 100 order by meter, ts",
    "select meter, count(*) as n, min(kwh) as low, max(kwh) as top from T group by meter order by meter",
    "select date_trunc('day', ts) as day, count(distinct meter) as n from T group by 1 order by 1",
    "select meter + 1 as next, - cast(meter as bigint) as neg from T where meter < 2 order by 1, 2",
    "select meter, ts, row_number() over (partition by meter order by ts) as n from T order by meter, ts",
    "select ts, sum(meter) over (order by ts, meter rows between 3 preceding and current row) as s from T \
     where meter < 4 order by ts, s",
    "select meter, ts from T order by ts desc, meter limit 7",
    "select * from (select ts, meter from T order by ts, meter offset 10) order by 1, 2 limit 5",
    "select count(*) as n, min(timestamp) as t from cells.T where family = 'M'",
    "select row_key, qualifier, value from cells.WIDE where row_key = b'003' order by qualifier",
    "select cast(_key as varchar) as k, map_contains_key(\"M\", b'0000') as has from rows.T order by k",
    "select cast(_key as varchar) as k, cardinality(\"M\") as n from rows.WIDE order by k",
    "select count(*) as n, count(distinct meter) as meters from exports.\"E\"",
    "select * from exports.\"TOTAL\" order by meter",
];

/// What only one process can run, with words of the refusal.
const REFUSED: &[(&str, &str)] = &[
    ("select 1", "reads no table or export of the root"),
    ("select * from information_schema.tables", "which is of this process"),
    ("select * from 'in/00.csv'", "which is no file of the root"),
    ("select meter from T where meter not in (select meter from DAYS where n > 20) group by meter", "executors cannot"),
    ("select meter from DAYS union all select meter from T where meter = 1", "it has a UNION"),
    ("explain select * from T", "which is of this process"),
    ("select count(*) as n from T a join T b on a.meter = b.meter and a.ts = b.ts", "it has a join"),
    ("select d.meter, t.kwh from DAYS d left join T t on t.meter = d.meter and t.kwh = d.top", "it has a join"),
    ("select x.meter, y.meter as other from DAYS x cross join DAYS y where x.n < y.n", "it has a join"),
    ("select (select max(n) from DAYS) as most, count(*) as n from T", "it has a join"),
    ("select e.meter from exports.\"SMALL\" e join T t on e.meter = t.meter and e.ts = t.ts", "it has a join"),
];

/// The queries of a file of the query suite whose tables are those of this project.
fn suite(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(repository().join("crates/sql/tests/slt").join(file)).unwrap();
    let cases = text.split("\n\n").filter_map(|case| {
        let (_, case) = case.split_once("query ")?;
        let (_, sql) = case.split_once('\n')?;
        Some(sql.split("\n----").next()?.replace("SENSOR", "T").replace("2018-", "2020-"))
    });
    cases.collect()
}

/// The lines of an answer, in their order if the query has one.
fn lines(query: &str, text: &str) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if !query.to_lowercase().contains("order by") {
        lines.sort_unstable();
    }
    lines
}

#[test]
fn answers_are_those_of_one_process_or_refused_by_name() {
    let project = Project::new("j", JOB);
    // Halves: sums of floats depend on their order otherwise, here as there.
    [0, 5].iter().for_each(|file| project.write(&format!("in/{file:02}.csv"), readings(*file, 9)));
    project.ok(&["run", "j", "--now", NOW]);
    let cluster = Cluster::of(&project, "data");
    let sql = |more: &[&str], query: &str| project.run(&[&["sql", "--output", "csv"], more, &["-c", query]].concat());
    let on = ["--on", cluster.address.as_str()];
    let (mut asked, mut refused, mut wrong) = (0, Vec::new(), Vec::new());
    let mut compare = |query: &str, must_run: bool| {
        let (here, there) = (sql(&[], query), sql(&on, query));
        asked += 1;
        if there.stderr.contains("executors cannot run this query") {
            let list = if must_run { &mut wrong } else { &mut refused };
            list.push(format!("{query}: {}", there.stderr.trim()));
        } else if here.code != there.code || lines(query, &here.stdout) != lines(query, &there.stdout) {
            wrong.push(format!("{query}:\n{}{}\n{}{}", here.stdout, here.stderr, there.stdout, there.stderr));
        }
    };
    RUN.iter().for_each(|query| compare(query, true));
    for file in ["records.slt", "cells.slt"] {
        suite(file).iter().for_each(|query| compare(query, false));
    }
    println!("{asked} queries, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    for (query, words) in REFUSED {
        let said = sql(&on, query);
        assert!(
            said.stderr.contains("executors cannot run this query") && said.stderr.contains(words),
            "{}",
            said.stderr
        );
    }
    // An older version, pinned by the session.
    let old = ["--version", "T=1"];
    let count = "select count(*) as n from T";
    assert_eq!(sql(&old, count).stdout, sql(&[&old[..], &on[..]].concat(), count).stdout);
    // Mistakes are told as ever.
    assert!(sql(&on, "select nothing from T").stderr.contains("nothing"));
}

#[test]
fn an_executor_of_another_root_refuses() {
    let project = Project::new("j", JOB);
    project.write("in/00.csv", readings(0, 3));
    project.ok(&["run", "j", "--now", NOW]);
    let (_scheduler, address) = scheduler(&project, "127.0.0.1:0");
    let said = project.fails(1, &["sql", "--on", &address, "-c", "select count(*) from T"]);
    assert!(said.contains("no executor is connected"), "{said}");
    project.ok(&["run", "j", "--root", "elsewhere", "--now", NOW]);
    let _executor = executor(&project, &address, "elsewhere", "one");
    let said = project.fails(1, &["sql", "--on", &address, "-c", "select count(*) from T"]);
    assert!(said.contains("this executor has another build or another root"), "{said}");
}
