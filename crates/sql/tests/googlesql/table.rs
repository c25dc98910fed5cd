//! The table that the documented queries ask; `tidetable-bigtable` asks the same.

use tidetable_layout::schema::{Encoding, Merge};
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{FieldType, TableSpec};
use tidetable_source::ColumnSpec as SourceColumn;

use super::world::{World, column};

/// Three devices; the first has three versions of each column, the last no temperature.
const CSV: &str = "\
device,ts,temp,n,note
dev#a,2024-03-01T00:00:00Z,20.5,1,red
dev#a,2024-03-01T01:00:00Z,21.5,-1,green
dev#a,2024-03-02T00:00:00Z,19,7,\"red,blue\"
dev#b,2024-03-01T06:30:00Z,8,-5,
dev#c,2024-03-03T12:00:00Z,,300,\"{\"\"k\"\": {\"\"v\"\": [1, \"\"two\"\"]}}\"
";

/// A store with the table `T`.
pub fn world() -> World {
    let columns = vec![
        SourceColumn::new("device", FieldType::Text),
        SourceColumn::new("ts", FieldType::Timestamp),
        SourceColumn::new("temp", FieldType::Text),
        SourceColumn::new("n", FieldType::Int64),
        SourceColumn::new("note", FieldType::Text),
    ];
    let number = ColumnSpec { encoding: Encoding::Int64, ..column("n", "{n}") };
    let family = |name: &str, columns| FamilySpec { name: name.to_owned(), columns, ..FamilySpec::default() };
    let spec = TableSpec {
        name: "T".to_owned(),
        row_key: "{device}".to_owned(),
        families: vec![
            family("m", vec![column("temp", "{temp}"), number]),
            family("info", vec![column("note", "{note}")]),
            FamilySpec { kind: Merge::Sum, ..family("totals", vec![column("n", "{n}")]) },
        ],
        ..TableSpec::default()
    };
    World::with_table(columns, spec, &[], CSV)
}
