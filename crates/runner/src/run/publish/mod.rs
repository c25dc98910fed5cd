//! The publish stage: writes the files of the parts whose cells changed. `decide` selects parts and reasons,
//! `compare` reads the state they are decided from, `share` groups parts that are read together.

pub(crate) mod carried;
pub(crate) mod catalog;
pub(crate) mod catalog_client;
pub(crate) mod compare;
pub(crate) mod decide;
pub(crate) mod outcome;
pub(crate) mod passes;
pub(crate) mod share;
pub(crate) mod stage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use tidetable_blobs::BlobError;

use tidetable_export::{
    EmptyPart, ExportError, LogTimes, OpenLog, Pinned, PublishedPart, record, retire, sweep, sweep_retired,
};
use tidetable_record::{AttemptRecord, CheckRecord, DamageRecord, ExportRecord};
use tidetable_sql::Session;
use tidetable_store::StoreError;
use tidetable_store::published::{ColumnIds, Published};

use crate::checks::checker::Checker;
use crate::fault::error::RunError;
use crate::fault::transient::is_transient;
use crate::observe::{Event, Unit};
use crate::run::damage::{damage_in, explained};
use crate::run::parts::{LostWindow, StalePart};
use crate::run::retry::{FailedAttempt, Retry};
use crate::units::publish::PartContext;
use catalog::ExportInCatalog;

pub(crate) use compare::{ComparedExport, ComparedExports};
pub use decide::{check_columns, sealed_before, tables_read, type_notes};
use outcome::{PartResult, as_empty, as_sealed, event_of, log_record, made_from, part_record};
use passes::PassMember;
pub(crate) use stage::PublishStage;
use tidetable_job::{Export, Period};

/// The results of the parts of an export, also if publishing was stopped.
#[derive(Default)]
pub(crate) struct PublishDone {
    /// By period, the last attempt.
    pub(crate) parts: BTreeMap<Period, (ExportRecord, Vec<CheckRecord>)>,
    /// The log of its table, if it could not be written.
    pub(crate) log: Option<ExportRecord>,
    /// Its catalog, if it could not be committed there.
    pub(crate) catalog: Option<DamageRecord>,
}

/// One pass over some parts of an export.
pub(crate) struct Round<'a> {
    compared: &'a ComparedExport<'a>,
    checker: &'a Checker<'a>,
    /// Indexes of the parts.
    indexes: &'a [usize],
    /// Shared scans by index.
    passes: BTreeMap<usize, PassMember>,
    /// The ids of columns that files get, if they have ids.
    column_ids: Option<&'a ColumnIds>,
    /// Whether transient failures are retried in another round.
    more: bool,
}

/// A part that was tried, and what its checks found.
pub(crate) struct TriedPart {
    /// Index of the part.
    index: usize,
    result: PartResult,
    checks: Vec<CheckRecord>,
}

/// What all rounds of an export are made with.
#[derive(Clone, Copy)]
struct ExportRounds<'a> {
    compared: &'a ComparedExport<'a>,
    checker: &'a Checker<'a>,
    /// The ids of columns that files get, if they have ids.
    column_ids: Option<&'a ColumnIds>,
}

/// What remains after a round.
#[derive(Default)]
struct RoundResult {
    /// Files under former names.
    obsolete: Vec<String>,
    /// Parts to try again, with the error.
    again: BTreeMap<usize, String>,
}

