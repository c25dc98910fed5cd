//! Schemas of `cells.T` and `rows.T`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use tidetable_layout::Layout;
use tidetable_layout::schema::Merge;

use crate::view_options::CellsShown;

/// Schema of `cells.T`: a row for each cell.
pub(crate) fn cells_schema() -> Schema {
    Schema::new(vec![
        Field::new("row_key", DataType::Binary, false),
        Field::new("family", DataType::Utf8, false),
        Field::new("qualifier", DataType::Binary, false),
        Field::new("timestamp", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        Field::new("value", DataType::Binary, false),
    ])
}

/// Name of the column of the row key.
const KEY: &str = "_key";

/// Indexes of the columns of `cells.T`, which are the same for all tables.
pub(crate) const CELL_KEY: usize = 0;
pub(crate) const CELL_FAMILY: usize = 1;
pub(crate) const CELL_QUALIFIER: usize = 2;
pub(crate) const CELL_TIMESTAMP: usize = 3;
pub(crate) const CELL_VALUE: usize = 4;

/// A family of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Family {
    pub(crate) name: String,
    /// Whether its cells are sums, minima or maxima: numbers, not bytes.
    pub(crate) is_number: bool,
}

impl Family {
    /// The type of the value of a cell.
    pub(crate) fn value_type(&self) -> DataType {
        if self.is_number { DataType::Int64 } else { DataType::Binary }
    }
}

/// What a view shows of rows, and in which families.
#[derive(Debug, Clone)]
pub(crate) struct RowView {
    /// Families by name; family `n` is column `n + 1`.
    pub(crate) families: Arc<Vec<Family>>,
    pub(crate) shown: CellsShown,
}

impl RowView {
    /// `_key`, and a non-null map for each family; a row without cells of a family has an empty map.
    pub(crate) fn schema(&self) -> Schema {
        let mut fields = vec![Field::new(KEY, DataType::Binary, false)];
        for family in self.families.iter() {
            let value = family.value_type();
            let value = if self.shown.with_history { DataType::List(cell_field(value)) } else { value };
            // No value is null, but DataFusion's map functions require nullable values.
            let value = Field::new("value", value, true);
            let entries = Fields::from(vec![Field::new("key", DataType::Binary, false), value]);
            let entries = Arc::new(Field::new("entries", DataType::Struct(entries), false));
            fields.push(Field::new(&family.name, DataType::Map(entries, false), false));
        }
        Schema::new(fields)
    }
}

/// The families of a table, sorted by name.
pub(crate) fn families(layout: &Layout) -> Arc<Vec<Family>> {
    let declared = &layout.spec().families;
    let stored = layout.stored().groups.iter().flat_map(|group| &group.columns);
    let names: BTreeSet<&str> =
        declared.iter().map(|family| family.name.as_str()).chain(stored.map(|column| column.family.as_str())).collect();

    let mut families = Vec::with_capacity(names.len());
    for name in names {
        let kind = declared.iter().find(|family| family.name == name).map(|family| family.kind);
        let is_number = matches!(kind, Some(Merge::Sum | Merge::Min | Merge::Max));
        families.push(Family { name: name.to_owned(), is_number });
    }
    Arc::new(families)
}

/// The item of a list of cells whose values have this type: the timestamp and the value of one.
pub(crate) fn cell_field(value: DataType) -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(cell_fields(value)), false))
}

/// The struct of one cell version: its timestamp and its value.
pub(crate) fn cell_fields(value: DataType) -> Fields {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Fields::from(vec![Field::new("timestamp", time, false), Field::new("value", value, false)])
}
