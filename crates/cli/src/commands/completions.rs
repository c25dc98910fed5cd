//! `tidetable completions`: shell scripts that call `tidetable complete`, which returns candidates, including names of
//! jobs, tables, exports, parts and runs.

use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};
use tidetable_job::{Job, Project};
use tidetable_runner::open_store;
use tidetable_runner::record::Runs;
use tidetable_source::Location;
use tidetable_store::Store;
use tidetable_store::published::Published;

use crate::args::{self, Complete, Completions, Man, Shell};
use crate::error::CliError;
use crate::output::stdout;

// Without candidates, each shell completes file names. Bash cuts words at colons and equals signs, and puts a candidate in
// the place of the last piece.
const BASH: &str = r#"_tidetable() {
    local words=() word joins= at
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ ${#words[@]} -gt 0 && ( $word == [:=] || $joins ) ]]; then words[-1]+=$word; else words+=("$word"); fi
        if [[ $word == [:=] ]]; then joins=1; else joins=; fi
    done
    local last=${COMP_WORDS[COMP_CWORD]} IFS=$'\n'
    [[ $last == [:=] ]] && last=
    local before=${words[-1]%"$last"}
    COMPREPLY=($(tidetable complete -- "${words[@]}" 2>/dev/null))
    COMPREPLY=("${COMPREPLY[@]#"$before"}")
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
    for candidate in Line::of(&command, before).candidates(typed) {
        writeln!(out, "{candidate}")?;
    }
    out.flush()?;
    Ok(())
}

/// The words before the one that is completed.
struct Line<'c> {
    command: &'c Command,
    /// Words that are no options and no commands.
    positionals: Vec<&'c str>,
    /// The option whose value is completed.
    awaits: Option<&'c Arg>,
    /// The values of `-C` and `--root`.
    folder: PathBuf,
    root: Option<&'c str>,
}

impl<'c> Line<'c> {
    fn of(root: &'c Command, before: &'c [String]) -> Self {
        let mut line =
            Line { command: root, positionals: Vec::new(), awaits: None, folder: PathBuf::new(), root: None };
        for word in before {
            if let Some(arg) = line.awaits.take() {
                line.note(arg, word);
            } else if let Some((arg, value)) = option(line.command, word) {
                match value {
                    Some(value) => line.note(arg, value),
                    None if takes_value(arg) => line.awaits = Some(arg),
                    None => {}
                }
            } else if let Some(sub) = line.command.find_subcommand(word) {
                line.command = sub;
            } else if !word.starts_with('-') {
                line.positionals.push(word);
            }
        }
        line
    }

    /// Notes the value of an option, where names depend on it.
    fn note(&mut self, arg: &Arg, value: &'c str) {
        match arg.get_id().as_str() {
            // As for each command: a folder is relative to the one before.
            "folder" => self.folder.push(value),
            "root" => self.root = Some(value),
            _ => {}
        }
    }

    /// The candidates for `typed`.
    fn candidates(&self, typed: &str) -> Vec<String> {
        if let Some(arg) = self.awaits {
            return self.matching(arg, "", typed);
        }
        if typed.starts_with('-') {
            // `--option=value` is one word.
            if let Some((arg, Some(value))) = option(self.command, typed) {
                return self.matching(arg, typed.strip_suffix(value).unwrap_or_default(), value);
            }
            let visible = self.command.get_arguments().filter(|arg| !arg.is_hide_set());
            return visible.filter_map(name_of).filter(|name| name.starts_with(typed)).collect();
        }
        if self.command.has_subcommands() {
            let visible = self.command.get_subcommands().filter(|sub| !sub.is_hide_set());
            let names = visible.map(|sub| sub.get_name().to_owned());
            return names.filter(|name| name.starts_with(typed)).collect();
        }
        match self.command.get_positionals().nth(self.positionals.len()) {
            // The name of a new job has no candidates.
            Some(arg) if self.command.get_name() != "new" => self.matching(arg, "", typed),
            _ => Vec::new(),
        }
    }

    /// The values of an argument that begin with `typed`, after `before`, which is part of the word.
    fn matching(&self, arg: &Arg, before: &str, typed: &str) -> Vec<String> {
        // Of a list the last element is completed.
        let start = arg.get_value_delimiter().and_then(|delimiter| typed.rfind(delimiter)).map_or(0, |at| at + 1);
        let (list, typed) = typed.split_at(start);
        let values = self.values(arg).into_iter().filter(|value| value.starts_with(typed));
        values.map(|value| format!("{before}{list}{value}")).collect()
    }

