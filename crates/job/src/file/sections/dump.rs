//! Reads `layout` and `families` of a source of dumps: what the rows of a dump become.

use std::collections::BTreeMap;
use std::ops::Range;

use tidetable_source::{CELL_COLUMNS, ColumnSpec, Format};

use crate::file::fields::{Fields, Reader};
use crate::file::keys::ValueShape;
use crate::file::problem::{Mistake, unknown_column};

/// What a source says of its dumps.
#[derive(Debug, Clone, Default)]
pub(crate) struct DumpKeys {
    /// The table whose layout reads rows back, with the place of its name in the file.
    pub(crate) layout: Option<(String, Range<usize>)>,
    /// Columns that hold one family, each with the id of the family.
    pub(crate) families: BTreeMap<String, String>,
}

/// Reads the keys of the source `name`, whose files have `format`.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    name: &str,
    format: Option<Format>,
    columns: &[ColumnSpec],
) -> DumpKeys {
    let mut keys = DumpKeys::default();
    for key in ["layout", "families"].into_iter().filter(|key| fields.has(key)) {
        if !format.is_some_and(Format::is_dump) {
            reader.refuse(fields.key_at(key), Mistake::DumpOnly { key });
        }
    }
    if fields.has("layout") && fields.has("families") {
        reader.refuse(fields.key_at("families"), Mistake::LayoutAndFamilies);
    }

    keys.layout = fields.text(reader, "layout").map(|text| (text.owned(), text.at.clone()));
    for named in fields.named("families") {
        let at = named.value.span();
        let Some(family) = named.value.get_ref().as_str() else {
            let found = named.value.get_ref().type_str();
            reader.refuse(at, Mistake::WrongType { key: named.name.to_owned(), shape: ValueShape::Text, found });
            continue;
        };
        if !columns.is_empty() && columns.iter().all(|column| column.name != named.name) {
            let known = columns.iter().map(|column| column.name.clone()).collect();
            reader.refuse(named.at.clone(), unknown_column(named.name, name, known));
        }
        if let Some((first, _)) = keys.families.iter().find(|(_, known)| *known == family) {
            reader.refuse(at, Mistake::FamilyTwice { family: family.to_owned(), first: first.clone() });
        }
        if CELL_COLUMNS.contains(&named.name) {
            reader.refuse(named.at.clone(), Mistake::ColumnOfCells { column: named.name.to_owned() });
        }
        keys.families.insert(named.name.to_owned(), family.to_owned());
    }
    keys
}
