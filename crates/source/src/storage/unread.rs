//! Names that a pattern reaches and that are not read, with the notes of a run on them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::spec::SourceSpec;
use crate::storage::pattern::Pattern;

/// Most folders with a note each, for one reason.
const FOLDERS: usize = 5;

/// What has no note of its own.
#[derive(Default)]
struct Rest {
    folders: usize,
    names: usize,
}

/// A file or folder that a pattern of a source reaches or names, and that is not read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// Its path, as paths of inputs begin. Bytes that are not UTF-8 are written as `\xF6`.
    pub path: String,
    /// Why it is not read, which decides the note on it.
    pub reason: UnreadReason,
}

/// Why a name is not read, in the order in which notes are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnreadReason {
    /// The name is not UTF-8: neither a job file nor a manifest could hold it.
    NotUtf8,
    /// A symbolic link whose target does not exist, or that leads back to itself.
    DanglingLink,
    /// A link to a folder, which `**` does not enter because links could form cycles.
    LinkedFolder,
    /// A folder whose name matches the pattern of files.
    Folder,
    /// A pipe, a socket or a device, which is no regular file.
    NotAFile,
    /// The name begins with `_` or `.`, as those of other programs' work files do.
    WorkFile,
    /// A file of a named folder whose ending does not say what it holds.
    UnknownEnding,
    /// A data file that the pattern would match, had it the format or the compression that the pattern ends with.
    OtherEnding,
    /// A dump of Bigtable that a newer one replaces.
    OlderDump,
}

impl Unread {
    /// Removes data files with another ending that a pattern of `specs` reads all the same: another pattern of the source, or that
    /// of another source.
    pub fn retain_unread<'a>(unread: &mut Vec<Self>, specs: impl IntoIterator<Item = &'a SourceSpec>) {
        if unread.iter().all(|unread| unread.reason != UnreadReason::OtherEnding) {
            return;
        }
        let written = specs.into_iter().flat_map(|spec| &spec.files);
        let patterns: Vec<Pattern> =
            written.filter_map(|written| Pattern::new(written.trim_start_matches("./")).ok()).collect();
        unread.retain(|Self { path, reason }| {
            *reason != UnreadReason::OtherEnding || !patterns.iter().any(|pattern| pattern.is_match(path))
        });
    }

    /// Notes on `unread`: one for each folder and reason, and one for the folders beyond the first five of a reason.
    pub fn notes(unread: &[Self]) -> Vec<String> {
        let mut folders: BTreeMap<(UnreadReason, &str), Vec<&str>> = BTreeMap::new();
        for Self { path, reason } in unread {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            // However many nights there were, they have one note.
            let folder = if *reason == UnreadReason::OlderDump { "" } else { folder };
            folders.entry((*reason, folder)).or_default().push(path);
        }

        let mut notes = Vec::new();
        let mut noted: BTreeMap<UnreadReason, usize> = BTreeMap::new();
        let mut rests: BTreeMap<UnreadReason, Rest> = BTreeMap::new();
        for ((reason, _), paths) in folders {
            let noted = noted.entry(reason).or_default();
            if *noted < FOLDERS {
                notes.push(reason.note(&paths));
                *noted += 1;
            } else {
                let rest = rests.entry(reason).or_default();
                rest.folders += 1;
                rest.names += paths.len();
            }
        }
        for (reason, Rest { folders, names }) in rests {
            notes.push(format!("{names} other names in {folders} folders are not read: {}", reason.phrase()));
        }
        notes
    }
}

