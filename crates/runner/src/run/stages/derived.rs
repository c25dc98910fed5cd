//! Derived tables: the windows of the tables they read are their inputs.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use futures::StreamExt;
use tidetable_ingest::{Feed, FeedEnd, FeedPiece, Grown, InputPlan, InputPlanOptions, RejectedRow};
use tidetable_job::{Table, TableInput};
use tidetable_layout::spec::TimestampSpec;
use tidetable_layout::time::DAY;
use tidetable_layout::time::{window_bounds, window_name, window_of};
use tidetable_layout::{Field, KeyRange, Projection, Window};
use tidetable_source::{ContentHash, InputFile, MaxRejected, TextShape};
use tidetable_sql::{QueryShape, Session, SessionOptions, SqlError, in_columns};
use tidetable_store::{Result as StoreResult, Snapshot, StoreError, Version};
use tokio::runtime::Handle;
use xxhash_rust::xxh3::xxh3_128;

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use crate::plan::query_window;
use crate::run::reject_log::first_rejects;
use crate::run::stages::load::{LoadFeed, LoadStage, Pending, Planned};
use crate::units::work::{LoadFrom, Versions};

/// The query of a derived table.
#[derive(Clone, Copy)]
pub(crate) struct DerivedQuery<'a> {
    pub(crate) sql: &'a str,
    pub(crate) shape: &'a QueryShape,
}

impl<'a> DerivedQuery<'a> {
    /// The query of `table`; `None` if its rows come from a source.
    pub(crate) fn of(table: &'a Table) -> Option<Self> {
        match &table.from {
            TableInput::Query { sql, shape } => Some(Self { sql, shape }),
            TableInput::Source(_) => None,
        }
    }
}

impl LoadStage<'_> {
    /// The new and changed windows that a derived table has to read. Windows of `unread`, by name, cannot be read: they
    /// count as missing, and so do windows that lost cells.
    pub(crate) fn plan_derived<'b>(
        &self,
        table: &'b Table,
        shape: &QueryShape,
        unread: &BTreeSet<String>,
    ) -> Result<PlannedDerived<'b>, RunError> {
        let stored = self.store.table(&table.spec.name);
        let base = self.base(&stored, table, None, &[])?;
        let read: Vec<Snapshot> = shape.reads.iter().map(|name| self.store.snapshot(name)).collect::<Result<_, _>>()?;

        let sources = read.iter().map(|snapshot| snapshot.layout().spec().window);
        let windows = windows(&read, query_window(sources, table));
        let missing = missing(&read, &windows, unread);

        let present = windows.iter().filter(|(path, _)| !missing.contains(path.as_str()));
        let found: Vec<InputFile> = present.map(|(path, window)| InputFile::of_rows(path, &window.version)).collect();

        let looking = InputPlanOptions {
            // A window that is gone, because its table is new or has other windows, is not a missing input.
            without: &|path| !missing.contains(path),
            rebuild: base.reset.is_some(),
            ..InputPlanOptions::default()
        };
        let mut plan = InputPlan::new(base.known(), found, looking, |file| Ok(hash(file))).map_err(StoreError::from)?;
        if base.reset.is_some() && !missing.is_empty() {
            let windows = missing.into_iter().map(str::to_owned).collect();
            return Err(RunError::RebuildLost { table: table.spec.name.clone(), windows });
        }

        // It is taken out without a choice of the user.
        plan.left_out.clear();
        plan.read_again(&self.options.reread);
        if table.spec.upsert && has_event_times(table) && !plan.changed.is_empty() {
            keep_what_is_newer(&stored, &base.version, &mut plan)?;
        }

        let mut versions = Versions::new();
        for snapshot in &read {
            let version = snapshot.version();
            versions.insert(snapshot.table().name().to_owned(), (version.number, version.commit.clone()));
        }
        Ok(PlannedDerived { planned: Planned { table, stored, base, plan }, windows, versions })
    }

    /// Loads new and changed windows, except those of `unread`, into a derived table, without committing.
    pub(crate) fn load_derived(
        &self,
        table: &Table,
        query: DerivedQuery<'_>,
        handle: &Handle,
        unread: &BTreeSet<String>,
    ) -> Result<Vec<Pending>, RunError> {
        let PlannedDerived { planned, windows, versions } = self.plan_derived(table, query.shape, unread)?;
        let session = Session::open(self.store, &SessionOptions::default())
            .map_err(|error| StoreError::Feed { input: table.spec.name.clone(), source: Box::new(error) })?;

        let times: HashMap<String, Range<i64>> =
            windows.into_iter().map(|(path, window)| (path, window.time)).collect();
        let bounds = times.iter().map(|(path, time)| (path.clone(), (time.start, time.end))).collect();

        let feed = QueryFeed::new(&session, query, times, handle, &self.options.stop);
        let from = LoadFrom::Query { versions, times: bounds };
        let feed = LoadFeed { feed: &feed, derive: None, from };
        self.load_planned(&query.shape.reads.join(", "), feed, vec![planned])
    }
}

