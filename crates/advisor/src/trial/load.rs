//! The pass over the inputs.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use tempfile::TempDir;
use tidetable_blobs::LocalBlobs;
use tidetable_ingest::Loader;
use tidetable_ingest::{Feed, FeedEnd, FeedPiece, FileFeed, InputPlan, InputPlanOptions, LoadTarget, Prepare};
use tidetable_job::{Job, Source};
use tidetable_layout::Layout;
use tidetable_layout::time::SECOND;
use tidetable_runner::{Stop, UlidIds};
use tidetable_source::{InputFile, Storage, folder_values};
use tidetable_store::version::TableIdentity;
use tidetable_store::{Snapshot, Store, StoreError, Table, Version};

use crate::error::{AdvisorError, Result};
use crate::trial::candidate::Candidate;
use crate::trial::counter::Counter;
use crate::trial::draws::{Draw, DrawCollector, DrawSpec};
use crate::trial::kinds::{KindCollector, Kinds};
use crate::trial::prepare::{CountingColumns, Sample, SampleFilter};
use crate::trial::profile::{Profile, ProfileCollector};
use crate::trial::rejects::{Rejects, TrialReject};
use crate::trial::repeats::RepeatCounter;
use crate::trial::table::TrialTable;

/// Options of a trial.
#[derive(Debug, Clone)]
pub struct TrialOptions {
    /// The part of the entities to measure; all if `None`.
    pub sample: Option<Sample>,
    /// Event times to measure, microseconds; all if `None`.
    pub window: Option<Range<i64>>,
    /// Memory for cells that wait to be sorted, bytes.
    pub memory: u64,
    /// Rows to draw, for the parameters of queries.
    pub draws: Vec<DrawSpec>,
    /// Columns of which the values are counted.
    pub profiled: Vec<String>,
    /// Columns that tell entities apart, whose rows in one unit of time are looked for; none if empty.
    pub entity: Vec<String>,
    /// Whether to look for kinds of events.
    pub kinds: bool,
    /// Asked between pieces of input; a trial that is stopped ends with an error.
    pub stop: Stop,
}

impl Default for TrialOptions {
    fn default() -> Self {
        Self {
            sample: None,
            window: None,
            memory: 640 << 20,
            draws: Vec::new(),
            profiled: Vec::new(),
            entity: Vec::new(),
            kinds: false,
            stop: Stop::default(),
        }
    }
}

/// Layouts that hold the rows of a job's inputs, in a temporary directory that is removed with it.
#[derive(Debug)]
pub struct Trial {
    /// In the order of the candidates.
    pub tables: Vec<TrialTable>,
    /// The rows that were drawn, for each [`DrawSpec`].
    pub draws: Vec<Vec<Draw>>,
    /// Rows that cannot be encoded, by reason.
    pub rejects: Vec<TrialReject>,
    /// What the sources hold.
    pub profile: Profile,
    /// The kinds of their events, if that was asked for and there are any.
    pub kinds: Option<Kinds>,
    /// Where the store lies.
    _directory: TempDir,
}

impl Trial {
    /// Encodes the inputs of `job` by every layout. Each source is read once.
    ///
    /// # Errors
    /// If a layout does not compile, an input cannot be read, or the temporary directory is full.
    pub fn load(job: &Job, storage: &Storage, candidates: &[Candidate], options: &TrialOptions) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("tidetable-trial-").tempdir();
        let directory = directory.map_err(AdvisorError::temporary)?;
        let store = Store::new(Arc::new(LocalBlobs::new(directory.path().to_owned())));
        let rejects = Rejects::default();
        let collectors: Vec<DrawCollector> = options.draws.iter().cloned().map(DrawCollector::new).collect();
        let profile = ProfileCollector::new(options.profiled.clone(), options.entity.clone());
        let kinds = options.kinds.then(KindCollector::default);
        let observers = Observers { draws: &collectors, profile: &profile, kinds: kinds.as_ref(), rejects: &rejects };

        let mut by_source: BTreeMap<&str, Vec<(usize, &Candidate)>> = BTreeMap::new();
        for (at, candidate) in candidates.iter().enumerate() {
            by_source.entry(&candidate.source).or_default().push((at, candidate));
        }
        let mut tables: BTreeMap<usize, TrialTable> = BTreeMap::new();
        for (name, candidates) in by_source {
            let (places, candidates): (Vec<usize>, Vec<&Candidate>) = candidates.into_iter().unzip();
            let Some(source) = job.source(name) else {
                let layout = candidates.first().map(|candidate| candidate.spec.name.clone()).unwrap_or_default();
                return Err(AdvisorError::UnknownSource { layout, source_name: name.to_owned() });
            };
            let pass = SourcePass { store: &store, storage, source, candidates: &candidates, observers, options };
            tables.extend(places.into_iter().zip(pass.load()?));
        }

