//! `tidetable completions`: shell scripts that call `tidetable complete`, which returns candidates, including names of
//! jobs and tables.

use std::io::Write;

use clap::{Arg, ArgAction, Command};
use tidetable_runner::{Project, open_store};
use tidetable_source::Location;

use crate::args::{self, Complete, Completions, Man, Shell};
use crate::error::CliError;
use crate::output::stdout;

// Without candidates, each shell completes file names.
const BASH: &str = r#"_tidetable() {
    local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
    local IFS=$'\n'
    COMPREPLY=($(tidetable complete -- "${words[@]}" 2>/dev/null))
}
complete -o bashdefault -o default -F _tidetable tidetable
"#;
const ZSH: &str = r#"#compdef tidetable
_tidetable() {
    local -a found
    found=("${(@f)$(tidetable complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
if [[ "${funcstack[1]}" == _tidetable ]]; then _tidetable "$@"; else compdef _tidetable tidetable; fi
"#;
const FISH: &str = r#"function __tidetable_complete
    set -l words (commandline -opc)
    tidetable complete -- $words[2..-1] (commandline -ct) 2>/dev/null
end
complete -c tidetable -a '(__tidetable_complete)'
"#;

/// Prints the script for a shell.
pub fn completions(asked: &Completions) -> Result<(), CliError> {
    let script = match asked.shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
    };
    let mut out = stdout();
    out.write_all(script.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Prints the candidates for the last word, one per line.
pub fn complete(asked: &Complete) -> Result<(), CliError> {
    let mut command = args::command();
    command.build();
    let (typed, before) = asked.words.split_last().map_or(("", [].as_slice()), |(typed, before)| (typed, before));
    let mut out = stdout();
    for candidate in candidates(&command, before, typed) {
        writeln!(out, "{candidate}")?;
    }
    out.flush()?;
    Ok(())
}

/// The candidates for `typed` after the words `before`.
fn candidates(root: &Command, before: &[String], typed: &str) -> Vec<String> {
    let mut command = root;
    let mut places = 0;
    let mut awaits: Option<&Arg> = None;
    for word in before {
        if awaits.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            awaits = option(command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        } else if let Some(sub) = command.find_subcommand(word) {
            command = sub;
        } else {
            places += 1;
        }
    }
    let all = if let Some(arg) = awaits {
        values(arg)
    } else if typed.starts_with('-') {
        let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
        visible.filter_map(|arg| arg.get_long().map(|long| format!("--{long}"))).collect()
    } else if command.has_subcommands() {
        let visible = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        visible.map(|sub| sub.get_name().to_owned()).collect()
    } else {
        match command.get_positionals().nth(places) {
            // The name of a new job has no candidates.
            Some(arg) if command.get_name() != "new" => values(arg),
            _ => Vec::new(),
        }
    };
    all.into_iter().filter(|candidate| candidate.starts_with(typed)).collect()
}

/// The option for a word such as `--from` or `-c`.
fn option<'c>(command: &'c Command, word: &str) -> Option<&'c Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|arg| {
        let long = arg.get_long().is_some_and(|long| name.strip_prefix("--") == Some(long));
        let short = arg.get_short().is_some_and(|short| name.strip_prefix('-') == Some(short.to_string().as_str()));
        long || short
    })
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// The values or names that an argument takes; empty for files and others.
fn values(arg: &Arg) -> Vec<String> {
    let words: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    match arg.get_id().as_str() {
        _ if !words.is_empty() => words,
        "job" | "due" => here().map(|project| project.jobs()).unwrap_or_default(),
        "table" => {
            let store = here().and_then(|project| open_store(&project).ok());
            store.and_then(|store| store.tables().ok()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The project of the current directory. Errors are ignored: there are no candidates then.
fn here() -> Option<Project> {
    let folder = std::env::current_dir().ok()?;
    let root = std::env::var_os("TIDETABLE_ROOT").and_then(|root| Location::of(&root).ok());
    Some(Project::find(&folder).ok()?.with_root(root.as_ref()))
}

/// Prints the manual page of the whole command, or writes those of all commands.
pub fn man(asked: &Man) -> Result<(), CliError> {
    let command = args::command().disable_help_subcommand(true);
    let mut out = stdout();
    match &asked.dir {
        None => clap_mangen::Man::new(command).render(&mut out)?,
        Some(dir) => {
            let failed = |source| CliError::Folder { path: dir.display().to_string(), source };
            std::fs::create_dir_all(dir).map_err(failed)?;
            clap_mangen::generate_to(command, dir).map_err(failed)?;
            writeln!(out, "wrote tidetable.1 and a page for each command into {}", dir.display())?;
        }
    }
    out.flush()?;
    Ok(())
}
