//! Checks the lengths in a local Arrow IPC file or stream, for readers that reserve as much memory as a length says.
//!
//! Only the heads of messages are read, so that a file of gigabytes takes as many small reads as it has batches.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::{Block, Message, RecordBatch, root_as_footer, root_as_message};

use crate::error::SourceError;
use crate::format::Format;
use crate::panics::{Panicked, catch};

const MARK: &[u8] = b"ARROW1";
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The first message of a file, behind its padded mark.
const FIRST_OFFSET: u64 = 8;
/// Bytes behind the footer: its length and the mark.
const TRAILER_BYTES: u64 = 10;
/// The most bytes that one stored byte of a compressed buffer stands for: zstd repeats a byte in four bytes for 128 KiB.
const LARGEST_RATIO: i64 = 1 << 15;

/// Checks that all lengths in a file fit into it.
///
/// # Errors
/// [`SourceError::DamagedBlock`], [`SourceError::BlockUnfinished`], and those of reading.
pub fn check_arrow_lengths(path: &Path) -> Result<(), SourceError> {
    let checked = CheckedFile::open(path)?;
    match checked.starts_with_mark()? {
        true => checked.check_file(),
        false => checked.check_stream(),
    }
}

/// A file whose lengths are checked.
struct CheckedFile {
    path: String,
    file: File,
    size: u64,
}

/// Where a message is, as errors name it.
#[derive(Clone, Copy)]
struct Place {
    /// Number of the message, from 1; 0 for the footer.
    block: u64,
    /// Its offset.
    byte: u64,
    /// Number of its first record, from 1.
    record: u64,
}

/// A message in a file.
struct Found {
    /// The bytes of its head, without the length in front of them.
    head: Vec<u8>,
    /// Offset of its body.
    body: u64,
    body_length: u64,
}

impl CheckedFile {
    fn open(path: &Path) -> Result<Self, SourceError> {
        let name = path.display().to_string();
        let opened = File::open(path).and_then(|file| file.metadata().map(|found| (file, found.len())));
        match opened {
            Ok((file, size)) => Ok(Self { path: name, file, size }),
            Err(source) => Err(SourceError::Io { path: name, source }),
        }
    }

    fn starts_with_mark(&self) -> Result<bool, SourceError> {
        Ok(self.size >= FIRST_OFFSET && self.bytes(0, MARK.len() as u64)? == MARK)
    }

    /// Checks a file: its footer, and the messages that the footer lists, which are read in any order.
    fn check_file(&self) -> Result<(), SourceError> {
        let trailer = self.size.checked_sub(TRAILER_BYTES).filter(|at| *at >= FIRST_OFFSET);
        let Some(trailer) = trailer else { return Err(self.unfinished()) };
        let end = self.bytes(trailer, TRAILER_BYTES)?;
        let (length, mark) =
            end.split_first_chunk().map_or((0, &[][..]), |(length, mark)| (i32::from_le_bytes(*length), mark));
        if mark != MARK {
            return Err(self.unfinished());
        }
        let start = u64::try_from(length).ok().and_then(|length| trailer.checked_sub(length));
        let Some(start) = start.filter(|start| *start >= FIRST_OFFSET && length > 0) else {
            let place = Place { block: 0, byte: trailer, record: 1 };
            return Err(self.damaged(place, "the footer is longer than the file"));
        };

        let footer = self.bytes(start, trailer - start)?;
        let blocks = catch(|| {
            let footer = root_as_footer(&footer).map_err(ipc_error)?;
            let schema = footer.schema().ok_or_else(|| ArrowError::IpcError("the schema is missing".to_owned()))?;
            fb_to_schema(schema);
            let blocks =
                footer.dictionaries().into_iter().flatten().chain(footer.recordBatches().into_iter().flatten());
            Ok(blocks.copied().collect::<Vec<Block>>())
        });
        let mut place = Place { block: 0, byte: start, record: 1 };
        let blocks = self.checked(place, blocks)?;

        for block in blocks {
            place.block += 1;
            place.byte = u64::try_from(block.offset()).unwrap_or(u64::MAX);
            let Some(found) = self.message(place, start)? else {
                return Err(self.damaged(place, "the footer lists a message that is not there"));
            };
            let (head, body) = (i64::try_from(found.body - place.byte), i64::try_from(found.body_length));
            if head != Ok(i64::from(block.metaDataLength())) || body != Ok(block.bodyLength()) {
                return Err(self.damaged(place, "the message has another length than the footer says"));
            }
            place.record += self.check_message(place, &found)?;
        }
        Ok(())
    }

