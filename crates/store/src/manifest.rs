//! The bytes of a manifest: one JSON object, its checksum over the exact text of the version.
//!
//! ```text
//! {"format":1,"checksum":"<xxh3-128 of the bytes of version, 32 hex digits>","version":{..}}
//! ```

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::invariants;
use crate::version::Version;

/// Format of the manifests this build writes, and the only one it reads.
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Manifest<'a> {
    format: u32,
    checksum: String,
    #[serde(borrow)]
    version: &'a RawValue,
}

/// The bytes of `version`.
///
/// # Errors
/// What cannot be said in JSON.
pub fn encode(version: &Version) -> Result<Vec<u8>, String> {
    let text = serde_json::to_string_pretty(version).map_err(|error| error.to_string())?;
    let version = RawValue::from_string(text).map_err(|error| error.to_string())?;
    let manifest = Manifest { format: FORMAT, checksum: checksum(&version), version: &version };
    let mut bytes = serde_json::to_vec(&manifest).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// The version that `bytes` hold, which must be version `number`.
///
/// # Errors
/// What is wrong with them.
pub fn decode(bytes: &[u8], number: u64) -> Result<Version, String> {
    let manifest: Manifest = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if manifest.format != FORMAT {
        return Err(format!("it has format {}, this build reads format {FORMAT}", manifest.format));
    }
    // A fuzzer would never guess it.
    if !cfg!(fuzzing) && checksum(manifest.version) != manifest.checksum {
        return Err("its checksum does not match its contents".to_owned());
    }
    let version: Version = serde_json::from_str(manifest.version.get()).map_err(|error| error.to_string())?;
    if version.number != number {
        return Err(format!("it says it is version {}", version.number));
    }
    invariants::check(&version)?;
    Ok(version)
}

fn checksum(version: &RawValue) -> String {
    format!("{:032x}", xxh3_128(version.get().as_bytes()))
}
