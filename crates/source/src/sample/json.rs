//! The first records of JSON lines: the names of values, and which lists are events.

use std::io::Read;

use memchr::memrchr;

use crate::decompress::Decoded;
use crate::error::SourceError;
use crate::format::{BYTE_ORDER_MARK, Foreign};
use crate::json::{Keyed, Names, Wanted, is_otel, likely_lists};
use crate::sample::error::SampleError;
use crate::spec::{Preset, SchemaMode, SourceSpec};

/// Bytes of a text that are looked at for names.
const HEAD_BYTES: usize = 1 << 20;
/// Most bytes of a record in which rows are looked for.
const LARGEST_RECORD: usize = 32 << 20;

/// The error for a file with one record: where its rows are, if they are members of it.
pub(super) fn one_record(path: &str, from: Box<dyn Read + Send>) -> Result<SampleError, SampleError> {
    let mut bytes = Vec::new();
    Decoded::new(path.to_owned(), from)?.append(&mut bytes, LARGEST_RECORD)?;
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let path = path.to_owned();
    Ok(match Keyed::rows(text) {
        Some(found) => SampleError::Keyed { command: found.command(&path), what: found.what, path },
        None => SampleError::OneRow { path },
    })
}

/// What the first records of a text have.
pub(super) struct JsonHead {
    /// `each`, `preset` and `mode` of the declaration.
    pub spec: SourceSpec,
    pub names: Vec<String>,
    /// Lists that are no events, for which there is no declaration.
    pub left_out: Vec<String>,
}

pub(super) fn read(path: &str, from: Box<dyn Read + Send>, spec: SourceSpec) -> Result<JsonHead, SampleError> {
    let mut bytes = Vec::new();
    let is_whole = Decoded::new(path.to_owned(), from)?.append(&mut bytes, HEAD_BYTES)? < HEAD_BYTES;
    if let Some(format) = Foreign::instead_of_json(&bytes) {
        return Err(SourceError::Foreign { path: path.to_owned(), format }.into());
    }
    let text = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    let end = if is_whole { text.len() } else { memrchr(b'\n', text).map_or(text.len(), |end| end + 1) };
    let text = text.get(..end).unwrap_or_default();
    if text.trim_ascii().is_empty() {
        return Err(SampleError::Empty { path: path.to_owned() });
    }

    let preset = is_otel(text).then_some(Preset::Otel);
    // A data point of OpenTelemetry is an event, whatever lists it has.
    let each = if preset.is_some() { Vec::new() } else { likely_lists(text) };

    if preset.is_none()
        && let Some(apart) = Keyed::series(text)
    {
        return Err(SampleError::Keyed { path: path.to_owned(), command: apart.command(path), what: apart.what });
    }

    let found = Names::new(Wanted::All, &each).read(text, preset.is_some());
    let is_list = |name: &String| found.is_mostly_list(name) && !each.contains(name);
    let is_even =
        found.found.iter().all(|name| is_list(name) && found.places(name).is_none() || found.is_everywhere(name));
    let (mut lists, mut names) = (Vec::new(), Vec::with_capacity(found.found.len()));
    for name in &found.found {
        match found.places(name) {
            _ if !is_list(name) => names.push(name.clone()),
            Some(places) if preset.is_none() => names.extend(places),
            _ => lists.push(name.clone()),
        }
    }
    let mode = if is_even { SchemaMode::Freeze } else { SchemaMode::Evolve };
    let mut left_out = Vec::with_capacity(lists.len());
    for name in lists {
        left_out.push(match each.is_empty() && found.is_list_of_objects(&name) {
            true => format!("{name} (List; `each = [\"{name}\"]` makes an event of each item)"),
            false => format!("{name} (List)"),
        });
    }
    let is_export = each == ["timestamps", "values"] && names.iter().any(|name| name.starts_with("metric."));
    let (preset, each) = if is_export { (Some(Preset::VictoriaMetrics), Vec::new()) } else { (preset, each) };
    Ok(JsonHead { spec: SourceSpec { each, preset, mode, ..spec }, names, left_out })
}
