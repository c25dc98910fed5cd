//! The series of the points of a preset: its names and labels as one field of the row key.

use tidetable_layout::FieldType;
use tidetable_source::Preset;
use tidetable_source::sample::Sample;

use crate::scaffold::facts::{Column, Facts};
use crate::scaffold::identifier::identifier;

/// A field that is derived of all columns that tell the series of a point. Two points of one time that differ in a label
/// are of two series, also if a sample does not show it.
#[derive(Debug)]
pub(crate) struct Series {
    pub name: String,
    /// The columns, as places. Where one is null, the series has an empty text.
    pub columns: Vec<usize>,
    /// SQL that derives it.
    pub sql: String,
    pub has_hash: bool,
}

impl Series {
    /// The series of exported metrics; `None` for other files, and for logs and spans.
    pub fn find(sample: &Sample, facts: &Facts) -> Option<Self> {
        let is_metrics = match sample.spec.preset? {
            Preset::Otel => facts.position("name").is_some() && facts.position("type").is_some(),
            Preset::VictoriaMetrics => true,
        };
        let mut columns: Vec<usize> = (0..facts.columns.len()).collect();
        columns.retain(|at| facts.column(*at).is_some_and(is_label));
        if !is_metrics || columns.is_empty() {
            return None;
        }

        let parts: Vec<String> = facts.at(&columns).map(label_sql).collect();
        let has_hash = facts.at(&columns).any(|column| column.has_hash);
        let mut names = ["series", "series_key", "series_of_point"].into_iter();
        Some(Self {
            name: names.find(|name| facts.position(name).is_none())?.to_owned(),
            sql: format!("concat_ws('|', {})", parts.join(", ")),
            has_hash,
            columns,
        })
    }

    /// Its field in a row key.
    pub fn field(&self) -> String {
        if self.has_hash { format!("{{{}:percent}}", self.name) } else { format!("{{{}}}", self.name) }
    }
}

/// Whether a column names the series: the resource, the scope, the metric, or a label of its points.
fn is_label(column: &Column) -> bool {
    let name = column.name.as_str();
    let is_of_series = ["resource.", "attributes.", "metric."].iter().any(|prefix| name.starts_with(prefix));
    (is_of_series || matches!(name, "name" | "scope.name")) && !column.is_nested
}

fn label_sql(column: &Column) -> String {
    let name = identifier(&column.name);
    let text = if column.kind == FieldType::Text { name } else { format!("cast({name} as varchar)") };
    if column.nulls == 0 && column.kind == FieldType::Text { text } else { format!("coalesce({text}, '')") }
}
