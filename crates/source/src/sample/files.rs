//! Several files that one declaration shall read: which of them are of a kind, and how they differ.

use chrono_tz::Tz;
use tidetable_layout::FieldType;

use crate::sample::column::UnusualType;
use crate::sample::error::SampleError;
use crate::sample::kinds::is_like_value;
use crate::sample::typed::TypedColumns;
use crate::spec::{SchemaMode, SourceSpec};
use crate::storage::{InputFile, Storage};

/// Most files whose beginnings are looked at.
const LOOKED_AT: usize = 64;
/// Most files whose rows are sampled: they share the size of the sample.
const SAMPLED: usize = 8;

/// What a sample of several files says of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledFiles {
    /// Paths of those whose rows were sampled.
    pub sampled: Vec<String>,
    /// Whether the beginning of every file was looked at.
    pub looked_at_all: bool,
    /// Files that the declaration does not read.
    pub unlike: Vec<UnlikeFile>,
    /// Columns that not all files have, each with the first file that lacks it.
    pub lacking: Vec<(String, String)>,
    /// Columns whose types differ: what each is taken as, and the first file with another type.
    pub differing: Vec<(String, FieldType, String)>,
    /// Columns that the folders of the files name.
    pub path_columns: Vec<String>,
}

/// A file that is not like the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlikeFile {
    /// The path of the file, as the paths of inputs are.
    pub path: String,
    /// What is different about it, or why it cannot be read, as a sentence without its end.
    pub why: String,
}

/// What the beginning of a file declares.
pub(super) struct Declared {
    pub spec: SourceSpec,
    /// Columns that cannot be declared, with their types.
    pub left_out: Vec<String>,
    /// What its encoding most likely is, if it is not UTF-8.
    pub encoding: &'static str,
    /// Columns that the folders of its path name.
    pub path_columns: Vec<String>,
    /// Columns without a name, which are called by their place.
    pub unnamed: Vec<String>,
    /// Columns whose name is that of an earlier one with a number behind.
    pub doubled: Vec<String>,
    /// Whether the first line is a row, as the others begin like it.
    pub is_row: bool,
    /// Whether the names are those of two lines, one of which names groups of columns.
    pub is_joined: bool,
    /// Lines before the header; `None` if they differ among files.
    pub before: Option<u64>,
    /// Columns whose type no job file has, by name.
    pub unusual: Vec<(String, UnusualType)>,
}

/// Files that one declaration reads, and that declaration.
pub(super) struct Kin {
    pub declared: Declared,
    /// Those of them whose rows are sampled.
    pub read: Vec<InputFile>,
    pub files: SampledFiles,
}

impl Declared {
    /// The declaration of a file without notes on its encoding, its path and its names.
    pub fn new(spec: SourceSpec, left_out: Vec<String>) -> Self {
        let [path_columns, unnamed, doubled] = [Vec::new(), Vec::new(), Vec::new()];
        let (encoding, before, unusual) = ("latin1", None, Vec::new());
        let (is_row, is_joined) = (false, false);
        Self { spec, left_out, encoding, path_columns, unnamed, doubled, before, is_row, is_joined, unusual }
    }

    /// The declaration of a file that has columns with their types.
    pub fn typed(spec: SourceSpec, typed: TypedColumns) -> Self {
        let TypedColumns { columns, left_out, unusual } = typed;
        Self { unusual, ..Self::new(SourceSpec { columns, ..spec }, left_out) }
    }
}

impl SampledFiles {
    /// Notes the first file that lacks a column.
    fn add_lacking(&mut self, column: &str, path: &str) {
        if !self.lacking.iter().any(|(known, _)| known == column) {
            self.lacking.push((column.to_owned(), path.to_owned()));
        }
    }
}

