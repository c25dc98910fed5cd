//! What is wrong with files of rejected rows.

use std::collections::BTreeMap;
use std::fmt;

use tidetable_blobs::Blobs;
use tidetable_job::several;
use tidetable_record::{Runs, rejected_lines};
use tidetable_store::StoreError;

use crate::fault::error::RunError;
use crate::report::QUARANTINE;

/// Directory of the files, inside the store.
const FOLDER: &str = "rejected";

/// A file of rejected rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectFile {
    /// Path inside the store.
    pub path: String,
    /// Length of the file, bytes.
    pub bytes: u64,
    /// Rows that can be read.
    pub rows: u64,
    /// What is wrong; `None` if it is intact.
    pub damage: Option<RejectDamage>,
}

/// What is wrong with a file of rejected rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RejectDamage {
    /// Lines that are not rejected rows.
    Lines {
        /// How many there are.
        number: u64,
        /// What is wrong with the first.
        first: String,
    },
    /// The end of the file is missing.
    Cut {
        /// Rows that it holds.
        rows: u64,
        /// Rows that are missing.
        missing: u64,
    },
}

impl fmt::Display for RejectDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lines { number: 1, first } => f.write_str(first),
            Self::Lines { number, first } => write!(f, "{number} lines are damaged; the first: {first}"),
            Self::Cut { rows, missing } => {
                let all = rows + missing;
                write!(f, "it holds {}, and its run rejected {all}: its end is missing", several(*rows, "row"))
            }
        }
    }
}

/// Reads all files of rejected rows in `blobs`, by name.
///
/// # Errors
/// If they cannot be listed, or one cannot be read for another reason than its content.
pub fn reject_files(blobs: &dyn Blobs) -> Result<Vec<RejectFile>, RunError> {
    let rejected = rejected_by_file(blobs)?;
    let mut found = Vec::new();
    for file in blobs.list(FOLDER)?.into_iter().filter(|file| file.ends_with(".jsonl")) {
        let path = format!("{FOLDER}/{file}");
        // `clean` removed it after the names were listed.
        let Some(bytes) = blobs.read(&path)? else { continue };

        let mut damaged: Vec<String> = Vec::new();
        let mut rows = 0;
        for line in rejected_lines(&path, &bytes) {
            match line {
                Ok(_) => rows += 1,
                Err(StoreError::Unreadable { reason, .. }) => damaged.push(reason),
                Err(error) => return Err(error.into()),
            }
        }

        let expected = rejected.get(&file).copied().unwrap_or_default();
        let number = damaged.len() as u64;
        let damage = match damaged.into_iter().next() {
            Some(first) => Some(RejectDamage::Lines { number, first }),
            // What `doctor --fix` kept of a damaged file is less than it was.
            None if rows >= expected || blobs.stat(&format!("{QUARANTINE}/{path}"))?.is_some() => None,
            None => Some(RejectDamage::Cut { rows, missing: expected - rows }),
        };
        found.push(RejectFile { path, bytes: bytes.len() as u64, rows, damage });
    }
    Ok(found)
}

/// The number of rows that each file of rejected rows had when its run ended, by its name.
fn rejected_by_file(blobs: &dyn Blobs) -> Result<BTreeMap<String, u64>, RunError> {
    let mut rows = BTreeMap::new();
    for record in Runs::of(blobs).readable(None)?.filter(|record| record.finished.is_some()) {
        let of_sources = record.rejected.iter().map(|path| (path, record.rows_rejected));
        let of_queries =
            record.loads.iter().filter_map(|load| Some((load.rejected.as_ref()?, load.stats.rows_rejected)));
        for (path, rejected) in of_sources.chain(of_queries) {
            let file = path.rsplit('/').next().unwrap_or(path);
            rows.insert(file.to_owned(), rejected);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;
    use tidetable_record::RunRecord;

    use super::*;

    #[test]
    fn damaged_lines_and_missing_ends_are_found() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let line = r#"{"file":"a.csv","line":2,"raw":"x","reason":"y"}"#;
        for (run, text) in
            [("1", format!("{line}\n{line}\n")), ("2", format!("{line}\n")), ("3", format!("{line}\n{{\n"))]
        {
            let path = format!("rejected/{run}.jsonl");
            blobs.replace(&path, text.as_bytes()).unwrap();
            let (rejected, finished) = (Some(path), Some(1));
            RunRecord { run: run.to_owned(), rejected, rows_rejected: 2, finished, ..RunRecord::default() }
                .save(&blobs)
                .unwrap();
        }

        let damage: Vec<_> = reject_files(&blobs).unwrap().into_iter().map(|file| file.damage).collect();
        let [None, Some(cut), Some(RejectDamage::Lines { number: 1, .. })] = damage.as_slice() else {
            panic!("{damage:?}")
        };
        assert_eq!(cut.to_string(), "it holds 1 row, and its run rejected 2: its end is missing");
    }
}
