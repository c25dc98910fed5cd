//! Job files: found, read, checked to the last key, and compiled into what the stages need.

pub(crate) mod error;
pub(crate) mod fields;
pub(crate) mod keys;
pub(crate) mod meeting;
pub(crate) mod names;
pub(crate) mod per;
pub(crate) mod places;
pub(crate) mod problem;
pub(crate) mod schema;
pub(crate) mod sections;
pub(crate) mod stored_names;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod types;
pub(crate) mod words;

use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use tidetable_layout::{Layout, TableSpec};
use tidetable_source::{Format, SchemaMode, SourceSpec};
use tidetable_sql::{Preparation, QueryShape};
use toml::de::DeTable;
use xxhash_rust::xxh3::xxh3_128;

pub use error::{JobError, ProjectError};
pub(crate) use fields::{Fields, Reader};
pub(crate) use keys::PROJECT;
pub(crate) use meeting::may_be_folder_of;
pub use meeting::{NamesMeet, names_that_meet};
pub(crate) use names::Id;
pub use per::Per;
pub(crate) use problem::Mistake;
pub use problem::{JobFileError, Problem};
pub use schema::job_schema;
pub use sections::catch_up::CatchUp;
pub use sections::checks::{Check, Rule};
pub use sections::cron::Cron;
pub use sections::export::{Export, ExportMode, FILE_SIZE};
pub(crate) use sections::hooks::hooks_alone;
pub use sections::hooks::{HookKind, Hooks};
pub use sections::stages::{Retries, Stage, Stages};
pub use sections::storage::{SettingValue, StorageSetting};
pub(crate) use types::shown as shown_type;
pub(crate) use words::listed;
pub use words::nearest;

use crate::project::Project;
use sections::messages::Messages;

/// A job file that was read and found right.
#[derive(Debug, Clone)]
pub struct Job {
    /// Its name, that of its folder.
    pub name: String,
    /// What it is for; empty if the file does not say.
    pub description: String,
    /// When it runs: five crontab fields.
    pub schedule: Option<String>,
    /// What a day is.
    pub timezone: Tz,
    /// Which scheduled moments that were missed are made up for.
    pub catch_up: CatchUp,
    /// How long ago they may be, in microseconds.
    pub catch_up_window: i64,
    /// In the order of the file.
    pub sources: Vec<Source>,
    /// In the order of the file.
    pub tables: Vec<Table>,
    /// In the order of the file.
    pub exports: Vec<Export>,
    /// In the order of the file.
    pub checks: Vec<Check>,
    /// What is run after each run.
    pub hooks: Hooks,
    /// How often each stage of a run is tried again.
    pub stages: Stages,
    /// Where the figures of the last run are written, relative to the project's folder.
    pub metrics: Option<PathBuf>,
    /// Jobs that run before it, beside those whose tables its queries read.
    pub after: Vec<String>,
    /// The job file, absolute.
    pub path: PathBuf,
    /// The job file as messages show it.
    pub shown_path: PathBuf,
    /// The text of the job file, for messages about places in it.
    pub text: String,
}

/// Where readings come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// What its files hold.
    pub spec: SourceSpec,
    /// Columns that SQL makes of them: name and expression.
    pub derive: Vec<(String, String)>,
    /// The same, compiled.
    pub preparation: Preparation,
    /// How its object stores are reached.
    pub storage: Vec<StorageSetting>,
}

/// What a table is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableInput {
    /// The source of this name.
    Source(String),
    /// The records of other tables of the job, which come before it.
    Query {
        /// The query.
        sql: String,
        /// What it gives and reads.
        shape: QueryShape,
    },
}

impl Table {
    /// Names everything that decides which cells a row becomes: how it is read, the columns derived, the rows
    /// taken, the layout. Another fingerprint, and the table must be rebuilt. `source` is what it is from, if that
    /// is a source.
    pub fn fingerprint(&self, source: Option<&Source>) -> String {
        let read = match (&self.from, source) {
            (TableInput::Query { sql, .. }, _) => format!("query {sql}"),
            (TableInput::Source(_), source) => source.map(Source::fingerprint).unwrap_or_default(),
        };
        let rules = [&self.layout.fingerprint(), &read, &format!("{:?}", self.predicate)];
        format!("{:032x}", xxh3_128(rules.map(String::as_str).join("\0").as_bytes()))
    }
}

