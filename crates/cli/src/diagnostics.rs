//! Errors and messages on standard error: as text, at most a screen unless verbose; or as JSON, one object a
//! line.

use clap::error::{ContextKind, ContextValue};
use miette::Diagnostic;
use serde_json::{Value, json};
use tidetable_job::{JobError, JobFileError, ProjectError};
use tidetable_runner::without_passwords;

use crate::args::{Global, Log, command};
use crate::error::CliError;
use crate::log;

/// Mistakes of a job file shown with an excerpt; others take a line each.
const IN_FULL: usize = 2;
/// Mistakes with a line each.
const IN_A_LINE: usize = 8;
/// Bytes of an error that are shown.
const LONGEST: usize = 1500;

/// Prints an error to standard error.
pub fn print_error(global: &Global, error: CliError) {
    print_error_in(global, error, None);
}

/// Prints an error to standard error, with the root that it is about: the store names only paths inside.
pub fn print_error_in(global: &Global, error: CliError, root: Option<&str>) {
    match global.log {
        Log::Json => {
            for mut object in objects(&error, global.verbose) {
                if let (Some(root), Some(object)) = (root, object.as_object_mut()) {
                    object.insert("root".to_owned(), root.into());
                }
                log::write_object(object);
            }
        }
        Log::Text => {
            let mut text = render(error, global.verbose);
            if let Some(root) = root {
                let said = text.trim_end();
                // An error of one line stays one: a quiet run in cron is read line by line.
                text = match said.contains('\n') {
                    true => format!("{said}\n  in the root {root}\n"),
                    false => format!("{said} (in the root {root})\n"),
                };
            }
            log::write_text(&text);
        }
    }
}

/// Prints a message to standard error; with `--quiet` only warnings.
pub fn print_message(global: &Global, text: &str) {
    log::print_message(global.log, global.quiet, text);
}

/// Prints a usage error and exits, or prints the requested help.
pub fn refuse_usage(mut error: clap::Error) -> ! {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    name_as_given(&mut error, &words);
    hide_passwords(&mut error);
    let json = words.iter().any(|word| word == "--log=json")
        || words.windows(2).any(|pair| matches!(pair, [key, value] if key == "--log" && value == "json"));
    let text = error.to_string();
    if !json && error.use_stderr() && log::is_wider_than_screen(&text) {
        log::write_text(text.trim_end());
        std::process::exit(error.exit_code())
    }
    if !(json && error.use_stderr()) {
        error.exit()
    }
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    log::write_object(json!({ "level": "error", "message": text }));
    std::process::exit(error.exit_code())
}

/// Names an option by its short form in an error of its value, if that is the one of the command line: clap names the long one.
fn name_as_given(error: &mut clap::Error, words: &[String]) {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else { return };
    let (option, value) = shown.split_once(' ').unwrap_or((shown.as_str(), ""));
    let Some(long) = option.strip_prefix("--") else { return };
    if words.iter().any(|word| word.split('=').next() == Some(option)) {
        return;
    }

    let command = command();
    let mut options = command.get_subcommands().chain([&command]).flat_map(clap::Command::get_arguments);
    let short = options.find_map(|argument| argument.get_short().filter(|_| argument.get_long() == Some(long)));
    if let Some(short) = short {
        let given = format!("-{short} {value}").trim_end().to_owned();
        error.insert(ContextKind::InvalidArg, ContextValue::String(given));
    }
}

/// Hides the password of a URL that was given where it is not taken.
fn hide_passwords(error: &mut clap::Error) {
    for kind in [ContextKind::InvalidValue, ContextKind::InvalidArg] {
        if let Some(ContextValue::String(value)) = error.get(kind) {
            let hidden = without_passwords(value).into_owned();
            error.insert(kind, ContextValue::String(hidden));
        }
    }
}

/// An error as JSON objects: for a job file, one for each mistake.
fn objects(error: &CliError, verbose: bool) -> Vec<Value> {
    if let Some(file) = file_of(error) {
        let mistakes = file.problems().iter().map(|problem| {
            let (line, column) = problem.line_column(file.text());
            json!({
                "level": "error",
                "message": problem.to_string(),
                "help": problem.advice(),
                "file": file.path().display().to_string(),
                "line": line,
                "column": column,
            })
        });
        return mistakes.collect();
    }

    let mut object = json!({ "level": "error", "message": error.to_string() });
    let help = error.help().map(|help| help.to_string());
    let help = help.or_else(|| error.suggestion().map(|suggestion| format!("did you mean {suggestion}?")));
    if let (Some(help), Some(object)) = (help, object.as_object_mut()) {
        object.insert("help".to_owned(), Value::String(help));
    }

    if let (true, Some(object)) = (verbose, object.as_object_mut()) {
        object.insert("causes".to_owned(), causes(error).into());
    }

    vec![object]
}

fn render(error: CliError, verbose: bool) -> String {
    if matches!(error, CliError::Job(_) | CliError::Project(_)) {
        return diagnostic(error, verbose);
    }
    let text = error.to_string();
    let mut shown = match text.char_indices().nth(LONGEST).filter(|_| !verbose) {
        Some((cut, _)) => format!("error: {} ..\n  --verbose shows all of it\n", text.get(..cut).unwrap_or(&text)),
        None => format!("error: {text}\n"),
    };
    if let Some(suggestion) = error.suggestion() {
        shown.push_str(&format!("  did you mean {suggestion}?\n"));
    }
    if verbose {
        causes(&error).iter().for_each(|cause| shown.push_str(&format!("  caused by: {cause}\n")));
    }
    shown
}

/// The causes of an error, the nearest first.
fn causes(error: &CliError) -> Vec<String> {
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        causes.push(cause.to_string());
        next = cause.source();
    }
    causes
}

/// A mistake with an excerpt.
fn diagnostic(mut error: CliError, verbose: bool) -> String {
    let mut rest = Vec::new();
    if let Some(file) = file_mut(&mut error).filter(|file| !verbose && file.problems().len() > IN_FULL + 1) {
        let path = file.path().display().to_string();
        for problem in file.keep_first(IN_FULL) {
            let (line, column) = problem.line_column(file.text());
            rest.push(format!("  {path}:{line}:{column}: {problem}\n"));
        }
    }

    let mut text = format!("{:?}", miette::Report::new(error));
    if rest.is_empty() {
        return text;
    }

    if !text.ends_with('\n') {
        text.push('\n');
    }

    let more = rest.len().saturating_sub(IN_A_LINE);
    text.extend(rest.into_iter().take(IN_A_LINE));
    if more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    text.push_str("  --verbose shows the lines and the advice of all\n");
    text
}

fn file_of(error: &CliError) -> Option<&JobFileError> {
    match error {
        CliError::Job(JobError::File(file)) | CliError::Project(ProjectError::File(file)) => Some(file),
        _ => None,
    }
}

fn file_mut(error: &mut CliError) -> Option<&mut JobFileError> {
    match error {
        CliError::Job(JobError::File(file)) | CliError::Project(ProjectError::File(file)) => Some(file),
        _ => None,
    }
}