impl Storage {
    /// The largest group of `inputs` that one declaration reads.
    pub(super) fn kin(&self, header: bool, inputs: &[InputFile], zone: Option<Tz>) -> Result<Kin, SampleError> {
        let mut files = SampledFiles { looked_at_all: inputs.len() <= LOOKED_AT, ..SampledFiles::default() };
        let mut found: Vec<(&InputFile, Declared)> = Vec::new();
        let mut first_error = None;
        for input in spread(inputs, LOOKED_AT) {
            match self.declared(header, input, zone) {
                Ok(declared) => found.push((input, declared)),
                Err(error) => {
                    files.unlike.push(UnlikeFile { path: input.path.clone(), why: error.to_string() });
                    first_error = first_error.or(Some(error));
                }
            }
        }
        let has_none = found.iter().any(|(_, declared)| !declared.spec.csv.header);
        let are_rows = !found.is_empty() && found.iter().all(|(_, declared)| declared.is_row);
        if header && (has_none || are_rows) {
            return self.kin(false, inputs, zone);
        }

        let Some(base) = most_alike(&found) else {
            return Err(first_error.unwrap_or(SampleError::Empty { path: String::new() }));
        };

        let (_, first) = found.remove(base);
        let (alike, unlike): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, other)| are_alike(&first, other));
        files.unlike.extend(
            unlike
                .into_iter()
                .map(|(input, other)| UnlikeFile { path: input.path.clone(), why: unlikeness(&first, &other) }),
        );
        files.unlike.sort_by(|a, b| a.path.cmp(&b.path));

        let mut declared = first;
        for (input, other) in &alike {
            merge(&mut declared, other, &input.path, &mut files);
        }
        if !files.lacking.is_empty() {
            declared.spec.mode = SchemaMode::Evolve;
        }

        let base_path = declared.spec.files.first().cloned().unwrap_or_default();
        let mut kin = inputs.to_vec();
        kin.retain(|input| !files.unlike.iter().any(|unlike| unlike.path == input.path));
        let mut read: Vec<InputFile> = spread(&kin, SAMPLED).cloned().collect();
        if !read.iter().any(|input| input.path == base_path)
            && let Some(base) = kin.iter().find(|input| input.path == base_path)
        {
            read.insert(0, base.clone());
        }
        files.sampled = read.iter().map(|input| input.path.clone()).collect();
        Ok(Kin { declared, read, files })
    }
}

/// At most `most` of `inputs`, evenly spread, with the first and the last.
fn spread(inputs: &[InputFile], most: usize) -> impl Iterator<Item = &InputFile> {
    let count = inputs.len().min(most);
    let gaps = count.saturating_sub(1).max(1);
    (0..count).filter_map(move |number| inputs.get(number * (inputs.len() - 1) / gaps))
}

/// The index of the declaration that is like most others; of equals the first.
fn most_alike(found: &[(&InputFile, Declared)]) -> Option<usize> {
    let (mut best, mut most) = (None, 0);
    for (index, (_, declared)) in found.iter().enumerate() {
        let count = found.iter().filter(|(_, other)| are_alike(declared, other)).count();
        if best.is_none() || count > most {
            (best, most) = (Some(index), count);
        }
    }
    best
}

/// Whether one declaration can read both: they are written in one way, and share at least half of their columns.
fn are_alike(one: &Declared, other: &Declared) -> bool {
    let (one, other) = (&one.spec, &other.spec);
    let (a, b) = (&one.csv, &other.csv);
    let are_written_alike = (one.format, &one.each, one.preset) == (other.format, &other.each, other.preset)
        && (a.delimiter, a.quote, a.comment, a.skip) == (b.delimiter, b.quote, b.comment, b.skip);
    let shared = one.columns.iter().filter(|column| other.columns.iter().any(|also| also.name == column.name)).count();
    are_written_alike && shared > 0 && shared * 2 >= one.columns.len().max(other.columns.len())
}

