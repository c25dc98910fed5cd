//! Proposes a job for a table of Bigtable, from a sample of its rows: a layout that reads their keys, qualifiers and values.

mod columns;
mod key;
mod sample;
mod shape;

use std::collections::{BTreeMap, BTreeSet};

use tidetable_job::scaffold::quoted;
use tidetable_layout::schema::Merge;

use crate::client::{Row, SourceFamily, SourceTable, TableName};
use crate::error::{BigtableError, Result};
use crate::propose::columns::{ConstantColumn, FamilyShape, Others, ValueShape, family_shapes};
use crate::propose::key::{KeyShape, key_shape};
use crate::propose::shape::Shape;

pub use crate::propose::sample::sample;

/// What a column of a job file has besides its value if its cells are at timestamp 0.
const AT_ZERO: &str = ", timestamp = 0";

/// A job that is proposed for a table of Bigtable: its file, and what to know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableProposal {
    /// The text of its job file.
    pub text: String,
    /// The name of the table in the job: the id that it has in Bigtable.
    pub table: String,
    /// The row key of the table.
    pub row_key: String,
    /// The directory of what is pulled, relative to the project.
    pub directory: String,
    /// Notes for the user, a sentence each.
    pub notes: Vec<String>,
}

/// Proposes a job called `job` for `rows` of `table`, of which the service says `schema`.
///
/// # Errors
/// [`BigtableError::NoProposal`] if row keys are not text.
pub fn propose(job: &str, table: &TableName, rows: &[Row], schema: &SourceTable) -> Result<TableProposal> {
    let mut key = key_shape(rows).ok_or_else(|| BigtableError::NoProposal {
        source_table: table.to_string(),
        reason: "row keys hold bytes that are no text",
    })?;
    let known: BTreeMap<&str, &SourceFamily> =
        schema.families.iter().map(|family| (family.name.as_str(), family)).collect();
    let shapes = family_shapes(rows, |name| known.get(name).map(|family| family.kind).unwrap_or_default());
    // A record at timestamp 0 would print its own time into the key.
    key.has_cell_time &= !shapes.values().any(|shape| shape.others.are_at_zero());

    // Without any other timestamp, 0 is the time of all records.
    let has_times = rows.iter().flat_map(|row| &row.cells).any(|cell| cell.timestamp > 0);
    let mut draft = Draft { table: quoted(table.id()), has_times, is_micros: schema.is_micros, ..Draft::default() };
    let row_key = draft.row_key(&key, rows);
    for (name, shape) in &shapes {
        let family = known.get(name.as_str());
        let rule = family.and_then(|family| family.rule.as_deref());
        draft.family(name, shape, family.map(|family| family.kind).unwrap_or_default(), rule);
    }

    // Cells of two windows that are equal have no order, so rows with timestamp 0 must lie in one.
    draft.has_one_window = draft.has_zeros && !key.shows_day();
    for family in schema.families.iter().filter(|family| !shapes.contains_key(&family.name)) {
        draft.notes.push(format!("family {} has no cells in the sample, so it has no columns here", family.name));
    }
    draft.notes.push(format!("found in a sample of {} rows", rows.len()));

    let directory = format!("pulled/{job}");
    Ok(TableProposal {
        text: draft.text(job, table, &directory, &row_key),
        table: table.id().to_owned(),
        row_key,
        directory,
        notes: draft.notes,
    })
}

/// A job file in the making.
#[derive(Debug, Default)]
struct Draft {
    /// Columns of the source, with type and comment.
    fields: Vec<(String, String, String)>,
    names: BTreeSet<String>,
    families: String,
    notes: Vec<String>,
    /// The table, as a key of TOML.
    table: String,
    /// Whether some cell has a timestamp other than 0.
    has_times: bool,
    /// Whether timestamps are microseconds.
    is_micros: bool,
    /// Whether a column whose newest cell counts has timestamp 0 beside others.
    has_zeros: bool,
    /// Whether all rows lie in one window.
    has_one_window: bool,
}

impl Draft {
    /// A name that no column has: `wanted`, or that with a number.
    fn name(&mut self, wanted: &str) -> String {
        let base: String =
            wanted.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = if base.starts_with(|c: char| c.is_ascii_alphabetic()) { base } else { format!("c_{base}") };
        let mut name = base.clone();
        let mut number = 2;
        while name == "ts" || !self.names.insert(name.clone()) {
            name = format!("{base}_{number}");
            number += 1;
        }
        name
    }

    fn field(&mut self, wanted: &str, kind: &str, comment: &str) -> String {
        let name = self.name(wanted);
        self.fields.push((name.clone(), kind.to_owned(), comment.to_owned()));
        name
    }

