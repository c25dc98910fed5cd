//! What a push would do. Decided before anything is written.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use tidetable_layout::KeyRange;
use tidetable_record::{PushBase, PushProgress, PushState};
use tidetable_store::{Snapshot, Store, StoreError};
use xxhash_rust::xxh3::xxh3_64;

use crate::client::TableName;
use crate::client::rules::rule_text;
use crate::error::{BigtableError, Result};
use crate::proto::admin::Table;
use crate::push::schema::{FamilyDifference, TableSchema};
use crate::push::split::{equal_splits, parts_of, ranges, thinned, weights};

/// Ranges of keys of a push, at most: each has a place in the record of its progress.
const MOST_RANGES: usize = 256;
/// Ranges for each one that is worked on at a time, so that none waits for the last.
const RANGES_EACH: usize = 4;
/// Cells below which a push is one range.
const FEW_CELLS: u64 = 50_000;

/// What a push would do, and why.
#[derive(Debug, Clone)]
pub struct PushPlan {
    /// The table in Bigtable that is written.
    pub target: TableName,
    /// The version that is pushed.
    pub version: u64,
    /// The version that was pushed before; 0 if none was.
    pub before: u64,
    /// What the version is compared with.
    pub base: PushBase,
    /// Whether a push that did not end goes on.
    pub resumes: bool,
    /// Whether the target holds the version already.
    pub is_done: bool,
    /// Whether the table is created.
    pub creates_table: bool,
    /// Keys at which a created table is cut.
    pub splits: Vec<Bytes>,
    /// Families that are created, with their rules and kinds.
    pub families: Vec<(String, String)>,
    /// Notes for the user.
    pub notes: Vec<String>,
    pub(crate) schema: TableSchema,
    pub(crate) state: PushState,
    pub(crate) progress: PushProgress,
    pub(crate) snapshot: Snapshot,
    pub(crate) before_snapshot: Option<Snapshot>,
}

impl PushPlan {
    /// Whether it makes a table or families.
    pub fn creates(&self) -> bool {
        self.creates_table || !self.families.is_empty()
    }
}

/// The choices of the user.
#[derive(Debug, Clone, Default)]
pub struct PushChoices {
    /// The row keys that are pushed.
    pub range: KeyRange,
    /// The version that the target is known to hold.
    pub changed_since: Option<u64>,
    /// Compare with the cells of the target, whatever was pushed before.
    pub compare: bool,
    /// Create the table and families that are missing.
    pub create: bool,
    /// Write into the table that the rows were pulled from, too.
    pub to_source: bool,
}

/// What is there before a push.
pub(crate) struct Found<'a> {
    /// The table in Bigtable.
    pub(crate) table: Option<&'a Table>,
    /// Keys at which the service cuts it.
    pub(crate) sampled: Vec<Bytes>,
}

/// How a push runs: its name, and how many ranges of keys are worked on at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Runs<'a> {
    pub(crate) push: &'a str,
    pub(crate) workers: usize,
}

/// The id of the state of a push.
pub(crate) fn state_id(target: &TableName, range: &KeyRange) -> String {
    let mut text = target.to_string().into_bytes();
    for end in [Some(&range.start), range.end.as_ref()] {
        text.push(0);
        text.extend_from_slice(end.map_or(b"", |end| end.as_slice()));
    }
    format!("{}-{:016x}", target.id(), xxh3_64(&text))
}

