//! The jobs of a call: several at a time; what is lost is sent again.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tidetable_runner::Stop;
use tidetable_runner::units::{Answer, Carried, CarryError, LostUnit};
use tonic::transport::Channel;

use crate::attempts::{Missing, TIMES, jobs, wait_before};
use crate::connect::CONNECT;
use crate::job::{Job, JobError, cancel};
use crate::session::Session;

/// How often a request to stop is looked for.
const PAUSE: Duration = Duration::from_millis(50);
/// Time without an answer after which executors are looked for.
const QUIET: Duration = Duration::from_secs(10);
/// Time without an executor after which a run gives up.
const FORSAKEN: Duration = Duration::from_secs(120);

/// A call of a carrier: units, and what is done with their answers.
pub(crate) struct Call<'a> {
    pub(crate) session: &'a Session,
    /// How long the next answer is waited for before the run gives up.
    pub(crate) timeout: Duration,
    /// The units as they are sent, in the order of the caller.
    pub(crate) units: &'a [Vec<u8>],
    pub(crate) stop: &'a Stop,
    pub(crate) take: &'a (dyn Fn(usize, Answer) -> bool + Sync),
    pub(crate) note: &'a (dyn Fn(String) + Sync),
}

/// What the jobs of a call have in common while they run, behind one lock.
struct Shared {
    missing: Missing,
    /// The scheduler's names of running jobs, which a stop cancels.
    running: BTreeSet<String>,
    /// Whether the caller wants no more answers.
    enough: bool,
    /// When the last answer came, or the call began.
    heard: Instant,
    /// How often units were sent and why they were lost, as far as it was noted: many jobs are lost with one scheduler.
    noted: BTreeSet<(u32, String)>,
    /// Executors that take no part in the run, such as those of another root or build.
    unfit: BTreeSet<String>,
    /// What these executors answered, by the index of the unit.
    returned: BTreeMap<usize, Answer>,
}

/// The end of one job, and how often its units were sent with it.
struct Ended {
    units: Vec<usize>,
    times: u32,
    done: Result<(), JobError>,
}

