//! The lock of a job, `locks/<job>.lock`, allows one run at a time.
//!
//! In a directory it is a lock of the operating system, which ends with the process, so there are no stale locks. In a
//! bucket it is a lease, which ends when its holder no longer renews it.

pub(crate) mod file;
pub(crate) mod lease;
pub(crate) mod leased_blobs;
pub(crate) mod look;
pub(crate) mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidetable_blobs::Blobs;
use tidetable_job::Project;
use tidetable_record::{Holder, RunRecord};
use tidetable_store::Store;

use crate::fault::error::RunError;
use crate::fault::stop::Stop;
use file::FileLock;
use lease::{HeldLease, LeaseTimes};
use leased_blobs::LeasedBlobs;
use look::Look;

/// How long a wait is not worth a message.
const SILENT: Duration = Duration::from_secs(2);

/// What to do if another run of the job holds the lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IfLocked {
    /// Fail with [`RunError::Locked`].
    #[default]
    Fail,
    /// End without a run, and without an error.
    Skip,
    /// Wait until it ends, up to a limit.
    Wait(Option<Duration>),
}

/// What to do with a lock that another run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Wait,
    Skip,
    Fail,
}

impl IfLocked {
    /// What to do about a holder, after waiting for `waited`; `lives`: it surely runs.
    fn next(self, lives: bool, waited: Duration) -> Next {
        match self {
            Self::Fail | Self::Skip if !lives => Next::Wait,
            Self::Skip => Next::Skip,
            Self::Fail => Next::Fail,
            Self::Wait(most) if most.is_none_or(|most| waited < most) => Next::Wait,
            Self::Wait(_) => Next::Fail,
        }
    }

    /// The rest of a limited wait after `waited`.
    fn left(self, waited: Duration) -> Option<Duration> {
        match self {
            Self::Wait(most) => most.map(|most| most.saturating_sub(waited)),
            Self::Fail | Self::Skip => None,
        }
    }
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub(crate) enum Lock {
    File(FileLock),
    Lease(Arc<HeldLease>),
}

impl Lock {
    /// Writes the name of the run. Errors are ignored: the content only informs.
    pub(crate) fn tell(&mut self, run: &str) {
        match self {
            Self::File(lock) => lock.tell(Holder { run: run.to_owned(), ..holder_here(None) }),
            Self::Lease(lease) => {
                let holder = Holder { run: run.to_owned(), ..holder_here(machine()) };
                // Mostly it was written when the lease was taken.
                if lease.holder() != holder {
                    lease.tell(holder);
                }
            }
        }
    }

    /// Writes that the run failed and that its record could not be written.
    pub(crate) fn tell_failure(&mut self, record: &RunRecord) {
        match self {
            Self::File(lock) => lock.tell(lock.holder.clone().failing(record)),
            Self::Lease(lease) => lease.tell(lease.holder().failing(record)),
        }
    }

    /// The store as the holder may change it: in a bucket, only while the lease holds.
    pub(crate) fn over(&self, store: Store) -> Store {
        match self {
            Self::File(_) => store,
            Self::Lease(lease) => Store::new(Arc::new(LeasedBlobs::new(Arc::clone(store.blobs()), Arc::clone(lease)))),
        }
    }
}

fn holder_here(machine: Option<String>) -> Holder {
    Holder { process: std::process::id(), machine, ..Holder::default() }
}

/// The name of this machine, for people.
pub fn machine() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Which lock is taken, and for whom.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockRequest<'a> {
    /// Name of the job, or of other work on the store.
    pub(crate) job: &'a str,
    /// Name of the run that takes it.
    pub(crate) run: &'a str,
    pub(crate) if_locked: IfLocked,
    pub(crate) times: LeaseTimes,
}

/// Takes the lock of a job for a run. `None`: another run holds it, and the option says to skip. A lease that nobody renews is
/// taken after it was watched for as long as it holds; until it is known whether its holder lives, every option waits.
///
/// # Errors
/// [`RunError::Locked`] if another run holds it, and those of the storage.
pub(crate) fn take(blobs: &Arc<dyn Blobs>, request: LockRequest<'_>, stop: &Stop) -> Result<Option<Lock>, RunError> {
    let LockRequest { job, run, if_locked, times } = request;
    let mut waiting = Waiting::new(job);
    let mut attempt = Attempt::new(blobs, job, times).of(run);
    let mut logged = None;
    loop {
        let (holder, lives, left) = match attempt.look()? {
            Look::Taken(lock) => return Ok(Some(lock)),
            Look::Held { holder, lives, left } => (holder, lives, left),
        };

        let next = if_locked.next(lives, waiting.begun.elapsed());
        if logged != Some(next) {
            logged = Some(next);
            tracing::debug!(job, run, reason = holder.place(), holder = holder.run, next = ?next, "lock_held");
        }

        match next {
            Next::Wait => waiting.tell(&holder, lives, left, if_locked),
            Next::Skip => return Ok(None),
            Next::Fail => {
                return Err(RunError::Locked { job: job.to_owned(), place: holder.place(), run: holder.run });
            }
        }

        stop.check()?;
        std::thread::sleep(attempt.pause());
    }
}

