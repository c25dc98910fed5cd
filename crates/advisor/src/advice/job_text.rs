//! Job files with proposed tables.

use tidetable_layout::outline::{PartContent, template_parts};
use tidetable_layout::{Layout, SourceSchema};
use toml::{Table, Value};

use crate::advice::generate::{Proposed, message_of};
use crate::error::{AdvisorError, Result};

/// Sections that follow from the tables of a job, which proposed ones replace.
const FOLLOWING: [&str; 10] =
    ["exports", "checks", "hooks", "metrics", "after", "schedule", "catch_up", "catch_up_window", "stages", "push"];

/// The job file `text` with the tables `proposed` instead of its own, and without what follows tables.
///
/// # Errors
/// If `text` is not valid TOML.
pub fn job_with(text: &str, name: &str, schema: &SourceSchema, proposed: &[&Proposed]) -> Result<String> {
    let mut job = parsed(text)?;
    FOLLOWING.iter().for_each(|section| drop(job.remove(*section)));
    job.insert("name".to_owned(), name.into());

    job.remove("messages");
    let messages: Table = proposed.iter().filter_map(|proposed| message(schema, proposed)).collect();
    if !messages.is_empty() {
        job.insert("messages".to_owned(), messages.into());
    }

    let tables = proposed.iter().map(|it| (it.name.clone(), it.section.clone().into()));
    job.insert("tables".to_owned(), tables.collect::<Table>().into());
    printed(&job)
}

/// The job file `text` with one more entry of a section.
///
/// # Errors
/// If `text` is not valid TOML.
pub(super) fn with_entry(text: &str, section: &str, name: String, entry: Table) -> Result<String> {
    let mut job = parsed(text)?;
    let section = job.entry(section.to_owned()).or_insert_with(|| Value::Table(Table::new()));
    if let Some(section) = section.as_table_mut() {
        section.insert(name, entry.into());
    }
    printed(&job)
}

fn parsed(text: &str) -> Result<Table> {
    toml::from_str(text).map_err(|error| AdvisorError::Written { reason: error.to_string() })
}

fn printed(job: &Table) -> Result<String> {
    toml::to_string(job).map_err(|error| AdvisorError::Written { reason: error.to_string() })
}

/// The message that a layout holds, if it holds one: what its key does not.
fn message(schema: &SourceSchema, proposed: &Proposed) -> Option<(String, Value)> {
    let mut section = proposed.section.clone();
    let name = message_of(&mut section)?.as_str()?.to_owned();

    let columns = schema.fields.iter().enumerate().filter(|(at, _)| *at != schema.time);
    let names = columns.map(|(_, field)| field.name.clone());
    let held = names.filter(|name| !proposed.key.contains(name) && !proposed.left_out.contains(name));
    let numbers: Table = held.zip((1..).map(Value::Integer)).collect();
    let fields = Table::from_iter([("fields".to_owned(), numbers.into())]);
    Some((name, fields.into()))
}

/// The row key of a layout without its times.
pub(super) fn without_time(layout: &Layout) -> String {
    let source = layout.source();
    let time = source.fields.get(source.time).map(|field| field.name.as_str()).unwrap_or_default();
    let template = &layout.spec().row_key;
    let parts = template_parts(template);
    let columns = parts.iter().filter(|part| match &part.content {
        PartContent::Field { name, .. } => name != time,
        PartContent::Literal(_) => false,
    });
    columns.filter_map(|part| template.get(part.span.clone())).collect::<Vec<_>>().join("#")
}

/// A name as a quoted identifier of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
