//! The tables of Bigtable that the rows of a table were pulled from: `pulls/<table>.json`.
//!
//! A run writes it when it loads what was pulled, so that a push does not write the table over its source.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::StoreError;

/// Where the rows of a table come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PullOrigins {
    /// Tables of Bigtable by their full names; those of the tables that a query reads, too.
    pub sources: BTreeSet<String>,
    /// Whether its cells were pulled as they are.
    pub raw: bool,
}

impl PullOrigins {
    /// The origins of `table`; empty if nothing of it was pulled.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn load(blobs: &dyn Blobs, table: &str) -> Result<Self, StoreError> {
        let path = path(table);
        let Some(bytes) = blobs.read(&path)? else { return Ok(Self::default()) };
        serde_json::from_slice(&bytes).map_err(|error| StoreError::Manifest { path, reason: error.to_string() })
    }

    /// Writes the origins, if they are not those that are there.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn save(&self, blobs: &dyn Blobs, table: &str) -> Result<(), StoreError> {
        if Self::load(blobs, table).is_ok_and(|known| known == *self) {
            return Ok(());
        }
        let path = path(table);
        let mut bytes = serde_json::to_vec(self)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        Ok(blobs.replace(&path, &bytes)?)
    }
}

fn path(table: &str) -> String {
    format!("pulls/{table}.json")
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn origins_come_back() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        PullOrigins::default().save(&blobs, "T").unwrap();
        assert!(!root.path().join("pulls").exists());
        let origins =
            PullOrigins { sources: BTreeSet::from(["projects/p/instances/i/tables/T".to_owned()]), raw: true };
        origins.save(&blobs, "a.b").unwrap();
        assert_eq!(PullOrigins::load(&blobs, "a.b").unwrap(), origins);
        assert_eq!(PullOrigins::load(&blobs, "T").unwrap(), PullOrigins::default());
    }
}
