//! The load stage: loads the inputs of each source into its tables, reading each input once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tidetable_ingest::Loader;
use tidetable_ingest::{
    Feed, FileFeed, Grown, InputPlan, InputPlanOptions, LeftWindow, LoadStats, LoadTarget, Loaded, Prepare, Progress,
    RejectedRow,
};
use tidetable_job::{Job, Source, Table, TableInput, several};
use tidetable_layout::time::window_name;
use tidetable_record::{Added, InputRecord, InputState, LoadRecord, OwedRecord, OwingInput, Seen};
use tidetable_source::{
    DiscoveredFiles, Format, InputFile, PulledDirectory, SourceSpec, Storage, Unread, folder_of_part,
};
use tidetable_store::version::TableIdentity;
use tidetable_store::{Ids, Input, Store, StoreError, Table as StoredTable, Version, VersionEdit};

use crate::fault::error::RunError;
use crate::fault::stop::Stoppable;
use crate::observe::{Event, Observer, Unit};
use crate::options::run_options::RunOptions;
use crate::options::without::{Without, options_for, some};
use crate::run::context::Run;
use crate::run::stages::looks::Looks;
use crate::run::stages::owner::identity_of;
use crate::run::stages::pulled;
use crate::run::stages::unfinished::{LeftOut, as_before, hash_before};
use crate::run::stages::without::{add_names, check_without};
use crate::units::columns::{ColumnDiffFeed, OtherColumns};
use crate::units::load::CarriedLoad;
use crate::units::tally::Tally;
use crate::units::wire::{JobReference, Unit as WorkUnit, Work};
use crate::units::work::LoadFrom;

/// A load that is complete except for its commit.
pub(crate) struct Pending {
    table: StoredTable,
    base: Version,
    edit: VersionEdit,
    /// Rejected rows of the re-read inputs in the version before.
    pub(crate) let_pass: u64,
    /// Counts of inputs before they grew: the limit applies to a file as a whole.
    pub(crate) held: HeldCounts,
    /// Inputs of the edit that were not read: their content is unchanged, and has a new fingerprint.
    restated: Vec<Input>,
    /// Grown inputs whose appended rows would hide cells of later inputs.
    pub(crate) overtaken: Vec<String>,
    pub(crate) record: LoadRecord,
}

/// Whether the dump that was found takes the place of the inputs that a table holds. A dump is the whole table, so what it lacks
/// is gone; where none is found, or one without rows as that of a program that has just begun to write, nothing is.
fn replaces(source: &SourceSpec, base: &Base, found: &DiscoveredFiles, looks: &Looks<'_>) -> Result<bool, RunError> {
    if !source.format.is_some_and(Format::is_dump) {
        return Ok(false);
    }
    let paths: HashSet<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
    if base.known().inputs.iter().all(|input| paths.contains(input.path.as_str())) {
        return Ok(false);
    }
    for file in &found.files {
        if looks.holds_rows(file).map_err(StoreError::from)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts of inputs in the version before.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct HeldCounts {
    pub(crate) rejected: u64,
    /// Lines of rejected rows beyond the first of each.
    pub(crate) more_lines: u64,
    pub(crate) read: u64,
}

/// Context of the load stage.
pub(crate) struct LoadStage<'a> {
    pub(crate) job: &'a Job,
    pub(crate) store: &'a Store,
    pub(crate) storage: &'a Storage,
    pub(crate) options: &'a RunOptions,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
    /// Gone and copied inputs that the last run of the job saw.
    pub(crate) seen: &'a Seen,
    /// Files with other columns than declared.
    pub(crate) others: OtherColumns,
    /// The root as the project names it.
    pub(crate) root: &'a str,
    /// The job as other processes find it; `None` without a carrier.
    pub(crate) reference: Option<&'a JobReference>,
    /// Counts what other processes do for the run.
    pub(crate) tally: &'a Tally,
    /// Files and sources that are not read.
    pub(crate) left: LeftOut,
}

impl Run<'_> {
    /// The load stage of this run; `on_reject` is called for each rejected row.
    pub(crate) fn stage<'b>(&'b self, on_reject: &'b (dyn Fn(&RejectedRow) + Sync)) -> LoadStage<'b> {
        LoadStage {
            job: self.job,
            store: self.store,
            storage: self.storage,
            options: self.options,
            ids: self.ids,
            observer: self.observer,
            on_reject,
            seen: self.seen,
            others: OtherColumns::default(),
            root: self.root,
            reference: self.reference,
            tally: &self.tally,
            left: LeftOut::default(),
        }
    }
}

