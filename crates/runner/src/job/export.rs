//! Reads `[exports.NAME]`.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono::NaiveDate;

use super::fields::{Fields, Named, Reader, Text};
use super::keys::{EXPORT, QUERY};
use super::names::Id;
use super::problem::Mistake;
use crate::day::DayTemplate;

/// A published query of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// Its key in the job file.
    pub name: String,
    /// What one published table covers.
    pub per: Per,
    /// What each published table is called.
    pub name_template: DayTemplate,
    /// The form of the files.
    pub format: ExportFormat,
    /// What becomes of what was published before under the same name.
    pub mode: ExportMode,
    /// Columns that say which rows are the same, for [`ExportMode::Upsert`].
    pub keys: Vec<String>,
    /// The query.
    pub sql: String,
    /// The absolute path of the file that holds the query; `None` if the job file itself does.
    pub sql_path: Option<PathBuf>,
    /// Bytes of the job file where the query or its file's name stands.
    pub sql_at: Range<usize>,
}

/// What one published table covers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Per {
    /// A day of the job's time zone.
    #[default]
    Day,
    /// An hour.
    Hour,
    /// A month.
    Month,
    /// All that the query returns.
    Query,
}

/// The form of published files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExportFormat {
    /// Parquet.
    #[default]
    Parquet,
    /// CSV.
    Csv,
    /// Arrow IPC.
    Arrow,
    /// The Parquet that Dataflow loads into Bigtable.
    BigtableParquet,
    /// The CSV that `cbt import` reads.
    CbtCsv,
}

/// What becomes of what was published before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExportMode {
    /// It is replaced.
    #[default]
    Replace,
    /// It is added to.
    Append,
    /// Rows with the same keys are replaced.
    Upsert,
}

const PER: [(&str, Per); 4] = [("day", Per::Day), ("hour", Per::Hour), ("month", Per::Month), ("query", Per::Query)];

const FORMATS: [(&str, ExportFormat); 5] = [
    ("parquet", ExportFormat::Parquet),
    ("csv", ExportFormat::Csv),
    ("arrow", ExportFormat::Arrow),
    ("bigtable-parquet", ExportFormat::BigtableParquet),
    ("cbt-csv", ExportFormat::CbtCsv),
];

const MODES: [(&str, ExportMode); 3] =
    [("replace", ExportMode::Replace), ("append", ExportMode::Append), ("upsert", ExportMode::Upsert)];

/// Reads one export; `folder` is the job file's. `None` if something of it is wrong.
pub(crate) fn read(reader: &mut Reader<'_>, named: &Named<'_>, folder: &Path) -> Option<Export> {
    let before = reader.count();
    if !Id::Export.allows(named.name) {
        reader.refuse(named.at.clone(), Mistake::BadName { id: Id::Export, name: named.name.to_owned() });
    }
    let fields = Fields::of_value(reader, &EXPORT, named.value, named.at.clone())?;
    fields.require(reader, "per");
    let per = built(reader, &fields, "per", &PER);
    let format = built(reader, &fields, "format", &FORMATS);
    let mode = built(reader, &fields, "mode", &MODES);
    let template = fields.required_text(reader, "name").and_then(|text| name_template(reader, &text, named.name, per));
    let (sql, sql_path, sql_at) = query(reader, &fields, folder)?;
    let export = Export {
        name: named.name.to_owned(),
        per,
        name_template: template?,
        format,
        mode,
        keys: Vec::new(),
        sql,
        sql_path,
        sql_at,
    };
    (reader.count() == before).then_some(export)
}

/// The choice for `key`, of which only the default can be used yet.
fn built<T: Copy + Default + PartialEq>(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    choices: &[(&'static str, T)],
) -> T {
    let choice = fields.choice(reader, key, choices);
    let named = choices.iter().find(|(_, other)| *other == choice && *other != T::default());
    if let Some((name, _)) = named {
        reader.refuse(fields.value_at(key), Mistake::NotBuilt { what: format!("{key} = \"{name}\"") });
    }
    choice
}

/// Checks that each day gets a name of its own, which may be a table's.
fn name_template(reader: &mut Reader<'_>, text: &Text<'_>, export: &str, per: Per) -> Option<DayTemplate> {
    let template = match DayTemplate::parse(text.value) {
        Ok(template) => template,
        Err(error) => {
            reader.refuse(text.within(error.at()), error.into());
            return None;
        }
    };
    if per == Per::Day && !template.has_day() {
        reader.refuse(text.at.clone(), Mistake::NameWithoutDay { name: export.to_owned() });
        return None;
    }
    let mut seen = HashMap::new();
    for day in days() {
        let name = template.render(day);
        if !Id::Published.allows(&name) {
            reader.refuse(text.at.clone(), Mistake::BadName { id: Id::Published, name });
            return None;
        }
        if per == Per::Day
            && let Some(first) = seen.insert(name.clone(), day)
        {
            reader.refuse(text.at.clone(), Mistake::NameOfTwoDays { first, second: day, name });
            return None;
        }
    }
    Some(template)
}

/// Days that show whether a name is long or repeats: two years, and one day much later.
fn days() -> impl Iterator<Item = NaiveDate> {
    let first = NaiveDate::from_ymd_opt(2024, 1, 1).unwrap_or_default();
    let later = NaiveDate::from_ymd_opt(2034, 9, 30);
    first.iter_days().take(2 * 366).chain(later)
}

/// The text of the query, its file, and where it stands in the job file.
pub(crate) fn query(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    folder: &Path,
) -> Option<(String, Option<PathBuf>, Range<usize>)> {
    fields.require(reader, "query");
    let query = Fields::of_value(reader, &QUERY, fields.value("query")?, fields.key_at("query"))?;
    if query.has("file") == query.has("sql") {
        reader.refuse(query.at(), Mistake::FileAndSql);
        return None;
    }
    if query.has("sql") {
        let sql = query.required_text(reader, "sql")?;
        return Some((sql.owned(), None, sql.at));
    }
    let file = query.required_text(reader, "file")?;
    let path = folder.join(file.value);
    let mistake = match std::fs::read_to_string(&path) {
        Ok(sql) if !sql.trim().is_empty() => return Some((sql, Some(path), file.at)),
        Ok(_) => Mistake::EmptySqlFile { path: file.value.into() },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Mistake::NoSqlFile { path: file.value.into() },
        Err(error) => Mistake::SqlFile { path: file.value.into(), error },
    };
    reader.refuse(file.at, mistake);
    None
}
