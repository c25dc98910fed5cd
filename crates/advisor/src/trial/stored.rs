//! What the files of a layout tell of it: cells that were replaced, and their size.

use arrow::array::Array;
use tidetable_layout::{Block, KeyRange, Projection};
use tidetable_store::ScanRange;

use crate::error::{AdvisorError, Result};
use crate::trial::table::TrialTable;

/// What later source rows replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overwritten {
    /// Source rows that lost a cell. Of rows that were written apart, because memory was full between them, records are
    /// counted: an unpivoted source row has several.
    pub rows: u64,
    /// Their cells.
    pub cells: u64,
}

impl TrialTable {
    /// What later source rows replaced. Cells that follow from the row key and the qualifier do not count: every row writes
    /// the same.
    ///
    /// # Errors
    /// If the encoded layout cannot be read.
    pub fn overwritten(&self) -> Result<Overwritten> {
        // The load counted those that it sorted together.
        let together = Overwritten { rows: self.stats.overwritten_rows, cells: self.stats.overwritten };
        let Some(range) = self.snapshot.whole(&KeyRange::all()) else { return Ok(together) };
        if range.ssts.len() < 2 {
            return Ok(together);
        }
        let (mut records, mut cells) = (0, 0);
        for sst in &range.ssts {
            let own = self.counted(&ScanRange { ssts: vec![sst.clone()], ..range.clone() })?;
            records += own.rows;
            cells += own.cells;
        }
        let merged = self.counted(&range)?;
        let cells = cells.saturating_sub(merged.cells);
        // Records that share no column merge, and lose nothing.
        let rows = records.saturating_sub(merged.rows).min(cells);
        Ok(Overwritten { rows: together.rows + rows, cells: together.cells + cells })
    }

    /// Records, and cells of columns in which the newest wins and whose values do not follow from the row key.
    fn counted(&self, range: &ScanRange) -> Result<Overwritten> {
        let snapshot = self.snapshot.including_expired();
        let (schema, layout) = (snapshot.schema(), snapshot.layout());
        let count = |block: &Block, sum: &mut Overwritten| {
            for ((at, group), held) in schema.groups.iter().enumerate().zip(&block.groups) {
                let Some(held) = held.as_ref().filter(|_| !group.keeps_duplicates()) else { continue };
                let counts = |column: usize| {
                    group.columns.get(column).is_some_and(|it| it.merge.is_newest())
                        && !layout.follows_from_key(at, column)
                };
                let columns: Vec<usize> = (0..group.columns.len()).filter(|column| counts(*column)).collect();
                if columns.is_empty() {
                    continue;
                }
                sum.rows += held.len() as u64;
                if group.packed.is_some() {
                    sum.cells += held.len() as u64;
                    continue;
                }
                let values = columns.iter().filter_map(|column| held.columns.get(*column)?.as_ref());
                sum.cells += values.map(|values| (values.len() - values.null_count()) as u64).sum::<u64>();
            }
        };
        let mut sum = Overwritten::default();
        for block in snapshot.scan(range, &Projection::all(schema))? {
            count(&block?, &mut sum);
        }
        Ok(sum)
    }

    /// Bytes of the files of this program that hold the layout, without their metadata and without what they hold for the counter.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn own_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for sst in self.snapshot.version().ssts() {
            let failed = |source| AdvisorError::File { id: sst.id.clone(), source: Box::new(source) };
            let inspection = self.snapshot.reader(sst)?.inspect().map_err(failed)?;
            let of_counter = inspection.stripes.iter().map(|stripe| {
                let streams = stripe.chunks.iter().filter(|chunk| chunk.group == self.group);
                let streams: u64 = streams.map(|chunk| chunk.page_bytes + chunk.setup_bytes as u64).sum();
                streams + stripe.qualifier_bytes.get(self.group).copied().unwrap_or_default()
            });
            // The metadata has random ids, whose compression takes a byte more or less.
            bytes += (inspection.bytes - inspection.meta_bytes).saturating_sub(of_counter.sum());
        }
        Ok(bytes)
    }
}
