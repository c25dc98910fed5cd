//! Encoding: a piece of an input is parsed once, then encoded into cells for each table that reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tidetable_layout::Layout;
use tidetable_layout::encode::EncodedBatch;
use tidetable_layout::error::LayoutReject;
use tidetable_source::{Origin, ParsedChunk, Rejected, TextNotes, TimeCounts};
use tidetable_store::Result;

use crate::encoders::{Encoders, NumberedEncoder};
use crate::hidden_events::{HiddenEvents, TombstoneLoadFilter};
use crate::input::feed::{FeedEnd, FeedPiece};
use crate::input::prepare::Prepared;
use crate::input::read::{ReadMessage, RejectedRows};
use crate::pass::Reading;
use crate::sort::chunk::{Chunk, split_by_window};
use crate::spec::{MICROS_PER_DAY, TableTarget, UnitLoader};
use crate::stats::EmptyRow;
use crate::work::{Counts, ToRead, Work};

/// What one message of the reader became, for all tables that read its input.
pub(crate) enum PieceOutcome {
    /// The encoded piece for each use of the input, in order.
    Encoded {
        input: usize,
        offset: u64,
        parts: Vec<EncodedChunk>,
    },
    /// All its rows are in the tables already.
    Skipped,
    End {
        input: usize,
        end: FeedEnd,
    },
}

/// A piece encoded for one table, with its counts: the cells wait to be sorted, the rest goes to the statistics.
pub(crate) struct EncodedChunk {
    pub(crate) counts: Counts,
    pub(crate) times: TimeCounts,
    pub(crate) notes: TextNotes,
    /// UTC days with cells, by the start of their window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
    pub(crate) chunk: Chunk,
    /// The first row that made no cell.
    pub(crate) first_empty: Option<EmptyRow>,
    /// Rows of windows that are left as they are, by window.
    pub(crate) owed: BTreeMap<i64, u64>,
}

/// What the parser and the derived columns made of a piece, whatever its format.
struct ParsedPiece {
    read: u64,
    rejected: Vec<Rejected>,
    derived: Prepared,
    origin: Origin,
    /// Counts of inexact times, in files and in derived columns.
    times: TimeCounts,
    /// Unusual records that were read all the same.
    notes: TextNotes,
}

/// A piece of an input, for one table that reads it.
#[derive(Clone, Copy)]
struct TablePiece<'a> {
    to_read: &'a ToRead,
    /// Number of the piece in its input, from 0.
    index: u64,
    offset: u64,
}

/// The rows of a piece as cells of one table.
struct EncodedRows {
    encoded: EncodedBatch,
    /// Counted before tombstones hid any of them.
    cells: RowsWithCells,
    /// Rows of windows that are left as they are, by window.
    owed: BTreeMap<i64, u64>,
    hidden: HiddenEvents,
}

impl UnitLoader<'_> {
    /// Parses one piece and encodes it for all tables that read it.
    ///
    /// # Errors
    /// If the piece cannot be parsed or encoded. Rejected rows are no errors: they are reported.
    pub(crate) fn encode_piece(
        &self,
        message: ReadMessage,
        readings: &[Reading],
        works: &[Work],
        encoders: &[Encoders<'_>],
    ) -> Result<PieceOutcome> {
        let (input, index, first_row, piece) = match message {
            ReadMessage::End { input, end } => return Ok(PieceOutcome::End { input, end }),
            ReadMessage::Piece { input, index, first_row, piece } => (input, index, first_row, piece),
        };
        let reading = &readings[input];
        let offset = piece.offset(first_row);
        let mut inputs = reading.uses.iter().map(|used| used.of(works));
        if inputs.clone().all(|to_read| to_read.skips(offset)) {
            return Ok(PieceOutcome::Skipped);
        }

        let rows = self.rows(piece, first_row)?;
        let reject = RejectedRows { file: &reading.file.path, origin: &rows.origin, on_reject: self.on_reject };
        if inputs.any(|to_read| to_read.reports_at(offset)) {
            reject.report_rows(&rows.rejected, &rows.derived);
        }

        let mut parts = Vec::with_capacity(reading.uses.len());
        for used in &reading.uses {
            let (target, encoders, work) = (&self.tables[used.target], &encoders[used.target], &works[used.target]);
            let piece = TablePiece { to_read: used.of(works), index, offset };
            parts.push(encode_for_table(target, encoders, work, piece, &rows, &reject)?);
        }
        Ok(PieceOutcome::Encoded { input, offset, parts })
    }

    /// Parses a piece, and computes its derived columns. Rows that fail are in the result.
    fn rows(&self, piece: FeedPiece, first_row: u64) -> Result<ParsedPiece> {
        let (batch, read, rejected, origin, mut times, notes) = match piece {
            FeedPiece::Chunk { parser, chunk } => {
                let ParsedChunk { batch, rows_read, rejected, origin, times, notes, .. } = parser.parse(chunk)?;
                (batch, rows_read, rejected, origin, times, notes)
            }
            FeedPiece::Rows(batch) => {
                let origin = Origin::of_rows(first_row, batch.clone());
                let rows = batch.num_rows() as u64;
                (batch, rows, Vec::new(), origin, TimeCounts::default(), TextNotes::default())
            }
        };

        let derived = match self.derive {
            Some(derive) => derive.prepare(batch)?,
            None => Prepared::whole(batch),
        };
        times += derived.times;
        Ok(ParsedPiece { read, rejected, derived, origin, times, notes })
    }
}