    /// The template of the row key, whose columns become fields of the source.
    fn row_key(&mut self, key: &KeyShape, rows: &[Row]) -> String {
        let mut parts = Vec::new();
        for (at, part) in key.parts.iter().enumerate() {
            let wanted = format!("key{}", at + 1);

            parts.push(match part {
                Shape::Time(form) if key.has_cell_time => format!("{{ts:{form}}}"),
                Shape::Time(form) => {
                    self.notes.push(format!(
                        "part {} of the row key looks like a time (`{form}`), but not the time of the cells, so it stays text",
                        at + 1
                    ));
                    format!("{{{}}}", self.field(&wanted, "text", &format!("a time as `{form}`")))
                }
                Shape::Integer(Some(width)) => {
                    format!("{{{}:0{width}}}", self.field(&wanted, "uint64", &format!("zero-padded to {width} digits")))
                }
                Shape::Integer(None) => format!("{{{}}}", self.field(&wanted, "uint64", "not padded")),
                Shape::Padded(width) => {
                    format!("{{{}:<{width}}}", self.field(&wanted, "text", &format!("padded to {width} bytes")))
                }
                Shape::Constant(text) if key.parts.len() > 1 && !text.contains(['{', '}']) => text.clone(),
                Shape::Constant(_) | Shape::Text => {
                    let example = rows.first().map(|row| String::from_utf8_lossy(&row.key).into_owned());
                    let comment = example.map(|key| format!("as in `{key}`")).unwrap_or_default();
                    format!("{{{}}}", self.field(&wanted, "text", &comment))
                }
            });
        }
        parts.join(&key.delimiter.map(String::from).unwrap_or_default())
    }

    fn family(&mut self, name: &str, shape: &FamilyShape, kind: Merge, rule: Option<&str>) {
        let mut lines = Vec::new();
        let has_times = self.has_times;
        let has_zeros = shape.constants.iter().any(|column| column.is_zero) || shape.others.are_at_zero();
        let others_at = if shape.others.are_at_zero() && has_times { AT_ZERO } else { "" };
        self.has_zeros |= has_zeros && has_times && kind.is_newest();

        for ConstantColumn { qualifier, value, is_zero } in &shape.constants {
            let value = self.value(qualifier, *value);
            let at = if *is_zero && has_times { AT_ZERO } else { "" };
            lines.push(format!("{{ qualifier = {}, {value}{at} }}", quoted(&braces(qualifier))));
        }
        match &shape.others {
            Others::Times(form, value) => {
                let value = self.value(&format!("{name}_value"), *value);
                lines.push(format!("{{ qualifier = \"{{ts:{form}}}\", {value} }}"));
            }
            Others::Names(value, _) => {
                let qualifier = self.field(&format!("{name}_name"), "text", "the qualifier");
                let value = self.value(&format!("{name}_value"), *value);
                lines.push(format!("{{ qualifier = \"{{{qualifier}}}\", {value}{others_at} }}"));
                self.notes.push(format!("qualifiers of family {name} hold data: they become the column {qualifier}"));
            }
            Others::Bytes(value, _) => {
                let qualifier = self.field(&format!("{name}_name"), "text", "the qualifier, in hexadecimal here");
                let value = self.value(&format!("{name}_value"), *value);
                lines.push(format!("{{ qualifier = \"{{{qualifier}:hex}}\", {value}{others_at} }}"));
                self.notes.push(format!("qualifiers of family {name} are bytes: they become the column {qualifier}"));
            }
            Others::None => {}
        }

        self.families.push_str(&format!("\n[tables.{}.families.{}]\n", self.table, quoted(name)));
        if !kind.is_newest() {
            self.families.push_str(&format!("kind = \"{}\"\n", kind.word()));
        }
        if let Some(rule) = rule {
            self.families.push_str(&format!("gc = {}\n", quoted(rule)));
        }
        self.families.push_str(&format!("columns = [\n  {},\n]\n", lines.join(",\n  ")));
    }

    /// The value of a column, as a job file has it.
    fn value(&mut self, wanted: &str, shape: ValueShape) -> String {
        match shape {
            ValueShape::Empty => "value = \"\"".to_owned(),
            ValueShape::Text(kind) => format!("value = \"{{{}}}\"", self.field(wanted, &kind.to_string(), "")),
            ValueShape::Integer => {
                format!(
                    "value = \"{{{}}}\", encoding = \"int64\"",
                    self.field(wanted, "int64", "eight bytes, big-endian")
                )
            }
            ValueShape::Sketch => {
                format!("value = \"{{{}:hex}}\"", self.field(wanted, "text", "a sketch, in hexadecimal here"))
            }
            ValueShape::Blob => {
                let field = self.field(wanted, "text", "bytes, in hexadecimal here");
                self.notes
                    .push(format!("the values of {wanted} are bytes: a protobuf message can be declared for them"));
                format!("value = \"{{{field}:hex}}\"")
            }
        }
    }