/// Adds the columns of `other`, the declaration of the file at `path`.
fn merge(declared: &mut Declared, other: &Declared, path: &str, files: &mut SampledFiles) {
    // Not every file needs to have a quote in a value.
    declared.spec.csv.escape = declared.spec.csv.escape.or(other.spec.csv.escape);
    let first = declared.spec.files.first().cloned().unwrap_or_default();

    for column in &mut declared.spec.columns {
        match other.spec.columns.iter().find(|also| also.name == column.name) {
            None => files.add_lacking(&column.name, path),
            Some(also) if also.kind != column.kind => {
                column.kind = common(column.kind, also.kind);
                column.timezone = column.timezone.filter(|_| column.kind == FieldType::Timestamp);
                files.differing.retain(|(name, ..)| *name != column.name);
                files.differing.push((column.name.clone(), column.kind, path.to_owned()));
            }
            Some(_) => {}
        }
    }
    for column in &other.spec.columns {
        if declared.spec.columns.iter().all(|known| known.name != column.name) {
            declared.spec.columns.push(column.clone());
            files.add_lacking(&column.name, &first);
        }
    }

    for name in &other.path_columns {
        if !declared.path_columns.contains(name) {
            declared.path_columns.push(name.clone());
        }
    }
    declared.unnamed.retain(|name| other.unnamed.contains(name));
    declared.before = declared.before.filter(|_| declared.before == other.before);
    for name in &other.doubled {
        if !declared.doubled.contains(name) {
            declared.doubled.push(name.clone());
        }
    }
}

/// The type that holds the values of both.
fn common(one: FieldType, other: FieldType) -> FieldType {
    use FieldType::{Decimal, Float64, Int64, Text, UInt64};
    match (one, other) {
        (Int64 | UInt64, Int64 | UInt64) => Int64,
        (Int64 | UInt64 | Float64 | Decimal { .. }, Int64 | UInt64 | Float64 | Decimal { .. }) => Float64,
        _ => Text,
    }
}

/// How a file is not like the first of the others.
fn unlikeness(first: &Declared, other: &Declared) -> String {
    let (csv, other_csv) = (&first.spec.csv, &other.spec.csv);
    if first.spec.format != other.spec.format {
        return format!("it has the columns {}", names(&other.spec));
    }
    if csv.delimiter != other_csv.delimiter {
        return format!(
            "its columns are separated by {}, those of the others by {}: read it by a source of its own",
            separator(other_csv.delimiter),
            separator(csv.delimiter)
        );
    }
    if csv.skip != other_csv.skip && first.spec.columns == other.spec.columns {
        let lines = |skip: u64| format!("{skip} {}", if skip == 1 { "line" } else { "lines" });
        return format!(
            "it has {} before its rows, which are left out, and the others have {}: read it by a source of its own",
            lines(other_csv.skip),
            lines(csv.skip)
        );
    }

    let shares = |name: &str| first.spec.columns.iter().any(|column| column.name == name);
    let mut columns = other.spec.columns.iter().map(|column| column.name.as_str());
    let has_values = columns.clone().any(is_like_value) && !columns.any(shares);
    match has_values && csv.header {
        true => format!(
            "it has no header, and begins with the values {}. Put the names of the columns before them, or read it by a source \
             of its own with `csv.header = false`",
            names(&other.spec)
        ),
        false => format!("it has the columns {}", names(&other.spec)),
    }
}

/// A delimiter as a message has it.
fn separator(delimiter: u8) -> String {
    if delimiter == b'\t' { "tabs".to_owned() } else { format!("`{}`", char::from(delimiter)) }
}