impl UnreadReason {
    fn phrase(self) -> &'static str {
        match self {
            Self::NotUtf8 => "they are not UTF-8",
            Self::DanglingLink => "they are links to nothing",
            Self::LinkedFolder => "they are links to folders, which ** does not enter",
            Self::Folder => "they are folders",
            Self::NotAFile => "they are no regular files",
            Self::WorkFile => "they begin with _ or .",
            Self::UnknownEnding => "their endings do not say what they hold",
            Self::OtherEnding => "`files` takes other endings",
            Self::OlderDump => "they are older dumps",
        }
    }

    /// The note on names of one folder, at least one.
    fn note(self, paths: &[&str]) -> String {
        let first = paths.first().copied().unwrap_or_default();
        let others = match paths.len() {
            0 | 1 => String::new(),
            2 => " (and 1 other in its folder)".to_owned(),
            count => format!(" (and {} others in its folder)", count - 1),
        };
        let name = format!("{first}{others}");
        let ending = first.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
        let ending = ending.map_or(String::new(), |(_, ending)| format!(".{ending}"));

        match self {
            Self::OlderDump => older_note(paths),
            Self::NotUtf8 => format!("{name} is not read: its name is not UTF-8. Rename it"),
            Self::DanglingLink => format!("{name} is not read: it is a link to nothing. Mend or remove the link"),
            Self::LinkedFolder => format!(
                "{name} is not read: it is a link to a folder, which ** does not enter. Add \"{first}\" to `files` to \
                 read it"
            ),
            Self::Folder => format!(
                "{name} is not read: it is a folder. Add \"{first}/*{ending}\" to `files` to read the files in it"
            ),
            Self::NotAFile => format!("{name} is not read: it is no regular file"),
            Self::WorkFile => work_note(paths),
            Self::UnknownEnding => {
                format!("{name} is not read: its ending does not say what it holds. Set `format`, or name the file")
            }
            Self::OtherEnding => {
                format!("{name} is not read: `files` takes other endings. Add \"*{ending}\" there, or move it away")
            }
        }
    }
}

/// The note on dumps that a newer one replaces.
fn older_note(paths: &[&str]) -> String {
    let last = paths.last().copied().unwrap_or_default();
    match paths.len() {
        1 => format!("{last} is not read: it is an older dump, which the newest replaces"),
        count => format!("{count} older dumps are not read, the last of them {last}: the newest replaces them"),
    }
}

/// The note on work files; a folder that holds several is there as often.
fn work_note(paths: &[&str]) -> String {
    let first = paths.first().copied().unwrap_or_default();
    let files = match paths.len() {
        1 => "1 file is".to_owned(),
        count => format!("{count} files are"),
    };
    format!(
        "{files} skipped, because names that begin with _ or . are work files of programs: {first}. `files` may name it"
    )
}

/// A path as text. Bytes that are not UTF-8 are written as `\xF6`.
pub(super) fn shown_path(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02X}")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(paths: &[&str], reason: UnreadReason) -> Vec<Unread> {
        paths.iter().map(|path| Unread { path: (*path).to_owned(), reason }).collect()
    }

    #[test]
    fn a_folder_has_one_note_for_each_reason() {
        let mut all = unread(&["in/2.csv", "in/3.csv", "in/4.csv"], UnreadReason::DanglingLink);
        all.extend(unread(&["in/dir.csv"], UnreadReason::Folder));
        all.extend(unread(&["out/_temporary", "out/_temporary"], UnreadReason::WorkFile));
        let notes = Unread::notes(&all);
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert!(notes[0].starts_with("in/2.csv (and 2 others in its folder) is not read: it is a link to nothing"));
        assert!(notes[1].contains("Add \"in/dir.csv/*.csv\" to `files`"), "{}", notes[1]);
        assert!(notes[2].starts_with("2 files are skipped") && notes[2].contains("out/_temporary"), "{}", notes[2]);
    }

    #[test]
    fn many_folders_are_counted() {
        let paths: Vec<String> = (0..20).map(|number| format!("in/{number:02}/a.csv")).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let notes = Unread::notes(&unread(&paths, UnreadReason::NotUtf8));
        assert_eq!(notes.len(), FOLDERS + 1);
        assert_eq!(notes[FOLDERS], "15 other names in 15 folders are not read: they are not UTF-8");
    }
}
