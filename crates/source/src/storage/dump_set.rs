//! Which files are dumps of Bigtable, and which files of a source are its newest dump.
//!
//! A dump is one file, or several that were written together: `NAME-00000-of-00007.avro` and so on are the shards of `NAME.avro`,
//! and files `part-0.avro`, `part-1.avro` .. of one folder are parts of that folder. Of several dumps the last by name is read, and no
//! other: a dump is the whole table, and two of them are never added up. Files of two dumps under one name are refused. Numbers in
//! names are compared as numbers: `2018-1-10` follows `2018-1-5`.

use std::collections::{BTreeMap, BTreeSet};

use crate::blocks::OpenedBlocks;
use crate::dump::{CbtRows, is_dump};
use crate::error::SourceError;
use crate::format::Format;
use crate::spec::SourceSpec;
use crate::storage::unread::{Unread, UnreadReason};
use crate::storage::{InputFile, Storage};

/// Most shards that a name may promise: more are a number that means something else.
const MOST_SHARDS: usize = 100_000;
/// How programs call the parts of one output.
const PART: &str = "part-";
/// Most digits of the number of a part: more are a date or a time.
const PART_DIGITS: usize = 5;

/// A file name as a shard of a dump.
#[derive(Debug, PartialEq, Eq)]
struct Shard<'a> {
    /// What is before the number and behind the count: `part` and `.avro`.
    before: &'a str,
    behind: &'a str,
    number: usize,
    count: usize,
    /// The digits of a number.
    width: usize,
}

/// The files of the newest dump among `files`, and the older dumps by their names.
///
/// # Errors
/// [`SourceError::DumpIncomplete`] and [`SourceError::DumpsMixed`].
pub(super) fn newest_dump(files: Vec<InputFile>) -> Result<(Vec<InputFile>, Vec<Unread>), SourceError> {
    let (newest, older) = last_by_name(files);
    check_dump(&newest)?;
    let older = older.into_iter().map(|path| Unread { path, reason: UnreadReason::OlderDump });
    Ok((newest, older.collect()))
}

/// The files of the last dump by name among `files`, whether it is whole or not, and the names of the others.
pub(crate) fn last_by_name(files: Vec<InputFile>) -> (Vec<InputFile>, Vec<String>) {
    let mut dumps: BTreeMap<(Vec<NamePart>, String), Vec<InputFile>> = BTreeMap::new();
    for file in files {
        let name = dump_name(&file.path);
        dumps.entry((name_parts(&name), name)).or_default().push(file);
    }
    let last = dumps.pop_last().map(|(_, files)| files).unwrap_or_default();
    (last, dumps.into_keys().map(|(_, name)| name).collect())
}

/// Checks that `files` of one dump are all that their names promise.
///
/// # Errors
/// [`SourceError::DumpIncomplete`] if some are missing, [`SourceError::DumpsMixed`] if they are of several dumps.
pub(crate) fn check_dump(files: &[InputFile]) -> Result<(), SourceError> {
    let Some(first) = files.first() else { return Ok(()) };
    let name = dump_name(&first.path);
    check_shards(&name, files)?;
    check_parts(&name, files)
}

impl Storage {
    /// The format of a dump that a file has, by its content; `None` if it is no dump.
    ///
    /// # Errors
    /// Those of opening the file.
    pub(crate) fn dump_format(&self, input: &InputFile) -> Result<Option<Format>, SourceError> {
        match input.format {
            Format::Parquet | Format::BigtableParquet => {
                Ok(is_dump(self.parquet(input)?.schema()).then_some(Format::BigtableParquet))
            }
            Format::Avro | Format::BigtableAvro => {
                let mut blocks = self.blocks(input)?;
                let opened = OpenedBlocks::open(&mut blocks, Format::Avro)?;
                Ok(is_dump(opened.schema()).then_some(Format::BigtableAvro))
            }
            Format::CbtCsv => Ok(Some(Format::CbtCsv)),
            Format::Csv => {
                // Whoever reads it as a table tells why it cannot be read.
                let is_dump = self.decoded(input).and_then(CbtRows::are_in).unwrap_or(false);
                Ok(is_dump.then_some(Format::CbtCsv))
            }
            Format::Json | Format::Arrow => Ok(None),
        }
    }

