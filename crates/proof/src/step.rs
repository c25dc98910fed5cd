//! Steps of a table, and random scripts of them.

use tidetable_store::version::DeleteTarget;

use crate::event::{Event, HOUR, START, Spread};
use crate::random::Random;

/// A step of a table, as a job or an operator takes it.
#[derive(Debug, Clone)]
pub enum Step {
    /// Adds an input with these rows.
    Load(Vec<Event>),
    /// An input, by its number from 0, whose content changes to these rows.
    Change(usize, Vec<Event>),
    /// A delete, which hides cells of all inputs so far.
    Drop(DeleteTarget),
    /// A compaction, this many hours after the last step.
    Compact(i64),
    /// A rebuild of the whole table from its inputs.
    Rebuild,
    /// A vacuum that keeps this many versions.
    Vacuum(u64),
}

impl Step {
    /// Its name in figures and messages, a plural.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Load(_) => "loads",
            Self::Change(..) => "changed inputs",
            Self::Drop(_) => "drops",
            Self::Compact(_) => "compactions",
            Self::Rebuild => "rebuilds",
            Self::Vacuum(_) => "vacuums",
        }
    }
}

/// The kind of a table: its keys and its rule.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Keys contain the day, so that each row is in one window.
    pub dated: bool,
    /// Garbage-collection rule of all families; empty for none.
    pub rule: &'static str,
    /// Spread of the rows of all inputs.
    pub spread: Spread,
}

const RULES: [&str; 5] =
    ["", "maxversions=1", "maxage=2d", "maxversions=1 or maxage=1d", "maxversions=1 and maxage=1d"];

impl Kind {
    /// A random kind, with rows that often coincide: the fewer there are, the more steps meet in one.
    pub fn any(random: &mut Random) -> Self {
        let rule = random.pick(&RULES).unwrap_or_default();
        Self { dated: random.one_in(2), rule, spread: Spread { ids: 6, days: 4, hours: 8 } }
    }

    /// A version removed by compaction because of a newer one does not come back when that is deleted, so single
    /// versions are deleted only without such rules.
    fn may_drop_versions(&self) -> bool {
        !self.rule.contains("maxversions")
    }
}

/// Generates the steps of a run, the same for the same seed.
#[derive(Debug, Clone)]
pub struct Script {
    kind: Kind,
    random: Random,
    values: u64,
    most: u64,
}

impl Script {
    /// A script for a table of this kind, with up to `most` rows per input.
    pub fn new(kind: Kind, random: Random, most: u64) -> Self {
        Self { kind, random, values: 0, most }
    }

    /// The next step, for a table of `inputs` inputs.
    pub fn next(&mut self, inputs: usize) -> Step {
        match self.random.below(100) {
            _ if inputs == 0 => Step::Load(self.events()),
            0..40 => Step::Load(self.events()),
            40..55 => Step::Change(self.random.place(inputs), self.events()),
            55..72 => Step::Drop(self.target()),
            72..90 => Step::Compact(self.random.below(30) as i64),
            90..97 => Step::Vacuum(1 + self.random.below(4)),
            _ => Step::Rebuild,
        }
    }

    /// Random rows for an input, at least one; no value occurs twice in a run.
    pub fn events(&mut self) -> Vec<Event> {
        let rows = 1 + self.random.below(self.most);
        let mut events = Vec::new();
        for _ in 0..rows {
            self.values += 1;
            events.push(Event::any(&mut self.random, self.kind.spread, self.values));
        }
        events
    }

    /// A random delete of any kind, which may match nothing.
    pub fn target(&mut self) -> DeleteTarget {
        let (id, day) = (self.random.below(self.kind.spread.ids), 1 + self.random.below(self.kind.spread.days));
        let key = if self.kind.dated { format!("{id:05}#201801{day:02}") } else { format!("{id:05}") }.into_bytes();
        let family = self.random.pick(&["F", "G", "S"]).unwrap_or_default().to_owned();

        match self.random.below(4) {
            0 => {
                // Matches a whole id, a whole month of it, or nothing.
                let prefix = [format!("{id:05}"), format!("{id:05}#2018"), "zz".to_owned()];
                DeleteTarget::Prefix { prefix: prefix[self.random.place(3)].clone().into_bytes() }
            }
            1 => DeleteTarget::Row { key },
            2 => DeleteTarget::Family { key, family },
            _ => {
                let qualifier = self.random.pick(&["ID", "v", "q-q0", "q-q1", "w", "n"]).unwrap_or_default();
                let from = self.random.below(60) as i64;
                let from = if from < 3 { 0 } else { START + from * HOUR };
                let times = from..from + (1 + self.random.below(40) as i64) * HOUR;
                let times = (self.kind.may_drop_versions() && self.random.one_in(2)).then_some(times);
                DeleteTarget::Column { key, family, qualifier: qualifier.as_bytes().to_vec(), times }
            }
        }
    }
}
