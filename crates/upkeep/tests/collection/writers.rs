//! Concurrent and late writers: interleaved commits of real edits.

use std::collections::BTreeSet;
use std::fs::File;
use std::time::{Duration, SystemTime};

use tidetable_source::ContentHash;
use tidetable_store::{Input, Snapshot, StoreError, Version, VersionEdit};
use tidetable_upkeep::compaction::{Compaction, CompactionPlan};
use tidetable_upkeep::{VacuumOptions, VacuumPlan, VerifyOptions, verify};

use super::model::{Cells, World};
use super::{event, load, loaded, path};

/// A load of new inputs, not yet committed.
fn worked_out(world: &World) -> (Version, VersionEdit) {
    let base = world.snapshot().map(|snapshot| snapshot.version().clone()).unwrap();
    let edit = world.work_out(&base);
    (base, edit)
}

fn names(edit: &VersionEdit) -> BTreeSet<String> {
    edit.ssts.values().flatten().map(|sst| sst.id.clone()).collect()
}

fn vacuum_all(world: &World) {
    let options = VacuumOptions { before: i64::MAX, half_written_before: 0, keep_versions: 1 };
    VacuumPlan::new(&world.table(), options).unwrap().run(&world.ids).unwrap();
}

fn sound(world: &World) {
    let report = verify(&world.table(), VerifyOptions { all_versions: true, ..VerifyOptions::default() }).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn two_loads_of_different_inputs_both_land() {
    let (world, mut model) = loaded();
    let files = [vec![event(5, 0), event(0, 0)], vec![event(6, 0), event(0, 0)]].map(|events| model.load(events));
    // Each sees only its own input.
    world.write(&files[0]);
    let first = worked_out(&world);
    world.hide(&files[0]);
    world.write(&files[1]);
    let second = worked_out(&world);
    world.write(&files[0]);
    assert_eq!(first.1.inputs[0].input_seqno, second.1.inputs[0].input_seqno);
    for (base, edit) in [first, second] {
        world.table().commit(base, &edit, &world.ids, model.now).unwrap();
    }
    assert_eq!(world.cells(), model.cells());
    let version = world.snapshot().unwrap().version().clone();
    let sequences: Vec<u64> = version.inputs.iter().map(|input: &Input| input.input_seqno).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 5]);
    // Inputs are in the order of the commits, so a rebuild gives the same table.
    world.rebuild();
    assert_eq!(world.cells(), model.cells());
    sound(&world);
}

#[test]
fn two_loads_of_one_input_land_once() {
    let (world, mut model) = loaded();
    world.write(&model.load(vec![event(5, 0), event(0, 0)]));
    let (first, second) = (worked_out(&world), worked_out(&world));
    world.table().commit(first.0, &first.1, &world.ids, model.now).unwrap();
    let refused = world.table().commit(second.0, &second.1, &world.ids, model.now).unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    assert!(refused.to_string().contains("003.csv was loaded by both"), "{refused}");
    assert_eq!(world.cells(), model.cells());
    assert!(names(&second.1).iter().all(|id| !world.has_sst(id)), "files of a refused commit stay");
    assert!(names(&first.1).iter().all(|id| world.has_sst(id)));
    sound(&world);
}

#[test]
fn a_writer_that_slept_through_a_vacuum_cannot_commit() {
    let (world, mut model) = loaded();
    let before = world.cells();
    let file = model.load(vec![event(5, 0)]);
    world.write(&file);
    let slept = worked_out(&world);
    world.hide(&file);
    // Its files are removed, because no version names them.
    vacuum_all(&world);
    assert!(names(&slept.1).iter().all(|id| !world.has_sst(id)));
    let refused = world.table().commit(slept.0, &slept.1, &world.ids, model.now).unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    assert_eq!(world.cells(), before);
    sound(&world);
}

#[test]
fn a_file_that_a_vacuum_may_be_about_to_remove_cannot_be_committed() {
    let (world, mut model) = loaded();
    world.write(&model.load(vec![event(5, 0)]));
    // The vacuum has committed its cutoff, and not removed files yet.
    let (base, edit) = worked_out(&world);
    let hour = SystemTime::UNIX_EPOCH + Duration::from_secs(3600);
    for id in names(&edit) {
        let file = File::options().write(true).open(path(&world, &world.table().sst_path(&id))).unwrap();
        file.set_modified(hour).unwrap();
    }
    let mark = |before| VersionEdit { vacuum_watermark: Some(before), base: base.number, ..VersionEdit::default() };
    let marked = world.table().commit(base.clone(), &mark(3_600_000_000), &world.ids, 0).unwrap();
    assert_eq!((marked.now, marked.vacuum_watermark), (base.now, Some(3_600_000_000)));
    // Not old enough to be removed: it may commit.
    world.table().commit(base.clone(), &edit, &world.ids, model.now).unwrap();
    assert_eq!(world.cells(), model.cells());

    world.write(&model.load(vec![event(6, 0)]));
    let (base, edit) = worked_out(&world);
    for id in names(&edit) {
        let file = File::options().write(true).open(path(&world, &world.table().sst_path(&id))).unwrap();
        file.set_modified(hour - Duration::from_micros(1)).unwrap();
    }
    let refused = world.table().commit(base, &edit, &world.ids, model.now).unwrap_err();
    assert!(matches!(refused, StoreError::Fenced { .. }), "{refused}");
    // The repeated run writes new files and commits them.
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
    sound(&world);
}

