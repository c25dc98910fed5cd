//! Loads a job: parses and validates its file.

use std::ops::Range;
use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use tidetable_layout::read_back::RowDecoder;
use tidetable_layout::spec::Granularity;
use tidetable_source::{DumpForm, DumpLayout};
use tidetable_sql::Preparation;
use toml::de::DeTable;

use crate::file::cron;
use crate::file::declaration::Job;
use crate::file::error::JobError;
use crate::file::fields::{Fields, Reader};
use crate::file::name_conflict::common_name;
use crate::file::names::Id;
use crate::file::problem::{JobFileError, Mistake};
use crate::file::sections::declared_table::{Table, TableInput};
use crate::file::sections::dump::DumpKeys;
use crate::file::sections::export::Export;
use crate::file::sections::messages::Messages;
use crate::file::sections::source::{Derived, ReadSource, Source};
use crate::file::words::nearest;
use crate::file::{keys, sections};
use crate::project::Project;
use crate::series::series;

impl Job {
    /// Loads the job `asked`: the name of a job, or the path of a job file or its directory.
    ///
    /// # Errors
    /// If there is no such job, its file cannot be read, or the file has mistakes (the error lists all of them).
    pub fn load(project: &Project, asked: &str) -> Result<Self, JobError> {
        let path = project.locate(asked)?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => return Err(JobError::Read { path: project.shown(&path), source }),
        };
        Self::of_text(project, path, text)
    }

    /// The job that `text` declares as the file at `path`, which is not read: what is written there can be checked before.
    ///
    /// # Errors
    /// If it has mistakes (the error lists all of them).
    pub fn of_text(project: &Project, path: PathBuf, text: String) -> Result<Self, JobError> {
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
}

impl Job {
    /// Tables that the file at `path` declares over the sources of this job: `[tables.X]` and `[messages.X]` as in a job file.
    /// `path` is relative to the current directory.
    ///
    /// # Errors
    /// If it cannot be read, or has mistakes (the error lists all of them).
    pub fn tables_of(&self, path: &Path) -> Result<Vec<Table>, JobError> {
        let text = std::fs::read_to_string(path).map_err(|source| JobError::Read { path: path.to_owned(), source })?;
        let mut own = Reader::new(&self.text);
        let own_table = own.parse();
        let sources: Vec<_> = match &own_table {
            Some(table) => {
                let fields = Fields::of_table(&mut own, &keys::JOB, table, 0..0);
                fields.named("sources").iter().filter_map(|named| sections::source::read(&mut own, named)).collect()
            }
            None => Vec::new(),
        };

        let mut reader = Reader::new(&text);
        let mut tables: Vec<Table> = Vec::new();
        if let Some(table) = reader.parse() {
            let fields = Fields::of_table(&mut reader, &keys::LAYOUTS, &table, 0..0);
            fields.require(&mut reader, "tables");
            let folder = path.parent().unwrap_or(path);
            let mut messages = Messages::read(&mut reader, &fields, folder);
            for named in &fields.named("tables") {
                let inputs = sections::table::Inputs { sources: &sources, earlier: &tables };
                let read = sections::table::read(&mut reader, named, inputs, &mut messages, folder);
                tables.extend(read);
            }
        }

        let problems = reader.into_problems();
        if problems.is_empty() { Ok(tables) } else { Err(Box::new(JobFileError::new(path, text, problems)).into()) }
    }
}

