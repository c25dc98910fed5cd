//! Resolves references of a job file: keys and tokens of object stores.

use tidetable_job::{Job, Project, SettingValue, StorageSetting};
use tidetable_source::{Secret, Storage};
use tokio::runtime::Handle;

use crate::fault::error::{NoSecret, RunError};
use crate::fault::stop::Stop;
use crate::options::run_options::RunOptions;

/// The storage settings for the files of the job's sources.
///
/// # Errors
/// [`RunError::Secret`] if a variable or file that the job file refers to is missing.
pub(crate) fn storage(
    project: &Project,
    job: &Job,
    runtime: &Handle,
    options: &RunOptions,
) -> Result<Storage, RunError> {
    source_storage(project, job, runtime, &options.stop).map(|storage| storage.with_clock(options.clock))
}

/// The storage of the files of the job's sources, with its settings, until `stop` is asked for.
///
/// # Errors
/// [`RunError::Secret`] if a variable or file that the job file refers to is missing.
pub fn source_storage(project: &Project, job: &Job, runtime: &Handle, stop: &Stop) -> Result<Storage, RunError> {
    let stop = stop.clone();
    let storage = Storage::new(project.dir.clone(), Some(runtime.clone()));
    let mut storage = storage.with_stop_check(move || stop.asked().is_none());

    for source in &job.sources {
        let mut settings = Vec::new();
        for setting in &source.storage {
            let value = value(project, &setting.value).map_err(|reason| RunError::Secret {
                source_name: source.spec.name.clone(),
                key: setting.key,
                reason,
            })?;
            settings.extend(options_of(setting, &value));
        }
        storage = storage.with_settings(&source.spec.name, settings);
    }
    Ok(storage)
}

/// Checks the places and settings of a job's sources: their clients are made, and nothing is asked of the stores. A source
/// with a setting that is missing here, as a variable of another machine, is left out.
///
/// # Errors
/// [`RunError::Files`] if no store can be opened so.
pub fn check_stores(project: &Project, job: &Job, runtime: &Handle) -> Result<(), RunError> {
    for source in &job.sources {
        let mut settings = Vec::new();
        let mut is_complete = true;
        for setting in &source.storage {
            match value(project, &setting.value) {
                Ok(value) => settings.extend(options_of(setting, &value)),
                Err(_) => is_complete = false,
            }
        }

        let storage =
            Storage::new(project.dir.clone(), Some(runtime.clone())).with_settings(&source.spec.name, settings);
        let checked = if is_complete { storage.check_stores(&source.spec) } else { Ok(()) };
        checked.map_err(|error| RunError::Files { source_name: source.spec.name.clone(), source: Box::new(error) })?;
    }
    Ok(())
}

/// The options of `object_store` that a setting stands for, with its value.
pub(crate) fn options_of(setting: &StorageSetting, value: &str) -> impl Iterator<Item = (String, Secret)> {
    setting.options.iter().map(move |option| ((*option).to_owned(), Secret::new(value.to_owned())))
}

/// The value of a setting.
///
/// # Errors
/// If a variable or file that it refers to is missing.
pub(crate) fn value(project: &Project, setting: &SettingValue) -> Result<String, NoSecret> {
    let (value, empty) = match setting {
        SettingValue::Plain(value) => return Ok(value.clone()),
        SettingValue::Env(name) => match std::env::var(name) {
            Ok(value) => (value, NoSecret::EmptyVariable { name: name.clone() }),
            Err(std::env::VarError::NotPresent) => return Err(NoSecret::NoVariable { name: name.clone() }),
            Err(std::env::VarError::NotUnicode(_)) => return Err(NoSecret::NotText { place: name.clone() }),
        },
        SettingValue::File(path) => {
            let full = project.dir.join(path);
            let bytes = std::fs::read(&full).map_err(|source| NoSecret::File { path: full.clone(), source })?;
            // The error of a failed conversion would contain the secret.
            let Ok(text) = String::from_utf8(bytes) else {
                return Err(NoSecret::NotText { place: full.display().to_string() });
            };
            (text.trim_end_matches(['\r', '\n']).to_owned(), NoSecret::EmptyFile { path: full })
        }
    };
    if value.is_empty() { Err(empty) } else { Ok(value) }
}
