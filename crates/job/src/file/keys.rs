//! Every key of a job file, by section. Reading, the "unknown key" error and the JSON Schema use this list.

use toml::de::DeValue;

/// A kind of table and the keys it may hold.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Section {
    /// What the table describes, as messages call it.
    pub(crate) noun: &'static str,
    pub(crate) keys: &'static [Key],
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) shape: ValueShape,
    /// Description that editors show, a sentence or two; empty where the name says it.
    pub(crate) says: &'static str,
}

impl Key {
    pub(crate) const fn says(self, says: &'static str) -> Self {
        Self { says, ..self }
    }
}

/// The TOML type of a value, as far as a reader checks it before it looks at the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueShape {
    Flag,
    /// A number, or a string in SQL syntax.
    Limit,
    Table,
    Tables,
    Text,
    TextOrTable,
    TextOrWhole,
    Texts,
    Whole,
}

impl ValueShape {
    /// The shape of the items of a list; `None` for other shapes.
    pub(crate) fn item(self) -> Option<Self> {
        match self {
            Self::Tables => Some(Self::Table),
            Self::Texts => Some(Self::Text),
            _ => None,
        }
    }

    /// Whether `value` has this type; items are not checked.
    pub(crate) fn fits(self, value: &DeValue<'_>) -> bool {
        match self {
            Self::Flag => value.is_bool(),
            Self::Limit => value.is_integer() || value.is_float() || value.is_str(),
            Self::Table => value.is_table(),
            Self::Tables | Self::Texts => value.is_array(),
            Self::Text => value.is_str(),
            Self::TextOrTable => value.is_str() || value.is_table(),
            Self::TextOrWhole => value.is_str() || value.is_integer(),
            Self::Whole => value.is_integer(),
        }
    }

    pub(crate) fn wanted(self) -> &'static str {
        match self {
            Self::Flag => "true or false",
            Self::Limit => "a number or a string",
            Self::Table => "a table",
            Self::Tables => "a list of tables `[ { .. }, .. ]`",
            Self::Text => "a string",
            Self::TextOrTable => "a string or a table",
            Self::TextOrWhole => "a string or an integer",
            Self::Texts => "a list of strings `[\"..\", ..]`",
            Self::Whole => "an integer",
        }
    }
}

pub(crate) const fn key(name: &'static str, shape: ValueShape) -> Key {
    Key { name, shape, says: "" }
}

pub(crate) static PROJECT: Section = Section {
    noun: "project",
    keys: &[
        key("root", ValueShape::TextOrTable)
            .says("Folder or bucket URL of the store, relative to this file; or a table with it and its settings."),
        key("cluster", ValueShape::Table).says("Other machines, which do the work of runs."),
    ],
};

pub(crate) static CLUSTER: Section = Section {
    noun: "`cluster`",
    keys: &[
        key("url", ValueShape::Text).says(
            "The scheduler, `ballista://HOST:PORT`, or `ballista+tls://HOST:PORT` with TLS; without it runs work in their \
             own process.",
        ),
        key("ca", ValueShape::Text).says(
            "File, relative to this one, with the certificates of the authority of schedulers and executors with TLS; those \
             of the system by default.",
        ),
        key("cert", ValueShape::Text)
            .says("File with the certificate that this machine shows to them, with those up to its authority."),
        key("key", ValueShape::Text).says("File with the private key of `cert`."),
        key("timeout", ValueShape::Text)
            .says("How long a run waits for the next answer of an executor before it gives up; `12h` by default."),
    ],
};

pub(crate) static ROOT: Section = Section {
    noun: "`root`",
    keys: &[
        key("url", ValueShape::Text).says("Folder or bucket URL of the store, relative to this file."),
        key("storage", ValueShape::Table).says("How the bucket is reached."),
        key("cache", ValueShape::Table).says("Where blocks of the bucket are kept on the local disk."),
        key("lease", ValueShape::Text)
            .says("How long the lock of a job in a bucket outlives a run that was killed; `60s` by default."),
    ],
};

pub(crate) static CACHE: Section = Section {
    noun: "`cache`",
    keys: &[
        key("dir", ValueShape::Text)
            .says("Folder of the cache, relative to this file; `tidetable` in the folder of caches by default."),
        key("size", ValueShape::Text).says("Size of the cache, such as `10GiB`; `1GiB` by default, none with `0`."),
    ],
};

