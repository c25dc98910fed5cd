//! Diagnosis of a store: what is damaged, what that costs, and how to fix it. Reads all small files; only
//! [`Diagnosis::fix`] changes anything.

pub(crate) mod fix;
pub(crate) mod in_the_way;
mod lost_inputs;

use std::collections::BTreeMap;

use serde::Serialize;
use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_export::{FileFormat, LogFinding, TableLog, log_findings};
use tidetable_job::{Job, Project, several};
use tidetable_record::{KnownVersions, LostVersion, Runs, holder};
use tidetable_store::published::Published;
use tidetable_store::version::TableIdentity;
use tidetable_store::{Store, StoreError};
use tidetable_upkeep::TableHealth;
use tokio::runtime::Handle;

use crate::fault::error::RunError;
use crate::fault::lost_store::LostTable;
use crate::marks::Marks;
use crate::report::doctor::lost_inputs::LostInputs;
use crate::report::input_places::InputPlaces;
use crate::report::lost_lists::lost_lists;
use crate::report::reject_files::{RejectDamage, reject_files};
use crate::report::status::CLOCK_SKEW;
use crate::report::{MIN_AGE, QUARANTINE};

/// What a diagnosis of a store found, and the tables that a fix would mend.
#[derive(Debug, Default)]
pub struct Diagnosis {
    /// Cases of damage, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// Remarks on what is not damaged.
    pub notes: Vec<String>,
    /// Number of files read, by kind.
    pub read: BTreeMap<FindingKind, u64>,
    /// Tables that [`Self::fix`] makes readable.
    tables: Vec<DamagedTable>,
}

/// A table to be made readable.
#[derive(Debug)]
pub(crate) struct DamagedTable {
    pub(crate) name: String,
    pub(crate) health: TableHealth,
    /// The newest version that other files name: its number and those before are not used again.
    pub(crate) named: u64,
}

/// One case of damage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Path inside the store.
    pub path: String,
    /// Which kind of file it is, or should be.
    pub kind: FindingKind,
    /// What is wrong with it.
    pub damage: String,
    /// What fails because of it, and what is lost.
    pub costs: String,
    /// What `--fix` does about it, or what the user can do.
    pub remedy: String,
    /// Whether `--fix` can fix it.
    pub fixable: bool,
    /// Its path in the quarantine, inside the store.
    pub set_aside: Option<String>,
    /// Whether it was fixed.
    pub fixed: bool,
}

/// A kind of damaged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// The record of a run.
    Record,
    /// A file of rejected rows.
    Rejects,
    /// The list of an export.
    List,
    /// A published file that is missing or differs from its list.
    Published,
    /// The manifest of a version of a table.
    Manifest,
    /// The checkpoint of a version.
    Checkpoint,
    /// An SST that a version names and that is missing.
    Sst,
    /// The lock of a job.
    Lock,
    /// The Delta log of an export.
    DeltaLog,
    /// The Iceberg metadata of an export.
    IcebergMetadata,
    /// A file where a directory belongs.
    InTheWay,
}

impl FindingKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Record => "run record",
            Self::Rejects => "file of rejected rows",
            Self::List => "list of published files",
            Self::Published => "published file",
            Self::Manifest => "manifest",
            Self::Checkpoint => "checkpoint",
            Self::Sst => "SST",
            Self::Lock => "lock",
            Self::DeltaLog => TableLog::Delta.noun(),
            Self::IcebergMetadata => TableLog::Iceberg.noun(),
            Self::InTheWay => "file in the way",
        }
    }
}

impl Diagnosis {
    /// Reads all small files of `store`: records, rejected rows, lists, manifests, checkpoints, locks. SSTs and
    /// published files are only checked for existence. `without` are inputs, by name or pattern, that a fix may give up although
    /// only lost versions hold them. `now` is the clock, microseconds since the epoch.
    ///
    /// # Errors
    /// If the store cannot be listed, or a file cannot be read for another reason than its content.
    pub fn new(
        store: &Store,
        project: Option<&Project>,
        without: &[String],
        runtime: &Handle,
        now: i64,
    ) -> Result<Self, RunError> {
        let mut found = Self::default();
        let blobs = store.blobs().as_ref();

        or_in_the_way(found.records(blobs, now))?;
        or_in_the_way(found.rejects(blobs))?;
        or_in_the_way(found.lists(store, project))?;

        let tables = or_in_the_way(blobs.list("tables").map_err(RunError::from))?;
        let named = or_in_the_way(KnownVersions::of(blobs, &tables, usize::MAX).map_err(RunError::from))?;
        let context = TableContext { project, named: &named, without, runtime };
        for table in tables {
            or_in_the_way(found.table(store, table, context))?;
        }

        if let Some(project) = project {
            or_in_the_way(found.lost_tables(store, project))?;
        }

        or_in_the_way(found.locks(blobs))?;
        or_in_the_way(found.in_the_way(blobs, project))?;
        or_in_the_way(found.notes(store, now))?;

        Ok(found)
    }

