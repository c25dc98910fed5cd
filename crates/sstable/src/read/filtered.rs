//! Reads of filtered and of selected rows of a stripe, with late materialisation (see `group`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use tidetable_layout::decode::is_one_each;
use tidetable_layout::{Block, GroupBlock, Projection};

use crate::error::ReadError;
use crate::group::late_materialisation::{by_value, chosen_of, filtered, rows_with, sizes_differ, take_rows};
use crate::group::{RecordFilter, outliers};
use crate::read::StripeReader;

/// If at most one record in 2^n passes, other columns are decoded for these alone; otherwise whole, and filtered.
const FEW: usize = 3;

impl StripeReader {
    /// As [`Self::into_block`], but may omit records that `keep` rejects, and rows without others; `None` if no record passes.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn into_filtered(
        self,
        rows: Range<usize>,
        projection: &Projection,
        keep: &dyn RecordFilter,
    ) -> Result<Option<Block>, ReadError> {
        let (meta, schema) = (self.meta()?, self.reader.schema());
        let (at, column) = keep.column();
        let (Some(group), Some(Some(wanted))) = (schema.groups.get(at), projection.groups.get(at)) else {
            return self.into_block(rows, projection).map(Some);
        };
        let head = self.head.group(at, schema, meta)?;
        let span = head.span_of(&rows);
        let pages = self.reader.pages(self.index, meta, false)?;
        let (Some(stream), Some(kind)) = (head.columns.get(column), group.columns.get(column)) else {
            return self.into_block(rows, projection).map(Some);
        };
        let range = meta.columns.get(at).and_then(|columns| columns.get(column)?.range);
        let beyond = match (head.outliers(column), range) {
            (Some(ends), Some(range)) => {
                let records = (kind.value, head.ends.last().map_or(0, |end| *end as usize));
                outliers::passing(&pages, ends, records, range, |range| keep.may_keep(range))?
            }
            _ => None,
        };
        let found = match beyond {
            Some((places, values)) => chosen_of(&span, &places, &values, keep)?,
            None => {
                let (mask, known) = by_value(&pages, stream, kind.value, &span, keep)?;
                if mask.count_set_bits() > span.len() >> FEW {
                    return self.into_most(rows, projection, (at, column), &mask, known).map(Some);
                }
                (mask.set_indices().map(|record| record as u32).collect(), known)
            }
        };
        let (records, known) = found;
        if records.is_empty() {
            return Ok(None);
        }
        let selected = head.selected(&rows, records);
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (other, (schema_of, wanted_of)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            groups.push(match wanted_of {
                _ if other == at => {
                    let known = Some((column, Arc::clone(&known)));
                    Some(head.decode_selected(&pages, group, &rows, wanted, &selected, known)?)
                }
                Some(wanted) => {
                    let head = self.head.group(other, schema, meta)?;
                    Some(take_rows(head.decode(&pages, schema_of, rows.clone(), wanted)?, &selected.rows)?)
                }
                None => None,
            });
        }
        let keys = self.keys().select(selected.rows.iter().map(|row| rows.start + *row as usize));
        Ok(Some(Block { keys, groups }))
    }

    /// The records set in `mask`; `known` are their values of the column `at` of a group. Other columns are decoded whole.
    fn into_most(
        self,
        rows: Range<usize>,
        projection: &Projection,
        (at, column): (usize, usize),
        mask: &BooleanBuffer,
        known: ArrayRef,
    ) -> Result<Block, ReadError> {
        let mut others = projection.clone();
        others.groups.iter_mut().flatten().for_each(|group| group.sums = false);
        let wanted = others.groups.get_mut(at).and_then(Option::as_mut).and_then(|group| group.columns.get_mut(column));
        let is_wanted = wanted.is_some_and(std::mem::take);
        let mut groups = self.decode(rows.clone(), &others)?;
        let known = is_wanted.then_some(known);
        let put = |groups: &mut [Option<GroupBlock>]| {
            let own = groups.get_mut(at).and_then(Option::as_mut).and_then(|group| group.columns.get_mut(column));
            own.map(|slot| *slot = known)
        };
        if mask.count_set_bits() == mask.len() {
            put(&mut groups).ok_or_else(sizes_differ)?;
            let keys = if rows.len() == self.keys().len() { self.head.keys } else { self.keys().slice(rows) };
            return Ok(Block { keys, groups });
        }
        let own = groups.get(at).and_then(Option::as_ref).ok_or_else(sizes_differ)?;
        if let ([Some(_)], true) = (groups.as_slice(), is_one_each(&own.row_ends)) {
            let row_ends = (1..=mask.count_set_bits() as u32).collect();
            let group = groups.pop().flatten().ok_or_else(sizes_differ)?;
            groups.push(Some(filtered(group, mask, row_ends)?));
            put(&mut groups).ok_or_else(sizes_differ)?;
            return Ok(Block { keys: self.head.keys.into_kept(rows.start, mask.clone()), groups });
        }
        let (kept, row_ends) = rows_with(&own.row_ends, mask);
        let whole = kept.len() == rows.len();
        for (other, slot) in groups.iter_mut().enumerate() {
            *slot = match slot.take() {
                Some(group) if other == at => Some(filtered(group, mask, row_ends.clone())?),
                Some(group) if !whole => Some(take_rows(group, &kept)?),
                group => group,
            };
        }
        put(&mut groups).ok_or_else(sizes_differ)?;
        let keys = match whole {
            true if rows.len() == self.keys().len() => self.head.keys,
            true => self.keys().slice(rows),
            false => self.keys().select(kept.iter().map(|row| rows.start + *row as usize)),
        };
        Ok(Block { keys, groups })
    }

    /// The rows `rows`, which ascend, without sums by row.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn read_selected(&self, rows: &[usize], projection: &Projection) -> Result<Block, ReadError> {
        let (meta, schema) = (self.meta()?, self.reader.schema());
        let span = rows.first().map_or(0..0, |first| *first..rows.last().map_or(*first, |last| last + 1));
        let pages = self.reader.pages(self.index, meta, false)?;
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (at, (group, wanted)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            groups.push(match wanted {
                Some(wanted) => {
                    let head = self.head.group(at, schema, meta)?;
                    let selected = head.all_of(&span, rows);
                    Some(head.decode_selected(&pages, group, &span, wanted, &selected, None)?)
                }
                None => None,
            });
        }
        Ok(Block { keys: self.keys().select(rows.iter().copied()), groups })
    }
}