        let profile = profile.finish();
        let times = profile.times.filter(|_| profile.outliers.is_some());
        let draws = collectors.into_iter().map(|collector| collector.finish(times)).collect();
        let tables = tables.into_values().collect();
        let kinds = kinds.and_then(KindCollector::finish);
        Ok(Self { tables, draws, rejects: rejects.into_list(), profile, kinds, _directory: directory })
    }

    /// First and last second of all layouts, since the epoch, without outliers; `None` if none has a row.
    pub fn seconds(&self) -> Option<(i64, i64)> {
        let seconds = self.tables.iter().filter_map(|table| table.seconds);
        let (first, last) = seconds.reduce(|(first, last), (other, end)| (first.min(other), last.max(end)))?;
        let Some((start, end)) = self.profile.times.filter(|_| self.profile.outliers.is_some()) else {
            return Some((first, last));
        };
        let (start, end) = (start.div_euclid(SECOND), end.div_euclid(SECOND));
        // A layout may take nothing but the outliers.
        if start > last || end < first { Some((first, last)) } else { Some((first.max(start), last.min(end))) }
    }

    /// The error of a trial without a row.
    pub(crate) fn no_rows(&self) -> AdvisorError {
        let (mut read, mut rejected) = (0, 0);
        for table in &self.tables {
            read = table.stats.rows_read.max(read);
            rejected = table.stats.rows_rejected.max(rejected);
        }
        AdvisorError::NoRows { read, rejected }
    }

    /// The table of this layout.
    pub fn table(&self, layout: &str) -> Option<&TrialTable> {
        self.tables.iter().find(|table| table.name == layout)
    }
}

/// What looks at the rows as they are read.
#[derive(Clone, Copy)]
struct Observers<'a> {
    draws: &'a [DrawCollector],
    profile: &'a ProfileCollector,
    kinds: Option<&'a KindCollector>,
    rejects: &'a Rejects,
}

/// A pass over one source, whose rows are encoded by several candidates.
struct SourcePass<'a> {
    store: &'a Store,
    storage: &'a Storage,
    source: &'a Source,
    /// Those that take rows of the source.
    candidates: &'a [&'a Candidate],
    observers: Observers<'a>,
    options: &'a TrialOptions,
}

/// A table of the temporary store before it is loaded: empty, with the inputs to read.
struct Target {
    table: Table,
    base: Version,
    plan: InputPlan,
}