impl ParsedPiece {
    /// Lines of the rows that a table rejects, beyond the first of each.
    fn more_lines(&self, prepared: &Prepared, encoded: &[LayoutReject]) -> u64 {
        let by_derived = self.derived.rejected.iter().map(|rejected| rejected.row);
        let by_filter = prepared.rejected.iter().map(|rejected| self.derived.origin(rejected.row));
        let by_layout = encoded.iter().map(|rejected| self.derived.origin(prepared.origin(rejected.row)));
        let rows = by_derived.chain(by_filter).chain(by_layout);

        let by_parser = self.rejected.iter().map(|rejected| rejected.lines);
        let lines = by_parser.chain(rows.map(|row| self.origin.lines(row)));
        lines.map(|lines| lines.saturating_sub(1)).sum()
    }
}

/// Encodes the rows of a piece that one table accepts.
fn encode_for_table(
    target: &TableTarget<'_>,
    encoders: &Encoders<'_>,
    work: &Work,
    piece: TablePiece<'_>,
    rows: &ParsedPiece,
    reject: &RejectedRows<'_>,
) -> Result<EncodedChunk> {
    let TablePiece { to_read, index, offset } = piece;
    let batch = rows.derived.batch.clone();
    let prepared = match target.filter {
        Some(filter) => filter.prepare(batch)?,
        None => Prepared::whole(batch),
    };
    let mut encoder = encoders.take();
    let worker = encoder.number;
    let encoded = encode_rows(target, &mut encoder, work, to_read, &prepared);
    let events = encoded.as_ref().map_or(0, |rows| rows.encoded.prefix.len());
    encoders.put(encoder, events as u64);
    let EncodedRows { mut encoded, cells, owed, hidden } = encoded?;

    let rejected = rows.rejected.len() + rows.derived.rejected.len() + prepared.rejected.len() + encoded.rejected.len();
    let rows_owed: u64 = owed.values().sum();
    // An upsert that brings no cell empties its row.
    let empty = if target.layout.stored().upsert { &[][..] } else { &cells.without };
    let counts = Counts {
        read: rows.read,
        accepted: (cells.with + cells.without.len()) as u64 - rows_owed,
        filtered: prepared.filtered,
        rejected: rejected as u64,
        more_lines: rows.more_lines(&prepared, &encoded.rejected),
        empty: empty.len() as u64,
        owed: rows_owed,
        hidden: hidden.rows,
    };
    counts.assert_complete(&to_read.file.path)?;

    if to_read.reports_at(offset) {
        reject.report_table(target.table.name(), &rows.derived, &prepared, &encoded.rejected);
    }
    let first_empty = empty.first().map(|row| EmptyRow {
        file: to_read.file.path.clone(),
        line: rows.origin.line(rows.derived.origin(prepared.origin(*row))),
    });

    let windows = split_by_window(&encoded.time, target.layout.spec().window, |start| {
        to_read.wants(start, offset, &work.rebuilt)
    });
    let windows = hidden.leave_out(windows);
    let days = windows.iter().map(|(window, runs)| (*window, days(&encoded.time, runs))).collect();
    // Event time was needed only for windows; cells have their own timestamps.
    encoded.time = Vec::new();

    let (place, bytes) = ((to_read.input_seqno, index), encoded_bytes(&encoded));
    let chunk = Chunk { place, worker, bytes, encoded, units: None, windows };
    Ok(EncodedChunk { counts, times: rows.times, notes: rows.notes.clone(), days, chunk, first_empty, owed })
}

