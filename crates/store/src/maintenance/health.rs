//! What of a table's small files is damaged, what that costs, and the way out: the line of versions ends before what
//! cannot be read, or begins after it.
//!
//! SSTs are not read here ([`Table::verify`] does), only looked for.

use crate::error::{Result, StoreError};
use crate::ids::Ids;
use crate::maintenance::left_out::stated_format;
use crate::manifest;
use crate::table::Table;
use crate::version::{Version, VersionEdit};

/// How the small files of a table stand.
#[derive(Debug)]
pub struct TableHealth {
    table: Table,
    /// Number of the newest version that has a manifest.
    pub newest: u64,
    /// The newest version that can be read; 0 if none can.
    pub readable: u64,
    /// The oldest version from which on all up to [`Self::readable`] can be read.
    pub whole_from: u64,
    /// The oldest version that is kept.
    pub oldest: u64,
    /// Manifests and checkpoints that are damaged or missing.
    pub damaged: Vec<DamagedFile>,
    /// Whether one of them was written by a newer build: then nothing is to be mended by this one.
    pub is_newer: bool,
    /// SSTs of the version [`Self::readable`] that are not there, or have another size.
    pub lost_ssts: Vec<DamagedFile>,
    /// Its job, if a version can be read.
    pub job: Option<String>,
}

/// A file that is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Path inside the store.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether there is such a file.
    pub is_there: bool,
}

impl TableHealth {
    /// Reads every manifest and checkpoint of `table`, and looks for the SSTs of its newest version.
    ///
    /// # Errors
    /// If the store cannot be listed, or a file not be read for another reason than what is in it.
    pub fn of(table: &Table) -> Result<Self> {
        let kept = table.kept()?;
        let numbers = table.version_numbers()?;
        let newest = numbers.last().copied().unwrap_or(0);
        let mut health = Self {
            table: table.clone(),
            newest,
            readable: 0,
            whole_from: 0,
            oldest: kept.oldest,
            damaged: Vec::new(),
            is_newer: false,
            lost_ssts: Vec::new(),
            job: None,
        };
        for number in kept.oldest..=newest {
            let path = table.manifest_path(number);
            let Some(bytes) = table.blobs().read(&path)? else {
                health.find(path, "it is missing, and later ones are there".to_owned(), None);
                continue;
            };
            if let Err(reason) = manifest::read(&bytes, number) {
                health.find(path, reason, Some(&bytes));
            }
        }
        for number in kept.checkpoints {
            let path = table.checkpoint_path(number);
            let Some(bytes) = table.blobs().read(&path)? else { continue };
            if let Err(reason) = manifest::decode_checkpoint(&bytes, number) {
                health.find(path, reason, Some(&bytes));
            }
        }
        health.read_versions()?;
        Ok(health)
    }

    fn find(&mut self, path: String, reason: String, bytes: Option<&[u8]>) {
        self.is_newer |= bytes.and_then(stated_format).is_some_and(|format| format > manifest::NEWEST_FORMAT);
        self.damaged.push(DamagedFile { path, reason, is_there: bytes.is_some() });
    }

    /// Finds which versions can be read.
    fn read_versions(&mut self) -> Result<()> {
        for number in (self.oldest..=self.newest).rev() {
            match self.table.version(number) {
                Ok(version) => {
                    if self.readable == 0 {
                        self.readable = number;
                        self.look_for_ssts(&version)?;
                        self.job = Some(version.table.job);
                    }
                    self.whole_from = number;
                }
                Err(error @ StoreError::Io { .. }) => return Err(error),
                Err(_) if self.readable > 0 => break,
                // Each may be whole, and still not follow the one before it.
                Err(error) => {
                    if let StoreError::Manifest { path, reason } = error
                        && !self.damaged.iter().any(|file| file.path == path)
                    {
                        self.damaged.push(DamagedFile { path, reason, is_there: true });
                    }
                }
            }
        }
        Ok(())
    }

    fn look_for_ssts(&mut self, version: &Version) -> Result<()> {
        for sst in version.ssts() {
            let path = self.table.sst_path(&sst.id);
            match self.table.blobs().stat(&path)? {
                Some(found) if found.bytes == sst.bytes => {}
                Some(found) => {
                    let reason = format!("it has {} bytes, and its manifest says {}", found.bytes, sst.bytes);
                    self.lost_ssts.push(DamagedFile { path, reason, is_there: true });
                }
                None => {
                    self.lost_ssts.push(DamagedFile { path, reason: "it is missing".to_owned(), is_there: false });
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is damaged, as far as this looks.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.lost_ssts.is_empty()
    }

    /// Whether no version can be read: only a rebuild makes the table again.
    pub fn is_lost(&self) -> bool {
        self.readable == 0
    }

    /// The files that stand in the way, those that come last first: damaged ones, and versions that go upon them.
    pub fn in_the_way(&self) -> Result<Vec<String>> {
        let mut paths: Vec<String> = Vec::new();
        let folders = [self.table.manifest_folder(), self.table.checkpoint_folder()];
        let path = [Table::manifest_path, Table::checkpoint_path];
        for (folder, path) in folders.iter().zip(path) {
            for number in self.table.numbers(folder)?.into_iter().rev() {
                let path = path(&self.table, number);
                if number > self.readable || self.damaged.iter().any(|file| file.is_there && file.path == path) {
                    paths.push(path);
                }
            }
        }
        Ok(paths)
    }

    /// Makes the line of versions one that can be read, when the files [in the way](Self::in_the_way) are set aside by
    /// `set_aside`. Versions that were lost keep their numbers, up to `used`: what was published from them must not be
    /// taken for made from others. Returns the number of the newest version.
    ///
    /// # Errors
    /// Those of setting aside and committing. Then it can be tried again.
    pub fn mend(&self, used: u64, ids: &dyn Ids, set_aside: &dyn Fn(&str) -> Result<()>) -> Result<u64> {
        if self.whole_from > self.oldest {
            self.table.keep_from(&self.table.version(self.whole_from)?)?;
        }
        for path in self.in_the_way()? {
            set_aside(&path)?;
        }
        let mut version = self.table.version(self.readable)?;
        while version.number < used {
            let (edit, now) = (VersionEdit { base: version.number, ..VersionEdit::default() }, version.now);
            version = self.table.commit(version, &edit, ids, now)?;
        }
        Ok(version.number)
    }
}
