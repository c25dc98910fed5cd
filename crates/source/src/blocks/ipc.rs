//! Arrow IPC: a schema, then messages with batches of rows or dictionaries. A file is a stream between two marks, with a list
//! of its messages at the end, which is not needed to read them in order.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::{read_dictionary, read_record_batch};
use arrow::ipc::{Message, RecordBatch as BatchHeader, convert::fb_to_schema, root_as_message};

use crate::blocks::input::BlockInput;
use crate::error::SourceError;
use crate::format::{Foreign, Format};
use crate::panics::catch;

const MARK: &[u8] = b"ARROW1";
/// The mark at the start of a file, padded to 8 bytes.
const START: &[u8] = b"ARROW1\0\0";
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The largest buffer that a compressed one may become: a damaged length must not take all memory.
const LARGEST_BUFFER: i64 = 4 << 30;

/// The messages of a file or stream.
#[derive(Debug)]
pub(crate) struct IpcMessages {
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    is_file: bool,
    /// Messages read so far, the schema among them.
    count: u64,
}

/// Where a message is among the bytes at hand; all of it is there.
struct Frame {
    header: Range<usize>,
    /// Bytes of the body behind the header.
    body: usize,
}

impl Frame {
    fn length(&self) -> usize {
        self.header.end + self.body
    }
}

impl IpcMessages {
    /// Reads the schema.
    ///
    /// # Errors
    /// [`SourceError::Foreign`], [`SourceError::BlockUnfinished`], [`SourceError::DamagedBlock`], and those of reading.
    pub fn open(input: &mut BlockInput) -> Result<Self, SourceError> {
        let is_long = input.wants(START.len())?;
        let is_file = input.at_hand().starts_with(START);
        if !is_file && let Some(format) = Foreign::instead_of_blocks(input.at_hand(), Format::Arrow) {
            return Err(SourceError::Foreign { path: input.path().to_owned(), format });
        }
        if !is_long {
            return Err(unfinished(input));
        }
        if is_file {
            input.take(START.len());
            // Writers pad the mark with zeros, to 8 bytes or more.
            while input.wants(8)? && input.at_hand().starts_with(&[0; 8]) {
                input.take(8);
            }
        }

        let mut messages = Self {
            schema: Arc::new(arrow::datatypes::Schema::empty()),
            dictionaries: HashMap::new(),
            is_file,
            count: 0,
        };
        let Some(frame) = messages.frame(input, 0)? else { return Err(unfinished(input)) };
        let message = input.take(frame.length());
        let header = message.get(frame.header).unwrap_or_default();
        let schema = catch(|| {
            let message = root_as_message(header).map_err(|error| ArrowError::IpcError(error.to_string()))?;
            let schema = message.header_as_schema();
            schema.map(fb_to_schema).ok_or_else(|| ArrowError::IpcError("the schema is missing".to_owned()))
        });
        messages.schema = match schema {
            Ok(Ok(schema)) => Arc::new(schema),
            Ok(Err(error)) => return Err(input.damaged(1, 1, error)),
            Err(panicked) => return Err(input.damaged(1, 1, panicked.message)),
        };
        messages.count = 1;
        Ok(messages)
    }

    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The next batch of rows; `None` at the end, when all bytes have been read. `rows` were before it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn next(&mut self, input: &mut BlockInput, rows: u64) -> Result<Option<RecordBatch>, SourceError> {
        while let Some(frame) = self.frame(input, rows)? {
            self.count += 1;
            let bytes = Buffer::from(input.at_hand().get(..frame.length()).unwrap_or_default());
            let found = catch(|| {
                let message = root_as_message(bytes.get(frame.header.clone()).unwrap_or_default());
                let message = message.map_err(|error| ArrowError::IpcError(error.to_string()))?;
                self.read(message, &bytes.slice_with_length(frame.header.end, frame.body))
            });
            let batch = match found {
                Ok(Ok(batch)) => batch,
                Ok(Err(error)) => return Err(input.damaged(self.count, rows + 1, error)),
                Err(panicked) => return Err(input.damaged(self.count, rows + 1, panicked.message)),
            };

            input.take(frame.length());
            if let Some(batch) = batch.filter(|batch| batch.num_rows() > 0) {
                return Ok(Some(batch));
            }
        }

        let last = input.last(MARK.len())?;
        if self.is_file && last != MARK {
            return Err(unfinished(input));
        }
        Ok(None)
    }