pub(crate) static JOB: Section = Section {
    noun: "job",
    keys: &[
        key("name", ValueShape::Text).says("Name of the job, which is the name of its folder."),
        key("description", ValueShape::Text).says("What the job is for, for people."),
        key("schedule", ValueShape::Text).says("When the job runs, as a cron expression in `timezone`: `15 1 * * *`."),
        key("timezone", ValueShape::Text).says("Time zone of days, of the schedule, and of times without an offset, such as `Europe/Paris`; UTC by default."),
        key("catch_up", ValueShape::Text).says("Which missed runs `run --catch-up` makes up for: `all`, only the `latest`, or `none`."),
        key("catch_up_window", ValueShape::Text).says("How far back missed runs are made up for, such as `7d`."),
        key("after", ValueShape::Texts).says("Jobs that run before this one in `run --all`."),
        key("sources", ValueShape::Table).says("Files that the job reads, by name."),
        key("tables", ValueShape::Table).says("Tables that the job keeps, by name."),
        key("messages", ValueShape::Table).says("Protobuf messages that cells hold, by name."),
        key("exports", ValueShape::Table).says("What is published from the tables, by name."),
        key("catalog", ValueShape::Table).says("The REST catalog of Iceberg to which exports with `iceberg` are committed."),
        key("push", ValueShape::Table).says("Tables that are pushed into Bigtable after the exports, by name."),
        key("checks", ValueShape::Table).says("What must hold before an export is published, by name."),
        key("hooks", ValueShape::Table).says("Commands that run after the job."),
        key("metrics", ValueShape::Table).says("Where the metrics of the last run are written."),
        key("lineage", ValueShape::Table).says("Where the events of runs go, in the form of OpenLineage."),
        key("stages", ValueShape::Table).says("How often a stage that failed is tried again."),
        key("lint", ValueShape::Table).says("Rules of `lint` that do not hold for the tables of the job: the reason, by rule."),
    ],
};

pub(crate) static LAYOUTS: Section = Section {
    noun: "file of layouts",
    keys: &[
        key("tables", ValueShape::Table).says("Tables, by name, over the sources of a job."),
        key("messages", ValueShape::Table).says("Protobuf messages, by name."),
    ],
};

pub(crate) static SOURCE: Section = Section {
    noun: "source",
    keys: &[
        key("files", ValueShape::Texts).says("Paths or URLs of the files; `*`, `**` and `{day:%Y-%m-%d}` stand for parts of them, and a folder for the data files below it."),
        key("format", ValueShape::Text).says("Format of the files: `csv`, `parquet`, `json` (lines of JSON), `arrow` or `avro`; or of dumps of Bigtable: `bigtable-parquet`, `bigtable-avro` or `cbt-csv`. By default, from their names."),
        key("layout", ValueShape::Text).says("Table of this job whose layout reads the rows of a dump back into records; without it, each cell is a row."),
        key("families", ValueShape::Table).says("Columns that hold the cells of one family of a dump, each with the family."),
        key("series", ValueShape::Texts).says(
            "Columns whose values tell series apart, such as `meter`, where a column is `ambiguous = \"by-order\"`; by default those that \
             row keys and qualifiers of all its tables have, times apart.",
        ),
        key("each", ValueShape::Texts).says("Paths of lists in a record: each of their elements is an event, which has the values outside of the list, too. Several lists are read side by side."),
        key("preset", ValueShape::Text).says("What writes JSON files: `otel`, the file exporter of the OpenTelemetry collector, or `victoriametrics`, its export."),
        key("csv", ValueShape::Table).says("How CSV files are written."),
        key("time", ValueShape::Text).says("The column that holds the time of the event."),
        key("max_rejected", ValueShape::TextOrWhole).says("Rows that may be rejected before the load fails: a number, or a share such as `1%`."),
        key("rejected_floor", ValueShape::Whole).says("Rows that may be rejected whatever the share of `max_rejected`, while no file loses more than half of its rows."),
        key("nan", ValueShape::Text).says("What NaN in a float column of Parquet is: `null`, or `reject` rejects its row."),
        key("schema", ValueShape::Text).says("What becomes of a file that lacks a declared column: `freeze` stops the run, `evolve` takes null for it, `reject` rejects its rows."),
        key("columns", ValueShape::Table).says("Columns that are read, with their types."),
        key("derive", ValueShape::Table).says("Columns that are computed from others, by name, as SQL expressions."),
        key("storage", ValueShape::Table).says("How the bucket of the files is reached."),
    ],
};

