//! The real table, on any storage, and the steps on it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_blobs::Blobs;
use tidetable_ingest::Loader;
use tidetable_ingest::{InputPlan, InputPlanOptions, LoadTarget, Loaded};
use tidetable_layout::schema::{Encoding, Merge};
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{KeyRange, Layout, TableSpec};
use tidetable_store::DeletePlan;
use tidetable_store::version::TableIdentity;
use tidetable_store::{GcRule, Ids, Snapshot, Store, Table, Version, VersionEdit};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};
use tidetable_upkeep::{VacuumOptions, VacuumPlan};

use crate::cells::{Cells, cells_in};
use crate::event::{HOUR, Inputs, Source, source};
use crate::finding::{Finding, Result};
use crate::model::Model;
use crate::random::Names;
use crate::step::{Kind, Step};

const FAMILIES: [&str; 3] = ["F", "G", "S"];

/// A table with its run options, as a job would have it.
#[derive(Debug)]
pub struct World {
    table: Table,
    layout: Layout,
    gc: BTreeMap<String, String>,
    ids: Names,
    /// Memory budget of a load, in bytes; little memory makes a load spill.
    pub memory: u64,
    /// Whether the clock of the store gives all files different times.
    pub exact: bool,
}

/// A base version, the edit of a run, and the inputs to which the run appends.
pub type Prepared = (Version, VersionEdit, Vec<String>);

/// Result of a step that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The step had nothing to do, so that the newest version is as before.
    Nothing,
    /// The step committed the version with this number.
    Committed(u64),
}

impl World {
    /// A table in `blobs`; `run` makes its ids unique among runs.
    ///
    /// # Errors
    /// If the layout does not compile.
    pub fn new(blobs: Arc<dyn Blobs>, kind: Kind, run: u64) -> Result<Self> {
        let ruled = FAMILIES.iter().filter(|_| !kind.rule.is_empty());
        let gc = ruled.map(|family| ((*family).to_owned(), kind.rule.to_owned())).collect();
        Self::of(blobs, &table_spec(kind.dated), gc, run)
    }

    /// A table of another layout, with rules for its families.
    ///
    /// # Errors
    /// If the layout does not compile.
    pub fn of(blobs: Arc<dyn Blobs>, spec: &TableSpec, gc: BTreeMap<String, String>, run: u64) -> Result<Self> {
        let layout = Layout::compile(spec, &source())
            .map_err(|errors| Finding::new(format!("the layout does not compile: {errors:?}")))?;
        Ok(Self {
            table: Store::new(blobs).table("T"),
            layout,
            gc,
            ids: Names::new(run),
            memory: 1 << 30,
            exact: false,
        })
    }

    /// An empty model of it.
    ///
    /// # Errors
    /// If the rule does not parse.
    pub fn model(kind: Kind) -> Result<Model> {
        Ok(Model::new(kind.dated, Self::rule(kind)?))
    }

    /// The rule of all its families.
    ///
    /// # Errors
    /// If it does not parse.
    pub fn rule(kind: Kind) -> Result<Option<GcRule>> {
        let rule = (!kind.rule.is_empty()).then(|| GcRule::parse(kind.rule)).transpose();
        rule.map_err(|error| Finding::new(format!("{}: {error}", kind.rule)))
    }

    /// The table, on the storage that it was opened on.
    pub fn table(&self) -> &Table {
        &self.table
    }

    fn identity(&self) -> TableIdentity {
        TableIdentity {
            job: "proof".to_owned(),
            spec: self.layout.spec().clone(),
            source: self.layout.source().clone(),
            layout: self.layout.fingerprint(),
            gc: self.gc.clone(),
        }
    }

    /// Takes a step at logical time `now` with the inputs `inputs`. May be repeated after an error.
    ///
    /// # Errors
    /// Those of the store.
    pub fn act(&self, step: &Step, inputs: &Inputs, now: i64) -> Result<Done> {
        match step {
            Step::Load(_) | Step::Change(..) => self.load(inputs, now),
            Step::Drop(target) => {
                let Some(snapshot) = self.snapshot()? else { return Ok(Done::Nothing) };
                let edit = DeletePlan::new(&snapshot, target.clone())?.edit();
                if edit.is_empty() {
                    return Ok(Done::Nothing);
                }
                self.commit(snapshot.version().clone(), &edit, now)
            }
            Step::Compact(hours) => {
                let Some(snapshot) = self.snapshot()? else { return Ok(Done::Nothing) };

                // Each extent in turn.
                let extents = [CompactionExtent::Needed, CompactionExtent::Due, CompactionExtent::Full];
                let extent = extents[hours.rem_euclid(3) as usize];
                let plan = CompactionPlan::of_extent(&snapshot, now + hours * HOUR, extent)?;
                let done = Compaction::run(&plan, &self.ids)?;
                if plan.is_empty() {
                    return Ok(Done::Nothing);
                }
                self.commit(snapshot.version().clone(), &done.edit, plan.now)
            }
            Step::Rebuild => self.rebuild(inputs),
            Step::Vacuum(keep) => self.vacuum(*keep, None),
        }
    }

