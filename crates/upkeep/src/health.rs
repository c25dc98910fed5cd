//! Health of manifests and checkpoints: finds damage, its cost, and a sequence of versions that ends before the
//! damage or begins after it.
//!
//! SSTs are only looked for here; [`Table::verify`] reads them.

use tidetable_blobs::BlobError;
use tidetable_store::manifest;
use tidetable_store::version::{Version, VersionEdit};
use tidetable_store::{Ids, Result, StoreError, Table, stated_format};

/// Health of the manifests and checkpoints of a table.
#[derive(Debug)]
pub struct TableHealth {
    table: Table,
    /// Number of the newest version that has a manifest.
    pub newest: u64,
    /// The newest readable version; 0 if none is.
    pub readable: u64,
    /// The oldest version from which all versions up to [`Self::readable`] are readable.
    pub whole_from: u64,
    /// Number of the oldest version that vacuum has kept.
    pub oldest: u64,
    /// Manifests and checkpoints that are damaged or missing.
    pub damaged: Vec<DamagedFile>,
    /// Whether a newer build wrote one of them: then this build must not repair the table.
    pub is_newer: bool,
    /// SSTs of version [`Self::readable`] that are missing or have another size.
    pub lost_ssts: Vec<DamagedFile>,
    /// Its job, if a version is readable.
    pub job: Option<String>,
}

/// A damaged or missing file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Path inside the store.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
    /// Whether the file exists.
    pub is_there: bool,
}

impl TableHealth {
    /// Reads every manifest and checkpoint of `table`, and looks for the SSTs of its newest version.
    ///
    /// # Errors
    /// If the store cannot be listed, or a file cannot be read for another reason than its content.
    pub fn of(table: &Table) -> Result<Self> {
        let manifests = table.manifests();
        let kept = manifests.kept()?;
        let newest = manifests.version_numbers()?.last().copied().unwrap_or(0);
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
            let path = manifests.path(number);
            match table.blobs().read(&path)? {
                Some(bytes) => {
                    if let Err(reason) = manifest::read(&bytes, number) {
                        health.find(path, reason, Some(&bytes));
                    }
                }
                None => health.find(path, "it is missing, and later ones are there".to_owned(), None),
            }
        }

        for number in kept.checkpoints {
            let path = manifests.checkpoint_path(number);
            let Some(bytes) = table.blobs().read(&path)? else { continue };
            if let Err(reason) = manifest::decode_checkpoint(&bytes, number) {
                health.find(path, reason, Some(&bytes));
            }
        }

        health.read_versions()?;
        Ok(health)
    }

    /// Notes a damaged file; without `bytes` it is missing.
    fn find(&mut self, path: String, reason: String, bytes: Option<&[u8]>) {
        self.is_newer |= bytes.and_then(stated_format).is_some_and(|format| format > manifest::NEWEST_FORMAT);
        self.damaged.push(DamagedFile { path, reason, is_there: bytes.is_some() });
    }

    /// Finds the readable versions.
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
                Err(error @ StoreError::Blob(BlobError::Io { .. })) => return Err(error),
                Err(_) if self.readable > 0 => break,

                // A valid manifest may still not follow the one before it.
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

    /// Notes the SSTs of `version` that are missing or have another size.
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

    /// Whether no damage was found.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.lost_ssts.is_empty()
    }

    /// Whether no version is readable: then the table must be rebuilt.
    pub fn is_lost(&self) -> bool {
        self.readable == 0
    }

    /// The files to set aside, latest first: damaged ones, and versions based on them.
    ///
    /// # Errors
    /// If the manifests or checkpoints cannot be listed.
    pub fn in_the_way(&self) -> Result<Vec<String>> {
        let manifests = self.table.manifests();
        let mut paths: Vec<String> = Vec::new();
        for number in manifests.file_numbers(&manifests.directory())?.into_iter().rev() {
            paths.extend(Some(manifests.path(number)).filter(|path| self.is_in_the_way(number, path)));
        }
        for number in manifests.file_numbers(&manifests.checkpoint_directory())?.into_iter().rev() {
            paths.extend(Some(manifests.checkpoint_path(number)).filter(|path| self.is_in_the_way(number, path)));
        }

        Ok(paths)
    }

    /// Whether the file of version `number` at `path` is damaged, or based on one that is.
    fn is_in_the_way(&self, number: u64, path: &str) -> bool {
        number > self.readable || self.damaged.iter().any(|file| file.is_there && file.path == path)
    }

    /// Makes the sequence of versions readable: sets the files [in the way](Self::in_the_way) aside with `set_aside`.
    /// The numbers of lost versions, up to `used`, are not used again, so that parts published from them are not
    /// mistaken for parts of others. Returns the number of the newest version.
    ///
    /// # Errors
    /// Those of setting aside and committing; it can be tried again.
    pub fn mend(&self, used: u64, ids: &dyn Ids, set_aside: &dyn Fn(&str) -> Result<()>) -> Result<u64> {
        if self.whole_from > self.oldest {
            self.table.manifests().truncate_before(&self.table.version(self.whole_from)?)?;
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