    /// Whether nothing is damaged, or all of it was fixed.
    pub fn is_sound(&self) -> bool {
        self.findings.iter().all(|finding| finding.fixed)
    }

    fn count(&mut self, kind: FindingKind) {
        *self.read.entry(kind).or_default() += 1;
    }

    fn find(&mut self, path: String, kind: FindingKind, damage: String, costs: String, remedy: Remedy) {
        let (fixable, remedy) = match remedy {
            Remedy::Fix(text) => (true, text),
            Remedy::Person(text) => (false, text),
        };

        self.findings.push(Finding { path, kind, damage, costs, remedy, fixable, set_aside: None, fixed: false });
    }

    fn records(&mut self, blobs: &dyn Blobs, now: i64) -> Result<(), RunError> {
        let mut future = Vec::new();
        for name in Runs::of(blobs).names()? {
            self.count(FindingKind::Record);
            match Runs::of(blobs).load(&name) {
                Ok(Some(record)) if record.now > now.saturating_add(CLOCK_SKEW) => future.push(name),
                Ok(_) => {}
                Err(StoreError::Unreadable { path, reason, .. }) => {
                    let costs = "the work of that run is unknown: `history`, `status` and runs.* omit it; if it was the last run \
                                 of its job, the one before counts as the last";
                    let remedy = Remedy::Fix("moves it to quarantine".to_owned());
                    self.find(path, FindingKind::Record, reason, costs.to_owned(), remedy);
                }
                Err(error) => self.newer(FindingKind::Record, error)?,
            }
        }

        if let Some(first) = future.first() {
            self.notes.push(format!(
                "{} of runs with a logical time in the future (the first is {first}): they count as no scheduled runs, and \
                 `status` ignores them for ages",
                several(future.len() as u64, "record")
            ));
        }

        Ok(())
    }

    fn rejects(&mut self, blobs: &dyn Blobs) -> Result<(), RunError> {
        for file in reject_files(blobs)? {
            self.count(FindingKind::Rejects);
            let path = file.path.clone();

            match file.damage {
                None => {}
                Some(RejectDamage::Lines { number, first }) => {
                    let lines = several(number, "line");
                    let costs =
                        format!("`rejects` cannot show {lines} of it, and `replay` cannot read their inputs again");
                    let remedy = format!("moves it to quarantine, and keeps the other {}", several(file.rows, "row"));
                    self.find(path, FindingKind::Rejects, first, costs, Remedy::Fix(remedy));
                }
                Some(damage @ RejectDamage::Cut { missing, .. }) => {
                    let costs = format!(
                        "`rejects` and runs.rejects lack {}, and `replay` does not know their inputs",
                        several(missing, "rejected row")
                    );
                    let remedy =
                        "put it back from a backup; or remove it, and `rejects` says that its rows were cleaned away";
                    let remedy = Remedy::Person(remedy.to_owned());
                    self.find(path, FindingKind::Rejects, damage.to_string(), costs, remedy);
                }
            }
        }

        Ok(())
    }

    fn lists(&mut self, store: &Store, project: Option<&Project>) -> Result<(), RunError> {
        let blobs = store.blobs().as_ref();
        for name in blobs.list("exports")? {
            let Some(export) = name.strip_suffix(".json") else { continue };

            self.count(FindingKind::List);
            match Published::load(blobs, export) {
                Ok(list) => self.published(blobs, &list)?,
                Err(StoreError::Unreadable { path, reason, .. }) => {
                    let job = declared_export(project, export).map_or_else(|| "JOB".to_owned(), |(job, _)| job);
                    let costs = format!(
                        "the published parts of {export} are unknown: SQL cannot read exports.{export}, and runs of its job stop \
                         before they publish it"
                    );
                    let remedy = format!(
                        "moves it to quarantine; then `tidetable run {job} --adopt` takes the files that are there as they are, and \
                         `tidetable run {job} --force` publishes all of them again"
                    );
                    self.find(path, FindingKind::List, reason, costs, Remedy::Fix(remedy));
                }
                Err(error) => self.newer(FindingKind::List, error)?,
            }
        }

        self.lost_export_lists(store, project)
    }