/// A derived table with its plan.
pub(crate) struct PlannedDerived<'a> {
    pub(crate) planned: Planned<'a>,
    /// The windows of the tables that it reads, by name.
    windows: Vec<(String, SourceWindow)>,
    /// The versions of these tables.
    versions: Versions,
}

impl PlannedDerived<'_> {
    /// The UTC days that changed since the table was made: all days of a window that is new or gone, otherwise those
    /// that later versions changed.
    pub(crate) fn changed_days(&self) -> BTreeSet<i32> {
        let InputPlan { new, resumed, changed, grown, given_up, .. } = &self.planned.plan;
        let mut days: BTreeSet<i32> = given_up.iter().flat_map(|input| input.days.iter().copied()).collect();
        for (_, file) in new.iter().chain(resumed) {
            days.extend(self.changed_since(&file.path, ""));
        }
        for (file, old) in changed {
            days.extend(self.changed_since(&file.path, &old.version));
        }
        for Grown { file, held, .. } in grown {
            days.extend(self.changed_since(&file.path, &held.version));
        }

        for start in self.planned.plan.settled() {
            let inputs = self.planned.base.version.inputs.iter();
            let owed = inputs.flat_map(|input| &input.owed).filter(|owed| owed.start == start);
            days.extend(owed.flat_map(|owed| &owed.days));
        }
        days
    }

    /// The UTC days of the window of this name that changed since a version of it.
    fn changed_since(&self, window: &str, version: &str) -> BTreeSet<i32> {
        let found = self.windows.iter().find(|(name, _)| name == window);
        found.map(|(_, window)| window.changed_since(version)).unwrap_or_default()
    }
}

/// Checks the rejected rows of a derived table against the default limit of sources.
pub(crate) fn check_query_rejected(
    job: &str,
    run: &str,
    load: &Pending,
    first: &[RejectedRow],
) -> Result<(), RunError> {
    let record = &load.record;
    let limit = MaxRejected::default();
    let (rejected, read) = (record.stats.rows_rejected, record.stats.rows_read);
    if !limit.exceeded(rejected.saturating_sub(load.let_pass), read) {
        return Ok(());
    }

    Err(RunError::TooManyQueryRejected {
        table: record.table.clone(),
        rejected,
        read,
        limit: limit.to_string().into(),
        first: first_rejects(first.iter()).into(),
        job: job.to_owned(),
        log: tidetable_record::rejects_path(run, Some(&record.table)).into(),
    })
}

/// A window of the tables that a query reads.
#[derive(Debug)]
struct SourceWindow {
    /// Event times in microseconds.
    time: Range<i64>,
    /// For each table, the last version that changed the window.
    version: String,
    /// For each table, the last version that changed each UTC day of the window.
    days: Vec<BTreeMap<i32, u64>>,
}

