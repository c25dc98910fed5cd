//! Which rows of a source are one series, whose times are in order.

use tidetable_layout::FieldType;
use tidetable_layout::outline::{PartContent, template_parts};
use tidetable_source::{Ambiguous, ColumnSpec, SourceSpec};

use crate::file::sections::declared_table::{Table, TableInput};

/// The columns of `source` whose values tell series apart: those that row keys and qualifiers of `tables` print, and that are no
/// times. A derived column, by name and SQL in `derive`, stands for those of which it is made. None unless a column needs them, see
/// [`Ambiguous::ByOrder`].
pub(crate) fn series(source: &SourceSpec, derive: &[(String, String)], tables: &[Table]) -> Vec<String> {
    if source.columns.iter().all(|column| column.ambiguous != Ambiguous::ByOrder) {
        return Vec::new();
    }
    let mut printed = Vec::new();
    for Table { spec, from, .. } in tables {
        if !matches!(from, TableInput::Source(name) if *name == source.name) {
            continue;
        }
        let qualifiers = spec.families.iter().flat_map(|family| &family.columns).map(|column| &column.qualifier);
        for part in qualifiers.chain([&spec.row_key]).flat_map(|template| template_parts(template)) {
            if let PartContent::Field { name, .. } = part.content {
                printed.push(name);
            }
        }
    }
    for (name, sql) in derive {
        if printed.contains(name) {
            let words = sql.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
            printed.extend(words.map(str::to_owned));
        }
    }

    let is_time = |column: &ColumnSpec| matches!(column.kind, FieldType::Timestamp | FieldType::Date);
    let columns = source.columns.iter().filter(|column| !is_time(column) && printed.contains(&column.name));
    columns.map(|column| column.name.clone()).collect()
}
