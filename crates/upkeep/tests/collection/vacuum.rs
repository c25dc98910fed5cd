use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use proptest::prelude::*;
use tidetable_store::{Snapshot, StoreError};
use tidetable_upkeep::compaction::{Compaction, CompactionPlan};
use tidetable_upkeep::{RemovalKind, VacuumOptions, VacuumPlan, VerifyOptions, leftovers, verify};

use super::model::{Cells, Model, World};
use super::{event, load, loaded, path};

/// A time after all files.
const ALL: VacuumOptions = VacuumOptions { before: i64::MAX, half_written_before: i64::MAX, keep_versions: 1 };
const HOUR: i64 = 3_600_000_000;

fn vacuum(world: &World, options: VacuumOptions) -> Vec<String> {
    let plan = VacuumPlan::new(&world.table(), options).unwrap();
    let done = plan.run(&world.ids).unwrap();
    done.removals.into_iter().map(|removal| removal.path).collect()
}

/// The files of the table in `folder`, with or without extension.
fn files(world: &World, folder: &str) -> BTreeSet<String> {
    let found = fs::read_dir(path(world, &format!("tables/T/{folder}"))).into_iter().flatten();
    found.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// Compacts the newest version.
fn compact(world: &World, model: &Model) {
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, model.now).unwrap();
    let done = Compaction::run(&plan, &world.ids).unwrap();
    if !done.edit.is_empty() {
        world.commit(&snapshot, &done.edit, plan.now);
    }
}

/// Sets the mtime of a file to `hours` hours after the epoch.
fn age(world: &World, inside: &str, hours: i64) {
    let time: SystemTime = UNIX_EPOCH + Duration::from_secs(hours.unsigned_abs() * 3600);
    File::options().write(true).open(path(world, inside)).unwrap().set_modified(time).unwrap();
}

fn manifest(number: u64) -> String {
    format!("tables/T/manifest/{number:020}.json")
}

#[test]
fn only_the_newest_version_is_left_and_then_nothing_is_found() {
    let (world, model) = loaded();
    compact(&world, &model);
    let before: Vec<String> = world.snapshot().unwrap().version().ssts().map(|sst| format!("{}.sst", sst.id)).collect();
    let plan = VacuumPlan::new(&world.table(), ALL).unwrap();
    assert_eq!((plan.oldest, plan.newest), (4, 4));
    let kinds = |kind| plan.removals.iter().filter(|removal| removal.kind == kind).count();
    // One of the two SSTs of the second load was the only one in its window.
    assert_eq!((kinds(RemovalKind::Manifest), kinds(RemovalKind::Sst), kinds(RemovalKind::Leftover)), (3, 3, 0));
    assert!(files(&world, "sst").len() == 5, "a plan removes nothing");
    let removed = vacuum(&world, ALL);
    assert_eq!(removed.len(), 3 + 3);
    assert_eq!(files(&world, "sst"), before.into_iter().collect());
    // And the version with the vacuum cutoff.
    assert_eq!(files(&world, "manifest"), [4, 5].map(|number| format!("{number:020}.json")).into());
    assert_eq!(world.cells(), model.cells());
    let report = verify(&world.table(), VerifyOptions { all_versions: true, ..VerifyOptions::default() }).unwrap();
    assert!(report.is_sound(), "{report:?}");
    // The version before it was the newest then.
    assert!(vacuum(&world, ALL).contains(&manifest(4)));
    assert!(VacuumPlan::new(&world.table(), ALL).unwrap().is_empty());
    assert!(vacuum(&world, ALL).is_empty());
    for number in 1..5 {
        let error = world.table().version(number).unwrap_err();
        assert!(matches!(error, StoreError::Vacuumed { oldest: 5, .. }), "{error}");
    }
    assert!(matches!(world.table().version(6), Err(StoreError::NoVersion { newest: 5, .. })));
}

