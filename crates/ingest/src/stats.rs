//! Counts and times of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use tidetable_source::{Counted, EpochNotes, OddEpoch, TextNotes};
use tidetable_store::{LargestRow, Sst};

/// Counts and times of a load. Times are of the clock, however many cores work; what is done at the same time counts in each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadStats {
    /// Rows read of new and changed inputs; those read again to rebuild windows are not counted.
    pub rows_read: u64,
    /// Rows that fit, passed the filter and were encoded into cells.
    pub rows_accepted: u64,
    /// Rows that the table's `where` left out.
    pub rows_filtered: u64,
    /// Rows that did not fit their declared columns or the layout.
    pub rows_rejected: u64,
    /// Lines of rejected rows beyond the first of each.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_lines_rejected: u64,
    /// Rows of windows that could not be rebuilt: they are loaded once that is possible.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_owed: u64,
    /// Rows that an earlier load owed and this one loaded; they are in no other count.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_settled: u64,
    /// Rows read of which cells stay hidden: a delete was made after their input came first.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_hidden: u64,
    /// Accepted rows without cells: all their values are null.
    #[serde(skip_serializing_if = "is_zero")]
    pub rows_empty: u64,
    /// The first of them in the order of the load, for messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_empty: Option<EmptyRow>,
    /// Ambiguous local times, where clocks are set back; the first of the two instants was taken.
    #[serde(skip_serializing_if = "is_zero")]
    pub repeated_times: u64,
    /// Times with a finer fraction, which were truncated to microseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub cut_times: u64,
    /// Accepted records over several lines, which a stray quote may have joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub several_lines: Option<NotedRows>,
    /// The most lines of one of these records.
    #[serde(skip_serializing_if = "is_zero")]
    pub most_lines: u64,
    /// Lines equal to the header of their file, which were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_headers: Option<NotedRows>,
    /// Headers behind the first of their file with other columns, or in another order, by which reading went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_headers: Option<NotedRows>,
    /// Records with a carriage return in an unquoted value, which stays there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare_returns: Option<NotedRows>,
    /// Rows with more fields than their header, which are blank. In no run record.
    #[serde(skip)]
    pub extra_fields: Option<NotedRows>,
    /// Comment lines with as many fields as their header, which were not read. In no run record.
    #[serde(skip)]
    pub comment_rows: Option<NotedRows>,
    /// Lists of events without an element, which give none. In no run record.
    #[serde(skip)]
    pub empty_lists: Option<NotedRows>,
    /// Streams of Arrow without the mark of their end, with the last row of the first. In no run record.
    #[serde(skip)]
    pub unmarked_ends: Option<NotedRows>,
    /// Keys of JSON that are neither declared nor in the first records of their file, with the first place. In no run record.
    #[serde(skip)]
    pub new_keys: BTreeMap<String, FirstPlace>,
    /// Epoch times from 1990 to 2100. In no run record, as the following.
    #[serde(skip)]
    pub likely_epochs: u64,
    /// Epoch times of other years.
    #[serde(skip)]
    pub odd_epochs: u64,
    /// The first of these, with its file.
    #[serde(skip)]
    pub first_odd_epoch: Option<(String, OddEpoch)>,
    /// NaN in float columns of Parquet, Arrow and Avro, which was taken as null.
    #[serde(skip_serializing_if = "is_zero")]
    pub nan_values: u64,
    /// Rows of the table in the SSTs that were written; a row may be in several windows.
    pub rows_written: u64,
    /// Cells in the SSTs that were written.
    pub cells: u64,
    /// Cells that later cells of the same load replaced.
    pub overwritten: u64,
    /// Those of them that had another value.
    #[serde(skip_serializing_if = "is_zero")]
    pub overwritten_changed: u64,
    /// The key of a row with such a cell, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_in_row: Option<String>,
    /// Cells that no read shows, because the `gc` of their family keeps fewer versions than the load has of their column. Not
    /// counted where neither row key nor qualifier shows a time of day: such tables keep the newest on purpose.
    #[serde(skip_serializing_if = "is_zero")]
    pub hidden_versions: u64,
    /// The key of a row with such a cell, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_in_row: Option<String>,
    /// Cells of earlier loads that this one replaced. Of one table: not added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedCells>,
    /// Source rows of which a later one of the same load replaced a cell. Those of rows that were written apart, because
    /// their window seemed complete between them, are not known. In no run record.
    #[serde(skip)]
    pub overwritten_rows: u64,
    /// Rows over the 100 MB that Bigtable recommends.
    pub large_rows: u64,
    /// The largest of them, with its key and its size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest_row: Option<LargestRow>,
    /// Cells over the 10 MB that Bigtable recommends.
    pub large_cells: u64,
    /// Bytes of the inputs that were read, as stored, and so compressed if they are.
    pub bytes_in: u64,
    /// Bytes of the SSTs that were written, compressed.
    pub bytes_out: u64,
    /// Bytes written to temporary files, because memory was full.
    #[serde(skip_serializing_if = "is_zero")]
    pub bytes_spilled: u64,
    /// Time waiting for inputs to be read: the mean over the cores.
    #[serde(with = "seconds")]
    pub read: Duration,
    /// Time parsing records and encoding them into cells: the rest of the time until the memory was full.
    #[serde(with = "seconds")]
    pub parse: Duration,
    /// Time partitioning, ranking and sorting cells in memory; as `encode`, summed over the windows.
    #[serde(with = "seconds")]
    pub sort: Duration,
    /// Time writing sorted cells to temporary files, and merging many of these into fewer.
    #[serde(with = "seconds")]
    pub spill: Duration,
    /// Time building blocks, and encoding and compressing stripes of them; stripes are written meanwhile. Summed over the windows,
    /// of which several small ones are written at a time.
    #[serde(with = "seconds")]
    pub encode: Duration,
    /// Time writing SSTs, and syncing or uploading them. Summed over the files, which are written beside other work.
    #[serde(with = "seconds")]
    pub write: Duration,
}

