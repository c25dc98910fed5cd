//! The codec of `ReadRows`: responses are written as bytes where cells are, not as messages of messages.

use bytes::{Buf, BufMut, Bytes};
use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

use crate::proto::data::ReadRowsRequest;

/// The bytes of a serialized `ReadRowsResponse`, sent as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EncodedRows(pub Bytes);

/// Takes requests as messages, and responses as they are.
#[derive(Debug, Clone, Copy, Default)]
pub struct RowsCodec;

/// Largest request, bytes: the service refuses larger ones, too. What it is decoded to takes up to 80 times as much.
const MOST_REQUEST: usize = 1 << 20;
/// Bytes of a buffer of responses: they come in large pieces.
const BUFFER: usize = 64 << 10;

impl Codec for RowsCodec {
    type Encode = EncodedRows;
    type Decode = ReadRowsRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RowsCodec {
    type Item = EncodedRows;
    type Error = Status;

    fn encode(&mut self, item: EncodedRows, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item.0);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, BUFFER)
    }
}

impl Decoder for RowsCodec {
    type Item = ReadRowsRequest;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<ReadRowsRequest>, Status> {
        let bytes = buffer.remaining();
        if bytes > MOST_REQUEST {
            return Err(Status::invalid_argument(format!(
                "the ReadRows request has {bytes} bytes; it must not have more than {MOST_REQUEST}: ask for its rows in \
                 several requests"
            )));
        }
        let request = ReadRowsRequest::decode(buffer);
        request.map(Some).map_err(|error| Status::invalid_argument(format!("not a ReadRowsRequest: {error}")))
    }
}