#[test]
fn as_many_versions_stay_as_are_asked_for_and_what_is_announced_goes() {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    let keep = VacuumOptions { before: 2 * HOUR, keep_versions: 2, ..ALL };
    let mut cells = Vec::new();
    for round in 0..4 {
        load(&world, &mut model, vec![event(round, 0)]);
        cells.push(world.cells());
        // A changed input leaves SSTs that no later version names.
        let file = model.change(0, vec![event(9, round.cast_signed())]).unwrap();
        world.write(&file);
        world.load(model.now);
        cells.push(world.cells());
        for folder in ["manifest", "sst"] {
            files(&world, folder).iter().for_each(|name| age(&world, &format!("tables/T/{folder}/{name}"), 1));
        }
        let plan = VacuumPlan::new(&world.table(), keep).unwrap();
        let (announced, newest) = (plan.removals.clone(), plan.newest);
        assert_eq!(plan.run(&world.ids).unwrap().removals, announced);
        let numbers = world.table().version_numbers().unwrap();
        let own: Vec<u64> = numbers.into_iter().filter(|number| *number <= newest).collect();
        assert_eq!(own.len(), 2, "round {round}: {own:?}");
        for (number, cells) in own.into_iter().zip(&cells[cells.len() - 2..]) {
            assert_eq!(world.cells_of(&snapshot(&world, number)), *cells, "round {round}, version {number}");
        }
        let again = VacuumPlan::new(&world.table(), keep).unwrap();
        assert!(again.is_empty(), "round {round}: {again:?}");
    }
}

#[test]
fn age_and_number_keep_versions() {
    let (world, mut model) = loaded();
    compact(&world, &model);
    load(&world, &mut model, vec![event(2, 1)]);
    let ssts = files(&world, "sst");
    for number in 1..=5 {
        age(&world, &manifest(number), number.cast_signed());
    }
    ssts.iter().for_each(|name| age(&world, &format!("tables/T/sst/{name}"), 0));
    let plan = |before, keep_versions| {
        VacuumPlan::new(&world.table(), VacuumOptions { before, keep_versions, ..ALL }).unwrap()
    };
    // Version 3 was replaced at 4 o'clock.
    assert_eq!(plan(4 * HOUR, 1).oldest, 3);
    assert!(plan(4 * HOUR, 1).removals.iter().all(|removal| removal.kind == RemovalKind::Manifest));
    assert_eq!(plan(5 * HOUR, 1).oldest, 4);
    assert_eq!(plan(5 * HOUR, 1).removals.iter().filter(|removal| removal.kind == RemovalKind::Sst).count(), 3);
    assert_eq!(plan(5 * HOUR, 3).oldest, 3);
    assert_eq!(plan(9 * HOUR, 5).oldest, 1);
    assert!(plan(9 * HOUR, 5).is_empty());
    // A young file stays, though no version names it.
    let snapshots: Vec<Snapshot> = (3..=5).map(|number| snapshot(&world, number)).collect();
    let cells: Vec<Cells> = snapshots.iter().map(|snapshot| world.cells_of(snapshot)).collect();
    fs::write(path(&world, "tables/T/sst/LATE.sst"), "x").unwrap();
    vacuum(&world, VacuumOptions { before: 4 * HOUR, ..ALL });
    assert!(files(&world, "sst").is_superset(&ssts) && files(&world, "sst").contains("LATE.sst"));
    for (number, cells) in (3..=5).zip(cells) {
        assert_eq!(world.cells_of(&snapshot(&world, number)), cells, "version {number}");
    }
}

fn snapshot(world: &World, number: u64) -> Snapshot {
    Snapshot::new(world.table(), world.table().version(number).unwrap().into()).unwrap()
}

#[test]
fn leftovers_of_killed_writers_go() {
    let (world, model) = loaded();
    let half = ["sst/.tmp-1-2", "manifest/.tmp-1-3", "checkpoint/.tmp-1-4"].map(|name| format!("tables/T/{name}"));
    for name in &half {
        fs::create_dir_all(path(&world, name).parent().unwrap()).unwrap();
        fs::write(path(&world, name), "half").unwrap();
    }
    fs::write(path(&world, "tables/T/sst/NEVERCOMMITTED.sst"), "x").unwrap();
    let young = VacuumOptions { before: 0, half_written_before: 0, keep_versions: 10 };
    assert!(vacuum(&world, young).is_empty());
    let removed = vacuum(&world, VacuumOptions { keep_versions: 10, ..ALL });
    assert_eq!(removed.len(), 4, "{removed:?}");
    assert!(half.iter().all(|name| removed.contains(name) && !path(&world, name).exists()));
    assert_eq!(world.cells(), model.cells());
    // Outside tables there are none, and then one.
    let store = tidetable_store::Store::new(world.table().blobs().clone());
    assert!(leftovers(&store, i64::MAX).unwrap().is_empty());
    fs::create_dir_all(path(&world, "exports/E_20180101")).unwrap();
    fs::write(path(&world, "exports/E_20180101/.tmp-1-2"), "half").unwrap();
    assert_eq!(leftovers(&store, i64::MAX).unwrap().len(), 1);
    assert!(leftovers(&store, 0).unwrap().is_empty());
}

