//! Requests that are refused, and the statuses that clients get.

use std::io::ErrorKind;

use prost::Message;
use tidetable_blobs::BlobError;
use tidetable_serving::ServingError;
use tidetable_store::StoreError;
use tonic::{Code, Status};

use crate::error::BigtableError;
use crate::proto::rpc;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refusal {
    /// A part of a row filter.
    #[error("error in field '{field}' of a row filter: {problem}")]
    Filter { field: &'static str, problem: String },
    /// A filter that is too large.
    #[error("the row filter has {bytes} bytes; it must not have more than {most}")]
    FilterSize { bytes: usize, most: usize },
    /// A filter that is too deep.
    #[error("row filters are nested deeper than {most} levels")]
    FilterDepth { most: usize },
    /// Another field of a request.
    #[error("error in field '{field}': {problem}")]
    Field { field: &'static str, problem: String },
    /// A name that is not one of the API.
    #[error("`{name}` is no name of {wanted}")]
    Name { name: String, wanted: &'static str },
    /// A project or an instance other than that which is served.
    #[error("{name} is not served here; projects/{project}/instances/{instance} is")]
    OtherInstance { name: String, project: String, instance: String },
    /// A request that writes.
    #[error(
        "{method} is refused: tidetable serves a store read-only. Rows are loaded by `tidetable run`, and written to \
         Bigtable by `tidetable push`"
    )]
    Write { method: &'static str },
    /// A part of the API that the server does not have.
    #[error("{what} is not served: ask for the table itself")]
    Unserved { what: &'static str },
    /// A query that is not valid.
    #[error("{said}")]
    Query { said: String },
    /// A prepared query that must be prepared again.
    #[error("the prepared query is no longer valid: prepare it again")]
    Stale,
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let said = refusal.to_string();
        match refusal {
            Refusal::OtherInstance { .. } => Self::not_found(said),
            Refusal::Write { .. } => Self::failed_precondition(said),
            Refusal::Stale => expired(said),
            Refusal::Unserved { .. } => Self::unimplemented(said),
            _ => Self::invalid_argument(said),
        }
    }
}

/// The violation by which clients know that they are to prepare a query again.
const EXPIRED: &str = "PREPARED_QUERY_EXPIRED";

/// `google.rpc.PreconditionFailure`.
#[derive(Clone, PartialEq, prost::Message)]
struct PreconditionFailure {
    #[prost(message, repeated, tag = "1")]
    violations: Vec<Violation>,
}

/// A violation of a `google.rpc.PreconditionFailure`.
#[derive(Clone, PartialEq, prost::Message)]
struct Violation {
    #[prost(string, tag = "1")]
    kind: String,
    #[prost(string, tag = "3")]
    description: String,
}

/// The status of a query that is to be prepared again.
fn expired(said: String) -> Status {
    let violation = Violation { kind: EXPIRED.to_owned(), description: said.clone() };
    let detail = prost_types::Any {
        type_url: "type.googleapis.com/google.rpc.PreconditionFailure".to_owned(),
        value: PreconditionFailure { violations: vec![violation] }.encode_to_vec(),
    };
    let status = rpc::Status { code: Code::FailedPrecondition as i32, message: said.clone(), details: vec![detail] };
    Status::with_details(Code::FailedPrecondition, said, status.encode_to_vec().into())
}

/// The status of a failed read: damage is of the server, not of the request.
impl From<BigtableError> for Status {
    fn from(error: BigtableError) -> Self {
        let error = match error {
            BigtableError::Serving(error) => return of_serving(error),
            error => error,
        };
        match &error {
            BigtableError::Store(store) => of_store(store),
            BigtableError::LargeRow { .. } => Self::resource_exhausted(error.to_string()),
            BigtableError::Shape(_) => Self::data_loss(error.to_string()),
            _ => Self::internal(error.to_string()),
        }
    }
}

/// The status of a table that cannot be read.
pub(crate) fn of_serving(error: ServingError) -> Status {
    match &error {
        ServingError::Store(store) => of_store(store),
        ServingError::Lost(store) => of_store(store),
        ServingError::NoTable { .. } => Status::not_found(error.to_string()),
        _ => Status::internal(error.to_string()),
    }
}

/// Runs what reads the store on a thread that may wait.
///
/// # Errors
/// Those of `work`, and if it panicked.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    tidetable_serving::blocking(work, of_serving).await
}

/// The status of an error of the store. Clients try again what is unavailable; a file that is missing stays so.
pub(crate) fn of_store(error: &StoreError) -> Status {
    match error {
        StoreError::Blob(BlobError::Io { source, .. }) if source.kind() != ErrorKind::NotFound => {
            Status::unavailable(error.to_string())
        }
        _ => Status::internal(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_query_carries_what_clients_look_for() {
        let status = Status::from(Refusal::Stale);
        assert_eq!(status.code(), Code::FailedPrecondition);
        let details = rpc::Status::decode(status.details()).unwrap();
        let failure = PreconditionFailure::decode(details.details[0].value.as_slice()).unwrap();
        assert_eq!(failure.violations[0].kind, "PREPARED_QUERY_EXPIRED");
    }
}
