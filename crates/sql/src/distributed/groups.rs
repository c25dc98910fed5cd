//! The file groups of a scan as a value: a "file" holds its scan ranges as an extension, which no encoding of plans keeps.

use std::ops::Range;

use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::FileGroup;
use serde::{Deserialize, Serialize};
use tidetable_store::ScanRange;

use crate::distributed::order::{Keys, keys_of, range_of};
use crate::scan::file_groups::{ScanRanges, ranges_of};

/// The groups of a scan, each with its "files".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanGroups(Vec<Vec<ScanFile>>);

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ScanFile {
    name: String,
    bytes: u64,
    ranges: Vec<FileRange>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FileRange {
    keys: Keys,
    ssts: Vec<String>,
    time: Range<i64>,
    bytes: u64,
}

impl ScanGroups {
    /// Of the groups of a scan.
    pub fn of(groups: &[FileGroup]) -> Self {
        let range = |range: ScanRange| FileRange {
            keys: keys_of(&range.keys),
            ssts: range.ssts,
            time: range.time,
            bytes: range.bytes,
        };
        let file = |file: &PartitionedFile| ScanFile {
            name: file.object_meta.location.to_string(),
            bytes: file.object_meta.size,
            ranges: ranges_of(file).into_iter().map(range).collect(),
        };
        Self(groups.iter().map(|group| group.iter().map(file).collect()).collect())
    }

    /// The groups.
    pub fn groups(self) -> Vec<FileGroup> {
        let range = |range: FileRange| ScanRange {
            keys: range_of(&range.keys),
            ssts: range.ssts,
            time: range.time,
            bytes: range.bytes,
        };
        let file = |file: ScanFile| {
            let ranges = file.ranges.into_iter().map(range).collect();
            PartitionedFile::new(file.name, file.bytes).with_extension(ScanRanges(ranges))
        };
        self.0.into_iter().map(|files| FileGroup::new(files.into_iter().map(file).collect())).collect()
    }
}
