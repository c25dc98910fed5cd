//! The lock of a job in a bucket: a lease that its holder renews by conditional PUTs.
//!
//! The holder counts from before it sent a renewal, another run from when it first saw it, so the holder stops first,
//! whatever the clocks of the machines say. A process that is suspended between looking and writing may still write
//! once: the comparison in each commit guards against that.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tidetable_blobs::BlobError;
use tidetable_blobs::Blobs;
use tidetable_blobs::Tag;
use tidetable_job::Project;
use tidetable_record::{Holder, Lease, lock_name};
use tidetable_store::StoreError;
use ulid::Ulid;

use super::look::Look;
use super::watch::{Verdict, Watch};
use crate::fault::error::RunError;

/// Longest wait between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// The times of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaseTimes {
    /// How long a lease holds without being renewed; whole seconds.
    pub(crate) holds: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        Self { holds: Duration::from_secs(60) }
    }
}

impl LeaseTimes {
    /// The times that a project sets, or else the default.
    pub(crate) fn of(project: &Project) -> Self {
        project.lease.map(|holds| Self { holds }).unwrap_or_default()
    }

    /// Time between two renewals.
    fn renewal(self) -> Duration {
        self.holds / 6
    }

    /// How long the holder trusts a renewal: less than others wait.
    fn trusted(self) -> Duration {
        self.holds - self.holds / 6
    }
}

/// A lease that this process holds, renewed by a thread until it is dropped.
#[derive(Debug)]
pub(crate) struct HeldLease {
    blobs: Arc<dyn Blobs>,
    job: String,
    times: LeaseTimes,
    state: Mutex<State>,
    /// Ends the thread when it is dropped.
    ends: Mutex<Option<Sender<()>>>,
}

#[derive(Debug)]
struct State {
    lease: Lease,
    tag: Tag,
    /// When the last renewal that succeeded was sent.
    renewed: Instant,
    /// The number of the last write.
    number: u64,
    lost: bool,
    /// Whether the log says already that it was not renewed in time.
    is_late: bool,
}

impl HeldLease {
    /// Begins to renew a lease that was just written.
    fn begin(blobs: Arc<dyn Blobs>, job: String, times: LeaseTimes, state: State) -> Arc<Self> {
        let (ends, ended) = channel();
        let held = Arc::new(Self { blobs, job, times, state: Mutex::new(state), ends: Mutex::new(Some(ends)) });
        let weak: Weak<Self> = Arc::downgrade(&held);
        std::thread::spawn(move || {
            while matches!(ended.recv_timeout(times.renewal()), Err(RecvTimeoutError::Timeout)) {
                let Some(held) = weak.upgrade() else { return };
                held.renew(&mut held.state());
            }
        });
        held
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its holder as last written.
    pub(super) fn holder(&self) -> Holder {
        self.state().lease.holder.clone()
    }

    /// Writes its holder. Errors are ignored: the next renewal tries again.
    pub(super) fn tell(&self, holder: Holder) {
        let mut state = self.state();
        state.lease.holder = holder;
        self.renew(&mut state);
    }

    /// Writes the lease, if it is still ours.
    fn renew(&self, state: &mut State) {
        if state.lost {
            return;
        }

        let written = match self.write(state) {
            Ok(false) => self.write_again(state),
            written => written,
        };
        match written {
            Ok(true) => {}
            Ok(false) => {
                state.lost = true;
                self.log_lost("another run has taken it");
            }
            Err(error) => tracing::warn!(%error, "the lease of a job cannot be renewed; the next renewal tries again"),
        }
    }

    /// Writes a lease whose tag was replaced, in case we replaced it by a PUT that timed out: then we hold it under the tag
    /// that it has now. `false` if another run holds it.
    fn write_again(&self, state: &mut State) -> Result<bool, StoreError> {
        match Lease::load(self.blobs.as_ref(), &self.job)? {
            Some((found, Some(tag))) if owner(&found) == owner(&state.lease) => {
                state.tag = tag;
                self.write(state)
            }
            _ => Ok(false),
        }
    }

    /// Writes the lease in place of the one with the known tag; `false` if that was replaced.
    fn write(&self, state: &mut State) -> Result<bool, StoreError> {
        let sent = Instant::now();
        state.number += 1;
        state.lease.renewal = format!("{}-{}", owner(&state.lease), state.number);
        let bytes = state.lease.encode(&self.job)?;
        let Some(tag) = self.blobs.replace_if(&lock_name(&self.job), &bytes, &state.tag)? else { return Ok(false) };

        (state.tag, state.renewed) = (tag, sent);
        Ok(true)
    }

    /// Fails if the lease is no longer ours for certain.
    ///
    /// # Errors
    /// [`BlobError::LeaseLost`].
    pub(super) fn check(&self) -> Result<(), BlobError> {
        let mut state = self.state();
        if state.lost {
            return Err(BlobError::LeaseLost { job: self.job.clone(), is_taken: true });
        }

        if state.renewed.elapsed() >= self.times.trusted() {
            if !std::mem::replace(&mut state.is_late, true) {
                self.log_lost("it could not be renewed in time");
            }
            return Err(BlobError::LeaseLost { job: self.job.clone(), is_taken: false });
        }
        Ok(())
    }

    fn log_lost(&self, reason: &str) {
        tracing::debug!(job = self.job, reason, "lease_lost");
    }
}

/// Who wrote a lease: the part of its renewals that stays.
fn owner(lease: &Lease) -> String {
    lease.renewal.split('-').next().unwrap_or_default().to_owned()
}

impl Drop for HeldLease {
    /// Gives the lease back. If that fails it expires.
    fn drop(&mut self) {
        drop(self.ends.lock().unwrap_or_else(PoisonError::into_inner).take());
        let mut state = self.state();
        state.lease.free = true;
        self.renew(&mut state);
    }
}

/// Looks at a lease, and takes it once it is free or expired.
pub(super) struct LeaseAttempt {
    blobs: Arc<dyn Blobs>,
    job: String,
    times: LeaseTimes,
    watch: Watch,
    /// Who takes it, as far as it is known.
    holder: Holder,
}

impl LeaseAttempt {
    pub(super) fn new(blobs: Arc<dyn Blobs>, job: &str, times: LeaseTimes) -> Self {
        Self { blobs, job: job.to_owned(), times, watch: Watch::default(), holder: Holder::default() }
    }

