//! Reads `[hooks]` and `[metrics]`: what follows a run.

use std::path::PathBuf;
use std::time::Duration;

use super::fields::{Fields, Reader, Text};
use super::keys::{HOOKS, METRICS};
use super::problem::Mistake;

/// How long a hook may take where the file does not say.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Commands that are run after a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hooks {
    /// When, and the program with its arguments; at most one of each kind.
    pub commands: Vec<(HookKind, Vec<String>)>,
    /// How long each of them may take.
    pub timeout: Duration,
}

impl Default for Hooks {
    fn default() -> Self {
        Self { commands: Vec::new(), timeout: TIMEOUT }
    }
}

/// After which runs a hook is run. Of the first four one fits each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookKind {
    /// All was done, and nothing is to be told.
    Success,
    /// All was done, but rows were rejected or a check that only warns failed.
    Warning,
    /// It failed, or days are not published.
    Failure,
    /// It was asked to stop.
    Interrupt,
    /// Every run, after the others.
    Finish,
}

impl HookKind {
    /// In the order in which they are run.
    pub const ALL: [Self; 5] = [Self::Success, Self::Warning, Self::Failure, Self::Interrupt, Self::Finish];

    /// Its key in the job file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Warning => "warning",
            Self::Failure => "failure",
            Self::Interrupt => "interrupt",
            Self::Finish => "finish",
        }
    }
}

/// Reads `[hooks]`; none without it.
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
    hooks
}

/// Reads `[metrics]`: the file that holds the figures of the last run.
pub(crate) fn metrics(reader: &mut Reader<'_>, job: &Fields<'_>) -> Option<PathBuf> {
    let value = job.value("metrics")?;
    let fields = Fields::of_value(reader, &METRICS, value, job.key_at("metrics"))?;
    let file = fields.required_text(reader, "file")?;
    let path = PathBuf::from(file.value);
    if path.file_name().is_none() || file.value.contains("://") || file.value.ends_with('/') {
        reader.refuse(file.at.clone(), Mistake::NoFileName { value: file.owned() });
        return None;
    }
    Some(path)
}

/// `90s`, `10m` or `1h`, and no less than a second.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let units = [('h', 3_600), ('m', 60), ('s', 1)];
    let (number, unit) = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u32>().ok())??;
    (number > 0).then(|| Duration::from_secs(u64::from(number) * unit))
}
