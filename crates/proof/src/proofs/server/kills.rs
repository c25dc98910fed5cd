//! The client killed at every request: before the server executes it, and after, before the reply.

use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use object_store::parse_url_opts;
use tidetable_blobs::BucketBlobs;
use tidetable_bucket_server::{Arrival, Fault, Watch};
use tokio::runtime::Builder;

use super::place::{BUCKET, Place, each_place};
use crate::finding::{Finding, Result};
use crate::proofs::Figures;
use crate::proofs::kills::{Said, Table, done, kind_of, take};
use crate::world::World;

/// The task of a process: steps in a bucket, which the environment says how to reach.
#[derive(Debug, Clone)]
pub struct Task {
    /// URL of the root in the bucket of the server.
    url: String,
    /// Number of the run, unique per process, from which it makes its ids.
    run: u64,
    /// Seed of the script, and so of the kind of its table.
    seed: u64,
    /// Numbers of the steps to take, from 0; those before them were taken by an earlier process.
    steps: Range<u64>,
}

impl Task {
    fn args(&self) -> Vec<String> {
        let numbers = [self.run, self.seed, self.steps.start, self.steps.end].map(|number| number.to_string());
        [self.url.clone()].into_iter().chain(numbers).collect()
    }

    /// Parses command-line arguments.
    ///
    /// # Errors
    /// If they are invalid.
    pub fn parse(args: &[String]) -> Result<Self> {
        Self::parse_all(args).ok_or_else(|| Finding::new("usage: URL RUN SEED FROM TO"))
    }

    fn parse_all(args: &[String]) -> Option<Self> {
        let [url, run, seed, from, to, ..] = args else { return None };
        let steps = from.parse().ok()?..to.parse().ok()?;
        Some(Self { url: url.clone(), run: run.parse().ok()?, seed: seed.parse().ok()?, steps })
    }

    /// Takes the steps.
    ///
    /// # Errors
    /// Those of the store.
    pub fn run(&self) -> Result<()> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let environment =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let inside = runtime.enter();
        let url = self.url.parse().map_err(|_| Finding::new(format!("invalid URL {}", self.url)))?;
        let parsed = parse_url_opts(&url, environment);
        let (store, prefix) = parsed.map_err(|error| Finding::new(format!("{}: {error}", self.url)))?;
        drop(inside);
        let blobs = BucketBlobs::new(Arc::from(store), prefix, runtime.handle().clone(), self.url.clone());
        let world = World::new(Arc::new(blobs), kind_of(self.seed), self.run)?;
        take(&world, self.seed, self.steps.clone(), |_| {})
    }
}

/// When a process is killed: on which side of the execution of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The server has not executed the request, and never does.
    Before,
    /// The server has executed it, and does not reply.
    After,
}

/// Kills a process at one of its requests.
struct Killer {
    process: Mutex<Option<Child>>,
    /// Number of the request, from the begin of the process on.
    at: Option<(u64, When)>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    requests: u64,
    /// Number of the request to kill it at, by the server.
    number: Option<u64>,
    killed: bool,
}

impl Killer {
    fn kill(&self) {
        if let Some(process) = self.process.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            // It ends in one way or another; waiting for it takes its requests with it.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Watch for Killer {
    fn before(&self, arrival: &Arrival<'_>) -> Option<Fault> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let here = self.at.is_some_and(|(at, _)| at == seen.requests);
        seen.requests += 1;
        if here {
            seen.number = Some(arrival.number);
        }
        if !here || self.at.is_none_or(|(_, when)| when == When::After) {
            return None;
        }
        seen.killed = true;
        drop(seen);
        self.kill();
        Some(Fault::Reset)
    }

    fn after(&self, arrival: &Arrival<'_>) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.killed || seen.number != Some(arrival.number) {
            return;
        }
        seen.killed = true;
        drop(seen);
        self.kill();
    }
}

/// Scripts of `steps` steps, one per seed; their process is killed at each of its requests in turn, before and after,
/// and another takes the rest of the steps.
///
/// # Errors
/// A kill after which the table does not match its commits.
pub fn kills(prove: &Path, first: u64, seeds: u64, steps: u64) -> Result<Figures> {
    each_place(first, seeds, |place, seed| {
        let script = Script { place, prove, seed, steps };
        let (requests, _) = script.run(None)?;
        let mut figures = Figures(vec![("scripts", 1), ("requests of scripts", requests)]);
        for at in 0..requests {
            for when in [When::Before, When::After] {
                place.server.reset(seed);
                let (_, commits) = script
                    .run(Some((at, when)))
                    .map_err(|found| found.at(format_args!("killed at request {at} of {requests}, {when:?}")))?;
                figures.add(&Figures(vec![("kills", 1), ("commits", commits)]));
            }
        }
        Ok(figures)
    })
}

struct Script<'a> {
    place: &'a Place,
    prove: &'a Path,
    seed: u64,
    steps: u64,
}

impl Script<'_> {
    /// Runs the script in an empty bucket, killed once if `at` is given; returns the requests of the first process and
    /// the commits.
    fn run(&self, at: Option<(u64, When)>) -> Result<(u64, u64)> {
        let mut table = Table::new(self.place.blobs(0), self.seed)?;
        let (said, requests, ended) = self.process(1, table.steps, at)?;
        if at.is_some() == ended {
            return Err(Finding::new(format!("a process ended by itself: {ended}, after {} steps", said.len())));
        }
        table.check(1, &said)?;
        if at.is_some() {
            let (said, _, ended) = self.process(2, table.steps, None)?;
            table.check(2, &said)?;
            if !ended || table.steps != self.steps {
                return Err(Finding::new(format!("the next process took {} of {} steps", table.steps, self.steps)));
            }
        }
        table.finish()?;
        Ok((requests, table.version))
    }

    /// A process that takes the steps from `from` on; returns what it said, its requests, and whether it ended by
    /// itself.
    fn process(&self, run: u64, from: u64, at: Option<(u64, When)>) -> Result<(Vec<Said>, u64, bool)> {
        let killer = Arc::new(Killer { process: Mutex::default(), at, seen: Mutex::default() });
        self.place.server.watch(Some(killer.clone()));
        let task = Task { url: format!("s3://{BUCKET}/root"), run, seed: self.seed, steps: from..self.steps };
        let mut command = Command::new(self.prove);
        command.arg("child-in-bucket").args(task.args()).stdout(Stdio::piped());
        // One thread, so that the requests of a script have one order.
        command.env("RAYON_NUM_THREADS", "1").env("AWS_ENDPOINT", self.place.server.endpoint());
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "proof").env("AWS_SECRET_ACCESS_KEY", "proof");

        let out = {
            let mut process = killer.process.lock().unwrap_or_else(PoisonError::into_inner);
            process.insert(command.spawn()?).stdout.take()
        };
        let mut said = Vec::new();
        for line in out.map(BufReader::new).into_iter().flat_map(BufRead::lines) {
            said.extend(done(&line?)?);
        }
        let status = match killer.process.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(process) => process.wait()?,
            None => return Err(Finding::new("no process")),
        };
        self.place.server.watch(None);

        let seen = killer.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !status.success() && !seen.killed {
            return Err(Finding::new(format!("a process failed after {} steps: {status}", said.len())));
        }
        Ok((said, seen.requests, !seen.killed))
    }
}
