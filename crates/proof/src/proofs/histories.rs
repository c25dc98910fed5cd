//! Histories of a directory: files are added, changed, copied, renamed, removed and restored, existing and missing
//! rows are deleted, runs remove vanished inputs and run concurrently with deletes. After each step the table must
//! match the model of names, a second run must find nothing to do, and every day whose cells changed must be marked.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidetable_layout::KeyRange;
use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{StoreError, Version, VersionEdit};

use super::kept::{tidy, whole};
use super::{Figures, each_seed};
use crate::cells::{Cells, cells_in, same};
use crate::event::{DAY, START};
use crate::finding::{Finding, Result};
use crate::history::{Change, Folder, Names, Ran};
use crate::random::Random;
use crate::sim::Shelf;
use crate::step::{Kind, Script, Step};
use crate::world::{Done, World};

/// Makes `operations` steps for each seed.
///
/// # Errors
/// The first difference.
pub fn prove(first: u64, seeds: u64, operations: u64) -> Result<Figures> {
    each_seed(first, seeds, |seed| run(seed, operations))
}

/// A table, its directory, and the model.
struct History {
    world: World,
    kind: Kind,
    folder: Folder,
    names: Names,
    script: Script,
}

fn run(seed: u64, operations: u64) -> Result<Figures> {
    let mut random = Random::new(seed);
    let kind = Kind::any(&mut random);
    let mut world = World::new(Arc::new(Shelf::default()), kind, seed)?;
    world.exact = true;
    let script = Script::new(kind, Random::new(random.number()), 6);
    let names = Names::new(kind.dated, World::rule(kind)?);
    let mut history = History { world, kind, folder: Folder::default(), names, script };

    let mut figures = Figures::default();
    let mut log: Vec<String> = Vec::new();
    for _ in 0..operations {
        let step = history.step(&mut random, &mut log);
        let name = step.map_err(|finding| finding.at(format_args!("after {}", log.join("; "))))?;
        if log.len() > 60 {
            log.remove(0);
        }
        figures.add(&Figures(vec![("operations", 1), (name, 1)]));
    }

    whole(history.world.table(), true)?;
    figures.add(&Figures(vec![("seeds", 1)]));
    Ok(figures)
}