impl PublishStage<'_> {
    /// Publishes stale parts, several at a time. A failed part does not stop the others, and is retried
    /// after them if the error is transient.
    pub(crate) fn publish(
        &self,
        compared: &ComparedExport<'_>,
        checker: &Checker<'_>,
        retry: &mut Retry<'_>,
        done: &mut PublishDone,
        attempts: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        let log = match self.open_log(compared) {
            // What would be replaced could not be taken out of the log, and its readers would count both.
            Err(error) if is_of_log(&error) => {
                self.log_failed(compared.export, &error, done);
                return Ok(());
            }
            log => log?,
        };
        let mut catalog = ExportInCatalog::of(self, compared.export);
        let mut published = self.begin_list(compared, log.as_ref(), catalog.is_some())?;

        let rounds = ExportRounds { compared, checker, column_ids: log.as_ref().and_then(OpenLog::column_ids) };
        self.rounds(rounds, &mut published, retry, done, attempts)?;

        if let Some(log) = &log
            && (!published.parts.is_empty() || !compared.published.parts.is_empty())
        {
            let pinned = catalog.as_mut().map_or_else(|| Ok(Pinned::default()), ExportInCatalog::pinned)?;
            if let Err(error) = self.write_log(compared.export, log, &mut published, &pinned) {
                // Only the log is missing; the next run brings it up to its list.
                if is_in_the_way(&error) && !retry.has_more() {
                    self.log_failed(compared.export, &error, done);
                    return Ok(());
                }
                return Err(error.into());
            }
        }

        let Some(mut catalog) = catalog.filter(|catalog| catalog.is_owed(&published)) else { return Ok(()) };
        match catalog.bring_up(&mut published) {
            Err(RunError::Catalog { table, source }) if !(retry.has_more() && source.is_transient()) => {
                let undone = format!("commit {table}");
                let error = source.to_string();
                self.observer.event(Event::Note(format!("warning: {undone} was left undone: {error}")));
                done.catalog = Some(DamageRecord { undone, error });
                Ok(())
            }
            committed => committed,
        }
    }

    /// The list of an export with what is known before its first part is tried.
    fn begin_list(
        &self,
        compared: &ComparedExport<'_>,
        log: Option<&OpenLog<'_>>,
        has_catalog: bool,
    ) -> Result<Published, RunError> {
        let mut published = compared.published.clone();
        if !has_catalog {
            published.cataloged = None;
        }
        if let Some(log) = log {
            published.column_ids = log.column_ids().cloned();
        }
        let known: Vec<_> = compared.empty.iter().map(|part| as_empty(compared, part)).collect();
        record(self.store, &mut published, &self.job.name, &known)?;

        if published.job.is_empty() && !compared.parts.is_empty() {
            // Before the first part: files without a list are a list that was lost, which no run goes over by itself.
            self.job.name.clone_into(&mut published.job);
            published.save(self.store.blobs().as_ref())?;
        }
        Ok(published)
    }

    /// Tries the parts of an export, and those that failed by a transient error again, as often as `retry` allows.
    fn rounds(
        &self,
        rounds: ExportRounds<'_>,
        published: &mut Published,
        retry: &mut Retry<'_>,
        done: &mut PublishDone,
        attempts: &mut Vec<AttemptRecord>,
    ) -> Result<(), RunError> {
        let ExportRounds { compared, checker, column_ids } = rounds;
        let mut indexes: Vec<usize> = (0..compared.parts.len()).collect();
        loop {
            let name = format!("publish {}", compared.export.name);
            self.observer.event(Event::Stage { name, unit: Unit::Parts, total: indexes.len() as u64 });

            let passes = self.passes(compared, checker, &indexes);
            let round = Round { compared, checker, indexes: &indexes, passes, column_ids, more: retry.has_more() };
            let left = self.round(&round, published, done)?;
            self.note_passes(compared, &round.passes);

            sweep(self.store, &left.obsolete)?;
            sweep_retired(self.store, published, (self.options.clock)())?;
            self.options.stop.check()?;

            indexes = left.again.keys().copied().collect();
            if indexes.is_empty() {
                return Ok(());
            }
            let failed = left.again.into_iter().filter_map(|(index, error)| {
                let name = compared.parts.get(index)?.folder.clone();
                Some(FailedAttempt { name, error })
            });
            retry.wait(failed.collect(), attempts)?;
        }
    }

    /// Brings the log of the table of an export up to its list.
    fn write_log(
        &self,
        export: &Export,
        log: &OpenLog<'_>,
        published: &mut Published,
        pinned: &Pinned,
    ) -> Result<(), ExportError> {
        let (now, clock) = (self.options.now, (self.options.clock)());
        let times = LogTimes { now, clock, retention: export.snapshot_retention };
        log.write(published, times, pinned).map(drop)
    }

    /// The log of the table of an export, if it has one that may have to be written: parts are published, or an earlier run stopped
    /// before it wrote the log.
    fn open_log<'b>(&'b self, compared: &'b ComparedExport<'_>) -> Result<Option<OpenLog<'b>>, ExportError> {
        let Some(place) = compared.export.log_place() else { return Ok(None) };
        let log = OpenLog::open(self.store.blobs().as_ref(), &compared.published, place)?;
        Ok(Some(log).filter(|log| !compared.parts.is_empty() || !log.is_current()))
    }

    /// Records that the log of a table could not be written.
    fn log_failed(&self, export: &Export, error: &ExportError, done: &mut PublishDone) {
        let Some(place) = export.log_place() else { return };
        let record = log_record(export, place, error);
        self.observer.event(event_of(&record));
        done.log = Some(record);
    }

    /// Tries the parts of a round, several at the same time.
    fn round(
        &self,
        round: &Round<'_>,
        published: &mut Published,
        done: &mut PublishDone,
    ) -> Result<RoundResult, RunError> {
        if let Some(carrier) = &self.options.carrier {
            return self.carry(carrier.as_ref(), round, published, done);
        }

        let (next, halt) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            for _ in 0..self.options.jobs.clamp(1, round.indexes.len().max(1)) {
                let (sender, next, halt) = (sender.clone(), &next, &halt);
                scope.spawn(move || self.try_parts(round, next, halt, &sender));
            }

            drop(sender);
            let left = self.collect(round, &receiver, published, done);
            halt.store(true, Ordering::Relaxed);
            left
        })
    }

    /// Tries one part of a round after the other, until all are taken, the run is asked to stop, or `halt` is set.
    fn try_parts(&self, round: &Round<'_>, next: &AtomicUsize, halt: &AtomicBool, sender: &mpsc::Sender<TriedPart>) {
        while !halt.load(Ordering::Relaxed) && self.options.stop.asked().is_none() {
            let index = round.indexes.get(next.fetch_add(1, Ordering::Relaxed)).copied();
            let part = index.and_then(|index| Some((index, round.compared.parts.get(index)?)));
            let Some((index, part)) = part else { return };

            let mut checks = Vec::new();
            let result = self.runtime.block_on(self.try_part(round, index, part, &mut checks));
            if self.halts_after(round, &result) {
                halt.store(true, Ordering::Relaxed);
            }
            if sender.send(TriedPart { index, result, checks }).is_err() {
                return;
            }
        }
    }

    /// Whether no other part is tried after this one, as the option says for a part that failed.
    fn halts_after(&self, round: &Round<'_>, result: &PartResult) -> bool {
        self.options.fail_fast && !matches!(result, PartResult::Published(_)) && !round.tries_again(result)
    }

    /// Adds parts to the list as they are published, so that a stopped run keeps them.
    fn collect(
        &self,
        round: &Round<'_>,
        receiver: &mpsc::Receiver<TriedPart>,
        published: &mut Published,
        done: &mut PublishDone,
    ) -> Result<RoundResult, RunError> {
        let compared = round.compared;
        let mut left = RoundResult::default();
        while let Ok(first) = receiver.recv() {
            let (mut listed, mut records) = (Vec::new(), Vec::new());
            // Others that are ready are listed in the same write.
            for TriedPart { index, result, checks } in std::iter::once(first).chain(receiver.try_iter()) {
                let Some(part) = compared.parts.get(index) else { continue };
                if let PartResult::Failed(RunError::Interrupted { .. }) = &result {
                    continue;
                }

                let record = part_record(compared.export, part, &result);
                match &result {
                    PartResult::Failed(error) if round.tries_again(&result) => {
                        left.again.insert(index, error.to_string());
                    }
                    _ => self.observer.event(event_of(&record)),
                }
                records.push((part.period.clone(), (record, checks)));

                match result {
                    PartResult::Published(part) => listed.push(*part),
                    PartResult::Sealed => listed.extend(as_sealed(compared, part)),
                    PartResult::Refused | PartResult::Failed(_) => {}
                }
            }

            retire(self.store, published, &listed, (self.options.clock)());
            record(self.store, published, &self.job.name, &listed)?;
            done.parts.extend(records);
            left.obsolete.extend(listed.into_iter().flat_map(|part| part.obsolete));
        }
        Ok(left)
    }

    /// Checks and publishes one part.
    async fn try_part(
        &self,
        round: &Round<'_>,
        index: usize,
        part: &StalePart,
        found: &mut Vec<CheckRecord>,
    ) -> PartResult {
        let (compared, member) = (round.compared, round.passes.get(&index));
        let bounds = part.period.bounds(self.job.timezone);

        let work = async {
            if let Some(done) = self.without_rows(compared, part) {
                return done;
            }
            if let Some(PassMember { pass, at }) = member {
                let shared = compared.session.for_shared_scan(pass, *at);
                match self.write_part(round, part, &shared, found).await {
                    // The damage may lie in another part of the files that are read together.
                    Err(error) if damage_in(&error).is_some() => pass.finish(*at),
                    done => return done,
                }
            }
            self.write_part(round, part, &compared.session.restricted(bounds), found).await
        };
        let done: Result<PartResult, RunError> = tokio::select! {
            done = work => done,
            stopped = self.options.stop.wait() => Err(stopped),
        };

        if let Some(PassMember { pass, at }) = member {
            pass.finish(*at);
            if self.options.stop.asked().is_some() {
                pass.stop();
            }
        }
        done.unwrap_or_else(|error| PartResult::Failed(explained(self.store, error)))
    }

    /// Checks and publishes one part by the scans of `session`.
    async fn write_part(
        &self,
        round: &Round<'_>,
        part: &StalePart,
        session: &Session,
        found: &mut Vec<CheckRecord>,
    ) -> Result<PartResult, RunError> {
        let compared = round.compared;
        let work = compared.work(part, round.column_ids);
        let params = work.params(&part.period, self.job, self.options.now);
        let context = self.context(compared.export);

        let written = work.write(context, session, &params, round.checker, &compared.tables).await?;
        *found = written.checks;
        let Some(draft) = written.draft else { return Ok(PartResult::Refused) };
        Ok(PartResult::Published(Box::new(draft.settle(&work.request(context, session, &params))?)))
    }
}

