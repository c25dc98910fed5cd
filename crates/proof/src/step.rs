//! What can happen to a table, and random runs of it.

use tidetable_store::DeleteTarget;

use crate::event::{Event, HOUR, START, Spread};
use crate::random::Random;

/// Something that happens to a table.
#[derive(Debug, Clone)]
pub enum Step {
    /// A new input comes.
    Load(Vec<Event>),
    /// An input gets another content.
    Change(usize, Vec<Event>),
    /// Something is deleted.
    Drop(DeleteTarget),
    /// A compaction, so many hours after the last step.
    Compact(i64),
    /// The table is built anew from its inputs.
    Rebuild,
    /// What is not needed for the newest so many versions goes.
    Vacuum(u64),
}

impl Step {
    /// What it is, in figures.
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

/// The kind of a table: what its keys hold, and its rule.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Keys have the day in them, so that a row keeps to its window.
    pub dated: bool,
    /// Rule of all families; empty for none.
    pub rule: &'static str,
    /// How far the rows spread.
    pub spread: Spread,
}

const RULES: [&str; 5] =
    ["", "maxversions=1", "maxage=2d", "maxversions=1 or maxage=1d", "maxversions=1 and maxage=1d"];

impl Kind {
    /// Any kind, with rows that meet often.
    pub fn any(random: &mut Random) -> Self {
        let rule = random.pick(&RULES).unwrap_or_default();
        Self { dated: random.one_in(2), rule, spread: Spread { ids: 6, days: 4, hours: 8 } }
    }

    /// A version that a compaction took out for a newer one does not come back when that is dropped, so single
    /// versions are dropped only where none is taken out.
    fn may_drop_versions(&self) -> bool {
        !self.rule.contains("maxversions")
    }
}

/// Makes the steps of a run.
#[derive(Debug, Clone)]
pub struct Script {
    kind: Kind,
    random: Random,
    values: u64,
    most: u64,
}

impl Script {
    /// Steps for a table of this kind, with up to `most` rows an input.
    pub fn new(kind: Kind, random: Random, most: u64) -> Self {
        Self { kind, random, values: 0, most }
    }

    /// The next step, for a table of so many inputs.
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

    /// Rows for an input.
    pub fn events(&mut self) -> Vec<Event> {
        let rows = 1 + self.random.below(self.most);
        let mut event = || {
            self.values += 1;
            Event::any(&mut self.random, self.kind.spread, self.values)
        };
        (0..rows).map(|_| event()).collect()
    }

    /// Something to delete, which may not be there.
    pub fn target(&mut self) -> DeleteTarget {
        let (id, day) = (self.random.below(self.kind.spread.ids), 1 + self.random.below(self.kind.spread.days));
        let key = if self.kind.dated { format!("{id:05}#201801{day:02}") } else { format!("{id:05}") }.into_bytes();
        let family = self.random.pick(&["F", "G", "S"]).unwrap_or_default().to_owned();
        match self.random.below(4) {
            0 => {
                // Of a whole id, of a whole month of it, or of nothing.
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