/// What a load reads.
pub(crate) struct LoadFeed<'a> {
    pub(crate) feed: &'a dyn Feed,
    /// What prepares the rows of a source for all its tables.
    pub(crate) derive: Option<&'a dyn Prepare>,
    /// The same for other processes.
    pub(crate) from: LoadFrom,
}

/// A table to load, with its plan.
pub(crate) struct Planned<'a> {
    pub(crate) table: &'a Table,
    pub(crate) stored: StoredTable,
    pub(crate) base: Base,
    pub(crate) plan: InputPlan,
}

/// A source to load into its tables.
pub(crate) struct PlannedSource<'a> {
    pub(crate) source: &'a Source,
    pub(crate) tables: Vec<Planned<'a>>,
    /// Patterns that match no file.
    pub(crate) unmatched: Vec<String>,
    /// Directories of pulls that its patterns reach.
    pub(crate) pulled: Vec<PulledDirectory>,
    /// Names that its patterns reach and that are not read.
    pub(crate) unread: Vec<Unread>,
    /// Keys of folders that no column reads, each with the first file of such a folder.
    pub(crate) undeclared_keys: BTreeMap<String, String>,
}

/// What the sources reach of pulls.
pub(crate) fn pulls<'a>(sources: &'a [PlannedSource<'_>]) -> pulled::Pulls<'a> {
    sources.iter().map(|planned| (planned.source.spec.name.as_str(), planned.pulled.as_slice())).collect()
}

impl<'a> LoadStage<'a> {
    /// The loads that the tables of sources need, by source, in the order of the job file.
    pub(crate) fn plan(&self) -> Result<Vec<PlannedSource<'a>>, RunError> {
        let job: &'a Job = self.job;
        let mut sources = Vec::with_capacity(job.sources.len());
        for source in &job.sources {
            self.options.stop.check()?;
            let of_source = TableInput::Source(source.spec.name.clone());
            let tables: Vec<&'a Table> = job.tables.iter().filter(|table| table.from == of_source).collect();
            if !tables.is_empty() {
                sources.push(match self.left.sources.contains(&source.spec.name) {
                    true => self.plan_idle(source, &tables)?,
                    false => self.plan_source(source, &tables)?,
                });
            }
        }

        self.check_without(&sources)?;
        Ok(sources)
    }

    /// Checks the names of `--without`.
    fn check_without(&self, sources: &[PlannedSource<'_>]) -> Result<(), RunError> {
        if self.options.without.is_empty() {
            return Ok(());
        }
        let (mut known, mut gone) = (BTreeSet::new(), BTreeSet::new());
        for planned in sources.iter().flat_map(|source| &source.tables) {
            add_names(planned.base.known(), &mut known);
            gone.extend(planned.plan.vanished.iter().map(|input| input.path.as_str()));
        }
        check_without(&self.job.name, &self.options.without, &known, gone)
    }

    /// The loads that the tables of one source need.
    fn plan_source(&self, source: &'a Source, tables: &[&'a Table]) -> Result<PlannedSource<'a>, RunError> {
        let found = self.storage.find(&source.spec).map_err(StoreError::from)?;
        pulled::holds_all(source, tables, &found.pulled)?;
        let mut bases = Vec::with_capacity(tables.len());
        for table in tables {
            let stored = self.store.table(&table.spec.name);
            let base = self.base(&stored, table, Some(source), &found.pulled)?;
            bases.push((stored, base));
        }
        let found = self.matched(&source.spec, found, bases.iter().map(|(_, base)| base))?;
        let undeclared_keys = found.undeclared_keys(&source.spec);

        let looks = Looks::new(self.storage, &source.spec);
        let mut planned = Vec::with_capacity(tables.len());
        for (table, (stored, base)) in tables.iter().zip(bases) {
            let plan = self.plan_table(&source.spec, table, &base, &found, &looks)?;
            planned.push(Planned { table, stored, base, plan });
        }
        let DiscoveredFiles { unmatched, pulled, unread, .. } = found;
        Ok(PlannedSource { source, tables: planned, unmatched, pulled, unread, undeclared_keys })
    }

    /// Loads of nothing, for the tables of a source whose files are not read.
    fn plan_idle(&self, source: &'a Source, tables: &[&'a Table]) -> Result<PlannedSource<'a>, RunError> {
        let mut planned = Vec::with_capacity(tables.len());
        for table in tables {
            let stored = self.store.table(&table.spec.name);
            let base = self.base(&stored, table, Some(source), &[])?;
            planned.push(Planned { table, stored, base, plan: InputPlan::default() });
        }
        let (unmatched, pulled, unread) = (Vec::new(), Vec::new(), Vec::new());
        Ok(PlannedSource { source, tables: planned, unmatched, pulled, unread, undeclared_keys: BTreeMap::new() })
    }

    /// What a table needs of the files that were found for its source.
    fn plan_table(
        &self,
        source: &SourceSpec,
        table: &Table,
        base: &Base,
        found: &DiscoveredFiles,
        looks: &Looks<'_>,
    ) -> Result<InputPlan, RunError> {
        let given_up = Without::new(&self.options.without);
        // A rebuilt table loads all its inputs, whatever days are to be published. Changed inputs are always
        // read: a window is built from all its inputs in their current state.
        let days = self.options.days.as_ref().filter(|_| base.reset.is_none());
        let wants = |file: &InputFile| days.is_none_or(|days| file.day.is_none_or(|day| days.contains(&day)));
        let is_replaced = found.files.iter().all(wants) && replaces(source, base, found, looks)?;
        // Which parts there were is not in their names: one that is gone from its folder is an input that is gone.
        let parts: HashSet<String> = found.files.iter().filter_map(|file| folder_of_part(&file.path)).collect();

        let options = InputPlanOptions {
            without: &|path| {
                let is_former = is_replaced && !folder_of_part(path).is_some_and(|folder| parts.contains(&folder));
                is_former || given_up.takes(path) || found.pulled.iter().any(|pulled| pulled.drops(path))
            },
            wants: &wants,
            growth: &|file, held| looks.growth(file, held),
            packed_content: &|file, held| looks.packed_content(file, held),
            holds_rows: &|file| looks.holds_rows(file),
            folder_values: &|path| looks.folder_values(path),
            rebuild: base.reset.is_some(),
        };

        let files = as_before(found.files.clone(), &self.left.files, base.known());
        let plan = InputPlan::new(base.known(), files, options, |file| {
            match hash_before(&file.path, &self.left.files, base.known()) {
                Some(hash) => Ok(hash),
                None => looks.hash(file),
            }
        });
        // A request to stop is the cause of any error after it.
        self.options.stop.check()?;
        let mut plan = plan.map_err(StoreError::from)?;

        if base.reset.is_some() && !plan.vanished.is_empty() {
            let gone: Vec<String> = plan.vanished.iter().map(|input| input.path.clone()).collect();
            // A rebuild gives up all that are gone, so the pattern of all names takes no other.
            let remove = options_for(&gone).unwrap_or_else(|| "--without '**'".to_owned());
            let (table, gone) = (table.spec.name.clone(), some(&gone));
            return Err(RunError::RebuildGone { derived: self.derived_from(&table), table, gone, remove });
        }

        plan.read_again(&self.options.reread);
        Ok(plan)
    }

    /// Loads what was planned, without committing, in the order of the job file.
    pub(crate) fn load(&self, sources: Vec<PlannedSource<'_>>) -> Result<Vec<Pending>, RunError> {
        let mut pending: Vec<Pending> = Vec::new();
        for PlannedSource { source, tables, .. } in sources {
            let derive = Some(&source.preparation as &dyn Prepare).filter(|_| !source.preparation.is_empty());
            let feed = FileFeed { storage: self.storage, source: &source.spec };
            let feed = ColumnDiffFeed { feed, others: &self.others };
            let from = LoadFrom::Source(source.spec.name.clone());
            let feed = LoadFeed { feed: &feed, derive, from };
            match self.load_planned(&source.spec.name, feed, tables) {
                Ok(loaded) => pending.extend(loaded),
                Err(error) => {
                    pending.iter().for_each(Pending::discard);
                    return Err(error);
                }
            }
        }
        let tables = &self.job.tables;
        pending.sort_by_key(|load| tables.iter().position(|table| table.spec.name == load.record.table));
        Ok(pending)
    }

    /// Loads the tables of one feed. `source` is what the feed reads, for the records.
    pub(crate) fn load_planned(
        &self,
        source: &str,
        from: LoadFeed<'_>,
        planned: Vec<Planned<'_>>,
    ) -> Result<Vec<Pending>, RunError> {
        let LoadFeed { feed, derive, from } = from;

        let names: Vec<&str> = planned.iter().map(|planned| planned.table.spec.name.as_str()).collect();
        let name = format!("load {}", names.join(", "));
        let on_progress = |progress| self.observer.event(event_of(progress, &name));
        let with_work = planned.iter().filter(|planned| planned.has_work());
        let loader = Loader {
            feed: &Stoppable { feed, stop: &self.options.stop },
            derive,
            targets: with_work.clone().map(Planned::target).collect(),
            ids: self.ids,
            memory: self.options.memory,
            temp_dir: self.options.temp_dir.as_deref(),
            on_reject: self.on_reject,
            on_progress: &on_progress,
        };

        let loaded = match &self.options.carrier {
            None => loader.load(),
            Some(carrier) => loader.load_by(&CarriedLoad {
                carrier: carrier.as_ref(),
                unit: &|work| self.unit(work),
                stop: &self.options.stop,
                blobs: self.store.blobs().as_ref(),
                tally: self.tally,
                others: &self.others,
                from,
                tables: with_work.map(|planned| planned.table.spec.name.clone()).collect(),
                on_progress: &on_progress,
                on_reject: self.on_reject,
                note: &|note| self.observer.event(Event::Note(note)),
            }),
        };

        // A request to stop is the cause of any error after it.
        if loaded.is_err() {
            self.options.stop.check()?;
        }
        let mut loaded = loaded?.into_iter();

        let mut pending = Vec::with_capacity(planned.len());
        for planned in planned {
            let loaded = if planned.has_work() { loaded.next() } else { None };
            pending.push(self.pending(source, planned, loaded));
        }
        Ok(pending)
    }

    /// The pending commit of a table, of which `loaded` was loaded.
    fn pending(&self, source: &str, mut planned: Planned<'_>, loaded: Option<Loaded>) -> Pending {
        if let Some(loaded) = &loaded {
            planned.plan.rebuild_grown(&loaded.overtaken);
        }
        let mut inputs = self.inputs_of(&planned.plan);
        planned.count_growth(loaded.as_ref(), &mut inputs);
        let unchanged = planned.plan.unchanged.len() - planned.plan.renamed.len();
        let found = self.seen.changes(&planned.table.spec.name, inputs, unchanged as u64);

        let let_pass = planned.rejected_before(&self.options.reread);
        let held = planned.held();
        let loaded = loaded.map(|loaded| planned.unless_the_same(loaded, &self.options.reread));
        Pending { let_pass, held, ..planned.pending(source, loaded, found) }
    }

    /// A unit of this run.
    pub(crate) fn unit(&self, work: Work) -> WorkUnit {
        WorkUnit::of_run(self.root, &self.options.run, self.options.now, self.reference, work)
    }

    /// The files of the source. A pattern without a match is no error if the source was loaded before: the rows
    /// it brought stay.
    fn matched<'b>(
        &self,
        source: &SourceSpec,
        mut found: DiscoveredFiles,
        bases: impl Iterator<Item = &'b Base> + Clone,
    ) -> Result<DiscoveredFiles, StoreError> {
        if !found.work_files.is_empty() {
            let mut inputs = BTreeSet::new();
            for base in bases.clone() {
                add_names(base.known(), &mut inputs);
            }
            found.keep_work_files(|path| inputs.contains(path));
        }
        if !found.unmatched.is_empty() && !bases.clone().any(|base| !base.known().inputs.is_empty()) {
            let pattern = found.unmatched.swap_remove(0);
            return Err(self.storage.no_match(source, pattern, &found.unread).into());
        }
        Ok(found)
    }

    /// The tables of the job whose queries read the table `name`.
    fn derived_from(&self, name: &str) -> Box<[String]> {
        let reading = self.job.tables.iter().filter(|table| match &table.from {
            TableInput::Query { shape, .. } => shape.reads.iter().any(|read| read == name),
            TableInput::Source(_) => false,
        });
        reading.map(|table| table.spec.name.clone()).collect()
    }

    /// The version to load upon. For a rebuild, an empty version and the new identity of the table. A table that keeps pulled
    /// cells as they are is rebuilt when the families of its job follow those that were pulled.
    pub(crate) fn base(
        &self,
        stored: &StoredTable,
        table: &Table,
        source: Option<&Source>,
        pulled: &[PulledDirectory],
    ) -> Result<Base, RunError> {
        let identity = identity_of(self.job, table, source);
        let latest = stored.latest()?;
        let held = stored.base(&identity);

        let follows = matches!(held, Err(StoreError::LayoutChanged { .. }))
            && latest.as_ref().is_some_and(|latest| pulled::follows(&latest.table.spec, &table.spec, pulled));

        if let (true, Some(latest)) = (self.options.rebuilds(&table.spec.name) || follows, &latest)
            && !matches!(held, Err(StoreError::OwnedByOtherJob { .. }))
        {
            let mut version = Version::empty(identity.clone());
            version.number = latest.number;
            version.table_uuid.clone_from(&latest.table_uuid);
            version.tombstones.clone_from(&latest.tombstones);
            return Ok(Base { version, latest: Some(latest.clone()), reset: Some(identity), gc: None });
        }

        let version = held?;
        let gc = (version.table.gc != identity.gc).then_some(identity.gc);
        Ok(Base { version, latest, reset: None, gc })
    }

    /// The record of each input that changes.
    pub(crate) fn inputs_of(&self, plan: &InputPlan) -> Vec<InputRecord> {
        let mut inputs = Vec::new();
        for (_, file) in plan.new.iter().chain(&plan.resumed) {
            inputs.push(InputRecord::new(&file.path, InputState::New));
        }
        for (file, old) in &plan.changed {
            inputs.push(InputRecord::new(&file.path, self.options.state_of(file, old)));
        }
        for Grown { file, held, .. } in &plan.grown {
            let same_as = Some(held.path.clone()).filter(|before| *before != file.path);
            inputs.push(InputRecord { same_as, ..InputRecord::new(&file.path, InputState::Grown) });
        }
        for (from, now) in &plan.renamed {
            inputs.push(InputRecord { same_as: Some(from.clone()), ..InputRecord::new(now, InputState::Renamed) });
        }
        for (file, other) in &plan.same {
            let copy = InputRecord::new(&file.path, InputState::SameContent);
            inputs.push(InputRecord { same_as: Some(other.clone()), ..copy });
        }

        for TakenOut { path, state, .. } in taken_out(plan) {
            inputs.push(InputRecord::new(path, state));
        }
        for input in &plan.vanished {
            inputs.push(InputRecord::new(&input.path, absence(plan, input)));
        }
        inputs
    }
}

