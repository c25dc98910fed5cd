//! Datasets by the names of OpenLineage: where they are, and what they are called there. See
//! <https://openlineage.io/docs/spec/naming>.

use std::path::{Component, Path, PathBuf};

use serde::Serialize;
use tidetable_job::{Job, Project};
use tidetable_source::Split;

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
                let fixed = fixed_part(key);
                Self { namespace: base.to_owned(), name: if fixed.is_empty() { "/".to_owned() } else { fixed } }
            }
            Ok(Split::Path(path)) => Self::of_path(&project.dir.join(fixed_part(path))),
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
        let mut whole = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => {
                    whole.pop();
                }
                part => whole.push(part),
            }
        }
        Self { namespace: FILES.to_owned(), name: whole.display().to_string() }
    }
}

/// The folders of a pattern before its first wildcard; all of it without one.
fn fixed_part(pattern: &str) -> String {
    let is_fixed = |part: &&str| !part.contains(['*', '?', '[', '{']);
    let fixed = pattern.split('/').take_while(is_fixed).collect::<Vec<_>>().join("/");
    if fixed.is_empty() && pattern.starts_with('/') { "/".to_owned() } else { fixed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_named_by_what_is_fixed() {
        for (pattern, fixed) in [
            ("in/*.csv", "in"),
            ("in/site=*/day-?.parquet", "in"),
            ("*.csv", ""),
            ("/*.csv", "/"),
            ("/srv/plant/readings.csv", "/srv/plant/readings.csv"),
            ("raw/2024/{path.site}.csv", "raw/2024"),
        ] {
            assert_eq!(fixed_part(pattern), fixed, "{pattern}");
        }
        assert_eq!(Dataset::of_path(Path::new("/srv/plant/./in/../raw/")).name, "/srv/plant/raw");
    }
}
