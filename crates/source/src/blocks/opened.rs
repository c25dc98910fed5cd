//! A file of blocks whose schema is known.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;

use crate::blocks::avro::AvroBlocks;
use crate::blocks::input::BlockInput;
use crate::blocks::ipc::IpcMessages;
use crate::error::SourceError;
use crate::format::Format;

/// What finds the blocks of a file.
pub(crate) enum OpenedBlocks {
    Arrow(IpcMessages),
    Avro(AvroBlocks),
}

impl OpenedBlocks {
    /// Reads the schema of Avro if that is the format, and else of Arrow IPC.
    ///
    /// # Errors
    /// As [`AvroBlocks::open`] and [`IpcMessages::open`].
    pub fn open(input: &mut BlockInput, format: Format) -> Result<Self, SourceError> {
        match format {
            Format::Avro | Format::BigtableAvro => AvroBlocks::open(input).map(Self::Avro),
            _ => IpcMessages::open(input).map(Self::Arrow),
        }
    }

    pub fn schema(&self) -> &SchemaRef {
        match self {
            Self::Arrow(messages) => messages.schema(),
            Self::Avro(blocks) => blocks.schema(),
        }
    }

    /// The rows of the first block that has some; `None` if none has.
    ///
    /// # Errors
    /// Those of reading and decoding the block.
    pub fn first_rows(&mut self, input: &mut BlockInput) -> Result<Option<RecordBatch>, SourceError> {
        match self {
            Self::Arrow(messages) => messages.next(input, 0),
            Self::Avro(blocks) => blocks.first_rows(input),
        }
    }
}