    /// `error`, met by a source when it opened a file; if the file is a dump and the source reads columns, or it is none and the source
    /// reads dumps, with the format that is right.
    pub(super) fn with_right_format(&self, spec: &SourceSpec, input: &InputFile, error: SourceError) -> SourceError {
        if spec.format.is_some_and(Format::is_dump) {
            return match error {
                SourceError::Foreign { path, format } => SourceError::Foreign { path, format: format.as_dump() },
                error => error,
            };
        }
        if !error.is_of_columns() {
            return error;
        }
        match self.dump_format(input) {
            Ok(Some(format)) => SourceError::DumpAsColumns { path: input.path.clone(), format: format.key() },
            _ => error,
        }
    }
}

/// A run of digits of a name, or of other characters.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NamePart {
    /// The digits without zeros in front: of two the longer one is greater.
    Number(usize, String),
    Text(String),
}

/// The parts of a name, by which names are ordered.
fn name_parts(name: &str) -> Vec<NamePart> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|letter: char| letter.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (part, behind) = rest.split_at(end);
        parts.push(match is_number {
            true => {
                let digits = part.trim_start_matches('0');
                NamePart::Number(digits.len(), digits.to_owned())
            }
            false => NamePart::Text(part.to_owned()),
        });
        rest = behind;
    }
    parts
}

/// The dump that the file at `path` is of.
fn dump_name(path: &str) -> String {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if let Some(Shard { before, behind, .. }) = Shard::of(name) {
        return format!("{}{before}{behind}", folder_start(folder));
    }
    if part(name).is_some() { folder_start(folder) } else { path.to_owned() }
}

/// The folder of which the file at `path` is a part, if its name says so: which others there were is not in it.
pub fn folder_of_part(path: &str) -> Option<String> {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    part(name).map(|_| folder_start(folder))
}

/// The number of a part, and what follows it in its name.
fn part(name: &str) -> Option<(usize, &str)> {
    let rest = name.strip_prefix(PART)?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, behind) = rest.split_at_checked(digits)?;
    if Shard::of(name).is_some() || digits == 0 || digits > PART_DIGITS {
        return None;
    }
    Some((number.parse().ok()?, behind))
}

/// Checks that parts count from 0 without a gap, and are of one kind.
fn check_parts(dump: &str, files: &[InputFile]) -> Result<(), SourceError> {
    let names = files.iter().map(|file| file.path.rsplit('/').next().unwrap_or(&file.path));
    let parts: Vec<(usize, &str)> = names.filter_map(part).collect();
    let Some((_, behind)) = parts.first() else { return Ok(()) };
    let numbers: BTreeSet<usize> = parts.iter().map(|(number, _)| *number).collect();
    if numbers.len() != parts.len() || parts.iter().any(|(_, other)| other != behind) {
        return Err(mixed(dump, files));
    }

    let count = numbers.last().map_or(0, |last| last + 1);
    let missing: Vec<String> = (0..count).filter(|at| !numbers.contains(at)).map(|at| format!("{PART}{at}")).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SourceError::DumpIncomplete { dump: dump.to_owned(), count, missing }),
    }
}

fn mixed(dump: &str, files: &[InputFile]) -> SourceError {
    let mut paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    paths.sort_unstable();
    let last = paths.pop().unwrap_or_default();
    SourceError::DumpsMixed { dump: dump.to_owned(), first: paths.into_iter().next().unwrap_or_default(), last }
}

fn folder_start(folder: &str) -> String {
    if folder.is_empty() { String::new() } else { format!("{folder}/") }
}

/// Checks that all shards are there that the names of `files` promise.
fn check_shards(dump: &str, files: &[InputFile]) -> Result<(), SourceError> {
    let names = files.iter().map(|file| file.path.rsplit('/').next().unwrap_or(&file.path));
    let shards: Vec<Shard<'_>> = names.filter_map(Shard::of).collect();
    let Some(first) = shards.first() else { return Ok(()) };
    let count = first.count;
    let is_other = |shard: &Shard<'_>| shard.count != count || shard.width != first.width;
    if shards.iter().any(is_other) || shards.len() != files.len() {
        return Err(mixed(dump, files));
    }
    let found: BTreeSet<usize> = shards.iter().map(|shard| shard.number).collect();
    let missing: Vec<String> =
        (0..count).filter(|number| !found.contains(number)).map(|number| first.name_of(number, count)).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(SourceError::DumpIncomplete { dump: dump.to_owned(), count, missing }),
    }
}

