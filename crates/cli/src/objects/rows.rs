//! Keys of flat objects; most are also the rows of a table.

use crate::output::key::Kind::{Bytes, Day, Integer, List, Number, Object, OrNull, Text, Time, Truth};
use crate::output::key::{Key, key};

/// `plan`, and `run --dry-run`.
pub const PLAN: &[Key] = &[
    key("kind", Text, "`table`, `input`, `owed`, `publish`, `sealed`, `check` or `push`"),
    key("name", Text, "the table, input or part, or the target of a push"),
    key("of", Text, "the job, table or export it belongs to"),
    key("why", Text, "why it changes, or stays"),
    key("days", Text, "its days, such as `2018-01-01 to 2018-01-03`; of a part, its label"),
    key("bytes", OrNull(&Integer), "bytes to read"),
];

/// `run --catch-up --dry-run`.
pub const MOMENTS: &[Key] = &[
    key("job", Text, "the job"),
    key("time", Time, "the scheduled time, which is the logical time of its run"),
    key("why", Text, "`due` or `missed`"),
];

/// `status`.
pub const STATUS: &[Key] = &[
    key("job", Text, "the job"),
    key("outcome", OrNull(&Text), "how its last run ended; null if it never ran"),
    key("run", OrNull(&Text), "its last run"),
    key("now", OrNull(&Time), "logical time of that"),
    key("started", OrNull(&Time), "when that began"),
    key("finished", OrNull(&Time), "when that ended"),
    key("error", OrNull(&Text), "why that failed"),
    key("last_good", OrNull(&Time), "logical time of its last good run"),
    key("good_age_seconds", OrNull(&Integer), "how long that is ago"),
    key("data_until", OrNull(&Time), "end of the newest day of events"),
    key("data_age_seconds", OrNull(&Integer), "how long that is ago"),
    key("published_until", OrNull(&Time), "end of the newest published day"),
    key("published_age_seconds", OrNull(&Integer), "how long that is ago"),
    key("fresh", OrNull(&Truth), "whether it is within `--fresh`; null if that is not given"),
    key("gaps", List(&Object(DAYS)), "days without a part between the first and the last"),
    key("failed", List(&Object(DAYS)), "days that failed, and are still to be done"),
    key("sealed", List(&Object(DAYS)), "changed days that stay as published, because cells of them have expired"),
    key("owed", List(&Object(OWED_TABLE)), "windows that could not be rebuilt, because inputs of them are gone"),
    key("rejected", Integer, "rejected rows of the inputs that its tables hold"),
    key("rejected_by_last_run", OrNull(&Integer), "rows that the last run rejected"),
    key("pushed", List(&Object(PUSHED_TABLE)), "what was pushed of its tables into Bigtable"),
];

const DAYS: &[Key] =
    &[key("of", Text, "the export or table"), key("days", List(&Text), "labels of its parts, such as `2018-01-31`")];

const OWED_TABLE: &[Key] =
    &[key("table", Text, "the table"), key("windows", List(&Object(OWED)), "its windows, the oldest first")];

/// A window that could not be rebuilt: `status`, and of a load.
pub(super) const OWED: &[Key] = &[
    key("window", Text, "name of the window, such as `2018-01-05`"),
    key("inputs", List(&Object(OWING)), "inputs whose change it lacks"),
    key("gone", List(&Text), "missing inputs with rows in it: put back or removed, they let it be rebuilt"),
    key("lost", Truth, "whether cells of it went with a damaged SST: then none of its days is published"),
];

const OWING: &[Key] = &[
    key("path", Text, "path or URL"),
    key("rows", Integer, "its rows that are not in the window; 0 if it has none there any more"),
];

const PUSHED_TABLE: &[Key] = &[
    key("table", Text, "the table"),
    key("target", Text, "the table in Bigtable"),
    key("version", Integer, "the version that is there; 0 if none is yet"),
    key("newest", Integer, "the newest version here"),
    key("finished", OrNull(&Time), "when that was pushed"),
    key("unfinished", Truth, "whether a push has begun since and not ended"),
];

/// `report`.
pub const REPORT: &[Key] = &[
    key("job", Text, "the job"),
    key("days", List(&Object(REPORT_DAY)), "days of exports, or of tables if the job has no exports"),
    key("runs", List(&Object(REPORT_RUN)), "runs whose records are kept, the oldest first"),
    key("checks", List(&Object(REPORT_CHECK)), "rules of checks with their values"),
    key("lineage", List(&Object(REPORT_STEP)), "steps from inputs to exports"),
];

const REPORT_DAY: &[Key] = &[
    key("of", Text, "the export or table"),
    key("day", Day, "the day, in the time zone of the job"),
    key("state", Text, "`published`, `late`, `sealed`, `missing` or `failed`; of several parts of a day, the worst"),
    key("rows", Integer, "rows published; of a month, those of the month"),
    key("rejected", Integer, "rejected rows of the inputs with this day"),
    key("run", OrNull(&Text), "the run that published or tried it last"),
];

