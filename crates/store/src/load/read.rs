//! Reading inputs ahead of the cores that parse them, and telling of rejected rows.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tidetable_layout::LayoutReject;
use tidetable_source::{Chunk, ContentHash, Origin, Parser, Rejected, SourceSpec, Storage};

use super::prepare::{Prepared, UnpreparedRow};
use super::rebuild::ToRead;
use crate::error::{Result, StoreError};

/// Chunks that may wait between the reader and the parsers.
const AHEAD: usize = 16;

/// A row that was not loaded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct RejectedRow {
    /// The input.
    pub file: String,
    /// Line where the record starts, from 1; of a Parquet file the row, from 1.
    pub line: u64,
    /// The column at fault, if one is.
    pub column: Option<String>,
    /// What is wrong.
    pub reason: String,
    /// The record as it stands in the file.
    pub raw: String,
}

/// What the reading thread sends.
pub(super) enum ReadMessage {
    /// A chunk of input number `input`.
    Chunk { input: usize, index: u64, parser: Arc<Parser>, chunk: Chunk },
    /// Input number `input` is at its end.
    End { input: usize, hash: ContentHash, bytes: u64 },
}

/// Reads `inputs` in order on a thread of its own while `consume` takes what it reads.
pub(super) fn read_ahead(
    storage: &Storage,
    source: &SourceSpec,
    inputs: &[ToRead],
    on_bytes: &(dyn Fn(u64) + Sync),
    consume: impl FnOnce(&mut dyn Iterator<Item = Result<ReadMessage>>) -> Result<()>,
) -> Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver): (SyncSender<Result<ReadMessage>>, Receiver<_>) = sync_channel(AHEAD);
        scope.spawn(move || {
            for (at, input) in inputs.iter().enumerate() {
                match send_input(storage, source, at, input, on_bytes, &sender) {
                    Ok(true) => {}
                    // The consumer gave up; it knows why.
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

/// Sends the chunks of one input; `false` if nobody listens any more.
fn send_input(
    storage: &Storage,
    source: &SourceSpec,
    at: usize,
    input: &ToRead,
    on_bytes: &(dyn Fn(u64) + Sync),
    sender: &SyncSender<Result<ReadMessage>>,
) -> Result<bool> {
    let mut reader = storage.open(source, &input.file)?;
    let parser = reader.parser();
    let mut seen = 0;
    let mut index = 0;
    while let Some(chunk) = reader.next() {
        let bytes = reader.bytes_read();
        on_bytes(bytes - seen);
        seen = bytes;
        let message = ReadMessage::Chunk { input: at, index, parser: Arc::clone(&parser), chunk: chunk? };
        if sender.send(Ok(message)).is_err() {
            return Ok(false);
        }
        index += 1;
    }
    let bytes = reader.bytes_read();
    on_bytes(bytes - seen);
    if bytes != input.file.size {
        return Err(StoreError::InputMoved { path: input.file.path.clone() });
    }
    Ok(sender.send(Ok(ReadMessage::End { input: at, hash: reader.content_hash(), bytes })).is_ok())
}

/// Tells of the rows of one chunk that are rejected.
pub(super) struct RejectedRows<'a> {
    pub(super) file: &'a str,
    pub(super) origin: &'a Origin,
    pub(super) on_reject: &'a (dyn Fn(&RejectedRow) + Sync),
}

impl RejectedRows<'_> {
    /// Tells of rows that the parser, an expression or the layout rejected.
    pub(super) fn report(&self, parsed: &[Rejected], prepared: &Prepared, laid: &[LayoutReject]) {
        for rejected in parsed {
            let Rejected { line, column, reason, raw } = rejected;
            self.tell(*line, column.as_ref(), reason.to_string(), raw.clone());
        }
        for UnpreparedRow { row, column, reason } in &prepared.rejected {
            self.tell(self.origin.line(*row), column.as_ref(), reason.clone(), self.origin.raw(*row));
        }
        for rejected in laid {
            let row = prepared.origin(rejected.row);
            let reason = rejected.reason.to_string();
            self.tell(self.origin.line(row), rejected.column.as_ref(), reason, self.origin.raw(row));
        }
    }

    fn tell(&self, line: u64, column: Option<&String>, reason: String, raw: String) {
        (self.on_reject)(&RejectedRow { file: self.file.to_owned(), line, column: column.cloned(), reason, raw });
    }
}