impl SourceWindow {
    /// The UTC days that changed since `version`, a former value of [`Self::version`].
    fn changed_since(&self, version: &str) -> BTreeSet<i32> {
        let mut then = version.split(' ').zip(self.version.split(' '));
        let mut days = BTreeSet::new();
        for changed in &self.days {
            let then = then.next().and_then(|(then, now)| number_then(then, now)).unwrap_or_default();
            days.extend(changed.iter().filter(|(_, version)| **version > then).map(|(day, _)| *day));
        }
        days
    }
}

/// The number of the version `then`, `BORN:NUMBER`, if `now` is one of the same table.
fn number_then(then: &str, now: &str) -> Option<u64> {
    let (born, number) = then.split_once(':')?;
    let (born_now, _) = now.split_once(':')?;
    if born == born_now { number.parse().ok() } else { None }
}

/// The windows of the tables that are read together, a `unit` each, by name, in time order.
fn windows(read: &[Snapshot], unit: Window) -> Vec<(String, SourceWindow)> {
    let mut changed: BTreeMap<i64, Vec<BTreeMap<i32, u64>>> = BTreeMap::new();
    for (at, snapshot) in read.iter().enumerate() {
        for window in &snapshot.version().windows {
            let start = if unit == Window::None { 0 } else { window_of(unit, window.start) };
            let tables = changed.entry(start).or_insert_with(|| vec![BTreeMap::new(); read.len()]);
            if let Some(days) = tables.get_mut(at) {
                for (day, version) in &window.days {
                    let last = days.entry(*day).or_default();
                    *last = (*last).max(*version);
                }
            }
        }
    }

    let names: Vec<&str> = read.iter().map(|snapshot| snapshot.table().name()).collect();
    let mut windows = Vec::with_capacity(changed.len());
    for (start, days) in changed {
        let time = if unit == Window::None { i64::MIN..i64::MAX } else { window_bounds(unit, start) };
        let mut version = Vec::with_capacity(read.len());
        for (snapshot, days) in read.iter().zip(&days) {
            let last = days.values().copied().max().unwrap_or(0);
            version.push(format!("{}:{last}", snapshot.version().table_uuid));
        }

        let name = format!("{}@{}", names.join("+"), window_name(unit, start));
        windows.push((name, SourceWindow { time, version: version.join(" "), days }));
    }
    windows
}

/// Names of the windows that cannot be read: those of `unread`, and those in which a table lost cells.
fn missing<'a>(
    read: &[Snapshot],
    windows: &'a [(String, SourceWindow)],
    unread: &BTreeSet<String>,
) -> BTreeSet<&'a str> {
    let lost: Vec<Range<i64>> = read.iter().flat_map(|snapshot| snapshot.version().lost_times()).collect();
    let mut missing = BTreeSet::new();
    for (path, SourceWindow { time, .. }) in windows {
        let is_lost = lost.iter().any(|lost| lost.start < time.end && time.start < lost.end);
        if is_lost || unread.contains(path) {
            missing.insert(path.as_str());
        }
    }
    missing
}

/// Stands in for a content hash: the rows of a window change only with a version.
fn hash(input: &InputFile) -> ContentHash {
    ContentHash(xxh3_128(format!("{}\0{}", input.path, input.version).as_bytes()))
}

/// Whether the cells that change with the events of a row have event time as timestamp.
fn has_event_times(table: &Table) -> bool {
    let source = table.layout.source();
    let time = source.fields.get(source.time).map(|field| field.name.as_str());
    let mut columns = table.spec.families.iter().flat_map(|family| &family.columns);
    columns.all(|column| match &column.timestamp {
        TimestampSpec::Implied => true,
        TimestampSpec::Zero => false,
        TimestampSpec::Field(name) => Some(name.as_str()) == time,
    })
}

