//! Runs a push: ranges of keys in parallel, with their progress in the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use tidetable_layout::KeyRange;
use tidetable_record::{NewestVersions, PullOrigins, PushBase, PushCounts, PushRange, PushState};
use tidetable_runner::Stop;
use tidetable_store::{Snapshot, Store};
use tidetable_upkeep::Pins;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::client::{Client, ReadQuery, TableName};
use crate::error::{BigtableError, Result};
use crate::proto::admin::ColumnFamily;
use crate::proto::data::RowFilter;
use crate::proto::data::row_filter::{Chain, Filter};
use crate::push::batch::{Batch, BatchLimits};
use crate::push::pace::Pace;
use crate::push::plan::{Found, PushChoices, PushPlan, Runs, changed_ssts, plan, state_id};
use crate::push::produce::{Base, Work};
use crate::push::send::BatchSender;
use crate::push::split::rotated;
use crate::rows::GcView;

/// Batches of a range that wait, and requests of it under way.
const WAITING: usize = 2;
const UNDER_WAY: usize = 2;
/// How often the progress is recorded, and a request to stop is looked for.
const RECORD_EVERY: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often pins are renewed, which expire after an hour.
const RENEW_EVERY: Duration = Duration::from_secs(600);

/// A push of a table into Bigtable.
#[derive(Debug, Clone)]
pub struct Push {
    /// The store that has the table, and the record of its pushes.
    pub store: Store,
    /// The name of the table here.
    pub table: String,
    /// The table in Bigtable that is written.
    pub target: TableName,
    /// Writes the target.
    pub client: Client,
    /// The choices of the user.
    pub choices: PushChoices,
    /// At most this many rows a second.
    pub rate: Option<f64>,
    /// Ranges of keys at a time.
    pub workers: usize,
    /// A name that no other push has: tokens of merges and pins are of it.
    pub name: String,
    /// The clock, microseconds since the epoch.
    pub clock: fn() -> i64,
    /// Ends it at the next opportunity.
    pub stop: Stop,
}

impl Push {
    /// The name of the lock that one push of these rows into the target holds at a time.
    pub fn lock_name(&self) -> String {
        format!("push-{}", state_id(&self.target, &self.choices.range))
    }

    /// What it would do. Writes nothing.
    ///
    /// # Errors
    /// If the store or the target cannot be read, or do not fit together; [`BigtableError::PushToSource`].
    pub fn plan(&self, runtime: &Handle) -> Result<PushPlan> {
        let snapshot = NewestVersions::default().snapshot(&self.store, &self.table)?;
        let origins = PullOrigins::load(self.store.blobs().as_ref(), &self.table)?;
        if !self.choices.to_source && origins.sources.contains(&self.target.to_string()) {
            return Err(BigtableError::PushToSource { table: self.table.clone(), target: self.target.to_string() });
        }
        let (table, sampled) = runtime.block_on(async {
            let table = self.client.table(&self.target).await?;
            let sampled = match table {
                Some(_) => self.client.sample_row_keys(&self.target).await?,
                None => Vec::new(),
            };
            Ok::<_, BigtableError>((table, sampled))
        })?;
        let sampled = sampled.into_iter().map(|sample| sample.key).filter(|key| !key.is_empty()).collect();
        let found = Found { table: table.as_ref(), sampled };
        let runs = Runs { push: &self.name, workers: self.workers };
        plan(&self.store, snapshot, &self.target, &self.choices, &found, runs)
    }

