//! The pass over the inputs.

use std::collections::BTreeSet;
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
use tidetable_store::{Snapshot, Store, StoreError, Version};

use crate::error::{AdvisorError, Result};
use crate::trial::candidate::Candidate;
use crate::trial::counter::Counter;
use crate::trial::draws::{Draw, DrawCollector, DrawSpec};
use crate::trial::entity::key_columns;
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
    /// Whether to look for kinds of events.
    pub kinds: bool,
    /// Whether to stop.
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
        let failed = |source| AdvisorError::Temporary { path: std::env::temp_dir(), source };
        let directory = tempfile::Builder::new().prefix("tidetable-trial-").tempdir().map_err(failed)?;
        let store = Store::new(Arc::new(LocalBlobs::new(directory.path().to_owned())));
        let mut tables: Vec<Option<TrialTable>> = candidates.iter().map(|_| None).collect();
        let rejects = Rejects::default();
        let sources: BTreeSet<&str> = candidates.iter().map(|candidate| candidate.source.as_str()).collect();
        let collectors: Vec<DrawCollector> = options.draws.iter().cloned().map(DrawCollector::new).collect();
        let profile = ProfileCollector::new(options.profiled.clone());
        let kinds = options.kinds.then(KindCollector::default);
        for name in sources {
            let of_source = || candidates.iter().enumerate().filter(|(_, candidate)| candidate.source == name);
            let Some(source) = job.source(name) else {
                let layout = of_source().next().map(|(_, candidate)| candidate.spec.name.clone()).unwrap_or_default();
                return Err(AdvisorError::UnknownSource { layout, source_name: name.to_owned() });
            };
            let own: Vec<&Candidate> = of_source().map(|(_, candidate)| candidate).collect();
            let loaded = load_source(
                &store,
                storage,
                (source, &own),
                Observers { draws: &collectors, profile: &profile, kinds: kinds.as_ref(), rejects: &rejects },
                options,
            )?;
            for ((at, _), table) in of_source().zip(loaded) {
                if let Some(slot) = tables.get_mut(at) {
                    *slot = Some(table);
                }
            }
        }
        let profile = profile.finish();
        let times = profile.times.filter(|_| profile.outliers.is_some());
        let draws = collectors.into_iter().map(|collector| collector.finish(times)).collect();
        let tables = tables.into_iter().flatten().collect();
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
        let sum = |of: fn(&TrialTable) -> u64| self.tables.iter().map(of).max().unwrap_or_default();
        AdvisorError::NoRows { read: sum(|it| it.stats.rows_read), rejected: sum(|it| it.stats.rows_rejected) }
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

/// Encodes one source by its candidates, in their order.
fn load_source(
    store: &Store,
    storage: &Storage,
    (source, candidates): (&Source, &[&Candidate]),
    observers: Observers<'_>,
    options: &TrialOptions,
) -> Result<Vec<TrialTable>> {
    let Some(first) = candidates.first() else { return Ok(Vec::new()) };
    let counter = Counter::new(&first.schema, candidates.iter().map(|candidate| &candidate.spec));
    let compiled = candidates.iter().map(|candidate| Compiled::new(candidate, &counter)).collect::<Result<Vec<_>>>()?;
    let mut found = storage.find(&source.spec)?;
    if !found.unmatched.is_empty() {
        return Err(storage.no_match(&source.spec, found.unmatched.swap_remove(0), &found.unread).into());
    }
    let mut entity = entity(candidates);
    entity.retain(|name| first.schema.fields.iter().any(|field| field.name == *name));
    let repeats = RepeatCounter::default();
    let takes_all = |candidate: &&Candidate| candidate.filter.is_empty();
    let first_of_all = candidates.iter().position(takes_all);
    let filters: Vec<SampleFilter<'_>> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| SampleFilter {
            inner: &candidate.filter,
            sample: options.sample,
            window: options.window.clone(),
            entity: &entity,
            time: &counter.time,
            counts: Mutex::default(),
            repeats: (Some(at) == first_of_all).then_some(&repeats),
        })
        .collect();
    let mut prepared = Vec::with_capacity(compiled.len());
    for Compiled { identity, .. } in &compiled {
        let base = Version::empty(identity.clone());
        let hash = |file: &InputFile| storage.hash(file);
        let folder_values = |path: &str| folder_values(&source.spec, path);
        let looking = InputPlanOptions { folder_values: &folder_values, ..InputPlanOptions::default() };
        let plan = InputPlan::new(&base, found.files.clone(), looking, hash)?;
        prepared.push((store.table(&identity.spec.name), base, plan));
    }
    let targets = compiled.iter().zip(&prepared).zip(&filters).map(|((compiled, (table, base, plan)), filter)| {
        LoadTarget { table, layout: &compiled.layout, filter: Some(filter as &dyn Prepare), base, plan }
    });
    let ids = UlidIds::default();
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
        targets: targets.collect(),
        ids: &ids,
        memory: options.memory,
        on_reject: &|row| observers.rejects.count(row),
        on_progress: &|_| {},
    };
    let loaded = loader.load();
    if let Some(stopped) = options.stop.asked() {
        return Err(stopped.into());
    }
    let loaded = loaded?;
    let repeated = first_of_all.map(|_| repeats.finish());
    let mut tables = Vec::with_capacity(loaded.len());
    for (((compiled, (table, base, _)), filter), loaded) in compiled.iter().zip(prepared).zip(&filters).zip(loaded) {
        let version = table.commit(base, &loaded.edit, &ids, 0)?;
        let snapshot = Snapshot::new(table, Arc::new(version))?;
        let mut counts = *filter.counts.lock().unwrap_or_else(PoisonError::into_inner);
        // What the rows that a layout does not take repeat is not known.
        let same_rows = filter.inner.is_empty() && loaded.stats.rows_rejected == 0;
        counts.takes_all = filter.inner.is_empty();
        counts.repeated = repeated.filter(|_| same_rows);
        let sample = (options.sample.is_some() || options.window.is_some(), counts);
        tables.push(TrialTable::new(compiled.own.clone(), snapshot, &counter, &entity, loaded.stats, sample)?);
    }
    Ok(tables)
}

/// The columns that make an entity in every layout: those of all row keys except times, or else of the first row key that has
/// any.
fn entity(candidates: &[&Candidate]) -> Vec<String> {
    let of = |candidate: &&Candidate| key_columns(&candidate.spec, &candidate.schema);
    let mut common = candidates.first().map(of).unwrap_or_default();
    for candidate in candidates {
        let own = of(candidate);
        common.retain(|name| own.contains(name));
    }
    if common.is_empty() {
        return candidates.iter().map(of).find(|columns| !columns.is_empty()).unwrap_or_default();
    }
    common
}

/// A candidate with its counter.
struct Compiled {
    /// Without the counter.
    own: Layout,
    layout: Layout,
    identity: TableIdentity,
}

impl Compiled {
    fn new(candidate: &Candidate, counter: &Counter) -> Result<Self> {
        let (spec, source) = (counter.spec(&candidate.spec), counter.schema(&candidate.schema));
        let failed = |errors| AdvisorError::Layout { layout: candidate.spec.name.clone(), errors };
        let own = Layout::compile(&candidate.spec, &candidate.schema).map_err(failed)?;
        let layout = Layout::compile(&spec, &source).map_err(failed)?;
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
        let stopped = |by| StoreError::Feed { input: "what was read".to_owned(), source: Box::new(by) };
        self.stop.asked().map_or(Ok(()), |by| Err(stopped(by)))
    }
}
