//! Rebuild planning: which inputs a load reads, and which windows it rebuilds.
//!
//! A changed input rebuilds the windows that its old or new content touches, from all live inputs of those windows.
//! These inputs are read again, for those windows only. A window that holds rows of a vanished input cannot be rebuilt:
//! it stays as it is, and the inputs that changed owe it ([`OwedWindow`]) until a later load can rebuild it.

use std::collections::BTreeSet;

use tidetable_source::InputFile;
use tidetable_store::Result;
use tidetable_store::version::days_in;
use tidetable_store::version::{Input, InputName, OwedWindow, VersionEdit};

use crate::encode::PieceOutcome;
use crate::encoders::Encoders;
use crate::input::plan::Grown;
use crate::input::read::read_ahead;
use crate::pass::passes;
use crate::spec::{LoadTarget, Loader};
use crate::work::{HeldInput, ToRead, Work};

/// Plans the work of each table, with its edit as far as that is known before reading.
pub(crate) fn plan(loader: &Loader<'_>) -> Result<Vec<(VersionEdit, Work)>> {
    let surveys = survey(loader)?;
    loader.targets.iter().zip(&surveys).map(|(target, windows)| plan_target(target, windows)).collect()
}

/// `now_in`: the windows that each surveyed input touches now.
fn plan_target(target: &LoadTarget<'_>, now_in: &[BTreeSet<i64>]) -> Result<(VersionEdit, Work)> {
    let LoadTarget { base, plan, .. } = target;
    let window = target.layout.spec().window;
    let mut edit = VersionEdit { base: base.number, ..VersionEdit::default() };
    if !tidetable_sstable::failpoint!(ForgetCopies) {
        edit.names.clone_from(&plan.names);
    }
    edit.removed.extend(plan.forgotten.iter().cloned());
    edit.inputs.extend(plan.restated.iter().cloned());
    let days_in = |days: &[i32], start: i64| days_in(days, window, start);

    // What the windows of each input hold of it, for those whose rows are read or removed.
    let mut inputs: Vec<(ToRead, Vec<OwedWindow>)> = Vec::new();
    let mut removed: Vec<(&Input, Vec<OwedWindow>)> = Vec::new();
    for ((file, old), now_in) in plan.changed.iter().zip(now_in) {
        let cut = plan.prefixes.get(&file.path).copied();
        let prefix = cut.map(|end| (end, old.hash));
        let to_read = ToRead { changed: true, prefix, cut, ..ToRead::new(file, old.input_seqno) };
        inputs.push((to_read, with_now(old.holds(days_in), now_in)));
    }
    for ((input_seqno, file), now_in) in plan.resumed.iter().zip(now_in.iter().skip(plan.changed.len())) {
        let to_read = ToRead { changed: true, ..ToRead::new(file, *input_seqno) };
        let name = base.names.iter().find(|name| name.input_seqno == *input_seqno);
        inputs.push((to_read, with_now(name.map(|name| name.owed.clone()).unwrap_or_default(), now_in)));
    }
    for old in &plan.given_up {
        let mut held = old.holds(days_in);
        if tidetable_sstable::failpoint!(TakeOutOfOneWindow) {
            held.truncate(1);
        }
        removed.push((old, held));
        edit.removed.push(old.path.clone());
    }

    let held = inputs.iter().map(|(_, held)| held).chain(removed.iter().map(|(_, held)| held));
    let mut rebuilt: BTreeSet<i64> = held.flatten().map(|held| held.start).collect();
    rebuilt.extend(&plan.owing);
    let vanished = plan.stuck();
    let stuck: BTreeSet<i64> = rebuilt.extract_if(.., |start| vanished.contains(start)).collect();

    let leave = |held: &mut Vec<OwedWindow>, edit: &mut VersionEdit| {
        for left in held.extract_if(.., |held| !stuck.contains(&held.start)) {
            edit.days.entry(left.start).or_default().extend(left.days);
        }
    };
    let mut inputs: Vec<ToRead> = inputs
        .into_iter()
        .map(|(to_read, mut left)| {
            leave(&mut left, &mut edit);
            ToRead { left, ..to_read }
        })
        .collect();
    for (old, mut left) in removed {
        leave(&mut left, &mut edit);
        if let Some(name) = edit.names.iter_mut().find(|name| name.input_seqno == old.input_seqno) {
            name.owed = left;
        }
    }
    settle_names(target, &rebuilt, &mut edit);

    for Grown { file, held, from, hash } in &plan.grown {
        let again = held.touches().any(|start| rebuilt.contains(&start));
        let input = Some(HeldInput { input: held.clone(), end: *from, again }).filter(|held| held.end > 0);
        let cut = input.as_ref().map(|held| held.end);
        let to_read = ToRead { expected: *hash, held: input, cut, ..ToRead::new(file, held.input_seqno) };
        inputs.push(to_read.owing(&held.owed, &rebuilt, &mut edit));
    }
    for (input_seqno, file) in &plan.new {
        inputs.push(ToRead::new(file, *input_seqno));
    }
    for (file, input) in &plan.unchanged {
        if !input.touches().any(|start| rebuilt.contains(&start)) {
            continue;
        }
        let to_read = ToRead { counts: false, expected: Some(input.hash), ..ToRead::new(file, input.input_seqno) };
        let mut to_read = to_read.owing(&input.owed, &rebuilt, &mut edit);
        if !to_read.settles.is_empty() {
            // Its new record follows when it has been read.
            edit.inputs.retain(|restated| restated.input_seqno != input.input_seqno);
            to_read.held = Some(HeldInput { input: Input::clone(input), end: u64::MAX, again: true });
        }
        inputs.push(to_read);
    }
    inputs.sort_by_key(|input| input.input_seqno);
    edit.rebuilt = rebuilt.into_iter().collect();
    let work = Work { rebuilt: edit.rebuilt.clone(), tombstones: base.tombstones.clone(), inputs };
    Ok((edit, work))
}

