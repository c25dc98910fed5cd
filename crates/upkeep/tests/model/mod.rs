//! A table in a temporary directory, and its model.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_ingest::Loader;
use tidetable_ingest::{
    Feed, FileFeed, InputPlan, InputPlanOptions, LoadStats, LoadTarget, LoadUnit, LoadUnitDone, Loaded, Progress,
    RejectedRow, RunLoadUnits, TableTarget, UnitLoader,
};
use tidetable_layout::cell::write_cell;
use tidetable_layout::schema::QualifierKind;
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{Block, FieldType, KeyRange, Layout, Projection, StoredSchema, TableSpec};
use tidetable_source::{ColumnSpec as SourceColumn, HeldContent, InputFile, SourceSpec, Storage};
use tidetable_store::read::ScanOptions;
use tidetable_store::version::DeleteTarget;
use tidetable_store::version::TableIdentity;
use tidetable_store::{GcRule, Ids, Snapshot, Store, StoreError, Table, Version, VersionEdit};

/// 2018-01-01, microseconds.
pub const START: i64 = 1_514_764_800_000_000;
pub const DAY: i64 = 86_400_000_000;

/// A row of an input. `v` is set when it is loaded, and unique.
#[derive(Debug, Clone)]
pub struct Event {
    pub id: u64,
    pub time: i64,
    pub q: String,
    pub v: u64,
    pub w: Option<i64>,
}

/// Key, family, qualifier, newest first.
pub type CellKey = (String, String, String, Reverse<i64>);
pub type Cells = BTreeMap<CellKey, String>;

/// A file to write.
pub struct File {
    name: String,
    text: String,
}

impl File {
    /// An input of these events, unchanged.
    pub fn of(name: &str, events: &[Event]) -> Self {
        let mut text = "id,ts,q,v,w\n".to_owned();
        for Event { id, time, q, v, w } in events {
            let w = w.map(|w| w.to_string()).unwrap_or_default();
            text.push_str(&format!("{id},{},{q},{v},{w}\n", time / 1000));
        }
        Self { name: name.to_owned(), text }
    }
}

/// Model of a table: inputs in order, and deletes with the number of inputs before each.
pub struct Model {
    inputs: Vec<Vec<Event>>,
    drops: Vec<(usize, DeleteTarget)>,
    rule: Option<GcRule>,
    dated: bool,
    values: u64,
    pub now: i64,
}

impl Model {
    pub fn new(dated: bool, rule: &str) -> Self {
        let rule = (!rule.is_empty()).then(|| GcRule::parse(rule).unwrap());
        Self { inputs: Vec::new(), drops: Vec::new(), rule, dated, values: 0, now: START + DAY }
    }

    pub fn load(&mut self, events: Vec<Event>) -> File {
        self.inputs.push(Vec::new());
        self.put(self.inputs.len() - 1, events)
    }

    pub fn change(&mut self, input: usize, events: Vec<Event>) -> Option<File> {
        (input < self.inputs.len()).then(|| self.put(input, events))
    }

    fn put(&mut self, input: usize, mut events: Vec<Event>) -> File {
        for event in &mut events {
            self.values += 1;
            event.v = self.values;
        }
        let file = File::of(&format!("{input:03}.csv"), &events);
        self.inputs[input] = events;
        file
    }

    pub fn drop(&mut self, target: DeleteTarget) {
        self.drops.push((self.inputs.len(), target));
    }

    /// Whether this was deleted for all present inputs.
    pub fn has_dropped(&self, target: &DeleteTarget) -> bool {
        self.drops.iter().any(|(before, dropped)| *before == self.inputs.len() && dropped == target)
    }

    fn key(&self, event: &Event) -> String {
        if self.dated { format!("{:02}#{}", event.id, date(event.time)) } else { format!("{:02}", event.id) }
    }

