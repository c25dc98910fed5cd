//! Reads `[hooks]`.

use std::time::Duration;

use tidetable_source::is_http;

use crate::file::fields::{Fields, Reader, Text};
use crate::file::keys::HOOKS;
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

/// Parses `90s`, `10m` or `1h`, at least one second.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    let units = [('h', 3_600), ('m', 60), ('s', 1)];
    let (number, unit) = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)))?;
    let number = number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse::<u32>().ok())??;
    (number > 0).then(|| Duration::from_secs(u64::from(number) * unit))
}
