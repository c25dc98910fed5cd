//! The process to kill: takes the steps of a script, and reports them.

use std::fmt;
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
    /// `step:call:file:when`.
    pub name: String,
    /// How often it is passed first.
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

/// The task of a process.
#[derive(Debug, Clone)]
pub struct Task {
    /// Directory of the store.
    pub root: PathBuf,
    /// Number of the run, unique per process.
    pub run: u64,
    /// Seed of the script.
    pub seed: u64,
    /// The first step to take, and the first not to.
    pub steps: (u64, u64),
    /// Where to stop.
    pub place: Option<Place>,
}

impl Task {
    /// Command-line arguments of the task.
    pub fn args(&self) -> Vec<String> {
        let mut args = vec![self.root.display().to_string()];
        args.extend([self.run, self.seed, self.steps.0, self.steps.1].map(|number| number.to_string()));
        args.extend(self.place.as_ref().map(Place::to_string));
        args
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn parse(args: &[String]) -> Result<Self> {
        let number = |at: usize| args.get(at).and_then(|text| text.parse::<u64>().ok());
        let parsed = || Some((PathBuf::from(args.first()?), number(1)?, number(2)?, (number(3)?, number(4)?)));
        let (root, run, seed, steps) = parsed().ok_or_else(|| Finding::new("usage: ROOT RUN SEED FROM TO [PLACE]"))?;
        Ok(Self { root, run, seed, steps, place: args.get(5).map(|text| text.parse()).transpose()? })
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
        take(&world, self.seed, self.steps, |step| {
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