    /// The stored cells, as if compactions removed none.
    fn stored(&self) -> Cells {
        let mut cells = Cells::new();
        for (input, events) in self.inputs.iter().enumerate() {
            for event in events {
                let mut put = |family: &str, qualifier: String, time: i64, value: String| {
                    let key = (self.key(event), family.to_owned(), qualifier, Reverse(time));
                    let dropped = self.drops.iter().any(|(before, target)| input < *before && hides(target, &key));
                    if !dropped {
                        cells.insert(key, value);
                    }
                };
                put("F", "ID".to_owned(), 0, event.id.to_string());
                put("F", "v".to_owned(), event.time, event.v.to_string());
                put("F", format!("q-{}", event.q), event.time, event.v.to_string());
                if let Some(w) = event.w {
                    put("G", "w".to_owned(), event.time, w.to_string());
                }
            }
        }
        cells
    }

    /// The cells that a read shows.
    pub fn cells(&self) -> Cells {
        let mut shown = Cells::new();
        let mut column = None;
        let mut newer = 0;
        for (key, value) in self.stored() {
            let own = Some((key.0.clone(), key.1.clone(), key.2.clone()));
            newer = if own == column { newer + 1 } else { 0 };
            column = own;
            if self.rule.as_ref().is_none_or(|rule| !rule.drops(newer, key.3.0, self.now)) {
                shown.insert(key, value);
            }
        }
        shown
    }

    /// Number of visible cells that a delete would hide, and of stored ones.
    pub fn would_hide(&self, target: &DeleteTarget) -> (usize, usize) {
        let count = |cells: Cells| cells.keys().filter(|key| hides(target, key)).count();
        (count(self.cells()), count(self.stored()))
    }
}

fn hides(target: &DeleteTarget, (key, own_family, own, Reverse(time)): &CellKey) -> bool {
    let is = |text: &str, bytes: &[u8]| text.as_bytes() == bytes;
    match target {
        DeleteTarget::Prefix { prefix } => key.as_bytes().starts_with(prefix),
        DeleteTarget::Row { key: row } => is(key, row),
        DeleteTarget::Family { key: row, family } => is(key, row) && family == own_family,
        DeleteTarget::Column { key: row, family, qualifier, times } => {
            let inside = times.as_ref().is_none_or(|times| times.contains(time));
            is(key, row) && family == own_family && is(own, qualifier) && inside
        }
    }
}

/// The days, since the epoch, of the rows that differ; keys are dated.
pub fn changed_days(before: &Cells, after: &Cells) -> BTreeSet<i32> {
    let differs = |(key, value): &(&CellKey, &String)| before.get(*key) != after.get(*key) || value.is_empty();
    let differing = before.iter().chain(after).filter(differs);
    differing.map(|((key, ..), _)| day_of(key)).collect()
}

/// A day of January or February 2018, as in dated keys.
pub fn date(time: i64) -> String {
    let day = (time - START) / DAY;
    if day < 31 { format!("201801{:02}", day + 1) } else { format!("201802{:02}", day - 30) }
}

/// The day of a dated key, since the epoch.
pub fn day_of(key: &str) -> i32 {
    let date: i32 = key.rsplit_once("#20180").unwrap().1.parse().unwrap();
    (START / DAY) as i32 + if date < 200 { date - 101 } else { date - 201 + 31 }
}

#[derive(Debug, Default)]
pub struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

/// The table itself.
pub struct World {
    folder: TempDir,
    pub ids: Counting,
    layout: Layout,
    rule: String,
    row_limit: u64,
}

impl World {
    /// With `dated` keys each row is in one window.
    pub fn new(dated: bool, rule: &str) -> Self {
        Self::of(&table_spec(dated), rule, 256 << 20)
    }

    /// A table of this layout, with this limit on the bytes of a row.
    pub fn of(spec: &TableSpec, rule: &str, row_limit: u64) -> Self {
        let layout = Layout::compile(spec, &source_spec().schema()).unwrap();
        let (folder, rule) = (tempfile::tempdir().unwrap(), rule.to_owned());
        Self { folder, ids: Counting::default(), layout, rule, row_limit }
    }

    pub fn write(&self, File { name, text }: &File) {
        let inputs = self.folder.path().join("inputs");
        std::fs::create_dir_all(&inputs).unwrap();
        std::fs::write(inputs.join(name), text).unwrap();
    }

    pub fn table(&self) -> Table {
        let blobs = Arc::new(LocalBlobs::new(self.folder.path().join("store")));
        Store::new(blobs).with_row_limit(self.row_limit).table("T")
    }

