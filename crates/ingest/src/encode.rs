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

/// Result of encoding one message of the reader.
pub(crate) enum PieceOutcome {
    /// The encoded piece for each use of the input, in order.
    Encoded {
        input: usize,
        /// Offset of the piece in its input.
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

/// A piece encoded for one table.
pub(crate) struct EncodedChunk {
    pub(crate) counts: Counts,
    pub(crate) times: TimeCounts,
    pub(crate) notes: TextNotes,
    /// UTC days with cells, by window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
    pub(crate) chunk: Chunk,
    /// The first row that made no cell.
    pub(crate) first_empty: Option<EmptyRow>,
    /// Rows of windows that are left as they are, by window.
    pub(crate) owed: BTreeMap<i64, u64>,
}

/// A parsed piece with its derived columns.
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

impl UnitLoader<'_> {
    /// Parses one piece and encodes it for all tables that read it.
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
        let used = || reading.uses.iter().map(|(target, input)| (*target, &works[*target].inputs[*input]));
        if used().all(|(_, to_read)| to_read.skips(offset)) {
            return Ok(PieceOutcome::Skipped);
        }
        let rows = self.rows(piece, first_row)?;
        let reject = RejectedRows { file: &reading.file.path, origin: &rows.origin, on_reject: self.on_reject };
        if used().any(|(_, to_read)| to_read.reports_at(offset)) {
            reject.report_rows(&rows.rejected, &rows.derived);
        }
        let part = |(at, to_read): (usize, &ToRead)| {
            encode_for_table(&self.tables[at], &encoders[at], &works[at], (to_read, index, offset), &rows, &reject)
        };
        let parts = used().map(part).collect::<Result<_>>()?;
        Ok(PieceOutcome::Encoded { input, offset, parts })
    }

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
        let by_table = prepared.rejected.iter().map(|rejected| rejected.row);
        let by_table = by_table.chain(encoded.iter().map(|rejected| prepared.origin(rejected.row)));
        let derived = self.derived.rejected.iter().map(|rejected| rejected.row);
        let later = derived.chain(by_table.map(|row| self.derived.origin(row))).map(|row| self.origin.lines(row));
        let parsed = self.rejected.iter().map(|rejected| rejected.lines);
        parsed.chain(later).map(|lines| lines.saturating_sub(1)).sum()
    }
}

/// Encodes the rows of a piece that one table accepts.
fn encode_for_table(
    target: &TableTarget<'_>,
    encoders: &Encoders<'_>,
    work: &Work,
    (to_read, index, offset): (&ToRead, u64, u64),
    rows: &ParsedPiece,
    reject: &RejectedRows<'_>,
) -> Result<EncodedChunk> {
    let batch = rows.derived.batch.clone();
    let prepared = match target.filter {
        Some(filter) => filter.prepare(batch)?,
        None => Prepared::whole(batch),
    };
    let NumberedEncoder { number: worker, mut encoder } = encoders.take();
    let mut encoded = encoder.encode(&prepared.batch);
    let unpivots = !target.layout.spec().unpivot.is_empty();
    // Before tombstones hide any of them.
    let cells = encoded.as_ref().ok().map(|encoded| rows_with_cells(encoded, prepared.batch.num_rows(), unpivots));
    let owed = encoded.as_ref().ok().map(|encoded| owed_rows(encoded, to_read, target.layout));
    let owed = owed.unwrap_or_default();
    let tombstones = TombstoneLoadFilter::new(target.layout.stored(), &work.tombstones, to_read.input_seqno);
    let hidden = match &mut encoded {
        Ok(encoded) => tombstones.apply(encoded, encoder.prefixes(), |group| encoder.qualifiers(group)),
        Err(_) => Ok(HiddenEvents::default()),
    };
    let events = encoded.as_ref().map_or(0, |encoded| encoded.prefix.len());
    encoders.put(NumberedEncoder { number: worker, encoder }, events as u64);
    let (mut encoded, hidden) = (encoded?, hidden?);
    let RowsWithCells { with, without } = cells.unwrap_or_default();
    // An upsert that brings no cell empties its row.
    let empty = if target.layout.stored().upsert { &[][..] } else { &without };
    let unfit = rows.rejected.len() + rows.derived.rejected.len() + prepared.rejected.len() + encoded.rejected.len();
    let counts = Counts {
        read: rows.read,
        accepted: (with + without.len()) as u64 - owed.values().sum::<u64>(),
        filtered: prepared.filtered,
        rejected: unfit as u64,
        more_lines: rows.more_lines(&prepared, &encoded.rejected),
        empty: empty.len() as u64,
        owed: owed.values().sum(),
        hidden: hidden.rows,
    };
    counts.assert_complete(&to_read.file.path)?;
    if to_read.reports_at(offset) {
        reject.report_table(target.table.name(), &rows.derived, &prepared, &encoded.rejected);
    }
    let line = |row: &usize| rows.origin.line(rows.derived.origin(prepared.origin(*row)));
    let first_empty = empty.first().map(|row| EmptyRow { file: to_read.file.path.clone(), line: line(row) });
    let windows = split_by_window(&encoded.time, target.layout.spec().window, |start| {
        to_read.wants(start, offset, &work.rebuilt)
    });
    let windows = hidden.leave_out(windows);
    let days = windows.iter().map(|(window, runs)| (*window, days(&encoded.time, runs))).collect();
    // Event time was needed only for windows; cells have their own timestamps.
    encoded.time = Vec::new();
    Ok(EncodedChunk {
        counts,
        times: rows.times,
        notes: rows.notes,
        days,
        chunk: Chunk {
            place: (to_read.input_seqno, index),
            worker,
            bytes: encoded_bytes(&encoded),
            encoded,
            units: None,
            windows,
        },
        first_empty,
        owed,
    })
}

