//! A store in a temporary directory, loaded from text.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_ingest::Loader;
use tidetable_ingest::{FileFeed, InputPlan, InputPlanOptions, LoadTarget};
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{FieldType, Layout, TableSpec};
use tidetable_source::{ColumnSpec as SourceColumn, SourceSpec, Storage};
use tidetable_sql::{Session, SessionOptions};
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::version::TableIdentity;
use tidetable_store::{Ids, Store};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};

/// 2018-01-01, microseconds.
pub const START: i64 = 1_514_764_800_000_000;
pub const DAY: i64 = 86_400_000_000;
/// Number of meters.
pub const METERS: u64 = 6;
/// Readings of a meter in a day, 15 minutes apart.
pub const READINGS: u64 = 96;

#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Ids for Counting {
    fn next(&self) -> u128 {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed)) + 1
    }
}

pub struct World {
    folder: TempDir,
    ids: Counting,
    columns: Vec<SourceColumn>,
    spec: TableSpec,
    gc: BTreeMap<String, String>,
}

impl World {
    pub fn with_days(days: i64) -> Self {
        let mut csv = String::from("meter,ts,kwh\n");
        for day in 0..days {
            for at in 0..READINGS {
                for meter in 1..=METERS {
                    let (hour, minute) = (at / 4, at % 4 * 15);
                    let kwh = meter * 100 + at;
                    csv.push_str(&format!("{meter},2018-01-{:02}T{hour:02}:{minute:02}:00Z,{kwh}\n", day + 1));
                }
            }
        }
        Self::with_csv(&csv)
    }

    pub fn with_csv(csv: &str) -> Self {
        let columns = vec![
            SourceColumn::new("meter", FieldType::UInt64),
            SourceColumn::new("ts", FieldType::Timestamp),
            SourceColumn::new("kwh", FieldType::Float64),
        ];
        Self::with_table(columns, table_spec(), &[], csv)
    }

    /// A table with another layout, and GC rules by family.
    pub fn with_table(columns: Vec<SourceColumn>, spec: TableSpec, gc: &[(&str, &str)], csv: &str) -> Self {
        let gc = gc.iter().map(|(family, rule)| ((*family).to_owned(), (*rule).to_owned())).collect();
        let world = Self { folder: tempfile::tempdir().unwrap(), ids: Counting::default(), columns, spec, gc };
        world.load("a.csv", csv);
        world
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    pub fn store(&self) -> Store {
        Store::new(Arc::new(LocalBlobs::new(self.root())))
    }

    pub fn session(&self) -> Session {
        self.open(&SessionOptions { target_partitions: Some(3), ..SessionOptions::default() })
    }

    pub fn open(&self, options: &SessionOptions) -> Session {
        Session::open(&self.store(), options).unwrap()
    }

    /// Deletes cells by tombstone.
    pub fn drop_cells(&self, target: DeleteTarget) {
        let snapshot = self.store().snapshot(&self.spec.name).unwrap();
        let edit = DeletePlan::new(&snapshot, target).unwrap().edit();
        let base = snapshot.version().clone();
        snapshot.table().commit(base, &edit, &self.ids, START).unwrap();
    }

    /// Compacts the table.
    pub fn compact(&self, extent: CompactionExtent) {
        let snapshot = self.store().snapshot(&self.spec.name).unwrap();
        let plan = CompactionPlan::of_extent(&snapshot, START, extent).unwrap();
        let done = Compaction::run(&plan, &self.ids).unwrap();
        let base = snapshot.version().clone();
        snapshot.table().commit(base, &done.edit, &self.ids, START).unwrap();
    }

    /// Writes or overwrites an input, and loads changes.
    pub fn load(&self, name: &str, csv: &str) {
        let inputs = self.folder.path().join("inputs");
        std::fs::create_dir_all(&inputs).unwrap();
        std::fs::write(inputs.join(name), csv).unwrap();
        let source = SourceSpec {
            name: "readings".to_owned(),
            files: vec!["inputs/*.csv".to_owned()],
            columns: self.columns.clone(),
            time: "ts".to_owned(),
            ..SourceSpec::default()
        };
        let storage = Storage::new(self.folder.path().to_owned(), None);
        let layout = Layout::compile(&self.spec, &source.schema()).unwrap();
        let identity = TableIdentity {
            job: "smart-meters".to_owned(),
            spec: self.spec.clone(),
            source: source.schema(),
            layout: layout.fingerprint(),
            gc: self.gc.clone(),
        };
        let table = self.store().table(&self.spec.name);
        let base = table.base(&identity).unwrap();
        let found = storage.discover(&source).unwrap();
        let plan = InputPlan::new(&base, found, InputPlanOptions::default(), |file| storage.hash(file)).unwrap();
        let loader = Loader {
            feed: &FileFeed { storage: &storage, source: &source },
            derive: None,
            targets: vec![LoadTarget {
                table: &table,
                layout: &layout,
                filter: None,
                gc: &[],
                base: &base,
                plan: &plan,
            }],
            ids: &self.ids,
            memory: 1 << 30,
            temp_dir: None,
            on_reject: &|row| panic!("{row:?}"),
            on_progress: &|_| {},
        };
        let loaded = loader.load().unwrap();
        table.commit(base, &loaded[0].edit, &self.ids, START).unwrap();
    }
}

fn table_spec() -> TableSpec {
    TableSpec {
        name: "SENSOR".to_owned(),
        row_key: "{meter:010}#{ts:%Y%m%d}".to_owned(),
        families: vec![FamilySpec {
            name: "METER".to_owned(),
            columns: vec![column("ID", "{meter}"), column("{ts:%H%M}", "{kwh}")],
            ..FamilySpec::default()
        }],
        ..TableSpec::default()
    }
}

pub fn column(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { qualifier: qualifier.to_owned(), value: value.to_owned(), ..ColumnSpec::default() }
}
