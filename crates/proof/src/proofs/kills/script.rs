//! The script of a seed, the same in every process.

use crate::event::Inputs;
use crate::random::Random;
use crate::step::{Kind, Script, Step};

/// The kind of table of a seed.
pub(in crate::proofs) fn kind_of(seed: u64) -> Kind {
    Kind::any(&mut Random::new(seed))
}

/// The steps of a seed and the inputs they leave, the same in every process.
#[derive(Debug)]
pub(in crate::proofs) struct Scripted {
    script: Script,
    /// What a load finds: the inputs of all steps so far.
    pub inputs: Inputs,
}

impl Scripted {
    /// The script of a seed, from its first step on.
    pub fn new(seed: u64) -> Self {
        Self { script: Script::new(kind_of(seed), Random::new(!seed), 40), inputs: Inputs::default() }
    }

    /// The next step; its input is added where a load finds it.
    pub fn offer(&mut self) -> Step {
        let step = self.script.next(self.inputs.len());
        match &step {
            Step::Load(events) => self.inputs.add(events.clone()),
            Step::Change(at, events) => self.inputs.change(*at, events.clone()),
            Step::Drop(_) | Step::Compact(_) | Step::Rebuild | Step::Vacuum(_) => {}
        }
        step
    }

    /// Logical time before the first version, microseconds since the epoch.
    pub fn begin(&self) -> i64 {
        crate::event::START + crate::event::DAY
    }
}
