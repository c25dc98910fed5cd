//! Sample of rows that broke checks: one JSON object a line in `failing/<run>.jsonl`.

use serde::{Deserialize, Serialize};
use tidetable_blobs::Blobs;
use tidetable_store::StoreError;

const FOLDER: &str = "failing";
const ENDING: &str = ".jsonl";

/// A row that broke a rule of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingRow {
    /// The run, or the check on demand, that found it.
    pub run: String,
    /// Name of its job.
    pub job: String,
    /// Name of the check that the row broke.
    pub check: String,
    /// The table or export whose rows were checked.
    pub on: String,
    /// Label of the part or day of the row.
    pub label: String,
    /// The rule of the check, such as `not_null meter`.
    pub rule: String,
    /// The row as a JSON object, by the names of its columns.
    pub row: String,
}

/// Path inside the store of the failing rows of `run`.
pub fn failing_path(run: &str) -> String {
    format!("{FOLDER}/{run}{ENDING}")
}

/// The runs with failing rows, oldest first.
///
/// # Errors
/// If they cannot be listed.
pub fn runs_with_failing_rows(blobs: &dyn Blobs) -> Result<Vec<String>, StoreError> {
    Ok(blobs.list(FOLDER)?.iter().filter_map(|file| file.strip_suffix(ENDING)).map(str::to_owned).collect())
}

/// The failing rows of `run`, in the order of the file; damaged lines are skipped.
///
/// # Errors
/// If the file cannot be read.
pub fn failing_rows(blobs: &dyn Blobs, run: &str) -> Result<Vec<FailingRow>, StoreError> {
    let bytes = blobs.read(&failing_path(run))?.unwrap_or_default();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
}

/// Writes the failing rows of `run`. Without rows nothing is written.
///
/// # Errors
/// If the file cannot be written.
pub fn keep_failing_rows(blobs: &dyn Blobs, run: &str, rows: &[FailingRow]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let path = failing_path(run);
    let mut text = String::new();
    for row in rows {
        let line = serde_json::to_string(row)
            .map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        text.push_str(&line);
        text.push('\n');
    }
    Ok(blobs.replace(&path, text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;

    #[test]
    fn rows_read_back_but_for_damaged_lines() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        keep_failing_rows(&blobs, "01A", &[]).unwrap();
        assert_eq!(runs_with_failing_rows(&blobs).unwrap(), [""; 0]);
        let row = |row: &str| FailingRow { run: "01A".to_owned(), row: row.to_owned(), ..FailingRow::default() };
        let rows = [row("{\"a\":1}"), row("{\"a\":\"\\n\"}")];
        keep_failing_rows(&blobs, "01A", &rows).unwrap();
        assert_eq!(failing_rows(&blobs, "01A").unwrap(), rows);
        let path = root.path().join(failing_path("01A"));
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        assert_eq!(failing_rows(&blobs, "01A").unwrap(), rows[..1]);
        assert_eq!(runs_with_failing_rows(&blobs).unwrap(), ["01A"]);
    }
}
