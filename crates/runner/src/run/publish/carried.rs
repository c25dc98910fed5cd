//! Publishing of parts that other processes write: they check and write, and this one settles and lists.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use tidetable_record::CheckRecord;
use tidetable_store::published::{ColumnIds, Published};

use crate::fault::error::RunError;
use crate::observe::Event;
use crate::run::parts::StalePart;
use crate::run::publish::compare::ComparedExport;
use crate::run::publish::outcome::PartResult;
use crate::run::publish::stage::PublishStage;
use crate::run::publish::{PublishDone, Round, RoundResult};
use crate::units::carrier::UnitCarrier;
use crate::units::wire::{Answer, Done, Unit, Work};
use crate::units::work::PublishWork;

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
        let compared = round.compared;
        let (sender, receiver) = mpsc::channel::<(usize, PartResult, Vec<CheckRecord>)>();
        let (mut places, mut works) = (Vec::new(), Vec::new());
        for place in round.places.iter().copied() {
            let Some(part) = compared.parts.get(place) else { continue };
            match self.without_rows(compared, part) {
                Some(tried) => drop(sender.send((place, tried.unwrap_or_else(PartResult::Failed), Vec::new()))),
                None => {
                    places.push(place);
                    works.push(compared.work(part, round.column_ids));
                }
            }
        }
        let units: Vec<Unit> = works.iter().map(|work| self.unit(Work::Publish(Box::new(work.clone())))).collect();
        let (halt, known) = (AtomicBool::new(false), Mutex::new(HashSet::new()));
        std::thread::scope(|scope| {
            let (units, works, places, halt, known) = (&units, &works, &places, &halt, &known);
            let carried = scope.spawn(move || {
                let counted = self.tally.of(units);
                let take = |at: usize, answer: Answer| {
                    counted.add(at, &answer);
                    let (Some(place), Some(work)) = (places.get(at), works.get(at)) else { return true };
                    // A second answer leaves its files to vacuum, or removes them here.
                    if !known.lock().unwrap_or_else(PoisonError::into_inner).insert(at) {
                        self.drop_answer(answer, &work.folder);
                        return true;
                    }
                    let mut found = Vec::new();
                    let tried = self.settle(round, work, answer, &mut found).unwrap_or_else(PartResult::Failed);
                    let stays = !matches!(tried, PartResult::Published(_)) && !round.tries_again(&tried);
                    if self.options.fail_fast && stays {
                        halt.store(true, Ordering::Relaxed);
                    }
                    sender.send((*place, tried, found)).is_ok() && !halt.load(Ordering::Relaxed)
                };
                let note = |note| self.observer.event(Event::Note(note));
                carrier.carry(units, &self.options.stop, &take, &note)
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
        Unit {
            root: self.root.to_owned(),
            run: self.options.run.clone(),
            now: self.options.now,
            job: self.reference.cloned(),
            work,
        }
    }
}
