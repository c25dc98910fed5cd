//! Manifest codec: manifests and checkpoints are JSON objects with a checksum over the exact text of their content.
//!
//! ```text
//! manifest/N.json     {"format":1,"checksum":"..","version":{..}}      version N, whole
//!                  or {"format":2,"checksum":"..","step":{..}}         what version N changes of version N - 1
//! checkpoint/N.json   {"format":2,"checksum":"..","checkpoint":{"manifest":"..","version":{..}}}
//! checkpoint/N.oldest empty: N is the oldest version, see `checkpoints`
//! ```
//!
//! A checksum is the xxh3-128 of the text of `version`, `step` or `checkpoint`, 32 hexadecimal digits. A delta holds
//! the checksum of the manifest before it, and a checkpoint that of its own manifest, so that none can be mistaken
//! for another. A manifest is a commit; a checkpoint only saves reading deltas.

pub(crate) mod checkpoints;
pub(crate) mod delta;
pub(crate) mod kept;
pub(crate) mod newest;
pub(crate) mod put;
pub(crate) mod store;
#[cfg(test)]
pub(crate) mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::version::{Version, invariants};
pub use delta::ManifestDelta;
pub use store::ManifestStore;

/// Format of full manifests.
const FULL_FORMAT: u32 = 1;
/// Format of manifest deltas and checkpoints.
const DELTA_FORMAT: u32 = 2;
/// The newest format that this build reads.
pub const NEWEST_FORMAT: u32 = DELTA_FORMAT;

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    format: u32,
    checksum: String,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "step", skip_serializing_if = "Option::is_none")]
    delta: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a RawValue>,
}

/// Content of a manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Manifest {
    /// A full manifest, which holds the whole version: that of the first.
    Full(Box<Version>),
    /// What the version changes of the one before.
    Delta(Box<ManifestDelta>),
}

#[derive(Serialize, Deserialize)]
struct Checkpoint<V> {
    /// Checksum of the manifest of the version.
    manifest: String,
    version: V,
}

/// Encodes a full manifest of `version`; returns it with its checksum.
///
/// # Errors
/// If JSON cannot represent it.
pub(crate) fn encode_full(version: &Version) -> Result<(Vec<u8>, String), String> {
    let text = serde_json::to_string(version).map_err(|error| error.to_string())?;
    seal(text, |text, checksum| Envelope { version: Some(text), ..envelope(FULL_FORMAT, checksum) })
}

/// Encodes a manifest delta; returns it with its checksum.
///
/// # Errors
/// If JSON cannot represent it.
pub(crate) fn encode_delta(delta: &ManifestDelta) -> Result<(Vec<u8>, String), String> {
    let text = serde_json::to_string(delta).map_err(|error| error.to_string())?;
    seal(text, |text, checksum| Envelope { delta: Some(text), ..envelope(DELTA_FORMAT, checksum) })
}

/// Encodes a checkpoint of `version`, whose manifest has the checksum `manifest`.
///
/// # Errors
/// If JSON cannot represent it.
pub(crate) fn encode_checkpoint(version: &Version, manifest: &str) -> Result<Vec<u8>, String> {
    let checkpoint = Checkpoint { manifest: manifest.to_owned(), version };
    let text = serde_json::to_string(&checkpoint).map_err(|error| error.to_string())?;
    let sealed = seal(text, |text, checksum| Envelope { checkpoint: Some(text), ..envelope(DELTA_FORMAT, checksum) });
    sealed.map(|(bytes, _)| bytes)
}

/// Decodes the manifest of version `number`; returns it with its checksum. The caller checks the invariants.
///
/// # Errors
/// The reason why the bytes are invalid.
pub fn read(bytes: &[u8], number: u64) -> Result<(Manifest, String), String> {
    let envelope = open(bytes)?;
    let (manifest, found) = match (envelope.version, envelope.delta) {
        (Some(text), None) if envelope.format == FULL_FORMAT => {
            let version: Version = parse(text, &envelope.checksum)?;
            let found = version.number;
            (Manifest::Full(Box::new(version)), found)
        }
        (None, Some(text)) if envelope.format == DELTA_FORMAT => {
            let delta: ManifestDelta = parse(text, &envelope.checksum)?;
            let found = delta.number;
            (Manifest::Delta(Box::new(delta)), found)
        }
        _ => return Err("it holds neither a version nor a delta".to_owned()),
    };
    if found != number {
        return Err(format!("it says it is version {found}"));
    }
    Ok((manifest, envelope.checksum))
}

/// The checksum that a manifest states.
///
/// # Errors
/// The reason why the bytes are invalid.
pub(crate) fn checksum_of(bytes: &[u8]) -> Result<String, String> {
    open(bytes).map(|envelope| envelope.checksum)
}

/// Decodes the checkpoint of version `number`; returns it with the checksum of its manifest.
///
/// # Errors
/// The reason why the bytes are invalid.
pub fn decode_checkpoint(bytes: &[u8], number: u64) -> Result<(Version, String), String> {
    let envelope = open(bytes)?;
    let text = envelope.checkpoint.filter(|_| envelope.format == DELTA_FORMAT).ok_or("it holds no checkpoint")?;
    let checkpoint: Checkpoint<Version> = parse(text, &envelope.checksum)?;
    if checkpoint.version.number != number {
        return Err(format!("it says it is version {}", checkpoint.version.number));
    }
    Ok((checkpoint.version, checkpoint.manifest))
}

/// Encodes a full manifest of `version`.
///
/// # Errors
/// If JSON cannot represent it.
pub fn encode(version: &Version) -> Result<Vec<u8>, String> {
    encode_full(version).map(|(bytes, _)| bytes)
}

/// Decodes the full manifest of version `number`.
///
/// # Errors
/// The reason why the bytes are invalid.
pub fn decode(bytes: &[u8], number: u64) -> Result<Version, String> {
    match read(bytes, number)?.0 {
        Manifest::Full(version) => invariants::check(&version).map(|()| *version),
        Manifest::Delta(_) => Err("it holds a delta".to_owned()),
    }
}

fn envelope<'a>(format: u32, checksum: String) -> Envelope<'a> {
    Envelope { format, checksum, version: None, delta: None, checkpoint: None }
}

fn open(bytes: &[u8]) -> Result<Envelope<'_>, String> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if envelope.format > DELTA_FORMAT {
        return Err(format!("it has format {}, this build reads up to format {DELTA_FORMAT}", envelope.format));
    }
    Ok(envelope)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue, stated: &str) -> Result<T, String> {
    // A fuzzer cannot guess checksums.
    if !cfg!(fuzzing) && checksum(text.get()) != stated {
        return Err("its checksum does not match its contents".to_owned());
    }
    serde_json::from_str(text.get()).map_err(|error| error.to_string())
}

fn seal<F>(text: String, envelope: F) -> Result<(Vec<u8>, String), String>
where
    F: for<'a> FnOnce(&'a RawValue, String) -> Envelope<'a>,
{
    let checksum = checksum(&text);
    let text = RawValue::from_string(text).map_err(|error| error.to_string())?;
    let mut bytes = serde_json::to_vec(&envelope(&text, checksum.clone())).map_err(|error| error.to_string())?;
    bytes.push(b'\n');
    Ok((bytes, checksum))
}

fn checksum(text: &str) -> String {
    format!("{:032x}", xxh3_128(text.as_bytes()))
}
