//! `tidetable inspect`: the contents of an SST.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use tidetable_layout::schema::{QualifierKind, StoredSchema};
use tidetable_sstable::tools::Inspection;
use tidetable_sstable::{FileSource, Reader};

use crate::args::{Global, Inspect, Output};
use crate::error::CliError;
use crate::objects;
use crate::objects::write_object;
use crate::output::values::bytes;
use crate::output::{ResultRows, row, sentences};

/// Prints what an SST holds: its groups, stripes and streams, with the codec and size of each.
pub fn inspect(global: &Global, args: &Inspect) -> Result<(), CliError> {
    let path = args.file.display().to_string();
    let file = File::open(&args.file).and_then(FileSource::new);
    let file = file.map_err(|source| CliError::File { path: path.clone(), source })?;
    let reader = Reader::open(Arc::new(file)).map_err(|source| CliError::Sst { path: path.clone(), source })?;
    let inspection = reader.inspect().map_err(|source| CliError::Sst { path, source })?;

    let mut out = sentences(global.output);
    match global.output {
        Output::Json => write_object(&mut out, serde_json::to_value(&inspection)?, objects::INSPECTION)?,
        output => {
            if output == Output::Table {
                writeln!(out, "SST {}, format {}, {}", inspection.uid, inspection.version, bytes(inspection.bytes))?;
                writeln!(
                    out,
                    "index and schema {}, filter over {} {}, header and footer {}",
                    bytes(inspection.meta_bytes),
                    inspection.filter,
                    bytes(inspection.filter_bytes),
                    bytes(inspection.frame_bytes)
                )?;
                groups(&reader, &mut out)?;
            }
            stripes(&inspection).write(output, &mut out)?;
            chunks(&inspection).write(output, &mut out)?;
        }
    }

    out.flush()?;
    Ok(())
}

/// Names for the numbers of groups and columns.
fn groups(reader: &Reader, out: &mut impl Write) -> Result<(), CliError> {
    let schema = reader.schema();
    for (at, group) in schema.groups.iter().enumerate() {
        for number in 0..group.columns.len() {
            let name = column_name(schema, at, number).unwrap_or_default();
            writeln!(out, "group {at}, column {number}: {name}")?;
        }
    }
    Ok(())
}

/// Family and qualifier of a column of a group, and its field if several are packed into one cell.
pub(super) fn column_name(schema: &StoredSchema, group: usize, column: usize) -> Option<String> {
    let group = schema.groups.get(group)?;
    let column = group.columns.get(column)?;
    let own = String::from_utf8_lossy(&column.qualifier);
    let name = group.packed.as_ref().map_or(&column.qualifier, |packed| &packed.qualifier);
    let mut qualifier = match group.qualifier {
        QualifierKind::Constant => String::from_utf8_lossy(name).into_owned(),
        QualifierKind::Dynamic => "(a qualifier a record)".to_owned(),
    };
    if group.packed.is_some() {
        qualifier.push_str(&format!(", field {own}"));
    }
    Some(format!("{}:{qualifier}", column.family))
}

fn stripes(inspection: &Inspection) -> ResultRows {
    let mut rows = ResultRows::new(&["stripe", "offset", "bytes", "rows", "cells", "head", "keys", "shapes"]);
    for (at, stripe) in inspection.stripes.iter().enumerate() {
        let shapes: Vec<String> = stripe.patterns.iter().flatten().map(ToString::to_string).collect();
        rows.push(row![
            at,
            stripe.offset,
            stripe.bytes,
            stripe.rows,
            stripe.cells,
            stripe.head_bytes,
            stripe.key_bytes,
            shapes.join(",")
        ]);
    }
    rows
}

fn chunks(inspection: &Inspection) -> ResultRows {
    let mut rows = ResultRows::new(&["stripe", "stream", "codec", "pages", "setup", "bytes"]);
    for (at, stripe) in inspection.stripes.iter().enumerate() {
        for chunk in &stripe.chunks {
            rows.push(row![at, chunk.stream, chunk.codec, chunk.pages, chunk.setup_bytes, chunk.page_bytes]);
        }
    }
    rows
}
