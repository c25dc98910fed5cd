//! The reader of one stripe, by rows and projection. The keys are decoded once, columns as they are asked for.

use std::ops::Range;

use tidetable_layout::{Block, GroupBlock, Keys, Projection, StoredSchema};

use crate::error::ReadError;
use crate::file::Reader;
use crate::stats::StripeMeta;
use crate::stripe::StripeHead;

/// A stripe with decoded keys; group heads are decoded lazily. Takes about 20 bytes per row.
#[derive(Debug)]
pub struct StripeReader {
    pub(crate) reader: Reader,
    pub(crate) index: usize,
    pub(crate) head: StripeHead,
}

impl Reader {
    /// Stripe `index`, with its keys decoded. Callers that read a stripe repeatedly keep the reader.
    ///
    /// # Errors
    /// If there is no such stripe or its head is damaged.
    pub fn stripe(&self, index: usize) -> Result<StripeReader, ReadError> {
        let head = self.head(index, self.entry(index)?)?;
        Ok(StripeReader { reader: self.clone(), index, head })
    }

    /// All rows of stripe `index`.
    ///
    /// # Errors
    /// If there is no such stripe, the projection is of another schema, or the bytes are damaged.
    pub fn read_stripe(&self, index: usize, projection: &Projection) -> Result<Block, ReadError> {
        let stripe = self.stripe(index)?;
        let rows = 0..stripe.keys().len();
        stripe.into_block(rows, projection)
    }

    /// The rows of stripe `index` with keys in `[start, end)`, decoding only the pages that hold them.
    ///
    /// # Errors
    /// As [`Self::read_stripe`].
    pub fn read_rows(
        &self,
        index: usize,
        start: &[u8],
        end: Option<&[u8]>,
        projection: &Projection,
    ) -> Result<Block, ReadError> {
        let stripe = self.stripe(index)?;
        stripe.read(stripe.rows_in(start, end), projection)
    }
}

impl StripeReader {
    /// The keys of all its rows, in order.
    pub fn keys(&self) -> &Keys {
        &self.head.keys
    }

    /// Its entry in the stripe table: location and statistics.
    ///
    /// # Errors
    /// Never in practice: the stripe was found when this was made.
    pub fn meta(&self) -> Result<&StripeMeta, ReadError> {
        self.reader.entry(self.index)
    }

    /// Whether no row has two cells of one column in group `index`; false if unknown. Reads no pages.
    ///
    /// # Errors
    /// If there is no such group or its head is damaged.
    pub fn one_version_each(&self, index: usize) -> Result<bool, ReadError> {
        Ok(self.head.group(index, self.reader.schema(), self.meta()?)?.one_version_each())
    }

    /// The rows with keys in `[start, end)`; without `end` there is no upper bound.
    pub fn rows_in(&self, start: &[u8], end: Option<&[u8]>) -> Range<usize> {
        let first = self.keys().lower_bound(start);
        let last = end.map_or(self.keys().len(), |end| self.keys().lower_bound(end));
        first..last.max(first)
    }

    /// Reads `rows`, clamped to the stripe; decodes only the pages that contain them.
    ///
    /// # Errors
    /// If the projection is of another schema or the bytes are damaged.
    pub fn read(&self, rows: Range<usize>, projection: &Projection) -> Result<Block, ReadError> {
        let end = rows.end.min(self.keys().len());
        let rows = rows.start.min(end)..end;
        let groups = self.decode(rows.clone(), projection)?;
        Ok(Block { keys: self.keys().slice(rows), groups })
    }

    /// As [`Self::read`], consuming the reader: avoids a copy of the keys if all rows are read.
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

    /// Decodes the groups of `rows`, which are in bounds, and of them what `projection` names.
    pub(crate) fn decode(
        &self,
        rows: Range<usize>,
        projection: &Projection,
    ) -> Result<Vec<Option<GroupBlock>>, ReadError> {
        let (meta, schema) = (self.meta()?, self.reader.schema());
        check(schema, projection)?;

        // A full scan reads the stripe in one request.
        let reads_all = projection
            .groups
            .iter()
            .all(|group| group.as_ref().is_some_and(|group| !group.sums && group.columns.iter().all(|wanted| *wanted)));
        let at_once = rows.len() == self.keys().len() && reads_all;
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

/// Checks that a projection was made for `schema`.
fn check(schema: &StoredSchema, projection: &Projection) -> Result<(), ReadError> {
    check_count(schema.groups.len(), projection.groups.len())?;
    for (group, wanted) in schema.groups.iter().zip(&projection.groups) {
        if let Some(wanted) = wanted {
            check_count(group.columns.len(), wanted.columns.len())?;
        }
    }
    Ok(())
}

fn check_count(expected: usize, found: usize) -> Result<(), ReadError> {
    if expected == found { Ok(()) } else { Err(ReadError::Projection { expected, found }) }
}
