//! Manifest deltas and checkpoints: every version reads as it was committed, whatever happens to checkpoints.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use tidetable_store::fuzzing::{decode, decode_checkpoint, decode_delta, encode, encode_checkpoint, encode_delta};
use tidetable_store::{Input, StoreError, Version, VersionEdit};

use super::model::{Model, World};
use super::{event, load, loaded, path};

/// Commits up to several checkpoints, after three loads: one more input each time.
fn long(world: &World, commits: u64) -> BTreeMap<u64, Version> {
    let mut version = world.snapshot().unwrap().version().clone();
    let mut versions = BTreeMap::from([(version.number, version.clone())]);
    for commit in 0..commits {
        let known = version.inputs[0].clone();
        let (input_seqno, hash) = (version.next_input_seqno(), tidetable_source::ContentHash(u128::from(commit)));
        let input = Input { path: format!("{commit}"), hash, input_seqno, ..known };
        let edit = VersionEdit { inputs: vec![input], base: version.number, ..VersionEdit::default() };
        version = world.table().commit(version, &edit, &world.ids, 0).unwrap();
        versions.insert(version.number, version.clone());
    }
    versions
}

fn manifest(world: &World, number: u64) -> PathBuf {
    path(world, &format!("tables/T/manifest/{number:020}.json"))
}

fn checkpoint(world: &World, number: u64) -> PathBuf {
    path(world, &format!("tables/T/checkpoint/{number:020}.json"))
}

fn assert_readable(world: &World, versions: &BTreeMap<u64, Version>) {
    for (number, version) in versions {
        assert_eq!(world.table().version(*number).unwrap(), *version, "version {number}");
    }
    assert_eq!(world.table().latest().unwrap().as_ref(), versions.values().last());
}

#[test]
fn checkpoints_save_time_and_nothing_else() {
    let (world, _) = loaded();
    let versions = long(&world, 100);
    let numbers = [33, 65, 97];
    assert!(numbers.iter().all(|number| checkpoint(&world, *number).exists()));
    assert_eq!(fs::read_dir(path(&world, "tables/T/checkpoint")).unwrap().count(), numbers.len());
    assert_readable(&world, &versions);
    // A delta does not grow with the versions before it.
    let size = |number| fs::metadata(manifest(&world, number)).unwrap().len();
    assert!(size(100) < size(10) + 16 && size(100) < 1000, "{} and {} bytes", size(10), size(100));
    fs::write(checkpoint(&world, 97), "{}").unwrap();
    assert_readable(&world, &versions);
    let bytes = fs::read(checkpoint(&world, 65)).unwrap();
    fs::write(checkpoint(&world, 65), &bytes[..bytes.len() / 2]).unwrap();
    assert_readable(&world, &versions);
    numbers.iter().for_each(|number| fs::remove_file(checkpoint(&world, *number)).unwrap());
    assert_readable(&world, &versions);
    // The next commit at which one is due writes it.
    let more = long(&world, 32);
    assert_readable(&world, &more);
    assert_eq!(fs::read_dir(path(&world, "tables/T/checkpoint")).unwrap().count(), 1);
}

#[test]
fn a_manifest_of_another_place_or_table_is_noticed() {
    let (world, _) = loaded();
    long(&world, 10);
    let (other, mut model) = loaded();
    load(&other, &mut model, vec![event(7, 7)]);
    long(&other, 10);
    let own = fs::read(manifest(&world, 8)).unwrap();
    let wrong = |bytes: &[u8], said: &str| {
        fs::write(manifest(&world, 8), bytes).unwrap();
        for number in 8..=13 {
            let error = world.table().version(number).unwrap_err();
            assert!(error.to_string().contains(said), "version {number}: {error}");
        }
        assert_eq!(world.table().version(7).unwrap().number, 7);
    };
    wrong(&fs::read(manifest(&world, 7)).unwrap(), "says it is version 7");
    wrong(&fs::read(manifest(&other, 8)).unwrap(), "does not follow the manifest before it");
    let flipped: Vec<u8> = own.iter().map(|byte| if *byte == b'3' { b'4' } else { *byte }).collect();
    wrong(&flipped, "checksum");
    fs::write(manifest(&world, 8), own).unwrap();
    assert_eq!(world.table().version(13).unwrap().number, 13);
}