impl Source {
    /// How rows are read, and which columns are derived.
    fn fingerprint(&self) -> String {
        let SourceSpec { format, csv, columns, time, mode, .. } = &self.spec;
        let columns: Vec<String> = columns
            .iter()
            .map(|column| {
                let zone = column.timezone.map(|zone| zone.name());
                format!("{} {} {:?} {zone:?}", column.name, stored_names::field_type(column.kind), column.format)
            })
            .collect();
        let format = format.as_ref().map(|format| matches!(format, Format::Csv));
        let csv = (csv.delimiter, csv.quote, csv.header, &csv.null, csv.comment, csv.decimal_comma);
        // Of files that both read, `freeze` and `evolve` make the same; what `reject` takes none of, they may take.
        let rejects = if *mode == SchemaMode::Reject { " reject" } else { "" };
        format!("{format:?} {csv:?} {columns:?} {time} {:?}{rejects}", self.derive)
    }
}

/// A table of a job.
#[derive(Debug, Clone)]
pub struct Table {
    /// The layout as the file says it.
    pub spec: TableSpec,
    /// What it is made from.
    pub from: TableInput,
    /// The rows it takes, as the file says it; all of them without.
    pub predicate: Option<String>,
    /// The same, compiled.
    pub preparation: Preparation,
    /// Garbage-collection rules in cbt's text form: (family, rule), for the families that have one.
    pub gc: Vec<(String, String)>,
    /// The layout compiled against the source's columns.
    pub layout: Layout,
}

impl Job {
    /// Loads the job that `asked` means: a job's name, or the path of a job file or its folder.
    ///
    /// # Errors
    /// If there is no such job, its file cannot be read, or the file has mistakes (all of them at once).
    pub fn load(project: &Project, asked: &str) -> Result<Self, JobError> {
        let path = project.locate(asked)?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(JobError::Read { path: project.shown(&path), source }),
        };
        let shown = project.shown(&path);
        let mut reader = Reader::new(&text);
        let job = match reader.parse() {
            Some(table) => read(&mut reader, &table, &path),
            None => None,
        };
        let problems = reader.into_problems();
        match job {
            Some(job) if problems.is_empty() => Ok(Self { path, shown_path: shown, text, ..job }),
            _ => Err(Box::new(JobFileError::new(&shown, text, problems)).into()),
        }
    }

    /// The source called `name`.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.spec.name == name)
    }

    /// The table called `name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.spec.name == name)
    }

    /// The export called `name`.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}

