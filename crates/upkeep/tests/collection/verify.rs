use std::fs;

use tidetable_store::DeletePlan;
use tidetable_store::version::DeleteTarget;
use tidetable_store::{Sst, StoreError};
use tidetable_upkeep::compaction::{Compaction, CompactionPlan};
use tidetable_upkeep::{TableReport, VerifyOptions, verify};
use xxhash_rust::xxh3::xxh3_128;

use super::model::{START, World};
use super::{event, load, loaded, path};

fn everything(world: &World) -> TableReport {
    verify(&world.table(), VerifyOptions::default()).unwrap()
}

fn checksums(world: &World) -> TableReport {
    verify(&world.table(), VerifyOptions { checksums_only: true, ..VerifyOptions::default() }).unwrap()
}

fn ssts(world: &World) -> Vec<Sst> {
    world.snapshot().unwrap().version().ssts().cloned().collect()
}

#[test]
fn what_was_written_is_sound() {
    let (world, mut model) = loaded();
    let snapshot = world.snapshot().unwrap();
    let drop = DeletePlan::new(&snapshot, DeleteTarget::Prefix { prefix: b"00#20180102".to_vec() }).unwrap();
    world.commit(&snapshot, &drop.edit(), model.now);
    load(&world, &mut model, vec![event(2, 3), event(0, 4)]);
    let snapshot = world.snapshot().unwrap();
    let plan = CompactionPlan::new(&snapshot, model.now).unwrap();
    world.commit(&snapshot, &Compaction::run(&plan, &world.ids).unwrap().edit, plan.now);
    for report in [everything(&world), checksums(&world)] {
        assert!(report.is_sound(), "{report:?}");
        assert_eq!((report.versions.as_slice(), report.ssts.len()), ([6].as_slice(), ssts(&world).len()));
    }
    let all = VerifyOptions { all_versions: true, ..VerifyOptions::default() };
    let report = verify(&world.table(), all).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.versions.len(), report.ssts.len()), (6, 4 + 1 + ssts(&world).len()));
}

#[test]
fn every_flipped_bit_of_an_sst_is_found_and_hides_no_other_file() {
    let (world, _) = loaded();
    let ssts = ssts(&world);
    let file = path(&world, &world.table().sst_path(&ssts[1].id));
    let bytes = fs::read(&file).unwrap();
    let rotten = path(&world, &world.table().sst_path(&ssts[2].id));
    fs::write(&rotten, &fs::read(&rotten).unwrap()[1..]).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&file, &flipped).unwrap();
        let report = checksums(&world);
        let damaged: Vec<&str> = report.damaged().map(|file| file.sst.id.as_str()).collect();
        assert_eq!(damaged, [ssts[1].id.as_str(), ssts[2].id.as_str()], "byte {at}");
    }
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 8;
    fs::write(&file, &flipped).unwrap();
    let report = everything(&world);
    let said = report.damaged().next().unwrap().damage[0].to_string();
    assert!(said.contains(&ssts[1].id) && said.contains("byte"), "{said}");
}

#[test]
fn files_that_are_gone_cut_or_exchanged_are_found() {
    let (world, _) = loaded();
    let ssts = ssts(&world);
    let path = |at: usize| path(&world, &world.table().sst_path(&ssts[at].id));
    let (first, second) = (fs::read(path(0)).unwrap(), fs::read(path(1)).unwrap());
    fs::write(path(0), &second).unwrap();
    fs::write(path(1), &first).unwrap();
    fs::remove_file(path(2)).unwrap();
    let last = fs::read(path(3)).unwrap();
    fs::write(path(3), &last[..last.len() - 1]).unwrap();
    assert_eq!(everything(&world).damaged().count(), 4);
    for length in 0..last.len() {
        fs::write(path(3), &last[..length]).unwrap();
        assert_eq!(checksums(&world).ssts[3].damage.len(), 1, "{length} bytes");
    }
}

/// Writes the newest version again with a change, as a manifest with a valid checksum.
fn tampered(world: &World, change: impl Fn(&mut Sst)) {
    let mut version = world.snapshot().unwrap().version().clone();
    for window in version.windows.iter_mut() {
        window.ssts.iter_mut().for_each(&change);
    }
    let text = serde_json::to_string(&version).unwrap();
    let checksum = xxh3_128(text.as_bytes());
    let manifest = format!("{{\"format\":1,\"checksum\":\"{checksum:032x}\",\"version\":{text}}}\n");
    fs::write(path(world, &format!("tables/T/manifest/{:020}.json", version.number)), manifest).unwrap();
}

#[test]
fn manifest_and_file_must_agree() {
    type Change = fn(&mut Sst);
    let cases: [(&str, Change); 8] = [
        ("the checksum of the whole file", |sst| sst.checksum = "0".repeat(32)),
        ("the number of its rows", |sst| sst.rows += 1),
        ("the number of its cells", |sst| sst.cells += 1),
        ("its first key", |sst| sst.first_key.insert(0, b'\0')),
        ("its last key", |sst| sst.last_key.push(b'~')),
        ("its least timestamp", |sst| sst.min_timestamp = Some(START - 1)),
        ("its greatest timestamp", |sst| sst.max_timestamp = None),
        ("another length", |sst| sst.bytes += 1),
    ];
    for (what, change) in cases {
        let (world, _) = loaded();
        tampered(&world, change);
        for report in [everything(&world), checksums(&world)] {
            assert_eq!(report.damaged().count(), 4, "{what}");
            let said = report.ssts[0].damage[0].to_string();
            assert!(said.contains(what), "{what}: {said}");
        }
        // Older versions differ, with valid checksums: one of them must be wrong.
        let all = VerifyOptions { all_versions: true, ..VerifyOptions::default() };
        let report = verify(&world.table(), all).unwrap();
        assert!(report.manifests.iter().any(|error| error.to_string().contains("otherwise")), "{report:?}");
    }
}

#[test]
fn damaged_and_missing_manifests_are_found() {
    let (world, _) = loaded();
    let path = |number: u64| path(&world, &format!("tables/T/manifest/{number:020}.json"));
    let bytes = fs::read(path(3)).unwrap();
    fs::write(path(3), &bytes[..bytes.len() / 2]).unwrap();
    let report = everything(&world);
    assert!(!report.is_sound() && report.versions.is_empty());
    assert!(matches!(report.manifests[0], StoreError::Manifest { .. }));
    let all = VerifyOptions { all_versions: true, ..VerifyOptions::default() };
    assert_eq!(verify(&world.table(), all).unwrap().versions, [1, 2]);
    fs::write(path(3), &bytes).unwrap();
    fs::remove_file(path(2)).unwrap();
    let report = verify(&world.table(), all).unwrap();
    assert!(report.manifests[0].to_string().contains("it is missing"), "{report:?}");
}
