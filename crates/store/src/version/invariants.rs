//! Invariants of a version, a function each. A reader checks all of them; a commit checks, before it writes, those
//! that its edit could break.

use crate::version::cow_list::CowList;
use crate::version::inputs::Named;
use crate::version::{Sst, Version, WindowState};

/// Checks every invariant of `version`.
///
/// # Errors
/// The first violation, as text.
pub fn check(version: &Version) -> Result<(), String> {
    sequences_ascend(&version.inputs)?;
    sequences_ascend(&version.names)?;
    names_differ(version)?;
    windows_ascend(version)?;
    version.windows.iter().try_for_each(seqnos_ascend)?;
    version.windows.iter().try_for_each(keys_are_in_order)?;
    files_are_named_once(version.ssts())?;
    windows_are_joined_once(version)?;
    tombstones_ascend(version)?;
    tombstones_name_rows(version)
}

/// Checks the invariants of `next`, made from `before`; windows that both share are skipped.
///
/// # Errors
/// The first violation, as text.
pub fn check_next(before: &Version, next: &Version) -> Result<(), String> {
    sequences_ascend(&next.inputs)?;
    sequences_ascend(&next.names)?;
    if !next.names.is_empty() {
        names_differ(next)?;
    }
    windows_ascend(next)?;

    let mut old = 0;
    let mut changed = Vec::new();
    for (index, window) in next.windows.iter().enumerate() {
        while before.windows.get(old).is_some_and(|other| other.start < window.start) {
            old += 1;
        }
        if !next.windows.shares(index, &before.windows, old) {
            changed.push(window);
        }
    }

    changed.iter().try_for_each(|window| seqnos_ascend(window))?;
    changed.iter().try_for_each(|window| keys_are_in_order(window))?;
    files_are_named_once(changed.iter().flat_map(|window| &window.ssts))?;
    windows_are_joined_once(next)?;
    tombstones_ascend(next)?;
    tombstones_name_rows(next)
}

fn sequences_ascend<T: Named>(items: &CowList<T>) -> Result<(), String> {
    match items.pairs().find(|(first, second)| first.input_seqno() >= second.input_seqno()) {
        Some((first, second)) => Err(format!("{} and {} have one sequence number", first.path(), second.path())),
        None => Ok(()),
    }
}

/// A path occurs once among inputs and other names, with its own sequence number.
fn names_differ(version: &Version) -> Result<(), String> {
    let inputs = version.inputs.iter().map(|input| (input.path(), input.input_seqno()));
    let all = inputs.chain(version.names.iter().map(|name| (name.path(), name.input_seqno())));
    let (mut paths, mut sequences) = (std::collections::HashSet::new(), std::collections::HashMap::new());
    for (path, input_seqno) in all {
        if !paths.insert(path) {
            return Err(format!("{path} is named twice"));
        }
        // Each list is ascending by itself.
        if !version.names.is_empty()
            && let Some(other) = sequences.insert(input_seqno, path)
        {
            return Err(format!("{other} and {path} have one sequence number"));
        }
    }
    Ok(())
}

fn windows_ascend(version: &Version) -> Result<(), String> {
    match version.windows.pairs().find(|(first, second)| first.start >= second.start) {
        Some((first, second)) => {
            Err(format!("the window at {} us comes after the one at {} us", first.start, second.start))
        }
        None => Ok(()),
    }
}

fn seqnos_ascend(window: &WindowState) -> Result<(), String> {
    if let Some(pair) = window.ssts.windows(2).find(|pair| pair[0].seqno > pair[1].seqno) {
        return Err(format!("SST {} comes before {} but is newer", pair[0].id, pair[1].id));
    }

    // A compaction writes a sorted run: files in key order.
    for pair in window.ssts.windows(2) {
        if pair[0].seqno == pair[1].seqno && pair[0].last_key >= pair[1].first_key {
            return Err(format!("SSTs {} and {} share keys, and neither is newer", pair[0].id, pair[1].id));
        }
    }
    Ok(())
}

/// The multi-window files of one compaction have the same sequence number and share no key. A window lies in the
/// files of one such compaction only, and they are older than its own SSTs.
fn windows_are_joined_once(version: &Version) -> Result<(), String> {
    let mut homes: std::collections::HashMap<i64, (i64, u64)> = std::collections::HashMap::new();
    for window in &version.windows {
        let mut own = false;
        for sst in &window.ssts {
            let Some(multi_window) = &sst.multi_window else {
                own = true;
                continue;
            };
            if own
                || multi_window.windows.is_empty()
                || !multi_window.windows.is_sorted_by(|a, b| a < b)
                || !multi_window.without.is_sorted_by(|a, b| a < b)
            {
                return Err(format!("multi-window SST {} is not in its home window", sst.id));
            }
            for start in &multi_window.windows {
                if *homes.entry(*start).or_insert((window.start, sst.seqno)) != (window.start, sst.seqno) {
                    return Err(format!("the window at {start} us lies in two joins"));
                }
            }
        }
    }

    for window in version.windows.iter() {
        let Some((_, seqno)) = homes.get(&window.start) else { continue };
        if window.ssts.iter().any(|sst| sst.multi_window.is_none() && sst.seqno <= *seqno) {
            return Err(format!("the window at {} us has SSTs older than its multi-window SSTs", window.start));
        }
    }
    Ok(())
}

fn tombstones_name_rows(version: &Version) -> Result<(), String> {
    match version.tombstones.iter().find(|tombstone| tombstone.target.names_no_row()) {
        Some(tombstone) => Err(format!("the tombstone of version {} has no row key", tombstone.version)),
        None => Ok(()),
    }
}

fn tombstones_ascend(version: &Version) -> Result<(), String> {
    for pair in version.tombstones.windows(2) {
        if pair[0].seqno >= pair[1].seqno || pair[0].input_seqno > pair[1].input_seqno {
            return Err(format!("{} comes before {} but is newer", pair[0].target, pair[1].target));
        }
    }
    Ok(())
}

fn files_are_named_once<'a>(mut ssts: impl Iterator<Item = &'a Sst>) -> Result<(), String> {
    let mut seen = std::collections::HashSet::new();
    match ssts.find(|sst| !seen.insert(&sst.id)) {
        Some(sst) => Err(format!("SST {} is named twice", sst.id)),
        None => Ok(()),
    }
}

fn keys_are_in_order(window: &WindowState) -> Result<(), String> {
    match window.ssts.iter().find(|sst| sst.first_key > sst.last_key || sst.rows == 0) {
        Some(sst) => Err(format!("SST {} has no rows, or its last key is before its first", sst.id)),
        None => Ok(()),
    }
}
