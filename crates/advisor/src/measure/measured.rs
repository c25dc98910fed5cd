//! Rows, cells and bytes of a layout.

use tidetable_layout::cell::CellRef;
use tidetable_layout::{Block, Group};

use crate::error::Result;
use crate::growth::Sampled;
use crate::measure::distribution::{Distribution, Quantiles};
use crate::measure::packed::{PackedSize, Packer};
use crate::trial::{Overwritten, PartBytes, Replaceable, Row, TrialTable, Visitor};

const KIB: f64 = 1024.0;

/// What a layout holds. Of a sample, unless scaled.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// Name of the layout.
    pub layout: String,
    /// By what counts of a sample are to be multiplied; 1 without a sample.
    pub factor: f64,
    /// Columns that tell entities apart, of which a sample takes all rows or none.
    pub entity: Vec<String>,
    /// Source rows that were accepted.
    pub source_rows: u64,
    /// Source rows that were rejected.
    pub rejected: u64,
    /// Distinct row keys that have cells.
    pub rows: u64,
    /// Cells of these rows, versions included.
    pub cells: u64,
    /// Bytes as cells, by part.
    pub bytes: PartBytes,
    /// Bytes as cells that writing source row after source row sends: a message of a whole row is written again for each.
    pub bytes_written: u64,
    /// Whether a row is a message that is read and written again for each source row.
    pub rewrites: bool,
    /// Bytes of the cells after compression, by two codecs.
    pub packed: PackedSize,
    /// The number of cells of a row, over all rows.
    pub cells_a_row: Quantiles,
    /// Bytes as cells a row.
    pub bytes_a_row: Quantiles,
    /// The row of the most bytes; of several, the first.
    pub largest_row: LargestRow,
    /// Source rows of a row as a source row finds it: the mean, in which a row counts as often as it has source rows.
    pub source_rows_together: f64,
    /// Versions a column of a row.
    pub versions_a_column: Quantiles,
    /// Source rows that lost cells to later source rows, and these cells. Cells that follow from the row key do not count.
    pub overwritten: Overwritten,
    /// Bytes of files of this program.
    pub own_bytes: u64,
    /// First and last second written, since the epoch.
    pub seconds: Option<(i64, i64)>,
}

/// The row with the most bytes as cells; all 0 without rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LargestRow {
    /// Its row key, as bytes.
    pub key: Vec<u8>,
    /// The number of its cells, versions included.
    pub cells: u64,
    /// Its bytes as cells.
    pub bytes: u64,
    /// Source rows that wrote it.
    pub source_rows: u64,
}

impl Measured {
    /// The sample that was measured.
    pub fn sampled(&self) -> Sampled<'_> {
        Sampled { factor: self.factor, entity: &self.entity }
    }

    /// KiB that a source row writes, at least 1.
    pub fn write_kib(&self) -> f64 {
        (self.bytes_written as f64 / self.source_rows.max(1) as f64 / KIB).max(1.0)
    }
}

/// Measures a layout, with packed sizes if `packs`: they take most of the time.
///
/// # Errors
/// If the encoded layout cannot be read.
pub fn measure(table: &TrialTable, packs: bool) -> Result<Measured> {
    let mut counts = Counts::new(table, packs)?;
    table.visit(&mut counts)?;
    counts.finish()
}

/// Counts the cells and rows of a layout.
pub(crate) struct Counts<'a> {
    table: &'a TrialTable,
    packer: Option<Packer>,
    rows: u64,
    cells: u64,
    bytes: PartBytes,
    /// Whether a row is a message that is written again for each source row.
    rewrites: bool,
    bytes_written: u64,
    cells_a_row: Distribution,
    bytes_a_row: Distribution,
    versions: Distribution,
    largest: LargestRow,
    /// Source rows, and each as often as its row has source rows.
    writes: u64,
    writes_squared: f64,
    /// The column that cells are counted for, and their number.
    family: String,
    qualifier: Vec<u8>,
    held: u64,
    /// The columns that source rows can replace, and what is held of them.
    columns: Vec<(usize, Vec<usize>)>,
    replaceable: Replaceable,
}