    /// Does what `plan` says, and tells `watch` of its counts now and then. Returns the state of the pushes to the target.
    ///
    /// # Errors
    /// What ended it; its progress is recorded, so the next push goes on from there.
    pub fn run(&self, plan: &PushPlan, watch: &(dyn Fn(&PushCounts) + Sync), runtime: &Handle) -> Result<PushState> {
        let id = state_id(&self.target, &self.choices.range);
        let mut state = plan.state.clone();
        if plan.is_done && !plan.creates() {
            return Ok(state);
        }
        let pins = self.pins(plan)?;
        let aggregates = plan.schema.aggregates().map(|(name, kind)| (name.to_owned(), kind)).collect();
        runtime.block_on(self.prepare(plan))?;
        let mut progress = plan.progress.clone();
        if !plan.resumes {
            progress.started = (self.clock)();
        }
        state.running = Some(progress.clone());
        if state.table_uuid.is_empty() || !plan.resumes {
            state.table_uuid.clone_from(&plan.snapshot.version().table_uuid);
        }
        state.save(self.store.blobs().as_ref(), &id)?;
        let base = match (plan.base, &plan.before_snapshot) {
            (PushBase::Version(_), Some(before)) => Base::Version(before.clone(), changed_ssts(&plan.snapshot, before)),
            (PushBase::Target, _) => Base::Target(GcView::new(&plan.snapshot, plan.snapshot.version().now)?),
            _ => Base::Nothing,
        };
        let mut limits = BatchLimits::default();
        if let Some(rate) = self.rate {
            // A request a fifth of a second, so that rows come evenly.
            limits.rows = ((rate / 5.0) as usize).clamp(1, limits.rows);
        }
        let work = Work {
            push: progress.push.clone(),
            snapshot: plan.snapshot.clone(),
            base,
            aggregates,
            client: self.client.clone(),
            target: self.target.clone(),
            limits,
            step: plan.schema.step(),
            started: progress.started,
        };
        let sender = BatchSender::new(self.client.clone(), self.target.clone(), Pace::new(self.rate), plan.resumes);
        let recorded = Arc::new(Recorded { state: Mutex::new(state), is_new: AtomicBool::new(false) });
        let transfer = Transfer { push: self, work: Arc::new(work), sender, recorded: Arc::clone(&recorded), id };
        let done = runtime.block_on(transfer.run(&pins, watch));
        let mut state = recorded.lock().clone();
        match done {
            Ok(()) => {
                let counts = state.running.take().map(|running| running.counts).unwrap_or_default();
                state.version = plan.version;
                state.counts = counts;
                state.finished = Some((self.clock)());
                state.save(self.store.blobs().as_ref(), &transfer.id)?;
                Ok(state)
            }
            Err(error) => {
                // The error of the push is the one to report.
                let _ = state.save(self.store.blobs().as_ref(), &transfer.id);
                Err(error)
            }
        }
    }

    /// Keeps the versions it reads from vacuum.
    fn pins(&self, plan: &PushPlan) -> Result<Vec<Pins>> {
        let snapshots = [Some(&plan.snapshot), plan.before_snapshot.as_ref()];
        let versions = snapshots.into_iter().flatten().map(|snapshot: &Snapshot| snapshot.version().number);
        versions.map(|number| Ok(Pins::of_version(&self.store, &self.table, number, &self.name)?)).collect()
    }

    /// Makes what is missing in the target, and looks whether its aggregates are empty.
    async fn prepare(&self, plan: &PushPlan) -> Result<()> {
        if plan.creates_table {
            return self.client.create_table(&self.target, plan.schema.table(), &plan.splits).await;
        }

        let mut families: Vec<(String, ColumnFamily)> = Vec::with_capacity(plan.families.len());
        for (name, _) in &plan.families {
            let family = plan.schema.families.get(name).map(|family| family.remote());
            families.push((name.clone(), family.unwrap_or_default()));
        }
        if !families.is_empty() {
            self.client.add_families(&self.target, families).await?;
        }

        let names: Vec<&str> = plan.schema.aggregates().map(|(name, _)| name).collect();
        if names.is_empty() || plan.resumes || plan.base != PushBase::Nothing {
            return Ok(());
        }

        // What is there would merge with what is pushed.
        let filters = [
            Filter::FamilyNameRegexFilter(names.join("|").replace('.', "\\.")),
            Filter::CellsPerRowLimitFilter(1),
            Filter::StripValueTransformer(true),
        ];
        let filters = filters.map(|filter| RowFilter { filter: Some(filter) }).to_vec();
        let filter = Some(RowFilter { filter: Some(Filter::Chain(Chain { filters })) });
        let query = ReadQuery { ranges: vec![self.choices.range.clone()], filter, limit: Some(1) };
        match self.client.rows(&self.target, query).await?.first() {
            None => Ok(()),
            Some(row) => Err(BigtableError::AggregatesThere {
                target: self.target.to_string(),
                family: row.cells.first().map(|cell| cell.family.to_string()).unwrap_or_default(),
                key: row.key.escape_ascii().to_string(),
            }),
        }
    }
}