impl History {
    fn step(&mut self, random: &mut Random, log: &mut Vec<String>) -> Result<&'static str> {
        match random.below(100) {
            0..45 => {
                let change = self.folder.change(random, || self.script.events());
                let files: Vec<String> =
                    self.folder.files().map(|(name, hash)| format!("{name}:{:.4}", hash.to_string())).collect();
                log.push(format!("{change:?} to {}", files.join(" ")));
                Ok(match change {
                    Change::Write => "files written",
                    Change::Grow => "files grown",
                    Change::Copy => "files copied",
                    Change::Rename => "files renamed",
                    Change::RenameAndGrow => "files renamed and grown",
                    Change::Remove => "files removed",
                    Change::Touch => "files touched",
                })
            }
            45..72 => {
                let without = if random.one_in(5) { vec![Folder::any_name(random)] } else { Vec::new() };
                log.push(format!("run without {without:?}"));
                self.run(random, &without, false)
            }
            72..80 => {
                let target = self.script.target();
                log.push(format!("delete {target}"));
                self.delete(target)
            }
            80..88 => self.keep(Step::Compact(random.below(30) as i64)),
            88..91 => self.keep(Step::Vacuum(1 + random.below(4))),
            91..95 => {
                let without = if random.one_in(3) { vec![Folder::any_name(random)] } else { Vec::new() };
                log.push(format!("rebuild without {without:?}"));
                self.run(random, &without, true)
            }
            _ => {
                let (target, anew) = (self.script.target(), random.one_in(2));
                log.push(format!("delete {target} during a run, all anew: {anew}"));
                self.met(target, anew)
            }
        }
    }

    fn latest(&self) -> Result<Option<Version>> {
        Ok(self.world.table().latest()?)
    }

    /// The base version and edit of a run, and the inputs it appends to; `None` if there is no table to rebuild.
    fn prepared(&self, without: &[String], anew: bool) -> Result<Option<(Version, VersionEdit, Vec<String>)>> {
        if !anew {
            return self.world.prepared_without(&self.folder, without).map(Some);
        }
        let Some(latest) = self.latest()? else { return Ok(None) };
        let edit = self.world.rebuilt(&self.folder, &latest, without)?;
        Ok(Some((latest, edit, Vec::new())))
    }

    fn expect(&mut self, without: &[String], grown: &[String], anew: bool) -> Result<Ran, Vec<String>> {
        if anew { self.names.rebuild(&self.folder, without) } else { self.names.run(&self.folder, without, grown) }
    }

    /// A run; if vanished inputs stop it, it is repeated without them or with them restored.
    fn run(&mut self, random: &mut Random, without: &[String], anew: bool) -> Result<&'static str> {
        if anew && self.latest()?.is_none() {
            return Ok("rebuilds of nothing");
        }
        let before = self.cells()?;
        let prepared = self.prepared(without, anew);
        let grown = grown_in(&prepared);
        // Which grown inputs must be read as a whole depends on cells: the model leaves it open, and only bounds the
        // vanished inputs that may stop the run.
        let is_open = !anew && self.names.has_grown(&self.folder);
        match (prepared, self.expect(without, &grown, anew)) {
            (Ok(Some((base, edit, _))), Ok(ran)) => {
                self.commit(base, &edit)?;
                self.look("a run", &before)?;
                self.nothing_is_left()?;
                Ok(match anew {
                    true => "rebuilds",
                    false if ran.appends && !ran.builds_anew => "runs that append",
                    false => "runs",
                })
            }
            (Err(Finding::Gone(gone)), Err(expected)) => {
                let is_right = gone.iter().all(|name| expected.contains(name)) && (is_open || gone == expected);
                if !is_right {
                    return Err(Finding::new(format!("the error names {gone:?} as gone, not {expected:?}")));
                }
                let in_part = !anew && random.one_in(2);
                let mut grown = if in_part { self.run_in_part(without)? } else { Vec::new() };
                let is_restored = random.one_in(2);
                if is_restored {
                    let names = &self.names;
                    self.folder.put_back(&gone, |name| names.content(name));
                }
                if is_restored && !in_part {
                    return Ok("runs stopped, and files put back");
                }
                let mut given_up = without.to_vec();
                given_up.extend(gone.into_iter().filter(|_| !is_restored));
                let prepared = self.prepared(&given_up, anew);
                grown.extend(grown_in(&prepared));
                match (prepared?, self.expect(&given_up, &grown, anew)) {
                    (Some((base, edit, _)), Ok(_)) => self.commit(base, &edit)?,
                    (_, expected) => return Err(Finding::new(format!("without {given_up:?}: {expected:?}"))),
                };
                self.look("a run without what is gone", &before)?;
                self.nothing_is_left()?;
                Ok(match (in_part, is_restored) {
                    (true, true) => "runs in part, then with files put back",
                    (true, false) => "runs in part, then without what is gone",
                    (false, _) => "runs without what is gone",
                })
            }
            (Err(finding), Ok(_)) => Err(finding.at("a run that should succeed")),
            (Err(finding), Err(gone)) => Err(finding.at(format_args!("a run that misses {gone:?}"))),
            (Ok(_), Err(gone)) => Err(Finding::new(format!("a run did not report {gone:?} as gone"))),
            (Ok(None), Ok(_)) => Ok("rebuilds of nothing"),
        }
    }

    /// A run that leaves windows as they are; a second one must find nothing to do. Returns the inputs it appends to.
    fn run_in_part(&self, without: &[String]) -> Result<Vec<String>> {
        let ((base, edit, grown), _) = self.world.prepared_in_part(&self.folder, without)?;
        self.commit(base, &edit)?;
        let ((_, edit, _), gone) = self.world.prepared_in_part(&self.folder, &[])?;
        match (edit.is_empty(), gone.is_empty()) {
            (true, false) => Ok(grown),
            (true, true) => Err(Finding::new("a run in part left nothing to do")),
            (false, _) => Err(Finding::new(format!("a second run in part would commit {edit:?}"))),
        }
    }

    fn commit(&self, base: Version, edit: &VersionEdit) -> Result<Done> {
        if edit.is_empty() && base.number > 0 {
            return Ok(Done::Nothing);
        }
        self.world.commit(base, edit, self.names.now)
    }

    /// A second run must find nothing to do.
    fn nothing_is_left(&self) -> Result<()> {
        let (_, edit, _) = self.world.prepared_without(&self.folder, &[])?;
        if edit.is_empty() { Ok(()) } else { Err(Finding::new(format!("a second run would commit {edit:?}"))) }
    }

    fn delete(&mut self, target: DeleteTarget) -> Result<&'static str> {
        let before = self.cells()?;
        let Some(snapshot) = self.world.snapshot()? else { return Ok("deletes of nothing") };
        let edit = DeletePlan::new(&snapshot, target.clone())?.edit();
        if !edit.is_empty() {
            self.world.commit(snapshot.version().clone(), &edit, self.names.now)?;
        }
        self.names.delete(target);
        self.look("a delete", &before)?;
        Ok("deletes")
    }

    /// A delete committed concurrently with a run.
    fn met(&mut self, target: DeleteTarget, anew: bool) -> Result<&'static str> {
        let (Some(snapshot), before) = (self.world.snapshot()?, self.cells()?) else { return Ok("deletes of nothing") };

        let mut tried = self.names.clone();
        let prepared = self.prepared(&[], anew);
        let grown = grown_in(&prepared);
        let expected = if anew { tried.rebuild(&self.folder, &[]) } else { tried.run(&self.folder, &[], &grown) };
        let (prepared, ran) = match (prepared, expected) {
            (Ok(Some(prepared)), Ok(ran)) => (prepared, ran),
            (Err(Finding::Gone(_)), Err(_)) | (Ok(None), _) => return Ok("runs stopped"),
            (Err(finding), _) => return Err(finding.at("a run that a delete meets")),
            (Ok(_), Err(gone)) => return Err(Finding::new(format!("a run did not report {gone:?} as gone"))),
        };

        let edit = DeletePlan::new(&snapshot, target.clone())?.edit();
        if !edit.is_empty() {
            self.world.commit(snapshot.version().clone(), &edit, self.names.now)?;
        }
        let (base, run, _) = prepared;
        let done = self.commit(base, &run);

        let brings_known = ran.builds_anew || ran.appends;
        let both = brings_known && ran.has_new && !edit.is_empty();
        match done {
            // The delete does not apply to new inputs, but they share SSTs with inputs to which it does.
            Err(Finding::Store(StoreError::Conflict { .. })) if both => {
                self.names.delete(target);
                self.look("a delete that a run gave way to", &before)?;
                return Ok("runs that gave way to a delete");
            }
            Err(finding) => return Err(finding.at("a run that met a delete")),
            Ok(_) if both => return Err(Finding::new("a run of new inputs did not give way to a delete")),
            Ok(_) => {}
        }

        // The delete applies to known inputs that the run read again, and not to new ones.
        let target = (!edit.is_empty()).then_some(target);
        if !brings_known {
            target.iter().for_each(|target| self.names.delete(target.clone()));
        }
        let expected = self.expect(&[], &grown, anew);
        expected.map_err(|gone| Finding::new(format!("{gone:?} are missing")))?;
        if brings_known {
            target.into_iter().for_each(|target| self.names.delete(target));
        }
        self.look("a run that met a delete", &before)?;
        self.nothing_is_left()?;
        Ok("runs that met a delete")
    }

    /// A compaction or a vacuum, which change no answer at their logical time.
    fn keep(&mut self, step: Step) -> Result<&'static str> {
        let before = self.cells()?;
        let done = self.world.act(&step, &crate::event::Inputs::default(), self.names.now)?;
        if let (Step::Compact(_), Done::Committed(_), Some(version)) = (&step, done, self.latest()?) {
            self.names.now = version.now;
        }
        self.look(step.name(), &before)?;
        if matches!(step, Step::Vacuum(_)) {
            tidy(self.world.table())?;
        }
        Ok(step.name())
    }

    fn cells(&self) -> Result<Cells> {
        self.world.cells()
    }

    /// Compares the table with the model; `before` are its cells before the step.
    fn look(&mut self, what: &str, before: &Cells) -> Result<()> {
        self.names.show(&self.folder);
        let Some(snapshot) = self.world.snapshot()? else { return Ok(()) };
        let found = cells_in(&snapshot, &KeyRange::all())?;
        same(what, &found, self.names.cells())?;
        if !self.kind.dated {
            return Ok(());
        }
        let version = snapshot.version();
        for day in changed_days(before, &found) {
            let days = version.windows.iter().filter_map(|window| window.days.get(&(day as i32)));
            // A step may make two commits.
            if !days.copied().any(|changed| changed + 2 > version.number) {
                return Err(Finding::new(format!("{what}: day {day} changed and is not marked")));
            }
        }
        Ok(())
    }
}

/// The inputs to which a prepared run appends.
fn grown_in(prepared: &Result<Option<(Version, VersionEdit, Vec<String>)>>) -> Vec<String> {
    prepared.as_ref().ok().and_then(Option::as_ref).map(|(_, _, grown)| grown.clone()).unwrap_or_default()
}

/// The days, since the epoch, of the rows that differ; keys are dated.
fn changed_days(before: &Cells, after: &Cells) -> BTreeSet<i64> {
    let mut days = BTreeSet::new();
    for (cell, value) in before.iter().chain(after) {
        if before.get(cell) != Some(value) || after.get(cell) != Some(value) {
            let day = cell.0.rsplit_once("#201801").and_then(|(_, day)| day.parse::<i64>().ok());
            days.extend(day.map(|day| START / DAY + day - 1));
        }
    }
    days
}
