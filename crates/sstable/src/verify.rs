//! Reading everything back.

use arrow::array::Array;
use serde::Serialize;
use tidetable_layout::{GroupBlock, Projection};

use crate::error::{Part, ReadError};
use crate::filter::KeyFilter;
use crate::format::HEADER_LEN;
use crate::header;
use crate::reader::{Reader, read};
use crate::shapes::Records;
use crate::stats::{StripeMeta, cells_of, measure};
use crate::stripe::filled;

/// What a sound file holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct VerifySummary {
    /// Stripes read.
    pub stripes: u64,
    /// Rows read.
    pub rows: u64,
    /// Records read, in all groups.
    pub records: u64,
    /// Cells read.
    pub cells: u64,
    /// Bytes of the file.
    pub bytes: u64,
}

impl Reader {
    /// Reads everything again and checks it: header, every checksum, that pages leave no gap, the order of keys and
    /// records, every count and range of the stripe table, and that the filter lets every key pass.
    ///
    /// # Errors
    /// The first thing that is not sound.
    pub fn verify(&self) -> Result<VerifySummary, ReadError> {
        let start = read(self.file.source.as_ref(), "header", 0, HEADER_LEN as u64)?;
        if header::decode(start)? != self.uid() {
            return Err(ReadError::Checksum { stripe: None, stream: Part::Header, page: 0, offset: 0 });
        }
        let filter = self.read_filter()?;
        let mut summary = VerifySummary { bytes: self.bytes(), ..Default::default() };
        for (index, meta) in self.stripes().iter().enumerate() {
            self.verify_stripe(index, meta, filter.as_ref())?;
            summary.stripes += 1;
            summary.rows += meta.rows;
            summary.records += meta.records.iter().sum::<u64>();
            summary.cells += meta.cells;
        }
        Ok(summary)
    }

    fn verify_stripe(&self, index: usize, meta: &StripeMeta, filter: Option<&KeyFilter>) -> Result<(), ReadError> {
        let corrupt = |what| ReadError::Corrupt { what, offset: meta.offset };
        let hold = |sound: bool, what| if sound { Ok(()) } else { Err(corrupt(what)) };
        let head = self.head(index, meta)?;
        let pages = self.pages(index, meta, true)?;
        let mut next = 0;
        for group in 0..self.schema().groups.len() {
            let group = head.group(group, self.schema(), meta)?;
            hold(group.span.start == next, "page table")?;
            next = group.span.end;
            group.streams().try_for_each(|stream| pages.check_all(stream))?;
        }
        hold(next == meta.len - meta.head_len, "page table")?;

        let block = self.read_stripe(index, &Projection::all(self.schema()))?;
        let keys = &block.keys;
        let (mut before, mut key) = (Vec::new(), Vec::new());
        for row in 0..keys.len() {
            key.clear();
            keys.write(row, &mut key);
            hold(row == 0 || before < key, "order of row keys")?;
            std::mem::swap(&mut before, &mut key);
        }
        hold(keys.get(0) == meta.first_key && before == meta.last_key, "first and last key")?;
        hold(filter.is_none_or(|filter| filter.holds(keys)), "filter")?;

        let mut times: Option<(i64, i64)> = None;
        for (at, group) in block.groups.iter().enumerate() {
            let group = group.as_ref().ok_or(corrupt("group"))?;
            hold(sorted(group, self.schema().groups[at].keeps_alike()), "order of records")?;
            for time in group.timestamps.iter().flatten() {
                let (low, high) = times.unwrap_or((*time, *time));
                times = Some((low.min(*time), high.max(*time)));
            }
            let schema = &self.schema().groups[at];
            let columns = group.columns.iter().flatten().zip(&schema.columns);
            let found: Vec<_> = columns.map(|(array, column)| measure(array, column.value)).collect();
            hold(meta.columns.get(at) == Some(&found), "counts and ranges of values")?;
            let filled = filled(schema, group, 0..group.row_ends.len());
            let cells = cells_of(schema, group.len() as u64, &found, filled);
            hold(meta.group_cells.get(at) == Some(&cells), "count of cells")?;
            hold(group.columns.iter().flatten().all(|array| array.len() == group.len()), "records")?;
        }
        hold(times == meta.timestamps, "range of timestamps")
    }
}

fn sorted(group: &GroupBlock, keeps_alike: bool) -> bool {
    let records = Records {
        ends: group.row_ends.clone(),
        codes: group.qualifiers.as_ref().map(|qualifiers| qualifiers.codes.as_slice()),
        timestamps: group.timestamps.as_deref(),
        keeps_alike,
    };
    let names = group.qualifiers.as_ref().map_or(&[][..], |qualifiers| &qualifiers.dictionary);
    names.is_sorted_by(|left, right| left < right) && records.rows().all(|row| records.sorted(row))
}
