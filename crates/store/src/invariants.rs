//! The rules every version keeps, each a function. A commit checks them all before it writes.

use crate::drops::AppliedDrop;
use crate::version::{Input, Sst, Version};

/// Checks every rule of `version`.
///
/// # Errors
/// The first broken rule, in words.
pub fn check(version: &Version) -> Result<(), String> {
    sequences_ascend(&version.inputs)?;
    inputs_differ(&version.inputs)?;
    windows_ascend(version)?;
    orders_ascend(version)?;
    files_are_named_once(version)?;
    keys_are_in_order(version)?;
    drops_ascend(version)?;
    drops_name_rows(version)
}

fn sequences_ascend(inputs: &[Input]) -> Result<(), String> {
    match inputs.windows(2).find(|pair| pair[0].sequence >= pair[1].sequence) {
        Some(pair) => Err(format!("{} and {} have one sequence number", pair[0].path, pair[1].path)),
        None => Ok(()),
    }
}

fn inputs_differ(inputs: &[Input]) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    match inputs.iter().find(|input| !seen.insert(&input.path)) {
        Some(input) => Err(format!("{} is named twice", input.path)),
        None => Ok(()),
    }
}

fn windows_ascend(version: &Version) -> Result<(), String> {
    match version.windows.windows(2).find(|pair| pair[0].start >= pair[1].start) {
        Some(pair) => Err(format!("the window at {} us comes after the one at {} us", pair[0].start, pair[1].start)),
        None => Ok(()),
    }
}

fn orders_ascend(version: &Version) -> Result<(), String> {
    for window in &version.windows {
        if let Some(pair) = window.ssts.windows(2).find(|pair| pair[0].order > pair[1].order) {
            return Err(format!("SST {} comes before {} but is newer", pair[0].id, pair[1].id));
        }
        // A compaction writes a window as a run of files, one after the other in key order.
        let alike = |pair: &&[Sst]| pair[0].order == pair[1].order && pair[0].last_key >= pair[1].first_key;
        if let Some(pair) = window.ssts.windows(2).find(alike) {
            return Err(format!("SSTs {} and {} share keys, and neither is newer", pair[0].id, pair[1].id));
        }
    }
    Ok(())
}

fn drops_name_rows(version: &Version) -> Result<(), String> {
    match version.drops.iter().find(|drop| drop.target.names_no_row()) {
        Some(drop) => Err(format!("the drop of version {} names no row", drop.version)),
        None => Ok(()),
    }
}

fn drops_ascend(version: &Version) -> Result<(), String> {
    let wrong = |pair: &&[AppliedDrop]| pair[0].order >= pair[1].order || pair[0].sequence > pair[1].sequence;
    match version.drops.windows(2).find(wrong) {
        Some(pair) => Err(format!("{} comes before {} but is newer", pair[0].target, pair[1].target)),
        None => Ok(()),
    }
}

fn files_are_named_once(version: &Version) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    match version.ssts().find(|sst| !seen.insert(&sst.id)) {
        Some(sst) => Err(format!("SST {} is named twice", sst.id)),
        None => Ok(()),
    }
}

fn keys_are_in_order(version: &Version) -> Result<(), String> {
    match version.ssts().find(|sst| sst.first_key > sst.last_key || sst.rows == 0) {
        Some(sst) => Err(format!("SST {} has no rows, or its last key is before its first", sst.id)),
        None => Ok(()),
    }
}
