//! Keys of run records.

use super::rows::OWED;
use crate::output::key::Kind::{Day, Integer, List, Named, Number, Object, OrNull, Text, Time, Truth};
use crate::output::key::{Key, key};

/// A run: `run`, `retry`, `replay` and `history --run`.
pub const RUN: &[Key] = &[
    key("format", Integer, "format of the stored record"),
    key("run", Text, "name of the run"),
    key("job", Text, "the job"),
    key("now", Time, "logical time"),
    key("started", Time, "when it began, by the clock of the machine"),
    key("finished", OrNull(&Time), "when it ended; null while it goes on, and if it was killed"),
    key("outcome", Text, "`ok`, `partial`, `checks`, `failed`, `interrupted`, `running`, or `killed`"),
    key("error", OrNull(&Text), "why it failed"),
    key("asked", Object(ASKED), "options of the run"),
    key("continues", OrNull(&Text), "the unfinished run that it continues"),
    key("notes", List(&Text), "notes for the user"),
    key("loads", List(&Object(LOAD)), "load of each table, in the order of the job file"),
    key("compactions", List(&Object(COMPACTION)), "compactions of tables that were loaded"),
    key("exports", List(&Object(PART)), "parts of exports that were published or compared"),
    key("checks", List(&Object(CHECK)), "results of checks"),
    key("pushes", List(&Object(PUSH)), "tables that were pushed into Bigtable"),
    key(
        "damage",
        List(&Object(DAMAGE)),
        "what was left undone, because a file of the store is damaged or a catalog did not take it",
    ),
    key("attempts", List(&Object(ATTEMPT)), "failed attempts that were retried"),
    key("executors", List(&Object(EXECUTOR)), "who did the work of a run on other machines"),
    key("rejected", OrNull(&Text), "path of the rejected rows of its sources, inside the root"),
    key("rows_rejected", Integer, "rejected rows of its sources; a row that two tables rejected counts twice"),
    key("seconds", Named(&Number), "seconds of each stage, such as `load`"),
];

const ASKED: &[Key] = &[
    key("from", OrNull(&Day), "the first day"),
    key("to", OrNull(&Day), "the last day"),
    key("force", Truth, "unchanged and sealed days are published too"),
    key("rebuild", Truth, "tables are rebuilt from all inputs"),
    key("without", List(&Text), "missing inputs whose rows may be removed"),
    key("parts", OrNull(&List(&List(&Text))), "only these parts: export and label of each"),
    key("reread", List(&Text), "unchanged inputs that are read again"),
    key("only", List(&Text), "only days in these states, `failed` or `missing`; any if empty"),
    key("select", List(&Text), "only these tables and exports, such as `export:DAY`; all if empty"),
];

const DAMAGE: &[Key] =
    &[key("undone", Text, "what, such as `compact SENSOR`"), key("error", Text, "the file, and what to do")];

const LOAD: &[Key] = &[
    key("table", Text, "the table"),
    key("source", Text, "its source, or the tables that its query reads"),
    key("before", Integer, "version before the run; 0 if there was no table"),
    key("version", Integer, "version after the run"),
    key("inputs", List(&Object(INPUT)), "inputs whose state changed since the run before"),
    key("standing", Named(&Integer), "number of other inputs by state, such as `unchanged`"),
    key("rebuilt", List(&Text), "windows that were rebuilt"),
    key(
        "owed",
        List(&Object(OWED)),
        "windows that could not be rebuilt and stay as they were, now or since an earlier run",
    ),
    key("to_remove", List(&Text), "missing inputs that `--without` must name so that all of them can be rebuilt"),
    key("ssts", List(&Text), "ids of the SSTs that were written"),
    key("rejected", OrNull(&Text), "path of the rejected rows of its query, inside the root"),
    key("rows_read", Integer, "rows read of new and changed inputs"),
    key("rows_accepted", Integer, "rows encoded as cells"),
    key("rows_filtered", Integer, "rows that `where` left out"),
    key("rows_rejected", Integer, "rows that did not fit the columns or the layout"),
    key("more_lines_rejected", Integer, "lines of rejected rows beyond the first of each"),
    key(
        "rows_owed",
        Integer,
        "rows of windows that could not be rebuilt; read = accepted + filtered + rejected + owed",
    ),
    key("rows_settled", Integer, "rows that an earlier run owed and this one loaded; in no other count"),
    key("rows_hidden", Integer, "rows of which a delete hides cells, as it was made after their input came first"),
    key("rows_empty", Integer, "accepted rows without a value"),
    key("first_empty", OrNull(&Object(EMPTY_ROW)), "the first of them"),
    key("repeated_times", Integer, "local times that occur twice, of which the first was taken"),
    key("cut_times", Integer, "times cut to microseconds"),
    key("several_lines", OrNull(&Object(NOTED_ROWS)), "accepted records over several lines"),
    key("most_lines", Integer, "the most lines of one of them"),
    key("repeated_headers", OrNull(&Object(NOTED_ROWS)), "lines equal to the header, which were skipped"),
    key(
        "changed_headers",
        OrNull(&Object(NOTED_ROWS)),
        "headers inside files with other columns or another order, by which reading went on",
    ),
    key("bare_returns", OrNull(&Object(NOTED_ROWS)), "records with a carriage return that ends no line"),
    key("nan_values", Integer, "NaN in float columns of Parquet, Arrow and Avro, taken as null"),
    key("rows_written", Integer, "rows in the SSTs"),
    key("cells", Integer, "cells in the SSTs"),
    key("overwritten", Integer, "cells that a later one of the load replaced"),
    key("overwritten_changed", Integer, "those of them that had another value"),
    key("changed_in_row", OrNull(&Text), "key of a row with such a cell"),
    key("hidden_versions", Integer, "cells that `gc` hides at once, as newer ones of the load stand in their column"),
    key("hidden_in_row", OrNull(&Text), "key of a row with such a cell"),
    key("replaced", OrNull(&Object(REPLACED)), "cells of earlier loads that this one replaced"),
    key("large_rows", Integer, "rows over 100 MB"),
    key("largest_row", OrNull(&Object(LARGEST_ROW)), "the largest of them"),
    key("large_cells", Integer, "cells over 10 MB"),
    key("bytes_in", Integer, "bytes of inputs, as stored"),
    key("bytes_out", Integer, "bytes of SSTs"),
    key("bytes_spilled", Integer, "bytes of temporary files, because memory was full"),
    key("read_seconds", Number, "waiting for inputs, the mean over cores").stored_as("read"),
    key("parse_seconds", Number, "parsing and encoding, by the clock").stored_as("parse"),
    key("sort_seconds", Number, "ordering cells in memory").stored_as("sort"),
    key("spill_seconds", Number, "writing sorted cells to temporary files").stored_as("spill"),
    key("encode_seconds", Number, "building and compressing stripes, summed over windows").stored_as("encode"),
    key("write_seconds", Number, "writing and syncing SSTs beside other work, summed over files").stored_as("write"),
];

