//! Manifest delta: the difference of a version to the version before.
//!
//! It records what differs, not what was done: readers need not know loads and compactions.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use crate::version::Tombstone;
use crate::version::cow_list::CowList;
use crate::version::inputs::{InputName, Named, put_named};
use crate::version::{Input, Sst, TableIdentity, Version, WindowState};

/// The difference of a version to the version before.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ManifestDelta {
    /// Number of the resulting version.
    pub(crate) number: u64,
    /// Checksum of the manifest of the version before.
    pub(crate) before: String,
    commit: String,
    #[serde(rename = "born")]
    table_uuid: String,
    now: i64,
    #[serde(default, rename = "collected", skip_serializing_if = "Option::is_none")]
    gc_watermark: Option<i64>,
    #[serde(default, rename = "vacuumed", skip_serializing_if = "Option::is_none")]
    vacuum_watermark: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    table: Option<TableIdentity>,
    /// Paths of removed inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs_gone: Vec<String>,
    /// New and changed inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inputs: Vec<Input>,
    /// Paths of removed names without rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names_gone: Vec<String>,
    /// New and changed names without rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<InputName>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows_gone: Vec<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    windows: Vec<WindowDelta>,
    /// Number of tombstones that stay, from the first.
    #[serde(rename = "drops_kept")]
    tombstones_kept: usize,
    /// New tombstones after them.
    #[serde(default, rename = "drops", skip_serializing_if = "Vec::is_empty")]
    tombstones: Vec<Tombstone>,
}

/// Changes of a window; a missing window counts as empty.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct WindowDelta {
    start: i64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    days: BTreeMap<i32, u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    days_gone: Vec<i32>,
    /// Index of the first removed SST.
    at: usize,
    /// Ids of the removed SSTs, which are consecutive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    gone: Vec<String>,
    /// The SSTs that replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ssts: Vec<Sst>,
}

impl ManifestDelta {
    /// Whether only the vacuum cutoff changes.
    pub fn changes_nothing(&self) -> bool {
        let inputs = self.inputs_gone.is_empty() && self.inputs.is_empty();
        let windows = self.windows_gone.is_empty() && self.windows.is_empty();
        self.table.is_none() && inputs && windows && self.tombstones.is_empty()
    }

    /// The delta from `before`, whose manifest has the checksum `manifest`, to `next`.
    pub(crate) fn between(before: &Version, manifest: &str, next: &Version) -> Self {
        let Version {
            number,
            commit,
            table_uuid,
            now,
            table,
            inputs,
            names,
            windows,
            tombstones,
            gc_watermark,
            vacuum_watermark,
            origin: _,
        } = next;
        let (inputs_gone, inputs) = named_changes(&before.inputs, inputs);
        let (names_gone, names) = named_changes(&before.names, names);
        let (windows_gone, windows) = window_changes(&before.windows, windows);
        let tombstones_kept = before.tombstones.iter().zip(tombstones).take_while(|(old, new)| old == new).count();

        Self {
            number: *number,
            before: manifest.to_owned(),
            commit: commit.clone(),
            table_uuid: table_uuid.clone(),
            now: *now,
            gc_watermark: *gc_watermark,
            vacuum_watermark: *vacuum_watermark,
            table: (before.table != *table).then(|| table.clone()),
            inputs_gone,
            inputs,
            names_gone,
            names,
            windows_gone,
            windows,
            tombstones_kept,
            tombstones: tombstones[tombstones_kept..].to_vec(),
        }
    }

    /// Id of the commit.
    pub(crate) fn commit(&self) -> &str {
        &self.commit
    }

    /// Logical time of the commit.
    pub(crate) fn now(&self) -> i64 {
        self.now
    }