impl SourcePass<'_> {
    /// The tables of the candidates, in their order.
    fn load(&self) -> Result<Vec<TrialTable>> {
        let Self { storage, source, candidates, observers, options, .. } = *self;
        let Some(first) = candidates.first() else { return Ok(Vec::new()) };
        let counter = Counter::new(&first.schema, candidates.iter().map(|candidate| &candidate.spec));
        let compiled: Vec<Compiled> =
            candidates.iter().map(|candidate| Compiled::new(candidate, &counter)).collect::<Result<_>>()?;
        let targets = self.targets(&compiled)?;

        let mut entity = entity(candidates);
        entity.retain(|name| first.schema.fields.iter().any(|field| field.name == *name));
        let repeats = RepeatCounter::default();
        let filters = self.filters(&entity, &counter, &repeats);

        let ids = UlidIds::default();
        let load_targets = compiled.iter().zip(&targets).zip(&filters).map(|((compiled, target), filter)| LoadTarget {
            table: &target.table,
            layout: &compiled.layout,
            filter: Some(filter as &dyn Prepare),
            // Versions are measured apart.
            gc: &[],
            base: &target.base,
            plan: &target.plan,
        });
        let loader = Loader {
            feed: &StoppableFeed { feed: FileFeed { storage, source: &source.spec }, stop: &options.stop },
            derive: Some(&CountingColumns {
                inner: &source.preparation,
                counter: &counter,
                draws: observers.draws,
                profile: observers.profile,
                kinds: observers.kinds,
                window: options.window.clone(),
                sample: options.sample,
                entity: &entity,
            }),
            targets: load_targets.collect(),
            ids: &ids,
            memory: options.memory,
            temp_dir: None,
            on_reject: &|row| observers.rejects.count(row),
            on_progress: &|_| {},
        };
        let loaded = loader.load();
        if let Some(stopped) = options.stop.asked() {
            return Err(stopped.into());
        }
        let loaded = loaded?;

        let repeated = filters.iter().any(|filter| filter.repeats.is_some()).then(|| repeats.finish());
        let mut tables = Vec::with_capacity(loaded.len());
        for (((compiled, target), filter), loaded) in compiled.into_iter().zip(targets).zip(&filters).zip(loaded) {
            let version = target.table.commit(target.base, &loaded.edit, &ids, 0)?;
            let snapshot = Snapshot::new(target.table, Arc::new(version))?;
            let mut counts = *filter.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.is_part = options.sample.is_some() || options.window.is_some();
            counts.takes_all = filter.inner.is_empty();
            // What the rows that a layout does not take repeat is not known.
            counts.repeated = repeated.filter(|_| counts.takes_all && loaded.stats.rows_rejected == 0);
            tables.push(TrialTable::new(compiled.own, snapshot, &counter, &entity, loaded.stats, counts)?);
        }
        Ok(tables)
    }

    /// For each candidate, an empty table and the inputs that it reads.
    fn targets(&self, compiled: &[Compiled]) -> Result<Vec<Target>> {
        let Self { storage, source, .. } = *self;
        let mut found = storage.find(&source.spec)?;
        if !found.unmatched.is_empty() {
            return Err(storage.no_match(&source.spec, found.unmatched.swap_remove(0), &found.unread).into());
        }

        let mut targets = Vec::with_capacity(compiled.len());
        for Compiled { identity, .. } in compiled {
            let base = Version::empty(identity.clone());
            let options = InputPlanOptions {
                folder_values: &|path| folder_values(&source.spec, path),
                ..InputPlanOptions::default()
            };
            let plan = InputPlan::new(&base, found.files.clone(), options, |file| storage.hash(file))?;
            targets.push(Target { table: self.store.table(&identity.spec.name), base, plan });
        }
        Ok(targets)
    }

    /// The filter of each candidate. Repeated rows are counted in the first that takes every row.
    fn filters<'f>(
        &'f self,
        entity: &'f [String],
        counter: &'f Counter,
        repeats: &'f RepeatCounter,
    ) -> Vec<SampleFilter<'f>> {
        let first_of_all = self.candidates.iter().position(|candidate| candidate.filter.is_empty());
        let filters = self.candidates.iter().enumerate().map(|(at, candidate)| SampleFilter {
            inner: &candidate.filter,
            sample: self.options.sample,
            window: self.options.window.clone(),
            entity,
            time: &counter.time,
            counts: Mutex::default(),
            repeats: (Some(at) == first_of_all).then_some(repeats),
        });
        filters.collect()
    }
}

/// The columns that make an entity in every layout: those of all row keys except times, or else of the first row key that has
/// any.
fn entity(candidates: &[&Candidate]) -> Vec<String> {
    let keys: Vec<Vec<String>> = candidates.iter().map(|candidate| candidate.key_columns()).collect();
    let mut common = keys.first().cloned().unwrap_or_default();
    common.retain(|name| keys.iter().all(|columns| columns.contains(name)));
    if common.is_empty() {
        return keys.into_iter().find(|columns| !columns.is_empty()).unwrap_or_default();
    }
    common
}

/// A candidate whose templates and types go together, with and without its counter.
struct Compiled {
    /// The layout as it was declared, without the counter.
    own: Layout,
    layout: Layout,
    identity: TableIdentity,
}

impl Compiled {
    fn new(candidate: &Candidate, counter: &Counter) -> Result<Self> {
        let (spec, source) = (counter.spec(&candidate.spec), counter.schema(&candidate.schema));
        let own = Layout::compile(&candidate.spec, &candidate.schema);
        let compiled = own.and_then(|own| Ok((own, Layout::compile(&spec, &source)?)));
        let (own, layout) =
            compiled.map_err(|errors| AdvisorError::Layout { layout: candidate.spec.name.clone(), errors })?;
        let gc = candidate.gc.iter().cloned().collect();
        let identity = TableIdentity { job: String::new(), layout: layout.fingerprint(), spec, source, gc };
        Ok(Self { own, layout, identity })
    }
}

/// The files of a source, until asked to stop.
#[derive(Debug)]
struct StoppableFeed<'a> {
    feed: FileFeed<'a>,
    stop: &'a Stop,
}

impl Feed for StoppableFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        cuts: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> Result<Option<FeedEnd>, StoreError> {
        self.feed.read(input, cuts, &mut |piece, bytes| self.stop.asked().is_none() && give(piece, bytes))
    }

    fn go_on(&self) -> Result<(), StoreError> {
        match self.stop.asked() {
            Some(by) => Err(StoreError::Feed { input: "what was read".to_owned(), source: Box::new(by) }),
            None => Ok(()),
        }
    }
}
