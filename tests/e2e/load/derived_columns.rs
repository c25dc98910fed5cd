//! Derived columns and filters of a source.

use serde_json::{Value, json};

use crate::harness::Project;

/// Messages for two tables: quotes go to one, trades to the other.
const JOB: &str = r#"
name = "market"

[sources.messages]
files = ["in/*.csv"]
time = "at"
max_rejected = 10

[sources.messages.columns]
exchange = "text"
symbol = "text"
day = "text"
quote_time = "text"
trade_time = "text"
bid = "decimal(10,2)"
ask = "decimal(10,2)"
last = "decimal(10,2)"

[sources.messages.derive]
at = "cast(day || 'T' || coalesce(quote_time, trade_time) || 'Z' as timestamp)"
spread = "ask - bid"

[tables.QUOTE]
where = "bid is not null"
row_key = "{exchange:<6}#{symbol:<5}#{at:ms}"

[tables.QUOTE.families.MD]
columns = [
  { qualifier = "BID", value = "{bid}" },
  { qualifier = "ASK", value = "{ask}" },
  { qualifier = "SPREAD", value = "{spread}" },
]

[tables.TRADE]
where = "last is not null"
row_key = "{exchange:<6}#{symbol:<5}#{at:ms}"

[tables.TRADE.families.MD]
columns = [{ qualifier = "LASTSALE", value = "{last}" }]
"#;

const MESSAGES: &str = "\
exchange,symbol,day,quote_time,trade_time,bid,ask,last
NASDAQ,ZXZZT,2015-03-16,19:53:32.156,,600.55,600.60,
NYSE,AB,2015-03-16,,19:53:32.045,,,600.58
NASDAQ,ZXZZT,2015-03-16,25:00:00,,1.00,2.00,
NYSE,AB,2015-03-16,19:53:33,,10.10,10.30,10.20
";

fn cells(project: &Project, table: &str) -> Vec<(String, Vec<(String, String)>)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let rows = project.json(&["read", table]);
    let cells = |row: &Value| {
        let cells = row["cells"].as_array().unwrap();
        cells.iter().map(|cell| (text(&cell["qualifier"]), text(&cell["value"]))).collect()
    };
    rows.iter().map(|row| (text(&row["key"]), cells(row))).collect()
}

#[test]
fn filters_split_one_source_into_two_tables() {
    let project = Project::new("market", JOB);
    project.write("in/messages.csv", MESSAGES);
    let record = project.run_job("market");
    for (load, accepted, filtered) in [(0, 2, 1), (1, 2, 1)] {
        let load = &record["loads"][load];
        assert_eq!(load["rows_read"], 4);
        assert_eq!((&load["rows_accepted"], &load["rows_filtered"]), (&json!(accepted), &json!(filtered)));
        assert_eq!(load["rows_rejected"], 1);
    }
    let cell = |qualifier: &str, value: &str| (qualifier.to_owned(), value.to_owned());
    let quotes = cells(&project, "QUOTE");
    assert_eq!(quotes.len(), 2);
    assert_eq!(quotes[0].0, "NASDAQ#ZXZZT#1426535612156");
    assert_eq!(quotes[0].1, [cell("ASK", "600.60"), cell("BID", "600.55"), cell("SPREAD", "0.05")]);
    assert_eq!(quotes[1].0, "NYSE  #AB   #1426535613000");
    let trades = cells(&project, "TRADE");
    assert_eq!(trades[0], ("NYSE  #AB   #1426535612045".to_owned(), vec![cell("LASTSALE", "600.58")]));
    assert_eq!(trades[1].1, [cell("LASTSALE", "10.20")]);

    let rejected = project.rejected(&record);
    assert_eq!(rejected[0]["line"], 4);
    assert_eq!(rejected[0]["column"], "at");
    assert!(rejected[0]["raw"].as_str().unwrap().contains("25:00:00"));
    let spread = project.sql("select symbol, spread from QUOTE order by at");
    assert_eq!(spread, [json!({ "symbol": "ZXZZT", "spread": 0.05 }), json!({ "symbol": "AB", "spread": 0.20 })]);
}

#[test]
fn changed_filter_requires_rebuild() {
    let project = Project::new("market", JOB);
    project.write("in/messages.csv", MESSAGES);
    project.run_job("market");
    project.write("jobs/market/job.toml", JOB.replace("bid is not null", "bid > 100"));
    assert!(project.fails(2, &["run", "market"]).contains("--rebuild"));
    project.ok(&["run", "market", "--rebuild"]);
    assert_eq!(cells(&project, "QUOTE").len(), 1);
}

#[test]
fn invalid_expression_is_a_job_file_error() {
    let project = Project::new("market", &JOB.replace("ask - bid", "ask - bit"));
    let said = project.fails(2, &["check", "market"]);
    assert!(said.contains("job.toml:21:10") && said.contains("bit"), "{said}");
}
