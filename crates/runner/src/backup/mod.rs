//! Verified backups of a store, made while jobs run: [`Vault::backup`] and [`Vault::restore`].
//!
//! ```text
//! vault.json                     marks the directory as a vault
//! backups/ID.json                a backup: each file of the store by its path, length and checksum
//! objects/ab/abcd..-LENGTH       contents of files, by checksum and length
//! ```
//!
//! Contents are written before the catalog that names them, and never changed. So an interrupted backup damages no
//! other, and the next one reuses its contents.
//!
//! The order of copying keeps a backup consistent: first run records, then published files, then the tables, whose
//! newest versions are pinned at one instant. So a record of the copy refers to nothing that is missing, and no part of
//! an export is newer than its tables.

pub(crate) mod catalog;
pub(crate) mod copy;
pub(crate) mod error;
pub(crate) mod marker;
pub(crate) mod reading;
pub(crate) mod restore;
pub(crate) mod transfer;
pub(crate) mod vault;

pub use catalog::{Backup, Held};
pub use copy::BackupDone;
pub use error::BackupError;
pub(crate) use marker::refuse_half_restored;
pub use restore::Restored;
pub use transfer::{StoreCopy, copy_store};
pub use vault::{Vault, VaultReport};