#[test]
fn nothing_goes_while_a_version_cannot_be_read() {
    let (world, model) = loaded();
    compact(&world, &model);
    let bytes = fs::read(path(&world, &manifest(3))).unwrap();
    fs::write(path(&world, &manifest(3)), "{}").unwrap();
    assert!(VacuumPlan::new(&world.table(), VacuumOptions { keep_versions: 3, ..ALL }).is_err());
    assert_eq!(files(&world, "sst").len(), 5);
    // The newest version is based on it.
    assert!(VacuumPlan::new(&world.table(), ALL).is_err());
    fs::write(path(&world, &manifest(3)), bytes).unwrap();
    vacuum(&world, ALL);
    assert_eq!(world.cells(), model.cells());
}

/// A step of a table.
#[derive(Debug, Clone)]
enum Step {
    Load(u64, i64),
    Change(usize, i64),
    Compact,
    Rebuild,
    /// Keeps this many versions.
    Vacuum(u64),
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0u64..4, 0i64..60).prop_map(|(id, hours)| Step::Load(id, hours)),
        2 => (0usize..6, 0i64..60).prop_map(|(input, hours)| Step::Change(input, hours)),
        2 => Just(Step::Compact),
        1 => Just(Step::Rebuild),
        3 => (1u64..5).prop_map(Step::Vacuum),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_version_that_is_kept_reads_as_when_it_was_new(steps in prop::collection::vec(any_step(), 1..40)) {
        let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
        // Versions of vacuum change nothing, and do not count.
        let mut versions: BTreeMap<u64, Cells> = BTreeMap::new();
        let mut own: BTreeSet<u64> = BTreeSet::new();
        for step in steps {
            let there = world.snapshot().is_some();
            match step {
                Step::Load(id, hours) => load(&world, &mut model, vec![event(id, hours), event(id, hours / 2)]),
                Step::Change(input, hours) => match model.change(input, vec![event(3, hours)]) {
                    Some(file) => {
                        world.write(&file);
                        world.load(model.now);
                    }
                    None => continue,
                },
                Step::Compact if there => compact(&world, &model),
                Step::Rebuild if there => world.rebuild(),
                Step::Vacuum(keep_versions) if there => {
                    // All existing files are old, later ones are not.
                    for (folder, name) in ["manifest", "sst"].iter().flat_map(|folder| {
                        files(&world, folder).into_iter().map(move |name| (folder, name))
                    }) {
                        age(&world, &format!("tables/T/{folder}/{name}"), 1);
                    }
                    let options = VacuumOptions { before: 2 * HOUR, keep_versions, ..ALL };
                    let announced = VacuumPlan::new(&world.table(), options).unwrap().removals;
                    let newest = world.table().latest_number().unwrap();
                    let removed = vacuum(&world, options);
                    prop_assert_eq!(removed, announced.into_iter().map(|file| file.path).collect::<Vec<_>>());
                    if world.table().latest_number().unwrap() > newest {
                        own.insert(newest + 1);
                    }
                    let counted = |number: &&u64| !own.contains(*number);
                    let kept: Vec<u64> = versions.keys().filter(counted).copied().collect();
                    let oldest = match keep_versions {
                        1 => newest,
                        // If there are fewer, all stay.
                        many => match kept.len().checked_sub(many as usize) {
                            Some(at) => kept[at],
                            None => *versions.keys().next().unwrap(),
                        },
                    };
                    prop_assert_eq!(world.table().version_numbers().unwrap()[0], oldest);
                    versions = versions.split_off(&oldest);
                }
                _ => continue,
            }
            let newest = world.table().latest_number().unwrap();
            versions.insert(newest, model.cells());
            let oldest = world.table().version_numbers().unwrap()[0];
            for (number, cells) in versions.range(oldest..) {
                prop_assert_eq!(&world.cells_of(&snapshot(&world, *number)), cells, "version {}", number);
            }
            for number in versions.keys().filter(|number| **number < oldest) {
                let gone = matches!(world.table().version(*number), Err(StoreError::Vacuumed { .. }));
                prop_assert!(gone, "version {}", number);
            }
        }
        let report = verify(&world.table(), VerifyOptions { all_versions: true, checksums_only: true }).unwrap();
        prop_assert!(report.is_sound(), "{:?}", report);
    }
}
