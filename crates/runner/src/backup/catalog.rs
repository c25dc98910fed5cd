//! The catalog of a backup: a JSON object with a checksum over its exact text.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

/// Format version of backups.
const FORMAT: u32 = 1;
/// Directories of a store that are backed up.
pub(crate) const FOLDERS: [&str; 5] = ["runs", "rejected", "failing", "exports", "tables"];

/// A backup as its catalog lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backup {
    /// Its name, a ULID: names ascend with time.
    pub id: String,
    /// Clock time of its start, microseconds since the epoch.
    pub taken: i64,
    /// The root it is a copy of.
    pub root: String,
    /// The versions of the tables.
    pub tables: BTreeMap<String, u64>,
    /// The files, by path.
    pub files: Vec<Held>,
    /// Damaged files of the store, which it does not contain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// A file of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Held {
    /// Path inside the store.
    pub path: String,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// xxh3-128 of its content, hexadecimal.
    pub checksum: String,
}

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    format: u32,
    checksum: String,
    #[serde(borrow)]
    backup: &'a RawValue,
}

impl Held {
    /// The entry for a file with these bytes.
    pub(crate) fn of(path: &str, bytes: &[u8]) -> Self {
        Self { path: path.to_owned(), bytes: bytes.len() as u64, checksum: checksum(bytes) }
    }

    /// Path of its content in the vault.
    pub(crate) fn object(&self) -> String {
        format!("objects/{}/{}-{}", self.checksum.get(..2).unwrap_or("00"), self.checksum, self.bytes)
    }

    /// Whether its path is inside a store and its checksum names an object of a vault: the catalog is untrusted input.
    fn is_inside(&self) -> bool {
        let path = Path::new(&self.path);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        let known =
            path.components().next().is_some_and(|first| FOLDERS.iter().any(|folder| first.as_os_str() == *folder));
        plain && known && self.checksum.len() == 32 && self.checksum.bytes().all(|byte| byte.is_ascii_hexdigit())
    }
}

impl Backup {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let text = serde_json::to_string(self)?;
        let checksum = checksum(text.as_bytes());
        let backup = RawValue::from_string(text)?;
        serde_json::to_vec(&Envelope { format: FORMAT, checksum, backup: &backup })
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if envelope.format > FORMAT {
            return Err(format!("it has format {}, and this build reads up to {FORMAT}", envelope.format));
        }
        if checksum(envelope.backup.get().as_bytes()) != envelope.checksum {
            return Err("its checksum does not match its contents".to_owned());
        }
        let backup: Self = serde_json::from_str(envelope.backup.get()).map_err(|error| error.to_string())?;
        match backup.files.iter().find(|file| !file.is_inside()) {
            Some(file) => Err(format!("it names {}, which is not a file of a store", file.path)),
            None => Ok(backup),
        }
    }
}

pub(crate) fn checksum(bytes: &[u8]) -> String {
    format!("{:032x}", xxh3_128(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_out_of_the_store_is_refused() {
        let decoded = |path: &str| {
            let files = vec![Held::of(path, b"x")];
            Backup::decode(&Backup { files, ..Backup::default() }.encode().unwrap())
        };
        assert!(decoded("tables/T/sst/a.sst").is_ok());
        for path in ["../tables/x", "tables/../../x", "/etc/passwd", "locks/j.lock", "", "tables/./../../x"] {
            assert!(decoded(path).is_err(), "{path}");
        }
    }

    #[test]
    fn a_changed_byte_is_noticed() {
        let bytes = Backup { id: "a".to_owned(), taken: 12, ..Backup::default() }.encode().unwrap();
        assert_eq!(Backup::decode(&bytes).unwrap().taken, 12);
        let text = String::from_utf8(bytes).unwrap().replace("\"taken\":12", "\"taken\":13");
        assert!(Backup::decode(text.as_bytes()).unwrap_err().contains("checksum"));
    }
}