const INPUT: &[Key] = &[
    key("path", Text, "path or URL"),
    key("state", Text, "its state, such as `new` or `changed`"),
    key("same_as", OrNull(&Text), "the input whose content it has, or the name that it had"),
];

const NOTED_ROWS: &[Key] = &[
    key("count", Integer, "their number"),
    key("file", Text, "the input of the first"),
    key("line", Integer, "its line, from 1"),
];

const REPLACED: &[Key] = &[
    key("cells", Integer, "their number"),
    key("changed", Integer, "those with another value now"),
    key("in_row", OrNull(&Text), "key of a row with such a cell"),
    key("by", List(&Text), "new inputs where values changed: one or several of them replaced the cells"),
    key("of", List(&Text), "inputs of earlier loads with cells there"),
];

const EMPTY_ROW: &[Key] = &[key("file", Text, "the input"), key("line", Integer, "line or row, from 1")];

const LARGEST_ROW: &[Key] = &[key("key", Text, "its key"), key("bytes", Integer, "bytes of its cells")];

/// A compaction: `compact`, and of a run.
pub const COMPACTION: &[Key] = &[
    key("table", Text, "the table"),
    key("before", Integer, "version before"),
    key("version", Integer, "version after"),
    key("windows", Integer, "windows that were rewritten"),
    key("ssts_before", Integer, "SSTs removed"),
    key("ssts_after", Integer, "SSTs written"),
    key("bytes_before", Integer, "bytes of the removed SSTs"),
    key("bytes_after", Integer, "bytes of the written SSTs"),
    key("cells_removed", Integer, "cells removed: deleted, expired, or replaced"),
];

const PUSH: &[Key] = &[
    key("push", Text, "its name in the job file"),
    key("table", Text, "the table"),
    key("target", Text, "the table in Bigtable"),
    key("before", Integer, "the version that was pushed before; 0 if none was"),
    key("version", Integer, "the version that is there now"),
    key("counts", Object(PUSH_COUNTS), "what was written"),
    key("error", OrNull(&Text), "why it failed"),
];

const PUSH_COUNTS: &[Key] = &[
    key("rows", Integer, "rows written"),
    key("cells", Integer, "cells written"),
    key("deleted", Integer, "cells deleted"),
    key("requests", Integer, "requests sent"),
    key("repeated", Integer, "rows sent again after errors"),
];

const PART: &[Key] = &[
    key("export", Text, "the export"),
    key("label", Text, "label of the part, such as `2018-01-31`"),
    key("part", Text, "folder or file of the part, below `exports/`"),
    key("reason", Text, "why it was published"),
    key("state", Text, "`published`, `unchanged`, `empty`, `withdrawn`, `failed`, `checks` or `sealed`"),
    key("rows", Integer, "rows"),
    key("bytes", Integer, "bytes of its files"),
    key("error", OrNull(&Text), "why it was not published"),
];

const CHECK: &[Key] = &[
    key("check", Text, "name of the check"),
    key("on", Text, "the table or export"),
    key("label", Text, "label of the part, or the day"),
    key("rule", Text, "the rule, such as `not_null meter`"),
    key("severity", Text, "`error` or `warn`"),
    key("measured", Integer, "rows that broke the rule; for a rule on the number of rows, that number"),
    key("passed", Truth, "whether the rule held"),
];

const ATTEMPT: &[Key] = &[
    key("stage", Text, "the stage, such as `load`"),
    key("name", Text, "the table, the part, or the source"),
    key("attempt", Integer, "which attempt it was, from 1"),
    key("failed", Time, "when it failed"),
    key("error", Text, "why"),
    key("wait_seconds", Integer, "how long the run waited then").stored_as("wait"),
];

const EXECUTOR: &[Key] = &[
    key("executor", Text, "its name"),
    key("units", Named(&Integer), "units of work by kind: `load`, `publish`, `compact`"),
    key("rows", Integer, "rows that it read or published"),
    key("bytes", Integer, "bytes of inputs that it read"),
    key("seconds", Number, "how long its units took, summed over those at the same time"),
];
