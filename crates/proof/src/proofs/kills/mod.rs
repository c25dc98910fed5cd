//! Kills: processes that load, delete and compact are killed at random times and at named places, and the table is
//! checked.

mod child;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidetable_store::LocalBlobs;

pub use child::{Place, Task};

use super::Figures;
use super::kept::{Shown, tidy, whole};
use crate::cells::same;
use crate::event::Inputs;
use crate::finding::{Finding, Result};
use crate::model::Model;
use crate::random::Random;
use crate::sim::places;
use crate::step::{Kind, Script, Step};
use crate::world::{Done, World, offer, tell};

/// Kills after which a new table is begun.
const KILLS_OF_A_TABLE: u64 = 30;
/// Steps a process takes if it is not killed.
const STEPS: u64 = 8;
/// Greatest delay from the begin of a step to a timed kill, microseconds.
const DELAY: u64 = 25_000;
/// Steps in which processes stop at places.
const WORK: [&str; 6] = ["loads", "changed inputs", "drops", "compactions", "rebuilds", "vacuums"];

/// The kind of table of a seed.
fn kind_of(seed: u64) -> Kind {
    Kind::any(&mut Random::new(seed))
}

/// The steps of a seed and the inputs they leave, the same in every process.
#[derive(Debug)]
struct Scripted {
    script: Script,
    inputs: Inputs,
}

impl Scripted {
    fn new(seed: u64) -> Self {
        Self { script: Script::new(kind_of(seed), Random::new(!seed), 40), inputs: Inputs::default() }
    }

    /// The next step; its input is added where a load finds it.
    fn offer(&mut self) -> Step {
        let step = self.script.next(self.inputs.len());
        match &step {
            Step::Load(events) => self.inputs.add(events.clone()),
            Step::Change(at, events) => self.inputs.change(*at, events.clone()),
            Step::Drop(_) | Step::Compact(_) | Step::Rebuild | Step::Vacuum(_) => {}
        }
        step
    }

    /// Logical time before the first version.
    fn begin(&self) -> i64 {
        crate::event::START + crate::event::DAY
    }
}

/// Makes `kills` kills of processes of the command `prove`.
///
/// # Errors
/// A kill after which the table does not match its commits.
pub fn prove(prove: &Path, first: u64, kills: u64) -> Result<Figures> {
    let mut random = Random::new(first);
    let mut figures = Figures::default();
    let mut names: BTreeMap<String, u64> = BTreeMap::new();
    let mut tried: BTreeMap<String, u64> = BTreeMap::new();
    let mut run = 0;
    let mut seed = first;
    while figures.get("kills") < kills {
        let folder = tempfile::tempdir()?;
        let mut table = Table::new(folder.path().join("store"), seed)?;
        let most = (figures.get("kills") + KILLS_OF_A_TABLE).min(kills);
        // Gives a table up whose processes mostly end by themselves.
        for _ in 0..2 * KILLS_OF_A_TABLE {
            if figures.get("kills") >= most {
                break;
            }
            run += 1;
            let place = (run % 2 == 0).then(|| next_place(&tried, &names, &mut random));
            if let Some(place) = &place {
                *tried.entry(place.name.clone()).or_default() += 1;
            }
            let ended = table
                .run(prove, run, place, &mut random)
                .map_err(|found| found.at(format_args!("seed {seed}, run {run}")))?;
            let part = match &ended {
                Ended::At(name) => {
                    *names.entry(name.clone()).or_default() += 1;
                    "kills at a place"
                }
                Ended::ByTime => "kills by time",
                Ended::ByItself => "runs that ended by themselves",
            };
            let killed = u64::from(!matches!(ended, Ended::ByItself));
            figures.add(&Figures(vec![("kills", killed), (part, 1)]));
        }
        table.finish()?;
        figures.add(&Figures(vec![("tables", 1), ("commits", table.version)]));
        seed += 1;
    }
    figures.add(&Figures(vec![("different places", names.len() as u64)]));
    Ok(figures)
}

/// Tries after which a place that was never reached is given up: a rebuild creates no directory.
const TRIES: u64 = 2;

/// A random one of the places tried least often so far.
fn next_place(tried: &BTreeMap<String, u64>, met: &BTreeMap<String, u64>, random: &mut Random) -> Place {
    let mut all: Vec<(u64, u64, String)> = Vec::new();
    for step in WORK {
        for (call, what, when) in places() {
            let name = format!("{step}:{call}:{what}:{when}");
            let tries = tried.get(&name).copied().unwrap_or(0);
            if tries < TRIES || met.contains_key(&name) {
                all.push((tries, random.number(), name));
            }
        }
    }
    all.sort();
    let least = random.place(all.len() / 2);
    let name = all.swap_remove(least).2;
    let passes = if met.contains_key(&name) { random.below(3) } else { 0 };
    Place { name, passes }
}