    /// The same, whose lease names its holder from the beginning: one write less.
    pub(super) fn of(self, holder: Holder) -> Self {
        Self { holder, ..self }
    }

    pub(super) fn pause(&self) -> Duration {
        PAUSE.min(self.times.renewal())
    }

    pub(super) fn look(&mut self) -> Result<Look<Arc<HeldLease>>, RunError> {
        self.look_at(Instant::now())
    }

    pub(super) fn look_at(&mut self, now: Instant) -> Result<Look<Arc<HeldLease>>, RunError> {
        let Some((lease, tag)) = Lease::load(self.blobs.as_ref(), &self.job)? else {
            return self.write(None, "no run has held it before");
        };
        match self.watch.look(&lease, now) {
            _ if lease.free => self.write(tag, "it was given back"),
            Verdict::Expired => self.write(tag, "its holder did not renew it in time"),
            verdict => {
                let left = self.watch.left(&lease, now);
                Ok(Look::Held { holder: lease.holder, lives: verdict == Verdict::Lives, left })
            }
        }
    }

    /// Writes a lease of our own in place of the one with this tag, or of none. `reason` says why it is free.
    fn write(&self, before: Option<Tag>, reason: &str) -> Result<Look<Arc<HeldLease>>, RunError> {
        let sent = Instant::now();
        let lease = Lease {
            holder: self.holder.clone(),
            seconds: self.times.holds.as_secs(),
            renewal: format!("{}-0", Ulid::generate()),
            ..Lease::default()
        };
        let (path, bytes) = (lock_name(&self.job), lease.encode(&self.job)?);

        let tag = match before {
            Some(tag) => self.blobs.replace_if(&path, &bytes, &tag)?,
            None if self.blobs.create_new(&path, &bytes)? => {
                let found = self.blobs.read_tagged(&path)?.filter(|(found, _)| *found == bytes);
                found.and_then(|(_, tag)| tag)
            }
            None => None,
        };

        // Another run was first: it may be the same lease again at the next look.
        let Some(tag) = tag else { return Ok(Look::Held { holder: Holder::default(), lives: false, left: None }) };

        tracing::debug!(job = self.job, run = self.holder.run, reason, "lease_taken");
        let state = State { lease, tag, renewed: sent, number: 0, lost: false, is_late: false };
        let held = HeldLease::begin(Arc::clone(&self.blobs), self.job.clone(), self.times, state);
        Ok(Look::Taken(held))
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;
    use tidetable_blobs::BucketBlobs;
    use tidetable_record::holder;
    use tokio::runtime::Runtime;

    use super::*;

    fn bucket() -> (Runtime, Arc<dyn Blobs>) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let store = Arc::new(InMemory::new());
        let blobs = BucketBlobs::new(store, "root".into(), runtime.handle().clone(), "memory".to_owned());
        (runtime, Arc::new(blobs))
    }

