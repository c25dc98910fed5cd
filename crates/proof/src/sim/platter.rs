//! Content of a simulated disk, and what remains of it after a power loss.
//!
//! Bytes are durable once the file was synced; a name once its directory was synced after the name was created. Until
//! then each may independently exist or not after a power loss.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::random::Random;

/// Directories and files with what of them is durable. Clones share the bytes.
#[derive(Debug, Clone)]
pub struct Platter {
    folders: BTreeMap<PathBuf, Folder>,
    files: Vec<Content>,
}

#[derive(Debug, Clone, Default)]
struct Folder {
    names: BTreeMap<String, Entry>,
    /// Entries at the last sync of the directory.
    durable: BTreeMap<String, Entry>,
    /// Changes since then, in order; a power loss may undo any of them.
    since: Vec<Change>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Entry {
    File(usize),
    Folder,
}

#[derive(Debug, Clone)]
enum Change {
    Put(String, Entry),
    Take(String),
    Move(String, String, Entry),
}

#[derive(Debug, Clone, Default)]
struct Content {
    bytes: Arc<Vec<u8>>,
    synced: usize,
    /// A sync failed: bytes not durable then never will be, even if later syncs succeed.
    lost: bool,
}

/// What a power loss destroys of what is not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All unsynced data, of files and of directories.
    Everything,
    /// Some unsynced data, by this seed: bytes may be missing or zero, and later changes may survive earlier ones.
    Some(u64),
}

impl Default for Platter {
    fn default() -> Self {
        Self { folders: BTreeMap::from([(PathBuf::from("/"), Folder::default())]), files: Vec::new() }
    }
}

fn split(path: &Path) -> Option<(&Path, &str)> {
    Some((path.parent()?, path.file_name()?.to_str()?))
}

impl Folder {
    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.since.push(change);
    }
}

fn apply(names: &mut BTreeMap<String, Entry>, change: &Change) {
    match change {
        Change::Put(name, entry) => {
            names.insert(name.clone(), *entry);
        }
        Change::Take(name) => {
            names.remove(name);
        }
        Change::Move(from, to, entry) => {
            names.remove(from);
            names.insert(to.clone(), *entry);
        }
    }
}

impl Platter {
    fn entry(&self, path: &Path) -> Option<Entry> {
        let (folder, name) = split(path)?;
        self.folders.get(folder)?.names.get(name).copied()
    }

    /// The file of this name, by its number; `None` for directories and free names.
    pub fn file(&self, path: &Path) -> Option<usize> {
        match self.entry(path)? {
            Entry::File(file) => Some(file),
            Entry::Folder => None,
        }
    }

    /// The bytes of a file as readers see them, synced or not.
    pub fn bytes(&self, file: usize) -> Arc<Vec<u8>> {
        self.files.get(file).map(|content| Arc::clone(&content.bytes)).unwrap_or_default()
    }

    /// Creation time of a file: the number of files created before.
    pub fn made(&self, file: usize) -> i64 {
        file as i64
    }

    /// Whether there is a directory at this path.
    pub fn is_directory(&self, path: &Path) -> bool {
        self.folders.contains_key(path)
    }

    /// Whether a file or a directory has this name.
    pub fn exists(&self, path: &Path) -> bool {
        self.entry(path).is_some()
    }

    /// The names in a directory, ascending; `None` if it does not exist.
    pub fn list(&self, path: &Path) -> Option<Vec<String>> {
        Some(self.folders.get(path)?.names.keys().cloned().collect())
    }

    /// Paths of all files, by directory and name; directories are left out.
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        for (path, folder) in &self.folders {
            let files = folder.names.iter().filter(|(_, entry)| **entry != Entry::Folder);
            paths.extend(files.map(|(name, _)| path.join(name)));
        }
        paths
    }

    /// Creates an empty file; `None` if the directory does not exist.
    pub fn create(&mut self, path: &Path) -> Option<usize> {
        let (folder, name) = split(path)?;
        let file = self.files.len();
        self.folders.get_mut(folder)?.change(Change::Put(name.to_owned(), Entry::File(file)));
        self.files.push(Content::default());
        Some(file)
    }

    /// Appends bytes to a file; they are not durable before a sync.
    pub fn write(&mut self, file: usize, bytes: &[u8]) {
        if let Some(content) = self.files.get_mut(file) {
            Arc::make_mut(&mut content.bytes).extend_from_slice(bytes);
        }
    }

    /// Syncs a file: its bytes survive a power loss, unless a sync failed before.
    pub fn sync(&mut self, file: usize) {
        if let Some(content) = self.files.get_mut(file).filter(|content| !content.lost) {
            content.synced = content.bytes.len();
        }
    }

    /// A failed sync of a file: what is not durable now never will be, as on Linux.
    pub fn lose(&mut self, file: usize) {
        if let Some(content) = self.files.get_mut(file) {
            content.lost = true;
        }
    }

    /// Gives a file another name, which is not durable before a sync of its directory.
    pub fn link(&mut self, from: &Path, to: &Path) {
        if let (Some(entry), Some((folder, name))) = (self.entry(from), split(to))
            && let Some(folder) = self.folders.get_mut(folder)
        {
            folder.change(Change::Put(name.to_owned(), entry));
        }
    }

    /// Renames a file within its directory, replacing any file of the new name.
    pub fn rename(&mut self, from: &Path, to: &Path) {
        if let (Some(entry), Some((folder, name)), Some((_, old))) = (self.entry(from), split(to), split(from))
            && let Some(folder) = self.folders.get_mut(folder)
        {
            folder.change(Change::Move(old.to_owned(), name.to_owned(), entry));
        }
    }

    /// Removes a name; the file stays for those who have it open.
    pub fn remove(&mut self, path: &Path) {
        if let Some((folder, name)) = split(path)
            && let Some(folder) = self.folders.get_mut(folder)
        {
            folder.change(Change::Take(name.to_owned()));
        }
    }

    /// Creates a directory; `false` if its parent does not exist.
    pub fn make_directory(&mut self, path: &Path) -> bool {
        let Some((folder, name)) = split(path) else { return false };
        let Some(folder) = self.folders.get_mut(folder) else { return false };
        folder.change(Change::Put(name.to_owned(), Entry::Folder));
        self.folders.insert(path.to_owned(), Folder::default());
        true
    }

    /// Syncs a directory: its names survive a power loss.
    pub fn sync_directory(&mut self, path: &Path) {
        if let Some(folder) = self.folders.get_mut(path) {
            folder.durable.clone_from(&folder.names);
            folder.since.clear();
        }
    }

    /// The content after a power loss, all of it durable.
    pub fn after(&self, loss: Loss) -> Self {
        let mut random = match loss {
            Loss::Everything => None,
            Loss::Some(seed) => Some(Random::new(seed)),
        };
        let files = self.files.iter().map(|content| content.after(random.as_mut())).collect();
        let mut left = Self { folders: BTreeMap::new(), files };

        let mut waiting = vec![PathBuf::from("/")];
        while let Some(path) = waiting.pop() {
            let Some(folder) = self.folders.get(&path) else { continue };
            let names = folder.after(random.as_mut());
            let folders = names.iter().filter(|(_, entry)| **entry == Entry::Folder);
            waiting.extend(folders.map(|(name, _)| path.join(name)));
            left.folders.insert(path, Folder { durable: names.clone(), names, since: Vec::new() });
        }
        left
    }
}

