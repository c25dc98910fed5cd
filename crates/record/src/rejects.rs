//! Rejected rows of a run, one JSON object a line: `rejected/<run>.jsonl` for its sources, and
//! `rejected/<run>.<table>.jsonl` for the query of a derived table.

use tidetable_blobs::Blobs;
use tidetable_ingest::RejectedRow;
use tidetable_store::StoreError;
use tidetable_store::leave_out;

use crate::run::RunRecord;

/// Path inside the store of the rejected rows of a run: of its sources, or of the query of `table`.
pub fn rejects_path(run: &str, table: Option<&str>) -> String {
    match table {
        Some(table) => format!("rejected/{run}.{table}.jsonl"),
        None => format!("rejected/{run}.jsonl"),
    }
}

impl RunRecord {
    /// Paths inside the store of the files of its rejected rows.
    pub fn reject_files(&self) -> impl Iterator<Item = &str> {
        self.rejected.as_deref().into_iter().chain(self.loads.iter().filter_map(|load| load.rejected.as_deref()))
    }

    /// Number of rows it rejected, of sources and of queries of derived tables.
    pub fn all_rejected(&self) -> u64 {
        let of_queries = self.loads.iter().filter(|load| load.rejected.is_some());
        // Records of format 1 lack `rows_rejected`.
        let of_sources = match (self.rows_rejected, &self.rejected) {
            (0, Some(_)) => {
                self.loads.iter().filter(|load| load.rejected.is_none()).map(|load| load.stats.rows_rejected).sum()
            }
            (rows, _) => rows,
        };
        of_sources + of_queries.map(|load| load.stats.rows_rejected).sum::<u64>()
    }
}

/// The rejected rows of a run: those of its sources, then those of each query, by input and line. A missing file has
/// none; a damaged line is skipped with a warning.
///
/// # Errors
/// If a file cannot be read.
pub fn rejected_rows(blobs: &dyn Blobs, record: &RunRecord) -> Result<Vec<RejectedRow>, StoreError> {
    let mut rows = Vec::new();
    for path in record.reject_files() {
        let Some(bytes) = blobs.read(path)? else { continue };
        let first = rows.len();
        for row in rejected_lines(path, &bytes) {
            match row {
                Ok(row) => rows.push(row),
                Err(error) => leave_out(&error),
            }
        }
        // Inputs are read in parallel, and their rejected rows are written as they come.
        rows[first..].sort_by(|a: &RejectedRow, b| (&a.file, a.line, &a.table).cmp(&(&b.file, b.line, &b.table)));
    }
    Ok(rows)
}

/// The rows of a file of rejected rows, with an error for each damaged line.
pub fn rejected_lines<'a>(
    path: &'a str,
    bytes: &'a [u8],
) -> impl Iterator<Item = Result<RejectedRow, StoreError>> + use<'a> {
    let lines = bytes.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    lines.map(move |(at, line)| {
        serde_json::from_slice(line).map_err(|error| StoreError::Unreadable {
            path: path.to_owned(),
            what: "a file of rejected rows",
            reason: format!("line {}: {error}", at + 1),
        })
    })
}

#[cfg(test)]
mod tests {
    use tidetable_blobs::LocalBlobs;

    use super::*;
    use crate::load::LoadRecord;

    #[test]
    fn rows_of_sources_and_of_queries_are_read() {
        let root = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        let row =
            |file: &str| format!("{{\"file\":\"{file}\",\"line\":2,\"column\":null,\"reason\":\"r\",\"raw\":\"x\"}}\n");
        blobs.replace("rejected/R.jsonl", [row("b"), row("a")].concat().as_bytes()).unwrap();
        blobs.replace("rejected/R.D.jsonl", row("T@d").as_bytes()).unwrap();
        let load = LoadRecord { rejected: Some(rejects_path("R", Some("D"))), ..LoadRecord::default() };
        let gone = LoadRecord { rejected: Some(rejects_path("R", Some("gone"))), ..LoadRecord::default() };
        let rejected = Some(rejects_path("R", None));
        let record = RunRecord { rejected, loads: vec![load, gone], ..RunRecord::default() };
        let files: Vec<String> = rejected_rows(blobs, &record).unwrap().into_iter().map(|row| row.file).collect();
        assert_eq!(files, ["a", "b", "T@d"]);
        blobs.replace("rejected/R.jsonl", format!("{}half", row("a")).as_bytes()).unwrap();
        let files: Vec<String> = rejected_rows(blobs, &record).unwrap().into_iter().map(|row| row.file).collect();
        assert_eq!(files, ["a", "T@d"], "what can be read is read");
        let bytes = blobs.read("rejected/R.jsonl").unwrap().unwrap();
        let said = rejected_lines("rejected/R.jsonl", &bytes).find_map(Result::err).unwrap().to_string();
        assert!(said.contains("rejected/R.jsonl") && said.contains("line 2"), "{said}");
    }
}