impl Call<'_> {
    pub(crate) async fn run(&self) -> Result<Carried, CarryError> {
        let shared = Mutex::new(Shared {
            missing: Missing::new(self.units.len()),
            running: BTreeSet::new(),
            enough: false,
            heard: Instant::now(),
            noted: BTreeSet::new(),
            unfit: BTreeSet::new(),
            returned: BTreeMap::new(),
        });

        // The first connection of a run fails at once: a wrong address is no failure to be waited out. Later the scheduler may be
        // on its way back.
        let client = match self.connect().await {
            Ok(client) => {
                self.session.reached.store(true, Ordering::Relaxed);
                Some(client)
            }
            Err(error) if !self.session.reached.load(Ordering::Relaxed) => return Err(error),
            Err(_) => None,
        };

        let client = RefCell::new(client);
        let ended = tokio::select! {
            ended = self.all(&shared, &client) => ended,
            signal = self.stopped(&shared) => Err(signal),
            error = self.forsaken(&shared) => Err(error),
        };

        let running = std::mem::take(&mut lock(&shared).running);
        if let (Some(client), false) = (client.into_inner(), running.is_empty()) {
            let cancels = running.into_iter().map(|job| cancel(client.clone(), job));
            let _ = tokio::time::timeout(CONNECT, futures::future::join_all(cancels)).await;
        }
        ended
    }

    /// Runs all jobs, several at a time, until every unit has an answer.
    async fn all(
        &self,
        shared: &Mutex<Shared>,
        client: &RefCell<Option<SchedulerGrpcClient<Channel>>>,
    ) -> Result<Carried, CarryError> {
        let sizes: Vec<usize> = self.units.iter().map(Vec::len).collect();
        let mut waiting: Vec<Vec<usize>> = jobs(&sizes);
        waiting.reverse();
        let mut running = FuturesUnordered::new();
        let mut carried = Carried::default();

        loop {
            while running.len() < self.session.jobs_at_a_time() {
                let Some(units) = waiting.pop() else { break };
                running.push(self.job(units, 1, shared, client));
            }

            let Some(Ended { units, times, done }) = running.next().await else { return Ok(carried) };
            if lock(shared).enough {
                return Ok(carried);
            }
            let missing = lock(shared).missing.of(&units);
            let reason = match done {
                Err(JobError::Refused(reason)) => {
                    return Err(CarryError::Refused { place: self.session.place_of(), reason });
                }
                _ if missing.is_empty() => continue,
                Err(JobError::Unfit { everywhere: true }) => {
                    self.take_returned(&missing, shared);
                    continue;
                }
                // This is no attempt of the units: none that could do them has had them.
                Err(JobError::Unfit { everywhere: false }) => {
                    running.push(self.job(missing, times, shared, client));
                    continue;
                }
                Err(JobError::Lost(reason)) => reason,
                Ok(()) => "the job ended without an answer".to_owned(),
            };
            if times >= TIMES {
                let missing = lock(shared).missing.len();
                return Err(CarryError::Unanswered { missing, all: self.units.len(), times, source: LostUnit(reason) });
            }

            // Lost units go into a job of their own.
            carried.resent += missing.len();
            if (times == 1 || times == TIMES / 2) && lock(shared).noted.insert((times, reason.clone())) {
                let units = match missing.len() {
                    1 => "1 unit is".to_owned(),
                    several => format!("{several} units are"),
                };
                (self.note)(format!("{units} sent again: {}", LostUnit(reason).plain()));
            }
            running.push(self.job(missing, times + 1, shared, client));
        }
    }

    /// Runs one job; `times`: how often its units are sent with it.
    async fn job(
        &self,
        units: Vec<usize>,
        times: u32,
        shared: &Mutex<Shared>,
        client: &RefCell<Option<SchedulerGrpcClient<Channel>>>,
    ) -> Ended {
        tokio::time::sleep(wait_before(times)).await;

        let done = match self.connection(client).await {
            Ok(connected) => self.run_job(&units, self.session.job(connected, times), shared).await,
            Err(error) => Err(JobError::Lost(error.to_string())),
        };
        let done = match done {
            Ok(()) if lock(shared).has_returned(&units) => Err(self.unfit(shared).await),
            done => done,
        };
        if matches!(done, Err(JobError::Lost(_))) {
            // Another connection next time: the scheduler may be another process.
            client.borrow_mut().take();
        }
        Ended { units, times, done }
    }

    /// The connection that there is, or a new one.
    async fn connection(
        &self,
        client: &RefCell<Option<SchedulerGrpcClient<Channel>>>,
    ) -> Result<SchedulerGrpcClient<Channel>, CarryError> {
        let known = client.borrow().clone();
        match known {
            Some(connected) => Ok(connected),
            None => {
                let connected = self.connect().await?;
                Ok(client.borrow_mut().insert(connected).clone())
            }
        }
    }

    /// Sends units as a job, and takes their answers. While it runs, its name is among those that a stop cancels.
    async fn run_job(&self, units: &[usize], job: Job<'_>, shared: &Mutex<Shared>) -> Result<(), JobError> {
        let name = Mutex::new(String::new());
        let bytes: Vec<&[u8]> = units.iter().filter_map(|unit| self.units.get(*unit)).map(Vec::as_slice).collect();
        let done = job
            .run(&bytes, &|job: &str| note_running(job, &name, shared), &|index: usize, answer: Answer| {
                if let Some(unit) = units.get(index) {
                    self.receive(*unit, answer, shared);
                }
            })
            .await;

        lock(shared).running.remove(&name.into_inner().unwrap_or_else(PoisonError::into_inner));
        done
    }

    /// Takes the answer of a unit, or keeps it if the executor that gave it takes no part in the run.
    fn receive(&self, unit: usize, answer: Answer, shared: &Mutex<Shared>) {
        let Some(reason) = answer.unfit() else { return self.take_answer(unit, answer, shared) };
        self.note_unfit(&answer.executor, reason);
        let mut shared = lock(shared);
        shared.unfit.insert(answer.executor.clone());
        shared.returned.insert(unit, answer);
    }

    /// Passes an answer to the caller, who may have enough with it.
    fn take_answer(&self, unit: usize, answer: Answer, shared: &Mutex<Shared>) {
        let goes_on = (self.take)(unit, answer);
        let mut shared = lock(shared);
        shared.missing.answered(unit);
        shared.enough |= !goes_on;
        shared.heard = Instant::now();
    }

    /// Passes on what executors said that take no part in the run: no other one is there.
    fn take_returned(&self, units: &[usize], shared: &Mutex<Shared>) {
        for unit in units {
            let returned = lock(shared).returned.remove(unit);
            if let Some(answer) = returned {
                self.take_answer(*unit, answer, shared);
            }
        }
    }

    /// Says once in a run that an executor takes no part in it.
    fn note_unfit(&self, executor: &str, reason: &str) {
        let mut noted = self.session.noted_unfit.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert((executor.to_owned(), reason.to_owned())) {
            (self.note)(format!("executor {executor} takes no part in this run: {reason}; its units run on others"));
        }
    }

    /// The end of a job whose units came back from executors that take no part in the run.
    async fn unfit(&self, shared: &Mutex<Shared>) -> JobError {
        match self.session.link.executors().await {
            Some(connected) => JobError::Unfit { everywhere: connected.is_subset(&lock(shared).unfit) },
            None => JobError::Lost("the scheduler does not say which executors are connected".to_owned()),
        }
    }

    async fn connect(&self) -> Result<SchedulerGrpcClient<Channel>, CarryError> {
        let connected = self.session.link.connect().await;
        connected.map_err(|error| CarryError::Unreachable { place: self.session.place_of(), reason: error.reason })
    }

    /// Waits for a request to stop, or until the caller has enough.
    async fn stopped(&self, shared: &Mutex<Shared>) -> CarryError {
        loop {
            if let Some(stopped) = self.stop.asked() {
                return CarryError::Stopped { signal: stopped.0 };
            }
            if lock(shared).enough {
                // The jobs in flight are cancelled; the caller knows why it has enough.
                return CarryError::Stopped { signal: 0 };
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Waits until no executor was connected for long, or none has answered for longer than the run waits.
    async fn forsaken(&self, shared: &Mutex<Shared>) -> CarryError {
        let mut without: Option<Instant> = None;
        loop {
            tokio::time::sleep(QUIET.min(self.timeout)).await;
            let quiet = lock(shared).heard.elapsed();
            if quiet >= self.timeout {
                let reason = format!(
                    "no executor has answered for {} s: see what they do, or raise `timeout` of `[cluster]` in tidetable.toml",
                    quiet.as_secs()
                );
                return CarryError::Refused { place: self.session.place_of(), reason };
            }
            if quiet < QUIET || !self.session.link.executors().await.is_some_and(|names| names.is_empty()) {
                without = None;
                continue;
            }

            let since = *without.get_or_insert_with(|| {
                (self.note)("no executor is connected to the scheduler: waiting for one".to_owned());
                Instant::now()
            });
            if since.elapsed() >= FORSAKEN {
                let place = self.session.place_of();
                let reason = format!("no executor is connected: start `tidetable executor --scheduler {place}`");
                return CarryError::Refused { place, reason };
            }
        }
    }
}

impl Shared {
    /// Whether all units of a job that are missing came back from executors that take no part in the run.
    fn has_returned(&self, units: &[usize]) -> bool {
        let missing = self.missing.of(units);
        !missing.is_empty() && missing.iter().all(|unit| self.returned.contains_key(unit))
    }
}

/// Keeps the scheduler's name of a job, by which it is cancelled.
fn note_running(job: &str, name: &Mutex<String>, shared: &Mutex<Shared>) {
    lock(shared).running.insert(job.to_owned());
    job.clone_into(&mut name.lock().unwrap_or_else(PoisonError::into_inner));
}

fn lock(shared: &Mutex<Shared>) -> std::sync::MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
