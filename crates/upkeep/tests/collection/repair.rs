use std::fs;

use tidetable_store::{Sst, Store, StoreError, VersionEdit};
use tidetable_upkeep::{RepairPlan, VacuumOptions, VacuumPlan, VerifyOptions, verify};

use super::model::{DAY, START, World};
use super::{event, load, loaded, path};

fn plan(world: &World, only: &[String]) -> Result<RepairPlan, StoreError> {
    RepairPlan::new(&Store::new(world.table().blobs().clone()), "T", only, |_| false)
}

fn ssts(world: &World) -> Vec<Sst> {
    world.snapshot().unwrap().version().ssts().cloned().collect()
}

/// Flips a bit in the middle of an SST.
fn damage(world: &World, sst: &Sst) {
    let file = path(world, &world.table().sst_path(&sst.id));
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_sound_table_needs_none() {
    let (world, _) = loaded();
    let found = plan(&world, &[]).unwrap();
    assert!(found.is_empty() && found.inputs.is_empty());
    assert_eq!(found.run(&world.ids).unwrap().version, 3);
    let refused = plan(&world, &[ssts(&world)[0].id.clone()]).unwrap_err();
    assert!(matches!(refused, StoreError::NotDamaged { .. }), "{refused}");
}

#[test]
fn a_window_that_lost_an_sst_is_built_anew_by_the_next_run() {
    let (world, mut model) = loaded();
    load(&world, &mut model, vec![event(3, 30)]);
    // The first day has cells of inputs 1, 2 and 3; input 2 also touches the second day.
    let all = ssts(&world);
    damage(&world, &all[1]);
    let found = plan(&world, &[]).unwrap();
    assert_eq!(found.lost.iter().map(|file| &file.sst).collect::<Vec<_>>(), [&all[1]]);
    assert_eq!(found.lost[0].window, START);
    let inputs: Vec<u64> = found.inputs.iter().map(|input| input.input_seqno).collect();
    assert_eq!(inputs, [1, 2, 3]);
    assert_eq!(ssts(&world).len(), 5, "a plan changes nothing");

    let done = found.run(&world.ids).unwrap();
    assert_eq!((done.version, done.kept.len()), (5, 1));
    let copy = fs::read(path(&world, &done.kept[0])).unwrap();
    assert_eq!(copy, fs::read(path(&world, &world.table().sst_path(&all[1].id))).unwrap());
    // Answers lack the lost cells, and the days are marked.
    assert_eq!(ssts(&world).len(), 4);
    assert!(world.cells().len() < model.cells().len());
    assert_eq!(world.changed_days(), [(START / DAY) as i32].into());
    assert!(verify(&world.table(), VerifyOptions::default()).unwrap().is_sound());

    // Only the window is rebuilt, and not the other day of input 2.
    let version = world.snapshot().unwrap().version().clone();
    assert_eq!(version.lost_windows(), [START].into());
    assert_eq!(world.work_out(&version).rebuilt, [START]);
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
    // Then there is nothing left to do.
    let version = world.snapshot().unwrap().version().clone();
    assert!(version.lost_windows().is_empty());
    world.load(model.now);
    assert_eq!(world.work_out(&version).ssts.len(), 0);
    let options = VacuumOptions { before: i64::MAX, half_written_before: 0, keep_versions: 1 };
    VacuumPlan::new(&world.table(), options).unwrap().run(&world.ids).unwrap();
    assert!(path(&world, &done.kept[0]).exists(), "vacuum took the copy");
    assert!(!path(&world, &world.table().sst_path(&all[1].id)).exists());
}

#[test]
fn only_what_is_named_goes_and_an_input_that_is_gone_stays_lost() {
    let (world, mut model) = loaded();
    let far = model.load(vec![event(9, 24 * 9)]);
    world.write(&far);
    world.load(model.now);
    let all = ssts(&world);
    damage(&world, &all[0]);
    fs::remove_file(path(&world, &world.table().sst_path(&all[4].id))).unwrap();
    assert_eq!(plan(&world, &[]).unwrap().lost.len(), 2);
    world.hide(&far);
    let done = plan(&world, std::slice::from_ref(&all[4].id)).unwrap().run(&world.ids).unwrap();
    // A missing file has no quarantined copy.
    assert!(done.kept.is_empty());
    assert_eq!(plan(&world, &[]).unwrap().lost.len(), 1);
    let report = verify(&world.table(), VerifyOptions::default()).unwrap();
    assert_eq!(report.damaged().count(), 1);
    plan(&world, &[]).unwrap().run(&world.ids).unwrap();
    world.load(model.now);
    let mut expected = model.cells();
    expected.retain(|key, _| !key.0.starts_with("09"));
    assert_eq!(world.cells(), expected);
    // Its cells come back with its input.
    world.write(&far);
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn a_repair_gives_way_to_whatever_came_meanwhile() {
    let (world, mut model) = loaded();
    damage(&world, &ssts(&world)[0]);
    let found = plan(&world, &[]).unwrap();
    load(&world, &mut model, vec![event(4, 4)]);
    let refused = found.run(&world.ids).unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    plan(&world, &[]).unwrap().run(&world.ids).unwrap();
    world.load(model.now);
    assert_eq!(world.cells(), model.cells());
}

#[test]
fn a_load_that_began_before_a_repair_does_not_forget_what_was_lost() {
    let (world, model) = loaded();
    let base = world.snapshot().unwrap().version().clone();
    // A load that found nothing but another fingerprint of an input.
    let mut input = base.inputs.iter().next().unwrap().clone();
    input.version = "touched".to_owned();
    let edit = VersionEdit { base: base.number, inputs: vec![input], ..VersionEdit::default() };
    damage(&world, &ssts(&world)[0]);
    let done = plan(&world, &[]).unwrap().run(&world.ids).unwrap();
    let refused = world.table().commit(base, &edit, &world.ids, model.now).unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    let version = world.snapshot().unwrap().version().clone();
    assert_eq!((version.number, version.lost_windows()), (done.version, [START].into()));
}
