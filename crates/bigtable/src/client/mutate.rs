//! MutateRows: one request, with the outcome of each entry.

use bytes::{BufMut, Bytes};
use http::uri::PathAndQuery;
use tonic::Status;
use tonic::client::Grpc;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstDecoder;

use crate::client::connection::{Client, LARGEST_MESSAGE};
use crate::client::repeat::within;
use crate::names::TableName;
use crate::proto::data::{MutateRowsResponse, RateLimitInfo};

/// What became of the entries of a request.
#[derive(Debug)]
pub(crate) struct Mutated {
    /// For each entry: done, refused, or unknown. An entry that is not answered has the status that ended the stream.
    pub(crate) entries: Vec<Result<(), Status>>,
    /// What the service says of its load.
    pub(crate) rate: Option<RateLimitInfo>,
}

impl Client {
    /// Sends a request with `count` entries once: its encoded bytes, in pieces.
    pub(crate) async fn mutate_once(&self, table: &TableName, pieces: Vec<Bytes>, count: usize) -> Mutated {
        let mut found: Vec<Option<Result<(), Status>>> = vec![None; count];
        let mut rate = None;
        let status = match self.collect(table, pieces, &mut found, &mut rate).await {
            Ok(()) => Status::unavailable("the stream ended without an answer for this row"),
            Err(status) => status,
        };
        let entries = found.into_iter().map(|entry| entry.unwrap_or_else(|| Err(status.clone()))).collect();
        Mutated { entries, rate }
    }

    /// Sends a request and fills `found` and `rate` as answers come, so that they hold these whatever ends the stream.
    async fn collect(
        &self,
        table: &TableName,
        pieces: Vec<Bytes>,
        found: &mut [Option<Result<(), Status>>],
        rate: &mut Option<RateLimitInfo>,
    ) -> Result<(), Status> {
        let timeout = self.options().timeout;
        let request = self.of_table(pieces, table).await?;
        let mut grpc = Grpc::new(self.channel()).max_encoding_message_size(LARGEST_MESSAGE);
        let path = PathAndQuery::from_static("/google.bigtable.v2.Bigtable/MutateRows");
        let sent = async {
            grpc.ready().await.map_err(|error| Status::unavailable(format!("no connection: {error}")))?;
            grpc.server_streaming(request, path, EncodedRequests).await
        };
        let mut stream = within(timeout, sent).await?.into_inner();

        while let Some(message) = within(timeout, stream.message()).await? {
            if message.rate_limit_info.is_some() {
                *rate = message.rate_limit_info;
            }
            for entry in message.entries {
                let status = entry.status.unwrap_or_default();
                let outcome = if status.code == 0 {
                    Ok(())
                } else {
                    Err(Status::new(tonic::Code::from_i32(status.code), status.message))
                };
                let index = usize::try_from(entry.index).unwrap_or(usize::MAX);
                if let Some(found) = found.get_mut(index) {
                    *found = Some(outcome);
                }
            }
        }
        Ok(())
    }
}

/// Requests that are encoded already.
#[derive(Debug)]
struct EncodedRequests;

impl Codec for EncodedRequests {
    type Encode = Vec<Bytes>;
    type Decode = MutateRowsResponse;
    type Encoder = Self;
    type Decoder = ProstDecoder<MutateRowsResponse>;

    fn encoder(&mut self) -> Self::Encoder {
        Self
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::new(BufferSettings::default())
    }
}

impl Encoder for EncodedRequests {
    type Item = Vec<Bytes>;
    type Error = Status;

    fn encode(&mut self, pieces: Vec<Bytes>, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.reserve(pieces.iter().map(Bytes::len).sum());
        pieces.into_iter().for_each(|piece| out.put(piece));
        Ok(())
    }
}
