//! Requests to operations of buckets, and results to replies.

mod headers;
mod list;
mod object;
mod upload;
mod xml;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use headers::condition;

use crate::bucket::{Refusal, State};
use crate::http::{Request, Response};
use crate::kind::Kind;

/// Rules of the server that operations follow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Most entries of a list reply.
    pub page: usize,
    /// Least bytes of a part that is not the last.
    pub part: u64,
    /// Whether a stale upload is left beside a new one.
    pub stale: bool,
}

/// The reply to a request. Each operation is one turn at the mutex.
pub(crate) fn answer(state: &Mutex<State>, request: &Request, kind: Kind, rules: Rules) -> Response {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    let done = execute(&mut state, request, kind, rules);
    drop(state);
    done.unwrap_or_else(|refusal| refuse(&refusal, &request.head.target))
}

fn execute(
    state: &mut MutexGuard<'_, State>,
    request: &Request,
    kind: Kind,
    rules: Rules,
) -> Result<Response, Refusal> {
    match kind {
        Kind::GetObject | Kind::HeadObject => object::get(state, request),
        Kind::PutObject => object::put(state, request),
        Kind::CopyObject => object::copy(state, request),
        Kind::DeleteObject => object::delete(state, request),
        Kind::DeleteObjects => object::delete_all(state, request),

        Kind::ListObjects => list::objects(state, request, rules.page),
        Kind::ListUploads => list::uploads(state, request, rules.page),
        Kind::CreateUpload => upload::create(state, request, rules.stale),
        Kind::UploadPart => upload::part(state, request),
        Kind::CompleteUpload => upload::complete(state, request, rules.part),
        Kind::AbortUpload => upload::abort(state, request),

        Kind::CreateBucket => {
            state.create(&request.bucket);
            Ok(Response::new(200).with("Location", format!("/{}", request.bucket)))
        }
        Kind::HeadBucket => {
            state.bucket(&request.bucket)?;
            Ok(Response::new(200).with("x-amz-bucket-region", "us-east-1"))
        }
        Kind::Other => Err(Refusal::new(501, "NotImplemented", "this server does not know such a request")),
    }
}

/// The reply of a refusal.
pub(crate) fn refuse(refusal: &Refusal, resource: &str) -> Response {
    if refusal.status == 304 {
        return Response::new(304);
    }
    Response::xml(refusal.status, &xml::error(refusal, resource))
}
