//! Keys of what layouts are measured by.

use crate::output::key::Kind::{Bytes, Integer, List, Number, Object, OrNull, Text, Time, Truth};
use crate::output::key::{Key, key};

/// `compare`.
pub const COMPARED: &[Key] = &[
    key("layout", Text, "the table"),
    key("sample", OrNull(&Number), "the part of the entities that was measured, 0 to 1; null if all were"),
    key("factor", Number, "by what to multiply counts of a sample to get those of all rows; 1 without a sample"),
    key("source_rows", Integer, "source rows accepted"),
    key("rejected", Integer, "source rows rejected"),
    key("rows", Integer, "rows"),
    key("cells", Integer, "cells"),
    key("bytes_as_cells", Integer, "bytes of key, family, qualifier, value and 8 of timestamp, of each cell"),
    key("bytes", Object(PARTS), "the same by part"),
    key(
        "bytes_written",
        Integer,
        "bytes as cells that writing row after row sends: a message of a whole row is written again for each",
    ),
    key("packed", Object(PACKED), "the same, compressed in blocks of 64 KiB"),
    key("cells_a_row", Object(QUANTILES), "cells a row, by nearest rank"),
    key("bytes_a_row", Object(QUANTILES), "bytes as cells a row, by nearest rank"),
    key("largest_row", Object(LARGEST), "the row of the most bytes"),
    key("versions_a_column", Object(QUANTILES), "versions a column of a row, by nearest rank"),
    key("own_bytes", Integer, "bytes of the files of this program that hold it"),
    key("duplication", Number, "bytes as cells, as a multiple of those of the layout that has the fewest"),
    key("overwritten_rows", Integer, "source rows of which a later source row replaced a cell"),
    key("overwritten_cells", Integer, "these cells"),
    key("first", OrNull(&Time), "the first second written"),
    key("last", OrNull(&Time), "the last second written"),
    key("slice_seconds", Integer, "width of a slice of time"),
    key("top_share_10", Object(SHARES), "share of a slice's source rows in the fullest of 10 ranges of known keys"),
    key("top_share_100", Object(SHARES), "the same of 100 ranges"),
    key("hindsight_share_10", Object(SHARES), "the same of 10 ranges cut best for the slice"),
    key("hottest_row_share", Object(SHARES), "share of a slice's source rows that one row takes"),
    key("hottest_row", OrNull(&Object(HOTTEST)), "the row of the greatest such share"),
    key("travel", Number, "mean place, 0 to 1, of the writes of the last tenth of the slices less that of the first"),
    key("patterns", List(&Text), "`sequential`, `hot row`, `hot range`, `burst` or `even`"),
    key("findings", List(&Object(LINTED)), "rules of schema design that it breaks, as of `lint --data`"),
    key("queries", List(&Object(ANSWERS)), "the queries of `--queries`; empty without it"),
    key("cost", OrNull(&Object(COST)), "what the layout costs; null without `--queries`"),
];

const LINTED: &[Key] = &[
    key("rule", Text, "the rule"),
    key("severity", Text, "`error`, `warn` or `info`"),
    key("message", Text, "what is wrong"),
    key("keys", List(&Text), "row keys or values that show it"),
];

const ANSWERS: &[Key] = &[
    key("query", Text, "the query"),
    key("per_second", OrNull(&Number), "how often it is asked"),
    key("need", OrNull(&Text), "`point`, `range` or `scan`: the worst of the draws; null if the layout cannot answer"),
    key("draws", OrNull(&Integer), "draws, each of which is counted"),
    key("ranges", OrNull(&Object(SEEN)), "key ranges"),
    key("rows_seen", OrNull(&Object(SEEN)), "rows in them"),
    key("cells_seen", OrNull(&Object(SEEN)), "cells of these rows"),
    key("bytes_seen", OrNull(&Object(SEEN)), "bytes of these cells"),
    key("records_returned", OrNull(&Object(SEEN)), "records that match"),
    key("values_returned", OrNull(&Object(SEEN)), "values of the wanted columns in them"),
    key("bytes_returned", OrNull(&Object(SEEN)), "bytes of these values as text"),
    key("problem", OrNull(&Text), "what is wrong with the answer, or why there is none"),
];

const SEEN: &[Key] = &[
    key("p50", Integer, "the median of the draws"),
    key("p95", Integer, "the 95th of 100"),
    key("mean", Number, "the mean"),
];