/// The names of the columns of a file.
fn names(spec: &SourceSpec) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<&str> = spec.columns.iter().take(SHOWN).map(|column| column.name.as_str()).collect();
    match spec.columns.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Sample;

    fn sample(files: &[(&str, &str)]) -> Result<Sample, SampleError> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let storage = Storage::new(root.path().to_owned(), None);
        let spec = SourceSpec { files: vec!["in".to_owned()], ..SourceSpec::default() };
        storage.sample_files(&storage.discover(&spec).unwrap(), None)
    }

    fn kind(sample: &Sample, name: &str) -> FieldType {
        sample.spec.columns.iter().find(|column| column.name == name).unwrap().kind
    }

    #[test]
    fn types_and_columns_of_all_files_are_one_declaration() {
        let found = sample(&[
            ("in/1.csv", "ts,host,v\n2021-04-01T00:00:00Z,a,1\n2021-04-01T00:01:00Z,a,2\n"),
            ("in/2.csv", "ts,host,v,hum\n2021-04-02T00:00:00Z,a,0.5,7\n2021-04-02T00:01:00Z,a,2,8\n"),
            ("in/stations.csv", "id,name,place\n1,a,here\n2,b,there\n"),
        ])
        .unwrap();
        assert_eq!((kind(&found, "v"), kind(&found, "hum")), (FieldType::Float64, FieldType::Int64));
        assert_eq!(found.files.lacking, [("hum".to_owned(), "in/1.csv".to_owned())]);
        assert_eq!(found.spec.mode, SchemaMode::Evolve);
        assert_eq!(found.files.unlike[0].path, "in/stations.csv");
        assert!(found.files.unlike[0].why.contains("id, name, place"));
        assert_eq!(found.files.sampled, ["in/1.csv", "in/2.csv"]);
        assert_eq!(found.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 4);
    }

    #[test]
    fn files_without_a_header_are_of_a_kind() {
        let found = sample(&[
            ("in/1.csv", "2021-04-01T00:00:00Z,a,1\n2021-04-01T00:01:00Z,a,2\n2021-04-01T00:02:00Z,a,2\n"),
            ("in/2.csv", "2021-04-02T00:00:00Z,a,7\n2021-04-02T00:01:00Z,b,7\n2021-04-02T00:02:00Z,b,8\n"),
        ])
        .unwrap();
        assert_eq!(found.files.sampled, ["in/1.csv", "in/2.csv"]);
        assert_eq!(found.batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 6);
        assert_eq!(kind(&found, "column_1"), FieldType::Timestamp);
    }

    #[test]
    fn one_file_without_a_header_leaves_the_others_theirs() {
        let rows: String = (0..9).map(|at| format!("2021-04-01T00:0{at}:00Z,a,{at}\n")).collect();
        let found = sample(&[("in/1.csv", &format!("ts,host,v\n{rows}")), ("in/2.csv", &rows)]).unwrap();
        assert!(found.spec.csv.header && found.files.unlike[0].why.contains("it has no header"));
    }

    #[test]
    fn escape_of_one_file_is_that_of_all() {
        let rows = |day: u8, note: &str| {
            (0..4).map(|at| format!("2021-04-0{day}T00:0{at}:00Z,h,{note}\n")).collect::<String>()
        };
        let file = |day, note| format!("ts,host,note\n{}", rows(day, note));
        let found =
            sample(&[("in/1.csv", &file(1, "plain")), ("in/2.csv", &file(2, "\"said \\\"stop\\\", then went\""))])
                .unwrap();
        assert_eq!((found.spec.csv.escape, found.rejected), (Some(b'\\'), 0));
    }

    #[test]
    fn folders_give_columns() {
        let rows = |day: u8| format!("ts,v\n2021-04-0{day}T00:00:00Z,1\n2021-04-0{day}T00:01:00Z,2\n");
        let found =
            sample(&[("in/site=01/date=2021-04-01/p.csv", &rows(1)), ("in/site=02/date=2021-04-02/p.csv", &rows(2))])
                .unwrap();
        assert_eq!((kind(&found, "site"), kind(&found, "date")), (FieldType::Text, FieldType::Date));
        assert_eq!(found.files.path_columns, ["site", "date"]);
        assert!(found.whole && found.files.lacking.is_empty());
    }

    #[test]
    fn one_unreadable_file_does_not_hide_the_others() {
        let rows = "ts,v\n2021-04-01T00:00:00Z,1\n2021-04-01T00:01:00Z,2\n";
        let found = sample(&[("in/1.csv", ""), ("in/2.csv", rows), ("in/3.csv", "\u{0}\u{0}\u{0}\u{0}")]).unwrap();
        assert_eq!(
            found.files.unlike.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
            ["in/1.csv", "in/3.csv"]
        );
        assert!(matches!(sample(&[("in/1.csv", "")]), Err(SampleError::Empty { .. })));
    }
}
