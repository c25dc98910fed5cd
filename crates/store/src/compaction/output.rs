//! The files of a merge: pieces that come in any order, written in the order of their keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_layout::StoredSchema;
use tidetable_sstable::{Compression, StripeLimits, WriteOptions};

use crate::error::Result;
use crate::ids::Ids;
use crate::sst_store::SstStore;
use crate::sst_writer::{SizedStripe, SstFile};
use crate::version::Sst;

/// What became of a piece.
pub(crate) enum SubcompactionOutput {
    /// An SST that stays as it is.
    Moved(Box<Sst>),
    /// Stripes by key.
    Stripes(Vec<SizedStripe>),
}

/// The files of one merge as they are written.
pub(crate) struct MergeOutput<'a> {
    store: &'a SstStore,
    schema: &'a Arc<StoredSchema>,
    ids: &'a dyn Ids,
    /// What files say of the rules that were applied to them.
    collected: Option<&'a str>,
    open: Option<SstFile<'a>>,
    /// Those that are done, by key; moved ones among them.
    ssts: Vec<Sst>,
    /// The piece that is next.
    next: usize,
    /// Pieces that are done before those that come before them.
    waiting: BTreeMap<usize, SubcompactionOutput>,
}

impl<'a> MergeOutput<'a> {
    pub(crate) fn new(
        store: &'a SstStore,
        schema: &'a Arc<StoredSchema>,
        ids: &'a dyn Ids,
        collected: Option<&'a str>,
    ) -> Self {
        Self { store, schema, ids, collected, open: None, ssts: Vec::new(), next: 0, waiting: BTreeMap::new() }
    }

    /// Takes piece `at`, and writes all that can be.
    pub(crate) fn take(&mut self, at: usize, made: SubcompactionOutput) -> Result<()> {
        self.waiting.insert(at, made);
        while let Some(made) = self.waiting.remove(&self.next) {
            self.next += 1;
            match made {
                SubcompactionOutput::Stripes(stripes) => stripes.into_iter().try_for_each(|stripe| self.push(stripe))?,
                SubcompactionOutput::Moved(sst) => {
                    self.end_file()?;
                    self.ssts.push(*sst);
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, stripe: SizedStripe) -> Result<()> {
        if self.open.as_ref().is_some_and(|file| !file.takes(&stripe)) {
            self.end_file()?;
        }
        let mut file = match self.open.take() {
            Some(file) => file,
            None => {
                let options =
                    WriteOptions { uid: self.ids.next(), level: Compression::Dense, stripe: StripeLimits::default() };
                let collected = self.collected.map(|collected| (GC_STAMP.to_owned(), collected.to_owned()));
                SstFile::begin_with(self.store, self.schema, &options, collected)?
            }
        };
        file.push(stripe)?;
        self.open = Some(file);
        Ok(())
    }

    fn end_file(&mut self) -> Result<()> {
        if let Some(file) = self.open.take() {
            self.ssts.extend(file.end()?);
        }
        Ok(())
    }

    /// The files by key, when all pieces have come.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.end_file()
    }

    /// The files that are done.
    pub(crate) fn into_ssts(self) -> Vec<Sst> {
        self.ssts
    }
}

/// Under this name a file says which rules were applied to all its rows.
pub(crate) const GC_STAMP: &str = "collected";