/// What an observer is told of the progress of a load.
fn event_of(progress: Progress, name: &str) -> Event {
    match progress {
        Progress::ToRead { bytes } => Event::Stage { name: name.to_owned(), unit: Unit::Bytes, total: bytes },
        Progress::Read { bytes, rows } => Event::Read { bytes, rows },
        Progress::Encoded { rows } => Event::Laid { rows },
        Progress::Wrote { rows } => Event::Wrote { rows },
    }
}

/// The state of a vanished input of a plan.
pub(crate) fn absence(plan: &InputPlan, input: &Input) -> InputState {
    if plan.emptied.contains(&input.path) { InputState::Empty } else { InputState::Gone }
}

/// An input that a plan removes.
pub(crate) struct TakenOut<'a> {
    pub(crate) path: &'a str,
    /// Why it is removed.
    pub(crate) state: InputState,
    /// The UTC days that its cells lie in, since the epoch.
    pub(crate) days: &'a [i32],
}

/// The inputs that a plan removes, except copies of others.
pub(crate) fn taken_out(plan: &InputPlan) -> Vec<TakenOut<'_>> {
    let copies: HashSet<&str> = plan.same.iter().map(|(file, _)| file.path.as_str()).collect();
    let left_out: HashSet<&str> = plan.left_out.iter().map(String::as_str).collect();
    let mut taken_out = Vec::new();

    for Input { path, days, .. } in plan.given_up.iter().filter(|input| !copies.contains(input.path.as_str())) {
        let is_left_out = left_out.contains(path.as_str());
        let state = if is_left_out { InputState::LeftOut } else { InputState::TakenOut };
        taken_out.push(TakenOut { path, state, days });
    }

    let with_rows: HashSet<&str> = taken_out.iter().map(|input| input.path).collect();
    let mut names: Vec<&str> = plan.names.iter().map(|name| name.path.as_str()).collect();
    names.retain(|path| left_out.contains(path) && !with_rows.contains(path) && !copies.contains(path));
    taken_out.extend(names.into_iter().map(|path| TakenOut { path, state: InputState::LeftOut, days: &[] }));
    taken_out
}

