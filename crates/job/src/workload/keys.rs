//! Every key of a file of queries.

use crate::file::keys::{Section, ValueShape, key};

pub(super) static WORKLOAD: Section = Section {
    noun: "file of queries",
    keys: &[
        key("goal", ValueShape::Text)
            .says("What nodes are sized for: `latency` (60 % of their CPU) or `throughput` (90 %)."),
        key("clusters", ValueShape::Whole).says("Clusters that hold the data; 1 by default."),
        key("keep", ValueShape::Text)
            .says("How long data is kept, such as `365d`; by default as long as what was measured."),
        key("scale", ValueShape::Table).says("How much more there will be than what was measured."),
        key("query", ValueShape::Table).says("Queries, by name."),
    ],
};

pub(super) static SCALE: Section = Section {
    noun: "`scale`",
    keys: &[
        key("entities", ValueShape::Table).says("How many different values a column will have, by column."),
        key("every", ValueShape::Text).says("Time between two readings of an entity, such as `15m`."),
        key("rows_per_second", ValueShape::Limit).says("Source rows a second."),
    ],
};

pub(super) static QUERY: Section = Section {
    noun: "query",
    keys: &[
        key("per_second", ValueShape::Limit).says("How often it is asked; 0 by default."),
        key("where", ValueShape::Text)
            .says("SQL predicate over the columns of the source, with `$name` for parameters."),
        key("params", ValueShape::Table).says("Where the parameters come from: `{ from = \"data\" }`, or lists."),
        key("columns", ValueShape::Texts).says("The columns it wants; all by default."),
        key("order", ValueShape::Text).says("`newest`: the newest first."),
        key("limit", ValueShape::Whole).says("Most records it wants."),
        key("atomic", ValueShape::Flag).says("Whether it must see the rows it reads at one moment."),
        key("aggregate", ValueShape::Text).says("`sum`, `min` or `max`, if it wants nothing but this of the values."),
        key("must", ValueShape::Text).says("The worst it may need: `point`, `range` or `scan`."),
    ],
};

pub(super) static DRAWS: Section = Section {
    noun: "`params`",
    keys: &[
        key("from", ValueShape::Text).says("`data`: drawn from the rows that are measured."),
        key("draw", ValueShape::Whole).says("How many to draw; 200 by default."),
        key("seed", ValueShape::Whole).says("Another number draws others."),
        key("age", ValueShape::Text).says("Only of rows at most this much older than the newest, such as `7d`."),
    ],
};