/// Decides what a push of `snapshot`, the newest version, does.
///
/// # Errors
/// If the target does not fit and may not be changed, or a version that is needed is gone.
pub(crate) fn plan(
    store: &Store,
    newest: Snapshot,
    target: &TableName,
    choices: &PushChoices,
    found: &Found<'_>,
    runs: Runs<'_>,
) -> Result<PushPlan> {
    let name = newest.table().name().to_owned();
    let id = state_id(target, &choices.range);
    let known = PushState::load(store.blobs().as_ref(), &name, &id)?;
    let mut notes = Vec::new();
    let state = known.unwrap_or_else(|| PushState {
        table: name.clone(),
        target: target.to_string(),
        start: choices.range.start.clone(),
        end: choices.range.end.clone().unwrap_or_default(),
        ..PushState::default()
    });

    let decided = decide(&newest, &state, choices, found.table.is_some(), &mut notes);
    let (version, base, resumes) = decided.map_err(|version| BigtableError::VersionGone {
        table: name.clone(),
        version,
        target: target.to_string(),
    })?;
    let snapshot = if version == newest.version().number { newest } else { snapshot_of(store, &name, version)? };
    let before_snapshot = match base {
        PushBase::Version(number) => {
            Some(snapshot_of(store, &name, number).map_err(|error| gone(error, number, target))?)
        }
        PushBase::Nothing | PushBase::Target => None,
    };

    let mut schema = TableSchema::of(&snapshot)?;
    if choices.create {
        schema.look_at_sketches(&snapshot)?;
    }
    let families = missing(&schema, target, found.table, choices.create, &mut notes)?;

    let weights = weights(&snapshot, &choices.range)?;
    let cells = weights.iter().map(|(_, cells)| cells).sum();
    let splits = match found.table {
        None => equal_splits(&weights, parts_of(cells, 0), &choices.range.start),
        Some(_) => Vec::new(),
    };
    let progress = match state.running.clone().filter(|_| resumes) {
        Some(running) => running,
        None => {
            let parts = if cells < FEW_CELLS { 1 } else { runs.workers * RANGES_EACH };
            let mut cuts = equal_splits(&weights, parts as u64, &choices.range.start);
            cuts.extend(thinned(found.sampled.clone(), MOST_RANGES - cuts.len().min(MOST_RANGES / 2)));
            cuts.extend(splits.iter().cloned());
            let ranges = ranges(&choices.range, cuts);
            PushProgress { push: runs.push.to_owned(), version, base, ranges, ..PushProgress::default() }
        }
    };

    let is_done = !resumes && base == PushBase::Version(version);
    Ok(PushPlan {
        target: target.clone(),
        version,
        before: state.version,
        base,
        resumes,
        is_done,
        creates_table: found.table.is_none(),
        splits,
        families,
        notes,
        schema,
        state,
        progress,
        snapshot,
        before_snapshot,
    })
}

/// The version to push, what it is compared with, and whether a push goes on. The error is a version that is needed and gone.
fn decide(
    newest: &Snapshot,
    state: &PushState,
    choices: &PushChoices,
    is_there: bool,
    notes: &mut Vec<String>,
) -> Result<(u64, PushBase, bool), u64> {
    let (number, uuid) = (newest.version().number, newest.version().table_uuid.as_str());

    if choices.compare {
        return Ok((number, if is_there { PushBase::Target } else { PushBase::Nothing }, false));
    }
    if let Some(since) = choices.changed_since {
        return if is_kept(newest, since) { Ok((number, PushBase::Version(since), false)) } else { Err(since) };
    }

    if !is_there {
        if state.version > 0 || state.running.is_some() {
            notes.push("the table was pushed before and is gone: all of it is pushed again".to_owned());
        }
        return Ok((number, PushBase::Nothing, false));
    }

    let was_other = !state.table_uuid.is_empty() && state.table_uuid != uuid;
    if was_other {
        notes.push("another table of this name was pushed before: its cells are compared".to_owned());
        return Ok((number, PushBase::Target, false));
    }

    if let Some(running) = &state.running {
        let base_is_kept = match running.base {
            PushBase::Version(base) => is_kept(newest, base),
            PushBase::Nothing | PushBase::Target => true,
        };
        if is_kept(newest, running.version) && base_is_kept {
            notes.push(format!("the push of version {} did not end: it goes on", running.version));
            return Ok((running.version, running.base, true));
        }
        notes.push(format!(
            "the push of version {} did not end, and a version that it needs is gone: cells are compared",
            running.version
        ));
        return Ok((number, PushBase::Target, false));
    }

    match state.version {
        0 => Ok((number, PushBase::Nothing, false)),
        before if is_kept(newest, before) => Ok((number, PushBase::Version(before), false)),
        before => Err(before),
    }
}

