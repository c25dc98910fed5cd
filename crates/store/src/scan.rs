//! Reading a key range of several SSTs as one ordered run of blocks.

use std::sync::Arc;

use tidetable_layout::{Block, KeyRange, Projection, QualifierKind, StoredSchema};
use tidetable_sstable::Reader;

use crate::error::{Result, StoreError};
use crate::gc::Collector;
use crate::merge::Merge;

/// The blocks of a key range in key order, each row once.
#[derive(Debug)]
pub struct BlockScan {
    merge: Merge<SstScan>,
    schema: Arc<StoredSchema>,
    collector: Option<Arc<Collector>>,
}

impl BlockScan {
    /// Merges `sources`: the order of each SST, its path for messages, and its reader.
    pub(crate) fn new(
        schema: Arc<StoredSchema>,
        sources: Vec<(u64, String, Reader)>,
        keys: KeyRange,
        projection: &Projection,
        collector: Option<Arc<Collector>>,
    ) -> Self {
        let mut projection = projection.clone();
        if sources.len() > 1 {
            add_merge_keys(&schema, &mut projection);
        }
        if let Some(collector) = &collector {
            collector.widen(&schema, &mut projection);
        }
        let projection = Arc::new(projection);
        let scans = sources
            .into_iter()
            .map(|(order, path, reader)| {
                let stripes = reader.stripes_in(&keys.start, keys.end.as_deref());
                (order, SstScan { path, reader, stripes, keys: keys.clone(), projection: Arc::clone(&projection) })
            })
            .collect();
        Self { merge: Merge::new(Arc::clone(&schema), scans), schema, collector }
    }
}

impl Iterator for BlockScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.merge.next()?;
        Some(match &self.collector {
            Some(collector) => block.and_then(|block| collector.collect(&self.schema, block)),
            None => block,
        })
    }
}

/// Rows of two files are combined by qualifier and timestamp, so those must be read too.
fn add_merge_keys(schema: &StoredSchema, projection: &mut Projection) {
    for (group, wanted) in schema.groups.iter().zip(&mut projection.groups) {
        if let Some(wanted) = wanted {
            wanted.qualifiers = group.qualifier == QualifierKind::Dynamic;
            wanted.timestamps = true;
        }
    }
}

/// The stripes of one SST that a key range touches.
#[derive(Debug)]
pub(crate) struct SstScan {
    path: String,
    reader: Reader,
    stripes: std::ops::Range<usize>,
    keys: KeyRange,
    projection: Arc<Projection>,
}

impl Iterator for SstScan {
    type Item = Result<Block>;

    fn next(&mut self) -> Option<Self::Item> {
        let stripe = self.stripes.next()?;
        let read = match self.reader.stripes().get(stripe) {
            Some(meta) if self.keys.covers(&meta.first_key, &meta.last_key) => {
                self.reader.read_stripe(stripe, &self.projection)
            }
            _ => self.reader.read_rows(stripe, &self.keys.start, self.keys.end.as_deref(), &self.projection),
        };
        Some(read.map_err(|source| StoreError::Sst { path: self.path.clone(), source }))
    }
}