/// The writer's version number is free again, because vacuum removed its manifest: it must not commit there.
#[test]
fn a_writer_whose_number_was_vacuumed_goes_upon_the_newest_version() {
    let (world, mut model) = loaded();
    let slow = model.load(vec![event(5, 0)]);
    world.write(&slow);
    let (base, edit) = worked_out(&world);
    world.hide(&slow);
    for hour in 0..40 {
        load(&world, &mut model, vec![event(6, hour)]);
    }
    // A vacuum for which the writer's files are too young, and all others old.
    let late = Duration::from_secs(1 << 33);
    for id in names(&edit) {
        let file = File::options().write(true).open(path(&world, &world.table().sst_path(&id))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + late).unwrap();
    }
    let options = VacuumOptions { before: late.as_micros() as i64, half_written_before: 0, keep_versions: 2 };
    VacuumPlan::new(&world.table(), options).unwrap().run(&world.ids).unwrap();
    let free = path(&world, &format!("tables/T/manifest/{:020}.json", base.number + 1));
    assert!(!free.exists() && names(&edit).iter().all(|id| world.has_sst(id)));
    let newest = world.table().latest_number().unwrap();
    let done = world.table().commit(base, &edit, &world.ids, model.now).unwrap();
    assert_eq!(done.number, newest + 1);
    assert!(!free.exists());
    assert_eq!(world.cells(), model.cells());
    sound(&world);
}

#[test]
fn commits_and_vacuums_at_the_same_time_lose_nothing() {
    const COMMITS: u64 = 40;
    let (world, _) = loaded();
    let known = world.snapshot().unwrap().version().inputs[0].clone();
    let input = |writer: u64, commit: u64| {
        let name = writer * COMMITS + commit;
        Input { path: format!("{name}"), hash: ContentHash(u128::from(name)), ..known.clone() }
    };
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let (world, input) = (&world, &input);
            scope.spawn(move || {
                // Always based on the version it began with, like a slow writer.
                let begun = world.table().latest().unwrap().unwrap();
                for commit in 0..COMMITS {
                    let mut put = input(writer, commit);
                    put.input_seqno = begun.next_input_seqno();
                    let edit = VersionEdit { inputs: vec![put], base: begun.number, ..VersionEdit::default() };
                    let is_there = || {
                        let path = &edit.inputs[0].path;
                        world.table().latest().unwrap().unwrap().inputs.iter().any(|input| input.path == *path)
                    };
                    let committed = || match world.table().commit(begun.clone(), &edit, &world.ids, 0) {
                        Ok(_) => true,
                        // All later versions are gone too. A repeated run reads the newest first.
                        Err(StoreError::OutcomeUnknown { .. }) => is_there(),
                        // Its base is gone, repeatedly.
                        Err(StoreError::Vacuumed { .. } | StoreError::NoVersion { .. }) => is_there(),
                        Err(error) => panic!("{error}"),
                    };
                    assert!((0..100).any(|_| committed()));
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..COMMITS {
                vacuum_all(&world);
            }
        });
    });
    let version = world.snapshot().unwrap().version().clone();
    let paths: BTreeSet<&str> = version.inputs.iter().map(|input| input.path.as_str()).collect();
    assert_eq!(paths.len() as u64, 3 + 3 * COMMITS);
    vacuum_all(&world);
    sound(&world);
}

#[test]
fn a_reader_keeps_its_version_while_others_write() {
    let (world, mut model) = loaded();
    let snapshot = world.snapshot().unwrap();
    let cells: Cells = world.cells_of(&snapshot);
    load(&world, &mut model, vec![event(0, 0), event(9, 9)]);
    let newer: Snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&newer, model.now).unwrap();
    world.commit(&newer, &Compaction::run(&plan, &world.ids).unwrap().edit, plan.now);
    world.rebuild();
    assert_eq!(world.cells_of(&snapshot), cells);
    assert_eq!(world.cells(), model.cells());
}