/// Whether a version of the table of `newest` was not vacuumed.
fn is_kept(newest: &Snapshot, version: u64) -> bool {
    version == newest.version().number || newest.table().version(version).is_ok()
}

fn snapshot_of(store: &Store, table: &str, number: u64) -> Result<Snapshot> {
    let table = store.table(table);
    let version = table.version(number)?;
    Ok(Snapshot::new(table, Arc::new(version))?)
}

fn gone(error: BigtableError, version: u64, target: &TableName) -> BigtableError {
    match error {
        BigtableError::Store(StoreError::Vacuumed { table, .. } | StoreError::NoVersion { table, .. }) => {
            BigtableError::VersionGone { table, version, target: target.to_string() }
        }
        other => other,
    }
}

/// The families to create, with a description.
fn missing(
    schema: &TableSchema,
    target: &TableName,
    table: Option<&Table>,
    may_create: bool,
    notes: &mut Vec<String>,
) -> Result<Vec<(String, String)>> {
    let Some(table) = table else {
        let families = schema.families.iter().map(|(name, family)| (name.clone(), family.to_string()));
        return match may_create {
            true => Ok(families.collect()),
            false => Err(BigtableError::NoTarget { target: target.to_string() }),
        };
    };
    if !schema.fits_timestamps(table) {
        return Err(BigtableError::Granularity { target: target.to_string() });
    }

    let mut out = Vec::new();
    for (family, difference) in schema.differences(table) {
        match difference {
            FamilyDifference::Missing if may_create => {
                let description = schema.families.get(&family).map(ToString::to_string).unwrap_or_default();
                out.push((family, description));
            }
            FamilyDifference::Missing => {
                return Err(BigtableError::NoTargetFamily { target: target.to_string(), family });
            }
            FamilyDifference::Kind { there } => {
                let here = schema.families.get(&family).map(|family| family.kind.word()).unwrap_or_default();
                return Err(BigtableError::FamilyKind { target: target.to_string(), family, there, here });
            }
            FamilyDifference::Rule => {
                let there = table.column_families.get(&family).and_then(|family| rule_text(family.gc_rule.as_ref()?));
                let there = there.unwrap_or_else(|| "never".to_owned());
                let here = schema.families.get(&family).and_then(|family| family.gc.as_deref()).unwrap_or("never");
                notes
                    .push(format!("family {family} has the rule `{there}` there and `{here}` here: it stays as it is"));
            }
        }
    }
    Ok(out)
}

/// The SSTs of two versions in which cells may differ, where rows lie in one window each; `None` for all.
pub(crate) fn changed_ssts(new: &Snapshot, old: &Snapshot) -> Option<Arc<HashSet<String>>> {
    let (after, before) = (new.version(), old.version());
    let separate = new.layout().rows_lie_in_one_window() && old.layout().rows_lie_in_one_window();
    if !separate || after.table.layout != before.table.layout || after.tombstones != before.tombstones {
        return None;
    }

    let mut starts: HashSet<i64> = HashSet::new();
    for window in after.windows.iter().chain(&before.windows) {
        let shared = window.ssts.iter().filter_map(|sst| sst.multi_window.as_ref());
        starts.extend(shared.flat_map(|shared| shared.windows.iter().copied()).chain([window.start]));
    }

    let mut changed = HashSet::new();
    for start in starts {
        let (new, old) = (of_window(after, start), of_window(before, start));
        if new != old {
            // A file that one of them reads is read in both: it may hold rows of windows that are as they were.
            changed.extend(new.into_iter().chain(old));
        }
    }
    Some(Arc::new(changed))
}

/// Ids of the SSTs with rows of the window at `start`.
fn of_window(version: &tidetable_store::Version, start: i64) -> HashSet<String> {
    let mut ids = HashSet::new();
    for window in &version.windows {
        for sst in &window.ssts {
            let holds = match &sst.multi_window {
                Some(shared) => shared.windows.contains(&start),
                None => window.start == start,
            };
            if holds {
                ids.insert(sst.id.clone());
            }
        }
    }
    ids
}