    /// Whether the bytes of a stream end here, without the mark of its end: it may have been cut between two batches.
    ///
    /// # Errors
    /// Those of reading.
    pub fn ends_unmarked(&self, input: &mut BlockInput) -> Result<bool, SourceError> {
        Ok(!self.is_file && !input.wants(1)?)
    }

    /// Finds the next message, and reads all of it; `None` at the end of the stream. `rows` were before it.
    fn frame(&self, input: &mut BlockInput, rows: u64) -> Result<Option<Frame>, SourceError> {
        let has_length = input.wants(8)?;
        if input.at_hand().is_empty() && !self.is_file && self.count > 0 {
            return Ok(None);
        }
        if !has_length && !input.at_hand().starts_with(&[0; 4]) {
            return Err(unfinished(input));
        }

        // Older writers do not mark the start of a message.
        let start = if input.at_hand().starts_with(&CONTINUATION) { 4 } else { 0 };
        let length = input.at_hand().get(start..).and_then(|rest| rest.first_chunk());
        let length = length.map_or(0, |length| i32::from_le_bytes(*length));
        let Ok(length) = usize::try_from(length) else {
            return Err(input.damaged(self.count + 1, rows + 1, "a message has a negative length"));
        };
        if length == 0 {
            return Ok(None);
        }

        let header = start + 4..start + 4 + length;
        if !input.wants(header.end)? {
            return Err(unfinished(input));
        }
        let text = input.at_hand().get(header.clone()).unwrap_or_default();
        let body = match catch(|| root_as_message(text).map(|message| message.bodyLength())) {
            Ok(Ok(body)) => usize::try_from(body).unwrap_or(usize::MAX / 2),
            Ok(Err(error)) => return Err(input.damaged(self.count + 1, rows + 1, error)),
            Err(panicked) => return Err(input.damaged(self.count + 1, rows + 1, panicked.message)),
        };

        if !input.wants(header.end.saturating_add(body))? {
            return Err(unfinished(input));
        }
        Ok(Some(Frame { header, body }))
    }

    fn read(&mut self, message: Message<'_>, body: &Buffer) -> Result<Option<RecordBatch>, ArrowError> {
        let version = message.version();
        if let Some(dictionary) = message.header_as_dictionary_batch() {
            if let Some(data) = dictionary.data() {
                check_lengths(data, body)?;
            }
            read_dictionary(body, dictionary, &self.schema, &mut self.dictionaries, &version)?;
            return Ok(None);
        }
        let Some(batch) = message.header_as_record_batch() else { return Ok(None) };
        check_lengths(batch, body)?;
        read_record_batch(body, batch, Arc::clone(&self.schema), &self.dictionaries, None, &version).map(Some)
    }
}

/// Checks the lengths of compressed buffers before memory is reserved for them.
fn check_lengths(batch: BatchHeader<'_>, body: &Buffer) -> Result<(), ArrowError> {
    if batch.compression().is_none() {
        return Ok(());
    }
    for buffer in batch.buffers().into_iter().flatten() {
        let start = usize::try_from(buffer.offset()).unwrap_or(usize::MAX);
        let length = body.get(start..).and_then(|rest| rest.first_chunk()).map(|length| i64::from_le_bytes(*length));
        if length.is_some_and(|length| length > LARGEST_BUFFER) && buffer.length() > 0 {
            return Err(ArrowError::IpcError("a buffer has a length of more than 4 GiB".to_owned()));
        }
    }
    Ok(())
}

fn unfinished(input: &BlockInput) -> SourceError {
    SourceError::BlockUnfinished { path: input.path().to_owned(), format: Format::Arrow.name() }
}