const COST: &[Key] = &[
    key("place", Integer, "from 1, the best"),
    key("pareto", Truth, "whether no other layout costs less and lets queries see fewer bytes"),
    key(
        "robust",
        Number,
        "part of the changed workloads (a weight times 10 or 0, writes or time kept times 10) in which it is the best",
    ),
    key("unservable", OrNull(&Text), "why no number of nodes serves it"),
    key("month_low", Number, "a month of all clusters, packed by zstd"),
    key("month_high", Number, "the same, packed by Snappy"),
    key("busy_month", Number, "the price of the part of the nodes that is busy, with storage packed by Snappy"),
    key("nodes_low", Number, "nodes of a cluster, packed by zstd"),
    key("nodes_high", Number, "the same, packed by Snappy"),
    key("write_kib_per_second", Number, "KiB written a second, rows below 1 KiB as 1 KiB"),
    key(
        "first_kib_per_second",
        Number,
        "KiB read a second as first KiB of a key range, with those of messages that are written again",
    ),
    key("following_mb_per_second", Number, "megabytes read a second behind these, rows below 1 KiB as 1 KiB"),
    key("read_kib_per_second", Number, "the same as `first_kib_per_second`: its name before"),
    key("scan_mb_per_second", Number, "the same as `following_mb_per_second`: its name before"),
    key("write_load", Number, "nodes that writes take"),
    key("read_load", Number, "nodes that queries take"),
    key("stored_gib_low", Number, "GiB stored, packed by zstd"),
    key("stored_gib_high", Number, "the same, packed by Snappy"),
    key("rows_seen_per_second", Number, "rows that queries see a second"),
    key("bytes_seen_per_second", Number, "bytes that queries see a second"),
    key("writes_per_second", Number, "source rows written a second"),
    key("kept_rows", Number, "source rows that are kept"),
    key("scale_factor", Number, "the same, as a multiple of the rows that were measured"),
    key("currency", Text, "of the prices"),
    key("prices_date", Text, "when they were the list prices"),
    key("region", Text, "where"),
];

const PARTS: &[Key] = &[
    key("key", Integer, "row keys, once a cell"),
    key("family", Integer, "names of families"),
    key("qualifier", Integer, "qualifiers"),
    key("value", Integer, "values"),
    key("timestamp", Integer, "timestamps, 8 a cell"),
];

const PACKED: &[Key] = &[key("snappy", Integer, "by Snappy"), key("zstd", Integer, "by zstd at level 1")];

const QUANTILES: &[Key] =
    &[key("p50", Integer, "the median"), key("p99", Integer, "the 99th of 100"), key("max", Integer, "the greatest")];

const LARGEST: &[Key] =
    &[key("key", Bytes, "its key"), key("cells", Integer, "its cells"), key("bytes", Integer, "its bytes as cells")];

const SHARES: &[Key] = &[
    key("p50", Number, "the median of the slices with writes"),
    key("p95", Number, "the 95th of 100"),
    key("max", Number, "the greatest"),
    key("mean", Number, "the mean"),
];

const HOTTEST: &[Key] = &[
    key("key", Bytes, "its key"),
    key("time", Time, "start of the slice"),
    key("share", Number, "its share of the slice"),
    key("rows", Integer, "its source rows in the slice"),
];

/// `heatmap`.
pub const HEATMAP: &[Key] = &[
    key("table", Text, "the table"),
    key("metric", Text, "`writes`, `cells`, `bytes` or `reads:QUERY`"),
    key("draws", OrNull(&Integer), "draws of the query; null of other metrics"),
    key("rows", Integer, "rows on the map"),
    key("start", Time, "start of the first slice"),
    key("slice_seconds", Integer, "width of a slice"),
    key("total", Integer, "sum of all counts"),
    key("patterns", List(&Text), "patterns of the writes, as of `compare`"),
    key("top_share_10", Object(SHARES), "as of `compare`"),
    key("travel", Number, "as of `compare`"),
    key("buckets", List(&Bytes), "first row key of each bucket, ascending"),
    key("counts", List(&List(&Integer)), "for each slice, the count of each bucket"),
];

/// `advise`.
pub const ADVICE: &[Key] = &[
    key("layouts", List(&Text), "names of the tables: one, or two that answer together"),
    key("row_keys", List(&Text), "their row keys"),
    key(
        "place",
        Integer,
        "among single tables, from 1, or from 2 if none is served and a pair is; 1 for pairs, listed only if they cost less than any table",
    ),
    key("robust", OrNull(&Number), "as of `compare`; null for pairs"),
    key("month_low", OrNull(&Number), "a month of all clusters, packed by zstd; null for pairs"),
    key("month_high", Number, "the same, packed by Snappy"),
    key("nodes_high", Number, "nodes of a cluster"),
    key("busy_month", OrNull(&Number), "as of `compare`; null for pairs"),
    key("rows_seen_per_second", Number, "rows that queries see a second"),
    key("bytes_seen_per_second", Number, "bytes that queries see a second"),
    key("duplication", Number, "bytes stored, as a multiple of those of the smaller table that holds all rows"),
    key("unservable", OrNull(&Text), "why no number of nodes serves it"),
    key("currency", Text, "of the prices"),
    key("prices_date", Text, "when they were the list prices"),
    key("region", Text, "where"),
];
