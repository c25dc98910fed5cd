//! Output of a merge: takes pieces in any order, and writes SSTs in key order.

use std::collections::BTreeMap;
use std::sync::Arc;

use tidetable_layout::StoredSchema;
use tidetable_sstable::{Compression, StripeLimits, WriteOptions};
use tidetable_store::version::Sst;
use tidetable_store::write::{SizedStripe, SstFile};
use tidetable_store::{Ids, Result, SstStore};

/// Result of a subcompaction.
pub(crate) enum SubcompactionOutput {
    /// An SST that becomes part of the output unchanged.
    Moved(Box<Sst>),
    /// Stripes, ascending by key.
    Stripes(Vec<SizedStripe>),
}

/// The output SSTs of one merge.
pub(crate) struct MergeOutput<'a> {
    store: &'a SstStore,
    schema: &'a Arc<StoredSchema>,
    ids: &'a dyn Ids,
    /// File metadata of the applied compaction filter.
    gc_stamp: Option<&'a str>,
    open: Option<SstFile<'a>>,
    /// Finished SSTs by key, including moved ones.
    ssts: Vec<Sst>,
    /// Index of the next piece to write.
    next: usize,
    /// Finished pieces that wait for earlier ones.
    waiting: BTreeMap<usize, SubcompactionOutput>,
}

impl<'a> MergeOutput<'a> {
    pub(crate) fn new(
        store: &'a SstStore,
        schema: &'a Arc<StoredSchema>,
        ids: &'a dyn Ids,
        gc_stamp: Option<&'a str>,
    ) -> Self {
        Self { store, schema, ids, gc_stamp, open: None, ssts: Vec::new(), next: 0, waiting: BTreeMap::new() }
    }

    /// Takes the piece with this index, and writes all pieces whose predecessors are written.
    pub(crate) fn take(&mut self, index: usize, made: SubcompactionOutput) -> Result<()> {
        self.waiting.insert(index, made);
        while let Some(made) = self.waiting.remove(&self.next) {
            self.next += 1;
            match made {
                SubcompactionOutput::Stripes(stripes) => {
                    stripes.into_iter().try_for_each(|stripe| self.push(stripe))?
                }
                SubcompactionOutput::Moved(sst) => {
                    self.end_file()?;
                    self.ssts.push(*sst);
                }
            }
        }
        Ok(())
    }

    /// Appends a stripe, to a new SST if the open one is full.
    fn push(&mut self, stripe: SizedStripe) -> Result<()> {
        if self.open.as_ref().is_some_and(|file| !file.takes(&stripe)) {
            self.end_file()?;
        }

        let mut file = match self.open.take() {
            Some(file) => file,
            None => {
                let options =
                    WriteOptions { uid: self.ids.next(), level: Compression::Dense, stripe: StripeLimits::default() };
                let gc_stamp = self.gc_stamp.map(|gc_stamp| (GC_STAMP.to_owned(), gc_stamp.to_owned()));
                SstFile::begin_with(self.store, self.schema, &options, gc_stamp)?
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

    /// Finishes the last SST, when all pieces have come.
    pub(crate) fn end(&mut self) -> Result<()> {
        self.end_file()
    }

    /// The finished SSTs, ascending by key.
    pub(crate) fn into_ssts(self) -> Vec<Sst> {
        self.ssts
    }
}

/// Metadata key of an SST for the garbage-collection rules applied to all its rows.
pub(crate) const GC_STAMP: &str = "collected";