#[test]
fn nothing_is_committed_behind_a_gap() {
    let (world, mut model) = loaded();
    let versions = long(&world, 37);
    assert_eq!(versions.keys().last(), Some(&40));
    fs::remove_file(manifest(&world, 39)).unwrap();
    let error = world.table().latest().unwrap_err();
    assert!(matches!(&error, StoreError::Manifest { .. }) && error.to_string().contains("missing"), "{error}");
    assert!(world.table().version(39).unwrap_err().to_string().contains("missing"));
    world.write(&model.load(vec![event(3, 3)]));
    assert!(world.table().latest_number().is_err());
}

#[test]
fn a_version_of_a_time() {
    let (world, mut model) = (World::new(true, ""), Model::new(true, ""));
    for now in [10, 30, 20, 40] {
        model.now = now;
        load(&world, &mut model, vec![event(now.unsigned_abs(), 1)]);
    }
    let at = |time| world.table().version_at(time).map(|version| version.number);
    assert_eq!([at(10), at(19), at(20), at(30), at(39), at(40), at(99)].map(Result::unwrap), [1, 1, 3, 3, 3, 4, 4]);
    let error = at(9).unwrap_err();
    assert!(error.to_string().contains("the oldest is 1, committed at 1970-01-01T00:00:00.000010Z"), "{error}");
}

/// Of builds that wrote full manifests only. It never changes.
#[test]
fn manifests_of_format_1_are_read_and_gone_upon() {
    let golden = include_bytes!("../../../store/golden/manifest-v1.json");
    let version = decode(golden, 3).unwrap();
    assert_eq!(decode(&encode(&version).unwrap(), 3).unwrap(), version);
    assert_eq!((version.inputs.len(), version.ssts().count(), version.tombstones.len()), (3, 3, 1));
    assert_eq!(version.ssts().map(|sst| sst.cells).sum::<u64>(), 1499);

    let (world, _) = loaded();
    let folder = path(&world, "tables/SENSOR/manifest");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{:020}.json", 3)), golden).unwrap();
    let table = tidetable_store::Store::new(world.table().blobs().clone()).table("SENSOR");
    assert_eq!(table.latest().unwrap().unwrap(), version);
    let edit = VersionEdit { removed: vec![version.inputs[0].path.clone()], base: 3, ..VersionEdit::default() };
    let next = table.commit(version.clone(), &edit, &world.ids, version.now).unwrap();
    assert_eq!((next.number, next.inputs.len()), (4, 2));
    assert_eq!(table.latest().unwrap().unwrap(), next);
}

/// Delta and checkpoint in the current format. They never change.
#[test]
fn steps_and_checkpoints_of_format_2_are_read() {
    let before = decode(include_bytes!("../../../store/golden/manifest-v1.json"), 3).unwrap();
    let (step, whole) = (
        include_bytes!("../../../store/golden/step-v2.json"),
        include_bytes!("../../../store/golden/checkpoint-v2.json"),
    );
    let next = decode_delta(step, 4, &before).unwrap();
    assert_eq!(next, after(&before));
    assert_eq!(next, decode_checkpoint(whole, 4).unwrap());
    assert_eq!(encode_delta(&before, &next).unwrap(), step);
    assert_eq!(encode_checkpoint(&next).unwrap(), whole);
}

/// A version after the golden one, with every field of a delta.
fn after(before: &Version) -> Version {
    let mut next = before.clone();
    (next.number, next.now, next.vacuum_watermark, next.gc_watermark) = (4, before.now + 1, Some(-5), Some(7));
    next.commit = "c".repeat(32);
    let known = before.inputs[2].clone();
    next.inputs = before.inputs.iter().skip(1).cloned().collect();
    let hash = tidetable_source::ContentHash(9);
    next.inputs =
        next.inputs.iter().cloned().chain([Input { input_seqno: 9, path: "new".into(), hash, ..known }]).collect();
    next.table.gc.insert("METER".to_owned(), "maxversions=2".to_owned());
    next.windows = before.windows.iter().take(2).cloned().collect();
    let window = next.windows.iter_mut().next().unwrap();
    window.days.values_mut().for_each(|version| *version = 4);
    let mut sst = window.ssts[0].clone();
    (sst.id, sst.seqno) = ("01GOLDENSST000000000000000".to_owned(), 99);
    window.ssts.push(sst);
    next.tombstones.clear();
    next
}

#[test]
#[ignore = "writes the golden files of a new format; those of an old one never change"]
fn write_golden_files() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../store/golden");
    let before = decode(include_bytes!("../../../store/golden/manifest-v1.json"), 3).unwrap();
    fs::write(folder.join("step-v2.json"), encode_delta(&before, &after(&before)).unwrap()).unwrap();
    fs::write(folder.join("checkpoint-v2.json"), encode_checkpoint(&after(&before)).unwrap()).unwrap();
}