impl Folder {
    fn after(&self, random: Option<&mut Random>) -> BTreeMap<String, Entry> {
        let mut names = self.durable.clone();
        let Some(random) = random else { return names };
        let in_order = random.one_in(2);
        let first = random.place(self.since.len() + 1);
        for (at, change) in self.since.iter().enumerate() {
            if if in_order { at < first } else { random.one_in(2) } {
                apply(&mut names, change);
            }
        }
        names
    }
}

impl Content {
    fn after(&self, random: Option<&mut Random>) -> Self {
        let len = self.bytes.len();
        let mut bytes = self.bytes.get(..self.synced).unwrap_or_default().to_vec();
        if let Some(random) = random.filter(|_| self.synced < len) {
            match random.below(4) {
                0 => {}
                // The length was durable, the bytes were not.
                1 => bytes.resize(len, 0),
                2 => bytes.clone_from(&self.bytes),
                _ => {
                    let kept = self.synced + random.place(len - self.synced + 1);
                    bytes.extend_from_slice(self.bytes.get(self.synced..kept).unwrap_or_default());
                }
            }
        }
        let synced = bytes.len();
        Self { bytes: Arc::new(bytes), synced, lost: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(synced: bool, folder: bool) -> Platter {
        let mut platter = Platter::default();
        assert!(platter.make_directory(Path::new("/a")));
        platter.sync_directory(Path::new("/"));
        let file = platter.create(Path::new("/a/x")).unwrap();
        platter.write(file, b"bytes");
        if synced {
            platter.sync(file);
        }
        platter.link(Path::new("/a/x"), Path::new("/a/y"));
        if folder {
            platter.sync_directory(Path::new("/a"));
        }
        platter
    }

    fn left(platter: &Platter, name: &str) -> Option<Vec<u8>> {
        let left = platter.after(Loss::Everything);
        left.file(Path::new(name)).map(|file| left.bytes(file).to_vec())
    }

    #[test]
    fn what_was_synced_is_left() {
        assert_eq!(left(&written(true, true), "/a/y").unwrap(), b"bytes");
        assert_eq!(left(&written(true, false), "/a/y"), None);
        assert_eq!(left(&written(false, true), "/a/y").unwrap(), b"");
    }

    #[test]
    fn a_folder_goes_with_its_name() {
        let mut platter = written(true, true);
        platter.make_directory(Path::new("/a/b"));
        let file = platter.create(Path::new("/a/b/z")).unwrap();
        platter.sync(file);
        platter.sync_directory(Path::new("/a/b"));
        assert!(!platter.after(Loss::Everything).is_directory(Path::new("/a/b")));
        platter.sync_directory(Path::new("/a"));
        assert!(platter.after(Loss::Everything).exists(Path::new("/a/b/z")));
    }

    #[test]
    fn a_removal_that_was_not_synced_is_undone() {
        let mut platter = written(true, true);
        platter.remove(Path::new("/a/y"));
        assert!(!platter.exists(Path::new("/a/y")));
        assert_eq!(left(&platter, "/a/y").unwrap(), b"bytes");
    }

    #[test]
    fn a_sync_after_a_failed_one_is_worth_nothing() {
        let mut platter = written(false, true);
        let file = platter.file(Path::new("/a/x")).unwrap();
        platter.lose(file);
        platter.sync(file);
        assert_eq!(left(&platter, "/a/y").unwrap(), b"");
    }

    #[test]
    fn some_losses_keep_more_than_others() {
        let platter = written(false, false);
        let lens: std::collections::BTreeSet<_> = (0..200)
            .filter_map(|seed| {
                let left = platter.after(Loss::Some(seed));
                left.file(Path::new("/a/y")).map(|file| left.bytes(file).to_vec())
            })
            .collect();
        assert!(lens.contains(&b"bytes"[..]) && lens.contains(&b""[..]) && lens.contains(&[0; 5][..]), "{lens:?}");
    }
}
