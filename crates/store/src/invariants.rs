//! The rules every version keeps, each a function. A commit checks them all before it writes.

use crate::version::{Input, Version};

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
    keys_are_in_order(version)
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
        if let Some(pair) = window.ssts.windows(2).find(|pair| pair[0].order >= pair[1].order) {
            return Err(format!("SST {} comes before {} but is newer", pair[0].id, pair[1].id));
        }
    }
    Ok(())
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
