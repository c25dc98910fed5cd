//! Keys of the objects of commands that ask Bigtable.

use crate::output::key::Kind::{Bytes, Integer, List, Number, Object, OrNull, Text, Time, Truth};
use crate::output::key::{Key, key};

/// `push`.
pub const PUSHED: &[Key] = &[
    key("target", Text, "the table in Bigtable"),
    key("version", Integer, "the version that is pushed"),
    key("before", Integer, "the version that was pushed before; 0 if none was"),
    key("base", Text, "what the version is compared with"),
    key("creates_table", Truth, "whether the table is created"),
    key("families", List(&Text), "families that are created"),
    key("rows", Integer, "rows written"),
    key("cells", Integer, "cells written"),
    key("deleted", Integer, "cells deleted"),
    key("requests", Integer, "requests sent"),
    key("repeated", Integer, "rows sent again after errors"),
    key("seconds", Number, "how long it took"),
];

/// `pull`.
pub const PULLED: &[Key] = &[
    key("source", Text, "the table in Bigtable"),
    key("job", Text, "the job that loads the files"),
    key("directory", Text, "the directory of the files"),
    key("files", Integer, "files"),
    key("rows", Integer, "rows read"),
    key("cells", Integer, "cells read"),
    key("cells_written", Integer, "cells that are in the files"),
    key("cells_rejected", Integer, "cells that are not: those read are written or rejected"),
    key("records", Integer, "records written"),
    key("rejected", Integer, "rows that the layout cannot have written"),
    key("rejected_file", OrNull(&Text), "the file that lists them"),
    key("seconds", Number, "how long it took"),
];

/// `diff`.
pub const COMPARED_CELLS: &[Key] = &[
    key("target", Text, "the table in Bigtable"),
    key("version", Integer, "the version of the table here"),
    key("equal", Truth, "whether both hold the same cells"),
    key("rows_equal", Integer, "rows that are equal"),
    key("rows_differ", Integer, "rows on both sides that differ"),
    key("rows_here", Integer, "rows only here"),
    key("rows_there", Integer, "rows only in Bigtable"),
    key("cells_equal", Integer, "cells that are equal"),
    key("cells_differ", Integer, "cells with another value"),
    key("cells_here", Integer, "cells only here"),
    key("cells_there", Integer, "cells only in Bigtable"),
    key("cells_expired", Integer, "cells in Bigtable that had expired, and count for nothing"),
    key("families_differ", List(&Text), "families whose cells merge in another way, with both kinds"),
    key("first", List(&Object(DIFFERENT)), "the first differences, in key order"),
];

const DIFFERENT: &[Key] = &[
    key("key", Bytes, "row key"),
    key("family", Text, "family"),
    key("qualifier", Bytes, "qualifier"),
    key("timestamp", Time, "timestamp"),
    key("here", OrNull(&Bytes), "the value here; null for no cell"),
    key("there", OrNull(&Bytes), "the value in Bigtable; null for no cell"),
];