/// Rows of windows that the input leaves as they are, by window.
fn owed_rows(encoded: &EncodedBatch, to_read: &ToRead, layout: &Layout) -> BTreeMap<i64, u64> {
    if !to_read.changed || to_read.left.is_empty() {
        return BTreeMap::new();
    }
    // A row without cells changes nothing, except in an upsert.
    let bare = if layout.stored().upsert { Vec::new() } else { encoded.without_cells() };
    let bare: BTreeSet<usize> = bare.into_iter().collect();
    let left = split_by_window(&encoded.time, layout.spec().window, |start| to_read.leaves(start));
    let rows = |runs: Vec<Range<usize>>| {
        let events = runs.into_iter().flatten().filter(|event| !bare.contains(event));
        // Unpivot makes several events of a row.
        let rows: BTreeSet<usize> =
            events.map(|event| encoded.rows.as_ref().map_or(event, |rows| rows[event] as usize)).collect();
        rows.len() as u64
    };
    left.into_iter().map(|(start, runs)| (start, rows(runs))).filter(|(_, rows)| *rows > 0).collect()
}

/// Rows of a batch with and without cells; rejected rows are in neither.
#[derive(Default)]
struct RowsWithCells {
    with: usize,
    without: Vec<usize>,
}

/// Which of the `rows` rows of a batch have cells. Unpivot makes several events of a row, or none where all values
/// are null; otherwise an event is a row.
fn rows_with_cells(encoded: &EncodedBatch, rows: usize, unpivots: bool) -> RowsWithCells {
    let bare = encoded.without_cells();
    let Some(row_of) = encoded.rows.as_deref().filter(|_| unpivots) else {
        let row = |event: usize| encoded.rows.as_ref().map_or(event, |rows| rows[event] as usize);
        let with = encoded.prefix.len() - bare.len();
        return RowsWithCells { with, without: bare.into_iter().map(row).collect() };
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

fn encoded_bytes(encoded: &EncodedBatch) -> u64 {
    let mut bytes = encoded.prefix.len() * 4 + encoded.tail.len() * 8;
    for group in &encoded.groups {
        bytes += group.qualifier.as_ref().map_or(0, |codes| codes.len() * 4);
        bytes += group.timestamps.as_ref().map_or(0, |timestamps| timestamps.len() * 8);
        bytes += group.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
    }
    bytes as u64
}