    fn identity(&self) -> TableIdentity {
        let gc = ["F", "G"].iter().filter(|_| !self.rule.is_empty());
        let gc = gc.filter(|name| self.layout.spec().families.iter().any(|family| family.name == **name));
        TableIdentity {
            job: "j".to_owned(),
            spec: self.layout.spec().clone(),
            source: self.layout.source().clone(),
            layout: self.layout.fingerprint(),
            gc: gc.map(|family| ((*family).to_owned(), self.rule.clone())).collect(),
        }
    }

    /// Loads new and changed inputs.
    pub fn load(&self, now: i64) {
        self.try_load(now, |edit| edit).unwrap();
    }

    /// The same with the edit changed by `change`; returns the error if it is refused.
    pub fn try_load(&self, now: i64, change: impl Fn(VersionEdit) -> VersionEdit) -> Result<Version, StoreError> {
        let base = self.table().base(&self.identity()).unwrap();
        let edit = change(self.try_loaded(&base, &base, false)?);
        self.table().commit(base, &edit, &self.ids, now)
    }

    /// Rebuilds the table from its inputs, as `run --rebuild` does.
    pub fn rebuild(&self) {
        if let Some((latest, edit)) = self.rebuilt() {
            let now = latest.now;
            self.table().commit(latest, &edit, &self.ids, now).unwrap();
        }
    }

    /// The edit of a rebuild of the newest version.
    pub fn rebuilt(&self) -> Option<(Version, VersionEdit)> {
        let latest = self.table().latest().unwrap()?;
        let mut base = Version::empty(self.identity());
        (base.number, base.table_uuid) = (latest.number, latest.table_uuid.clone());
        base.tombstones.clone_from(&latest.tombstones);
        let mut edit = self.loaded(&base, &latest, true);
        edit.reset = Some(self.identity());
        Some((latest, edit))
    }

    fn loaded(&self, base: &Version, known: &Version, anew: bool) -> VersionEdit {
        self.try_loaded(base, known, anew).unwrap()
    }

    fn try_loaded(&self, base: &Version, known: &Version, anew: bool) -> Result<VersionEdit, StoreError> {
        Ok(self.counted(base, known, anew, &|row| panic!("{row:?}"))?.edit)
    }

    /// Loads new inputs, and returns rejected rows.
    pub fn load_counted(&self, on_reject: &(dyn Fn(&RejectedRow) + Sync)) -> LoadStats {
        let base = self.table().base(&self.identity()).unwrap();
        let Loaded { edit, stats, .. } = self.counted(&base, &base, false, on_reject).unwrap();
        self.table().commit(base, &edit, &self.ids, START).unwrap();
        stats
    }

    fn counted(
        &self,
        base: &Version,
        known: &Version,
        anew: bool,
        on_reject: &(dyn Fn(&RejectedRow) + Sync),
    ) -> Result<Loaded, StoreError> {
        let storage = Storage::new(self.folder.path().to_owned(), None);
        let source = source_spec();
        let found = storage.discover(&source).unwrap();
        let growth = |file: &InputFile, held: &[HeldContent]| storage.growth(&source, file, held);
        let looking = InputPlanOptions { rebuild: anew, growth: &growth, ..InputPlanOptions::default() };
        let plan = InputPlan::new(known, found, looking, |file| storage.hash(file)).unwrap();
        let files = FileFeed { storage: &storage, source: &source };
        Ok(self.load_with(base, &plan, &files, on_reject, &|_| {})?.remove(0))
    }