/// A wait for a lock, which is told to the user once for each holder and what is known of it.
struct Waiting<'a> {
    job: &'a str,
    begun: Instant,
    told: Option<(String, bool)>,
}

impl<'a> Waiting<'a> {
    fn new(job: &'a str) -> Self {
        Self { job, begun: Instant::now(), told: None }
    }

    /// Tells whom the wait is for, and how long it may take, if it has lasted a while.
    fn tell(&mut self, holder: &Holder, lives: bool, left: Option<Duration>, if_locked: IfLocked) {
        let about = (holder.run.clone(), lives);
        if self.begun.elapsed() < SILENT || self.told.as_ref() == Some(&about) {
            return;
        }
        let text = wait_text(self.job, holder, lives.then_some(if_locked.left(self.begun.elapsed())), left);
        tracing::warn!("{text}");
        self.told = Some(about);
    }
}

/// The message of a wait. `most` is set if the holder surely runs: the rest of the time that the user allows.
fn wait_text(job: &str, holder: &Holder, most: Option<Option<Duration>>, left: Option<Duration>) -> String {
    let seconds = |duration: Duration| format!("{} s", duration.as_secs().max(1));
    let who = format!("run {} of {job} ({})", holder.run, holder.place());
    match (most, left) {
        (Some(Some(most)), _) => format!("waiting for the end of {who}, for {} at most", seconds(most)),
        (Some(None), _) => format!("waiting for the end of {who}; Ctrl-C gives it up"),
        (None, Some(left)) => {
            format!("waiting for {who}: its lease is taken over in {}, unless it is renewed", seconds(left))
        }
        (None, None) => format!("waiting for {who}"),
    }
}

/// A lock by name that is held until it is dropped.
#[derive(Debug)]
pub struct NamedLock {
    _lock: Lock,
}

/// Takes the lock called `name` for `holder`: for work on a store beside the runs of jobs, one at a time.
///
/// # Errors
/// [`RunError::Locked`] if another process holds it, and those of the storage.
pub fn lock_named(
    project: &Project,
    blobs: &Arc<dyn Blobs>,
    name: &str,
    holder: &str,
    stop: &Stop,
) -> Result<NamedLock, RunError> {
    let times = LeaseTimes::of(project);
    let request = LockRequest { job: name, run: holder, if_locked: IfLocked::Fail, times };
    let Some(mut lock) = take(blobs, request, stop)? else {
        return Err(RunError::Locked { job: name.to_owned(), place: String::new(), run: String::new() });
    };

    lock.tell(holder);
    Ok(NamedLock { _lock: lock })
}

/// Takes the locks of all jobs that ever ran in the store, to exclude runs until they are dropped.
///
/// # Errors
/// [`RunError::Running`] if one runs, and those of the storage.
pub(crate) fn take_all(blobs: &Arc<dyn Blobs>) -> Result<Vec<Lock>, RunError> {
    let mut held = Vec::new();
    for name in blobs.list("locks")? {
        let Some(job) = name.strip_suffix(".lock") else { continue };

        let mut waiting = Waiting::new(job);
        let mut attempt = Attempt::new(blobs, job, LeaseTimes::default());
        held.push(loop {
            match attempt.look()? {
                Look::Taken(lock) => break lock,
                Look::Held { holder, lives: true, .. } => {
                    return Err(RunError::Running { job: job.to_owned(), place: holder.place(), run: holder.run });
                }
                Look::Held { holder, left, .. } => {
                    waiting.tell(&holder, false, left, IfLocked::Fail);
                    std::thread::sleep(attempt.pause());
                }
            }
        });
    }
    Ok(held)
}

/// Repeated looks at a lock.
enum Attempt {
    File(file::FileAttempt),
    Lease(Box<lease::LeaseAttempt>),
}

