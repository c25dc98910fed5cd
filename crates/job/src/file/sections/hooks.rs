//! Reads `[hooks]` and `[metrics]`.

use std::path::PathBuf;
use std::time::Duration;

use tidetable_source::is_http;

use crate::file::fields::{Fields, Reader, Text};
use crate::file::keys::{HOOKS, JOB, METRICS};
use crate::file::problem::Mistake;
use crate::file::sections::storage::{SettingValue, elsewhere};

const TIMEOUT: Duration = Duration::from_secs(60);

/// Commands that follow a run, and a URL that is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// Kind, and the program with its arguments; at most one of each kind.
    pub commands: Vec<(HookKind, Vec<String>)>,
    /// Timeout of each command, after which it is killed.
    pub timeout: Duration,
    /// A URL requested after each run: as it is after a good run, with `/fail` appended otherwise.
    pub heartbeat: Option<SettingValue>,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { commands: Vec::new(), timeout: TIMEOUT, heartbeat: None }
    }
}

/// After which runs a hook runs. Exactly one of the first four fits each run that began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// All was done, without warnings.
    Success,
    /// All was done, but rows were rejected or a check of severity `warn` failed.
    Warning,
    /// The run failed, or parts of it are not published.
    Failure,
    /// The run was interrupted before all was done.
    Interrupt,
    /// Every run that began, after the other hooks.
    Finish,
    /// The run did not begin: invalid job file, or another run holds the lock.
    Error,
}

impl HookKind {
    /// All kinds, in the order in which they run.
    pub const ALL: [Self; 6] =
        [Self::Success, Self::Warning, Self::Failure, Self::Interrupt, Self::Finish, Self::Error];

    /// Key of the kind in `[hooks]` of the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Warning => "warning",
            Self::Failure => "failure",
            Self::Interrupt => "interrupt",
            Self::Finish => "finish",
            Self::Error => "error",
        }
    }
}

/// Reads `[hooks]`; without it there are no commands and no heartbeat.
pub(crate) fn hooks(reader: &mut Reader<'_>, job: &Fields<'_>) -> Hooks {
    let mut hooks = Hooks::default();
    let Some(value) = job.value("hooks") else { return hooks };
    let Some(fields) = Fields::of_value(reader, &HOOKS, value, job.key_at("hooks")) else { return hooks };

    for kind in HookKind::ALL {
        let words: Vec<String> = fields.texts(reader, kind.name()).iter().map(Text::owned).collect();
        if words.first().is_some_and(|program| !program.is_empty()) {
            hooks.commands.push((kind, words));
        } else if fields.value(kind.name()).is_some() {
            reader.refuse(fields.value_at(kind.name()), Mistake::NoProgram { key: kind.name() });
        }
    }

    if let Some(text) = fields.text(reader, "timeout") {
        match seconds(text.value) {
            Some(timeout) => hooks.timeout = timeout,
            None => reader.refuse(text.at.clone(), Mistake::Timeout { value: text.owned() }),
        }
    }

    hooks.heartbeat = fields.value("heartbeat").and_then(|value| match value.get_ref().as_str() {
        Some(url) if is_http(url) => Some(SettingValue::Plain(url.to_owned())),
        Some(_) => {
            reader.refuse(fields.value_at("heartbeat"), Mistake::NoUrl { key: "heartbeat" });
            None
        }
        None => elsewhere(reader, &fields, "heartbeat"),
    });
    hooks
}

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

/// Parses `90s`, `10m` or `1h`, at least one second.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let units = [('h', 3_600), ('m', 60), ('s', 1)];
    let (number, unit) = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u32>().ok())??;
    (number > 0).then(|| Duration::from_secs(u64::from(number) * unit))
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
