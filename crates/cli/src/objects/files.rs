//! Keys of table manifests and SSTs.

use crate::output::key::Kind::{Bytes, Day, Integer, List, Object, OrNull, Text, Time, Truth};
use crate::output::key::{Key, key};

/// A version of a table: `describe`.
pub const MANIFEST: &[Key] = &[
    key("number", Integer, "the version"),
    key("commit", Text, "name of the commit"),
    key("born", Text, "name of the commit of version 1"),
    key("now", Time, "logical time of the commit"),
    key("table", Object(TABLE), "properties of the table"),
    key("inputs", List(&Object(INPUT)), "inputs whose rows it holds, by sequence"),
    key("names", List(&Object(NAME)), "other known names: copies of inputs, and removed inputs"),
    key("windows", List(&Object(WINDOW)), "windows that hold cells"),
    key("drops", List(&Object(DROP)), "tombstones, oldest first"),
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
    key("columns", List(&Object(COLUMN)), "columns of its records"),
    key("lost", List(&Object(LOST)), "source columns that the layout does not keep"),
];

const FAMILY: &[Key] = &[
    key("name", Text, "its name"),
    key("kind", Text, "how equal cells merge: `newest`, `sum`, `min`, `max` or `hll`"),
    key("gc", OrNull(&Text), "garbage-collection rule"),
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

const LOST: &[Key] = &[key("column", Text, "the source column"), key("why", Text, "why it is lost")];

const INPUT: &[Key] = &[
    key("sequence", Integer, "input sequence number: of two equal cells the one with the greater number wins"),
    key("path", Text, "path or URL"),
    key("size", Integer, "bytes as stored"),
    key("version", Text, "stamp that changes with the file"),
    key("hash", Text, "hash of the bytes as stored"),
    key("read", Integer, "rows read"),
    key("rejected", Integer, "rows rejected"),
    key("days", List(&Day), "UTC days of its cells"),
    key("windows", List(&Time), "starts of the windows of its cells"),
];

const NAME: &[Key] = &[
    key("sequence", Integer, "input sequence number"),
    key("path", Text, "path or URL"),
    key("content", OrNull(&Object(CONTENT)), "its content; null for a removed input"),
];

const CONTENT: &[Key] = &[
    key("size", Integer, "bytes as stored"),
    key("version", Text, "stamp that changes with the file"),
    key("hash", Text, "hash of the bytes as stored"),
];

const WINDOW: &[Key] = &[
    key("start", Time, "start of the window"),
    key("days", List(&Object(CHANGED_DAY)), "its UTC days"),
    key("ssts", List(&Object(SST)), "its files, older data first"),
];

const CHANGED_DAY: &[Key] = &[key("day", Day, "the day"), key("version", Integer, "the last version that changed it")];

const SST: &[Key] = &[
    key("id", Text, "name without ending"),
    key("order", Integer, "sequence number: of two equal cells the one with the greater number wins"),
    key("level", Integer, "0 from a load, more from compactions"),
    key("bytes", Integer, "bytes"),
    key("checksum", Text, "XXH3-128 of the file"),
    key("rows", Integer, "rows"),
    key("cells", Integer, "cells"),
    key("first_key", Bytes, "first row key"),
    key("last_key", Bytes, "last row key"),
    key("min_timestamp", OrNull(&Time), "least timestamp; null if all are 0"),
    key("max_timestamp", OrNull(&Time), "greatest timestamp"),
    key("joined", OrNull(&Object(JOINED)), "windows that share the file; null if none do"),
    key("largest", OrNull(&Object(LARGEST)), "bounds of its contents; null if unknown"),
    key("emptied", Truth, "whether it may hold rows without a cell"),
];

const JOINED: &[Key] = &[
    key("windows", List(&Time), "starts of the windows"),
    key("without", List(&Time), "starts of windows that have left it"),
];

const LARGEST: &[Key] = &[
    key("row", Integer, "largest bytes of cells of a row, at most"),
    key("sum", Integer, "largest absolute value of a cell of a sum family, at most"),
];

const DROP: &[Key] = &[
    key("target", Object(TARGET), "what it hides"),
    key("sequence", Integer, "applies to inputs with a lower sequence number"),
    key("order", Integer, "applies to SSTs with a lower sequence number"),
    key("version", Integer, "the version that added it"),
    key("now", Time, "logical time of that version"),
];

const TARGET: &[Key] = &[
    key("kind", Text, "`prefix`, `row`, `family` or `column`"),
    key("prefix", OrNull(&Bytes), "prefix of the row keys"),
    key("key", OrNull(&Bytes), "the row key"),
    key("family", OrNull(&Text), "the family"),
    key("qualifier", OrNull(&Bytes), "the qualifier"),
    key("times", OrNull(&Object(TIMES)), "only timestamps in this range"),
];

const TIMES: &[Key] = &[
    key("start", OrNull(&Time), "inclusive start; null if unbounded"),
    key("end", OrNull(&Time), "exclusive end; null if unbounded"),
];

/// The layout of an SST: `inspect`.
pub const INSPECTION: &[Key] = &[
    key("version", Integer, "version of the format"),
    key("uid", Text, "identity, hexadecimal"),
    key("bytes", Integer, "bytes of the file"),
    key("filter", Text, "what the key filter contains: `none`, `keys` or `prefixes`"),
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
    key("shapes", List(&OrNull(&Integer)), "distinct row patterns of each group; null if stored record by record"),
    key("chunks", List(&Object(CHUNK)), "streams in the order of their pages"),
];

const CHUNK: &[Key] = &[
    key("stream", Text, "which stream"),
    key("codec", Text, "codec"),
    key("pages", Integer, "pages"),
    key("setup_bytes", Integer, "bytes of setup, in the head"),
    key("page_bytes", Integer, "bytes of its pages"),
];