    /// Checks a stream: one message after another.
    fn check_stream(&self) -> Result<(), SourceError> {
        let mut place = Place { block: 1, byte: 0, record: 1 };
        while let Some(found) = self.message(place, self.size)? {
            place.record += self.check_message(place, &found)?;
            place.block += 1;
            place.byte = found.body + found.body_length;
        }
        Ok(())
    }

    /// The message at a place, all of which lies before `end`; `None` at the end of a stream.
    fn message(&self, place: Place, end: u64) -> Result<Option<Found>, SourceError> {
        let at = place.byte;
        if at == end {
            return Ok(None);
        }
        let start = self.part(place, at, 4, end)?;
        // Older writers do not mark the start of a message.
        let (length_at, start) = match start == CONTINUATION {
            true => (at.saturating_add(4), self.part(place, at.saturating_add(4), 4, end)?),
            false => (at, start),
        };
        let length = start.first_chunk().map_or(0, |length| i32::from_le_bytes(*length));
        if length == 0 {
            return Ok(None);
        }
        let Ok(length) = u64::try_from(length) else {
            return Err(self.damaged(place, "a message has a negative length"));
        };

        let head = self.part(place, length_at + 4, length, end)?;
        let body_length = catch(|| root_as_message(&head).map(|message| message.bodyLength()).map_err(ipc_error));
        let body_length = self.checked(place, body_length)?;
        let body = length_at + 4 + length;
        match u64::try_from(body_length) {
            Ok(body_length) if body.checked_add(body_length).is_some_and(|after| after <= end) => {
                Ok(Some(Found { head, body, body_length }))
            }
            _ => Err(self.damaged(place, "a message is longer than the file")),
        }
    }

    /// Checks what a message says of its body; returns the number of its records.
    fn check_message(&self, place: Place, found: &Found) -> Result<u64, SourceError> {
        let checked = catch(|| {
            let message = root_as_message(&found.head).map_err(ipc_error)?;
            if let Some(schema) = message.header_as_schema() {
                fb_to_schema(schema);
            }
            if let Some(batch) = batch_of(&message) {
                self.check_buffers(batch, found)?;
            }
            let records = message.header_as_record_batch().map_or(0, |batch| batch.length());
            Ok(u64::try_from(records).unwrap_or_default())
        });
        self.checked(place, checked)
    }

