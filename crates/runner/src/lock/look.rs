//! The result of one look at a lock.

use tidetable_record::Holder;

/// What a look at a lock found.
pub(super) enum Look<T> {
    /// It was free, and is ours.
    Taken(T),
    /// Another run holds it.
    Held {
        holder: Holder,
        /// Whether that run surely goes on.
        lives: bool,
    },
}

impl<T> Look<T> {
    /// The same with another lock.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Taken(lock) => Look::Taken(change(lock)),
            Self::Held { holder, lives } => Look::Held { holder, lives },
        }
    }
}
