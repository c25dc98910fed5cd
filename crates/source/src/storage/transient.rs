//! Transient errors of object stores, after which the same request may succeed.

use std::error::Error;

use object_store::Error as Answer;

use crate::bucket_error::{BucketError, BucketFault};

/// Whether `error` is a transient error of an object store: the network or the store failed. `false` for permanent errors such as
/// a missing object, a missing bucket or a refused key; `None` for errors that are not of an object store.
pub fn is_transient(error: &(dyn Error + 'static)) -> Option<bool> {
    if let Some(error) = error.downcast_ref::<BucketError>()
        && let Some(is_transient) = error.fault().is_transient()
    {
        return Some(is_transient);
    }

    let answer = error.downcast_ref()?;
    // A list that is denied is a general error.
    BucketFault::of(answer)
        .is_transient()
        .or(Some(matches!(answer, Answer::Generic { .. } | Answer::JoinError { .. } | Answer::Precondition { .. })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_or_not_allowed_stays_so() {
        let cause = || Box::new(std::io::Error::other("x"));
        let path = || "x".to_owned();
        assert_eq!(is_transient(&Answer::Generic { store: "S3", source: cause() }), Some(true));
        assert_eq!(is_transient(&Answer::NotFound { path: path(), source: cause() }), Some(false));
        assert_eq!(is_transient(&Answer::PermissionDenied { path: path(), source: cause() }), Some(false));
        assert_eq!(is_transient(&std::io::Error::other("x")), None);
    }
}
