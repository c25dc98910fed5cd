//! The bytes of manifests and checkpoints: JSON objects, each with a checksum over the exact text of what it holds.
//!
//! ```text
//! manifest/N.json     {"format":1,"checksum":"..","version":{..}}      version N, whole
//!                  or {"format":2,"checksum":"..","step":{..}}         what version N changes of version N - 1
//! checkpoint/N.json   {"format":2,"checksum":"..","checkpoint":{"manifest":"..","version":{..}}}
//! checkpoint/N.oldest empty: N is the oldest version, see `history`
//! ```
//!
//! A checksum is the xxh3-128 of the text of `version`, `step` or `checkpoint`, 32 hexadecimal digits. A step holds the
//! checksum of the manifest before it, and a checkpoint that of the manifest it stands for, so that none can be taken
//! for another. A manifest is a commit; a checkpoint only saves reading the steps before it.

pub(crate) mod delta;
pub(crate) mod hex;
pub(crate) mod line;
#[cfg(test)]
pub(crate) mod tests;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_128;

use crate::version::{Version, invariants};
pub(crate) use delta::Step;

/// Format of manifests that hold a whole version.
const WHOLE: u32 = 1;
/// Format of steps and checkpoints.
const STEPS: u32 = 2;
/// The newest format that this build reads.
pub(crate) const NEWEST_FORMAT: u32 = STEPS;

#[derive(Serialize, Deserialize)]
struct Envelope<'a> {
    format: u32,
    checksum: String,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    version: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    step: Option<&'a RawValue>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<&'a RawValue>,
}

/// What a manifest says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Manifest {
    /// The version itself.
    Whole(Box<Version>),
    /// What it changes of the one before.
    Step(Box<Step>),
}

#[derive(Serialize, Deserialize)]
struct Checkpoint<V> {
    /// Checksum of the manifest of the version.
    manifest: String,
    version: V,
}

/// The bytes of a manifest that holds the whole `version`, and its checksum.
///
/// # Errors
/// What cannot be said in JSON.
pub(crate) fn encode_whole(version: &Version) -> Result<(Vec<u8>, String), String> {
    let text = serde_json::to_string(version).map_err(|error| error.to_string())?;
    seal(text, |text, checksum| Envelope { version: Some(text), ..envelope(WHOLE, checksum) })
}

/// The bytes of a manifest that holds `step`, and its checksum.
///
/// # Errors
/// What cannot be said in JSON.
pub(crate) fn encode_step(step: &Step) -> Result<(Vec<u8>, String), String> {
    let text = serde_json::to_string(step).map_err(|error| error.to_string())?;
    seal(text, |text, checksum| Envelope { step: Some(text), ..envelope(STEPS, checksum) })
}

/// The bytes of a checkpoint of `version`, whose manifest has the checksum `manifest`.
///
/// # Errors
/// What cannot be said in JSON.
pub(crate) fn encode_checkpoint(version: &Version, manifest: &str) -> Result<Vec<u8>, String> {
    let checkpoint = Checkpoint { manifest: manifest.to_owned(), version };
    let text = serde_json::to_string(&checkpoint).map_err(|error| error.to_string())?;
    let sealed = seal(text, |text, checksum| Envelope { checkpoint: Some(text), ..envelope(STEPS, checksum) });
    sealed.map(|(bytes, _)| bytes)
}

/// The manifest that `bytes` hold, which must be of version `number`, and its checksum. The rules of a version are the
/// caller's to check.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn read(bytes: &[u8], number: u64) -> Result<(Manifest, String), String> {
    let envelope = open(bytes)?;
    let (manifest, found) = match (envelope.version, envelope.step) {
        (Some(text), None) if envelope.format == WHOLE => {
            let version: Version = parse(text, &envelope.checksum)?;
            let found = version.number;
            (Manifest::Whole(Box::new(version)), found)
        }
        (None, Some(text)) if envelope.format == STEPS => {
            let step: Step = parse(text, &envelope.checksum)?;
            let found = step.number;
            (Manifest::Step(Box::new(step)), found)
        }
        _ => return Err("it holds neither a version nor a step".to_owned()),
    };
    if found != number {
        return Err(format!("it says it is version {found}"));
    }
    Ok((manifest, envelope.checksum))
}

/// The checksum that a manifest states.
///
/// # Errors
/// If it is none.
pub(crate) fn checksum_of(bytes: &[u8]) -> Result<String, String> {
    open(bytes).map(|envelope| envelope.checksum)
}

/// The version of the checkpoint that `bytes` hold, which must be version `number`, and the checksum of its manifest.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn decode_checkpoint(bytes: &[u8], number: u64) -> Result<(Version, String), String> {
    let envelope = open(bytes)?;
    let text = envelope.checkpoint.filter(|_| envelope.format == STEPS).ok_or("it holds no checkpoint")?;
    let checkpoint: Checkpoint<Version> = parse(text, &envelope.checksum)?;
    if checkpoint.version.number != number {
        return Err(format!("it says it is version {}", checkpoint.version.number));
    }
    Ok((checkpoint.version, checkpoint.manifest))
}

/// The bytes of a manifest that holds the whole `version`.
///
/// # Errors
/// What cannot be said in JSON.
pub fn encode(version: &Version) -> Result<Vec<u8>, String> {
    encode_whole(version).map(|(bytes, _)| bytes)
}

/// The version that `bytes` hold, which must be version `number`, if they are no step.
///
/// # Errors
/// What is wrong with them.
pub fn decode(bytes: &[u8], number: u64) -> Result<Version, String> {
    match read(bytes, number)?.0 {
        Manifest::Whole(version) => invariants::check(&version).map(|()| *version),
        Manifest::Step(_) => Err("it holds a step".to_owned()),
    }
}

fn envelope<'a>(format: u32, checksum: String) -> Envelope<'a> {
    Envelope { format, checksum, version: None, step: None, checkpoint: None }
}

fn open(bytes: &[u8]) -> Result<Envelope<'_>, String> {
    let envelope: Envelope<'_> = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if envelope.format > STEPS {
        return Err(format!("it has format {}, this build reads up to format {STEPS}", envelope.format));
    }
    Ok(envelope)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a RawValue, stated: &str) -> Result<T, String> {
    // A fuzzer would never guess it.
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