/// Reads the job in `table`, noting its mistakes; `None` leaves at least one.
fn read<'a>(reader: &mut Reader<'_>, table: &'a DeTable<'a>, path: &Path) -> Option<Job> {
    let fields = Fields::of_table(reader, &keys::JOB, table, 0..0);
    let name = job_name(reader, &fields, path);
    let description = fields.text(reader, "description").map(|text| text.owned());
    let schedule = schedule(reader, &fields);
    let zone = fields.text(reader, "timezone");
    let timezone = zone.map_or(Some(Tz::UTC), |text| sections::source::timezone(reader, &text));
    let (catch_up, catch_up_window) = sections::catch_up::read(reader, &fields);

    let sources: Vec<_> =
        fields.named("sources").iter().filter_map(|named| sections::source::read(reader, named)).collect();
    let named_tables = fields.named("tables");
    let folder = path.parent().unwrap_or(path);
    let mut messages = Messages::read(reader, &fields, folder);
    let mut tables: Vec<Table> = Vec::new();
    for named in &named_tables {
        let table = sections::table::read(reader, named, (&sources, &tables), &mut messages, folder);
        tables.extend(table);
    }
    let mut exports = Vec::new();
    for named in fields.named("exports") {
        if named_tables.iter().any(|table| table.name == named.name) {
            let mistake = Mistake::NameTwice { name: named.name.to_owned(), other: "a table" };
            reader.refuse(named.at.clone(), mistake);
        }
        if let Some(export) = sections::export::read(reader, &named, folder) {
            published_once(reader, &export, &exports, named.at.clone());
            exports.push(export);
        }
    }
    let known = named_tables.iter().map(|table| table.name).chain(exports.iter().map(|export| export.name.as_str()));
    let known: Vec<&str> = known.collect();
    let checks = fields.named("checks");
    let checks = checks.iter().filter_map(|named| sections::checks::read(reader, named, &known, folder)).collect();
    let after = after(reader, &fields, name.as_deref());
    let (hooks, metrics) = (sections::hooks::hooks(reader, &fields), sections::hooks::metrics(reader, &fields));
    let stages = sections::stages::read(reader, &fields);
    if !fields.has("tables") && !fields.has("exports") {
        reader.refuse(0..0, Mistake::NothingToDo);
    }
    Some(Job {
        name: name?,
        description: description.unwrap_or_default(),
        schedule,
        timezone: timezone?,
        catch_up,
        catch_up_window,
        sources: sources
            .into_iter()
            .map(|source| Source {
                spec: source.spec,
                derive: source.derived.written,
                preparation: Preparation { derive: source.derived.compiled, filter: None },
                storage: source.storage,
            })
            .collect(),
        tables,
        exports,
        checks,
        hooks,
        stages,
        metrics,
        after,
        path: PathBuf::new(),
        shown_path: PathBuf::new(),
        text: String::new(),
    })
}

/// The name, which must be that of the job's folder, or of its file if that is not called job.toml.
fn job_name(reader: &mut Reader<'_>, fields: &Fields<'_>, path: &Path) -> Option<String> {
    let name = fields.required_text(reader, "name")?;
    if !Id::Job.allows(name.value) {
        reader.refuse(name.at.clone(), Mistake::BadName { id: Id::Job, name: name.owned() });
    }
    let in_folder = path.file_name().is_some_and(|file| file == "job.toml");
    let place = if in_folder { path.parent().and_then(Path::file_name) } else { path.file_stem() };
    let place = place.map(|place| place.to_string_lossy().into_owned()).unwrap_or_default();
    if place != name.value {
        reader.refuse(name.at.clone(), Mistake::NameElsewhere { name: name.owned(), place });
    }
    Some(name.owned())
}

/// The jobs that run before the one called `name`.
fn after(reader: &mut Reader<'_>, fields: &Fields<'_>, name: Option<&str>) -> Vec<String> {
    let after = fields.texts(reader, "after");
    for text in &after {
        if !Id::Job.allows(text.value) {
            reader.refuse(text.at.clone(), Mistake::BadName { id: Id::Job, name: text.owned() });
        }
        if name == Some(text.value) {
            reader.refuse(text.at.clone(), Mistake::AfterItself);
        }
    }
    after.iter().map(|text| text.owned()).collect()
}

fn schedule(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    let schedule = fields.text(reader, "schedule")?;
    for error in sections::cron::check(schedule.value).err().into_iter().flatten() {
        match error {
            sections::cron::CronError::Count { found } => {
                reader.refuse(schedule.at.clone(), Mistake::CronCount { found })
            }
            sections::cron::CronError::Field { field, text, low, high, at } => {
                reader.refuse(schedule.within(at), Mistake::CronField { field, text, low, high });
            }
        }
    }
    Some(schedule.owned())
}

/// Refuses an export that can publish under a name of an earlier one.
fn published_once(reader: &mut Reader<'_>, export: &Export, earlier: &[Export], at: Range<usize>) {
    let same =
        |other: &&Export| other.per == export.per && other.name_template.as_str() == export.name_template.as_str();
    if let Some(other) = earlier.iter().find(same) {
        reader.refuse(at, Mistake::PublishedTwice { other: other.name.clone() });
    } else if let Some((other, name)) = earlier.iter().find_map(|other| Some((other, meeting::meeting(export, other)?)))
    {
        reader.refuse(at, Mistake::NamesMeet { other: other.name.clone(), name });
    }
}
