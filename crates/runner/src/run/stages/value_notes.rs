//! Warnings of values that were read, and may not be what the job file takes them for.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_ingest::FirstPlace;
use tidetable_record::Seen;

use crate::run::stages::load::Pending;

/// Keys that a warning names.
const SHOWN: usize = 8;

/// Warnings of JSON keys that no column reads and that the first records of their files do not have, once per source; those
/// that `known` knows were told before. The records of the loads keep them.
pub(super) fn new_key_notes(loads: &mut [Pending], known: &Seen) -> Vec<String> {
    let mut of_sources: BTreeMap<String, BTreeMap<String, FirstPlace>> = BTreeMap::new();
    for load in loads.iter_mut() {
        let keys = of_sources.entry(load.record.source.clone()).or_default();
        for (key, place) in &load.record.stats.new_keys {
            load.record.left_out.insert(key.clone());
            keys.entry(key.clone()).or_insert_with(|| place.clone());
        }
    }

    let mut notes = Vec::new();
    for (source, mut keys) in of_sources {
        keys.retain(|key, _| !known.left_out(&source, key));
        let Some(FirstPlace { file, line }) = keys.values().min().cloned() else { continue };
        let named: Vec<&str> = keys.keys().take(SHOWN).map(String::as_str).collect();
        let more = if keys.len() > SHOWN { format!(" and {} more", keys.len() - SHOWN) } else { String::new() };
        let (keys, them) = if keys.len() == 1 { ("a key that is", "it") } else { ("keys that are", "them") };
        notes.push(format!(
            "warning: {file}, line {line}: {keys} not declared and not read: {}{more}. To load {them}, declare {them} in \
             sources.{source}.columns; this is told once",
            named.join(", ")
        ));
    }
    notes
}

/// Warnings of epoch times that are likely of another unit than declared: others of the load, or of the table before, are from
/// 1990 to 2100.
pub(super) fn epoch_notes(loads: &[Pending]) -> Vec<String> {
    let mut notes = Vec::new();
    let mut noted: BTreeSet<&str> = BTreeSet::new();
    for load in loads {
        let (record, stats) = (&load.record, &load.record.stats);
        let Some((file, odd)) = &stats.first_odd_epoch else { continue };

        let is_mixed = stats.likely_epochs > stats.odd_epochs;
        let is_other = stats.likely_epochs == 0 && record.before > 0 && odd.has_unit;
        if !(is_mixed || is_other) || !noted.insert(record.source.as_str()) {
            continue;
        }

        let others = match stats.odd_epochs {
            1 => String::new(),
            2 => " (and 1 other value)".to_owned(),
            count => format!(" (and {} other values)", count - 1),
        };

        notes.push(format!(
            "warning: {file}, line {}, {}: {}{others}: the unit may be mixed; correct the file, or leave such rows out with `where`",
            odd.line, odd.column, odd.text
        ));
    }
    notes
}
