//! Publishing of parts that other processes write: they check and write, and this one settles and lists.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};

use tidetable_record::CheckRecord;
use tidetable_store::published::{ColumnIds, Published};

use crate::fault::error::RunError;
use crate::observe::Event;
use crate::run::parts::StalePart;
use crate::run::publish::compare::ComparedExport;
use crate::run::publish::outcome::PartResult;
use crate::run::publish::stage::PublishStage;
use crate::run::publish::{PublishDone, Round, RoundResult, TriedPart};
use crate::units::carrier::UnitCarrier;
use crate::units::wire::{Answer, Done, Unit, Work};
use crate::units::work::PublishWork;

/// A part that another process writes.
struct CarriedPart {
    /// Index of the part.
    index: usize,
    work: PublishWork,
}

impl ComparedExport<'_> {
    /// The unit that writes a part.
    pub(crate) fn work(&self, part: &StalePart, column_ids: Option<&ColumnIds>) -> PublishWork {
        let versions = self.snapshots.iter().map(|snapshot| {
            let version = snapshot.version();
            (snapshot.table().name().to_owned(), (version.number, version.commit.clone()))
        });
        PublishWork {
            export: self.export.name.clone(),
            label: part.label.clone(),
            folder: part.folder.clone(),
            query: self.query.clone(),
            sources: part.sources.clone(),
            previous: part.previous.clone(),
            versions: versions.collect(),
            column_ids: column_ids.cloned(),
        }
    }
}

impl PublishStage<'_> {
    /// Tries the parts of a round by other processes.
    pub(super) fn carry(
        &self,
        carrier: &dyn UnitCarrier,
        round: &Round<'_>,
        published: &mut Published,
        done: &mut PublishDone,
    ) -> Result<RoundResult, RunError> {
        let (sender, receiver) = mpsc::channel();
        let parts = self.parts_to_carry(round, &sender);
        let works = parts.iter().map(|part| Work::Publish(Box::new(part.work.clone())));
        let units: Vec<Unit> = works.map(|work| self.unit(work)).collect();
        let halt = AtomicBool::new(false);

        std::thread::scope(|scope| {
            let (units, parts, halt) = (&units, &parts, &halt);
            let carried = scope.spawn(move || {
                let counted = self.tally.of(units);
                let known = Mutex::new(HashSet::new());
                carrier.carry(
                    units,
                    &self.options.stop,
                    &|at, answer| {
                        counted.add(at, &answer);
                        let Some(part) = parts.get(at) else { return true };
                        // A second answer leaves its files to vacuum, or removes them here.
                        if !known.lock().unwrap_or_else(PoisonError::into_inner).insert(at) {
                            self.drop_answer(answer, &part.work.folder);
                            return true;
                        }

                        let tried = self.settle_answer(round, part, answer);
                        if self.halts_after(round, &tried.result) {
                            halt.store(true, Ordering::Relaxed);
                        }
                        sender.send(tried).is_ok() && !halt.load(Ordering::Relaxed)
                    },
                    &|note| self.observer.event(Event::Note(note)),
                )
            });

            let left = self.collect(round, &receiver, published, done);
            halt.store(true, Ordering::Relaxed);
            let carried = carried.join();

            let left = left?;
            match carried {
                Ok(Ok(_)) => Ok(left),
                Ok(Err(error)) => Err(error.into()),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// The parts of a round whose queries are run. The results of the others are sent at once.
    fn parts_to_carry(&self, round: &Round<'_>, sender: &Sender<TriedPart>) -> Vec<CarriedPart> {
        let mut carried = Vec::new();
        for index in round.indexes.iter().copied() {
            let Some(part) = round.compared.parts.get(index) else { continue };
            match self.without_rows(round.compared, part) {
                Some(result) => {
                    let result = result.unwrap_or_else(PartResult::Failed);
                    drop(sender.send(TriedPart { index, result, checks: Vec::new() }));
                }
                None => carried.push(CarriedPart { index, work: round.compared.work(part, round.column_ids) }),
            }
        }
        carried
    }

    /// Settles the part of an answer, or takes its failure.
    fn settle_answer(&self, round: &Round<'_>, part: &CarriedPart, answer: Answer) -> TriedPart {
        let mut checks = Vec::new();
        let result = self.settle(round, &part.work, answer, &mut checks).unwrap_or_else(PartResult::Failed);
        TriedPart { index: part.index, result, checks }
    }

    /// Settles the part of an answer.
    fn settle(
        &self,
        round: &Round<'_>,
        work: &PublishWork,
        answer: Answer,
        found: &mut Vec<CheckRecord>,
    ) -> Result<PartResult, RunError> {
        let compared = round.compared;
        let part = match answer.done {
            Ok(Done::Publish(part)) => part,
            Ok(_) => return Err(RunError::OtherAnswer { executor: answer.executor }),
            Err(failure) => return Err(failure.into()),
        };

        round.checker.merge(part.failing.clone());
        let written = part.take_over(self.store, &work.folder)?;
        *found = written.checks;
        let Some(draft) = written.draft else { return Ok(PartResult::Refused) };

        let request = work.request(self.context(compared.export), &compared.session, &[]);
        Ok(PartResult::Published(Box::new(draft.settle(&request)?)))
    }

    /// Removes the files of an answer that is not used.
    fn drop_answer(&self, answer: Answer, folder: &str) {
        if let Ok(Done::Publish(part)) = answer.done {
            drop(part.take_over(self.store, folder));
        }
    }

    fn unit(&self, work: Work) -> Unit {
        Unit::of_run(self.root, &self.options.run, self.options.now, self.reference, work)
    }
}