/// Encodes the rows that a table accepts, and removes the cells that its tombstones hide.
fn encode_rows(
    target: &TableTarget<'_>,
    NumberedEncoder { encoder, .. }: &mut NumberedEncoder<'_>,
    work: &Work,
    to_read: &ToRead,
    prepared: &Prepared,
) -> Result<EncodedRows> {
    let mut encoded = encoder.encode(&prepared.batch)?;
    let unpivots = !target.layout.spec().unpivot.is_empty();
    let cells = rows_with_cells(&encoded, prepared.batch.num_rows(), unpivots);
    let owed = owed_rows(&encoded, to_read, target.layout);

    let tombstones = TombstoneLoadFilter::new(target.layout.stored(), &work.tombstones, to_read.input_seqno);
    let hidden = tombstones.apply(&mut encoded, encoder.prefixes(), |group| encoder.qualifiers(group))?;
    Ok(EncodedRows { encoded, cells, owed, hidden })
}

/// Rows of windows that the input leaves as they are, by window.
fn owed_rows(encoded: &EncodedBatch, to_read: &ToRead, layout: &Layout) -> BTreeMap<i64, u64> {
    if !to_read.changed || to_read.left.is_empty() {
        return BTreeMap::new();
    }

    // A row without cells changes nothing, except in an upsert.
    let bare = if layout.stored().upsert { Vec::new() } else { encoded.without_cells() };
    let bare: BTreeSet<usize> = bare.into_iter().collect();
    let row_of = encoded.rows.as_deref();
    let left = split_by_window(&encoded.time, layout.spec().window, |start| to_read.leaves(start));
    let mut owed = BTreeMap::new();
    for (start, runs) in left {
        // Unpivot makes several events of a row.
        let events = runs.into_iter().flatten().filter(|event| !bare.contains(event));
        let rows: BTreeSet<usize> = events.map(|event| row_of.map_or(event, |rows| rows[event] as usize)).collect();
        if !rows.is_empty() {
            owed.insert(start, rows.len() as u64);
        }
    }
    owed
}

/// Rows of a batch with and without cells; rejected rows are in neither.
struct RowsWithCells {
    with: usize,
    without: Vec<usize>,
}

/// Which of the `rows` rows of a batch have cells. Unpivot makes several events of a row, or none where all values
/// are null; otherwise an event is a row.
fn rows_with_cells(encoded: &EncodedBatch, rows: usize, unpivots: bool) -> RowsWithCells {
    let bare = encoded.without_cells();
    let row_of = encoded.rows.as_deref();
    let Some(row_of) = row_of.filter(|_| unpivots) else {
        let with = encoded.prefix.len() - bare.len();
        let without = bare.into_iter().map(|event| row_of.map_or(event, |rows| rows[event] as usize));
        return RowsWithCells { with, without: without.collect() };
    };
    let mut without = vec![true; rows];
    encoded.rejected.iter().for_each(|rejected| without[rejected.row] = false);
    let rejected = encoded.rejected.len();
    let mut bare = bare.into_iter().peekable();
    for (event, row) in row_of.iter().enumerate() {
        if bare.next_if_eq(&event).is_none() {
            without[*row as usize] = false;
        }
    }

    let without: Vec<usize> = (0..rows).filter(|row| without[*row]).collect();
    RowsWithCells { with: rows - rejected - without.len(), without }
}

/// The UTC days of runs of `times`; consecutive times mostly lie in one day.
fn days(times: &[i64], runs: &[Range<usize>]) -> BTreeSet<i32> {
    let mut days = BTreeSet::new();
    let mut last = 0..0;
    for time in runs.iter().flat_map(|run| &times[run.clone()]) {
        if !last.contains(time) {
            let day = time.div_euclid(MICROS_PER_DAY);
            let start = day.saturating_mul(MICROS_PER_DAY);
            last = start..start.saturating_add(MICROS_PER_DAY);
            days.insert(day as i32);
        }
    }
    days
}

/// Approximate bytes of encoded cells in memory, for the budget of the load.
fn encoded_bytes(encoded: &EncodedBatch) -> u64 {
    let mut bytes = encoded.prefix.len() * 4 + encoded.tail.len() * 8;
    for group in &encoded.groups {
        bytes += group.qualifier.as_ref().map_or(0, |codes| codes.len() * 4);
        bytes += group.timestamps.as_ref().map_or(0, |timestamps| timestamps.len() * 8);
        bytes += group.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
    }
    bytes as u64
}
