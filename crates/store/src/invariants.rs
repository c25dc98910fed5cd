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
    windows_are_joined_once(version)?;
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

/// The files of one join share an order and no key; what one window shares with others lies in them alone, and is older
/// than what it has of its own.
fn windows_are_joined_once(version: &Version) -> Result<(), String> {
    let mut homes: std::collections::HashMap<i64, (i64, u64)> = std::collections::HashMap::new();
    for window in &version.windows {
        let mut own = false;
        for sst in &window.ssts {
            let Some(joined) = &sst.joined else {
                own = true;
                continue;
            };
            let ascend = |starts: &[i64]| starts.is_sorted_by(|a, b| a < b);
            if own || joined.windows.is_empty() || !ascend(&joined.windows) || !ascend(&joined.without) {
                return Err(format!("SST {} of several windows is not in its place", sst.id));
            }
            for start in &joined.windows {
                if *homes.entry(*start).or_insert((window.start, sst.order)) != (window.start, sst.order) {
                    return Err(format!("the window at {start} us lies in two joins"));
                }
            }
        }
    }
    let newer = |window: &&crate::version::WindowState| {
        let shared = homes.get(&window.start);
        shared.is_some_and(|(_, order)| window.ssts.iter().any(|sst| sst.joined.is_none() && sst.order <= *order))
    };
    match version.windows.iter().find(newer) {
        Some(window) => Err(format!("the window at {} us has SSTs older than those it shares", window.start)),
        None => Ok(()),
    }
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
