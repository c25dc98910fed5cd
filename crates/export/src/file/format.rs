//! File formats.

/// The format of a published file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// Parquet.
    #[default]
    Parquet,
    /// CSV with a header.
    Csv,
    /// Arrow IPC file.
    Arrow,
    /// Parquet for Dataflow's "Parquet to Bigtable" template: a record per row with its cells.
    BigtableParquet,
    /// Avro for Dataflow's "Avro to Bigtable" template: a record per row with its cells.
    BigtableAvro,
    /// CSV for `cbt import`: a line per row with a value per column, `value@micros`.
    CbtCsv,
}

/// Shortest name of a run.
const SHORTEST_RUN: usize = 5;

impl FileFormat {
    const ALL: [Self; 6] =
        [Self::Parquet, Self::BigtableParquet, Self::BigtableAvro, Self::Csv, Self::CbtCsv, Self::Arrow];

    /// The name of the file of a part with one file; replacing the part replaces it.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Parquet => "part-0.parquet",
            Self::BigtableParquet => "part-0.bigtable.parquet",
            Self::Csv => "part-0.csv",
            Self::BigtableAvro => "part-0.bigtable.avro",
            Self::CbtCsv => "part-0.cbt.csv",
            Self::Arrow => "part-0.arrow",
        }
    }

    /// The format of a file of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        // If two endings match, the longer one counts.
        Self::ALL
            .into_iter()
            .filter(|format| name.ends_with(format.ending()))
            .max_by_key(|format| format.ending().len())
    }

    /// The ending of its file names.
    pub(crate) fn ending(self) -> &'static str {
        self.file_name().trim_start_matches("part-0")
    }

    /// The name of file number `at` of a part with several, written by `run`. Names sort in the order of rows.
    pub(crate) fn file_of_several(self, run: &str, at: usize) -> String {
        format!("part-{run}-{at:05}{}", self.ending())
    }

    /// The run that wrote the file of this name, if it is number `at` of several.
    pub(crate) fn run_of_several(self, name: &str, at: usize) -> Option<&str> {
        let (run, place) = self.of_several(name)?;
        (place == at).then_some(run)
    }

    /// The run and the number of a file of several.
    fn of_several(self, name: &str) -> Option<(&str, usize)> {
        let (run, place) = name.strip_prefix("part-")?.strip_suffix(self.ending())?.rsplit_once('-')?;
        // Other programs number files too: `part-r-00001`.
        let is_run = run.len() >= SHORTEST_RUN && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_place = place.len() >= 5 && place.bytes().all(|byte| byte.is_ascii_digit());
        if is_run && is_place { Some((run, place.parse().ok()?)) } else { None }
    }

    /// Whether a file has a name of files of parts, which replace each other.
    pub(crate) fn is_of_part(name: &str) -> bool {
        Self::ALL.iter().any(|format| name == format.file_name() || format.of_several(name).is_some())
    }

    /// Whether the file holds rows of the query, and not assembled cells.
    pub fn holds_rows(self) -> bool {
        matches!(self, Self::Parquet | Self::Csv | Self::Arrow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_several_files_tell_their_run_and_place() {
        let parquet = FileFormat::Parquet;
        let name = parquet.file_of_several("01JX-Z", 3);
        assert_eq!(name, "part-01JX-Z-00003.parquet");
        assert_eq!(parquet.run_of_several(&name, 3), Some("01JX-Z"));
        assert_eq!(parquet.run_of_several(&name, 2), None);
        assert_eq!(FileFormat::Csv.run_of_several(&name, 3), None);
        assert_eq!(parquet.run_of_several("part-0.parquet", 0), None);
        // Cells for Bigtable have another ending.
        assert_eq!(parquet.run_of_several(&FileFormat::BigtableParquet.file_of_several("run-1", 0), 0), None);
        assert!(FileFormat::is_of_part(&name) && FileFormat::is_of_part("part-0.cbt.csv"));
        for other in [
            "_SUCCESS",
            "part-r-00001.parquet",
            "part-0.txt",
            "part-list.csv",
            "part-00000-abc.snappy.parquet",
            "part--00000.csv",
            "part-r-0003.csv",
        ] {
            assert!(!FileFormat::is_of_part(other), "{other}");
        }
        assert_eq!(FileFormat::of_name("part-0.cbt.csv"), Some(FileFormat::CbtCsv));
        assert_eq!(FileFormat::of_name("part-run-1-00000.csv"), Some(FileFormat::Csv));
        let names: Vec<String> = (8..12).map(|at| parquet.file_of_several("run-1", at)).collect();
        assert!(names.is_sorted());
    }
}