/// The state as it will be recorded.
#[derive(Debug)]
struct Recorded {
    state: Mutex<PushState>,
    is_new: AtomicBool,
}

impl Recorded {
    fn lock(&self) -> std::sync::MutexGuard<'_, PushState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the range at index `at`.
    fn note(&self, at: usize, counts: &PushCounts, change: impl FnOnce(&mut PushRange)) {
        let mut state = self.lock();
        if let Some(running) = &mut state.running {
            running.counts.add(counts);
            running.ranges.get_mut(at).map(change);
        }
        self.is_new.store(true, Ordering::Relaxed);
    }

    fn counts(&self) -> PushCounts {
        self.lock().running.as_ref().map(|running| running.counts).unwrap_or_default()
    }
}

struct Transfer<'a> {
    push: &'a Push,
    work: Arc<Work>,
    sender: BatchSender,
    recorded: Arc<Recorded>,
    id: String,
}

impl Transfer<'_> {
    async fn run(&self, pins: &[Pins], watch: &(dyn Fn(&PushCounts) + Sync)) -> Result<()> {
        let ranges = self.recorded.lock().running.as_ref().map(|running| running.ranges.clone()).unwrap_or_default();
        let order = rotated(ranges.len(), self.push.workers);
        let open =
            order.into_iter().filter_map(|at| ranges.get(at).filter(|range| !range.finished).map(|range| (at, range)));
        let work = stream::iter(open)
            .map(|(at, range)| self.range(at, range))
            .buffer_unordered(self.push.workers.max(1))
            .try_collect::<Vec<()>>();
        tokio::pin!(work);

        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut recorded, mut renewed) = (Instant::now(), Instant::now());
        loop {
            tokio::select! {
                done = &mut work => return done.map(drop),
                _ = looks.tick() => {}
            }

            if let Some(stopped) = self.push.stop.asked() {
                return Err(BigtableError::Stopped { signal: stopped.0 });
            }
            if recorded.elapsed() >= RECORD_EVERY && self.recorded.is_new.swap(false, Ordering::Relaxed) {
                recorded = Instant::now();
                watch(&self.recorded.counts());
                self.save().await?;
            }
            if renewed.elapsed() >= RENEW_EVERY {
                renewed = Instant::now();
                // One that cannot be renewed is noticed when its files are gone.
                tokio::task::block_in_place(|| pins.iter().for_each(|pins| drop(pins.renew())));
            }
        }
    }

    async fn save(&self) -> Result<()> {
        let (blobs, state, id) = (Arc::clone(self.push.store.blobs()), self.recorded.lock().clone(), self.id.clone());
        let saved = tokio::task::spawn_blocking(move || state.save(blobs.as_ref(), &id)).await;
        Ok(saved.map_err(|_| BigtableError::Stopped { signal: 0 })??)
    }

    /// Pushes a range of keys, from where it was left.
    async fn range(&self, at: usize, range: &PushRange) -> Result<()> {
        let mut keys =
            KeyRange { start: range.start.clone(), end: Some(range.end.clone()).filter(|end| !end.is_empty()) };
        if !range.done.is_empty() {
            keys.start.clone_from(&range.done);
            keys.start.push(0);
        }

        let (sender, mut receiver) = mpsc::channel::<Batch>(WAITING);
        let work = Arc::clone(&self.work);
        let producer = tokio::task::spawn_blocking(move || work.produce(&keys, &sender));
        let batches = stream::poll_fn(move |context| receiver.poll_recv(context));
        let mut sent = batches.map(|batch| self.sender.send(batch)).buffered(UNDER_WAY);
        while let Some(done) = sent.next().await {
            let (last, counts) = done?;
            self.recorded.note(at, &counts, |range| range.done = last.to_vec());
        }
        match producer.await {
            Ok(produced) => produced?,
            // It panicked, or the runtime ends.
            Err(_) => return Err(BigtableError::Stopped { signal: 0 }),
        }
        self.recorded.note(at, &PushCounts::default(), |range| range.finished = true);
        Ok(())
    }
}