impl LoadStats {
    /// Cells that later ones replaced: of the load itself, and of earlier loads.
    pub fn written_over(&self) -> u64 {
        self.overwritten + self.replaced.as_ref().map_or(0, |replaced| replaced.cells)
    }

    /// Adds the counts and times of another load, or of a part of this one.
    pub fn add(&mut self, other: &Self) {
        self.rows_read += other.rows_read;
        self.rows_accepted += other.rows_accepted;
        self.rows_filtered += other.rows_filtered;
        self.rows_rejected += other.rows_rejected;
        self.more_lines_rejected += other.more_lines_rejected;
        self.rows_owed += other.rows_owed;
        self.rows_settled += other.rows_settled;
        self.rows_hidden += other.rows_hidden;
        self.rows_empty += other.rows_empty;
        self.first_empty = self.first_empty.take().or_else(|| other.first_empty.clone());

        self.repeated_times += other.repeated_times;
        self.cut_times += other.cut_times;
        self.nan_values += other.nan_values;
        NotedRows::join(&mut self.several_lines, other.several_lines.clone());
        self.most_lines = self.most_lines.max(other.most_lines);
        NotedRows::join(&mut self.repeated_headers, other.repeated_headers.clone());
        NotedRows::join(&mut self.changed_headers, other.changed_headers.clone());
        NotedRows::join(&mut self.bare_returns, other.bare_returns.clone());
        NotedRows::join(&mut self.extra_fields, other.extra_fields.clone());
        NotedRows::join(&mut self.comment_rows, other.comment_rows.clone());
        NotedRows::join(&mut self.empty_lists, other.empty_lists.clone());
        NotedRows::join(&mut self.unmarked_ends, other.unmarked_ends.clone());
        for (key, place) in &other.new_keys {
            self.add_new_key(key, place.clone());
        }
        self.likely_epochs += other.likely_epochs;
        self.odd_epochs += other.odd_epochs;
        self.add_odd_epoch(other.first_odd_epoch.clone());

        self.rows_written += other.rows_written;
        self.cells += other.cells;
        self.overwritten += other.overwritten;
        self.overwritten_changed += other.overwritten_changed;
        self.changed_in_row = self.changed_in_row.take().or_else(|| other.changed_in_row.clone());
        self.overwritten_rows += other.overwritten_rows;
        self.hidden_versions += other.hidden_versions;
        self.hidden_in_row = self.hidden_in_row.take().or_else(|| other.hidden_in_row.clone());
        self.large_rows += other.large_rows;
        self.large_cells += other.large_cells;
        self.add_largest(other.largest_row.as_ref());

        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.bytes_spilled += other.bytes_spilled;

        self.read += other.read;
        self.parse += other.parse;
        self.sort += other.sort;
        self.spill += other.spill;
        self.encode += other.encode;
        self.write += other.write;
    }

    /// Resets the counts of what was written: the SSTs are not committed.
    pub fn forget_written(&mut self) {
        (self.rows_written, self.cells, self.bytes_out) = (0, 0, 0);
        (self.overwritten, self.overwritten_changed, self.changed_in_row) = (0, 0, None);
        (self.hidden_versions, self.hidden_in_row) = (0, None);
        (self.large_rows, self.largest_row, self.large_cells) = (0, None, 0);
        self.replaced = None;
        self.rows_settled = 0;
    }

