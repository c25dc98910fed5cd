//! Multi-window files: loss when one is damaged, repair, and vacuum.

use std::collections::BTreeSet;
use std::fs;

use tidetable_store::{Snapshot, Sst, Store};
use tidetable_upkeep::compaction::{Compaction, CompactionExtent, CompactionPlan};
use tidetable_upkeep::{RepairPlan, VacuumOptions, VacuumPlan, VerifyOptions, verify};

use super::model::{Cells, DAY, Event, File, Model, START, World, day_of};
use super::{event, path};

fn on(id: u64, day: i64, hour: i64) -> Event {
    event(id, day * 24 + hour)
}

/// Three days that share a file, and a much later one; each input has one day.
fn joined() -> (World, Model) {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    for day in [0, 1, 2, 45] {
        world.write(&model.load(vec![on(0, day, 0), on(1, day, 0), on(1, day, 1)]));
        world.load(model.now);
    }
    compact(&world, &model);
    let (file, windows) = shared(&world);
    assert_eq!((windows, file.rows), (vec![0, 1, 2], 6));
    (world, model)
}

fn compact(world: &World, model: &Model) {
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::of_extent(&snapshot, model.now, CompactionExtent::Due).unwrap();
    assert!(!plan.is_empty());
    world.commit(&snapshot, &Compaction::run(&plan, &world.ids).unwrap().edit, plan.now);
}

/// The multi-window file, and its days from the first on.
fn shared(world: &World) -> (Sst, Vec<i64>) {
    let snapshot = world.snapshot().unwrap();
    let found: Vec<&Sst> = snapshot.version().ssts().filter(|sst| sst.multi_window.is_some()).collect();
    let [sst] = found.as_slice() else { panic!("{} files are shared", found.len()) };
    (*sst).clone().multi_window.map(|joined| ((*sst).clone(), days(&joined.windows))).unwrap()
}

fn days(starts: &[i64]) -> Vec<i64> {
    starts.iter().map(|start| (start - START) / DAY).collect()
}

fn damage(world: &World, sst: &Sst) {
    let file = path(world, &world.table().sst_path(&sst.id));
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

fn plan(world: &World) -> RepairPlan {
    RepairPlan::new(&Store::new(world.table().blobs().clone()), "T", &[], |_| false).unwrap()
}

/// What a repair plan reports: the days of lost windows, and the sequence numbers of the inputs to load again.
fn lost(plan: &RepairPlan) -> (Vec<i64>, Vec<u64>) {
    let windows: BTreeSet<i64> = plan.lost.iter().flat_map(|file| file.windows()).collect();
    let windows: Vec<i64> = windows.into_iter().collect();
    (days(&windows), plan.inputs.iter().map(|input| input.input_seqno).collect())
}

/// The cells of `all` in these days.
fn of_days(all: &Cells, days: &[i64]) -> Cells {
    let first = (START / DAY) as i32;
    let inside = |key: &str| days.contains(&i64::from(day_of(key) - first));
    all.iter().filter(|(cell, _)| inside(&cell.0)).map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn vacuum(world: &World, keep_versions: u64) {
    let options = VacuumOptions { before: i64::MAX, half_written_before: i64::MAX, keep_versions };
    VacuumPlan::new(&world.table(), options).unwrap().run(&world.ids).unwrap();
}

/// Checks that the newest version, or all versions, are sound.
fn sound(world: &World, all_versions: bool) {
    let report = verify(&world.table(), VerifyOptions { all_versions, checksums_only: false }).unwrap();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn a_damaged_one_takes_all_its_windows_and_they_come_back_with_their_inputs() {
    let (world, model) = joined();
    let (file, _) = shared(&world);
    damage(&world, &file);
    let report = verify(&world.table(), VerifyOptions::default()).unwrap();
    let damaged: Vec<Vec<i64>> = report.damaged().map(|file| days(&file.windows())).collect();
    assert_eq!(damaged, [[0, 1, 2]]);
    let found = plan(&world);
    assert_eq!(lost(&found), (vec![0, 1, 2], vec![1, 2, 3]));
    found.run(&world.ids).unwrap();
    assert_eq!(world.cells(), of_days(&model.cells(), &[45]));
    let first = (START / DAY) as i32;
    assert_eq!(world.changed_days(), [first, first + 1, first + 2].into());
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
    compact(&world, &model);
    assert_eq!((shared(&world).1, world.cells()), (vec![0, 1, 2], model.cells()));
    vacuum(&world, 1);
    sound(&world, true);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn a_window_that_left_it_is_not_lost_with_it() {
    let (world, mut model) = joined();
    world.write(&model.change(1, vec![on(2, 1, 5)]).unwrap());
    world.load(model.now);
    let (file, windows) = shared(&world);
    assert_eq!(windows, [0, 2]);
    sound(&world, true);
    damage(&world, &file);
    let found = plan(&world);
    assert_eq!(lost(&found), (vec![0, 2], vec![1, 3]));
    found.run(&world.ids).unwrap();
    assert_eq!(world.cells(), of_days(&model.cells(), &[1, 45]));
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn only_the_windows_whose_inputs_are_gone_stay_lost() {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    let files: Vec<File> = [0, 1, 2, 45].map(|day| model.load(vec![on(0, day, 0), on(1, day, 1)])).into();
    for file in &files {
        world.write(file);
        world.load(model.now);
    }
    compact(&world, &model);
    let gone = &files[0];
    damage(&world, &shared(&world).0);
    world.hide(gone);
    plan(&world).run(&world.ids).unwrap();
    world.load(model.now);
    assert_eq!(world.cells(), of_days(&model.cells(), &[1, 2, 45]));
    sound(&world, false);
    world.write(gone);
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn what_lies_beside_it_is_lost_by_itself() {
    let (world, mut model) = joined();
    world.write(&model.load(vec![on(0, 1, 9)]));
    world.load(model.now);
    let late = world.snapshot().unwrap().version().ssts().max_by_key(|sst| sst.seqno).unwrap().clone();
    assert!(late.multi_window.is_none());
    damage(&world, &late);
    let found = plan(&world);
    assert_eq!(lost(&found), (vec![1], vec![2, 5]));
    found.run(&world.ids).unwrap();
    // Its window uses the multi-window file until it is rebuilt, and then leaves it.
    assert!(of_days(&model.cells(), &[0, 2, 45]).iter().all(|(cell, value)| world.cells().get(cell) == Some(value)));
    world.load(model.now);
    assert_eq!((shared(&world).1, world.cells()), (vec![0, 2], model.cells()));
    sound(&world, false);
}

#[test]
fn vacuum_keeps_it_for_every_version_that_has_a_window_in_it() {
    let (world, mut model) = joined();
    let (file, _) = shared(&world);
    let mut versions = vec![(world.snapshot().unwrap(), world.cells())];
    for day in 0..3_i64 {
        world.write(&model.change(day as usize, vec![on(2, day, 7)]).unwrap());
        world.load(model.now);
        versions.push((world.snapshot().unwrap(), world.cells()));
        vacuum(&world, 20);
        sound(&world, true);
        assert!(world.has_sst(&file.id));
    }
    // The last of its windows has left the file.
    let (last, _) = versions.last().unwrap();
    assert!(last.version().ssts().all(|sst| sst.id != file.id));
    for (before, cells) in &versions {
        let again = world.table().version(before.version().number).unwrap();
        assert_eq!(world.cells_of(&Snapshot::new(world.table(), again.into()).unwrap()), *cells);
    }
    vacuum(&world, 1);
    assert!(!world.has_sst(&file.id));
    assert_eq!(world.cells(), model.cells());
    sound(&world, true);
}
