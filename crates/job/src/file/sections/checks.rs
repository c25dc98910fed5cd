//! Reads `[checks.NAME]`.

use std::path::Path;

use tidetable_record::Severity;
use toml::de::DeValue;

use crate::file::fields::{Fields, Named, Reader};
use crate::file::keys::{CHECK, LIMITS};
use crate::file::names::Id;
use crate::file::problem::Mistake;
use crate::file::sections::export::query;
use crate::file::words::nearest;

/// A rule set that a part must satisfy before it is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Key of the check in the job file, by which messages and records name it.
    pub name: String,
    /// The table or export of the job that it checks.
    pub on: String,
    /// What a failure means: whether the part is published all the same.
    pub severity: Severity,
    /// What must hold; one that does not hold fails the check.
    pub rules: Vec<Rule>,
}

/// A rule of a check, asked of each part before it is published.
#[derive(Debug, Clone, PartialEq)]
pub enum Rule {
    /// No row has a null in the column of this name.
    NotNull(String),
    /// No two rows have equal values in these columns.
    Unique(Vec<String>),
    /// The column lies within limits, written as SQL literals.
    Range {
        /// Name of the column of the table or export.
        column: String,
        /// Least value allowed, as a SQL literal; `None` for no limit.
        min: Option<String>,
        /// Greatest value allowed, as a SQL literal; `None` for no limit.
        max: Option<String>,
    },
    /// The number of rows of the part lies within limits.
    Rows {
        /// Least number of rows; `None` for no limit.
        min: Option<i64>,
        /// Greatest number of rows; `None` for no limit.
        max: Option<i64>,
    },
    /// The SQL of this text, which finds bad rows, returns no row.
    Query(String),
}

/// Reads one check; `known` are the tables and exports of the job. `None` if it is invalid.
pub(crate) fn read(reader: &mut Reader<'_>, named: &Named<'_>, known: &[&str], folder: &Path) -> Option<Check> {
    let before = reader.count();
    if !Id::Check.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Check, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &CHECK, named.value, named.at.clone())?;

    let on = fields.required_text(reader, "on");
    if let Some(on) = on.as_ref().filter(|on| !known.contains(&on.value)) {
        let near = nearest(on.value, known.iter().copied());
        let known = known.iter().map(|name| (*name).to_owned()).collect();
        reader.refuse(on.at.clone(), Mistake::UnknownTarget { name: on.owned(), known, near });
    }

    let severity = fields.choice(reader, "severity", &[("error", Severity::Error), ("warn", Severity::Warn)]);
    let mut rules: Vec<Rule> =
        fields.texts(reader, "not_null").iter().map(|column| Rule::NotNull(column.owned())).collect();
    let unique: Vec<String> = fields.texts(reader, "unique").iter().map(|column| column.owned()).collect();
    if !unique.is_empty() {
        rules.push(Rule::Unique(unique));
    }
    for range in fields.named("range") {
        let [min, max] = limits(reader, &range)?;
        rules.push(Rule::Range { column: range.name.to_owned(), min, max });
    }
    if let Some(value) = fields.value("rows") {
        let rows = Named { name: "rows", at: fields.key_at("rows"), value };
        let [min, max] = limits(reader, &rows)?.map(|limit| limit.map(|limit| limit.parse::<i64>()));
        match (min.transpose(), max.transpose()) {
            (Ok(min), Ok(max)) => rules.push(Rule::Rows { min, max }),
            _ => reader.refuse(rows.value.span(), Mistake::RowLimits),
        }
    }
    if fields.has("query") {
        rules.push(Rule::Query(query(reader, &fields, folder)?.0));
    }
    if rules.is_empty() {
        reader.refuse(fields.at(), Mistake::NoRule);
    }

    let check = Check { name: named.name.to_owned(), on: on?.owned(), severity, rules };
    (reader.count() == before).then_some(check)
}

/// The limits `{ min = .., max = .. }` as SQL literals.
fn limits(reader: &mut Reader<'_>, named: &Named<'_>) -> Option<[Option<String>; 2]> {
    let fields = Fields::of_value(reader, &LIMITS, named.value, named.at.clone())?;
    if !fields.has("min") && !fields.has("max") {
        reader.refuse(named.value.span(), Mistake::NoLimit);
        return None;
    }
    let mut limits = [None, None];
    for (limit, key) in limits.iter_mut().zip(["min", "max"]) {
        *limit = fields.value(key).map(|value| match value.get_ref() {
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.to_string(),
            DeValue::String(text) => format!("'{}'", text.replace('\'', "''")),
            _ => String::new(),
        });
    }
    Some(limits)
}

/// Two limits, of which one is given at least, in words.
fn between(min: Option<&str>, max: Option<&str>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!("{min} to {max}"),
        (Some(min), None) => format!("from {min}"),
        (None, max) => format!("up to {}", max.unwrap_or_default()),
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotNull(column) => write!(f, "not_null {column}"),
            Self::Unique(columns) => write!(f, "unique {}", columns.join(", ")),
            Self::Range { column, min, max } => write!(f, "{column} {}", between(min.as_deref(), max.as_deref())),
            Self::Rows { min, max } => {
                let (min, max) = (min.map(|min| min.to_string()), max.map(|max| max.to_string()));
                write!(f, "rows {}", between(min.as_deref(), max.as_deref()))
            }
            Self::Query(_) => f.write_str("query without rows"),
        }
    }
}