/// A note on each of `without` that removes nothing: its file is there, or its rows were removed before.
pub(crate) fn idle_notes(without: &[String], sources: &[PlannedSource<'_>]) -> Vec<String> {
    let tables = sources.iter().flat_map(|source| &source.tables);
    if tables.clone().any(|planned| planned.base.reset.is_some()) {
        return Vec::new();
    }

    let mut removed = BTreeSet::new();
    for planned in tables {
        let left_out = taken_out(&planned.plan).into_iter().filter(|input| input.state == InputState::LeftOut);
        removed.extend(left_out.map(|input| input.path));
    }
    Without::new(without)
        .idle(&removed)
        .map(|path| format!("--without {path} has no effect: no missing input has that name"))
        .collect()
}

/// A note on inputs of a table that were loaded by reading rules of an earlier version.
pub(crate) fn older_rules_note(planned: &Planned<'_>) -> Option<String> {
    let Planned { table, base, plan, .. } = planned;
    let name = &table.spec.name;
    if base.reset.is_some() {
        let older = base.known().inputs.iter().filter(|input| input.reader.is_older()).count() as u64;
        if older == 0 || !matches!(table.from, TableInput::Source(_)) {
            return None;
        }
        let (they, were) = if older == 1 { ("it", "was") } else { ("they", "were") };
        return Some(format!(
            "{name}: the rebuild reads {} by the reading rules of this version; {they} {were} loaded by older ones",
            several(older, "input")
        ));
    }

    let older: Vec<&str> = plan.read_by_older_rules().collect();
    let first = older.first()?;
    let others = if older.len() > 1 { format!(" and {} more", older.len() - 1) } else { String::new() };
    Some(format!(
        "{name}: {first}{others} goes on under the reading rules by which it was loaded; `run --rebuild` reads it by those of this version"
    ))
}

/// The version that a load starts from.
pub(crate) struct Base {
    pub(crate) version: Version,
    /// The newest version, if there is one.
    pub(crate) latest: Option<Version>,
    /// The identity that a rebuild gives the table.
    pub(crate) reset: Option<TableIdentity>,
    /// The garbage-collection rules that the load gives the table, by family, if they have changed.
    pub(crate) gc: Option<BTreeMap<String, String>>,
}

impl Base {
    /// The version whose inputs and names are known; for a rebuild, the one it replaces.
    pub(crate) fn known(&self) -> &Version {
        self.latest.as_ref().filter(|_| self.reset.is_some()).unwrap_or(&self.version)
    }
}

impl Planned<'_> {
    /// Whether there is anything to load.
    pub(crate) fn has_work(&self) -> bool {
        !self.plan.is_empty() || self.base.reset.is_some()
    }

    /// Rejected lines, so far, of the inputs that are read again.
    fn rejected_before(&self, reread: &[String]) -> u64 {
        let again = self.plan.changed.iter().filter(|(file, _)| reread.contains(&file.path));
        again.map(|(_, old)| old.rejected + old.more_lines_rejected).sum()
    }

    /// Counts, so far, of inputs that have grown.
    fn held(&self) -> HeldCounts {
        let mut counts = HeldCounts::default();
        for Grown { held, .. } in self.plan.grown.iter().filter(|grown| grown.from > 0) {
            counts.rejected += held.rejected;
            counts.more_lines += held.more_lines_rejected;
            counts.read += held.read;
        }
        counts
    }

    /// Records in `inputs` by how much files have grown.
    fn count_growth(&self, loaded: Option<&Loaded>, inputs: &mut [InputRecord]) {
        for Grown { file, held, .. } in self.plan.grown.iter().filter(|grown| grown.from > 0) {
            let now = loaded.and_then(|loaded| loaded.edit.inputs.iter().find(|input| input.path == file.path));
            if let (Some(now), Some(record)) = (now, inputs.iter_mut().find(|record| record.path == file.path)) {
                record.added =
                    Some(Added { bytes: now.size.saturating_sub(held.size), rows: now.read.saturating_sub(held.read) });
            }
        }
    }

    /// The load, but without a commit if re-read inputs gave what the table already holds.
    fn unless_the_same(&self, mut loaded: Loaded, reread: &[String]) -> Loaded {
        let VersionEdit { inputs, names, removed, .. } = &loaded.edit;
        let only_inputs = !inputs.is_empty() && names.is_empty() && removed.is_empty();
        // A new fingerprint of unchanged content needs no version of its own.
        let mut changed = inputs.iter().filter(|input| !self.plan.restated.contains(input));
        let is_the_same = changed.all(|input| reread.contains(&input.path) && self.holds_already(input));
        if self.base.reset.is_some() || !only_inputs || !is_the_same {
            return loaded;
        }

        self.stored.discard(&loaded.edit);
        loaded.edit = VersionEdit { base: loaded.edit.base, ..VersionEdit::default() };
        loaded.stats.forget_written();
        loaded
    }

    /// Whether a re-read input gave what the table holds of it.
    fn holds_already(&self, input: &Input) -> bool {
        let Some((_, old)) = self.plan.changed.iter().find(|(file, _)| file.path == input.path) else { return false };
        let Input { hash, read, rejected, days, owed, reader, .. } = input;
        let counts = (old.hash, old.read, old.rejected) == (*hash, *read, *rejected);
        counts && (&old.days, &old.owed, &old.reader) == (days, owed, reader)
    }

    /// What a loader needs to load it.
    fn target(&self) -> LoadTarget<'_> {
        LoadTarget {
            table: &self.stored,
            layout: &self.table.layout,
            filter: Some(&self.table.preparation as &dyn Prepare).filter(|_| !self.table.preparation.is_empty()),
            gc: &self.table.gc,
            base: &self.base.version,
            plan: &self.plan,
        }
    }

    /// The pending commit with its record; `found` has the state of the inputs.
    fn pending(self, source: &str, loaded: Option<Loaded>, found: LoadRecord) -> Pending {
        let Self { table, stored, base: Base { version: base, reset, gc, .. }, plan } = self;
        let Loaded { edit, stats, owed, overtaken } = loaded.unwrap_or_else(|| {
            let edit = VersionEdit { base: base.number, ..VersionEdit::default() };
            let owed = plan.owed_after(&base, &edit);
            Loaded { edit, stats: LoadStats::default(), overtaken: Vec::new(), owed }
        });

        let record = LoadRecord {
            source: source.to_owned(),
            before: base.number,
            version: base.number,
            rebuilt: edit.rebuilt.iter().map(|start| window_name(table.spec.window, *start)).collect(),
            owed: owed.iter().map(|left| owed_record(table, left)).collect(),
            to_remove: plan.to_remove(&owed),
            ssts: edit.ssts.values().flatten().map(|sst| sst.id.clone()).collect(),
            stats,
            ..found
        };

        Pending {
            table: stored,
            base,
            edit: VersionEdit { reset, gc, ..edit },
            let_pass: 0,
            held: HeldCounts::default(),
            restated: plan.restated,
            overtaken,
            record,
        }
    }
}