    /// Checks that the buffers of a batch lie within its body, and that those which are compressed could have their lengths.
    fn check_buffers(&self, batch: RecordBatch<'_>, found: &Found) -> Result<(), ArrowError> {
        if batch.length() < 0
            || batch.nodes().into_iter().flatten().any(|node| node.length() < 0 || node.null_count() < 0)
        {
            return Err(ArrowError::IpcError("a batch has a negative length".to_owned()));
        }
        let is_compressed = batch.compression().is_some();
        for buffer in batch.buffers().into_iter().flatten() {
            let (offset, length) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length()));
            let (Ok(offset), Ok(length)) = (offset, length) else {
                return Err(ArrowError::IpcError("a buffer has a negative length".to_owned()));
            };
            if offset.checked_add(length).is_none_or(|end| end > found.body_length) {
                return Err(ArrowError::IpcError("a buffer is longer than its message".to_owned()));
            }
            if !is_compressed || length == 0 {
                continue;
            }
            if length < 8 {
                return Err(ArrowError::IpcError("a compressed buffer does not say its length".to_owned()));
            }
            let mut plain = [0; 8];
            self.file.read_exact_at(&mut plain, found.body + offset)?;
            let plain = i64::from_le_bytes(plain);
            if plain > buffer.length().saturating_mul(LARGEST_RATIO) {
                return Err(ArrowError::IpcError(format!("a buffer of {length} bytes claims to be {plain} bytes")));
            }
        }
        Ok(())
    }

    /// Bytes of the message at a place, which ends before `end`.
    fn part(&self, place: Place, at: u64, length: u64, end: u64) -> Result<Vec<u8>, SourceError> {
        match at.checked_add(length) {
            Some(after) if after <= end => self.bytes(at, length),
            _ if end == self.size => Err(self.unfinished()),
            _ => Err(self.damaged(place, "a message is longer than the file")),
        }
    }

    /// Bytes of the file, which has so many.
    fn bytes(&self, at: u64, length: u64) -> Result<Vec<u8>, SourceError> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|source| SourceError::Io { path: self.path.clone(), source })?;
        Ok(bytes)
    }

    /// What a library found, whose errors and panics are damage of the message at a place.
    fn checked<T>(&self, place: Place, found: Result<Result<T, ArrowError>, Panicked>) -> Result<T, SourceError> {
        match found {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(self.damaged(place, error)),
            Err(panicked) => Err(self.damaged(place, panicked.message)),
        }
    }

    fn damaged(&self, place: Place, problem: impl ToString) -> SourceError {
        let Place { block, byte, record } = place;
        SourceError::DamagedBlock { path: self.path.clone(), block, byte, record, problem: problem.to_string() }
    }

    fn unfinished(&self) -> SourceError {
        SourceError::BlockUnfinished { path: self.path.clone(), format: Format::Arrow.name() }
    }
}

fn ipc_error(error: impl ToString) -> ArrowError {
    ArrowError::IpcError(error.to_string())
}

/// The batch of rows, or of dictionary values, that a message holds.
fn batch_of<'a>(message: &Message<'a>) -> Option<RecordBatch<'a>> {
    let dictionary = message.header_as_dictionary_batch().and_then(|dictionary| dictionary.data());
    message.header_as_record_batch().or(dictionary)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, Int64Array, RecordBatch as Rows, StringArray};
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};

    use super::*;

    fn rows() -> Rows {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..40));
        let texts: ArrayRef = Arc::new((0..40).map(|at| Some(format!("text {}", at % 7))).collect::<StringArray>());
        Rows::try_from_iter([("n", numbers), ("t", texts)]).unwrap()
    }

    fn written(is_file: bool, compression: Option<CompressionType>) -> Vec<u8> {
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let rows = rows();
        if is_file {
            let mut writer = FileWriter::try_new_with_options(Vec::new(), &rows.schema(), options).unwrap();
            writer.write(&rows).unwrap();
            writer.write(&rows).unwrap();
            writer.into_inner().unwrap()
        } else {
            let mut writer = StreamWriter::try_new_with_options(Vec::new(), &rows.schema(), options).unwrap();
            writer.write(&rows).unwrap();
            writer.into_inner().unwrap()
        }
    }

    fn check(bytes: &[u8]) -> Result<(), SourceError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.arrow");
        std::fs::write(&path, bytes).unwrap();
        check_arrow_lengths(&path)
    }

    #[test]
    fn lengths_of_whole_files_fit() {
        for is_file in [true, false] {
            for compression in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
                check(&written(is_file, compression)).unwrap();
            }
        }
    }

    #[test]
    fn a_cut_file_is_unfinished_or_damaged() {
        for is_file in [true, false] {
            let whole = written(is_file, None);
            for length in [9, 100, whole.len() / 2, whole.len() - 1] {
                // A stream may end behind any message, and without its mark of the end.
                let cut = check(&whole[..length]);
                assert!(cut.is_err() || !is_file && length == whole.len() - 1, "{length}");
            }
        }
    }

    #[test]
    fn no_damaged_length_reserves_memory() {
        for compression in [None, Some(CompressionType::ZSTD)] {
            let whole = written(true, compression);
            for at in 0..whole.len() - 3 {
                let mut damaged = whole.clone();
                damaged[at..at + 3].copy_from_slice(&[0xFF, 0xFF, 0x7F]);
                // Whatever it finds, it ends, and names the file.
                if let Err(error) = check(&damaged) {
                    assert!(error.to_string().contains("a.arrow"), "{error}");
                }
            }
        }
    }
}
