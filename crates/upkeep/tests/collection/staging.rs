//! Staging directories, on a disk that exchanges directories in one call and on one that does not.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use tidetable_blobs::{Blobs, LocalBlobs};
use tidetable_blobs::{Disk, OsDisk, StagingDirectory};
use tidetable_store::Store;
use tidetable_upkeep::leftovers;

use super::disk::TestDisk;

fn on_both(test: impl Fn(&Arc<dyn Blobs>)) {
    for disk in [Arc::new(OsDisk) as Arc<dyn Disk>, Arc::new(TestDisk::default())] {
        let folder = tempfile::tempdir().unwrap();
        let blobs: Arc<dyn Blobs> = Arc::new(LocalBlobs::on(disk, folder.path().join("root")));
        test(&blobs);
    }
}

fn filled(blobs: &dyn Blobs, folder: &str, names: &[&str]) -> Box<dyn StagingDirectory> {
    let aside = blobs.staging(folder).unwrap().unwrap();
    for name in names {
        let mut file = blobs.overwrite_writer(&format!("{folder}/started")).unwrap();
        file.write_all(name.as_bytes()).unwrap();
        file.finish_as(&format!("{}/{name}", aside.path())).unwrap();
    }
    aside
}

#[test]
fn a_folder_takes_the_place_of_one_that_is_there() {
    on_both(|blobs| {
        for name in ["part-0", "part-1", "part-2", "note"] {
            blobs.create_new(&format!("exports/day/{name}"), b"old").unwrap();
        }
        let aside = filled(blobs.as_ref(), "exports/day", &["part-1", "part-3"]);
        assert_eq!(blobs.list("exports").unwrap(), ["day"]);
        assert_eq!(blobs.list("exports/day").unwrap().len(), 4);
        aside.swap(&|name| name.starts_with("part-")).unwrap();
        assert_eq!(blobs.list("exports/day").unwrap(), ["note", "part-1", "part-3"]);
        assert_eq!(blobs.read("exports/day/part-1").unwrap().unwrap().as_ref(), b"part-1");
        assert_eq!(blobs.read("exports/day/note").unwrap().unwrap().as_ref(), b"old");
        assert!(blobs.leftovers("").unwrap().is_empty());
    });
}

#[test]
fn what_else_is_in_a_folder_stays() {
    on_both(|blobs| {
        for name in ["part-0", "note"] {
            blobs.create_new(&format!("exports/day/{name}"), b"old").unwrap();
        }
        let root = PathBuf::from(blobs.display());
        std::fs::set_permissions(root.join("exports/day"), Permissions::from_mode(0o750)).unwrap();
        let aside = filled(blobs.as_ref(), "exports/day", &["part-1"]);
        aside.swap(&|name| name.starts_with("part-")).unwrap();
        assert_eq!(blobs.list("exports/day").unwrap(), ["note", "part-1"]);
        // A directory with a nested directory is not replaced.
        blobs.create_new("exports/day/inner/file", b"old").unwrap();
        assert!(blobs.staging("exports/day").unwrap().is_none());
        assert_eq!(std::fs::metadata(root.join("exports/day")).unwrap().permissions().mode() & 0o777, 0o750);
        assert!(blobs.leftovers("").unwrap().is_empty());
        assert_eq!(blobs.list("").unwrap(), ["exports"]);
    });
}

#[test]
fn a_link_to_a_folder_stays_one() {
    on_both(|blobs| {
        blobs.create_new("elsewhere/day/part-0", b"old").unwrap();
        blobs.create_new("exports/other", b"").unwrap();
        let root = PathBuf::from(blobs.display());
        std::os::unix::fs::symlink("../elsewhere/day", root.join("exports/day")).unwrap();
        filled(blobs.as_ref(), "exports/day", &["part-1"]).swap(&|_| true).unwrap();
        assert_eq!(blobs.list("elsewhere/day").unwrap(), ["part-1"]);
        assert!(root.join("exports/day").is_symlink());
    });
}

#[test]
fn two_processes_of_one_number_have_folders_of_their_own() {
    on_both(|blobs| {
        let other = LocalBlobs::new(PathBuf::from(blobs.display()));
        let (one, two) = (filled(blobs.as_ref(), "exports/a", &["part-0"]), filled(&other, "exports/b", &["part-1"]));
        assert_ne!(one.path(), two.path());
        one.swap(&|_| true).unwrap();
        two.swap(&|_| true).unwrap();
        assert_eq!(blobs.list("exports/a").unwrap(), ["part-0"]);
        assert_eq!(blobs.list("exports/b").unwrap(), ["part-1"]);
    });
}

#[test]
fn what_a_killed_process_left_is_found_and_swept() {
    on_both(|blobs| {
        let aside = filled(blobs.as_ref(), "exports/day", &["part-0", "part-1"]);
        std::mem::forget(aside);
        std::mem::forget(blobs.staging("exports/day").unwrap());
        let store = Store::new(Arc::clone(blobs));
        assert!(leftovers(&store, 0).unwrap().is_empty(), "they are new");
        // Two files and two directories.
        let left = leftovers(&store, i64::MAX).unwrap();
        assert_eq!(left.len(), 4, "{left:?}");
        left.iter().for_each(|left| blobs.delete(&left.path).unwrap());
        assert!(leftovers(&store, i64::MAX).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(blobs.display()).unwrap().count(), 1);
    });
}