    /// Vacuums all but the newest `keep` versions, of files written before `before` by the clock of the store; by
    /// default, up to the newest commit.
    ///
    /// # Errors
    /// Those of the store.
    pub fn vacuum(&self, keep: u64, before: Option<i64>) -> Result<Done> {
        let newest = self.table.latest_number()?;
        let manifest = format!("tables/{}/manifest/{newest:020}.json", self.table.name());
        let Some(committed) = self.table.blobs().stat(&manifest)?.and_then(|stat| stat.modified) else {
            return Ok(Done::Nothing);
        };
        let before = before.unwrap_or(committed + i64::from(self.exact));
        let options = VacuumOptions { before, half_written_before: i64::MAX, keep_versions: keep };
        let done = VacuumPlan::new(&self.table, options)?.run(&self.ids)?;
        Ok(done.version.map_or(Done::Nothing, Done::Committed))
    }

    /// Loads new and changed inputs; nothing is committed if there are none.
    fn load(&self, inputs: &Inputs, now: i64) -> Result<Done> {
        let (base, edit) = self.prepared(inputs)?;
        if edit.is_empty() && base.number > 0 {
            return Ok(Done::Nothing);
        }
        self.commit(base, &edit, now)
    }

    fn rebuild(&self, inputs: &Inputs) -> Result<Done> {
        let Some(latest) = self.table.latest()? else { return Ok(Done::Nothing) };
        let edit = self.rebuilt(inputs, &latest, &[])?;
        let now = latest.now;
        self.commit(latest, &edit, now)
    }

    /// Commits an edit.
    ///
    /// # Errors
    /// Those of committing.
    pub fn commit(&self, base: Version, edit: &VersionEdit, now: i64) -> Result<Done> {
        Ok(Done::Committed(self.table.commit(base, edit, &self.ids, now)?.number))
    }

    fn loaded(&self, base: &Version, from: &dyn Source, plan: &InputPlan) -> Result<Loaded> {
        let loader = Loader {
            feed: from,
            derive: None,
            targets: vec![LoadTarget { table: &self.table, layout: &self.layout, filter: None, gc: &[], base, plan }],
            ids: &self.ids,
            memory: self.memory,
            temp_dir: None,
            on_reject: &|_| {},
            on_progress: &|_| {},
        };
        loader.load()?.pop().ok_or_else(|| Finding::new("a load of one table gave none"))
    }

    /// The edit of a load of new inputs, to be committed by the caller with [`Self::ids`].
    ///
    /// # Errors
    /// Those of loading.
    pub fn prepared(&self, inputs: &Inputs) -> Result<(Version, VersionEdit)> {
        let (base, edit, _) = self.prepared_without(inputs, &[])?;
        Ok((base, edit))
    }

    /// The same for any source, which removes the vanished inputs `without`. Also returns the inputs to which it
    /// appends. The edit is empty if there is nothing to do.
    ///
    /// # Errors
    /// [`Finding::Gone`] if it would leave a window as it is; those of loading.
    pub fn prepared_without(&self, from: &dyn Source, without: &[String]) -> Result<Prepared> {
        let (prepared, gone) = self.prepared_in_part(from, without)?;
        if gone.is_empty() {
            return Ok(prepared);
        }
        self.table.discard(&prepared.1);
        Err(Finding::Gone(gone))
    }

    /// The same; windows that cannot be rebuilt stay as they are, and the vanished inputs to remove for them are returned.
    ///
    /// # Errors
    /// Those of loading.
    pub fn prepared_in_part(&self, from: &dyn Source, without: &[String]) -> Result<(Prepared, Vec<String>)> {
        let base = self.table.base(&self.identity())?;
        let plan = plan(&base, from, without, false)?;
        if plan.is_empty() {
            let edit = VersionEdit { base: base.number, ..VersionEdit::default() };
            let gone = plan.to_remove(&plan.owed_after(&base, &edit));
            return Ok(((base, edit, Vec::new()), gone));
        }
        let Loaded { edit, overtaken, owed, .. } = self.loaded(&base, from, &plan)?;
        let gone = plan.to_remove(&owed);
        let grown = plan.grown.into_iter().map(|grown| grown.file.path);
        let grown = grown.filter(|path| !overtaken.contains(path)).collect();
        Ok(((base, edit, grown), gone))
    }