    fn text(&self, job: &str, table: &TableName, directory: &str, row_key: &str) -> String {
        let mut text = format!(
            "name = {}\ndescription = {}\n\n",
            quoted(job),
            quoted(&format!("Proposed by `tidetable new` for {table}"))
        );
        for note in &self.notes {
            text.push_str(&format!("# {note}\n"));
        }

        text.push_str(&format!(
            "[sources.pulled]\nfiles = [{}] # `tidetable pull {table} --into {job}` writes them\ntime = \"ts\"\n\n\
             [sources.pulled.columns]\nts = \"timestamp\" # of the cells\n",
            quoted(&format!("{directory}/*.parquet"))
        ));
        for (name, kind, comment) in &self.fields {
            let comment = if comment.is_empty() { String::new() } else { format!(" # {comment}") };
            text.push_str(&format!("{name} = {}{comment}\n", quoted(kind)));
        }

        text.push_str(&format!("\n[tables.{}]\nfrom = \"pulled\"\nrow_key = {}\n", self.table, quoted(row_key)));
        if self.has_one_window {
            text.push_str("window = \"none\" # cells with timestamp 0 are of all times\n");
        }
        if self.is_micros {
            text.push_str("granularity = \"micros\"\n");
        }
        text.push_str(&self.families);
        text
    }
}

/// A literal of a template.
fn braces(text: &str) -> String {
    text.replace('{', "{{").replace('}', "}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Cell, SourceFamily, Target};

    #[test]
    fn a_table_of_meters_is_recognised() {
        let day = 1_515_110_400_000_000;
        let cell = |qualifier: &str, timestamp, value: &str| Cell {
            family: "METER".into(),
            qualifier: qualifier.to_owned().into(),
            timestamp,
            value: value.to_owned().into(),
        };
        let row = |meter: &str| Row {
            key: format!("{meter}#20180105").into(),
            cells: vec![cell("0000", day, "34.18"), cell("0015", day + 900_000_000, "34.20"), cell("ID", 0, "42")],
        };
        let target: Target = "projects/p/instances/i/tables/SENSOR".parse().unwrap();
        let rows = [row("0000000042"), row("0000000043")];
        let rule = Some("maxversions=1".to_owned());
        let families = vec![SourceFamily { name: "METER".to_owned(), rule, ..SourceFamily::default() }];
        let schema = SourceTable { families, is_micros: false };
        let found = propose("meters", &target.table().unwrap(), &rows, &schema).unwrap();
        assert_eq!(found.row_key, "{key1:010}#{ts:%Y%m%d}");
        assert!(found.text.contains("qualifier = \"{ts:%H%M}\", value = \"{meter_value}\""), "{}", found.text);
        assert!(found.text.contains("{ qualifier = \"ID\", value = \"{id}\", timestamp = 0 }"), "{}", found.text);
        assert!(found.text.contains("meter_value = \"decimal(38,2)\""), "{}", found.text);
        assert!(found.text.contains("gc = \"maxversions=1\""), "{}", found.text);
    }

    fn table(id: &str) -> TableName {
        format!("projects/p/instances/i/tables/{id}").parse::<Target>().unwrap().table().unwrap()
    }

    fn row(key: &str, cells: &[(&str, &[u8], i64, &[u8])]) -> Row {
        let cell = |(family, qualifier, timestamp, value): &(&str, &[u8], i64, &[u8])| Cell {
            family: (*family).into(),
            qualifier: qualifier.to_vec().into(),
            timestamp: *timestamp,
            value: value.to_vec().into(),
        };
        Row { key: key.to_owned().into(), cells: cells.iter().map(cell).collect() }
    }

    #[test]
    fn kinds_windows_and_names_are_written() {
        let at = 1_515_110_400_000_000;
        let rows = [
            row("m1", &[("a.b", b"v", at, b"1"), ("a.b", b"ID", 0, b"x"), ("sum", b"n", 0, &[0, 0, 0, 0, 0, 0, 0, 7])]),
            row("m2", &[("a.b", b"v", at, b"2"), ("raw", &[0xff, 0], at, b"y")]),
        ];
        let family = |name: &str, kind| SourceFamily { name: name.to_owned(), kind, rule: None };
        let families = vec![
            family("a.b", Merge::Newest),
            family("empty", Merge::Newest),
            family("raw", Merge::Newest),
            family("sum", Merge::Sum),
        ];
        let schema = SourceTable { families, is_micros: true };
        let found = propose("j", &table("x.y-z"), &rows, &schema).unwrap();
        for expected in [
            "[tables.\"x.y-z\"]\n",
            "window = \"none\"",
            "granularity = \"micros\"\n",
            "[tables.\"x.y-z\".families.\"sum\"]\nkind = \"sum\"\n",
            "qualifier = \"{raw_name:hex}\"",
            "files = [\"pulled/j/*.parquet\"]",
        ] {
            assert!(found.text.contains(expected), "{expected}\n{}", found.text);
        }
        assert!(found.notes.iter().any(|note| note.starts_with("family empty")), "{:?}", found.notes);
        // Sums alone need no window: they have no order.
        let rows = [row("m1", &[("sum", b"n", 0, &[0, 0, 0, 0, 0, 0, 0, 7])])];
        let found = propose("j", &table("T"), &rows, &schema).unwrap();
        assert!(!found.text.contains("window") && !found.text.contains("timestamp = 0"), "{}", found.text);
    }
}
