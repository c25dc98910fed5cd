//! Kills: processes that load, delete and compact are killed at random times and at named places, and the table is
//! checked.

mod child;
mod said;
mod script;
mod table;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tidetable_blobs::LocalBlobs;

pub use child::{Place, Task};
pub(super) use said::{Said, done, take};
pub(super) use script::kind_of;
pub(super) use table::Table;

use super::Figures;
use crate::finding::{Finding, Result};
use crate::random::Random;
use crate::sim::places;

/// Kills after which a new table is begun.
const KILLS_OF_A_TABLE: u64 = 30;
/// Steps a process takes if it is not killed.
const STEPS: u64 = 8;
/// Greatest delay from the begin of a step to a timed kill, microseconds.
const DELAY: u64 = 25_000;
/// Steps in which processes stop at places.
const WORK: [&str; 6] = ["loads", "changed inputs", "drops", "compactions", "rebuilds", "vacuums"];

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
        let root = folder.path().join("store");
        let mut table = Table::new(Arc::new(LocalBlobs::new(root.clone())), seed)?;
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

            let steps = table.steps..table.steps + STEPS;
            let task = Task { root: root.clone(), run, seed, steps, place };
            let ended = self::run(&mut table, prove, &task, &mut random)
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

/// How a process ended, if it did not fail.
enum Ended {
    At(String),
    ByTime,
    ByItself,
}

/// Runs a process that may be killed, and checks the table after it.
fn run(table: &mut Table, prove: &Path, task: &Task, random: &mut Random) -> Result<Ended> {
    let mut process = Command::new(prove).arg("child").args(task.args()).stdout(Stdio::piped()).spawn()?;
    let out = process.stdout.take().map(BufReader::new);
    let mut ended = Ended::ByItself;
    let (mut done, kill_in) = (Vec::new(), random.below(STEPS));
    for line in out.into_iter().flat_map(BufRead::lines) {
        let line = line?;
        if let Some(said) = said::done(&line)? {
            done.push(said);
        } else if let Some(name) = line.strip_prefix("at ") {
            ended = Ended::At(name.to_owned());
            process.kill()?;
        } else if task.place.is_none() && line == format!("begin {}", task.steps.start + kill_in) {
            std::thread::sleep(Duration::from_micros(random.below(DELAY)));
            ended = Ended::ByTime;
            process.kill()?;
        }
    }

    let status = process.wait()?;
    if matches!(ended, Ended::ByItself) && !status.success() {
        return Err(Finding::new(format!("a process failed after {} steps: {status}", done.len())));
    }
    table.check(task.run, &done)?;
    Ok(ended)
}
