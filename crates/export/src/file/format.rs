//! The forms of published files.

/// The form of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// Parquet.
    #[default]
    Parquet,
    /// CSV with a header.
    Csv,
    /// Arrow IPC, the file form.
    Arrow,
    /// The Parquet that Dataflow's template loads into Bigtable: a row with its cells.
    BigtableParquet,
    /// The CSV that `cbt import` reads: a row with a value a column, `value@micros`.
    CbtCsv,
}

/// Letters of the name of a run, at least.
const SHORTEST_RUN: usize = 5;

impl FileFormat {
    const ALL: [Self; 5] = [Self::Parquet, Self::BigtableParquet, Self::Csv, Self::CbtCsv, Self::Arrow];

    /// The name of the one file of a part, which a restated part replaces.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Parquet => "part-0.parquet",
            Self::BigtableParquet => "part-0.bigtable.parquet",
            Self::Csv => "part-0.csv",
            Self::CbtCsv => "part-0.cbt.csv",
            Self::Arrow => "part-0.arrow",
        }
    }

    /// The form of a file of this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        // Of two that end alike the longer ending is meant.
        Self::ALL
            .into_iter()
            .filter(|format| name.ends_with(format.ending()))
            .max_by_key(|format| format.ending().len())
    }

    /// What its file names end with.
    pub(crate) fn ending(self) -> &'static str {
        self.file_name().trim_start_matches("part-0")
    }

    /// The name of the file at this place of a part of several, as a run wrote it. By name they are in the order of their rows.
    pub(crate) fn file_of_several(self, run: &str, at: usize) -> String {
        format!("part-{run}-{at:05}{}", self.ending())
    }

    /// The run that wrote the file of this name, if it is the one at this place of several.
    pub(crate) fn run_of_several(self, name: &str, at: usize) -> Option<&str> {
        let (run, place) = self.of_several(name)?;
        (place == at).then_some(run)
    }

    /// The run of a file of several, and its place among them.
    fn of_several(self, name: &str) -> Option<(&str, usize)> {
        let (run, place) = name.strip_prefix("part-")?.strip_suffix(self.ending())?.rsplit_once('-')?;
        // Other programs number their parts, too: `part-r-00001`.
        let is_run = run.len() >= SHORTEST_RUN && run.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let is_place = place.len() >= 5 && place.bytes().all(|byte| byte.is_ascii_digit());
        if is_run && is_place { Some((run, place.parse().ok()?)) } else { None }
    }

    /// Whether a file is called as the files of parts are, which take each other's place.
    pub(crate) fn is_of_part(name: &str) -> bool {
        Self::ALL.iter().any(|format| name == format.file_name() || format.of_several(name).is_some())
    }

    /// Whether its rows are those of the query, and not cells brought together.
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
        // The cells of a Bigtable are another form.
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
