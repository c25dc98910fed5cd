//! Windows that a load leaves as they are, because an input of theirs is gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tidetable_store::version::{Input, OwedWindow, Version, VersionEdit};

use crate::input::plan::InputPlan;

/// A window that must be rebuilt and cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWindow {
    /// Start of the window, microseconds since the epoch.
    pub start: i64,
    /// The inputs that owe it, by path, each with its rows that are not in it; 0 if it has none there any more, or if
    /// they are known only after reading it.
    pub inputs: Vec<(String, u64)>,
    /// The vanished inputs with rows in it, by sequence number.
    pub gone: Vec<String>,
    /// Whether a repair removed a damaged SST of it, so that cells are missing there.
    pub lost: bool,
}

/// The windows that inputs of `version` owe; which inputs are gone is not known.
pub fn owed_in(version: &Version) -> Vec<LeftWindow> {
    InputPlan::default().owed_after(version, &VersionEdit::default())
}

impl InputPlan {
    /// The windows that inputs owe once `edit` is applied to `base`, the version that the plan was made against.
    pub fn owed_after(&self, base: &Version, edit: &VersionEdit) -> Vec<LeftWindow> {
        let inputs = edit.inputs.iter().map(|input| input.path.as_str());
        let names = edit.names.iter().map(|name| name.path.as_str());
        let replaced: HashSet<&str> = inputs.chain(names).chain(edit.removed.iter().map(String::as_str)).collect();

        let inputs = base.inputs.iter().filter(|input| !replaced.contains(input.path.as_str())).chain(&edit.inputs);
        let names = base.names.iter().filter(|name| !replaced.contains(name.path.as_str())).chain(&edit.names);
        let mut owed = Owed::default();
        inputs.for_each(|input| owed.add(&input.path, &input.owed));
        names.for_each(|name| owed.add(&name.path, &name.owed));
        self.with_gone(owed)
    }

    /// The windows of `base` that a load by this plan will leave as they are, as far as that is known before reading.
    pub fn owed_ahead(&self, base: &Version) -> Vec<LeftWindow> {
        let stuck = self.stuck();
        if stuck.is_empty() {
            return Vec::new();
        }

        let mut owed = Owed::default();
        for old in self.changed.iter().map(|(_, old)| old).chain(&self.given_up) {
            for start in old.touches().filter(|start| stuck.contains(start)) {
                owed.add_rows(&old.path, start, 0);
            }
        }

        let changed: HashSet<&str> = self.changed.iter().map(|(_, old)| old.path.as_str()).collect();
        for input in base.inputs.iter().filter(|input| !changed.contains(input.path.as_str())) {
            owed.add(&input.path, &input.owed);
        }
        base.names.iter().for_each(|name| owed.add(&name.path, &name.owed));

        owed.by_window.retain(|start, _| stuck.contains(start));
        owed.lost.extend(base.lost_windows());
        self.with_gone(owed)
    }

    /// The vanished inputs to remove so that all of `windows` can be rebuilt, and all windows of these inputs.
    pub fn to_remove(&self, windows: &[LeftWindow]) -> Vec<String> {
        let mut affected: BTreeSet<i64> = windows.iter().map(|window| window.start).collect();
        let mut gone: Vec<&Input> = Vec::new();
        let mut rest: Vec<&Input> = self.vanished.iter().collect();
        loop {
            let (more, others): (Vec<&Input>, Vec<&Input>) =
                rest.into_iter().partition(|input| input.touches().any(|start| affected.contains(&start)));
            if more.is_empty() {
                break;
            }
            affected.extend(more.iter().flat_map(|input| input.touches()));
            gone.extend(more);
            rest = others;
        }

        gone.sort_by_key(|input| input.input_seqno);
        gone.into_iter().map(|input| input.path.clone()).collect()
    }

    /// Adds to windows that are owed the vanished inputs that stand in the way.
    fn with_gone(&self, owed: Owed) -> Vec<LeftWindow> {
        let mut vanished: Vec<&Input> = self.vanished.iter().collect();
        vanished.sort_by_key(|input| input.input_seqno);

        let mut windows = Vec::with_capacity(owed.by_window.len());
        for (start, inputs) in owed.by_window {
            let gone = vanished.iter().filter(|input| input.touches().any(|touched| touched == start));
            let gone = gone.map(|input| input.path.clone()).collect();
            let lost = owed.lost.contains(&start);
            windows.push(LeftWindow { start, inputs: inputs.into_iter().collect(), gone, lost });
        }
        windows
    }
}

/// The rows that inputs owe, by window and path.
#[derive(Default)]
struct Owed {
    by_window: BTreeMap<i64, BTreeMap<String, u64>>,
    /// Starts of the windows that lost an SST.
    lost: BTreeSet<i64>,
}

impl Owed {
    fn add(&mut self, path: &str, owed: &[OwedWindow]) {
        for owed in owed {
            self.add_rows(path, owed.start, owed.rows);
            if owed.lost {
                self.lost.insert(owed.start);
            }
        }
    }

    fn add_rows(&mut self, path: &str, start: i64, rows: u64) {
        self.by_window.entry(start).or_default().insert(path.to_owned(), rows);
    }
}