    /// Loads the inputs of `plan` from `feed`.
    pub fn load_planned(
        &self,
        base: &Version,
        plan: &InputPlan,
        feed: &dyn Feed,
        on_progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Vec<Loaded>, StoreError> {
        self.load_with(base, plan, feed, &|row| panic!("{row:?}"), on_progress)
    }

    /// The same with a unit of its own for each input, as a cluster runs them.
    pub fn load_in_units(&self, base: &Version, plan: &InputPlan, feed: &dyn Feed) -> Result<Vec<Loaded>, StoreError> {
        let table = self.table();
        let on_reject: &(dyn Fn(&RejectedRow) + Sync) = &|row| panic!("{row:?}");
        let on_progress: &(dyn Fn(Progress) + Sync) = &|_| {};
        let loader = Loader {
            feed,
            derive: None,
            targets: vec![LoadTarget { table: &table, layout: &self.layout, filter: None, gc: &[], base, plan }],
            ids: &self.ids,
            memory: 1 << 30,
            temp_dir: None,
            on_reject,
            on_progress,
        };
        loader.load_by(&UnitOfEach(UnitLoader {
            feed,
            derive: None,
            tables: vec![TableTarget { table: &table, layout: &self.layout, filter: None, gc: &[] }],
            ids: &self.ids,
            memory: 1 << 30,
            temp_dir: None,
            on_reject,
            on_progress,
        }))
    }

    fn load_with(
        &self,
        base: &Version,
        plan: &InputPlan,
        feed: &dyn Feed,
        on_reject: &(dyn Fn(&RejectedRow) + Sync),
        on_progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<Vec<Loaded>, StoreError> {
        let table = self.table();
        let loader = Loader {
            feed,
            derive: None,
            targets: vec![LoadTarget { table: &table, layout: &self.layout, filter: None, gc: &[], base, plan }],
            ids: &self.ids,
            memory: 1 << 30,
            temp_dir: None,
            on_reject,
            on_progress,
        };
        loader.load()
    }

    /// The present inputs, and the plan to load them.
    pub fn to_load(&self) -> (Storage, SourceSpec, Version, InputPlan) {
        let (storage, source) = (Storage::new(self.folder.path().to_owned(), None), source_spec());
        let base = self.table().base(&self.identity()).unwrap();
        let found = storage.discover(&source).unwrap();
        let plan = InputPlan::new(&base, found, InputPlanOptions::default(), |file| storage.hash(file)).unwrap();
        (storage, source, base, plan)
    }

    pub fn snapshot(&self) -> Option<Snapshot> {
        let version = self.table().latest().unwrap()?;
        Some(Snapshot::new(self.table(), Arc::new(version)).unwrap())
    }

    pub fn commit(&self, snapshot: &Snapshot, edit: &VersionEdit, now: i64) {
        self.try_commit(snapshot, edit, now).unwrap();
    }

    /// Commits an edit made against `snapshot`.
    pub fn try_commit(&self, snapshot: &Snapshot, edit: &VersionEdit, now: i64) -> Result<Version, StoreError> {
        self.table().commit(snapshot.version().clone(), edit, &self.ids, now)
    }

    pub fn has_sst(&self, id: &str) -> bool {
        self.folder.path().join("store").join(self.table().sst_path(id)).exists()
    }

    /// The cells of the newest version.
    pub fn cells(&self) -> Cells {
        self.snapshot().map(|snapshot| self.cells_of(&snapshot)).unwrap_or_default()
    }

    pub fn cells_of(&self, snapshot: &Snapshot) -> Cells {
        let mut cells = Cells::new();
        let Some(whole) = snapshot.whole(&KeyRange::all()) else { return cells };
        let all = Projection::all(snapshot.schema());
        for block in snapshot.scan(&whole, &all).unwrap() {
            read(snapshot.schema(), &block.unwrap(), &mut cells);
        }
        // Unordered, and of each group alone, the cells are the same.
        let alone = |group: usize| {
            let of_group = |(at, wanted): (usize, &Option<_>)| if at == group { wanted.clone() } else { None };
            Projection { groups: all.groups.iter().enumerate().map(of_group).collect() }
        };
        for projection in (0..all.groups.len()).map(alone).chain([all.clone()]) {
            let [ordered, unordered] = [false, true].map(|unordered| {
                let options = ScanOptions { unordered, ..ScanOptions::default() };
                let mut cells = Cells::new();
                for block in snapshot.scan_with(&whole, &projection, &options).unwrap() {
                    read_some(snapshot.schema(), &block.unwrap(), &mut cells);
                }
                cells
            });
            assert_eq!(ordered, unordered);
        }
        cells
    }

    /// The days that the newest version changed.
    pub fn changed_days(&self) -> BTreeSet<i32> {
        let version = self.table().latest().unwrap().unwrap();
        let days = version.windows.iter().flat_map(|window| &window.days);
        days.filter(|(_, changed)| **changed == version.number).map(|(day, _)| *day).collect()
    }
}

impl World {
    /// The edit of a load into `base`.
    pub fn work_out(&self, base: &Version) -> VersionEdit {
        self.loaded(base, base, false)
    }

    /// Removes an input.
    pub fn hide(&self, file: &File) {
        std::fs::remove_file(self.folder.path().join("inputs").join(&file.name)).unwrap();
    }
}

pub fn read(schema: &StoredSchema, block: &Block, cells: &mut Cells) {
    read_some(schema, block, cells);
    for row in 0..block.keys.len() {
        let any = block.groups.iter().flatten().any(|group| !group.records(row).is_empty());
        assert!(any, "a row has no cells");
    }
}

/// Reads the groups that a block has.
fn read_some(schema: &StoredSchema, block: &Block, cells: &mut Cells) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for row in 0..block.keys.len() {
        let key = text(&block.keys.get(row));
        for (group, records) in schema.groups.iter().zip(&block.groups) {
            let Some(records) = records else { continue };
            for record in records.records(row) {
                for (column, values) in group.columns.iter().zip(records.columns.iter().flatten()) {
                    if values.is_null(record) {
                        continue;
                    }
                    let qualifier = match (&records.qualifiers, group.qualifier) {
                        (Some(names), QualifierKind::Dynamic) => &names.dictionary[names.codes[record] as usize],
                        _ => column.qualifier.as_slice(),
                    };
                    let time = records.timestamps.as_ref().map_or(0, |times| times[record]);
                    let mut value = Vec::new();
                    write_cell(column, values.as_ref(), record, &mut value);
                    let shown = match <[u8; 8]>::try_from(value.as_slice()) {
                        Ok(bytes) if !column.merge.is_newest() => i64::from_be_bytes(bytes).to_string(),
                        _ => text(&value),
                    };
                    let cell = (key.clone(), column.family.clone(), text(qualifier), Reverse(time));
                    assert!(cells.insert(cell, shown).is_none(), "a cell twice");
                }
            }
        }
    }
}

fn source_spec() -> SourceSpec {
    SourceSpec {
        name: "events".to_owned(),
        files: vec!["inputs/*.csv".to_owned()],
        columns: vec![
            SourceColumn::new("id", FieldType::UInt64),
            SourceColumn { format: Some("ms".to_owned()), ..SourceColumn::new("ts", FieldType::Timestamp) },
            SourceColumn::new("q", FieldType::Text),
            SourceColumn::new("v", FieldType::UInt64),
            SourceColumn::new("w", FieldType::Int64),
        ],
        time: "ts".to_owned(),
        ..SourceSpec::default()
    }
}

fn table_spec(dated: bool) -> TableSpec {
    let column = |qualifier: &str, value: &str| ColumnSpec {
        qualifier: qualifier.to_owned(),
        value: value.to_owned(),
        ..ColumnSpec::default()
    };
    let family = |name: &str, columns| FamilySpec { name: name.to_owned(), columns, ..FamilySpec::default() };
    TableSpec {
        name: "T".to_owned(),
        row_key: if dated { "{id:02}#{ts:%Y%m%d}" } else { "{id:02}" }.to_owned(),
        families: vec![
            family("F", vec![column("ID", "{id}"), column("v", "{v}"), column("q-{q}", "{v}")]),
            family("G", vec![column("w", "{w}")]),
        ],
        ..TableSpec::default()
    }
}

/// Runs a unit for each input.
struct UnitOfEach<'a>(UnitLoader<'a>);

impl RunLoadUnits for UnitOfEach<'_> {
    fn unit_bytes(&self, _: u64) -> Option<u64> {
        Some(1)
    }

    fn run(&self, units: &[LoadUnit], take: &mut (dyn FnMut(usize, LoadUnitDone) + Send)) -> Result<(), StoreError> {
        // In any order.
        for (at, unit) in units.iter().enumerate().rev() {
            take(at, self.0.run(unit)?);
        }
        Ok(())
    }
}
