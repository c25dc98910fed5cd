//! Files hold their day, and decimals as programs want them; rows come as a stream.

use serde_json::json;

use super::readers::{check, project};
use crate::harness::system::python_script;
use crate::harness::{Project, TIDETABLE, json_lines};

#[test]
fn files_have_a_column_of_their_day_where_the_query_lacks_it() {
    let select = "select meter, price from T order by meter, ts";
    let export = format!("per = \"day\"\nname = \"E/dt={{day}}\"\nday_column = true\nquery = {{ sql = \"{select}\" }}");
    let project = project(&export);
    project.run_job("j");
    let days = "select dt, count(*) as n from exports.E group by dt order by dt";
    let ours = json!([{ "dt": "2026-03-28", "n": 2 }, { "dt": "2026-03-29", "n": 1 }]);
    assert_eq!(json!(project.sql(days)), ours);
    assert_eq!(project.sql("select * from exports.E limit 1")[0].as_object().unwrap().len(), 3);
    for engine in check(&project, "day", &project.path("data/exports/E")).unwrap_or_default() {
        assert_eq!((&engine["columns"], &engine["rows"]), (&json!(["meter", "price", "dt"]), &json!(3)), "{engine}");
        assert!(["DATE", "Date", "date32[day]"].contains(&engine["types"][2].as_str().unwrap()), "{engine}");
    }
    let one = project.path("data/exports/E/dt=2026-03-28/part-0.parquet");
    if let Some(said) = check(&project, "types", &one) {
        assert_eq!(said[0]["types"][2], "date32[day]");
        assert_eq!(said[0]["rows"][0], json!(["1", "1.50", "2026-03-28"]));
    }

    // Without a directory of the day the column is called `day`, and a query may have one of its own.
    let text = project.read("jobs/j/job.toml").replace("E/dt={day}", "E_{day:%Y%m%d}");
    project.write("jobs/j/job.toml", &text);
    project.run_job("j");
    assert_eq!(
        json!(project.sql(&days.replace("dt", "day"))),
        json!([{ "day": "2026-03-28", "n": 2 }, { "day": "2026-03-29", "n": 1 }])
    );
    project.write("jobs/j/job.toml", text.replace("select meter, price", "select 1 as day, price"));
    project.run_job("j");
    assert_eq!(project.sql("select distinct day from exports.E"), [json!({ "day": 1 })]);
}

#[test]
fn a_delta_table_shows_its_day_once() {
    let export = "per = \"day\"\nname = \"E/dt={day}\"\nday_column = true\ndelta = true\nquery = { sql = \"select meter, price from T\" }";
    let project = project(export);
    project.run_job("j");
    let Some(said) = check(&project, "delta", &project.path("data/exports/E")) else { return };
    assert_eq!((&said[0]["columns"], &said[0]["rows"]), (&json!(["meter", "price", "dt"]), &json!(3)));
    assert_eq!(said[0]["types"][2], "date32[day]");
}

#[test]
fn names_without_a_day_give_no_column_of_it() {
    for (per, name, wrong) in [
        ("month", "E_{month:%Y%m}", "the name holds no day"),
        ("day", "E/day={day:%Y%m%d}", "other values than days"),
        ("query", "E", "the name holds no day"),
    ] {
        let export =
            format!("per = \"{per}\"\nname = \"{name}\"\nday_column = true\nquery = {{ sql = \"select * from T\" }}");
        let said = project(&export).fails(2, &["check", "j"]);
        assert!(said.contains(wrong), "{said}");
    }
}

#[test]
fn decimals_may_be_published_as_doubles() {
    let select = "select meter, price from T order by meter, ts";
    let project = project(&format!("per = \"day\"\nname = \"E_{{day:%Y%m%d}}\"\nquery = {{ sql = \"{select}\" }}"));
    project.run_job("j");
    let before = project.files("data/exports");
    let text = project.read("jobs/j/job.toml");
    project.write("jobs/j/job.toml", text.replace("query = {", "decimals = \"exact\"\nquery = {"));
    project.run_job("j");
    assert_eq!(project.files("data/exports"), before, "the default, written down");

    project.write("jobs/j/job.toml", text.replace("query = {", "decimals = \"float\"\nquery = {"));
    let said = project.ok(&["check", "j"]);
    assert!(said.contains("price, Decimal128(10, 2) in the query, is Float64 in the files"), "{said}");
    project.run_job("j");
    let Some(said) = check(&project, "types", &project.path("data/exports/E_20260328/part-0.parquet")) else { return };
    assert_eq!((&said[0]["types"][1], &said[0]["rows"][0]), (&json!("double"), &json!(["1", "1.5"])));
}

#[test]
fn rows_come_as_an_arrow_stream() {
    let project = Project::empty();
    let read = |query: &str| {
        let folder = project.path("");
        let command = [TIDETABLE, "-C", folder.to_str().unwrap(), "sql", "--output", "arrows", "-c", query];
        let args = std::iter::once("stream").chain(command);
        let modules = "duckdb, polars, pyarrow, deltalake";
        Some(json_lines(&python_script(&project, modules, "interop/readers_check.py", args)?))
    };
    let many = "select value as n, cast(value as decimal(12,2)) as price, to_timestamp(value) as ts, cast(value as varchar) as t from generate_series(1, 200000)";
    let Some(said) = read(many) else { return };
    let types = json!(["int64", "decimal128(12, 2)", "timestamp[us]", "string"]);
    assert_eq!((&said[0]["types"], &said[0]["rows"], &said[0]["code"]), (&types, &json!(200_000), &json!(0)));
    assert!(said[0]["batches"].as_u64().unwrap() > 10, "{said:?}");
    assert_eq!(said[0]["first"][0], json!(["1", "1.00", "1970-01-01 00:00:01", "1"]));
    assert_eq!((&said[1]["rows"], &said[1]["code"]), (&json!(200_000), &json!(0)));
    assert!(said[2]["rows"].as_u64().unwrap() < 200_000, "{said:?}");
    // No rows have their columns.
    let none = read("select value as n from generate_series(1, 3) where value > 5").unwrap();
    assert_eq!((&none[0]["columns"], &none[0]["rows"], &none[1]["rows"]), (&json!(["n"]), &json!(0), &json!(0)));

    project.ok(&["sql", "-O", "x.arrows", "-c", "select 1 as one"]);
    assert!(project.path("x.arrows").is_file());
    assert!(project.fails(2, &["status", "--output", "arrows"]).contains("are for the rows of `tidetable sql`"));
}