    /// The edit of a rebuild from the present inputs.
    ///
    /// # Errors
    /// [`Finding::Gone`] for vanished inputs that are not in `without`; those of loading.
    pub fn rebuilt(&self, from: &dyn Source, latest: &Version, without: &[String]) -> Result<VersionEdit> {
        let mut base = Version::empty(self.identity());
        (base.number, base.table_uuid) = (latest.number, latest.table_uuid.clone());
        base.tombstones.clone_from(&latest.tombstones);
        let plan = plan(latest, from, without, true)?;
        if !plan.vanished.is_empty() {
            return Err(Finding::Gone(plan.vanished.into_iter().map(|input| input.path).collect()));
        }
        let mut edit = self.loaded(&base, from, &plan)?.edit;
        edit.reset = Some(self.identity());
        Ok(edit)
    }

    /// Ids of commits and files, unique among runs.
    pub fn ids(&self) -> &dyn Ids {
        &self.ids
    }

    /// The newest version, if there is one.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn snapshot(&self) -> Result<Option<Snapshot>> {
        let Some(version) = self.table.latest()? else { return Ok(None) };
        Ok(Some(Snapshot::new(self.table.clone(), Arc::new(version))?))
    }

    /// The cells of the newest version.
    ///
    /// # Errors
    /// Those of reading.
    pub fn cells(&self) -> Result<Cells> {
        match self.snapshot()? {
            Some(snapshot) => cells_in(&snapshot, &KeyRange::all()),
            None => Ok(Cells::new()),
        }
    }
}

fn plan(version: &Version, from: &dyn Source, without: &[String], rebuild: bool) -> Result<InputPlan> {
    let options = InputPlanOptions {
        without: &|path| without.iter().any(|given_up| given_up == path),
        growth: &|file, held| Ok(held.iter().rev().find_map(|held| from.growth(file, (held.size, held.hash)))),
        rebuild,
        ..InputPlanOptions::default()
    };
    InputPlan::new(version, from.found(), options, |file| Ok(from.hash(file)))
        .map_err(|error| Finding::new(error.to_string()))
}

/// Applies a step that was done to the model.
pub fn tell(model: &mut Model, step: &Step, done: Done, now: i64) {
    match step {
        // Their inputs were applied before.
        Step::Load(_) | Step::Change(..) | Step::Rebuild | Step::Vacuum(_) => {}
        Step::Drop(target) if done != Done::Nothing => model.drop(target.clone()),
        Step::Compact(_) if done != Done::Nothing => model.compact(now),
        Step::Drop(_) | Step::Compact(_) => {}
    }
}

/// Adds the input of a step, if it has one, where a load finds it.
pub fn offer(model: &mut Model, step: &Step) {
    match step {
        Step::Load(events) => model.load(events.clone()),
        Step::Change(at, events) => model.change(*at, events.clone()),
        Step::Drop(_) | Step::Compact(_) | Step::Rebuild | Step::Vacuum(_) => {}
    }
}

/// A column that holds `value` as text, with event times as timestamps.
pub(crate) fn column(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { qualifier: qualifier.to_owned(), value: value.to_owned(), ..ColumnSpec::default() }
}

pub(crate) fn family(name: &str, kind: Merge, columns: Vec<ColumnSpec>) -> FamilySpec {
    FamilySpec { name: name.to_owned(), columns, kind }
}

/// The layout of the model, with dated keys or not.
pub fn table_spec(dated: bool) -> TableSpec {
    let sum = ColumnSpec { encoding: Encoding::Int64, ..column("n", "{n}") };
    let columns = vec![column("ID", "{id}"), column("v", "{v}"), column("q-{q}", "{v}")];
    TableSpec {
        name: "T".to_owned(),
        row_key: if dated { "{id:05}#{ts:%Y%m%d}" } else { "{id:05}" }.to_owned(),
        families: vec![
            family("F", Merge::Newest, columns),
            family("G", Merge::Newest, vec![column("w", "{w}")]),
            family("S", Merge::Sum, vec![sum]),
        ],
        ..TableSpec::default()
    }
}