pub(crate) static STORAGE: Section = Section {
    noun: "`storage`",
    keys: &[
        key("region", ValueShape::TextOrTable).says("Region of the bucket."),
        key("endpoint", ValueShape::TextOrTable).says("URL of a server that speaks the protocol of the bucket."),
        key("allow_http", ValueShape::Flag).says("Whether the endpoint may be reached without TLS."),
        key("anonymous", ValueShape::Flag)
            .says("Whether requests are sent without credentials, as to a public bucket."),
        key("virtual_hosted", ValueShape::Flag).says("Whether the name of the bucket stands in the name of the host."),
        key("access_key_id", ValueShape::TextOrTable).says("Access key of S3."),
        // A string is refused with more specific advice than a wrong type.
        key("secret_access_key", ValueShape::TextOrTable)
            .says(r#"Secret key of S3: `{ env = ".." }` or `{ file = ".." }`."#),
        key("session_token", ValueShape::TextOrTable)
            .says(r#"Session token of S3: `{ env = ".." }` or `{ file = ".." }`."#),
        key("service_account_key", ValueShape::TextOrTable)
            .says(r#"Key of a service account of Google Cloud, as JSON: `{ env = ".." }` or `{ file = ".." }`."#),
        key("account_name", ValueShape::TextOrTable).says("Storage account of Azure."),
        key("account_key", ValueShape::TextOrTable)
            .says(r#"Key of the storage account of Azure: `{ env = ".." }` or `{ file = ".." }`."#),
        key("sas_token", ValueShape::TextOrTable)
            .says(r#"Shared access signature of Azure: `{ env = ".." }` or `{ file = ".." }`."#),
        key("tenant_id", ValueShape::TextOrTable).says("Tenant of a service principal of Azure."),
        key("client_id", ValueShape::TextOrTable).says("Client of a service principal of Azure."),
        key("client_secret", ValueShape::TextOrTable)
            .says(r#"Secret of a service principal of Azure: `{ env = ".." }` or `{ file = ".." }`."#),
    ],
};

/// Reference to a value outside the job file, which never holds secrets.
pub(crate) static SECRET: Section = Section {
    noun: "value from elsewhere",
    keys: &[
        key("env", ValueShape::Text).says("Environment variable that holds the value."),
        key("file", ValueShape::Text).says("File that holds the value."),
    ],
};

pub(crate) static HOOKS: Section = Section {
    noun: "`hooks`",
    keys: &[
        key("success", ValueShape::Texts).says("Command, with its arguments, after a run that did all it should."),
        key("warning", ValueShape::Texts)
            .says("Command after a run with warnings: rejected rows, or checks that only warn."),
        key("failure", ValueShape::Texts)
            .says("Command after a run that failed or was partial, whatever its exit code."),
        key("interrupt", ValueShape::Texts).says("Command after a run that was interrupted."),
        key("finish", ValueShape::Texts).says("Command after every run."),
        key("error", ValueShape::Texts)
            .says("Command after a run that could not begin and has no record: exit code 2 or 75."),
        key("timeout", ValueShape::Text).says("How long a command may take, such as `30s`."),
        key("heartbeat", ValueShape::TextOrTable).says(
            "URL that is requested after each run, as a dead man's switch; `/fail` is added after a run that failed.",
        ),
    ],
};

pub(crate) static CATALOG: Section = Section {
    noun: "`catalog`",
    keys: &[
        key("uri", ValueShape::Text).says("URL of the catalog, without `/v1`, such as `https://catalog.example.org/api`."),
        key("warehouse", ValueShape::Text).says("The warehouse, where a catalog has several."),
        key("namespace", ValueShape::Text)
            .says("Namespace of the tables, created if it is absent; dots part its levels. A table has the name of its export."),
        key("token", ValueShape::TextOrTable)
            .says(r#"Bearer token of the requests: `{ env = ".." }` or `{ file = ".." }`."#),
    ],
};

/// Stages of a run, by the names of [`super::Stage`].
pub(crate) static PUSH: Section = Section {
    noun: "push",
    keys: &[
        key("table", ValueShape::Text).says("The table of the job."),
        key("to", ValueShape::Text).says("The instance, `projects/P/instances/I`, or a table of it, with `/tables/T`."),
        key("prefix", ValueShape::Text).says("Only rows whose key begins with this."),
        key("create", ValueShape::Flag).says("Whether a table and families that are missing are created."),
        key("to_source", ValueShape::Flag)
            .says("Whether the table that the rows were pulled from may be written; otherwise that is refused."),
        key("rate", ValueShape::Text).says("At most this many rows a second, such as `5000/s`."),
        key("patience", ValueShape::Text)
            .says("How long a failing request is repeated without any progress, `5m` by default."),
    ],
};

pub(crate) static STAGES: Section = Section {
    noun: "`stages`",
    keys: &[
        key("load", ValueShape::Table).says("Reading the sources into their tables."),
        key("derive", ValueShape::Table).says("Updating derived tables."),
        key("publish", ValueShape::Table).says("Publishing the exports."),
        key("push", ValueShape::Table).says("Pushing tables into Bigtable."),
        key("compact", ValueShape::Table).says("Compacting what is due."),
    ],
};

pub(crate) static STAGE: Section = Section {
    noun: "stage",
    keys: &[
        key("retries", ValueShape::Whole).says("How often the stage is retried after a transient error."),
        key("wait", ValueShape::Text)
            .says("Time before the first retry, `10s` by default; each is twice as long as the one before."),
    ],
};

pub(crate) static LINEAGE: Section = Section {
    noun: "`lineage`",
    keys: &[
        key("url", ValueShape::TextOrTable)
            .says(r#"URL that events are posted to, such as `https://marquez/api/v1/lineage`, or `{ env = ".." }`."#),
        key("file", ValueShape::Text).says("File that a line is appended to for each event, instead of `url`."),
        key("namespace", ValueShape::Text).says("Namespace of the job; `tidetable` by default."),
        key("token", ValueShape::TextOrTable)
            .says(r#"Bearer token of the requests: `{ env = ".." }` or `{ file = ".." }`."#),
    ],
};

pub(crate) static METRICS: Section = Section {
    noun: "`metrics`",
    keys: &[
        key("file", ValueShape::Text).says("File that Prometheus reads, such as `/var/lib/node_exporter/job.prom`.")
    ],
};

pub(crate) static CSV: Section = Section {
    noun: "`csv`",
    keys: &[
        key("delimiter", ValueShape::Text).says("Character between values; a comma by default."),
        key("quote", ValueShape::Text).says("Character around values; a double quote by default."),
        key("escape", ValueShape::Text)
            .says("Character that takes its meaning from a quote in a quoted value, such as `\\\\`; doubled quotes are read too."),
        key("skip", ValueShape::Whole).says("Lines before the header that are not read; 0 by default."),
        key("header", ValueShape::Flag).says("Whether the first line names the columns; true by default."),
        key("null", ValueShape::Texts).says("Texts that stand for null; the empty one by default."),
        key("comment", ValueShape::Text).says("Character that begins lines which are not read."),
        key("decimal", ValueShape::Text).says("Decimal separator of numbers: `.` or `,`."),
    ],
};

pub(crate) static COLUMN_TYPE: Section = Section {
    noun: "column type",
    keys: &[
        key("type", ValueShape::Text)
            .says("Type of the column: `text`, `int64`, `float64`, `decimal(9,2)`, `timestamp`, .."),
        key("format", ValueShape::Text).says("How times are written, such as `%d/%m/%Y %H:%M`."),
        key("timezone", ValueShape::Text).says("Time zone of times without an offset."),
        key("ambiguous", ValueShape::Text).says(
            "Which instant a local time is that occurs twice when clocks go back: `earlier` (default), `later`, or `by-order` of the \
             rows of a series in their file.",
        ),
        key("decimal", ValueShape::Text)
            .says("Decimal separator of its numbers, `.` or `,`, if it differs from that of `csv`."),
        key("thousands", ValueShape::Text).says("Separator of thousands in its numbers: `,`, `.`, a blank or `'`."),
        key("null", ValueShape::Texts).says("Null markers of the column, instead of those of `csv`."),
    ],
};

pub(crate) static TABLE: Section = Section {
    noun: "table",
    keys: &[
        key("from", ValueShape::TextOrTable)
            .says("Where the records come from: a source, or a query over other tables."),
        key("where", ValueShape::Text).says("Which records the table takes, as an SQL expression."),
        key("row_key", ValueShape::Text).says("Template of the row key, such as `{meter:04}#{ts:%Y%m%d}`."),
        key("window", ValueShape::Text)
            .says("Span of event time that is loaded and rebuilt as a unit; a day by default."),
        key("granularity", ValueShape::Text)
            .says("Precision of cell timestamps: `millis`, as in Bigtable, or `micros`."),
        key("unpivot", ValueShape::Texts).says("Columns that become a record each, with their name and value."),
        key("upsert", ValueShape::Text).says("`row`: the newest event of a row replaces all of it."),
        key("families", ValueShape::Table).says("Column families, by name."),
        key("lint", ValueShape::Table).says("Rules of `lint` that do not hold for the table: the reason, by rule."),
    ],
};

pub(crate) static FROM: Section = Section {
    noun: "`from`",
    keys: &[
        key("query", ValueShape::Table).says("The query whose rows are the records."),
        key("time", ValueShape::Text).says("The column of the query that holds the event time."),
    ],
};

pub(crate) static FAMILY: Section = Section {
    noun: "family",
    keys: &[key("gc", ValueShape::Text).says("Garbage collection rule, such as `maxversions=1` or `maxage=30d`."), key("kind", ValueShape::Text).says("Aggregate family: cells of a column become their `sum`, `min`, `max`, or an `hll` sketch of distinct values."), key("columns", ValueShape::Tables).says("Columns of the family.")],
};

pub(crate) static COLUMN: Section = Section {
    noun: "column",
    keys: &[
        key("qualifier", ValueShape::Text).says("Template of the column qualifier, such as `{ts:%H%M}`."),
        key("value", ValueShape::Text)
            .says("Template of the cell value, such as `{kwh}`; empty for a cell without one."),
        key("encoding", ValueShape::Text)
            .says("How the value is written: `text`, or `int64` and others as big-endian bytes."),
        key("timestamp", ValueShape::TextOrWhole)
            .says("Time of the cell: a template, or a number of microseconds; the event time by default."),
        key("each", ValueShape::Text).says("`*`: a cell for each column of the record."),
        key("except", ValueShape::Texts).says("Columns that `each` leaves out."),
        key("message", ValueShape::Text).says("The protobuf message that the cell holds."),
        key("repeated", ValueShape::Text)
            .says("The protobuf message that the cell holds once for each event of the row."),
        key("json", ValueShape::Text).says("`*`: the cell holds the record as a JSON object."),
    ],
};

pub(crate) static MESSAGE: Section = Section {
    noun: "message",
    keys: &[
        key("fields", ValueShape::Table).says("Fields of the message with their numbers."),
        key("proto", ValueShape::Text).says("A .proto file beside the job file, in which the message is declared."),
    ],
};

pub(crate) static EXPORT: Section = Section {
    noun: "export",
    keys: &[
        key("per", ValueShape::Text)
            .says("What one published part covers: a `day`, `hour`, `month`, or the whole `query`."),
        key("name", ValueShape::Text).says("Template of the names of parts, such as `SENSOR_{day:%Y%m%d}`."),
        key("format", ValueShape::Text).says("Format of the files; `parquet` by default."),
        key("mode", ValueShape::Text)
            .says("What a part does to the one before: `replace` it, `append` to it, or `upsert` by `keys`."),
        key("keys", ValueShape::Texts).says("Columns that identify a row of an upsert."),
        key("file_size", ValueShape::Text).says("Size at which a part continues in another file, such as `512MiB`."),
        key("delta", ValueShape::Flag).says("Whether a Delta log is kept beside the files."),
        key("iceberg", ValueShape::Flag)
            .says("Whether Iceberg metadata is kept beside the files, which then have a column of their day."),
        key("snapshot_retention", ValueShape::Text).says(
            "How long files that were replaced stay for readers of older versions of the Delta or Iceberg table; `7d` by default.",
        ),
        key("delta_retention", ValueShape::Text).says("As `snapshot_retention`, its former name."),
        key("day_column", ValueShape::Flag)
            .says("Whether files have a column of their day, of type date, where the query lacks it."),
        key("decimals", ValueShape::Text).says("How decimals are published: `exact`, or as `float`."),
        key("query", ValueShape::Table).says("The query whose rows are published."),
    ],
};

pub(crate) static QUERY: Section = Section {
    noun: "query",
    keys: &[
        key("file", ValueShape::Text).says("File with the SQL, beside the job file."),
        key("sql", ValueShape::Text).says("The SQL itself."),
    ],
};

pub(crate) static CHECK: Section = Section {
    noun: "check",
    keys: &[
        key("on", ValueShape::Text).says("The export that is checked."),
        key("severity", ValueShape::Text).says("`error` keeps the part from being published, `warn` only reports."),
        key("not_null", ValueShape::Texts).says("Columns that hold no null."),
        key("unique", ValueShape::Texts).says("Columns whose values together occur once."),
        key("range", ValueShape::Table).says("Limits of the values of columns, by name."),
        key("rows", ValueShape::Table).says("Limits of the number of rows."),
        key("query", ValueShape::Table).says("A query that gives the rows which break the rule."),
    ],
};

pub(crate) static LIMITS: Section = Section {
    noun: "limits",
    keys: &[
        key("min", ValueShape::Limit).says("The least that is allowed."),
        key("max", ValueShape::Limit).says("The most that is allowed."),
    ],
};