const REPORT_RUN: &[Key] = &[
    key("run", Text, "name of the run"),
    key("outcome", Text, "as of a run"),
    key("now", Time, "logical time"),
    key("started", Time, "when it began"),
    key("seconds", OrNull(&Number), "how long it took; null if it did not end"),
    key("read", Integer, "rows read"),
    key("rejected", Integer, "rows rejected"),
    key("published", Integer, "parts published"),
    key("error", OrNull(&Text), "why it failed"),
];

const REPORT_CHECK: &[Key] = &[
    key("check", Text, "name of the check"),
    key("on", Text, "the table or export"),
    key("rule", Text, "the rule, such as `not_null meter`"),
    key("severity", Text, "`error` or `warn`"),
    key("values", List(&Object(REPORT_VALUE)), "its last value of each part or day"),
];

const REPORT_VALUE: &[Key] = &[
    key("label", Text, "label of the part, or the day"),
    key("measured", Integer, "rows that broke the rule; for a rule on the number of rows, that number"),
    key("passed", Truth, "whether the rule held"),
    key("run", Text, "the run that measured it"),
];

const REPORT_STEP: &[Key] = &[
    key("from", Text, "kind of the origin: `source` or `table`"),
    key("name", Text, "name of the origin"),
    key("into", Text, "kind of the result: `table` or `export`"),
    key("into_name", Text, "name of the result"),
    key("items", Integer, "inputs read, or parts published"),
    key("rows", Integer, "rows read, or published"),
    key("rejected", Integer, "rows rejected"),
];

/// `sql "SHOW TABLES"`.
pub const SHOWN_TABLES: &[Key] = &[
    key("schema", Text, "its schema: `records`, `exports` or `runs`"),
    key("name", Text, "its name"),
    key("kind", Text, "`table`, `files` of an external table, `export` or `run records`"),
    key("parts", OrNull(&Integer), "of an export, the number of its parts"),
    key("also", OrNull(&Text), "other names: of a table its cells and rows, of an export its parts"),
];

/// `history`.
pub const HISTORY: &[Key] = &[
    key("run", Text, "name of the run"),
    key("job", Text, "the job"),
    key("outcome", Text, "as of a run"),
    key("now", Time, "logical time"),
    key("started", Time, "when it began"),
    key("seconds", OrNull(&Number), "how long it took; null if it did not end"),
    key("read", Integer, "rows read"),
    key("rejected", Integer, "rows rejected"),
    key("published", Integer, "parts published"),
    key("failed", Integer, "parts that could not be published, or whose checks failed"),
    key("new_attempts", Integer, "number of retries"),
    key("error", OrNull(&Text), "why it failed"),
];

/// `lineage`.
pub const LINKS: &[Key] = &[
    key("from", Text, "kind of the origin: `input`, `table` or `part`"),
    key("name", Text, "name of the origin"),
    key("into", Text, "kind of the result: `table` or `part`"),
    key("into_name", Text, "name of the result"),
    key("days", Text, "UTC days of its rows; of a part, its label"),
    key("sequence", OrNull(&Integer), "input sequence number in the table"),
    key("rows", Integer, "rows read, or published"),
    key("rejected", Integer, "rows rejected"),
    key("owed", Text, "windows that do not hold the content of the input yet; empty if there are none"),
    key("version", OrNull(&Integer), "version of the table that took it, or changed the part"),
    key("run", OrNull(&Text), "the run that did it, if its record is kept"),
    key("now", OrNull(&Time), "logical time of that run"),
    key("fingerprint", OrNull(&Text), "hash of the input, or checksum of the part"),
];

/// `rejects`.
pub const REJECTS: &[Key] = &[
    key("run", Text, "the run"),
    key("job", Text, "its job"),
    key("file", Text, "the input"),
    key("table", OrNull(&Text), "the table that rejected the row; null if all did"),
    key("line", Integer, "line or row, from 1"),
    key("column", OrNull(&Text), "the column at fault"),
    key("reason", Text, "what is wrong"),
    key("raw", Text, "the row as it stands in the file"),
];

/// `clean`.
pub const CLEANED: &[Key] = &[
    key("file", Text, "path inside the root"),
    key("what", Text, "what it is"),
    key("bytes", Integer, "bytes"),
    key("removed", Truth, "whether it was removed, or would be"),
];

/// `sql "SUMMARIZE .."`
pub const SUMMARY: &[Key] = &[
    key("column", Text, "the column"),
    key("type", Text, "its type"),
    key("count", Integer, "values that are not null"),
    key("nulls", Integer, "nulls"),
    key("distinct", OrNull(&Integer), "distinct values, approximate; null if they cannot be counted"),
    key("min", OrNull(&Text), "the least"),
    key("max", OrNull(&Text), "the greatest"),
];

