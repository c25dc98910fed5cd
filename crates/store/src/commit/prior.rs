//! Whether an edit was committed before by a writer that did not learn of it.
//!
//! A writer whose answer was lost may commit the same edit again. What it wrote is then part of the table, so the second
//! commit must neither put it there twice nor take the files away.

use std::collections::HashSet;

use tidetable_sstable::tools::failpoints;

use crate::error::Result;
use crate::table::Table;
use crate::version::Compacted;
use crate::version::{Version, VersionEdit};

impl Table {
    /// The version that committed `edit`, if one up to `newest` did: it names an SST that the edit wrote, and no two
    /// SSTs share a name. An edit that wrote none is never found.
    pub(crate) fn landed(&self, edit: &VersionEdit, newest: &Version) -> Result<Option<Version>> {
        let compacted = edit.compacted.iter().flat_map(Compacted::written);
        let written: HashSet<&str> = edit.ssts.values().flatten().chain(compacted).map(|sst| sst.id.as_str()).collect();
        if written.is_empty() || newest.number == 0 || failpoints::is(failpoints::Bug::ForgetLanded) {
            return Ok(None);
        }
        // What vacuum removed cannot be asked any more.
        let oldest = self.version_numbers()?.first().copied().unwrap_or(newest.number);
        let mut found = None;
        self.walk(oldest.max(edit.base + 1).min(newest.number), newest.number, |version| {
            if found.is_none() && version.ssts().any(|sst| written.contains(sst.id.as_str())) {
                found = Some(version.clone());
            }
            Ok(())
        })?;
        Ok(found)
    }
}
