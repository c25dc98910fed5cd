//! Reads of filtered and of selected rows of a stripe, with late materialisation (see `group`).

use std::ops::Range;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::buffer::BooleanBuffer;
use tidetable_layout::decode::is_one_each;
use tidetable_layout::{Block, ColumnRef, GroupBlock, Projection};

use crate::error::ReadError;
use crate::group::late_materialisation::{by_value, chosen_of, filtered, rows_with, sizes_differ, take_rows};
use crate::group::{RecordFilter, outliers};
use crate::read::StripeReader;

/// If at most one record in 2^3 passes, other columns are decoded for these alone; otherwise they are decoded whole and filtered.
const FEW: usize = 3;

impl StripeReader {
    /// Reads as [`Self::into_block`], but may omit records that `keep` rejects and rows without others. Records that it passes are
    /// always returned. `None` if no record passes.
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
        let filtered = keep.column();
        let groups = (schema.groups.get(filtered.group), projection.groups.get(filtered.group));
        let (Some(group), Some(Some(wanted))) = groups else {
            return self.into_block(rows, projection).map(Some);
        };
        let head = self.head.group(filtered.group, schema, meta)?;
        let (Some(stream), Some(column)) = (head.columns.get(filtered.column), group.columns.get(filtered.column))
        else {
            return self.into_block(rows, projection).map(Some);
        };
        let span = head.span_of(&rows);
        let pages = self.reader.pages(self.index, meta, false)?;

        let range = meta.columns.get(filtered.group).and_then(|columns| columns.get(filtered.column)?.range);
        let candidates = match (head.outliers(filtered.column), range) {
            (Some(ends), Some(range)) => {
                let records = head.ends.last().map_or(0, |end| *end as usize);
                outliers::passing(&pages, ends, column.value, records, range, |range| keep.may_keep(range))?
            }
            _ => None,
        };
        let (records, known) = match candidates {
            Some(candidates) => chosen_of(&span, &candidates, keep)?,
            None => {
                let (mask, known) = by_value(&pages, stream, column.value, &span, keep)?;
                if mask.count_set_bits() > span.len() >> FEW {
                    return self.into_most(rows, projection, filtered, &mask, known).map(Some);
                }
                (mask.set_indices().map(|record| record as u32).collect(), known)
            }
        };
        if records.is_empty() {
            return Ok(None);
        }

        let selected = head.selected(&rows, records);
        let mut groups = Vec::with_capacity(schema.groups.len());
        for (index, (other, other_wanted)) in schema.groups.iter().zip(&projection.groups).enumerate() {
            groups.push(match other_wanted {
                _ if index == filtered.group => {
                    let known = Some((filtered.column, Arc::clone(&known)));
                    Some(head.decode_selected(&pages, group, &rows, wanted, &selected, known)?)
                }
                Some(wanted) => {
                    let head = self.head.group(index, schema, meta)?;
                    Some(take_rows(head.decode(&pages, other, rows.clone(), wanted)?, &selected.rows)?)
                }
                None => None,
            });
        }
        let keys = self.keys().select(selected.rows.iter().map(|row| rows.start + *row as usize));
        Ok(Some(Block { keys, groups }))
    }

    /// The records that are set in `mask`, if that is most of them: all columns are decoded whole and then filtered. `known` has the
    /// values of column `filtered_column` that pass.
    fn into_most(
        self,
        rows: Range<usize>,
        projection: &Projection,
        filtered_column: ColumnRef,
        mask: &BooleanBuffer,
        known: ArrayRef,
    ) -> Result<Block, ReadError> {
        let ColumnRef { group: index, column } = filtered_column;
        let mut others = projection.clone();
        others.groups.iter_mut().flatten().for_each(|group| group.sums = false);
        let wanted =
            others.groups.get_mut(index).and_then(Option::as_mut).and_then(|group| group.columns.get_mut(column));
        let known = wanted.is_some_and(std::mem::take).then_some(known);
        let mut groups = self.decode(rows.clone(), &others)?;

        if mask.count_set_bits() == mask.len() {
            set_column(&mut groups, filtered_column, known)?;
            let keys = if rows.len() == self.keys().len() { self.head.keys } else { self.keys().slice(rows) };
            return Ok(Block { keys, groups });
        }

        let group = groups.get(index).and_then(Option::as_ref).ok_or_else(sizes_differ)?;
        if let ([Some(_)], true) = (groups.as_slice(), is_one_each(&group.row_ends)) {
            let row_ends = (1..=mask.count_set_bits() as u32).collect();
            let group = groups.pop().flatten().ok_or_else(sizes_differ)?;
            groups.push(Some(filtered(group, mask, row_ends)?));
            set_column(&mut groups, filtered_column, known)?;
            return Ok(Block { keys: self.head.keys.into_kept(rows.start, mask.clone()), groups });
        }

        let (kept, row_ends) = rows_with(&group.row_ends, mask);
        let keeps_all = kept.len() == rows.len();
        for (other, slot) in groups.iter_mut().enumerate() {
            *slot = match slot.take() {
                Some(group) if other == index => Some(filtered(group, mask, row_ends.clone())?),
                Some(group) if !keeps_all => Some(take_rows(group, &kept)?),
                group => group,
            };
        }
        set_column(&mut groups, filtered_column, known)?;
        let keys = match keeps_all {
            true if rows.len() == self.keys().len() => self.head.keys,
            true => self.keys().slice(rows),
            false => self.keys().select(kept.iter().map(|row| rows.start + *row as usize)),
        };
        Ok(Block { keys, groups })
    }

    /// Reads the rows `rows`, which ascend, and only the pages that hold them. Without sums by row.
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

/// Sets the values of a column that was decoded before the others; `None` if the projection leaves it out.
fn set_column(groups: &mut [Option<GroupBlock>], place: ColumnRef, values: Option<ArrayRef>) -> Result<(), ReadError> {
    let group = groups.get_mut(place.group).and_then(Option::as_mut);
    let slot = group.and_then(|group| group.columns.get_mut(place.column)).ok_or_else(sizes_differ)?;
    *slot = values;
    Ok(())
}
