//! Keys of table manifests and SSTs.

use super::key::Kind::{Bytes, Day, Integer, List, Object, OrNull, Text, Time, Truth};
use super::key::{Key, key};

/// A version of a table: `describe`.
pub const MANIFEST: &[Key] = &[
    key("number", Integer, "the version"),
    key("commit", Text, "name of the commit"),
    key("born", Text, "name of the commit of version 1"),
    key("now", Time, "logical time of the commit"),
    key("table", Object(TABLE), "what the table is"),
    key("inputs", List(&Object(INPUT)), "inputs whose rows it holds, by sequence"),
    key("names", List(&Object(NAME)), "other names that were seen: copies of inputs, and inputs that were taken out"),
    key("windows", List(&Object(WINDOW)), "windows that hold cells"),
    key("drops", List(&Object(DROP)), "what was deleted, the oldest first"),
    key("collected", OrNull(&Time), "logical time of the latest compaction"),
    key("vacuumed", OrNull(&Time), "files older than this, of no version then, may be gone"),
];

const TABLE: &[Key] = &[
    key("name", Text, "its name"),
    key("job", Text, "the job it belongs to"),
    key("layout", Text, "fingerprint of the layout"),
    key("row_key", Text, "template of the row key"),
    key("window", Text, "unit of change: `hour`, `day`, `week`, `month` or `none`"),
    key("granularity", Text, "of timestamps: `millis` or `micros`"),
    key("upsert", Truth, "whether a newer event replaces its whole row"),
    key("unpivot", List(&Text), "source columns that become a metric and a value each"),
    key("families", List(&Object(FAMILY)), "column families"),
    key("columns", List(&Object(COLUMN)), "columns that it reads back as"),
    key("lost", List(&Object(LOST)), "source columns that the layout does not keep"),
];

const FAMILY: &[Key] = &[
    key("name", Text, "its name"),
    key("kind", Text, "what becomes of cells alike: `newest`, `sum`, `min`, `max` or `hll`"),
    key("gc", OrNull(&Text), "rule of garbage collection"),
    key("columns", List(&Object(LAID_OUT)), "its columns"),
];

const LAID_OUT: &[Key] = &[
    key("qualifier", Text, "template of the qualifier"),
    key("each", Truth, "whether it stands for each source column"),
    key("except", List(&Text), "source columns that are left out of that"),
    key("value", Text, "template of the value; empty for an empty cell, and for one of several values"),
    key("holds", Text, "`value`, `json` (an object an event), `message` (one an event) or `repeated` (one a row)"),
    key("message", OrNull(&Text), "the protobuf message"),
    key("encoding", Text, "`text`, `int64`, `float64`, `bytes` or `json`"),
    key("timestamp", OrNull(&Text), "column of the timestamp, or `0`; null for the time of the event"),
];

const COLUMN: &[Key] = &[key("name", Text, "its name"), key("type", Text, "its type in SQL")];

const LOST: &[Key] = &[key("column", Text, "the source column"), key("why", Text, "why it does not come back")];

const INPUT: &[Key] = &[
    key("sequence", Integer, "place among the inputs: of two cells alike the one of the greater wins"),
    key("path", Text, "path or URL"),
    key("size", Integer, "bytes as stored"),
    key("version", Text, "what tells that the file did not change"),
    key("hash", Text, "hash of the bytes as stored"),
    key("read", Integer, "rows read"),
    key("rejected", Integer, "rows rejected"),
    key("days", List(&Day), "UTC days of its cells"),
    key("windows", List(&Time), "beginnings of the windows of its cells"),
];

const NAME: &[Key] = &[
    key("sequence", Integer, "place among the inputs"),
    key("path", Text, "path or URL"),
    key("content", OrNull(&Object(CONTENT)), "what it held; null of an input that was taken out"),
];

const CONTENT: &[Key] = &[
    key("size", Integer, "bytes as stored"),
    key("version", Text, "what tells that the file did not change"),
    key("hash", Text, "hash of the bytes as stored"),
];

const WINDOW: &[Key] = &[
    key("start", Time, "when it begins"),
    key("days", List(&Object(CHANGED_DAY)), "its UTC days"),
    key("ssts", List(&Object(SST)), "its files, older data first"),
];