impl Attempt {
    fn new(blobs: &Arc<dyn Blobs>, job: &str, times: LeaseTimes) -> Self {
        match blobs.directory() {
            Some(root) => Self::File(file::FileAttempt::new(root, job)),
            None => Self::Lease(Box::new(lease::LeaseAttempt::new(Arc::clone(blobs), job, times))),
        }
    }

    /// The same for a run, whose name a lease tells from the beginning.
    fn of(self, run: &str) -> Self {
        match self {
            Self::Lease(lease) => {
                let holder = Holder { run: run.to_owned(), ..holder_here(machine()) };
                Self::Lease(Box::new(lease.of(holder)))
            }
            file @ Self::File(_) => file,
        }
    }

    fn look(&mut self) -> Result<Look<Lock>, RunError> {
        match self {
            Self::File(file) => Ok(file.look()?.map(Lock::File)),
            Self::Lease(lease) => Ok(lease.look()?.map(Lock::Lease)),
        }
    }

    fn pause(&self) -> Duration {
        match self {
            Self::File(_) => file::PAUSE,
            Self::Lease(lease) => lease.pause(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tidetable_blobs::LocalBlobs;
    use tidetable_record::holder;

    use super::*;

    fn lock(root: &Path, run: &str, if_locked: IfLocked) -> Result<Option<Lock>, RunError> {
        let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::new(root.to_owned()));
        let request = LockRequest { job: "j", run, if_locked, times: LeaseTimes::default() };
        let mut lock = take(&blobs, request, &Stop::default())?;
        lock.iter_mut().for_each(|lock| lock.tell(run));
        Ok(lock)
    }

    #[test]
    fn one_holds_it_until_it_lets_go() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        assert_eq!(holder(&blobs, "j").unwrap(), None);
        let first = lock(root.path(), "first and long", IfLocked::Fail).unwrap();
        assert!(first.is_some());
        assert_eq!(holder(&blobs, "j").unwrap().unwrap().run, "first and long");
        let Err(RunError::Locked { run, place, .. }) = lock(root.path(), "second", IfLocked::Fail) else { panic!() };
        assert_eq!((run.as_str(), place), ("first and long", format!("process {}", std::process::id())));
        assert!(lock(root.path(), "second", IfLocked::Skip).unwrap().is_none());
        assert!(lock(root.path(), "second", IfLocked::Wait(Some(Duration::ZERO))).is_err());
        drop(first);
        assert_eq!(holder(&blobs, "j").unwrap(), None);
        let second = lock(root.path(), "second", IfLocked::Wait(None)).unwrap();
        assert!(second.is_some());
        assert_eq!(holder(&blobs, "j").unwrap().unwrap().run, "second");
    }

    #[test]
    fn a_wait_names_its_holder_and_its_end() {
        let holder = Holder { run: "01A".to_owned(), process: 7, ..Holder::default() };
        let seconds = Duration::from_secs;
        let told = |most, left| wait_text("j", &holder, most, left);
        assert_eq!(
            told(Some(Some(seconds(58))), None),
            "waiting for the end of run 01A of j (process 7), for 58 s at most"
        );
        assert_eq!(
            told(Some(None), Some(seconds(9))),
            "waiting for the end of run 01A of j (process 7); Ctrl-C gives it up"
        );
        let dead = "waiting for run 01A of j (process 7): its lease is taken over in 57 s, unless it is renewed";
        assert_eq!(told(None, Some(seconds(57))), dead);

        let mut waiting = Waiting::new("j");
        waiting.tell(&holder, false, None, IfLocked::Fail);
        assert_eq!(waiting.told, None, "a short wait is not worth a word");
        assert_eq!(IfLocked::Wait(Some(seconds(60))).left(seconds(2)), Some(seconds(58)));
    }

    #[test]
    fn a_holder_of_whom_nothing_is_known_is_watched_first() {
        let (second, hour) = (Duration::from_secs(1), Duration::from_secs(3600));
        assert_eq!((IfLocked::Fail.next(false, hour), IfLocked::Fail.next(true, second)), (Next::Wait, Next::Fail));
        assert_eq!((IfLocked::Skip.next(false, hour), IfLocked::Skip.next(true, second)), (Next::Wait, Next::Skip));
        assert_eq!(IfLocked::Wait(Some(second)).next(false, second), Next::Fail);
        assert_eq!(IfLocked::Wait(None).next(true, hour), Next::Wait);
    }
}
