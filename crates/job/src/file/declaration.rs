//! A job as its file declares it, compiled into what the stages need.

use std::path::PathBuf;

use chrono_tz::Tz;
use tidetable_export::TableLog;

use crate::file::sections::allowance::Allowance;
use crate::file::sections::catch_up::CatchUp;
use crate::file::sections::checks::Check;
use crate::file::sections::declared_table::Table;
use crate::file::sections::export::{Catalog, Export};
use crate::file::sections::push::Push;
use crate::file::sections::reporting::hooks::Hooks;
use crate::file::sections::reporting::lineage::LineageSettings;
use crate::file::sections::source::Source;
use crate::file::sections::stages::Stages;

/// A validated job file, with the SQL of its tables and filters compiled. Nothing of the store was looked at.
#[derive(Debug, Clone)]
pub struct Job {
    /// Name of the job, which is that of its directory or file.
    pub name: String,
    /// What the job is for, as lists of jobs show it; may be empty.
    pub description: String,
    /// Five crontab fields in the time zone of the job; `None` for a job that only people run.
    pub schedule: Option<String>,
    /// The time zone of days and of the schedule; UTC by default.
    pub timezone: Tz,
    /// Which missed runs are made up for when the scheduler starts again.
    pub catch_up: CatchUp,
    /// How far back missed runs are looked for, in microseconds.
    pub catch_up_window: i64,
    /// Where rows come from, in the order of the file: the order breaks ties of equal event times.
    pub sources: Vec<Source>,
    /// Tables loaded from sources or derived from earlier tables, in the order of the file.
    pub tables: Vec<Table>,
    /// Results of SQL that are published, in the order of the file.
    pub exports: Vec<Export>,
    /// Where exports that are Iceberg tables are committed after they are published; `None` without `[catalog]`.
    pub catalog: Option<Catalog>,
    /// What must hold of tables and exports before they are published, in the order of the file.
    pub checks: Vec<Check>,
    /// Tables that are pushed into Bigtable, in file order.
    pub pushes: Vec<Push>,
    /// Commands that follow each run, and the URL that hears of it.
    pub hooks: Hooks,
    /// How often each stage of a run is retried.
    pub stages: Stages,
    /// Path of the metrics file, relative to the project directory.
    pub metrics: Option<PathBuf>,
    /// Where the events of its runs go; `None` without `[lineage]`.
    pub lineage: Option<LineageSettings>,
    /// Rules of schema design that do not hold for its tables.
    pub allowances: Vec<Allowance>,
    /// Jobs that run before it, besides those whose tables its queries read.
    pub after: Vec<String>,
    /// Absolute path of the job file, to which its queries are relative.
    pub path: PathBuf,
    /// The path of the job file for messages, relative to the current directory if it is below.
    pub shown_path: PathBuf,
    /// The text of the job file, for messages that show an excerpt.
    pub text: String,
}

impl Job {
    /// The source with this name; `None` if the job file declares none.
    pub fn source(&self, name: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.spec.name == name)
    }

    /// The table with this name; `None` if the job file declares none.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.spec.name == name)
    }

    /// The catalog that an export is committed to, if the job has one and it is an Iceberg table.
    pub fn catalog_of(&self, export: &Export) -> Option<&Catalog> {
        self.catalog.as_ref().filter(|_| export.log == Some(TableLog::Iceberg))
    }

    /// The export with this name; `None` if the job file declares none.
    pub fn export(&self, name: &str) -> Option<&Export> {
        self.exports.iter().find(|export| export.name == name)
    }
}
