//! Schemas of `cells.T` and `rows.T`.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use tidetable_layout::Layout;

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

/// What a view shows of rows, and in which families.
#[derive(Debug, Clone)]
pub(crate) struct RowView {
    /// Family names in order; family `n` is column `n + 1`.
    pub(crate) families: Arc<Vec<String>>,
    pub(crate) shown: CellsShown,
}

impl RowView {
    /// `_key`, and a non-null map for each family; a row without cells of a family has an empty map.
    pub(crate) fn schema(&self) -> Schema {
        let value = if self.shown.with_history { DataType::List(cell_field()) } else { DataType::Binary };
        // No value is null, but DataFusion's map functions require nullable values.
        let value = Field::new("value", value, true);
        let entries = Fields::from(vec![Field::new("key", DataType::Binary, false), value]);
        let entries = Arc::new(Field::new("entries", DataType::Struct(entries), false));

        let mut fields = vec![Field::new(KEY, DataType::Binary, false)];
        for family in self.families.iter() {
            fields.push(Field::new(family, DataType::Map(Arc::clone(&entries), false), false));
        }
        Schema::new(fields)
    }
}

/// The names of the families of a table, sorted.
pub(crate) fn families(layout: &Layout) -> Arc<Vec<String>> {
    let declared = layout.spec().families.iter().map(|family| family.name.as_str());
    let stored = layout.stored().groups.iter().flat_map(|group| &group.columns);
    let families: BTreeSet<&str> = declared.chain(stored.map(|column| column.family.as_str())).collect();
    Arc::new(families.into_iter().map(str::to_owned).collect())
}

/// The item of a list of cells: the timestamp and the value of one.
pub(crate) fn cell_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Struct(cell_fields()), false))
}

/// The struct of one cell version: its timestamp and its value.
pub(crate) fn cell_fields() -> Fields {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    Fields::from(vec![Field::new("timestamp", time, false), Field::new("value", DataType::Binary, false)])
}
