//! Model of a table: its expected cells, computed in the simplest way.

use std::cmp::Reverse;

use tidetable_layout::KeyRange;
use tidetable_store::GcRule;
use tidetable_store::version::DeleteTarget;

use crate::cells::{CellKey, Cells, hides};
use crate::event::{DAY, Event, Inputs, START};
use crate::step::Step;

/// A map of cells, and the inputs and deletes they came from.
#[derive(Debug, Clone)]
pub struct Model {
    inputs: Inputs,
    /// Deletes, each with the number of inputs before it.
    drops: Vec<(usize, DeleteTarget)>,
    rule: Option<GcRule>,
    dated: bool,
    /// All cells, as if compactions removed none.
    stored: Cells,
    /// The cells that a read shows.
    shown: Cells,
    now: i64,
}

impl Model {
    /// An empty table, with dated keys or not, and with this rule for all families.
    pub fn new(dated: bool, rule: Option<GcRule>) -> Self {
        let (stored, shown) = (Cells::new(), Cells::new());
        Self { inputs: Inputs::default(), drops: Vec::new(), rule, dated, stored, shown, now: START + DAY }
    }

    /// Logical time of the last commit, microseconds since the epoch.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The inputs, with their present content.
    pub fn inputs(&self) -> &Inputs {
        &self.inputs
    }

    /// Adds an input, as a load of new rows finds it.
    pub fn load(&mut self, events: Vec<Event>) {
        put(&mut self.stored, self.dated, &events, |_| false);
        self.inputs.add(events);
        self.show();
    }

    /// Replaces the content of an input, as a changed file does: all cells are made anew.
    pub fn change(&mut self, at: usize, events: Vec<Event>) {
        self.inputs.change(at, events);
        self.stored.clear();
        for (at, events) in self.inputs.events().enumerate() {
            put(&mut self.stored, self.dated, events, |cell| {
                self.drops.iter().any(|(before, target)| at < *before && hides(target, cell))
            });
        }
        self.show();
    }

    /// Deletes a target, for all inputs so far: later ones may write the same cells.
    pub fn drop(&mut self, target: DeleteTarget) {
        self.stored.retain(|cell, _| !hides(&target, cell));
        self.drops.push((self.inputs.len(), target));
        self.show();
    }

    /// Whether a delete must be recorded: it hides visible cells, or was not made before for all these inputs.
    pub fn must_keep(&self, target: &DeleteTarget) -> bool {
        let is_known = self.drops.iter().any(|(before, known)| *before == self.inputs.len() && known == target);
        !is_known || self.shown.keys().any(|cell| hides(target, cell))
    }

    /// The same for a step, if it is a delete.
    pub fn must_keep_by(&self, step: &Step) -> bool {
        if let Step::Drop(target) = step { self.must_keep(target) } else { false }
    }

    /// Compacts at a later logical time, by which rules of age are applied.
    pub fn compact(&mut self, now: i64) {
        self.now = now;
        self.show();
    }

    /// The cells that a read shows, with garbage-collection rules applied.
    pub fn cells(&self) -> &Cells {
        &self.shown
    }

    /// The cells that a read of a key range shows.
    pub fn cells_in(&self, keys: &KeyRange) -> Cells {
        let start = String::from_utf8_lossy(&keys.start).into_owned();
        let first = (start, String::new(), String::new(), Reverse(i64::MAX));
        let cells = self.shown.range(first..).take_while(|(cell, _)| keys.contains(cell.0.as_bytes()));
        cells.map(|(cell, value)| (cell.clone(), value.clone())).collect()
    }

    fn show(&mut self) {
        self.shown = shown(&self.stored, self.rule.as_ref(), self.now);
    }
}

/// Applies the rule of all families to cells at logical time `now`.
pub(crate) fn shown(stored: &Cells, rule: Option<&GcRule>, now: i64) -> Cells {
    let Some(rule) = rule else { return stored.clone() };
    let mut shown = Cells::new();
    let mut column: Option<(&str, &str, &str)> = None;
    let mut newer = 0;
    for (cell, value) in stored {
        let own = Some((cell.0.as_str(), cell.1.as_str(), cell.2.as_str()));
        newer = if own == column { newer + 1 } else { 0 };
        column = own;
        if !rule.drops(newer, cell.3.0, now) {
            shown.insert(cell.clone(), value.clone());
        }
    }
    shown
}

/// The row key of an event: its id, and its day if keys are dated.
pub fn key(dated: bool, event: &Event) -> String {
    let day = (event.time - START) / DAY + 1;
    if dated { format!("{:05}#201801{day:02}", event.id) } else { format!("{:05}", event.id) }
}

/// Writes the cells of `events`, replacing equal ones.
pub(crate) fn put(cells: &mut Cells, dated: bool, events: &[Event], dropped: impl Fn(&CellKey) -> bool) {
    for event in events {
        let key = key(dated, event);
        let mut cell = |family: &str, qualifier: &str, time: i64, value: &dyn Fn(&[u8]) -> Vec<u8>| {
            let cell = (key.clone(), family.to_owned(), qualifier.to_owned(), Reverse(time));
            if !dropped(&cell) {
                let held = cells.entry(cell).or_default();
                *held = value(held);
            }
        };
        cell("F", "ID", 0, &|_| event.id.to_string().into_bytes());
        cell("F", "v", event.time, &|_| event.v.to_string().into_bytes());
        cell("F", &format!("q-q{}", event.q), event.time, &|_| event.v.to_string().into_bytes());
        if let Some(w) = event.w {
            cell("G", "w", event.time, &|_| w.to_string().into_bytes());
        }
        cell("S", "n", event.time, &|held| {
            let sum = <[u8; 8]>::try_from(held).map_or(0, i64::from_be_bytes) + event.n;
            sum.to_be_bytes().to_vec()
        });
    }
}
