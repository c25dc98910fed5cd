//! Exports whose list of published files is gone, while the files are there.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_job::Project;
use tidetable_record::{PartState, Runs};
use tidetable_store::Store;

use crate::fault::error::RunError;
use crate::report::clean::{CleanPlan, declared};

/// The number of published parts without a list, by export. Parquet files name their export; of other formats, records of runs say
/// what they published.
///
/// # Errors
/// If the store cannot be read.
pub fn lost_lists(store: &Store, project: Option<&Project>) -> Result<BTreeMap<String, u64>, RunError> {
    let mut lost = CleanPlan::lost_lists(store, project)?;
    let declared = project.and_then(declared);

    for (export, parts) in published_parts(store)? {
        let list = format!("exports/{export}.json");
        let is_declared = declared.as_ref().is_none_or(|exports| exports.contains(&export));
        if lost.contains_key(&export) || !is_declared || store.blobs().stat(&list)?.is_some() {
            continue;
        }

        let mut there = 0;
        for part in parts {
            there += u64::from(!store.blobs().list(&format!("exports/{part}"))?.is_empty());
        }

        if there > 0 {
            lost.insert(export, there);
        }
    }

    Ok(lost)
}

/// The folders of parts that runs published and did not withdraw after that, by export. Records that cannot be read say nothing.
fn published_parts(store: &Store) -> Result<BTreeMap<String, BTreeSet<String>>, RunError> {
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut parts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();

    for record in Runs::of(store.blobs().as_ref()).newest_first(None)?.flatten() {
        for part in record.exports.into_iter().filter(|part| !part.part.is_empty()) {
            let is_there = match part.state {
                PartState::Published | PartState::Unchanged | PartState::Sealed => true,
                PartState::Withdrawn | PartState::Empty => false,
                // What an earlier run published of it stays.
                PartState::Checks | PartState::Failed => continue,
            };
            if seen.insert(part.part.clone()) && is_there {
                parts.entry(part.export).or_default().insert(part.part);
            }
        }
    }
    Ok(parts)
}
