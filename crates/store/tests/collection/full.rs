use std::fmt::Debug;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tidetable_sstable::ReadAt;
use tidetable_store::{
    Disk, DiskFile, LocalBlobs, OsDisk, RemovalKind, Stat, Store, StoreError, VacuumOptions, VacuumPlan, VerifyOptions,
};

use super::{event, loaded};

/// A disk that is full as soon as that is said, until the reserve or an SST goes.
#[derive(Debug, Clone, Default)]
struct FullDisk {
    full: Arc<AtomicBool>,
}

struct File {
    file: Box<dyn DiskFile>,
    full: Arc<AtomicBool>,
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.full.load(Ordering::Relaxed) {
            return Err(ErrorKind::StorageFull.into());
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl DiskFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

impl Disk for FullDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File { file: OsDisk.create(path)?, full: Arc::clone(&self.full) }))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)?;
        if path.ends_with(".reserve") {
            self.full.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        OsDisk.make_directory(path)
    }

    fn is_directory(&self, path: &Path) -> bool {
        OsDisk.is_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        OsDisk.sync_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        OsDisk.list(path)
    }

    fn read(&self, path: &Path) -> io::Result<Bytes> {
        OsDisk.read(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        OsDisk.open(path)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        OsDisk.stat(path)
    }
}

#[test]
fn vacuum_frees_a_full_disk() {
    let (world, mut model) = loaded();
    let file = model.change(0, vec![event(3, 1)]).unwrap();
    world.write(&file);
    world.load(model.now);
    let cells = world.cells();
    let disk = FullDisk::default();
    let root = world.table().blobs().display();
    let store = Store::new(Arc::new(LocalBlobs::on(Arc::new(disk.clone()), root.clone().into())));
    let reserve = Path::new(&root).join(".reserve");
    let options = VacuumOptions { before: i64::MAX, half_written_before: i64::MAX, keep_versions: 1 };
    let plan = || VacuumPlan::new(&store.table("T"), options).unwrap();
    let half = Path::new(&root).join("tables/T/sst/.tmp-1-2");
    std::fs::write(&half, "half").unwrap();
    disk.full.store(true, Ordering::Relaxed);
    // Without a reserve only what needs no word goes.
    let error = plan().run(&world.ids).unwrap_err();
    assert!(matches!(&error, StoreError::Io { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
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
    // There is room again, and some of it is to be kept for the next time.
    assert!(!reserve.exists());
    store.keep_reserve().unwrap();
    assert!(reserve.exists());
    assert_eq!(world.cells(), cells);
    let everything = VerifyOptions { all_versions: true, checksums_only: false };
    assert!(world.table().verify(everything).unwrap().is_sound());
}
