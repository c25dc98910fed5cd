//! The refusal of a run whose root has lost what former runs wrote.

/// What a root lacks that a mark of the project names. All are mistakes of the place: exit code 2.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LostStore {
    /// The root is missing or empty.
    #[error(
        "the store at {root} is gone: run {run} wrote to it on {date}. Mount its disk, restore a backup with \
         `tidetable restore FOLDER`, or add `--new-root` to begin a new store there"
    )]
    Gone {
        /// The root as the project names it.
        root: String,
        /// Name of the last run that is known to have written there.
        run: String,
        /// Day of its end, `YYYY-MM-DD`.
        date: String,
    },
    /// A table is missing.
    #[error(transparent)]
    TableGone(#[from] LostTable),
    /// A table was made by another store.
    #[error(
        "{root} holds another store than before: its table {table} is not the one that run {run} wrote on {date}. Mount \
         the right disk, or add `--new-root` to go on with this store"
    )]
    Exchanged {
        /// The root as the project names it.
        root: String,
        /// Name of the table in both.
        table: String,
        /// Name of the last run that is known to have written there.
        run: String,
        /// Day of its end, `YYYY-MM-DD`.
        date: String,
    },
}

/// A table that runs wrote, and that is missing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "run {run} wrote on {date} into table {table}, which does not exist any more in {root}. Restore a backup, or load \
     the inputs that are still there with `--rebuild`"
)]
pub struct LostTable {
    /// The root as the project names it.
    pub root: String,
    /// Name of the missing table.
    pub table: String,
    /// Name of the last run that is known to have written there.
    pub run: String,
    /// Day of its end, `YYYY-MM-DD`.
    pub date: String,
}