    /// Finds exports whose list is missing although published files exist.
    fn lost_export_lists(&mut self, store: &Store, project: Option<&Project>) -> Result<(), RunError> {
        let blobs = store.blobs().as_ref();
        for (export, parts) in lost_lists(store, project)? {
            // One that was set aside is lost no more.
            if blobs.stat(&format!("{QUARANTINE}/exports/{export}.json"))?.is_some() {
                continue;
            }

            let declared = declared_export(project, &export);
            let job = declared.as_ref().map_or("JOB", |(job, _)| job.as_str());
            let damage = format!("it is missing, and {} of {export} are there", several(parts, "published part"));
            let costs = format!("SQL cannot read exports.{export}, and runs of {job} stop before they publish it");

            // Files of other formats do not say which export published them.
            let is_adopted = declared.as_ref().is_none_or(|(_, format)| *format == FileFormat::Parquet);
            let remedy = match is_adopted {
                true => format!(
                    "`tidetable run {job} --adopt` takes the files that are there as they are, and `tidetable run {job} --force` \
                     publishes all of them again"
                ),
                false => format!(
                    "put it back from a backup; or move the folders of {export} below exports/ away, and `tidetable run {job}` publishes \
                     all of them again"
                ),
            };

            let list = format!("exports/{export}.json");
            self.find(list, FindingKind::List, damage, costs, Remedy::Person(remedy));
        }
        Ok(())
    }

    fn published(&mut self, blobs: &dyn Blobs, list: &Published) -> Result<(), RunError> {
        for (label, part) in &list.parts {
            for file in part.files() {
                self.count(FindingKind::Published);
                let path = format!("exports/{}/{}", part.folder, file.file);

                let damage = match blobs.stat(&path)? {
                    Some(found) if found.bytes == file.bytes => continue,
                    Some(found) if file.is_other_file(found) && list.is_older_than(blobs, &path)? => {
                        "it is newer than its list: a run replaced it and stopped before it wrote the list, killed or on a full disk, or it \
                         was exchanged since"
                            .to_owned()
                    }
                    Some(found) => format!("it has {} bytes, and its list says {}", found.bytes, file.bytes),
                    None => "it is missing".to_owned(),
                };

                let costs = format!("rows of {label} in exports.{} cannot be read", list.name);
                let remedy = format!(
                    "`tidetable run {}` publishes it again; if cells of it have passed their retention, put it back from a backup",
                    list.job
                );

                self.find(path, FindingKind::Published, damage, costs, Remedy::Person(remedy));
            }
        }
        self.table_logs(blobs, list)
    }

    /// Finds logs of tables that do not say what the list says. While the job runs, its list is ahead of the log.
    fn table_logs(&mut self, blobs: &dyn Blobs, list: &Published) -> Result<(), RunError> {
        if holder(blobs, &list.job)?.is_some() {
            return Ok(());
        }

        for LogFinding { log, path, damage, is_behind } in log_findings(blobs, list)? {
            let costs = format!("readers of the table see other rows than exports.{}", list.name);
            let remedy = match is_behind {
                true => format!(
                    "`tidetable run {}` brings it up to the list; if the export has no `{} = true` any more, remove the folder",
                    list.job,
                    log.key()
                ),
                false => format!("move the folder away; then `tidetable run {}` begins a new log", list.job),
            };

            let kind = match log {
                TableLog::Delta => FindingKind::DeltaLog,
                TableLog::Iceberg => FindingKind::IcebergMetadata,
            };

            self.find(path, kind, damage, costs, Remedy::Person(remedy));
        }
        Ok(())
    }