/// The record of a window of `table` that stays as it is.
pub(crate) fn owed_record(table: &Table, left: &LeftWindow) -> OwedRecord {
    let inputs = left.inputs.iter().map(|(path, rows)| OwingInput { path: path.clone(), rows: *rows });
    OwedRecord {
        window: window_name(table.spec.window, left.start),
        inputs: inputs.collect(),
        gone: left.gone.clone(),
        lost: left.lost,
    }
}

impl Pending {
    /// The inputs that it records.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Input> {
        self.edit.inputs.iter()
    }

    /// The inputs that were read.
    pub(crate) fn inputs_read(&self) -> impl Iterator<Item = &Input> {
        self.edit.inputs.iter().filter(|input| !self.restated.contains(input))
    }

    /// The least timestamp of the cells that it adds, microseconds since the epoch, without those at 0.
    pub(crate) fn oldest(&self) -> Option<i64> {
        self.edit.ssts.values().flatten().filter_map(|sst| sst.min_timestamp).min()
    }

    /// Its record if it is not committed: what was read, and nothing written.
    pub(crate) fn uncommitted(&self) -> LoadRecord {
        let mut record = LoadRecord { rebuilt: Vec::new(), ssts: Vec::new(), ..self.record.clone() };
        record.stats.forget_written();
        record
    }

    /// Removes the files of a load that is not committed.
    pub(crate) fn discard(&self) {
        self.table.discard(&self.edit);
    }

    /// Commits the load, if it changes anything.
    pub(crate) fn commit(self, ids: &dyn Ids, now: i64) -> Result<LoadRecord, StoreError> {
        let mut record = self.record;
        // The first run creates the table even without rows.
        if !self.edit.is_empty() || self.base.number == 0 {
            let base = if self.edit.reset.is_some() { self.table.latest()?.unwrap_or(self.base) } else { self.base };
            record.version = self.table.commit(base, &self.edit, ids, now)?.number;
        }
        Ok(record)
    }
}
