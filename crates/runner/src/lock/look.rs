//! The result of one look at a lock.

use std::time::Duration;

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
        /// After which it is taken over, if it is not renewed before; `None` if it is not taken over.
        left: Option<Duration>,
    },
}

impl<T> Look<T> {
    /// The same with another lock.
    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Look<U> {
        match self {
            Self::Taken(lock) => Look::Taken(change(lock)),
            Self::Held { holder, lives, left } => Look::Held { holder, lives, left },
        }
    }
}