impl<'a> Counts<'a> {
    pub(crate) fn new(table: &'a TrialTable, packs: bool) -> Result<Self> {
        let packer = if packs { Some(Packer::new()?) } else { None };
        let rewrites = table.layout.stored().groups.iter().any(Group::keeps_duplicates);
        let columns = table.replaceable_columns();

        Ok(Self {
            table,
            packer,
            rows: 0,
            cells: 0,
            bytes: PartBytes::default(),
            rewrites,
            bytes_written: 0,
            cells_a_row: Distribution::default(),
            bytes_a_row: Distribution::default(),
            versions: Distribution::default(),
            largest: LargestRow::default(),
            writes: 0,
            writes_squared: 0.0,
            family: String::new(),
            qualifier: Vec::new(),
            held: 0,
            columns,
            replaceable: Replaceable::default(),
        })
    }

    /// What was counted, after the last row.
    pub(crate) fn finish(self) -> Result<Measured> {
        let table = self.table;
        let packed = self.packer.map_or(Ok(PackedSize::default()), Packer::finish)?;
        let overwritten = table.overwritten(Some(self.replaceable))?;
        let own_bytes = table.own_bytes()?;

        Ok(Measured {
            layout: table.name.clone(),
            factor: table.factor,
            entity: table.entity.clone(),
            source_rows: table.stats.rows_accepted,
            rejected: table.stats.rows_rejected,
            rows: self.rows,
            cells: self.cells,
            bytes: self.bytes,
            bytes_written: self.bytes_written,
            rewrites: self.rewrites,
            packed,
            cells_a_row: self.cells_a_row.quantiles(),
            bytes_a_row: self.bytes_a_row.quantiles(),
            largest_row: self.largest,
            source_rows_together: self.writes_squared / self.writes.max(1) as f64,
            versions_a_column: self.versions.quantiles(),
            overwritten,
            own_bytes,
            seconds: table.seconds,
        })
    }

    fn end_column(&mut self) {
        if self.held > 0 {
            self.versions.add(self.held);
            self.held = 0;
        }
    }
}

impl Visitor for Counts<'_> {
    fn block(&mut self, block: &Block) {
        self.replaceable.add_block(&self.table.layout, &self.columns, block);
    }

    fn cell(&mut self, cell: &CellRef<'_>) -> Result<()> {
        // Versions of a column come one after the other.
        if self.held > 0 && (self.qualifier != cell.qualifier || self.family != cell.family) {
            self.end_column();
        }
        if self.held == 0 {
            self.family.clear();
            self.family.push_str(cell.family);
            self.qualifier.clear();
            self.qualifier.extend_from_slice(cell.qualifier);
        }
        self.held += 1;
        self.packer.as_mut().map_or(Ok(()), |packer| packer.add(cell))
    }

    fn row(&mut self, row: &Row<'_>) -> Result<()> {
        self.end_column();
        if row.cells == 0 {
            return Ok(());
        }

        let bytes = row.bytes.total();
        self.rows += 1;
        self.cells += row.cells;
        self.bytes += row.bytes;
        self.cells_a_row.add(row.cells);
        self.bytes_a_row.add(bytes);

        // The n-th source row writes n of n parts: half of them on average.
        let writes: u64 = row.writes.iter().map(|write| write.rows).sum();
        self.writes += writes;
        self.writes_squared += (writes as f64).powi(2);
        self.bytes_written += if self.rewrites { bytes * (writes + 1) / 2 } else { bytes };

        if bytes > self.largest.bytes {
            self.largest = LargestRow { key: row.key.to_vec(), cells: row.cells, bytes, source_rows: writes };
        }
        Ok(())
    }
}
