use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidetable_blobs::BlobError;
use tidetable_blobs::LocalBlobs;
use tidetable_store::{Store, StoreError};
use tidetable_upkeep::{RemovalKind, VacuumOptions, VacuumPlan, VerifyOptions, verify};

use super::disk::TestDisk;
use super::{event, loaded};

#[test]
fn vacuum_frees_a_full_disk() {
    let (world, mut model) = loaded();
    let file = model.change(0, vec![event(3, 1)]).unwrap();
    world.write(&file);
    world.load(model.now);
    let cells = world.cells();
    let disk = TestDisk::default();
    let root = world.table().blobs().display();
    let store = Store::new(Arc::new(LocalBlobs::on(Arc::new(disk.clone()), root.clone().into())));
    let reserve = Path::new(&root).join(".reserve");
    let options = VacuumOptions { before: i64::MAX, half_written_before: i64::MAX, keep_versions: 1 };
    let plan = || VacuumPlan::new(&store.table("T"), options).unwrap();
    let half = Path::new(&root).join("tables/T/sst/.tmp-1-2");
    std::fs::write(&half, "half").unwrap();
    disk.full.store(true, Ordering::Relaxed);
    // Without a reserve only files that need no commit are removed.
    let error = plan().run(&world.ids).unwrap_err();
    assert!(
        matches!(&error, StoreError::Blob(BlobError::Io { source, .. }) if source.kind() == ErrorKind::StorageFull),
        "{error}"
    );
    assert!(!half.exists());
    disk.full.store(false, Ordering::Relaxed);
    store.keep_reserve().unwrap();
    assert!(reserve.metadata().unwrap().len() >= 4 << 20);
    assert!(store.blobs().list("").unwrap().iter().all(|name| !name.contains("reserve")));
    disk.full.store(true, Ordering::Relaxed);
    let announced = plan().removals;
    assert!(announced.iter().any(|removal| removal.kind == RemovalKind::Sst));
    let done = plan().run(&world.ids).unwrap();
    assert_eq!(done.removals, announced);
    assert!(done.removals.iter().all(|removal| !Path::new(&root).join(&removal.path).exists()));
    // There is space again, and the reserve must be kept again.
    assert!(!reserve.exists());
    store.keep_reserve().unwrap();
    assert!(reserve.exists());
    assert_eq!(world.cells(), cells);
    let everything = VerifyOptions { all_versions: true, checksums_only: false };
    assert!(verify(&world.table(), everything).unwrap().is_sound());
}