/// Reads the job in `table` and notes mistakes; `None` if there is at least one.
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
        let inputs = sections::table::Inputs { sources: &sources, earlier: &tables };
        let table = sections::table::read(reader, named, inputs, &mut messages, folder);
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
    let catalog = sections::export::catalog(reader, &fields, &exports);
    let known = named_tables.iter().map(|table| table.name).chain(exports.iter().map(|export| export.name.as_str()));
    let known: Vec<&str> = known.collect();
    let checks = fields.named("checks");
    let checks = checks.iter().filter_map(|named| sections::checks::read(reader, named, &known, folder)).collect();
    let table_names: Vec<&str> = named_tables.iter().map(|table| table.name).collect();
    let pushes = fields.named("push");
    let pushes = pushes.iter().filter_map(|named| sections::push::read(reader, named, &table_names)).collect();
    let after = after(reader, &fields, name.as_deref());
    let hooks = sections::reporting::hooks::hooks(reader, &fields);
    let metrics = sections::reporting::metrics(reader, &fields);
    let lineage = sections::reporting::lineage::read(reader, &fields);
    let stages = sections::stages::read(reader, &fields);
    let allowances = sections::allowance::read(reader, &fields);
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
        sources: sources.into_iter().map(|source| source_of(reader, source, &tables)).collect(),
        tables,
        exports,
        catalog,
        checks,
        pushes,
        hooks,
        stages,
        metrics,
        lineage,
        allowances,
        after,
        path: PathBuf::new(),
        shown_path: PathBuf::new(),
        text: String::new(),
    })
}

/// The name, which must be that of the job's directory, or of its file if that is not job.toml.
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

/// The jobs that run before the job `name`.
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
    for error in cron::check(schedule.value).err().into_iter().flatten() {
        match error {
            cron::CronError::Count { found } => reader.refuse(schedule.at.clone(), Mistake::CronCount { found }),
            cron::CronError::Field { field, text, low, high, at } => {
                reader.refuse(schedule.within(at), Mistake::CronField { field, text, low, high });
            }
        }
    }
    Some(schedule.owned())
}

/// Refuses an export whose published names can collide with those of an earlier one.
fn published_once(reader: &mut Reader<'_>, export: &Export, earlier: &[Export], at: Range<usize>) {
    let same =
        |other: &&Export| other.per == export.per && other.name_template.as_str() == export.name_template.as_str();
    if let Some(other) = earlier.iter().find(same) {
        reader.refuse(at, Mistake::PublishedTwice { other: other.name.clone() });
    } else if let Some((other, name)) = earlier.iter().find_map(|other| Some((other, common_name(export, other)?))) {
        reader.refuse(at, Mistake::NameConflict { other: other.name.clone(), name });
    }
}

/// What the rows of dumps of the source `source` become in a job with these tables.
fn dump_form(reader: &mut Reader<'_>, source: &str, keys: DumpKeys, tables: &[Table]) -> DumpForm {
    let DumpKeys { layout, families } = keys;
    let Some((name, at)) = layout else {
        let mut own =
            tables.iter().filter(|table| matches!(&table.from, TableInput::Source(from) if from.as_str() == source));
        let keeps_micros = own.all(|table| table.spec.granularity == Granularity::Micros);
        return DumpForm::Cells { families, keeps_micros };
    };
    let Some(table) = tables.iter().find(|table| table.spec.name == name) else {
        let known: Vec<String> = tables.iter().map(|table| table.spec.name.clone()).collect();
        let near = nearest(&name, known.iter().map(String::as_str));
        reader.refuse(at, Mistake::UnknownTarget { name, known, near });
        return DumpForm::default();
    };
    match RowDecoder::new(table.layout.clone().into()) {
        Ok(decoder) => DumpForm::Records(DumpLayout::new(decoder)),
        Err(lost) => {
            let (column, reason) = (lost.column, lost.why.to_string());
            reader.refuse(at, Mistake::NoWayBack { table: name, column, reason });
            DumpForm::default()
        }
    }
}

/// A source of a job with these tables.
fn source_of(reader: &mut Reader<'_>, read: ReadSource, tables: &[Table]) -> Source {
    let ReadSource { mut spec, derived: Derived { written: derive, compiled }, storage, dump, .. } = read;
    spec.dump = dump_form(reader, &spec.name, dump, tables);
    spec.series = series(&spec, compiled.as_ref(), tables);
    Source { spec, derive, preparation: Preparation { derive: compiled, filter: None }, storage }
}
