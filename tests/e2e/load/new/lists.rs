//! `tidetable new` on JSON with lists: which are events, and what becomes of the others.

use super::readings::{answer, notes, proposed};
use crate::harness::Project;

/// A file of so many lines.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |text, at| text + &line(at) + "\n")
}

fn clock(at: usize) -> String {
    format!("2024-01-01T{:02}:{:02}:00Z", at / 60, at % 60)
}

#[test]
fn lists_that_are_no_samples_are_named() {
    let project = Project::empty();
    let labels = |at: usize| {
        let list =
            [r#"[]"#, r#"[{"key":"env","value":"prod"}]"#, r#"[{"key":"env","value":"dev"},{"key":"a","value":"b"}]"#];
        format!(r#"{{"time":"{}","cost":{at}.5,"labels":{}}}"#, clock(at), list[at % 3])
    };
    let seldom = |at: usize| match at {
        0 => format!(r#"{{"time":"{}","cost":{at}.5,"labels":[{{"key":"a","value":"b"}}]}}"#, clock(at)),
        _ => format!(r#"{{"time":"{}","cost":{at}.5}}"#, clock(at)),
    };
    let gateways = |at: usize| {
        let other = if at.is_multiple_of(3) { r#",{"gw":"g2","rssi":-110}"# } else { "" };
        format!(r#"{{"time":"{}","cost":{at}.5,"labels":[{{"gw":"g1","rssi":-60}}{other}]}}"#, clock(at))
    };
    for (job, text) in [("a", lines(300, labels)), ("b", lines(300, seldom)), ("c", lines(300, gateways))] {
        let file = format!("{job}.jsonl");
        project.write(&file, text);
        let (said, _) = proposed(&project, job, &file, &[]);
        let told = notes(&said);
        assert!(told.contains("Not read: labels (List; `each = [\"labels\"]` makes an event of each item)."), "{told}");
        let found = answer(&project, &format!("SELECT count(*) AS a, sum(cost) AS b FROM {}", job.to_uppercase()));
        assert_eq!(found.replace(".0", ""), "300 45000", "{told}");
    }
}

#[test]
fn empty_lists_of_samples_are_told() {
    let project = Project::empty();
    let batch = |at: usize| match at {
        7 => r#"{"host":"h","samples":[]}"#.to_owned(),
        _ => format!(
            r#"{{"host":"h","samples":[{{"ts":"{}","v":1.5}},{{"ts":"{}","v":2.5}}]}}"#,
            clock(at * 2),
            clock(at * 2 + 1)
        ),
    };
    project.write("in/a.jsonl", lines(40, batch));
    let (said, record) = proposed(&project, "a", "in/a.jsonl", &[]);
    let told = notes(&said);
    let wanted = "`each` makes an event of each item of samples: 78 events of 40 records; 1 list is empty and gives none (line 8).";
    assert!(told.contains(wanted), "{told}");
    assert_eq!(answer(&project, "SELECT count(*) AS n FROM A"), "78");
    let ran = record["notes"].to_string();
    assert!(ran.contains("lists of `each` that are empty and give no event: 1 (first: in/a.jsonl, line 8)"), "{ran}");
}

#[test]
fn one_list_among_texts_is_a_text() {
    let project = Project::empty();
    let line = |at: usize| {
        let message = if at == 40 { "[104,105]".to_owned() } else { format!("\"line {at}\"") };
        format!(r#"{{"ts":"{}","unit":"u{}","message":{message}}}"#, clock(at), at % 2)
    };
    project.write("a.jsonl", lines(300, line));
    proposed(&project, "a", "a.jsonl", &[]);
    assert_eq!(answer(&project, "SELECT count(message) AS a, min(message) AS b FROM A"), "300 [104,105]");
}

#[test]
fn an_answer_of_query_range_is_read() {
    let project = Project::empty();
    let series = |instance: &str| {
        let pairs: Vec<String> = (0..60).map(|at| format!("[{},\"{at}.5\"]", 1_704_067_200 + at * 60)).collect();
        format!(r#"{{"metric":{{"__name__":"up","instance":"{instance}"}},"values":[{}]}}"#, pairs.join(","))
    };
    let result = format!("{},{}", series("a"), series("b"));
    project.write("a.json", format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{result}]}}}}"#));
    let (said, _) = proposed(&project, "a", "a.json", &[]);
    assert!(project.read("jobs/a/job.toml").contains("each = [\"data.result.values\"]"), "{said}");
    let query = r#"SELECT count(*) AS a, sum("data.result.values.1") AS b, max("data.result.values.0") AS c FROM A"#;
    assert_eq!(answer(&project, query), "120 3600.0 2024-01-01T00:59:00Z", "{said}");
}

#[test]
fn lists_of_pairs_and_of_axes_are_read() {
    let project = Project::empty();
    let pairs = |unit: u64, last: &str| {
        let pairs: Vec<String> =
            (0..30).map(|at| format!("[{},{at}.5{last}]", 1_704_067_200 * unit + at * 60 * unit)).collect();
        format!("[{}]", pairs.join(","))
    };
    project.write("a.json", format!(r#"{{"error":[],"result":{{"XXBTZUSD":{},"last":1704067320}}}}"#, pairs(1, ",7")));
    let (said, _) = proposed(&project, "a", "a.json", &[]);
    assert_eq!(answer(&project, "SELECT count(\"result.XXBTZUSD.2\") AS n FROM A"), "30", "{said}");

    let (prices, volumes) = (pairs(1000, ""), pairs(1000, ""));
    project.write("b.json", format!(r#"{{"prices":{prices},"total_volumes":{volumes}}}"#));
    let (said, _) = proposed(&project, "b", "b.json", &[]);
    let query = "SELECT count(\"prices.1\") AS a, count(\"total_volumes.1\") AS b FROM B";
    assert_eq!(answer(&project, query), "30 30", "{said}");

    let line = |at: usize| format!(r#"{{"ts":"{}","acc":[0.5,{at}.5,9.8],"tags":["a","b"]}}"#, clock(at));
    project.write("c.jsonl", lines(30, line));
    let (said, _) = proposed(&project, "c", "c.jsonl", &[]);
    assert_eq!(answer(&project, "SELECT count(\"acc.0\") AS a, max(\"acc.1\") AS b FROM C"), "30 29.5", "{said}");
    assert!(notes(&said).contains("Not read: tags (List)."), "{said}");
}