/// `read`.
#[cfg(test)]
pub const READ: &[Key] = &[key("key", Bytes, "the row key"), key("cells", List(&Object(CELL)), "its cells")];

/// `read --keys-only`.
#[cfg(test)]
pub const READ_KEYS: &[Key] = &[key("key", Bytes, "the row key")];

#[cfg(test)]
const CELL: &[Key] = &[
    key("family", Text, "the family"),
    key("qualifier", Bytes, "the qualifier"),
    key("timestamp", Time, "the timestamp"),
    key("value", Bytes, "the value"),
];

/// `export`.
pub const WRITTEN: &[Key] = &[
    key("file", Text, "the file"),
    key("rows", Integer, "cells, or rows of the query"),
    key("bytes", Integer, "bytes"),
];

/// `tables`.
pub const TABLES: &[Key] = &[
    key("kind", Text, "`table` or `export`"),
    key("name", Text, "its name"),
    key("job", OrNull(&Text), "the job; null for an unreadable table, as all that follows"),
    key("version", OrNull(&Integer), "newest version; null for an export"),
    key("parts", OrNull(&Integer), "SSTs of a table, parts of an export"),
    key("rows", OrNull(&Integer), "rows"),
    key("cells", OrNull(&Integer), "cells; null for an export"),
    key("bytes", OrNull(&Integer), "bytes"),
];

/// `check`.
pub const FINDINGS: &[Key] = &[
    key("kind", Text, "`root` (in a bucket), `table`, `export`, `check` or `warning`"),
    key("name", Text, "what it is about"),
    key("finding", Text, "the finding"),
];

/// `lint`.
pub const LINT: &[Key] = &[
    key("rule", Text, "id of the rule"),
    key("severity", Text, "`info`, `warn` or `error`"),
    key("table", OrNull(&Text), "the table; null for the job as a whole"),
    key("file", Text, "the job file"),
    key("line", Integer, "line of the place, from 1"),
    key("column", Integer, "column of the place, in characters, from 1"),
    key("end_line", Integer, "line of its end"),
    key("end_column", Integer, "column behind its last character"),
    key("message", Text, "what is wrong there"),
    key("keys", List(&Text), "row keys or values from the data, a few"),
    key("measured", OrNull(&Number), "what was counted, if the rule has a limit"),
    key("limit", OrNull(&Number), "the limit"),
    key("unit", OrNull(&Text), "unit of both"),
    key("reason", Text, "why the guides advise against it"),
    key("source", Text, "the page that says so"),
    key("change", OrNull(&Text), "the changed lines of the job file, where a change of one place mends it"),
];

/// `lint --rules`.
pub const LINT_RULES: &[Key] = &[
    key("rule", Text, "id of the rule"),
    key("severity", Text, "the gravest of its findings: `info`, `warn` or `error`"),
    key("needs", Text, "the least it must know: `job`, `data` or `queries`"),
    key("title", Text, "what it finds, with its limit"),
    key("reason", Text, "why the guides advise against it"),
    key("source", Text, "the page that says so"),
];

/// `check --data`.
pub const MEASURED: &[Key] = &[
    key("check", Text, "name of the check"),
    key("on", Text, "the table or export"),
    key("label", Text, "label of the part, or the day"),
    key("rule", Text, "the rule"),
    key("severity", Text, "`error` or `warn`"),
    key("measured", Integer, "rows that broke the rule; for a rule on the number of rows, that number"),
    key("passed", Truth, "whether the rule holds"),
];

/// `new`.
pub const NEW: &[Key] = &[
    key("job", Text, "name of the job"),
    key("table", Text, "its table"),
    key("row_key", Text, "template of the row key"),
    key("files", List(&Text), "files that were written"),
    key("notes", List(&Text), "notes for the user"),
];

/// `new --stdout`.
pub const PROPOSAL: &[Key] = &[
    key("job", Text, "name of the job"),
    key("job_toml", Text, "text of its job file"),
    key("queries", List(&Object(QUERY)), "files beside the job file"),
];

const QUERY: &[Key] = &[key("file", Text, "name of the file"), key("sql", Text, "text of it")];

/// `schedule --check`.
pub const SCHEDULED: &[Key] = &[
    key("job", Text, "the job"),
    key("time", Time, "the scheduled time"),
    key("what", Text, "`to run`, `due now`, `missed`, `missed, to be made up`, or `last run: ` with its outcome"),
];

