//! Invalid job files, each the good one with a replacement, and all their problems.

use super::{edited, load, problems};

/// Text of the good file, its replacement, and the expected problems.
const WRONG: &[(&str, &str, &[&str])] = &[
    (
        r#"name     = "smart-meters""#,
        r#"name = "meters""#,
        &[
            "1:8 the job is called `meters`, but its place says `smart-meters` | write `smart-meters`, or rename the folder or file",
        ],
    ),
    (
        r#"name     = "smart-meters""#,
        "",
        &[r#"1:1 the job has no `name` | add `name`, for example `name = "smart-meters"`"#],
    ),
    (r#"name     = "smart-meters""#, "name = 3", &["1:8 `name` takes a string, not an integer"]),
    (
        "name     = \"smart-meters\"\nschedule = \"15 1 * * *\"\ntimezone = \"UTC\"",
        "name = \"smart-meters\"\ntimezome = \"UTC\"\n[export]",
        &[
            "2:1 unknown key `timezome` in a job | did you mean `timezone`?",
            "3:2 unknown key `export` in a job | did you mean `exports`?",
        ],
    ),
    (
        "15 1 * * *",
        "15 25 * *",
        &[
            "2:12 a schedule has five fields, this one has 4 | write minute, hour, day of month, month and day of week: `15 1 * * *` is 01:15 every day",
        ],
    ),
    (
        "15 1 * * *",
        "75 1 * * 9",
        &[
            "2:13 `75` is not a minute of a schedule | 0 to 59, `*`, lists `1,2`, ranges `1-5`, steps `*/2`",
            "2:22 `9` is not a day of week of a schedule | 0 to 7, `*`, lists `1,2`, ranges `1-5`, steps `*/2`",
        ],
    ),
    (r#""UTC""#, r#""Europe/Pariss""#, &["3:12 `Europe/Pariss` is not a time zone | did you mean `Europe/Paris`?"]),
    (r#"time  = "ts""#, r#"time = "tss""#, &["7:8 the source `readings` has no column `tss` | did you mean `ts`?"]),
    (
        r#"time  = "ts""#,
        r#"time = "kwh""#,
        &[
            r#"7:8 the time of a source is a timestamp, and `kwh` is a float64 | declare `kwh = "timestamp"`, or name another column"#,
        ],
    ),
    (
        r#"time  = "ts""#,
        "",
        &["5:10 the source has no `time` | add `time`, the column that says when a reading was made"],
    ),
    (
        r#""0.1%""#,
        r#""101%""#,
        &[r#"8:16 `max_rejected` cannot be `101%` | write a share such as `"0.1%"`, or a count such as `10`"#],
    ),
    (
        "max_rejected",
        "rejected_floor = -1\nmax_rejected",
        &["8:18 `rejected_floor` cannot be `-1` | write a number of rows, such as `10`"],
    ),
    (r#""0.1%""#, "0.1", &["8:16 `max_rejected` takes a string or an integer, not a float"]),
    (r#""uint64""#, r#""string""#, &["11:9 `string` is not a type | did you mean `text`?"]),
    (r#""uint64""#, "64", &["11:9 `meter` takes a string or a table, not an integer"]),
    ("[tables.SENSOR]", "[tables]\nOTHER = 3\n[tables.SENSOR]", &["16:9 `OTHER` takes a table, not an integer"]),
    (
        r#""float64""#,
        r#""decimal(3,4)""#,
        &[
            "13:9 `decimal(3,4)` is not a decimal type | write `decimal(p,s)`: p digits in all (1 to 38), s of them after the point (0 to p)",
        ],
    ),
    (
        r#""float64""#,
        r#"{ type = "float64", format = "%H", timezone = "UTC" }"#,
        &[
            "13:29 a float64 column has no `format` | only timestamp and date columns have a format",
            "13:44 a float64 column has no `timezone` | only timestamp columns have a time zone",
        ],
    ),
    (
        r#""float64""#,
        r#"{ timezone = "UTC" }"#,
        &[r#"13:1 the column type has no `type` | add `type = "timestamp"`, or another type"#],
    ),
    (
        r#"files = ["sample-data/smart-meters/*.csv", "sample-data/smart-meters/*.parquet"]"#,
        "files = []",
        &["6:9 `files` is empty"],
    ),
    ("files = [", "files = [1, ", &[r#"6:10 `files` takes a list of strings `["..", ..]`, not an integer"#]),
    ("*.csv", "{day:%Y.csv", &["6:36 `{day` is not closed: write `{day:FORMAT}`"]),
    ("*.csv", "{day}.csv", &["6:36 a day in `files` says how it is written | for example `{day:%Y-%m-%d}`"]),
    ("*.csv", "{day:%H}.csv", &["6:41 `%H` is not a strftime format for this placeholder"]),
    (
        "time  =",
        "csv = { delimiter = \";;\", quote = \",\" }\ntime  =",
        &[
            "7:21 `delimiter` takes one ASCII character, not `;;`",
            "7:35 `,` serves both `delimiter` and `quote` | choose another `quote`",
        ],
    ),
    (
        "time  =",
        "csv = { escape = \"\\\"\", skip = -1 }\ntime  =",
        &[
            "7:18 `\"` serves both `quote` and `escape` | choose another `escape`",
            "7:31 `skip` cannot be `-1` | write the number of lines before the header, such as `4`",
        ],
    ),
    ("time  =", "format = \"cvs\"\ntime  =", &["7:10 `format` cannot be `cvs` | did you mean `csv`?"]),
    ("time  =", "format = \"jsno\"\ntime  =", &["7:10 `format` cannot be `jsno` | did you mean `json`?"]),
    ("time  =", "preset = \"otle\"\ntime  =", &["7:10 `preset` cannot be `otle` | did you mean `otel`?"]),
    ("time  =", "each = [3]\ntime  =", &[r#"7:9 `each` takes a list of strings `["..", ..]`, not an integer"#]),
    ("row_key =", "from = \"reading\"\nrow_key =", &["16:8 there is no source `reading` | did you mean `readings`?"]),
    (
        "[tables.SENSOR]",
        "[sources.other]\nfiles = [\"x\"]\ntime = \"t\"\ncolumns = { t = \"timestamp\" }\n[tables.SENSOR]",
        &["19:9 which source is the table from? | add `from`, with one of `readings`, `other`"],
    ),
    (
        r#"row_key = "{meter:010}#{ts:%Y%m%d}""#,
        r#"window = "dayly""#,
        &[
            r#"15:9 the table has no `row_key` | add `row_key`, for example `row_key = "{meter:010}#{ts:%Y%m%d}"`"#,
            "16:10 `window` cannot be `dayly` | write one of `day`, `hour`, `week`, `month`, `none`",
        ],
    ),
    (
        "families.METER]",
        r#"families."ME TER"]"#,
        &["18:25 `ME TER` cannot be the name of a family | 1 to 64 of A-Z a-z 0-9 _ - ."],
    ),
    (
        r#"value = "{kwh}""#,
        r#"encoding = "txt", timestamp = 5"#,
        &[
            "22:41 `encoding` cannot be `txt` | did you mean `text`?",
            "22:60 `timestamp` cannot be `5` | write 0, or the name of a timestamp column of the source",
        ],
    ),
    (
        r#"value = "{kwh}""#,
        r#"except = ["ts"]"#,
        &[r#"22:30 `except` goes with `each` or `json` | add `each = "*"`, or leave `except` out"#],
    ),
    (
        r#"qualifier = "ID",        value"#,
        "value",
        &[r#"21:3 the column has no `qualifier` | add `qualifier`, for example `qualifier = "{ts:%H%M}"`"#],
    ),
    (
        "maxversions=1",
        "maxversions=1 maxage=30d",
        &[
            "19:21 `gc` wants `and`, `or` or the end of the rule here | for example `maxversions=1`, or `maxage=30d and maxversions=2`",
        ],
    ),
    (
        "[exports.SENSOR_DAY]",
        "[exports.SENSOR]",
        &["25:10 the name `SENSOR` is used twice | a table has it already: choose another"],
    ),
    (
        "SENSOR_{day:%Y%m%d}",
        "SENSOR",
        &["27:9 the parts of `SENSOR_DAY` would have one name | for example `SENSOR_DAY_{day:%Y%m%d}`"],
    ),
    (
        "SENSOR_{day:%Y%m%d}",
        "SENSOR_{day:%d}",
        &[
            "27:9 `2024-01-01` and `2024-02-01` would have one name: `SENSOR_01` | write enough of the time, for example `{day:%Y%m%d}`",
        ],
    ),
    (
        "SENSOR_{day:%Y%m%d}",
        "SENSOR_{month}_{day}",
        &[
            "27:9 `SENSOR_{month}_2024-01-01` cannot be the name of a published table | only a time may stand in braces, for example `{day:%Y%m%d}`",
        ],
    ),
    (
        "[exports.SENSOR_DAY]",
        "[exports.OTHER]\nper = \"day\"\nname = \"SENSOR_{day:%Y%m%d}\"\nquery = { sql = \"select 1\" }\n[exports.SENSOR_DAY]",
        &["29:10 the export `OTHER` publishes under this name too | give each export a name of its own"],
    ),
    (
        "sensor_day.sql",
        "missing.sql",
        &["28:18 there is no file `missing.sql` | write the query into `missing.sql` beside the job file"],
    ),
    (
        r#"{ file = "sensor_day.sql" }"#,
        "{ }",
        &[
            r#"28:1 a query has either `file` or `sql` | write `query = { file = "query.sql" }`, or `query = { sql = "select .." }`"#,
        ],
    ),
    (r#"{ file = "sensor_day.sql" }"#, r#""sensor_day.sql""#, &["28:9 `query` takes a table, not a string"]),
    (r#""UTC""#, r#""UTC"#, &[r#"3:16 not TOML: invalid basic string, expected `"`"#]),
    (r#"timezone = "UTC""#, r#"name = "x""#, &["3:1 not TOML: duplicate key"]),
];

/// The same for valid but unsupported values.
const LATER: &[(&str, &str, &[&str])] = &[
    ("timezone", "after = \"x\"\ntimezone", &[r#"3:9 `after` takes a list of strings `["..", ..]`, not a string"#]),
    ("max_rejected", "derive = { x = 1 }\nmax_rejected", &["8:16 `x` takes a string, not an integer"]),
    (
        "max_rejected",
        "derive = { x = \"[kwh]\" }\nmax_rejected",
        &[
            "8:16 it gives List(Float64), which no column can hold; CAST it to a number, text, a time or a bool | write SQL over the columns of the source; names keep their case",
        ],
    ),
    ("max_rejected", "schema = \"evolv\"\nmax_rejected", &["8:10 `schema` cannot be `evolv` | did you mean `evolve`?"]),
    (
        "row_key",
        "where = \"kwh + 1\"\nupsert = \"rows\"\nrow_key",
        &[
            "16:9 it gives Float64, and a filter must be true or false | write SQL over the columns of the source; names keep their case",
            "17:10 `upsert` cannot be `rows` | did you mean `row`?",
        ],
    ),
    (
        r#"row_key = "{meter:010}#{ts:%Y%m%d}""#,
        "upsert = \"row\"\nrow_key = \"{meter:010}\"",
        &[
            r#"16:1 a newer event of a row may lie in another window, where it cannot replace the row | write `window = "none"` in the table"#,
        ],
    ),
    ("gc =", "kind = \"summ\"\ngc =", &["19:8 `kind` cannot be `summ` | did you mean `sum`?"]),
    (
        "gc =",
        "kind = \"sum\"\ngc =",
        &[
            r#"23:39 a family of kind sum takes an integer column, not float64: derive one, for example `cents = "cast(price * 100 as bigint)"`"#,
        ],
    ),
    (
        "[exports",
        "[tables.SENSOR.families.N]\nkind = \"max\"\ncolumns = [{ qualifier = \"n\", value = \"{meter}\", encoding = \"text\" }]\n[exports",
        &["27:61 cells of a family of kind max are not text | leave `encoding` out"],
    ),
    (
        r#"{ qualifier = "ID",        value = "{meter}" }"#,
        r#"{ qualifier = "b", message = "R" }, { qualifier = "c", repeated = "R", json = "*" }, { qualifier = "d", json = "all" }"#,
        &[
            "21:32 there is no message `R` | add `[messages.NAME]` with `fields = { column = 1, .. }`",
            "21:74 a column holds one of `message`, `repeated` and `json` | make a column of each",
            "21:114 `json` cannot be `all` | write one of `*`",
        ],
    ),
    (
        "[exports",
        "[hooks]\nsuccess = []\n[metrics]\n[exports",
        &[
            r#"26:11 `success` names no program | for example `success = ["notify", "--quiet"]`: a program and its arguments, without a shell"#,
            "27:2 the `metrics` has no `file`",
        ],
    ),
    (
        r#""day""#,
        r#""month""#,
        &["27:9 the parts of `SENSOR_DAY` would have one name | for example `SENSOR_DAY_{month:%Y%m}`"],
    ),
    (
        "query =",
        "format = \"cbt-csv\"\nfile_size = \"1 XB\"\nquery =",
        &[
            r#"28:10 files of cells are made `per = "query"` | write `per = "query"`, and a query of `cells.TABLE`"#,
            "29:1 `file_size` is for files of rows | leave it out: what loads cells takes them from one file",
            r#"29:13 `1 XB` is not a size | write a number and a unit, as in 512MiB, 1GiB or 2GB, for example `file_size = "256MiB"`"#,
        ],
    ),
    (
        "query =",
        "format = \"cbt-csv\"\nmode = \"upsert\"\nquery =",
        &[
            r#"28:10 files of cells are made `per = "query"` | write `per = "query"`, and a query of `cells.TABLE`"#,
            r#"29:1 `mode = "upsert"` needs `keys` | add `keys`, the columns that say which rows are the same"#,
        ],
    ),
];

#[test]
fn wrong_files() {
    for (from, to, said) in WRONG.iter().chain(LATER) {
        assert_eq!(problems(&edited(from, to)), *said, "{from} -> {to}");
    }
}

/// A cell with all events of a row, under garbage-collection rules that would remove it.
#[test]
fn wrong_cells_of_all_events() {
    let job = edited("[tables.SENSOR.families", "[messages.R]\nfields = { kwh = 1 }\n[tables.SENSOR.families");
    let repeated = job.replace("value = \"{kwh}\"", "").replace("{ts:%H%M}\", ", "all\", repeated = \"R\" ");
    let aged = repeated.replace("maxversions=1", "maxage=1d or maxversions=1");
    let found = problems(&aged);
    assert!(found.len() == 1 && found[0].contains("`maxage` would drop it at once"), "{found:?}");
    let upsert = repeated.replace("row_key =", "upsert = \"row\"\nwindow = \"none\"\nrow_key =");
    let found = problems(&upsert);
    assert!(found.len() == 1 && found[0].contains("write `message` for `repeated`"), "{found:?}");
}

/// A table made from a query over those before it.
#[test]
fn wrong_queries_of_tables() {
    let query = |from: &str| {
        let table = format!("[tables.HOURS]\nfrom = {from}\nrow_key = \"{{meter:010}}\"\n[tables.HOURS.families.F]\n");
        edited("[exports", &format!("{table}columns = [{{ qualifier = \"N\", value = \"{{n}}\" }}]\n[exports"))
    };
    let sql = |sql: &str| format!("{{ query = {{ sql = \"{sql}\" }} }}");
    let right = sql("SELECT meter, date_trunc('hour', ts) AS ts, count(*) AS n FROM SENSOR GROUP BY 1, 2");
    // Of two timestamps, the one named like the event time of the input table is chosen.
    for right in [right, sql("SELECT meter, ts, ts AS until, 1 AS n FROM SENSOR")] {
        load(&query(&right)).unwrap();
    }
    for (from, said) in [
        (sql("SELECT meter FROM NOTHING"), "it reads NOTHING, and no table of that name comes before it"),
        (sql("SELECT meter, ts, 1 AS n FROM HOURS"), "it reads HOURS, and no table of that name comes before it"),
        (sql("SELECT meter, nn FROM SENSOR"), "nn"),
        (sql("SELECT meter, 1 AS n FROM SENSOR"), "which column of the query is the event time?"),
        (sql("SELECT meter, [ts] AS ts, 1 AS n FROM SENSOR"), "its column ts is List"),
        (sql("SELECT 1 AS meter, 2 AS n, TIMESTAMP '2020-01-01' AS ts"), "it reads no table"),
        ("{ query = { sql = \"SELECT meter, ts, 1 AS n FROM SENSOR\" }, time = \"n\" }".to_owned(), "`n`"),
    ] {
        let found = problems(&query(&from));
        assert!(found.len() == 1 && found[0].contains(said), "{from}: {found:?}");
    }
}

/// Errors of the layout and the source, at their byte range unless escapes hide it.
#[test]
fn wrong_templates_and_formats() {
    for (from, to, said) in [
        ("{meter:010}", "{metre:010}", "16:13 no column `metre` in the source; did you mean `meter`?"),
        (r#"value = "{kwh}""#, "value = '{kwhh}'", "22:40 no column `kwhh`"),
        (r#"value = "{kwh}""#, "value = \"\"\"\n{kwhh}\"\"\"", "23:2 no column `kwhh`"),
        (r#"value = "{kwh}""#, r#"value = "\u007bkwhh}""#, "22:38 no column `kwhh`"),
        ("%Y-%m-%dT", "%Q-%m-%dT", "12:20 `%Q-%m-%dT%H:%M:%SZ` is not a time format: %Q"),
    ] {
        let found = problems(&edited(from, to));
        assert!(found.len() == 1 && found[0].starts_with(said), "{from} -> {to}: {found:?}");
    }
}