    fn table(&mut self, store: &Store, table: String, context: TableContext<'_>) -> Result<(), RunError> {
        let health = TableHealth::of(&store.table(&table))?;
        if health.newest == 0 && health.damaged.is_empty() {
            // A table that was never committed, left by a killed first run.
            return Ok(());
        }
        *self.read.entry(FindingKind::Manifest).or_default() += health.newest + 1 - health.oldest.min(health.newest);

        let lost = lost_versions(store, &table, &health, context.named)?;
        let goes_back = lost.is_some() || (!health.is_lost() && health.readable < health.newest);
        let gone = match goes_back {
            true => {
                let readable = store.table(&table).version(health.readable)?;
                let TableIdentity { job, spec, .. } = &readable.table;
                let places = context.project.map(|project| InputPlaces::new(project, job, &spec.name, context.runtime));
                LostInputs::find(store.blobs().as_ref(), places.as_ref(), &readable, context.without)?
            }
            false => LostInputs::default(),
        };
        self.manifests(&table, &health, &gone);
        if let Some(lost) = &lost {
            self.lost_manifests(&table, &health, lost, &gone);
        }

        let is_damaged = !health.damaged.is_empty() || lost.is_some();
        if is_damaged && gone.is_empty() && !health.is_newer {
            let named = lost.map_or(0, |lost| lost.version);
            self.tables.push(DamagedTable { name: table, health, named });
        }
        Ok(())
    }

    /// Finds damaged manifests, checkpoints and SSTs. `gone` is what only versions hold to which the table cannot go back.
    fn manifests(&mut self, table: &str, health: &TableHealth, gone: &LostInputs) {
        let job = health.job.clone().unwrap_or_else(|| "JOB".to_owned());
        let (costs, fix) = costs_and_fix(table, &job, health);

        for file in &health.damaged {
            let is_checkpoint = file.path.contains("/checkpoint/");
            let kind = if is_checkpoint { FindingKind::Checkpoint } else { FindingKind::Manifest };
            let remedy = match health.is_newer {
                true => Remedy::Person("use the newer build that wrote it".to_owned()),
                false if !gone.is_empty() => Remedy::Person(gone.remedy()),
                false => Remedy::Fix(fix.clone()),
            };

            let costs = costs.clone() + &gone.costs();
            self.find(file.path.clone(), kind, file.reason.clone(), costs, remedy);
        }

        for file in &health.lost_ssts {
            let costs = format!("rows of {table} that it holds cannot be read");
            let remedy = format!(
                "restore it from a backup; or `tidetable repair {table} --yes` takes it out, and then `tidetable run {job}` loads \
                 its inputs again"
            );
            let remedy = Remedy::Person(remedy);
            self.find(file.path.clone(), FindingKind::Sst, file.reason.clone(), costs, remedy);
        }
    }

    /// Finds the loss of versions that other files name and that have no manifest.
    fn lost_manifests(&mut self, table: &str, health: &TableHealth, lost: &LostVersion, gone: &LostInputs) {
        let (newest, LostVersion { version, named_by }) = (health.newest, lost);
        let job = health.job.clone().unwrap_or_else(|| "JOB".to_owned());
        let damage = format!("{named_by} names version {version}, and the newest manifest is that of version {newest}");
        let costs = format!("loads and deletes of {table} since version {newest} are lost") + &gone.costs();

        let remedy = match gone.is_empty() {
            true => Remedy::Fix(format!(
                "goes on from version {newest}; then `tidetable run {job}` loads again what was loaded since, and what was \
                 deleted since has to be deleted again; or put the manifests back from a backup"
            )),
            false => Remedy::Person(gone.remedy()),
        };
        self.find(format!("tables/{table}/manifest"), FindingKind::Manifest, damage, costs, remedy);
    }

    /// Finds tables that runs of the project wrote and that are gone as a whole.
    fn lost_tables(&mut self, store: &Store, project: &Project) -> Result<(), RunError> {
        for lost in Marks::of(project).lost_tables(project, store)? {
            let LostTable { table, run, date, .. } = lost;
            let damage = format!("run {run} wrote into it on {date}, and the table is gone");
            let remedy =
                "restore a backup, or load the inputs that are still there by a run with `--rebuild`".to_owned();
            let path = format!("tables/{table}");
            let costs = format!("all rows of {table}");
            self.find(path, FindingKind::Manifest, damage, costs, Remedy::Person(remedy));
        }
        Ok(())
    }

    fn locks(&mut self, blobs: &dyn Blobs) -> Result<(), RunError> {
        for name in blobs.list("locks")? {
            let Some(job) = name.strip_suffix(".lock") else { continue };
            self.count(FindingKind::Lock);
            let path = format!("locks/{name}");

            // The lock of a running job may be half written.
            if holder(blobs, job)?.is_some() {
                continue;
            }

            let Some(bytes) = blobs.read(&path)? else { continue };
            if let Err(error) = serde_json::from_slice::<tidetable_record::Holder>(&bytes)
                && !bytes.is_empty()
            {
                let costs = "nothing but the name of the run that held it last".to_owned();
                let remedy = Remedy::Fix("empties it".to_owned());
                self.find(path, FindingKind::Lock, error.to_string(), costs, remedy);
            }
        }
        Ok(())
    }