const CHANGED_DAY: &[Key] = &[key("day", Day, "the day"), key("version", Integer, "the last version that changed it")];

const SST: &[Key] = &[
    key("id", Text, "name without ending"),
    key("order", Integer, "of two cells alike the one of the greater order wins"),
    key("level", Integer, "0 from a load, more from compactions"),
    key("bytes", Integer, "bytes"),
    key("checksum", Text, "XXH3-128 of the file"),
    key("rows", Integer, "rows"),
    key("cells", Integer, "cells"),
    key("first_key", Bytes, "first row key"),
    key("last_key", Bytes, "last row key"),
    key("min_timestamp", OrNull(&Time), "least timestamp; null if all are 0"),
    key("max_timestamp", OrNull(&Time), "greatest timestamp"),
    key("joined", OrNull(&Object(JOINED)), "which windows share the file; null if none do"),
    key("largest", OrNull(&Object(LARGEST)), "bounds of what it holds; null if they are not known"),
    key("emptied", Truth, "whether it may hold rows without a cell"),
];

const JOINED: &[Key] = &[
    key("windows", List(&Time), "beginnings of the windows"),
    key("without", List(&Time), "beginnings of windows that were in it and are no more"),
];

const LARGEST: &[Key] = &[
    key("row", Integer, "no row has more bytes of cells"),
    key("sum", Integer, "no cell of a sum family is further from 0"),
];

const DROP: &[Key] = &[
    key("target", Object(TARGET), "what it hides"),
    key("sequence", Integer, "it holds for inputs of a lower sequence"),
    key("order", Integer, "it holds for SSTs of a lower order"),
    key("version", Integer, "the version it came with"),
    key("now", Time, "logical time of that version"),
];

const TARGET: &[Key] = &[
    key("kind", Text, "`prefix`, `row`, `family` or `column`"),
    key("prefix", OrNull(&Bytes), "first bytes of the row keys"),
    key("key", OrNull(&Bytes), "the row key"),
    key("family", OrNull(&Text), "the family"),
    key("qualifier", OrNull(&Bytes), "the qualifier"),
    key("times", OrNull(&Object(TIMES)), "only timestamps in this range"),
];

const TIMES: &[Key] = &[
    key("start", OrNull(&Time), "the first; null if there is no bound"),
    key("end", OrNull(&Time), "the one after the last; null if there is no bound"),
];

/// The layout of an SST: `inspect`.
pub const INSPECTION: &[Key] = &[
    key("version", Integer, "version of the format"),
    key("uid", Text, "identity, hexadecimal"),
    key("bytes", Integer, "bytes of the file"),
    key("filter", Text, "what the filter is over: `none`, `keys` or `prefixes`"),
    key("filter_bytes", Integer, "bytes of the filter"),
    key("meta_bytes", Integer, "bytes of schema, metadata and stripe table"),
    key("frame_bytes", Integer, "bytes of header and footer"),
    key("stripes", List(&Object(STRIPE)), "stripes in the order of keys"),
];

const STRIPE: &[Key] = &[
    key("offset", Integer, "first byte in the file"),
    key("bytes", Integer, "bytes"),
    key("rows", Integer, "rows"),
    key("records", List(&Integer), "records of each group"),
    key("cells", Integer, "cells"),
    key("head_bytes", Integer, "bytes of the head, with everything that is not pages"),
    key("key_bytes", Integer, "bytes of the row keys, in the head"),
    key("qualifier_bytes", List(&Integer), "bytes of the qualifiers of each group, in the head"),
    key("shapes", List(&OrNull(&Integer)), "distinct shapes of each group; null where records are stored one by one"),
    key("chunks", List(&Object(CHUNK)), "streams in the order of their pages"),
];

const CHUNK: &[Key] = &[
    key("stream", Text, "which stream"),
    key("codec", Text, "codec"),
    key("pages", Integer, "pages"),
    key("setup_bytes", Integer, "bytes of setup, in the head"),
    key("page_bytes", Integer, "bytes of its pages"),
];
