//! Reads where a job tells of its runs: `[hooks]`, `[metrics]` and `[lineage]`.

pub(crate) mod hooks;
pub(crate) mod lineage;

use std::path::PathBuf;

use crate::file::fields::{Fields, Reader};
use crate::file::keys::{JOB, METRICS};
use crate::file::problem::Mistake;
use crate::file::sections::reporting::hooks::{Hooks, hooks};

/// Where a job tells of its runs, even if the job file has mistakes elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reporting {
    /// Name of the job, or of its file if that cannot be read.
    pub job: String,
    /// The commands and the heartbeat of the job.
    pub hooks: Hooks,
    /// The file of its metrics, relative to the project; `None` without `[metrics]`.
    pub metrics: Option<PathBuf>,
}

impl Reporting {
    /// Reads it from a job file that may have mistakes elsewhere. If that is not TOML, the sections `[hooks]` and `[metrics]`
    /// are read by themselves, and the name is `file_name`, that of the file.
    pub fn alone(text: &str, file_name: &str) -> Option<Self> {
        Self::read(text, file_name).or_else(|| {
            let sections: Vec<&str> = ["[hooks]", "[metrics]"].iter().filter_map(|name| section(text, name)).collect();
            Self::read(&sections.concat(), file_name).filter(|_| !sections.is_empty())
        })
    }

    fn read(text: &str, file_name: &str) -> Option<Self> {
        let mut reader = Reader::new(text);
        let table = reader.parse()?;
        let fields = Fields::of_table(&mut reader, &JOB, &table, 0..0);
        let job = fields.text(&reader, "name").map_or_else(|| file_name.to_owned(), |name| name.owned());
        Some(Self { job, hooks: hooks(&mut reader, &fields), metrics: metrics(&mut reader, &fields) })
    }
}

/// The lines of a section from its heading to the next one.
fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let mut begin = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match begin {
            None if line.trim_start().starts_with(heading) => begin = Some(at),
            Some(begin) if line.trim_start().starts_with('[') => return text.get(begin..at),
            _ => {}
        }
        at += line.len();
    }
    text.get(begin?..)
}

/// Reads `[metrics]`: the path of the metrics file.
pub(crate) fn metrics(reader: &mut Reader<'_>, job: &Fields<'_>) -> Option<PathBuf> {
    let value = job.value("metrics")?;
    let fields = Fields::of_value(reader, &METRICS, value, job.key_at("metrics"))?;
    let file = fields.required_text(reader, "file")?;
    let path = PathBuf::from(reader.path("file", &file, "a file of metrics")?);
    if path.file_name().is_none() || file.value.ends_with('/') {
        reader.refuse(file.at.clone(), Mistake::NoFileName { value: file.owned() });
        return None;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_read_beside_a_syntax_error() {
        let hooks_in = |text: &str| Reporting::alone(text, "file").map(|found| (found.job, found.hooks.commands.len()));
        let section = "[hooks]\nerror = [\n  \"./notify.sh\",\n]\nheartbeat = \"https://h/x\"\n";
        let found = Some(("file".to_owned(), 1));
        assert_eq!(hooks_in(&format!("name = j\n{section}")), found);
        assert_eq!(hooks_in(&format!("<<<<<<< ours\n{section}[sources.s\n")), found);
        assert_eq!(hooks_in(&format!("{section}\n[tables.T]\nrow_key = \"\n")), found);
        assert_eq!(hooks_in(section), found, "without a name");
        assert_eq!(hooks_in(&format!("name = \"j\"\n{section}")), Some(("j".to_owned(), 1)));
        for broken in ["name = j\n", "name = j\n[hooks]\nerror = [\n[sources]\n", "not TOML at all"] {
            assert_eq!(hooks_in(broken), None, "{broken}");
        }
        let metrics = Reporting::alone(&format!("<<<<<<< ours\n{section}[metrics]\nfile = \"m.prom\"\n"), "file");
        assert_eq!(metrics.and_then(|found| found.metrics), Some(PathBuf::from("m.prom")));
    }
}
