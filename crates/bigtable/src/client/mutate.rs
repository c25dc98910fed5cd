//! MutateRows: one request, with the outcome of each entry.

use tonic::Status;

use crate::client::connection::Client;
use crate::client::names::TableName;
use crate::client::repeat::within;
use crate::proto::data::mutate_rows_request::Entry;
use crate::proto::data::{MutateRowsRequest, RateLimitInfo};

/// What became of the entries of a request.
#[derive(Debug)]
pub(crate) struct Mutated {
    /// For each entry: done, refused, or unknown. An entry that is not answered has the status that ended the stream.
    pub(crate) entries: Vec<Result<(), Status>>,
    /// What the service says of its load.
    pub(crate) rate: Option<RateLimitInfo>,
}

impl Client {
    /// Sends `entries` once.
    pub(crate) async fn mutate_once(&self, table: &TableName, entries: Vec<Entry>) -> Mutated {
        let unanswered = || Status::unavailable("the stream ended without an answer for this row");
        let mut found: Vec<Option<Result<(), Status>>> = vec![None; entries.len()];
        let mut rate = None;
        let ended = self.collect(table, entries, &mut found, &mut rate).await.err();
        let status = ended.unwrap_or_else(unanswered);
        let entries = found.into_iter().map(|entry| entry.unwrap_or_else(|| Err(status.clone()))).collect();
        Mutated { entries, rate }
    }

    async fn collect(
        &self,
        table: &TableName,
        entries: Vec<Entry>,
        found: &mut [Option<Result<(), Status>>],
        rate: &mut Option<RateLimitInfo>,
    ) -> Result<(), Status> {
        let timeout = self.options().timeout;
        let request = MutateRowsRequest {
            table_name: table.to_string(),
            app_profile_id: self.options().app_profile.clone(),
            entries,
            ..MutateRowsRequest::default()
        };
        let request = self.of_table(request, table).await?;
        let mut stream = within(timeout, self.data().mutate_rows(request)).await?.into_inner();
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
