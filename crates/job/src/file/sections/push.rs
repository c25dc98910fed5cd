//! Reads `[push.NAME]`.

use std::time::Duration;

use crate::file::fields::{Fields, Named, Reader};
use crate::file::keys::PUSH;
use crate::file::names::Id;
use crate::file::problem::Mistake;
use crate::file::sections::reporting::hooks::seconds;
use crate::file::words::nearest;

const TARGET: &str = "\"projects/PROJECT/instances/INSTANCE\", with \"/tables/TABLE\" for a table of another name";
const RATE: &str = "rows a second, as \"5000/s\"";

/// How long a failing request is repeated by default.
const PATIENCE: Duration = Duration::from_secs(300);

/// A table that a run pushes into Bigtable after it was committed.
#[derive(Debug, Clone, PartialEq)]
pub struct Push {
    /// Key of the push in the job file, by which records name it.
    pub name: String,
    /// Name of the table of the job whose rows are pushed.
    pub table: String,
    /// The instance, or a table of it, by its full name.
    pub to: String,
    /// Only rows whose key begins with this; all if empty.
    pub prefix: String,
    /// Whether a table and families that are missing are created.
    pub create: bool,
    /// Whether the table that the rows were pulled from may be written.
    pub to_source: bool,
    /// At most this many rows a second; `None` for as many as are accepted.
    pub rate: Option<f64>,
    /// How long a failing request is repeated without any progress.
    pub patience: Duration,
}

impl Push {
    /// The table of Bigtable that is written, by its full name.
    pub fn target(&self) -> String {
        if self.to.contains("/tables/") { self.to.clone() } else { format!("{}/tables/{}", self.to, self.table) }
    }
}

/// Reads one push; `tables` are those of the job. `None` if it is invalid.
pub(crate) fn read(reader: &mut Reader<'_>, named: &Named<'_>, tables: &[&str]) -> Option<Push> {
    let before = reader.count();
    if !Id::Export.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Export, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &PUSH, named.value, named.at.clone())?;

    let table = fields.required_text(reader, "table");
    if let Some(table) = table.as_ref().filter(|table| !tables.contains(&table.value)) {
        let near = nearest(table.value, tables.iter().copied());
        let known = tables.iter().map(|name| (*name).to_owned()).collect();
        reader.refuse(table.at.clone(), Mistake::UnknownTarget { name: table.owned(), known, near });
    }

    let to = fields.required_text(reader, "to");
    if let Some(to) = to.as_ref().filter(|to| !is_target(to.value)) {
        reader.refuse(to.at.clone(), Mistake::Wanted { key: "to", wanted: TARGET });
    }

    let rate = fields.text(reader, "rate");
    let rows = rate.as_ref().map(|rate| rate.value.strip_suffix("/s").and_then(|rows| rows.parse::<f64>().ok()));
    if let (Some(rate), Some(rows)) = (&rate, rows)
        && !rows.is_some_and(|rows| rows.is_finite() && rows > 0.0)
    {
        reader.refuse(rate.at.clone(), Mistake::Wanted { key: "rate", wanted: RATE });
    }

    let patience = fields.text(reader, "patience");
    let repeated = patience.as_ref().map(|text| seconds(text.value));
    if let (Some(text), Some(None)) = (&patience, repeated) {
        reader.refuse(text.at.clone(), Mistake::Wanted { key: "patience", wanted: "a time, as \"5m\"" });
    }

    if reader.count() > before {
        return None;
    }
    Some(Push {
        name: named.name.to_owned(),
        table: table?.owned(),
        to: to?.owned(),
        prefix: fields.text(reader, "prefix").map(|prefix| prefix.owned()).unwrap_or_default(),
        create: fields.flag("create").unwrap_or(false),
        to_source: fields.flag("to_source").unwrap_or(false),
        rate: rows.flatten(),
        patience: repeated.flatten().unwrap_or(PATIENCE),
    })
}

fn is_target(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    match parts.as_slice() {
        ["projects", project, "instances", instance] => !project.is_empty() && !instance.is_empty(),
        ["projects", project, "instances", instance, "tables", table] => {
            !project.is_empty() && !instance.is_empty() && Id::Table.allows(table)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets() {
        assert!(is_target("projects/p/instances/i") && is_target("projects/p/instances/i/tables/T"));
        for text in
            ["p/i", "projects//instances/i", "projects/p/instances/i/tables/", "projects/p/instances/i/tables/a b"]
        {
            assert!(!is_target(text), "{text}");
        }
    }
}
