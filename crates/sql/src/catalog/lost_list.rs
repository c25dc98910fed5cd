//! Exports whose list of published files is gone, while files are there: a query of them is told so, and what mends it.

use std::collections::HashSet;

use tidetable_blobs::Blobs;
use tidetable_record::{PartState, Runs};
use tidetable_store::StoreError;
use tidetable_store::published::Published;

use crate::error::SqlError;

/// The directory of exports in a store.
const FOLDER: &str = "exports";

/// The error of a query of `name`, an export or a part that no list knows, if runs published it and its files are there. Records of runs
/// are read only if there are files that belong to none of `lists`.
///
/// # Errors
/// If the store cannot be listed.
pub(crate) fn lost_list<'a>(
    blobs: &dyn Blobs,
    lists: impl Iterator<Item = &'a Published>,
    name: &str,
) -> Result<Option<SqlError>, StoreError> {
    let mut listed = HashSet::new();
    for list in lists {
        let parts = list.parts.values().map(|part| &part.folder);
        listed.extend(parts.chain(list.empty.values().map(|part| &part.folder)).map(|folder| top_of(folder)));
    }
    let found = blobs.list(FOLDER)?;
    let is_unlisted = |name: &&String| !name.ends_with(".json") && !listed.contains(name.as_str());
    let unlisted: HashSet<&String> = found.iter().filter(is_unlisted).collect();
    if unlisted.is_empty() {
        return Ok(None);
    }

    for record in Runs::of(blobs).readable(None)? {
        for part in record.exports.iter().filter(|part| part.export == name || part.part == name) {
            let was_published = matches!(part.state, PartState::Published | PartState::Unchanged | PartState::Sealed);
            if !was_published || !unlisted.contains(&top_of(&part.part).to_owned()) {
                continue;
            }
            let files = blobs.list(&format!("{FOLDER}/{}", part.part))?;
            if !files.is_empty() {
                let remedy = remedy(&part.export, &record.job, files.iter().any(|file| file.ends_with(".parquet")));
                return Ok(Some(SqlError::ListLost { export: part.export.clone(), remedy }));
            }
        }
    }
    Ok(None)
}

/// The directory of a part directly below that of exports.
fn top_of(folder: &str) -> &str {
    folder.split('/').next().unwrap_or(folder)
}

/// What mends the loss. Only Parquet files say which export published them, so that others are not adopted.
fn remedy(export: &str, job: &str, is_adopted: bool) -> String {
    match is_adopted {
        true => format!(
            "`tidetable run {job} --adopt` takes the files that are there as they are, and `tidetable run {job} --force` publishes all of \
             them again"
        ),
        false => format!(
            "put it back from a backup; or move the folders of {export} below exports/ away, and `tidetable run {job}` publishes all of \
             them again"
        ),
    }
}