    /// The values or names that an argument takes; empty for files and others.
    fn values(&self, arg: &Arg) -> Vec<String> {
        let words: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
        if !words.is_empty() {
            return words;
        }

        match (self.command.get_name(), arg.get_id().as_str()) {
            (_, "job" | "jobs" | "due" | "into") => self.jobs(),
            (_, "table") => self.of_store(|store| store.tables().unwrap_or_default()),
            ("rejects", "run") => self.of_store(runs),
            // Also a job, for its last run.
            (_, "run") => self.of_store(runs).into_iter().chain(self.jobs()).collect(),
            ("lineage", "name") => self.of_store(published),
            (_, "select") => self.selected(),
            _ => Vec::new(),
        }
    }

    /// The jobs of the project; none if there is no project.
    fn jobs(&self) -> Vec<String> {
        self.project().map(|project| project.jobs()).unwrap_or_default()
    }

    /// Names in the store of the project; none if it cannot be opened.
    fn of_store(&self, names: impl Fn(&Store) -> Vec<String>) -> Vec<String> {
        let store = self.project().and_then(|project| open_store(&project).ok());
        store.map(|store| names(&store)).unwrap_or_default()
    }

    /// The tables and exports of the job of the line, or of all jobs, as `--select` names them.
    fn selected(&self) -> Vec<String> {
        let Some(project) = self.project() else { return Vec::new() };
        let jobs: Vec<String> = match self.positionals.first() {
            Some(job) => vec![(*job).to_owned()],
            None => project.jobs(),
        };
        let mut names = Vec::new();
        for job in jobs.iter().filter_map(|job| Job::load(&project, job).ok()) {
            names.extend(job.tables.iter().map(|table| format!("table:{}", table.spec.name)));
            names.extend(job.exports.iter().map(|export| format!("export:{}", export.name)));
        }
        names.sort();
        names.dedup();
        names
    }

    /// The project of the folder of the line, or one with a root only. Errors are ignored: there are no candidates then.
    fn project(&self) -> Option<Project> {
        let folder = std::env::current_dir().ok()?.join(&self.folder);
        let environment = std::env::var_os("TIDETABLE_ROOT").and_then(|root| Location::of(&root).ok());
        let given = self.root.and_then(|root| Location::parse(root).ok()).or(environment);
        match (Project::find(&folder), given.filter(|root| !root.is_empty())) {
            (Ok(project), given) => Some(project.with_root(given.as_ref())),
            (Err(_), Some(root)) => Some(Project::of_store(&folder, &root)),
            (Err(_), None) => None,
        }
    }
}

/// Names of runs, the newest first, after the word for it.
fn runs(store: &Store) -> Vec<String> {
    let mut names = Runs::of(store.blobs().as_ref()).names().unwrap_or_default();
    names.reverse();
    if !names.is_empty() {
        names.insert(0, "last".to_owned());
    }
    names
}

/// Tables, exports, and the published parts of these.
fn published(store: &Store) -> Vec<String> {
    let mut names = store.tables().unwrap_or_default();
    let (lists, _) = Published::readable(store.blobs().as_ref()).unwrap_or_default();
    for list in lists {
        names.extend(list.parts.into_values().map(|part| part.folder));
        names.push(list.name);
    }
    names.sort();
    names.dedup();
    names
}

/// How an option is written, long if it can be.
fn name_of(arg: &Arg) -> Option<String> {
    match arg.get_long() {
        Some(long) => Some(format!("--{long}")),
        None => arg.get_short().map(|short| format!("-{short}")),
    }
}

/// The option of a word such as `--from`, `--from=X`, `-c` or `-cX`, and its value if the word has it.
fn option<'c, 'w>(command: &'c Command, word: &'w str) -> Option<(&'c Arg, Option<&'w str>)> {
    let mut options = command.get_arguments().filter(|arg| !arg.is_positional());
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        return options.find(|arg| arg.get_long() == Some(name)).map(|arg| (arg, value));
    }
    let letters = word.strip_prefix('-')?;
    let short = letters.chars().next()?;
    let arg = options.find(|arg| arg.get_short() == Some(short))?;
    let rest = letters.get(short.len_utf8()..).filter(|rest| !rest.is_empty() && takes_value(arg));
    Some((arg, rest))
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

/// Prints the manual page of the whole command, or writes those of all commands.
pub fn man(asked: &Man) -> Result<(), CliError> {
    let command = args::command().disable_help_subcommand(true);
    let mut out = stdout();
    match &asked.dir {
        None => clap_mangen::Man::new(command).render(&mut out)?,
        Some(dir) => {
            let written = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
            written.map_err(|source| CliError::Folder { path: dir.display().to_string(), source })?;
            writeln!(out, "wrote tidetable.1 and a page for each command into {}", dir.display())?;
        }
    }
    out.flush()?;
    Ok(())
}
