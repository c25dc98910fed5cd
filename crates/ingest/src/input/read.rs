//! Read-ahead of inputs, and reporting of rejected rows.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tidetable_layout::error::LayoutReject;
use tidetable_source::{InputFile, Origin, Rejected};
use tidetable_store::Result;

use crate::input::feed::{Feed, FeedEnd, FeedPiece};
use crate::input::prepare::{Prepared, UnpreparedRow};

/// A row that was not loaded, as users see it: where it stands, and what is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RejectedRow {
    /// Path of the input, as in the records of the table.
    pub file: String,
    /// The table that rejected it; `None` if parsing or a derived column did, for all tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table: Option<String>,
    /// Line where the record starts, from 1; for binary formats the row, from 1.
    pub line: u64,
    /// The column at fault, if one is; `None` for a record that cannot be split.
    pub column: Option<String>,
    /// The value at fault and what was expected, as a sentence for users.
    pub reason: String,
    /// The raw text of the record, to correct and load it by itself.
    pub raw: String,
}

pub(crate) enum ReadMessage {
    /// Piece `index` of input `input`; `first_row` is the number of its first row, if it consists of rows.
    Piece { input: usize, index: u64, first_row: u64, piece: FeedPiece },
    /// The end of input `input`, with what is known only once all of it was read.
    End { input: usize, end: FeedEnd },
}

pub(crate) struct FeedInput<'a> {
    pub(crate) file: &'a InputFile,
    /// Offsets at which a piece must begin, ascending; see [`Feed::read`].
    pub(crate) cuts: Vec<u64>,
}

/// Reads `inputs` in order on a thread of its own, while `consume` takes the messages; at most `ahead` pieces wait.
pub(crate) fn read_ahead(
    feed: &dyn Feed,
    inputs: &[FeedInput<'_>],
    ahead: usize,
    on_bytes: &(dyn Fn(u64) + Sync),
    consume: impl FnOnce(&mut (dyn Iterator<Item = Result<ReadMessage>> + Send)) -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver): (SyncSender<Result<ReadMessage>>, Receiver<_>) = sync_channel(ahead);
        scope.spawn(move || {
            for (at, input) in inputs.iter().enumerate() {
                match send_input(feed, at, input, on_bytes, &sender) {
                    Ok(true) => {}
                    // The consumer stopped and reports why.
                    Ok(false) => return,
                    Err(error) => {
                        let _ = sender.send(Err(error));
                        return;
                    }
                }
            }
        });

        consume(&mut receiver.into_iter())
    })
}

/// Sends the pieces of one input; `false` if the receiver is gone.
fn send_input(
    feed: &dyn Feed,
    at: usize,
    input: &FeedInput<'_>,
    on_bytes: &(dyn Fn(u64) + Sync),
    sender: &SyncSender<Result<ReadMessage>>,
) -> Result<bool> {
    let (mut index, mut seen, mut rows) = (0, 0, 1);
    let FeedInput { file, cuts } = input;
    let end = feed.read(file, cuts, &mut |piece, bytes| {
        on_bytes(bytes);
        seen += bytes;
        let first_row = rows;
        if let FeedPiece::Rows(batch) = &piece {
            rows += batch.num_rows() as u64;
        }

        let sent = sender.send(Ok(ReadMessage::Piece { input: at, index, first_row, piece }));
        index += 1;
        sent.is_ok()
    })?;

    let Some(end) = end else { return Ok(false) };
    on_bytes(end.bytes.saturating_sub(seen));
    Ok(sender.send(Ok(ReadMessage::End { input: at, end })).is_ok())
}

/// The place of a piece, to report its rejected rows by line.
pub(crate) struct RejectedRows<'a> {
    pub(crate) file: &'a str,
    pub(crate) origin: &'a Origin,
    pub(crate) on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
}

impl RejectedRows<'_> {
    /// Reports rows rejected for all tables, by the parser or a derived column.
    pub(crate) fn report_rows(&self, parsed: &[Rejected], derived: &Prepared) {
        for rejected in parsed {
            let Rejected { line, column, reason, raw, .. } = rejected;
            self.report(None, *line, column.as_ref(), reason.to_string(), raw.clone());
        }
        for UnpreparedRow { row, column, reason } in &derived.rejected {
            self.report(None, self.origin.line(*row), column.as_ref(), reason.clone(), self.origin.raw(*row));
        }
    }

    /// Reports rows rejected for one table, by its filter or its layout.
    pub(crate) fn report_table(&self, table: &str, derived: &Prepared, prepared: &Prepared, encoded: &[LayoutReject]) {
        for UnpreparedRow { row, column, reason } in &prepared.rejected {
            let row = derived.origin(*row);
            self.report(Some(table), self.origin.line(row), column.as_ref(), reason.clone(), self.origin.raw(row));
        }
        for rejected in encoded {
            let row = derived.origin(prepared.origin(rejected.row));
            let (line, reason) = (self.origin.line(row), rejected.reason.to_string());
            self.report(Some(table), line, rejected.column.as_ref(), reason, self.origin.raw(row));
        }
    }

    fn report(&self, table: Option<&str>, line: u64, column: Option<&String>, reason: String, raw: String) {
        let (file, table) = (self.file.to_owned(), table.map(str::to_owned));
        (self.on_reject)(&RejectedRow { file, table, line, column: column.cloned(), reason, raw });
    }
}
