//! The process to kill: takes the steps of a script, and reports them.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidetable_blobs::LocalBlobs;

use super::said::{say, take};
use super::script::kind_of;
use crate::finding::{Finding, Result};
use crate::sim::{Stop, StopDisk};
use crate::world::World;

/// How long a process waits to be killed; then it exits, so that none outlives its parent.
const PATIENCE: Duration = Duration::from_secs(60);

/// A place where a process stops: kind of step, call, kind of file, before or after; and how often it is passed
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Kind of step, call, kind of file and when: `step:call:file:when`.
    pub name: String,
    /// How often it is passed first, before the process stops there.
    pub passes: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.name, self.passes)
    }
}

impl FromStr for Place {
    type Err = Finding;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once('+').and_then(|(name, passes)| Some((name.to_owned(), passes.parse().ok()?)));
        let (name, passes) = parsed.ok_or_else(|| Finding::new(format!("invalid place {text}")))?;
        Ok(Self { name, passes })
    }
}

/// The task of a process that may be killed, as its command line says it.
#[derive(Debug, Clone)]
pub struct Task {
    /// Directory of the store, which the process shares with those before it.
    pub root: PathBuf,
    /// Number of the run, unique per process, from which it makes its ids.
    pub run: u64,
    /// Seed of the script, and so of the kind of its table.
    pub seed: u64,
    /// Numbers of the steps to take, from 0; those before them were taken by earlier processes.
    pub steps: Range<u64>,
    /// The place to stop at, there to be killed; `None` to be killed by time or not at all.
    pub place: Option<Place>,
}

impl Task {
    /// Command-line arguments of the task, behind the word `child`.
    pub fn args(&self) -> Vec<String> {
        let mut args = vec![self.root.display().to_string()];
        args.extend([self.run, self.seed, self.steps.start, self.steps.end].map(|number| number.to_string()));
        args.extend(self.place.as_ref().map(Place::to_string));
        args
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn parse(args: &[String]) -> Result<Self> {
        let parsed = Self::parse_numbers(args).ok_or_else(|| Finding::new("usage: ROOT RUN SEED FROM TO [PLACE]"))?;
        Ok(Self { place: args.get(5).map(|text| text.parse()).transpose()?, ..parsed })
    }

    fn parse_numbers(args: &[String]) -> Option<Self> {
        let [root, run, seed, from, to, ..] = args else { return None };
        let steps = from.parse().ok()?..to.parse().ok()?;
        Some(Self { root: PathBuf::from(root), run: run.parse().ok()?, seed: seed.parse().ok()?, steps, place: None })
    }

    /// Takes the steps.
    ///
    /// # Errors
    /// Those of the store.
    pub fn run(&self) -> Result<()> {
        let here = Arc::new(Here { place: self.place.clone(), step: Mutex::new("start"), passed: AtomicU64::new(0) });
        let disk = StopDisk::new(Arc::clone(&here) as Arc<dyn Stop>);
        let blobs = LocalBlobs::on(Arc::new(disk), self.root.clone());
        let world = World::new(Arc::new(blobs), kind_of(self.seed), self.run)?;
        take(&world, self.seed, self.steps.clone(), |step| {
            *here.step.lock().unwrap_or_else(PoisonError::into_inner) = step;
        })
    }
}

#[derive(Debug)]
struct Here {
    place: Option<Place>,
    step: Mutex<&'static str>,
    passed: AtomicU64,
}

impl Stop for Here {
    fn reached(&self, call: &'static str, what: &'static str, when: &'static str) {
        let Some(place) = &self.place else { return };
        let step = *self.step.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("{step}:{call}:{what}:{when}");
        if name == place.name && self.passed.fetch_add(1, Ordering::SeqCst) == place.passes {
            // The parent kills this process now.
            let _ = say(&format!("at {name}"));
            std::thread::sleep(PATIENCE);
            std::process::exit(3);
        }
    }
}