/// How a process ended.
enum Ended {
    At(String),
    ByTime,
    ByItself,
}

/// A table whose processes are killed, with its model.
struct Table {
    root: PathBuf,
    seed: u64,
    model: Model,
    /// Steps done.
    steps: u64,
    version: u64,
    shown: Shown,
}

impl Table {
    fn new(root: PathBuf, seed: u64) -> Result<Self> {
        let model = World::model(kind_of(seed))?;
        Ok(Self { root, seed, model, steps: 0, version: 0, shown: Shown::default() })
    }

    fn run(&mut self, prove: &Path, run: u64, place: Option<Place>, random: &mut Random) -> Result<Ended> {
        let by_time = place.is_none();
        let (root, seed, steps) = (self.root.clone(), self.seed, (self.steps, self.steps + STEPS));
        let task = Task { root, run, seed, steps, place };
        let mut process = Command::new(prove).arg("child").args(task.args()).stdout(Stdio::piped()).spawn()?;
        let out = process.stdout.take().map(BufReader::new);
        let mut ended = Ended::ByItself;
        let (mut done, kill_in) = (Vec::new(), random.below(STEPS));
        for line in out.into_iter().flat_map(BufRead::lines) {
            let line = line?;
            if let Some(step) = line.strip_prefix("ok ") {
                let mut said = step.split(' ').skip(1);
                let version = said.next().and_then(|version| version.parse().ok());
                let now = said.next().and_then(|now| now.parse().ok());
                done.push(version.zip(now).ok_or_else(|| Finding::new(format!("a process said {line}")))?);
            } else if let Some(name) = line.strip_prefix("at ") {
                ended = Ended::At(name.to_owned());
                process.kill()?;
            } else if by_time && line == format!("begin {}", task.steps.0 + kill_in) {
                std::thread::sleep(Duration::from_micros(random.below(DELAY)));
                ended = Ended::ByTime;
                process.kill()?;
            }
        }
        let status = process.wait()?;
        if matches!(ended, Ended::ByItself) && !status.success() {
            return Err(Finding::new(format!("a process failed after {} steps: {status}", done.len())));
        }
        self.check(run, &done)?;
        Ok(ended)
    }

    /// Checks the table after a process that reported the version and logical time after each step; one more step may
    /// have committed.
    fn check(&mut self, run: u64, done: &[(u64, i64)]) -> Result<()> {
        let world = World::new(Arc::new(LocalBlobs::new(self.root.clone())), kind_of(self.seed), u64::MAX - run)?;
        let found = world.table().latest_number()?;
        let mut script = Scripted::new(self.seed);
        for _ in 0..self.steps {
            script.offer();
        }
        let said = done.last().map_or(self.version, |(version, _)| *version);
        // Acknowledged commits must exist, and at most one more.
        if found != said && found != said + 1 {
            return Err(Finding::new(format!("version {said} was committed, version {found} is there")));
        }
        let unsaid = if found > said { Some((found, world.table().version(found)?.now)) } else { None };
        let mut kept = u64::MAX;
        for (version, now) in done.iter().copied().chain(unsaid) {
            let step = script.offer();
            offer(&mut self.model, &step);
            if let Step::Vacuum(versions) = step {
                kept = kept.min(versions);
            }
            let outcome = if version > self.version { Done::Committed(version) } else { Done::Nothing };
            tell(&mut self.model, &step, outcome, now);
            self.shown.put(version, self.model.cells());
            self.version = version;
            self.steps += 1;
        }
        same(&format!("version {found} after {} steps", self.steps), &world.cells()?, self.model.cells())?;
        if found == 0 {
            return Ok(());
        }
        // The interrupted step may be a vacuum.
        if let Step::Vacuum(versions) = script.offer() {
            kept = kept.min(versions);
        }
        self.shown.vacuumed(world.table(), kept)?;
        whole(world.table(), true)?;
        let numbers = self.shown.numbers();
        numbers.iter().rev().take(4).try_for_each(|number| self.shown.check(world.table(), *number))
    }

    /// A vacuum removes what killed processes left.
    fn finish(&self) -> Result<()> {
        let world = World::new(Arc::new(LocalBlobs::new(self.root.clone())), kind_of(self.seed), u64::MAX / 2)?;
        world.vacuum(2, Some(i64::MAX))?;
        if self.version > 0 {
            tidy(world.table())?;
            whole(world.table(), true)?;
            same("after a vacuum", &world.cells()?, self.model.cells())?;
        }
        Ok(())
    }
}