    /// Applies the delta to `version`.
    ///
    /// # Errors
    /// The reason why it does not apply.
    pub(crate) fn apply(self, mut version: Version) -> Result<Version, String> {
        if version.number.checked_add(1) != Some(self.number) {
            return Err(format!("it is version {}, and comes after version {}", self.number, version.number));
        }

        version.number = self.number;
        version.commit = self.commit;
        version.table_uuid = self.table_uuid;
        version.now = self.now;
        version.gc_watermark = self.gc_watermark;
        version.vacuum_watermark = self.vacuum_watermark;
        if let Some(table) = self.table {
            version.table = table;
        }

        put_named(&mut version.inputs, &self.inputs_gone, self.inputs);
        put_named(&mut version.names, &self.names_gone, self.names);
        version.windows.retain(|window| !self.windows_gone.contains(&window.start));
        for delta in self.windows {
            let start = delta.start;
            delta.apply(version.window(start))?;
        }

        if self.tombstones_kept > version.tombstones.len() {
            return Err(format!("it keeps {} tombstones of {}", self.tombstones_kept, version.tombstones.len()));
        }
        version.tombstones.truncate(self.tombstones_kept);
        version.tombstones.extend(self.tombstones);
        Ok(version)
    }
}

/// The paths of the items that `next` no longer has, and the items that are new or changed.
fn named_changes<T: Named + Clone + PartialEq>(before: &CowList<T>, next: &CowList<T>) -> (Vec<String>, Vec<T>) {
    let start = next.shared_start(before);
    let old: HashMap<&str, &T> = before.iter().skip(start).map(|item| (item.path(), item)).collect();
    let there: HashSet<&str> = next.iter().skip(start).map(Named::path).collect();
    let gone = before.iter().skip(start).filter(|item| !there.contains(item.path()));
    let changed = next.iter().skip(start).filter(|item| old.get(item.path()) != Some(item));
    (gone.map(|item| item.path().to_owned()).collect(), changed.cloned().collect())
}

/// The starts of the windows that `next` no longer has, and the changes of the others.
fn window_changes(before: &CowList<WindowState>, next: &CowList<WindowState>) -> (Vec<i64>, Vec<WindowDelta>) {
    let (mut gone, mut deltas) = (Vec::new(), Vec::new());
    let mut old = 0;
    for (index, window) in next.iter().enumerate() {
        while old < before.len() && before[old].start < window.start {
            gone.push(before[old].start);
            old += 1;
        }
        if old < before.len() && before[old].start == window.start {
            if !next.shares(index, before, old) && before[old] != *window {
                deltas.push(WindowDelta::between(&before[old], window));
            }
            old += 1;
        } else {
            deltas.push(WindowDelta::between(&WindowState::new(window.start), window));
        }
    }
    gone.extend(before.iter().skip(old).map(|window| window.start));

    (gone, deltas)
}

impl WindowDelta {
    fn between(before: &WindowState, next: &WindowState) -> Self {
        let WindowState { start, days, ssts } = next;
        let at = before.ssts.iter().zip(ssts).take_while(|(old, new)| old == new).count();
        let (old, new) = (&before.ssts[at..], &ssts[at..]);
        let kept = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
        let mut changed_days = days.clone();
        changed_days.retain(|day, version| before.days.get(day) != Some(version));

        Self {
            start: *start,
            days: changed_days,
            days_gone: before.days.keys().filter(|day| !days.contains_key(day)).copied().collect(),
            at,
            gone: old[..old.len() - kept].iter().map(|sst| sst.id.clone()).collect(),
            ssts: new[..new.len() - kept].to_vec(),
        }
    }

    fn apply(self, window: &mut WindowState) -> Result<(), String> {
        let end = self.at.checked_add(self.gone.len()).filter(|end| *end <= window.ssts.len());
        let replaced = end.and_then(|end| window.ssts.get(self.at..end));
        let is_same = replaced.is_some_and(|replaced| replaced.iter().map(|sst| &sst.id).eq(&self.gone));
        let Some(end) = end.filter(|_| is_same) else {
            return Err(format!("the SSTs that it replaces in the window at {} us differ", self.start));
        };

        window.ssts.splice(self.at..end, self.ssts);
        window.days.retain(|day, _| !self.days_gone.contains(day));
        window.days.extend(self.days);
        Ok(())
    }
}
