//! Datasets by the names of OpenLineage: where they are, and what they are called there. See
//! <https://openlineage.io/docs/spec/naming>.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use tidetable_job::{Job, Project};
use tidetable_source::{Split, literal_folders};

/// The namespace of files of this machine.
const FILES: &str = "file";

/// A dataset: a folder of inputs, a table or an export.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Dataset {
    /// Where it is: `file`, or a bucket such as `s3://plant`.
    namespace: String,
    /// Its path there, absolute on this machine.
    name: String,
}

impl Dataset {
    /// The folder or the prefix, or the file, that a pattern of `files` names before its first wildcard.
    pub(super) fn of_files(project: &Project, pattern: &str) -> Self {
        match Split::of(pattern) {
            Ok(Split::Bucket { base, key }) => {
                let name = literal_folders(key).trim_end_matches('/');
                Self { namespace: base.to_owned(), name: if name.is_empty() { "/" } else { name }.to_owned() }
            }
            Ok(Split::Path(path)) => Self::of_path(&project.dir.join(literal_folders(path))),
            Err(_) => Self::of_path(&project.dir.join(pattern)),
        }
    }

    /// What lies at `path` in the root of a project, such as `tables/T`.
    fn in_root(project: &Project, path: &str) -> Self {
        match Split::of(&project.root) {
            Ok(Split::Bucket { base, key: "" }) => Self { namespace: base.to_owned(), name: path.to_owned() },
            Ok(Split::Bucket { base, key }) => {
                Self { namespace: base.to_owned(), name: format!("{}/{path}", key.trim_end_matches('/')) }
            }
            _ => Self::of_path(&Path::new(&project.root).join(path)),
        }
    }

    /// A table of the root.
    pub(super) fn of_table(project: &Project, table: &str) -> Self {
        Self::in_root(project, &format!("tables/{table}"))
    }

    /// An export of the root: all of its parts.
    pub(super) fn of_export(project: &Project, export: &str) -> Self {
        Self::in_root(project, &format!("exports/{export}"))
    }

    /// What a check is about: a table of the job, or else an export.
    pub(super) fn of_checked(project: &Project, job: &Job, on: &str) -> Self {
        match job.tables.iter().any(|table| table.spec.name == on) {
            true => Self::of_table(project, on),
            false => Self::of_export(project, on),
        }
    }

    /// A path without `.`, `..` and a slash at its end, so that one place has one name.
    fn of_path(path: &Path) -> Self {
        let mut normal = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    normal.pop();
                }
                part => normal.push(part),
            }
        }
        Self { namespace: FILES.to_owned(), name: normal.display().to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_one_name() {
        for path in ["/srv/plant/raw", "/srv/plant/./in/../raw/", "/srv//plant/raw"] {
            assert_eq!(Dataset::of_path(Path::new(path)).name, "/srv/plant/raw", "{path}");
        }
    }
}
