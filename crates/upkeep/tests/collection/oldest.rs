//! The oldest version: leftovers of killed vacuums and writers before it are not versions, and missing versions after
//! it are noticed.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tidetable_store::{Snapshot, StoreError};
use tidetable_upkeep::{VacuumOptions, VacuumPlan, VerifyOptions, verify};

use super::model::{Cells, Model, World};
use super::{event, load, loaded, path};

const ALL: VacuumOptions = VacuumOptions { before: i64::MAX, half_written_before: i64::MAX, keep_versions: 1 };
const EVERYTHING: VerifyOptions = VerifyOptions { all_versions: true, checksums_only: false };

fn manifest(world: &World, number: u64) -> PathBuf {
    path(world, &format!("tables/T/manifest/{number:020}.json"))
}

fn checkpoint(world: &World, number: u64) -> PathBuf {
    path(world, &format!("tables/T/checkpoint/{number:020}.json"))
}

fn vacuum(world: &World, keep_versions: u64) -> Vec<String> {
    let plan = VacuumPlan::new(&world.table(), VacuumOptions { keep_versions, ..ALL }).unwrap();
    plan.run(&world.ids).unwrap().removals.into_iter().map(|removal| removal.path).collect()
}

/// A table of 50 versions with the cells of each; none of them replaced an SST.
fn long() -> (World, Model, BTreeMap<u64, Cells>) {
    let (world, mut model) = loaded();
    let mut shown = BTreeMap::new();
    for number in 4..=50 {
        load(&world, &mut model, vec![event(number % 7, number.cast_signed())]);
        shown.insert(number, model.cells());
    }
    (world, model, shown)
}

/// Versions from `oldest` on read as before, older ones are gone, and a vacuum that keeps all of them succeeds.
fn line_begins_at(world: &World, oldest: u64, shown: &BTreeMap<u64, Cells>) {
    let table = world.table();
    assert_eq!(table.version_numbers().unwrap().first(), Some(&oldest));
    for number in 1..oldest {
        let error = table.version(number).unwrap_err();
        let expected = matches!(error, StoreError::Vacuumed { oldest: said, .. } if said == oldest);
        assert!(expected, "version {number}: {error}");
    }
    for (number, cells) in shown.range(oldest..) {
        let snapshot = Snapshot::new(table.clone(), table.version(*number).unwrap().into()).unwrap();
        assert_eq!(world.cells_of(&snapshot), *cells, "version {number}");
    }
    let report = verify(&table, EVERYTHING).unwrap();
    assert!(report.is_sound() && report.versions.first() == Some(&oldest), "{report:?}");
    assert_eq!(VacuumPlan::new(&table, VacuumOptions { keep_versions: 1000, ..ALL }).unwrap().oldest, oldest);
    assert!(matches!(table.version_at(i64::MIN), Err(StoreError::NoVersionAt { oldest: said, .. }) if said == oldest));
}

#[test]
fn a_vacuum_that_was_killed_has_left_nothing_but_files() {
    let (world, _, shown) = long();
    let before: Vec<Vec<u8>> = (1..40).map(|number| fs::read(manifest(&world, number)).unwrap()).collect();
    let old = fs::read(checkpoint(&world, 33)).unwrap();
    vacuum(&world, 11);
    line_begins_at(&world, 40, &shown);
    // Killed before the first removal, and after each in turn; or a power loss undid some removals.
    fs::write(checkpoint(&world, 33), old).unwrap();
    for (at, bytes) in before.iter().enumerate() {
        fs::write(manifest(&world, at as u64 + 1), bytes).unwrap();
    }
    line_begins_at(&world, 40, &shown);
    for number in [1, 2, 3, 20, 30, 31, 38] {
        fs::remove_file(manifest(&world, number)).unwrap();
        line_begins_at(&world, 40, &shown);
    }
    // The next vacuum removes them, however many versions it keeps.
    assert_eq!(vacuum(&world, 1000).len(), 39 - 7 + 1);
    assert!((1..40).all(|number| !manifest(&world, number).exists()) && !checkpoint(&world, 33).exists());
    line_begins_at(&world, 40, &shown);
    vacuum(&world, 5);
    line_begins_at(&world, 46, &shown);
    assert!(vacuum(&world, 5).is_empty());
}

/// The manifest of a suspended writer, put where vacuum had removed one, by a process that died before it took it
/// back.
#[test]
fn a_manifest_behind_the_line_is_no_version() {
    let (world, mut model, shown) = long();
    let kept = [1, 20, 39].map(|number| (number, fs::read(manifest(&world, number)).unwrap()));
    vacuum(&world, 11);
    for (number, bytes) in kept {
        fs::write(manifest(&world, number), bytes).unwrap();
        line_begins_at(&world, 40, &shown);
    }
    assert_eq!(vacuum(&world, 1000).len(), 3);
    line_begins_at(&world, 40, &shown);
    load(&world, &mut model, vec![event(1, 1)]);
    assert_eq!((world.table().latest_number().unwrap(), world.cells()), (51, model.cells()));
}

#[test]
fn a_missing_manifest_of_the_line_is_noticed() {
    for lost in [1, 2, 30, 49] {
        let (world, ..) = long();
        fs::remove_file(manifest(&world, lost)).unwrap();
        let report = verify(&world.table(), EVERYTHING).unwrap();
        let said = format!("{:?}", report.manifests);
        assert!(said.contains(&format!("{lost:020}.json")) && said.contains("missing"), "{said}");
    }
    let (world, ..) = long();
    vacuum(&world, 11);
    fs::remove_file(manifest(&world, 40)).unwrap();
    assert!(!verify(&world.table(), EVERYTHING).unwrap().is_sound());
}

/// A damaged checkpoint only costs time while the deltas before it exist. Vacuum removes those.
#[test]
fn a_damaged_checkpoint_is_written_again_before_what_it_stands_for_goes() {
    let (world, _, shown) = long();
    let bytes = fs::read(checkpoint(&world, 33)).unwrap();
    fs::write(checkpoint(&world, 33), &bytes[..bytes.len() - 9]).unwrap();
    vacuum(&world, 50 - 33 + 1);
    line_begins_at(&world, 33, &shown);
    assert_eq!(fs::read(checkpoint(&world, 33)).unwrap(), bytes);
}
