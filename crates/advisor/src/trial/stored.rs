//! What the files of a layout tell of it: cells that were replaced, and their size.

use arrow::array::Array;
use tidetable_layout::{Block, KeyRange, Layout, Projection};
use tidetable_store::{ScanRange, Sst};

use crate::error::{AdvisorError, Result};
use crate::trial::table::TrialTable;

/// What later source rows replaced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Overwritten {
    /// Source rows that lost a cell. Of rows that were written apart, because memory was full between them, records are
    /// counted, of the group that lost most: an unpivoted source row has several.
    pub rows: u64,
    /// The cells that these lost.
    pub cells: u64,
}

/// Records and cells of a part of a layout, of columns in which the newest wins and whose values do not follow from the row
/// key and the qualifier: every row writes the same into those.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Replaceable {
    /// By group of [`TrialTable::replaceable_columns`]: records, and cells.
    groups: Vec<(u64, u64)>,
}

impl TrialTable {
    /// What later source rows replaced. `merged` is what all rows together hold, if that is known.
    ///
    /// # Errors
    /// If the encoded layout cannot be read.
    pub(crate) fn overwritten(&self, merged: Option<Replaceable>) -> Result<Overwritten> {
        // The load counted those that it sorted together.
        let together = Overwritten { rows: self.stats.overwritten_rows, cells: self.stats.overwritten };
        let Some(range) = self.snapshot.whole(&KeyRange::all()) else { return Ok(together) };
        if range.ssts.len() < 2 {
            return Ok(together);
        }

        let columns = self.replaceable_columns();
        let mut apart = Replaceable::default();
        for sst in self.snapshot.version().ssts() {
            match self.layout.spec().upsert {
                // What a row that was emptied hides does not count.
                true => self.count(&ScanRange { ssts: vec![sst.id.clone()], ..range.clone() }, &columns, &mut apart)?,
                false => self.count_recorded(sst, &columns, &mut apart)?,
            }
        }
        let merged = match merged.filter(|_| self.is_whole()) {
            Some(merged) => merged,
            None => {
                let mut merged = Replaceable::default();
                self.count(&range, &columns, &mut merged)?;
                merged
            }
        };

        let lost = apart.groups.iter().zip(merged.groups.iter().chain(std::iter::repeat(&(0, 0))));
        let lost = lost.map(|(apart, merged)| (apart.0.saturating_sub(merged.0), apart.1.saturating_sub(merged.1)));
        // Records that share no column merge, and lose nothing. A source row loses one of each group at most.
        let lost = lost.map(|(records, cells)| Overwritten { rows: records.min(cells), cells });
        let lost = lost.fold(Overwritten::default(), |sum, group| Overwritten {
            rows: sum.rows.max(group.rows),
            cells: sum.cells + group.cells,
        });
        Ok(Overwritten { rows: together.rows + lost.rows, cells: together.cells + lost.cells })
    }

    /// Whether visitors see all cells that are stored.
    fn is_whole(&self) -> bool {
        self.snapshot.version().table.gc.is_empty()
    }

    /// For each group of the layout that can lose cells, its index and these columns.
    pub(crate) fn replaceable_columns(&self) -> Vec<(usize, Vec<usize>)> {
        let groups = self.layout.stored().groups.iter().enumerate().filter(|(_, group)| !group.keeps_duplicates());
        let columns = groups.map(|(at, group)| {
            let columns = group.columns.iter().enumerate().filter(|(_, column)| column.merge.is_newest());
            let columns = columns.map(|(column, _)| column);
            (at, columns.filter(|column| !self.layout.follows_from_key(at, *column)).collect::<Vec<_>>())
        });
        columns.filter(|(_, columns)| !columns.is_empty()).collect()
    }

    /// Adds what the statistics of a file say.
    fn count_recorded(&self, sst: &Sst, columns: &[(usize, Vec<usize>)], sum: &mut Replaceable) -> Result<()> {
        let reader = self.snapshot.reader(sst)?;
        for (place, (group, columns)) in columns.iter().enumerate() {
            // The file has the counter's group, too.
            let at = group + usize::from(*group >= self.group);
            let is_packed = self.layout.stored().groups.get(*group).is_some_and(|group| group.packed.is_some());
            for stripe in reader.stripes() {
                let records = stripe.records.get(at).copied().unwrap_or_default();
                let held = stripe.columns.get(at).map_or(&[][..], Vec::as_slice);
                let present = columns.iter().filter_map(|column| Some(held.get(*column)?.present));
                sum.add(place, records, if is_packed { records } else { present.sum() });
            }
        }
        Ok(())
    }

    /// Adds what a scan finds.
    fn count(&self, range: &ScanRange, columns: &[(usize, Vec<usize>)], sum: &mut Replaceable) -> Result<()> {
        let snapshot = self.snapshot.including_expired();
        for block in snapshot.scan(range, &Projection::all(snapshot.schema()))? {
            sum.add_block(&self.layout, columns, &self.without_counter(block?).0);
        }
        Ok(())
    }

    /// Bytes of the files of this program that hold the layout, without their metadata and without what they hold for the counter.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn own_bytes(&self) -> Result<u64> {
        let mut bytes = 0;
        for sst in self.snapshot.version().ssts() {
            let inspection = self.snapshot.reader(sst)?.inspect();
            let inspection =
                inspection.map_err(|source| AdvisorError::File { id: sst.id.clone(), source: Box::new(source) })?;
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

impl Replaceable {
    /// Adds a block of a layout without its counter; `columns` are those of [`TrialTable::replaceable_columns`].
    pub(crate) fn add_block(&mut self, layout: &Layout, columns: &[(usize, Vec<usize>)], block: &Block) {
        for (place, (group, columns)) in columns.iter().enumerate() {
            let Some(Some(held)) = block.groups.get(*group) else { continue };
            let records = held.len() as u64;
            let is_packed = layout.stored().groups.get(*group).is_some_and(|group| group.packed.is_some());
            let values = columns.iter().filter_map(|column| held.columns.get(*column)?.as_ref());
            let present = values.map(|values| (values.len() - values.null_count()) as u64);
            self.add(place, records, if is_packed { records } else { present.sum() });
        }
    }

    fn add(&mut self, place: usize, records: u64, cells: u64) {
        if self.groups.len() <= place {
            self.groups.resize(place + 1, (0, 0));
        }
        if let Some(group) = self.groups.get_mut(place) {
            group.0 += records;
            group.1 += cells;
        }
    }
}
