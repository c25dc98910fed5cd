//! Windows that a load leaves as they are, because an input of theirs is gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tidetable_store::version::{Input, OwedWindow, Version, VersionEdit};

use crate::input::plan::InputPlan;

/// A window that must be rebuilt and cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftWindow {
    /// Its start, microseconds since the epoch.
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
        let mut owed = Owed::default();
        if stuck.is_empty() {
            return Vec::new();
        }
        for old in self.changed.iter().map(|(_, old)| old).chain(&self.given_up) {
            let windows: BTreeSet<i64> = old.touches().filter(|start| stuck.contains(start)).collect();
            windows.into_iter().for_each(|start| owed.add_rows(&old.path, start, 0));
        }
        let is_read = |path: &str| self.changed.iter().any(|(_, old)| old.path == path);
        for input in base.inputs.iter().filter(|input| !input.owed.is_empty() && !is_read(&input.path)) {
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
            let shares = |input: &&Input| input.touches().any(|start| affected.contains(&start));
            let (more, others): (Vec<&Input>, Vec<&Input>) = rest.into_iter().partition(shares);
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

    fn with_gone(&self, owed: Owed) -> Vec<LeftWindow> {
        let mut vanished: Vec<&Input> = self.vanished.iter().collect();
        vanished.sort_by_key(|input| input.input_seqno);
        let left = |(start, inputs): (i64, BTreeMap<String, u64>)| {
            let gone = vanished.iter().filter(|input| input.touches().any(|touched| touched == start));
            let gone = gone.map(|input| input.path.clone()).collect();
            LeftWindow { start, inputs: inputs.into_iter().collect(), gone, lost: owed.lost.contains(&start) }
        };
        owed.by_window.into_iter().map(left).collect()
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
