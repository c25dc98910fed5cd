//! Which rows of a source are one series, whose times are in order.

use std::collections::BTreeSet;

use tidetable_layout::FieldType;
use tidetable_layout::outline::{PartContent, template_parts};
use tidetable_source::{Ambiguous, SourceSpec};
use tidetable_sql::Derive;

use crate::file::sections::declared_table::{Table, TableInput};

/// The columns of `source` whose values tell series apart, unless it names them: those that row keys and qualifiers of each of its
/// `tables` print, and that are no times. A derived column stands for those that it is made of. None unless a column needs them,
/// see [`Ambiguous::ByOrder`].
pub(crate) fn series(source: &SourceSpec, derive: Option<&Derive>, tables: &[Table]) -> Vec<String> {
    if !source.series.is_empty() || source.columns.iter().all(|column| column.ambiguous != Ambiguous::ByOrder) {
        return source.series.clone();
    }
    let own = tables.iter().filter(|table| matches!(&table.from, TableInput::Source(name) if *name == source.name));
    // What one table has besides, such as a number of each message, is not to disturb another.
    let common = own.map(|table| printed(table, derive)).reduce(|one, other| &one & &other).unwrap_or_default();

    let columns = source.columns.iter().filter(|column| {
        !matches!(column.kind, FieldType::Timestamp | FieldType::Date) && common.contains(&column.name)
    });
    columns.map(|column| column.name.clone()).collect()
}

/// The columns of files that row keys and qualifiers of a table print.
fn printed(table: &Table, derive: Option<&Derive>) -> BTreeSet<String> {
    let columns = table.spec.families.iter().flat_map(|family| &family.columns);
    let templates = columns.map(|column| &column.qualifier).chain([&table.spec.row_key]);

    let mut printed = BTreeSet::new();
    for part in templates.flat_map(|template| template_parts(template)) {
        let PartContent::Field { name, .. } = part.content else { continue };
        let made_of = derive.map(|derive| derive.columns_of(&name)).unwrap_or_default();
        if made_of.is_empty() {
            printed.insert(name);
        } else {
            printed.extend(made_of);
        }
    }
    printed
}
