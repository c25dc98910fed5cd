//! Proposes a job for a data file: columns, a layout by Bigtable's schema-design guide with the reasons as
//! comments, and an export.
//!
//! - `files` finds the files, and writes the patterns that match them.
//! - `dump` proposes a job for a dump of Bigtable, which has no columns to look at.
//! - `facts` computes statistics of the columns of a sample.
//! - `time` finds the event time, or derives it from several columns.
//! - `calendar` reads parts of times as files write them; `parts` chooses the columns that are part of the event time.
//! - `header_zone` reads the zone in a header; `hours` reads hours that end, also the repeated one.
//! - `entity` finds the entity, and columns that distinguish readings of the same time; `series` that of a preset's points.
//! - `layout` decides the row key and the columns.
//! - `notes` tells what is unusual about the files. `write` writes the job file, `query` the SQL, both of a `draft`.

pub(crate) mod calendar;
pub(crate) mod draft;
pub(crate) mod dump;
pub(crate) mod entity;
pub(crate) mod error;
pub(crate) mod facts;
pub(crate) mod files;
pub(crate) mod header_zone;
pub(crate) mod hours;
pub(crate) mod identifier;
pub(crate) mod layout;
pub(crate) mod notes;
pub(crate) mod parts;
pub(crate) mod query;
pub(crate) mod series;
pub(crate) mod time;
pub(crate) mod write;

use std::path::{Path, PathBuf};

use chrono_tz::Tz;
use tidetable_source::sample::{Sample, SampleError};
use tidetable_source::{InputFile, Storage};

pub use error::ProposeError;
pub use files::{as_pattern, is_data};
pub use identifier::identifier;
pub use layout::quoted;

use crate::file::{Id, Job};
use crate::project::Project;
use entity::RowKey;
use facts::Facts;
use files::ProposedFiles;
use header_zone::HeaderZone;
use layout::Per;
use series::Series;
use time::EventTime;

/// Longest name of a table, so that `_DAY_20180131` can be appended for parts.
const LONGEST_TABLE: usize = 37;

/// A proposed job, which is nowhere written yet.
#[derive(Debug)]
pub struct Proposal {
    /// Name of the job, and of its folder below `jobs/`.
    pub job: String,
    /// Name of the table that it fills, which no other job of the project has.
    pub table: String,
    /// Template of the table's row key, as the job file has it.
    pub row_key: String,
    /// The column that tells most generally what was read, such as a meter; `None` if there is none or it is not known.
    pub entity: Option<String>,
    /// The text of its job.toml, with the reasons as comments.
    pub text: String,
    /// Its queries, each with the name of its file and its text.
    pub queries: Vec<(String, String)>,
    /// Notes on the files for the user, a sentence each.
    pub notes: Vec<String>,
}

/// Proposes the job `job` for `given`, at least one: files, directories and patterns, as URLs or paths relative to the current
/// directory. Times without an offset are in `zone`.
///
/// # Errors
/// [`ProposeError`]: the name is invalid, or a file cannot be read, is too small, or has no time.
pub fn propose(
    project: &Project,
    storage: &Storage,
    job: &str,
    given: &[String],
    zone: Option<Tz>,
) -> Result<Proposal, ProposeError> {
    if !Id::Job.allows(job) {
        return Err(ProposeError::BadName { name: job.to_owned() });
    }

    let shown = given.join(", ");
    let ProposedFiles { mut patterns, files, unread } = ProposedFiles::find(project, storage, job, given)?;
    if let Some(proposal) = propose_dump(project, storage, job, &patterns, &files)? {
        return Ok(proposal);
    }
    let mut sample = storage.sample_files(&files, zone)?;
    let mut facts = Facts::of(&sample);
    let (mut time, mut key) = time_and_key(&sample, &facts, zone);
    let header_zone = if zone.is_none() { HeaderZone::find(&sample, &facts, &time) } else { None };
    let zone = zone.or(header_zone.as_ref().map(|found| found.zone));
    if header_zone.is_some() {
        sample = storage.sample_files(&files, zone)?;
        facts = Facts::of(&sample);
        (time, key) = time_and_key(&sample, &facts, zone);
    }
    files::leave_out_unlike(&mut patterns, &files, &sample);

    let tells_apart = key.doubles.count * 2 < facts.rows && !(key.entity.is_empty() && key.ties.is_empty());
    if time.is_none() && !tells_apart {
        return Err(ProposeError::NoKey {
            path: shown,
            columns: facts.columns.iter().map(|column| column.name.clone()).collect(),
            left_out: sample.left_out.clone(),
        });
    }

    let plan = layout::plan(&facts, &time, &key);
    let table = table_name(project, job);
    let draft = draft::Draft {
        job,
        table: &table,
        given: &shown,
        patterns: &patterns,
        storage: &project.storage,
        files: &files,
        unread: &unread,
        sample: &sample,
        facts: &facts,
        time: &time,
        key: &key,
        plan: &plan,
        zone,
        header_zone: header_zone.as_ref(),
    };

    let query = query::of(&draft);
    let ending = plan.per.ending().to_lowercase();
    let query_file = format!("{}_{ending}.sql", job.replace(['-', '.'], "_").to_lowercase());
    let text = write::job_file(&draft, &query_file, query.summary);
    Ok(Proposal {
        job: job.to_owned(),
        row_key: plan.row_key.clone(),
        entity: match (&key.series, key.entity.first().and_then(|at| facts.column(*at))) {
            (Some(series), _) => Some(series.name.clone()),
            (None, column) => column.map(|column| column.key_name().to_owned()),
        },
        notes: notes::notes(&draft),
        table,
        text,
        queries: vec![(query_file, query.sql)],
    })
}

