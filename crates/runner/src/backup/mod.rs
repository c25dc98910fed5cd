//! Copies of a store that can be relied on, made while jobs run: [`Vault::backup`] and [`Vault::restore`].
//!
//! ```text
//! vault.json                     tells that the folder holds backups
//! backups/ID.json                a backup: each file of the store by its path, length and checksum
//! objects/ab/abcd..-LENGTH       what files hold, by checksum and length
//! ```
//!
//! Contents are written before the backup that names them, and never changed, so one that is stopped on its way harms no
//! other, and what one has copied the next need not copy again.
//!
//! What is copied later is never older: first the records of runs, then what was published, then the tables, of which the
//! newest versions of one moment are pinned. So a record of the copy tells of nothing that the copy has not, and no part of
//! an export was made from a version that its table has not come to.

pub(crate) mod catalog;
pub(crate) mod copy;
pub(crate) mod error;
pub(crate) mod restore;
pub(crate) mod vault;

pub use catalog::{Backup, Held};
pub use copy::BackupDone;
pub use error::BackupError;
pub use restore::{RESTORING, Restored};
pub use vault::{Vault, VaultReport};