impl<'a> Shard<'a> {
    /// Takes the name of a file apart: `part-00001-of-00007.avro`.
    fn of(name: &'a str) -> Option<Self> {
        let (start, rest) = name.rsplit_once("-of-")?;
        let (before, number) = start.rsplit_once('-')?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (count, behind) = rest.split_at_checked(digits)?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let (width, number, count) = (number.len(), number.parse().ok()?, count.parse().ok()?);
        (is_number && number < count && count <= MOST_SHARDS).then_some(Self { before, behind, number, count, width })
    }

    /// The name of another shard of the same dump.
    fn name_of(&self, number: usize, count: usize) -> String {
        let Self { before, behind, width, .. } = self;
        format!("{before}-{number:0width$}-of-{count:0width$}{behind}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newest(paths: &[&str]) -> Result<(Vec<String>, Vec<String>), String> {
        let files = paths.iter().map(|path| InputFile::of_rows(path, "")).collect();
        let (files, older) = newest_dump(files).map_err(|error| error.to_string())?;
        Ok((files.into_iter().map(|file| file.path).collect(), older.into_iter().map(|unread| unread.path).collect()))
    }

    #[test]
    fn the_last_dump_by_name_is_read_alone() {
        let (read, older) = newest(&["d/2.avro", "d/10.avro", "d/2026-11-29.avro"]).unwrap();
        assert_eq!((read, older.len()), (vec!["d/2026-11-29.avro".to_owned()], 2));

        let (read, older) = newest(&[
            "d/1/part-00000-of-00002.avro",
            "d/1/part-00001-of-00002.avro",
            "d/2/part-00001-of-00002.avro",
            "d/2/part-00000-of-00002.avro",
        ])
        .unwrap();
        assert_eq!(read, ["d/2/part-00001-of-00002.avro", "d/2/part-00000-of-00002.avro"]);
        assert_eq!(older, ["d/1/part.avro"]);
        for (one, next) in
            [("d/2018-1-5/a.avro", "d/2018-1-10/a.avro"), ("dump-9.avro", "dump-10.avro"), ("a-01", "a-2")]
        {
            assert_eq!(newest(&[next, one]).unwrap().0, [next]);
        }
        let (read, older) = newest(&["part-0.parquet", "part-1.parquet"]).unwrap();
        assert_eq!((read.len(), older.len()), (2, 0));
        assert_eq!(newest(&[]), Ok((Vec::new(), Vec::new())));
    }

    #[test]
    fn files_of_two_dumps_are_refused() {
        for paths in [
            &["part-00000-of-00002.avro", "part-00001-of-00002.avro", "part-00000-of-00003.avro"][..],
            &["x-0-of-2.avro", "x-1-of-2.avro", "x-00000-of-00002.avro"],
            &["part-0.avro", "part-00.avro"],
            &["part-0.avro", "part-1.avro", "part-1.avro.gz"],
        ] {
            let error = newest(paths).unwrap_err();
            assert!(error.contains("files of several dumps lie together"), "{paths:?}: {error}");
        }
        let error = newest(&["d/part-0.avro", "d/part-2.avro"]).unwrap_err();
        assert!(error.contains("1 of its 3 files is missing (part-1)"), "{error}");
        // A date is no number of a part.
        let (read, older) = newest(&["part-20260101.avro", "part-20260102.avro"]).unwrap();
        assert_eq!((read.as_slice(), older.len()), (&["part-20260102.avro".to_owned()][..], 1));
        assert_eq!(folder_of_part("d/part-3.avro").as_deref(), Some("d/"));
        assert_eq!((folder_of_part("d/part-20260101.avro"), folder_of_part("d/part-0-of-2.avro")), (None, None));
    }

    #[test]
    fn missing_shards_are_named() {
        let error = newest(&["d/x-00001-of-00004.avro", "d/x-00003-of-00004.avro"]).unwrap_err();
        assert_eq!(
            error,
            "d/x.avro: 2 of its 4 files are missing (x-00000-of-00004.avro, x-00002-of-00004.avro); the dump is still being \
             written, or was copied in part: it is not loaded"
        );
        for name in ["a-of-3.avro", "a-x-of-3.avro", "a-4-of-3.avro", "a-1-of-.avro", "a-1-of-99999999999.avro"] {
            assert_eq!(Shard::of(name), None, "{name}");
        }
    }
}