    fn held(look: Look<Arc<HeldLease>>) -> Arc<HeldLease> {
        match look {
            Look::Taken(held) => held,
            _ => panic!("it is not taken"),
        }
    }

    /// Long enough that no thread renews during a test.
    const TIMES: LeaseTimes = LeaseTimes { holds: Duration::from_secs(3600) };

    #[test]
    fn a_lease_is_given_back_and_taken_again() {
        let (_runtime, blobs) = bucket();
        let attempt = || LeaseAttempt::new(Arc::clone(&blobs), "j", TIMES);
        let first = held(attempt().look().unwrap());
        first.tell(Holder { run: "01A".to_owned(), process: 7, ..Holder::default() });
        assert_eq!(holder(blobs.as_ref(), "j").unwrap().unwrap().run, "01A");
        let Look::Held { holder: other, lives, left } = attempt().look().unwrap() else { panic!() };
        assert_eq!((other.run.as_str(), lives, left), ("01A", false, Some(TIMES.holds)));
        drop(first);
        assert_eq!(holder(blobs.as_ref(), "j").unwrap(), None);
        held(attempt().look().unwrap()).check().unwrap();
    }

    #[test]
    fn a_lease_that_is_not_renewed_is_taken_over_and_its_holder_stops() {
        let (_runtime, blobs) = bucket();
        let attempt = || LeaseAttempt::new(Arc::clone(&blobs), "j", TIMES);
        let first = held(attempt().look().unwrap());
        let (mut second, now) = (attempt(), Instant::now());
        assert!(matches!(second.look_at(now).unwrap(), Look::Held { lives: false, .. }));
        first.tell(Holder::default());
        assert!(matches!(second.look_at(now + TIMES.holds).unwrap(), Look::Held { lives: true, .. }));
        first.check().unwrap();
        let second = held(second.look_at(now + 2 * TIMES.holds).unwrap());
        // It learns of it when it tries to renew.
        first.tell(Holder::default());
        let lost = first.check().unwrap_err();
        assert!(matches!(lost, BlobError::LeaseLost { is_taken: true, .. }), "{lost:?}");
        for part in
            ["another run has taken it", "What was committed", "The other run does the rest", "`tidetable status j`"]
        {
            assert!(lost.to_string().contains(part), "{part}: {lost}");
        }
        drop(first);
        second.check().unwrap();
        second.tell(Holder { run: "01B".to_owned(), ..Holder::default() });
        second.check().unwrap();
        assert_eq!(holder(blobs.as_ref(), "j").unwrap().unwrap().run, "01B", "who lost it does not give it back");
    }

    #[test]
    fn a_renewal_whose_reply_was_lost_is_ours() {
        let (_runtime, blobs) = bucket();
        let attempt = || LeaseAttempt::new(Arc::clone(&blobs), "j", TIMES);
        let held = held(attempt().look().unwrap());
        let before = held.state().tag.clone();
        held.tell(Holder { run: "01A".to_owned(), ..Holder::default() });
        held.state().tag = before;
        held.tell(Holder { run: "01B".to_owned(), ..Holder::default() });
        held.check().unwrap();
        assert_eq!(holder(blobs.as_ref(), "j").unwrap().unwrap().run, "01B");
    }

    #[test]
    fn of_two_that_take_an_expired_lease_one_gets_it() {
        let (_runtime, blobs) = bucket();
        let mut both = [(); 2].map(|()| LeaseAttempt::new(Arc::clone(&blobs), "j", TIMES));
        let first = held(both[0].look().unwrap());
        let now = Instant::now();
        let tags = [(); 2].map(|()| Lease::load(blobs.as_ref(), "j").unwrap().unwrap().1);
        both.iter_mut().for_each(|one| assert!(matches!(one.look_at(now).unwrap(), Look::Held { .. })));
        let taken: Vec<bool> =
            both.iter().zip(tags).map(|(one, tag)| matches!(one.write(tag, "").unwrap(), Look::Taken(_))).collect();
        assert_eq!(taken, [true, false]);
        drop(first);
    }

    #[test]
    fn a_holder_that_cannot_renew_stops_before_others_may_begin() {
        assert!(LeaseTimes::default().trusted() < LeaseTimes::default().holds);
        assert!(LeaseTimes::default().renewal() * 4 < LeaseTimes::default().trusted());
    }
}