    fn notes(&mut self, store: &Store, now: i64) -> Result<(), RunError> {
        let left = tidetable_upkeep::leftovers(store, now.saturating_sub(MIN_AGE))?;
        if !left.is_empty() {
            let bytes: u64 = left.iter().map(|file| file.bytes).sum();
            let files = several(left.len() as u64, "half-written file");
            self.notes
                .push(format!("{files} of {bytes} bytes, left by killed runs: `tidetable clean --yes` removes them"));
        }

        if !store.blobs().list(QUARANTINE)?.is_empty() {
            self.notes.push(format!(
                "{QUARANTINE}/ holds damaged files that were moved there: remove them when they are no longer needed"
            ));
        }
        Ok(())
    }

    /// Reports a file of a newer build, which this one does not fix.
    fn newer(&mut self, kind: FindingKind, error: StoreError) -> Result<(), RunError> {
        let StoreError::Newer { path, .. } = &error else { return Err(error.into()) };

        let remedy = Remedy::Person("use the newer build that wrote it".to_owned());
        let costs = "this build goes on without it".to_owned();
        self.find(path.clone(), kind, error.to_string(), costs, remedy);
        Ok(())
    }
}

/// The result, or the default if a file is in place of a directory, which is reported separately.
fn or_in_the_way<T: Default>(found: Result<T, RunError>) -> Result<T, RunError> {
    match found {
        Err(RunError::Store(StoreError::Blob(BlobError::NotADirectory { .. }))) => Ok(T::default()),
        found => found,
    }
}

/// What the diagnosis of a table needs beside the store.
#[derive(Clone, Copy)]
struct TableContext<'a> {
    project: Option<&'a Project>,
    /// The versions that other files of the store name.
    named: &'a KnownVersions,
    /// Inputs that may be given up, by name or pattern.
    without: &'a [String],
    /// The runtime by which buckets of inputs are asked.
    runtime: &'a Handle,
}

/// The newest version that other files name and that has no manifest, unless the table cannot be read anyway.
fn lost_versions(
    store: &Store,
    table: &str,
    health: &TableHealth,
    named: &KnownVersions,
) -> Result<Option<LostVersion>, RunError> {
    if health.is_lost() || health.readable < health.newest {
        return Ok(None);
    }
    let newest = store.table(table).version(health.newest)?;
    let Err(StoreError::VersionLost { version, named_by, .. }) = named.check(store, table, &newest) else {
        return Ok(None);
    };
    Ok(Some(LostVersion { version, named_by }))
}

/// The remedy for a finding.
enum Remedy {
    /// What `--fix` does about it.
    Fix(String),
    /// What the user does, or the next run.
    Person(String),
}

/// Costs and remedy of damaged versions of a table.
fn costs_and_fix(table: &str, job: &str, health: &TableHealth) -> (String, String) {
    let TableHealth { newest, readable, whole_from, oldest, .. } = *health;
    if health.is_lost() {
        return (
            format!("no version of {table} can be read: queries of it and runs of its job fail"),
            format!(
                "moves the whole table to quarantine; then `tidetable run {job} --rebuild` builds it from its inputs"
            ),
        );
    }

    if readable < newest {
        let lost = if readable + 1 == newest {
            format!("version {newest}")
        } else {
            format!("versions {} to {newest}", readable + 1)
        };

        return (
            format!("{lost} of {table} cannot be read: queries of it and runs of its job fail"),
            format!(
                "goes back to version {readable}; then `tidetable run {job}` loads again what was loaded since, and what was \
                 deleted since has to be deleted again"
            ),
        );
    }

    if whole_from > oldest {
        return (
            format!(
                "versions of {table} before {whole_from} cannot be read, and vacuum stops at them; the newest are whole"
            ),
            format!("makes {whole_from} the oldest version of {table}"),
        );
    }
    (format!("some versions of {table} take longer to read"), "moves it to quarantine".to_owned())
}

/// The job that declares an export, and the format of its files.
fn declared_export(project: Option<&Project>, export: &str) -> Option<(String, FileFormat)> {
    let project = project?;
    for name in project.jobs() {
        let Ok(job) = Job::load(project, &name) else { continue };
        if let Some(declared) = job.exports.iter().find(|declared| declared.name == export) {
            return Some((name, declared.format));
        }
    }
    None
}
