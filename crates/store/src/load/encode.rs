//! Encoding: a piece of an input is parsed once, then encoded into cells for each table that reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tidetable_layout::encode::EncodedBatch;
use tidetable_source::{Origin, ParsedChunk, Rejected, TimeCounts};

use crate::error::Result;
use crate::load::encoders::Encoders;
use crate::load::input::feed::{FeedEnd, FeedPiece};
use crate::load::input::prepare::Prepared;
use crate::load::input::read::{ReadMessage, RejectedRows};
use crate::load::pass::Reading;
use crate::load::sort::chunk::{Chunk, split_by_window};
use crate::load::spec::{Loader, MICROS_PER_DAY, LoadTarget};
use crate::load::stats::EmptyRow;
use crate::load::work::{Counts, ToRead, Work};
use crate::tombstone::{Hidden, LoadMask};

/// Result of encoding one message of the reader.
pub(crate) enum PieceOutcome {
    /// The encoded piece for each use of the input, in order.
    Laid {
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
    /// UTC days with cells, by window.
    pub(crate) days: BTreeMap<i64, BTreeSet<i32>>,
    pub(crate) chunk: Chunk,
    /// The first row that made no cell.
    pub(crate) first_empty: Option<EmptyRow>,
}

/// A parsed piece with its derived columns.
struct Rows {
    read: u64,
    rejected: Vec<Rejected>,
    derived: Prepared,
    origin: Origin,
    /// Counts of inexact times, in files and in derived columns.
    times: TimeCounts,
}

impl Loader<'_> {
    /// Parses one piece and encodes it for all tables that read it.
    pub(crate) fn lay_out(
        &self,
        message: ReadMessage,
        readings: &[Reading],
        works: &[Work],
        encoders: &[Encoders<'_>],
    ) -> Result<PieceOutcome> {
        let (input, index, first_row, piece) = match message {
            ReadMessage::End { input, end } => return Ok(PieceOutcome::End { input, end }),
            ReadMessage::FeedPiece { input, index, first_row, piece } => (input, index, first_row, piece),
        };
        let reading = &readings[input];
        let offset = piece.offset(first_row);
        let used = || reading.uses.iter().map(|(target, input)| (*target, &works[*target].inputs[*input]));
        if used().all(|(_, to_read)| to_read.skips(offset)) {
            return Ok(PieceOutcome::Skipped);
        }
        let rows = self.rows(piece, first_row)?;
        let reject = RejectedRows { file: &reading.file.path, origin: &rows.origin, on_reject: self.on_reject };
        if used().any(|(_, to_read)| to_read.tells_at(offset)) {
            reject.report_rows(&rows.rejected, &rows.derived);
        }
        let part = |(at, to_read): (usize, &ToRead)| {
            let (target, encoders, rebuilt) = (&self.targets[at], &encoders[at], works[at].edit.rebuilt.as_slice());
            lay_out_for(target, encoders, (to_read, index, offset), rebuilt, &rows, &reject)
        };
        let parts = used().map(part).collect::<Result<_>>()?;
        Ok(PieceOutcome::Laid { input, offset, parts })
    }

    fn rows(&self, piece: FeedPiece, first_row: u64) -> Result<Rows> {
        let (batch, read, rejected, origin, mut times) = match piece {
            FeedPiece::Chunk { parser, chunk } => {
                let ParsedChunk { batch, rows_read, rejected, origin, times, .. } = parser.parse(chunk)?;
                (batch, rows_read, rejected, origin, times)
            }
            FeedPiece::Rows(batch) => {
                let origin = Origin::of_rows(first_row, batch.clone());
                let rows = batch.num_rows() as u64;
                (batch, rows, Vec::new(), origin, TimeCounts::default())
            }
        };
        let derived = match self.derive {
            Some(derive) => derive.prepare(batch)?,
            None => Prepared::whole(batch),
        };
        times += derived.times;
        Ok(Rows { read, rejected, derived, origin, times })
    }
}

/// Encodes the rows of a piece that one table accepts.
fn lay_out_for(
    target: &LoadTarget<'_>,
    encoders: &Encoders<'_>,
    (to_read, index, offset): (&ToRead, u64, u64),
    rebuilt: &[i64],
    rows: &Rows,
    reject: &RejectedRows<'_>,
) -> Result<EncodedChunk> {
    let batch = rows.derived.batch.clone();
    let prepared = match target.filter {
        Some(filter) => filter.prepare(batch)?,
        None => Prepared::whole(batch),
    };
    let mut encoder = encoders.take();
    let mut laid = encoder.1.encode(&prepared.batch);
    let worker = encoder.0;
    let unpivots = !target.layout.spec().unpivot.is_empty();
    // Before tombstones hide any of them.
    let cells = laid.as_ref().ok().map(|laid| rows_with_cells(laid, prepared.batch.num_rows(), unpivots));
    let mask = LoadMask::new(target.layout.stored(), &target.base.drops, to_read.sequence);
    let hidden = match &mut laid {
        Ok(laid) => mask.apply(laid, encoder.1.prefixes(), |group| encoder.1.qualifiers(group)),
        Err(_) => Ok(Hidden::default()),
    };
    encoders.put(encoder);
    let (mut laid, hidden) = (laid?, hidden?);
    let Cells { with, without } = cells.unwrap_or_default();
    // An upsert that brings no cell empties its row.
    let empty = if target.layout.stored().upsert { &[][..] } else { &without };
    let unfit = rows.rejected.len() + rows.derived.rejected.len() + prepared.rejected.len() + laid.rejected.len();
    let counts = Counts {
        read: rows.read,
        accepted: (with + without.len()) as u64,
        filtered: prepared.filtered,
        rejected: unfit as u64,
        empty: empty.len() as u64,
    };
    counts.assert_complete(&to_read.file.path)?;
    if to_read.tells_at(offset) {
        reject.report_table(target.table.name(), &rows.derived, &prepared, &laid.rejected);
    }
    let line = |row: &usize| rows.origin.line(rows.derived.origin(prepared.origin(*row)));
    let first_empty = empty.first().map(|row| EmptyRow { file: to_read.file.path.clone(), line: line(row) });
    let windows =
        split_by_window(&laid.time, target.layout.spec().window, |start| to_read.wants(start, offset, rebuilt));
    let windows = hidden.leave_out(windows);
    let days = windows.iter().map(|(window, runs)| (*window, days(&laid.time, runs))).collect();
    // Event time was needed only for windows; cells have their own timestamps.
    laid.time = Vec::new();
    Ok(EncodedChunk {
        counts,
        times: rows.times,
        days,
        chunk: Chunk { place: (to_read.sequence, index), worker, bytes: laid_bytes(&laid), laid, windows },
        first_empty,
    })
}

/// Rows of a batch with and without cells; rejected rows are in neither.
#[derive(Default)]
struct Cells {
    with: usize,
    without: Vec<usize>,
}

/// Which of the `rows` rows of a batch have cells. Unpivot makes several events of a row, or none where all values
/// are null; otherwise an event is a row.
fn rows_with_cells(laid: &EncodedBatch, rows: usize, unpivots: bool) -> Cells {
    let bare = laid.without_cells();
    let Some(row_of) = laid.rows.as_deref().filter(|_| unpivots) else {
        let row = |event: usize| laid.rows.as_ref().map_or(event, |rows| rows[event] as usize);
        let with = laid.prefix.len() - bare.len();
        return Cells { with, without: bare.into_iter().map(row).collect() };
    };
    let mut without = vec![true; rows];
    laid.rejected.iter().for_each(|rejected| without[rejected.row] = false);
    let rejected = laid.rejected.len();
    let mut bare = bare.into_iter().peekable();
    for (event, row) in row_of.iter().enumerate() {
        if bare.next_if_eq(&event).is_none() {
            without[*row as usize] = false;
        }
    }
    let without: Vec<usize> = (0..rows).filter(|row| without[*row]).collect();
    Cells { with: rows - rejected - without.len(), without }
}

/// The UTC days of runs of `times`; consecutive times mostly lie in one day.
fn days(times: &[i64], runs: &[Range<usize>]) -> BTreeSet<i32> {
    let mut days = BTreeSet::new();
    let mut last = None;
    for time in runs.iter().flat_map(|run| &times[run.clone()]) {
        let day = time.div_euclid(MICROS_PER_DAY) as i32;
        if last != Some(day) {
            days.insert(day);
            last = Some(day);
        }
    }
    days
}

fn laid_bytes(laid: &EncodedBatch) -> u64 {
    let mut bytes = laid.prefix.len() * 4 + laid.tail.len() * 8;
    for group in &laid.groups {
        bytes += group.qualifier.as_ref().map_or(0, |codes| codes.len() * 4);
        bytes += group.timestamps.as_ref().map_or(0, |timestamps| timestamps.len() * 8);
        bytes += group.columns.iter().map(|column| column.get_array_memory_size()).sum::<usize>();
    }
    bytes as u64
}
