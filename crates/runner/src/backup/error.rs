//! Why a backup or a restore failed.

use std::io;

use tidetable_store::StoreError;

use crate::run::RunError;

/// Why a backup or a restore failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A backup inside of what it is of.
    #[error("{folder} lies in the root {root}, or the root in it: a backup is kept elsewhere, best on another disk")]
    Inside {
        /// The folder of backups.
        folder: String,
        /// The root.
        root: String,
    },
    /// A folder that holds something else.
    #[error("{folder} holds no backups of tidetable; name the folder that `tidetable backup` was given")]
    NoVault {
        /// The folder.
        folder: String,
    },
    /// A folder that is not empty and holds something else.
    #[error("{folder} is not empty, and holds no backups: name another folder, or one that is not there yet")]
    Taken {
        /// The folder.
        folder: String,
    },
    /// No such backup.
    #[error("there is no backup {asked} in {folder}; `tidetable backup {folder} --list` shows those there are")]
    NoBackup {
        /// The folder.
        folder: String,
        /// What was asked for.
        asked: String,
    },
    /// Another process is at it.
    #[error("another backup or restore is using {folder}: wait for its end")]
    Busy {
        /// The folder.
        folder: String,
    },
    /// A root that holds something.
    #[error(
        "the root {root} holds a store already, and nothing is written over it: move it away, or restore into another folder: \
         `tidetable restore {folder} DIR`"
    )]
    RootTaken {
        /// The root.
        root: String,
        /// The folder of backups.
        folder: String,
    },
    /// A root into which another backup was being restored.
    #[error("backup {id} was being restored into {root}: go on with `--at {id}`, or remove that folder")]
    OtherRestore {
        /// The root.
        root: String,
        /// The backup.
        id: String,
    },
    /// The list of a backup is damaged.
    #[error("{path} cannot be read: {reason}; take another backup with --at")]
    Catalog {
        /// Path inside the vault.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// A file could not be read or written.
    #[error("cannot {action} {path}: {source}")]
    Io {
        /// What was being done, as a verb.
        action: &'static str,
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// The store, or the folder of backups.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was asked to stop.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl BackupError {
    /// The exit code of a process that ends with it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Busy { .. } => 75,
            Self::Inside { .. }
            | Self::NoVault { .. }
            | Self::Taken { .. }
            | Self::NoBackup { .. }
            | Self::RootTaken { .. }
            | Self::OtherRestore { .. } => 2,
            Self::Run(error) => error.exit_code(),
            _ => 1,
        }
    }
}
