//! Reads `from`: the source or the query that a table is made from.

use std::path::Path;

use tidetable_layout::{FieldType, SourceSchema};
use tidetable_sql::{Declared, QueryShape, query_shape};

use crate::file::fields::{Fields, Reader};
use crate::file::keys::FROM;
use crate::file::problem::{Mistake, unknown_column};
use crate::file::sections::declared_table::{Table, TableInput};
use crate::file::sections::export;
use crate::file::sections::source::ReadSource;
use crate::file::words::nearest;

/// The input of the table and its columns. `None` if it is invalid.
pub(crate) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    sources: &[ReadSource],
    earlier: &[Table],
    folder: &Path,
) -> Option<(TableInput, SourceSchema)> {
    let known: Vec<String> = sources.iter().map(|source| source.spec.name.clone()).collect();
    if !fields.has("from") {
        match sources {
            [only] => return of_source(only),
            [] => reader.refuse(fields.at(), Mistake::NoSource),
            _ => reader.refuse(fields.at(), Mistake::WhichSource { known }),
        }
        return None;
    }

    let Some(name) = fields.text(reader, "from") else {
        let from = Fields::of_value(reader, &FROM, fields.value("from")?, fields.key_at("from"))?;
        return query(reader, &from, earlier, folder);
    };
    if let Some(source) = sources.iter().find(|source| source.spec.name == name.value) {
        return of_source(source);
    }

    let near = nearest(name.value, known.iter().map(String::as_str));
    reader.refuse(name.at.clone(), Mistake::UnknownSource { name: name.owned(), known, near });
    None
}

fn of_source(source: &ReadSource) -> Option<(TableInput, SourceSchema)> {
    Some((TableInput::Source(source.spec.name.clone()), source.schema.clone()?))
}

/// Reads `from = { query = { file = "x.sql" }, time = "ts" }`.
fn query(
    reader: &mut Reader<'_>,
    from: &Fields<'_>,
    earlier: &[Table],
    folder: &Path,
) -> Option<(TableInput, SourceSchema)> {
    let (sql, _, at) = export::query(reader, from, folder)?;
    let tables: Vec<Declared> = earlier.iter().map(|table| Declared::new(&table.spec.name, &table.layout)).collect();
    let shape = match futures::executor::block_on(query_shape(&tables, &sql)) {
        Ok(shape) => shape,
        Err(error) => {
            reader.refuse(at, Mistake::Query { error });
            return None;
        }
    };
    let time = time(reader, from, &shape, earlier)?;
    let schema = SourceSchema { fields: shape.columns.clone(), time };
    Some((TableInput::Query { sql, shape }, schema))
}

/// The column of the event time: the one named, the only timestamp, or the one named as in the tables it reads.
fn time(reader: &mut Reader<'_>, from: &Fields<'_>, shape: &QueryShape, earlier: &[Table]) -> Option<usize> {
    let position = |name: &str| shape.columns.iter().position(|column| column.name == name);
    if let Some(named) = from.text(reader, "time") {
        let Some(index) = position(named.value) else {
            let known: Vec<_> = shape.columns.iter().map(|column| column.name.clone()).collect();
            reader.refuse(named.at.clone(), unknown_column(named.value, "query", known));
            return None;
        };
        let kind = shape.columns.get(index)?.kind;
        if kind != FieldType::Timestamp {
            reader.refuse(named.at.clone(), Mistake::TimeKind { name: named.owned(), kind: kind.to_string() });
            return None;
        }
        return Some(index);
    }

    let times: Vec<usize> = (shape.columns.iter().enumerate())
        .filter(|(_, column)| column.kind == FieldType::Timestamp)
        .map(|(at, _)| at)
        .collect();
    if let [only] = times.as_slice() {
        return Some(*only);
    }

    let read = earlier.iter().filter(|table| shape.reads.contains(&table.spec.name)).map(|table| table.layout.source());
    let found =
        read.filter_map(|source| position(&source.fields.get(source.time)?.name)).find(|index| times.contains(index));
    if found.is_none() {
        reader.refuse(from.at(), Mistake::QueryTime);
    }
    found
}
