//! Kinds of events laid apart: a table for each, of its own columns.

use tidetable_layout::outline::{PartContent, template_parts};
use tidetable_layout::{FieldType, SourceSchema};
use toml::{Table, Value};

use crate::advice::generate::{Proposed, message_of, word};
use crate::advice::job_text::quoted;
use crate::advice::wants::Want;
use crate::trial::{Kind, Kinds};

/// Kinds of which each query wants one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Apart {
    kinds: Kinds,
    /// The type of the column that tells them apart.
    kind: FieldType,
}

impl Apart {
    /// The kinds of a source, if each query fixes the column that tells them apart, or wants columns of one kind alone.
    pub(super) fn of(kinds: Option<&Kinds>, wants: &[Want], schema: &SourceSchema) -> Option<Self> {
        let kinds = kinds?;
        let field = schema.fields.iter().find(|field| field.name == kinds.column)?;
        let are_apart = !wants.is_empty() && wants.iter().all(|want| wants_one_of(kinds, want));
        are_apart.then(|| Self { kinds: kinds.clone(), kind: field.kind })
    }

    /// The number of kinds, of which each gets a table.
    pub(super) fn count(&self) -> usize {
        self.kinds.kinds.len()
    }

    /// A table for each kind, laid out as `proposed`; `None` if its key without the kind would begin with the time.
    pub(super) fn tables(&self, proposed: &Proposed, time: &str) -> Option<Vec<Proposed>> {
        let template = proposed.section.get("row_key").and_then(Value::as_str)?;
        let parts = template_parts(template);
        let names = parts.iter().filter_map(|part| match &part.content {
            PartContent::Field { name, .. } if *name != self.kinds.column => {
                Some((name.as_str(), template.get(part.span.clone())?))
            }
            _ => None,
        });
        let names: Vec<(&str, &str)> = names.collect();
        let row_key = names.iter().map(|(_, text)| *text).collect::<Vec<_>>().join("#");
        let is_led = names.first().is_some_and(|(name, _)| *name != time);
        is_led.then(|| self.kinds.kinds.iter().map(|kind| self.table(proposed, kind, &row_key)).collect())
    }

    fn table(&self, proposed: &Proposed, kind: &Kind, row_key: &str) -> Proposed {
        let others = self.kinds.kinds.iter().filter(|other| *other != kind).flat_map(|other| &other.columns);
        let left_out: Vec<String> = std::iter::once(&self.kinds.column).chain(others).cloned().collect();
        let suffix = kind.values.iter().map(|value| word(value)).collect::<Vec<_>>().join("_");

        let mut section = proposed.section.clone();
        let mut predicate = self.predicate(kind);
        if let Some(before) = section.get("where").and_then(Value::as_str) {
            predicate = format!("({before}) and {predicate}");
        }
        section.insert("where".to_owned(), predicate.into());
        section.insert("row_key".to_owned(), row_key.into());
        if let Some(Value::Array(except)) = column_of(&mut section).and_then(|column| column.get_mut("except")) {
            except.extend(left_out.iter().cloned().map(Value::from));
        }
        if let Some(name) = message_of(&mut section) {
            *name = Value::from(format!("{}_{suffix}", name.as_str().unwrap_or_default()));
        }

        let key = proposed.key.iter().filter(|name| **name != self.kinds.column).cloned().collect();
        Proposed { name: format!("{}_{suffix}", proposed.name), section, key, left_out }
    }

    /// The SQL predicate that the rows of a kind satisfy.
    fn predicate(&self, kind: &Kind) -> String {
        let mut values = kind.values.clone();
        if self.kind == FieldType::Text {
            values.iter_mut().for_each(|value| *value = format!("'{}'", value.replace('\'', "''")));
        }
        let column = quoted(&self.kinds.column);
        match values.as_slice() {
            [only] => format!("{column} = {only}"),
            several => format!("{column} in ({})", several.join(", ")),
        }
    }

    /// What tells the kinds apart, in words.
    pub(super) fn text(&self) -> String {
        let mut kinds = Vec::new();
        for kind in &self.kinds.kinds {
            let (columns, values) = (kind.columns.join(", "), kind.values.join(" or "));
            kinds.push(format!("{columns} where it is {values} ({} rows)", kind.rows));
        }
        format!("`{}` decides what is filled: {}; each query wants one of these", self.kinds.column, kinds.join("; "))
    }
}

/// Whether a query fixes the column that tells the kinds apart, or wants columns of one kind alone.
fn wants_one_of(kinds: &Kinds, want: &Want) -> bool {
    let mut wanted = 0;
    for kind in &kinds.kinds {
        wanted += usize::from(want.columns.iter().any(|name| kind.columns.contains(name)));
    }
    want.bounds.fixed.contains(&kinds.column) || wanted == 1
}

/// The only column of the only family of a table's section.
fn column_of(section: &mut Table) -> Option<&mut Value> {
    section.get_mut("families")?.as_table_mut()?.iter_mut().next()?.1.get_mut("columns")?.get_mut(0)
}
