//! Which answers of an object store may be another one later.

use std::error::Error;

/// Whether `error` is one of an object store that may pass by itself: the network failed, or the store did. `false` for
/// an answer that stays, such as that something is not there or not allowed; `None` for what is no answer of a store.
pub fn store_may_pass(error: &(dyn Error + 'static)) -> Option<bool> {
    use object_store::Error as Answer;
    let answer = error.downcast_ref()?;
    Some(matches!(answer, Answer::Generic { .. } | Answer::JoinError { .. } | Answer::Precondition { .. }))
}

#[cfg(test)]
mod tests {
    use object_store::Error as Answer;

    use super::store_may_pass;

    #[test]
    fn what_is_not_there_or_not_allowed_stays_so() {
        let cause = || Box::new(std::io::Error::other("x"));
        let path = || "x".to_owned();
        assert_eq!(store_may_pass(&Answer::Generic { store: "S3", source: cause() }), Some(true));
        assert_eq!(store_may_pass(&Answer::NotFound { path: path(), source: cause() }), Some(false));
        assert_eq!(store_may_pass(&Answer::PermissionDenied { path: path(), source: cause() }), Some(false));
        assert_eq!(store_may_pass(&std::io::Error::other("x")), None);
    }
}