/// `delete` and `drop-rows`.
pub const DELETED: &[Key] = &[
    key("table", Text, "the table"),
    key("version", OrNull(&Integer), "version that hides them; null if nothing was changed"),
    key("rows", Integer, "rows of those"),
    key("cells", Integer, "cells that are hidden, or would be"),
    key("days", List(&Day), "UTC days to publish again"),
    key("sealed_days", List(&Day), "UTC days that a run leaves as published, since cells of them may have expired"),
];

/// `drop`.
pub const DROPPED: &[Key] = &[
    key("name", Text, "the table or export"),
    key("what", Text, "`table` or `export`"),
    key("job", Text, "the job that made it; empty if no file tells it"),
    key("files", Integer, "files of it"),
    key("bytes", Integer, "bytes of them"),
    key("removed", Truth, "whether they were removed, or would be"),
];

/// `compact --dry-run`.
pub const MERGES: &[Key] = &[
    key("window", Text, "the window, or the first and the last"),
    key("why", Text, "why it is rewritten"),
    key("ssts", Integer, "SSTs that would become one"),
    key("rows", Integer, "rows of them"),
    key("cells", Integer, "cells of them"),
    key("bytes", Integer, "bytes of them"),
];

/// `repair`.
pub const LOST_SSTS: &[Key] = &[
    key("table", Text, "the table"),
    key("sst", Text, "id of the damaged SST"),
    key("window", Text, "the window, or the first and the last"),
    key("first_key", Bytes, "first row key"),
    key("last_key", Bytes, "last row key"),
    key("from", OrNull(&Time), "least timestamp"),
    key("to", OrNull(&Time), "greatest timestamp"),
    key("rows", Integer, "rows that are lost, at most"),
    key("cells", Integer, "cells that are lost, at most"),
    key("damage", Text, "what is wrong"),
    key("inputs", List(&Text), "inputs to be loaded again"),
    key("version", OrNull(&Integer), "version without it; null if it was not removed"),
];

/// `vacuum`.
pub const VACUUMED: &[Key] = &[
    key("table", OrNull(&Text), "the table; null for files outside tables"),
    key("file", Text, "path inside the root"),
    key("what", Text, "what it is"),
    key("bytes", Integer, "bytes"),
    key("removed", Truth, "whether it was removed, or would be"),
];

/// `backup`, `backup --list` and `restore`.
pub const BACKUPS: &[Key] = &[
    key("backup", Text, "name of the backup"),
    key("taken", Time, "when it was taken"),
    key("root", Text, "the root it is a copy of"),
    key("tables", Integer, "tables"),
    key("files", Integer, "files"),
    key("bytes", Integer, "bytes of them"),
    key("damaged", Integer, "damaged files, which are not in it"),
    key("copied", OrNull(&Integer), "files copied by this command; null if it copies none"),
    key("copied_bytes", OrNull(&Integer), "bytes of those"),
];

/// `cache`.
pub const CACHED: &[Key] = &[
    key("directory", OrNull(&Text), "where it is; null without a cache"),
    key("size", Integer, "bytes it may have"),
    key("files", Integer, "files it has, or had before it was emptied"),
    key("bytes", Integer, "their bytes"),
];

/// `copy`.
pub const COPIED: &[Key] = &[
    key("from", Text, "the root that was copied"),
    key("to", Text, "the copy"),
    key("tables", Integer, "tables"),
    key("exports", Integer, "exports"),
    key("copied", Integer, "files copied"),
    key("copied_bytes", Integer, "bytes of those"),
    key("known", Integer, "files that were there already"),
    key("damaged", Integer, "damaged files, which are not in the copy"),
];

/// `backup --verify`.
pub const BACKUP_DAMAGE: &[Key] = &[key("damage", Text, "what is wrong")];

/// `doctor`.
pub const DAMAGE: &[Key] = &[
    key("path", Text, "path inside the root"),
    key("kind", Text, "what it is"),
    key("damage", Text, "what is wrong"),
    key("costs", Text, "what fails because of it, and what is lost"),
    key("remedy", Text, "what `--fix` or the user can do"),
    key("fixable", Truth, "whether `--fix` can fix it"),
    key("fixed", Truth, "whether it was fixed"),
    key("set_aside", OrNull(&Text), "its path in quarantine, inside the root"),
];

/// `verify`.
pub const VERIFIED: &[Key] = &[
    key("table", Text, "the table, export or job"),
    key("file", OrNull(&Text), "path inside the root"),
    key("window", OrNull(&Text), "window of an SST; for an export, label of the part"),
    key("version", OrNull(&Integer), "version of the table that names it"),
    key("bytes", OrNull(&Integer), "bytes"),
    key("rows", OrNull(&Integer), "rows of an SST"),
    key("cells", OrNull(&Integer), "cells of an SST"),
    key("sound", Truth, "whether it is intact"),
    key("damage", Text, "what is wrong; empty if intact"),
    key("kind", Text, "`table`, `export`, `record` or `rejects`, a file of rejected rows"),
];
