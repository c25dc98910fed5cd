//! One stripe, by row and by projection.

use std::ops::Range;

use tidetable_layout::{Block, GroupBlock, Keys, Projection, StoredSchema};

use crate::error::ReadError;
use crate::reader::Reader;
use crate::stats::StripeMeta;
use crate::stripe::StripeHead;

/// A stripe whose keys are decoded; groups follow when they are first asked for. Holds some 20 bytes a row.
#[derive(Debug)]
pub struct StripeReader {
    pub(crate) reader: Reader,
    pub(crate) index: usize,
    pub(crate) head: StripeHead,
}

impl StripeReader {
    /// The keys of all its rows.
    pub fn keys(&self) -> &Keys {
        &self.head.keys
    }

    /// Its entry in the stripe table.
    ///
    /// # Errors
    /// Never in practice: the stripe was found when this was made.
    pub fn meta(&self) -> Result<&StripeMeta, ReadError> {
        self.reader.entry(self.index)
    }

    /// Whether it is certain that no row has two cells of one column in group `index`; reads no pages.
    ///
    /// # Errors
    /// If there is no such group or its head is not sound.
    pub fn one_version_each(&self, index: usize) -> Result<bool, ReadError> {
        Ok(self.head.group(index, self.reader.schema(), self.meta()?)?.one_version_each())
    }

    /// The rows with keys in `[start, end)`; without `end` there is no upper bound.
    pub fn rows_in(&self, start: &[u8], end: Option<&[u8]>) -> Range<usize> {
        let first = self.keys().lower_bound(start);
        let last = end.map_or(self.keys().len(), |end| self.keys().lower_bound(end));
        first..last.max(first)
    }

    /// The rows `rows`, which are cut to those there are; decodes only the pages that hold them.
    ///
    /// # Errors
    /// If the projection is of another schema or the bytes are not sound.
    pub fn read(&self, rows: Range<usize>, projection: &Projection) -> Result<Block, ReadError> {
        let end = rows.end.min(self.keys().len());
        let rows = rows.start.min(end)..end;
        let groups = self.decode(rows.clone(), projection)?;
        Ok(Block { keys: self.keys().slice(rows), groups })
    }

    /// As [`Self::read`], for a caller who reads no more of the stripe: its keys are not copied where all rows are wanted.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn into_block(self, rows: Range<usize>, projection: &Projection) -> Result<Block, ReadError> {
        if rows != (0..self.keys().len()) {
            return self.read(rows, projection);
        }
        let groups = self.decode(rows, projection)?;
        Ok(Block { keys: self.head.keys, groups })
    }

    /// The groups of the rows `rows`, which there are.
    pub(crate) fn decode(
        &self,
        rows: Range<usize>,
        projection: &Projection,
    ) -> Result<Vec<Option<GroupBlock>>, ReadError> {
        let (meta, schema) = (self.meta()?, self.reader.schema());
        check(schema, projection)?;
        // Column by column a scan would read the same bytes in more pieces.
        let everything = |group: &Option<tidetable_layout::GroupProjection>| {
            group.as_ref().is_some_and(|group| !group.sums && group.columns.iter().all(|wanted| *wanted))
        };
        let at_once = rows.len() == self.keys().len() && projection.groups.iter().all(everything);
        let pages = self.reader.pages(self.index, meta, at_once)?;
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (at, (group, wanted)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            groups.push(match wanted {
                Some(wanted) => Some(self.head.group(at, schema, meta)?.decode(&pages, group, rows.clone(), wanted)?),
                None => None,
            });
        }
        Ok(groups)
    }
}

fn check(schema: &StoredSchema, projection: &Projection) -> Result<(), ReadError> {
    let counts = |expected: usize, found: usize| {
        if expected == found { Ok(()) } else { Err(ReadError::Projection { expected, found }) }
    };
    counts(schema.groups.len(), projection.groups.len())?;
    schema.groups.iter().zip(&projection.groups).try_for_each(|(group, wanted)| match wanted {
        Some(wanted) => counts(group.columns.len(), wanted.columns.len()),
        None => Ok(()),
    })
}
