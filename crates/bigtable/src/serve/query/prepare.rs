//! Plans queries: over rows, with values for parameters.

use std::sync::Arc;

use tidetable_sql::{Session, SessionOptions, SqlError, TableVersions};
use tidetable_store::{Store, StoreError};
use tonic::Status;

use crate::serve::query::parameters::Parameters;
use crate::serve::refusal::{Refusal, of_store};

/// Why a query failed, as a status: what is wrong with its text is of the request.
pub(super) fn status(error: &SqlError) -> Status {
    match error {
        SqlError::Store(StoreError::NoTable { .. }) => Refusal::Query { said: error.to_string() }.into(),
        SqlError::Store(store) => of_store(store),
        SqlError::Decode { .. } | SqlError::Shape(_) => Status::internal(error.to_string()),
        SqlError::Memory { .. } => Status::resource_exhausted(error.to_string()),
        _ => Refusal::Query { said: error.to_string() }.into(),
    }
}

/// A session whose tables are rows, in these versions, and whose queries are GoogleSQL and hold `memory` bytes. They give the
/// same rows in the same order each time, so that a result can be resumed. With `strict` it refuses what Bigtable refuses.
///
/// # Errors
/// If the store cannot be listed.
pub(super) fn session(store: &Store, versions: TableVersions, memory: u64, strict: bool) -> Result<Session, Status> {
    let options = SessionOptions { versions, memory: Some(memory), ..SessionOptions::default() };
    let session = Session::open(store, &options).map_err(|error| status(&error))?;
    Ok(session.with_rows().with_googlesql(strict).sequential())
}

/// Plans a query.
///
/// # Errors
/// If it is not valid.
pub(super) async fn plan(
    session: &Session,
    query: &str,
    parameters: &Parameters,
) -> Result<tidetable_sql::DataFrame, Status> {
    let parameters: Vec<_> = parameters.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    session.sql_with_parameters(query, &parameters).await.map_err(|error| status(&error))
}

/// The columns of a planned query.
pub(super) fn schema(frame: &tidetable_sql::DataFrame) -> Arc<arrow::datatypes::Schema> {
    Arc::new(frame.schema().as_arrow().clone())
}
