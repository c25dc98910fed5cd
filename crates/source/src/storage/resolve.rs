//! Files that another process found: checks that they belong to the source, and finds them again.

use std::path::PathBuf;

use object_store::path::Path as Key;

use crate::error::SourceError;
use crate::location::Split;
use crate::spec::SourceSpec;
use crate::storage::coverage::covers;
use crate::storage::pattern::{Part, Pattern};
use crate::storage::pull_list::place_of;
use crate::storage::{FileAccess, InputFile, Storage};

impl Storage {
    /// The file that another process found for the source `spec` and sent by name. Reads nothing.
    ///
    /// # Errors
    /// [`SourceError::NotOfSource`] if no pattern of the source matches its path, and [`SourceError::BadPattern`].
    pub fn resolve(&self, spec: &SourceSpec, file: InputFile) -> Result<InputFile, SourceError> {
        let FileAccess::Named { etag } = &file.location else { return Ok(file) };
        for written in &spec.files {
            if let Some(location) = self.place(spec, written, &file.path, etag.as_deref())? {
                return Ok(InputFile { location, ..file });
            }
        }
        Err(SourceError::NotOfSource { name: spec.name.clone(), path: file.path })
    }

    /// The place of `path`, if the pattern `written` matches it.
    fn place(
        &self,
        spec: &SourceSpec,
        written: &str,
        path: &str,
        etag: Option<&str>,
    ) -> Result<Option<FileAccess>, SourceError> {
        match self.split(written)? {
            Split::Bucket { base, key: pattern } => {
                let Some(key) = path.strip_prefix(base).and_then(|key| key.strip_prefix('/')) else { return Ok(None) };
                let Ok(key) = Key::parse(key) else { return Ok(None) };
                let pattern = Pattern::new(pattern)?;
                let matches = pattern.is_match(key.as_ref()) || pattern.covers(key.as_ref());

                let (source, etag) = (spec.name.clone(), etag.map(str::to_owned));
                Ok(matches.then_some(FileAccess::Remote { base: base.to_owned(), source, key, etag }))
            }
            Split::Path(local) => {
                let pattern = Pattern::new(local.trim_start_matches("./"))?;
                let is_absolute = local.starts_with('/');
                let start = if is_absolute { PathBuf::from("/") } else { self.root.clone() };

                let below = if is_absolute { path.strip_prefix('/') } else { Some(path) };
                let below = below.filter(|path| is_plain(path) && pattern.covers(path));
                let place = below.map(|path| place_of(start.join(path))).transpose()?;
                Ok(place.map(FileAccess::Local))
            }
        }
    }
}

impl Pattern {
    /// Whether a walk along the parts reaches `path`, which has no slash at its start. Names that begin with `_` are covered:
    /// those that were inputs before still are.
    fn covers(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        let is_literal = self.parts.iter().all(|part| matches!(part, Part::Literal(_)));
        covers(&self.parts, &names, &skips_hidden) || is_literal && covers(&self.below(), &names, &skips_hidden)
    }
}

fn skips_hidden(part: &Part, name: &str) -> bool {
    name.starts_with('.') && part.skips(name.as_bytes())
}

/// Whether a path names a file below a directory whatever links there are: no `..`, no empty name.
fn is_plain(path: &str) -> bool {
    path.split('/').all(|name| !name.is_empty() && name != "." && name != "..")
}

/// Serialises the place of a file as its entity tag alone.
pub(super) mod named {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::storage::FileAccess;

    pub(crate) fn serialize<S: Serializer>(location: &FileAccess, serializer: S) -> Result<S::Ok, S::Error> {
        let etag = match location {
            FileAccess::Remote { etag, .. } | FileAccess::Named { etag } => etag.as_deref(),
            FileAccess::Local(_) | FileAccess::Elsewhere => None,
        };
        etag.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FileAccess, D::Error> {
        Option::deserialize(deserializer).map(|etag| FileAccess::Named { etag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(file: &InputFile) -> InputFile {
        serde_json::from_str(&serde_json::to_string(file).unwrap()).unwrap()
    }

    fn spec(files: &[&str]) -> SourceSpec {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        SourceSpec { files, ..crate::tests::spec() }
    }

    #[test]
    fn a_file_that_was_found_is_found_again_where_it_lies() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/x.csv"), "t\n").unwrap();
        let storage = Storage::new(dir.path().to_owned(), None);
        let absolute = format!("{}/a/**/*.csv", dir.path().display());
        for pattern in ["a/b/x.csv", "a/**/x.csv", "**/*.csv", "./a/?/x.csv", &absolute, &format!("file://{absolute}")]
        {
            let spec = spec(&[pattern]);
            let found = storage.discover(&spec).unwrap();
            assert_eq!(found.len(), 1, "{pattern}");
            assert!(matches!(storage.raw(&sent(&found[0])), Err(SourceError::NoFile { .. })));
            assert_eq!(storage.resolve(&spec, sent(&found[0])).unwrap(), found[0], "{pattern}");
        }
    }

    #[test]
    fn the_list_of_a_pull_says_which_files_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        for path in ["part-00000.parquet", "part-00001.parquet", "own.parquet"] {
            write(&format!("p/{path}"), "old");
        }
        write("p/pull-b/part-00000.parquet", "new");
        write("p/pull-c/part-00000.parquet", "of a pull that did not end");
        write(
            "p/pull.json",
            r#"{"format": 2, "source": "t", "files": {"part-00000.parquet": "pull-b/part-00000.parquet", "part-00007.parquet": "pull-b/x"}}"#,
        );
        let storage = Storage::new(dir.path().to_owned(), None);
        for pattern in ["p/*.parquet", "p/*", "**/*.parquet"] {
            let spec = spec(&[pattern]);
            let found = storage.find(&spec).unwrap();
            let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(paths, ["p/own.parquet", "p/part-00000.parquet"], "{pattern}");
            assert_eq!(found.files[1].size, 3);
            assert_eq!(found.pulled.len(), 1);
            assert_eq!(storage.resolve(&spec, sent(&found.files[1])).unwrap(), found.files[1], "{pattern}");
        }
        // A pull that found nothing is no pattern without a match.
        write("p/pull.json", r#"{"format": 2, "source": "t"}"#);
        let found = storage.find(&spec(&["p/part-*.parquet"])).unwrap();
        assert_eq!((found.files.len(), found.unmatched.len()), (0, 0));
    }

    #[test]
    fn a_path_outside_the_patterns_is_refused() {
        let storage = Storage::new("/project".into(), None);
        let file =
            |path: &str| InputFile { location: FileAccess::Named { etag: None }, ..InputFile::of_rows(path, "1") };
        let spec = spec(&["a/*.csv", "/data/**", "s3://bucket/in/*.csv"]);
        for path in [
            "a/../b.csv",
            "../a/x.csv",
            "a/b/x.csv",
            "a/.hidden.csv",
            "/etc/passwd",
            "/data/../etc/passwd",
            "a//x.csv",
            "s3://bucket/out/x.csv",
            "s3://other/in/x.csv",
            "s3://bucket/in/../out/x.csv",
            "",
        ] {
            assert!(matches!(storage.resolve(&spec, file(path)), Err(SourceError::NotOfSource { .. })), "{path}");
        }
        assert!(storage.resolve(&spec, file("a/x.csv")).is_ok());
        let remote = storage.resolve(&spec, file("s3://bucket/in/x.csv")).unwrap();
        assert!(matches!(remote.location, FileAccess::Remote { source, .. } if source == spec.name));
    }
}
