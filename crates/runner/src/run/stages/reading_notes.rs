//! Notes on how files were read: what the rules of a format did with rows that are out of the ordinary.

use tidetable_ingest::{LoadStats, NotedRows};
use tidetable_job::several;

use crate::run::stages::load::Pending;
use crate::run::stages::unread::occur;

/// Notes on the values and records that were read, once per source.
pub(super) fn reading_notes(loads: &[Pending]) -> Vec<String> {
    let mut sources: Vec<&str> = loads.iter().map(|load| load.record.source.as_str()).collect();
    sources.sort_unstable();
    sources.dedup();

    let mut notes = Vec::new();
    for source in sources {
        let of_source = loads.iter().filter(|load| load.record.source == source);
        let read = SourceReading { source, loads: of_source.map(|load| &load.record.stats).collect() };
        notes.extend(read.time_notes());
        notes.extend(read.line_notes());
        notes.extend(read.row_notes());
        notes.extend(read.nan_note());
    }
    notes
}

/// What the loads of a source counted. Tables of a source read the same rows, unless one is behind.
struct SourceReading<'a> {
    source: &'a str,
    loads: Vec<&'a LoadStats>,
}

impl<'a> SourceReading<'a> {
    /// The largest count of a load; 0 without loads.
    fn most(&self, count: fn(&LoadStats) -> u64) -> u64 {
        self.loads.iter().copied().map(count).max().unwrap_or_default()
    }

    /// Rows of a kind, of the load that saw most of them.
    fn noted(&self, of: fn(&LoadStats) -> Option<&NotedRows>) -> Option<&'a NotedRows> {
        self.loads.iter().copied().filter_map(of).max_by_key(|rows| rows.count)
    }

    /// A note on each kind of times that were not taken as they are.
    fn time_notes(&self) -> Vec<String> {
        let source = self.source;
        let mut notes = Vec::new();

        let repeated = self.most(|stats| stats.repeated_times);
        if repeated > 0 {
            notes.push(format!(
                "source {source}: {} twice, because the clocks go back: the first of the two is taken",
                occur(repeated)
            ));
        }

        let cut = self.most(|stats| stats.cut_times);
        if cut > 0 {
            let have = if cut == 1 { "has" } else { "have" };
            let times = several(cut, "time");
            notes.push(format!("source {source}: {times} {have} digits beyond the microsecond, which are cut off"));
        }
        notes
    }

    /// A note on each kind of lines that are not one record each.
    fn line_notes(&self) -> Vec<String> {
        let source = self.source;
        let mut notes = Vec::new();

        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.several_lines.as_ref()) {
            let most = self.most(|stats| stats.most_lines);
            notes.push(format!(
                "source {source}: records over several lines: {count}, one of {} (first: {file}, line {line}); if a stray quote joins them, correct it, or set `csv.quote = \"\"`",
                several(most, "line")
            ));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.repeated_headers.as_ref()) {
            notes.push(format!("source {source}: repeated headers, skipped: {count} (first: {file}, line {line})"));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.changed_headers.as_ref()) {
            notes.push(format!(
                "source {source}: headers inside files, with columns in another order or other columns: {count} (first: {file}, line {line}); the rows below are read by their names"
            ));
        }
        notes
    }

    /// A note on each kind of rows that were left out, or read although they are odd.
    fn row_notes(&self) -> Vec<String> {
        let source = self.source;
        let mut notes = Vec::new();

        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.extra_fields.as_ref()) {
            notes.push(format!(
                "source {source}: rows with more fields than the header, which are empty and not read: {count} (first: {file}, line {line})"
            ));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.comment_rows.as_ref()) {
            notes.push(format!(
                "source {source}: lines with as many fields as the header that begin with the mark of `csv.comment`, and are not read: {count} (first: {file}, line {line})"
            ));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.empty_lists.as_ref()) {
            notes.push(format!(
                "source {source}: lists of `each` that are empty and give no event: {count} (first: {file}, line {line})"
            ));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.unmarked_ends.as_ref()) {
            notes.push(format!(
                "source {source}: streams of Arrow that end without their end mark, perhaps cut short: {count} (first: {file}, behind row {line})"
            ));
        }
        if let Some(NotedRows { count, file, line }) = self.noted(|stats| stats.bare_returns.as_ref()) {
            notes.push(format!(
                "source {source}: records with a carriage return (CR) that ends no line and stays in its value: {count} (first: {file}, line {line})"
            ));
        }
        notes
    }

    /// The note on values that are NaN, if there are any.
    fn nan_note(&self) -> Option<String> {
        let source = self.source;
        let count = self.most(|stats| stats.nan_values);
        if count == 0 {
            return None;
        }
        let (are, were) = if count == 1 { ("is", "was") } else { ("are", "were") };
        let values = several(count, "value");
        Some(format!("source {source}: {values} {are} NaN and {were} taken as null; `nan` says otherwise"))
    }
}