/// Drops changed windows from the removals of a table that keeps the newest event of each row, if none of their old
/// rows is visible: their new rows are only added. (Otherwise the row that was newest before must
/// be read again from other windows.)
fn keep_what_is_newer(
    stored: &tidetable_store::Table,
    version: &Version,
    plan: &mut InputPlan,
) -> Result<(), StoreError> {
    let days = match days_shown(&Snapshot::new(stored.clone(), std::sync::Arc::new(version.clone()))?) {
        Ok(days) => days,
        // Their windows are rebuilt, which needs none of their SSTs.
        Err(error) if error.damaged_sst().is_some() => return Ok(()),
        Err(error) => return Err(error),
    };
    let hidden = plan.changed.extract_if(.., |(_, old)| !old.days.iter().any(|day| days.contains(day)));
    plan.grown = hidden.map(|(file, held)| Grown { file, held, from: 0, hash: None }).collect();
    Ok(())
}

/// The UTC days of the visible events of a table.
fn days_shown(snapshot: &Snapshot) -> Result<HashSet<i32>, StoreError> {
    let mut days = HashSet::new();
    let mut projection = Projection::all(snapshot.schema());
    for group in projection.groups.iter_mut().flatten() {
        group.qualifiers = false;
        group.columns.fill(false);
    }

    let Some(whole) = snapshot.whole(&KeyRange::all()) else { return Ok(days) };

    for block in snapshot.scan(&whole, &projection)? {
        for times in block?.groups.iter().flatten().filter_map(|group| group.timestamps.as_ref()) {
            days.extend(times.iter().map(|time| time.div_euclid(DAY) as i32));
        }
    }
    Ok(days)
}

/// Feeds the rows of a query, a window at a time.
pub(crate) struct QueryFeed<'a> {
    session: Session,
    sql: &'a str,
    columns: &'a [Field],
    times: HashMap<String, Range<i64>>,
    handle: &'a Handle,
    stop: &'a Stop,
}

impl<'a> QueryFeed<'a> {
    /// The rows of `query` over the windows `times`, by name.
    pub(crate) fn new(
        session: &Session,
        query: DerivedQuery<'a>,
        times: HashMap<String, Range<i64>>,
        handle: &'a Handle,
        stop: &'a Stop,
    ) -> Self {
        // Sequential, so that the same windows give the same rows in the same order.
        Self { session: session.sequential(), sql: query.sql, columns: &query.shape.columns, times, handle, stop }
    }

    /// Waits for `work`, until the run is asked to stop.
    fn wait<T>(&self, input: &InputFile, work: impl Future<Output = T>) -> StoreResult<T> {
        self.handle.block_on(async {
            tokio::select! {
                done = work => Ok(done),
                stopped = self.stop.wait() => {
                    Err(StoreError::Feed { input: input.path.clone(), source: Box::new(stopped) })
                }
            }
        })
    }
}

impl fmt::Debug for QueryFeed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryFeed").field("sql", &self.sql).finish_non_exhaustive()
    }
}

impl Feed for QueryFeed<'_> {
    fn read(
        &self,
        input: &InputFile,
        _: &[u64],
        give: &mut dyn FnMut(FeedPiece, u64) -> bool,
    ) -> StoreResult<Option<FeedEnd>> {
        let Some(time) = self.times.get(&input.path) else {
            return Err(StoreError::InputChanged { path: input.path.clone() });
        };
        let session = self.session.restricted(time.clone());

        let rows = self.wait(input, session.stream(self.sql))?;
        let mut rows = rows.map_err(|error| of_query(input, error))?;
        while let Some(batch) = self.wait(input, rows.next())? {
            let batch = batch.map_err(|error| of_query(input, error.into()))?;
            let piece = in_columns(self.columns, &batch).map_err(|error| of_query(input, error))?;
            if !give(FeedPiece::Rows(piece), 0) {
                return Ok(None);
            }
        }
        Ok(Some(FeedEnd { hash: hash(input), bytes: 0, loaded: None, shape: TextShape::default() }))
    }
}

/// The error of a query over the window `input`.
fn of_query(input: &InputFile, error: SqlError) -> StoreError {
    StoreError::Feed { input: input.path.clone(), source: Box::new(error) }
}