    pub(crate) fn note(&mut self, file: &str, notes: &TextNotes) {
        NotedRows::join(&mut self.several_lines, NotedRows::new(file, notes.several_lines));
        self.most_lines = self.most_lines.max(notes.most_lines);
        NotedRows::join(&mut self.repeated_headers, NotedRows::new(file, notes.repeated_headers));
        NotedRows::join(&mut self.changed_headers, NotedRows::new(file, notes.changed_headers));
        NotedRows::join(&mut self.bare_returns, NotedRows::new(file, notes.bare_returns));
        NotedRows::join(&mut self.extra_fields, NotedRows::new(file, notes.extra_fields));
        NotedRows::join(&mut self.comment_rows, NotedRows::new(file, notes.comment_rows));
        NotedRows::join(&mut self.empty_lists, NotedRows::new(file, notes.empty_lists));
        NotedRows::join(&mut self.unmarked_ends, NotedRows::new(file, notes.unmarked_ends));
        for (key, line) in &notes.new_keys {
            self.add_new_key(key, FirstPlace { file: file.to_owned(), line: *line });
        }

        let EpochNotes { likely, odd, first } = &notes.epochs;
        self.likely_epochs += likely;
        self.odd_epochs += odd;
        self.add_odd_epoch(first.clone().map(|first| (file.to_owned(), first)));
    }

    /// Adds a key that is not declared; keeps the least place.
    fn add_new_key(&mut self, key: &str, place: FirstPlace) {
        let has_room = self.new_keys.len() < TextNotes::MOST_NEW_KEYS;
        match self.new_keys.get_mut(key) {
            Some(known) if place < *known => *known = place,
            None if has_room => drop(self.new_keys.insert(key.to_owned(), place)),
            _ => {}
        }
    }

    /// Keeps the first of two odd epoch times.
    fn add_odd_epoch(&mut self, other: Option<(String, OddEpoch)>) {
        let Some((file, other)) = other else { return };
        let is_first = self.first_odd_epoch.as_ref().is_none_or(|(known, odd)| (&file, other.line) < (known, odd.line));
        if is_first {
            self.first_odd_epoch = Some((file, other));
        }
    }

    pub(crate) fn count_sst(&mut self, sst: &Sst) {
        self.rows_written += sst.rows;
        self.cells += sst.cells;
        self.bytes_out += sst.bytes;
    }

    /// Keeps the larger of two largest rows.
    pub(crate) fn add_largest(&mut self, row: Option<&LargestRow>) {
        if let Some(row) = row
            && self.largest_row.as_ref().is_none_or(|largest| largest.bytes < row.bytes)
        {
            self.largest_row = Some(row.clone());
        }
    }
}

/// The first place of something that several inputs have.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FirstPlace {
    /// Path of the input, the least of several.
    pub file: String,
    /// Line where the record starts, from 1.
    pub line: u64,
}

/// A row of an input that has no cell in the table, because all its values are null.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EmptyRow {
    /// Path of the input, as in the records of the table.
    pub file: String,
    /// Line where the record starts, from 1; for binary formats the row, from 1.
    pub line: u64,
}

/// A row key for people: what is not UTF-8 is replaced.
pub(crate) fn key_text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// Cells of earlier loads that a load replaced: those of the same row, column and timestamp as a new one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReplacedCells {
    /// Number of cells, those with an equal value included.
    pub cells: u64,
    /// Cells among them whose new value differs from the old one.
    pub changed: u64,
    /// The key of a row with such a cell, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_row: Option<String>,
    /// New inputs of the windows where values changed, by path: one or several of them replaced the cells.
    pub by: Vec<String>,
    /// Inputs of earlier loads with cells in these windows, by path.
    pub of: Vec<String>,
}

/// Rows that are told of, with the place of the first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NotedRows {
    /// Number of such rows in all inputs of the load.
    pub count: u64,
    /// The input of the first; of several inputs the least by path.
    pub file: String,
    /// Line where it starts, from 1; of the same input the least.
    pub line: u64,
}

impl NotedRows {
    fn new(file: &str, counted: Counted) -> Option<Self> {
        (counted.count > 0).then(|| Self { count: counted.count, file: file.to_owned(), line: counted.first_line })
    }

    /// Adds `other` to `rows`, which keep the place of the first.
    fn join(rows: &mut Option<Self>, other: Option<Self>) {
        let Some(other) = other else { return };
        let Some(rows) = rows else {
            *rows = Some(other);
            return;
        };
        rows.count += other.count;
        if (&other.file, other.line) < (&rows.file, rows.line) {
            (rows.file, rows.line) = (other.file, other.line);
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

mod seconds {
    use super::{Deserialize, Deserializer, Duration};

    pub(crate) fn serialize<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}