impl PublishStage<'_> {
    /// The result of a part whose query is not run; `None` for others.
    fn without_rows(&self, compared: &ComparedExport<'_>, part: &StalePart) -> Option<Result<PartResult, RunError>> {
        if let Some(LostWindow { table, job, window }) = part.lost.clone() {
            return Some(Err(RunError::LostCells { table, job, window }));
        }
        if part.sealed {
            return Some(Ok(PartResult::Sealed));
        }
        if !part.is_empty {
            return None;
        }
        // Appended rows of earlier runs stay.
        let stays = Some(part).filter(|_| compared.export.accumulates()).and_then(|part| as_sealed(compared, part));
        let done = stays.map_or_else(|| self.withdraw(compared, part), Ok);
        Some(done.map(|done| PartResult::Published(Box::new(done))))
    }

    fn context<'b>(&'b self, export: &'b Export) -> PartContext<'b> {
        let (job, store, options) = (self.job, self.store, self.options);
        PartContext { job, store, export, now: options.now, run: &options.run, apart: None }
    }

    /// Withdraws the published files of a part that has no records any more.
    fn withdraw(&self, compared: &ComparedExport<'_>, part: &StalePart) -> Result<PublishedPart, RunError> {
        let empty = EmptyPart {
            store: self.store,
            export: &compared.export.name,
            label: &part.label,
            made_from: made_from(compared, part),
            previous: part.previous.as_ref(),
            keep_old: compared.export.log.is_some(),
        };
        Ok(empty.withdraw()?)
    }
}

/// Whether the log of a table cannot be followed because of what it holds, not because of the storage.
fn is_of_log(error: &ExportError) -> bool {
    matches!(error, ExportError::Log { .. })
}

/// Whether a file is in the place of the directory of a log.
fn is_in_the_way(error: &ExportError) -> bool {
    matches!(error, ExportError::Store(StoreError::Blob(BlobError::NotADirectory { .. })))
}

impl Round<'_> {
    fn tries_again(&self, tried: &PartResult) -> bool {
        matches!(tried, PartResult::Failed(error) if self.more && is_transient(error))
    }
}
