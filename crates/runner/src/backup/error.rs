//! Errors of backup and restore.

use std::io;

use tidetable_blobs::BlobError;
use tidetable_store::StoreError;

use crate::fault::error::RunError;

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A backup directory inside the root, or the reverse.
    #[error("{folder} lies in the root {root}, or the root in it: a backup is kept elsewhere, best on another disk")]
    Inside {
        /// Path or URL of the backup directory.
        folder: String,
        /// Path or URL of the root.
        root: String,
    },
    /// A directory without backups.
    #[error("{folder} holds no backups of tidetable; name the folder that `tidetable backup` was given")]
    NoVault {
        /// Path or URL of the directory.
        folder: String,
    },
    /// A directory that is not empty and has no backups.
    #[error("{folder} is not empty, and holds no backups: name another folder, or one that is not there yet")]
    Taken {
        /// Path or URL of the directory.
        folder: String,
    },
    /// A backup that the vault does not have.
    #[error("there is no backup {asked} in {folder}; `tidetable backup {folder} --list` shows those there are")]
    NoBackup {
        /// Path or URL of the vault.
        folder: String,
        /// What was asked for.
        asked: String,
    },
    /// Another process holds the lock.
    #[error("another backup or restore is using {folder}: wait for its end")]
    Busy {
        /// Path or URL of the vault.
        folder: String,
    },
    /// A root that is not empty.
    #[error(
        "the root {root} holds a store already, and nothing is written over it: move it away, or restore into another folder: \
         `tidetable restore {folder} DIR`"
    )]
    RootTaken {
        /// Path or URL of the root.
        root: String,
        /// Path or URL of the backup directory.
        folder: String,
    },
    /// A root with an unfinished restore of another backup.
    #[error("backup {id} was being restored into {root}: go on with `--at {id}`, or remove that folder")]
    OtherRestore {
        /// Path or URL of the root.
        root: String,
        /// Name of the backup that was begun.
        id: String,
    },
    /// A root to copy into that is not an older copy.
    #[error(
        "{root} holds another store, or a newer one: {path} differs. Nothing is written over it: copy into another root"
    )]
    OtherStore {
        /// Path or URL of the root.
        root: String,
        /// Path inside it of a file that differs.
        path: String,
    },
    /// A catalog that cannot be read, or written.
    #[error("{path} cannot be read: {reason}; take another backup with --at")]
    Catalog {
        /// Path inside the vault.
        path: String,
        /// What is wrong with its text.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// Path of the file.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// An error of the store or of the vault.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request to stop.
    #[error(transparent)]
    Run(Box<RunError>),
}

impl From<RunError> for BackupError {
    fn from(error: RunError) -> Self {
        Self::Run(Box::new(error))
    }
}

impl From<BlobError> for BackupError {
    fn from(error: BlobError) -> Self {
        Self::Store(error.into())
    }
}

impl BackupError {
    /// The exit code for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Busy { .. } => 75,
            Self::Inside { .. }
            | Self::NoVault { .. }
            | Self::Taken { .. }
            | Self::NoBackup { .. }
            | Self::RootTaken { .. }
            | Self::OtherRestore { .. }
            | Self::OtherStore { .. } => 2,
            Self::Run(error) => error.exit_code(),
            _ => 1,
        }
    }
}