/// The windows that hold rows of an input, and those that its present content touches.
fn with_now(mut held: Vec<OwedWindow>, now_in: &BTreeSet<i64>) -> Vec<OwedWindow> {
    let known: BTreeSet<i64> = held.iter().map(|held| held.start).collect();
    let new = now_in.difference(&known);
    held.extend(new.map(|start| OwedWindow { start: *start, rows: 0, days: Vec::new(), held: None, lost: false }));
    held
}

/// Removes rebuilt windows from what names without rows owe.
fn settle_names(target: &LoadTarget<'_>, rebuilt: &BTreeSet<i64>, edit: &mut VersionEdit) {
    let LoadTarget { base, plan, .. } = target;
    let is_replaced = |name: &InputName| {
        edit.names.iter().any(|new| new.input_seqno == name.input_seqno)
            || plan.resumed.iter().any(|(input_seqno, _)| *input_seqno == name.input_seqno)
    };
    let owes = |name: &&InputName| name.owed.iter().any(|owed| rebuilt.contains(&owed.start));
    let settled: Vec<InputName> = base.names.iter().filter(|name| owes(name) && !is_replaced(name)).cloned().collect();
    edit.names.extend(settled);
    for name in &mut edit.names {
        for owed in name.owed.extract_if(.., |owed| rebuilt.contains(&owed.start)) {
            edit.days.entry(owed.start).or_default().extend(owed.days);
        }
    }
}

/// Reads the changed and then the resumed inputs of each target's plan, to find the windows that each touches.
fn survey(loader: &Loader<'_>) -> Result<Vec<Vec<BTreeSet<i64>>>> {
    let look = |(input_seqno, file): (u64, &InputFile)| {
        let to_read = ToRead::new(file, input_seqno);
        ToRead { counts: false, changed: true, ..to_read }
    };
    let of_target = |target: &LoadTarget<'_>| {
        let changed = target.plan.changed.iter().map(|(file, old)| (old.input_seqno, file));
        let resumed = target.plan.resumed.iter().map(|(input_seqno, file)| (*input_seqno, file));
        let inputs = changed.chain(resumed).map(look).collect();
        Work { rebuilt: Vec::new(), tombstones: target.base.tombstones.clone(), inputs }
    };
    let worker = loader.worker();
    let works: Vec<Work> = loader.targets.iter().map(of_target).collect();
    let encoders: Vec<Encoders<'_>> = loader.targets.iter().map(|target| Encoders::new(target.layout)).collect();
    let mut found: Vec<Vec<BTreeSet<i64>>> =
        works.iter().map(|work| vec![BTreeSet::new(); work.inputs.len()]).collect();
    for pass in passes(&works) {
        read_ahead(loader.feed, &pass.files(&works), 2, &|_| {}, |messages| {
            for message in messages {
                let outcome = worker.encode_piece(message?, &pass.readings, &works, &encoders)?;
                let PieceOutcome::Encoded { input, parts, .. } = outcome else { continue };
                for ((target, index), part) in pass.readings[input].uses.iter().zip(parts) {
                    found[*target][*index].extend(part.chunk.windows.into_keys());
                }
            }
            Ok(())
        })?;
    }
    Ok(found)
}