/// The job for a dump of Bigtable; `None` for other files. Of several dumps the newest is looked at.
fn propose_dump(
    project: &Project,
    storage: &Storage,
    job: &str,
    patterns: &[String],
    files: &[InputFile],
) -> Result<Option<Proposal>, ProposeError> {
    let sample = storage.dump_sample(files).map_err(SampleError::from)?;
    let Some(sample) = sample else { return Ok(None) };
    if sample.families.is_empty() {
        let path = files.last().map(|file| file.path.clone()).unwrap_or_default();
        return Err(SampleError::Empty { path }.into());
    }
    let table = table_name(project, job);
    let draft = dump::DumpDraft { job, table: &table, patterns, sample: &sample };
    Ok(Some(Proposal {
        job: job.to_owned(),
        row_key: dump::ROW_KEY.to_owned(),
        entity: None,
        text: draft.job_file(),
        notes: draft.notes(),
        queries: Vec::new(),
        table,
    }))
}

/// The event time and the row key. Years that distinguish too few rows are a property, such as a model year: then all rows
/// share one time, if the key is as good without them.
fn time_and_key(sample: &Sample, facts: &Facts, zone: Option<Tz>) -> (EventTime, RowKey) {
    let time = time::find(sample, facts, zone);
    if let Some(series) = Series::find(sample, facts).filter(|_| !time.is_none()) {
        let key = entity::of_series(facts, &time, series);
        return (time, key);
    }
    let key = entity::find(facts, &time, &sample.files.path_columns);
    let is_poor = key.doubles.count > 0 || !key.ties.is_empty();
    if !is_poor || time.is_none() || !time.is_year() || time.has_finer {
        return (time, key);
    }

    let no_time = time::none(facts, "years distinguish too few rows: all rows share one time");
    let whole = entity::find(facts, &no_time, &sample.files.path_columns);
    if whole.doubles.count <= key.doubles.count { (no_time, whole) } else { (time, key) }
}

impl Proposal {
    /// Writes the job file and its queries into jobs/JOB/; with `force` it overwrites existing ones. A folder that is no project
    /// becomes one.
    ///
    /// # Errors
    /// [`ProposeError::Exists`] if one exists, before anything is written; [`ProposeError::Invalid`] if the job has mistakes:
    /// then no job file is left; [`ProposeError::Write`].
    pub fn write(&self, project: &Project, force: bool) -> Result<Vec<PathBuf>, ProposeError> {
        let folder = project.dir.join("jobs").join(&self.job);
        let single = project.dir.join("jobs").join(format!("{}.toml", self.job));
        let mut files: Vec<_> = self.queries.iter().map(|(name, sql)| (folder.join(name), sql)).collect();
        let settings = project.first_settings();
        files.extend(settings.iter().map(|(path, text)| (path.clone(), text)));
        // Last, since this file makes it a job.
        files.push((folder.join("job.toml"), &self.text));
        let there = files.iter().map(|(path, _)| path).find(|path| path.exists()).filter(|_| !force);
        if let Some(path) = there.or(Some(&single).filter(|path| path.exists())) {
            let by_force = *path != single;
            return Err(ProposeError::Exists { path: project.shown(path), job: self.job.clone(), by_force });
        }
        let failed = |path: &Path| {
            let path = project.shown(path);
            move |source| ProposeError::Write { path, source }
        };
        std::fs::create_dir_all(&folder).map_err(failed(&folder))?;
        for (path, text) in &files {
            if let (true, Err(error)) =
                (path.ends_with("job.toml"), Job::of_text(project, path.clone(), self.text.clone()))
            {
                self.forget(&folder, force);
                return Err(Box::new(error).into());
            }
            // Write and rename: a full disk leaves the old file.
            let aside = path.with_extension("new");
            let done = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, path));
            if let Err(source) = done {
                let _ = std::fs::remove_file(&aside);
                return Err(failed(path)(source));
            }
        }
        Ok(files.into_iter().map(|(path, _)| project.shown(&path)).collect())
    }

    /// Removes the queries of a job that is not written, unless they took the place of others.
    fn forget(&self, folder: &Path, force: bool) {
        if !force {
            self.queries.iter().for_each(|(name, _)| drop(std::fs::remove_file(folder.join(name))));
        }
        // Only an empty one.
        let _ = std::fs::remove_dir(folder);
    }
}

/// A name for the table that no other job of the project uses.
fn table_name(project: &Project, job: &str) -> String {
    let plain: String =
        job.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    let start = if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("T_{plain}") };
    let start: String = start.chars().take(LONGEST_TABLE - 3).collect();
    let others = project.jobs().into_iter().filter(|name| name != job);
    let mut taken: Vec<String> = Vec::new();
    for job in others.filter_map(|name| Job::load(project, &name).ok()) {
        taken.extend(job.tables.into_iter().map(|table| table.spec.name));
        taken.extend(job.exports.into_iter().map(|export| export.name));
    }

    let exports = [Per::Day, Per::Month, Per::Query].map(Per::ending);
    let mut names = std::iter::once(start.clone()).chain((2..100).map(|number| format!("{start}_{number}")));
    let free = names.find(|name| {
        !taken.contains(name) && !exports.iter().any(|ending| taken.contains(&format!("{name}_{ending}")))
    });
    free.unwrap_or(start)
}
