//! Commands that messages name. Whoever reads one pastes it: it must be right, and look at the same store.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Commands that report in sentences on standard output; that of others is data or a document.
const REPORTS: [&str; 7] = ["delete", "doctor", "history", "repair", "retry", "run", "verify"];

/// Asserts of each command that messages of `command` name that it is one, and that it has the `-C` and `--root` of `command`.
pub fn assert_can_be_pasted(command: &Command, stdout: &str, stderr: &str) {
    let args: Vec<String> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let is_report = args.iter().any(|arg| REPORTS.contains(&arg.as_str()));
    let mut named = named_commands(stderr);
    if is_report {
        named.extend(named_commands(stdout));
    }

    for hint in named {
        let words = words(&hint);
        for option in ["-C", "--root"] {
            let at = args.iter().position(|arg| arg == option);
            let given = at.and_then(|at| args.get(at + 1)).filter(|given| !given.is_empty());
            let is_there =
                given.is_none_or(|given| words.windows(2).any(|pair| pair[0] == option && pair[1] == *given));
            assert!(is_there, "{args:?}: {option} is missing in {hint}");
        }
        assert_is_command(command, &words, &hint);
    }
}

/// The commands that a text names in backticks.
pub fn named_commands(text: &str) -> Vec<String> {
    let spans = text.split("`tidetable ").skip(1).filter_map(|rest| rest.split_once('`'));
    let commands = spans.map(|(command, _)| command.replace("\\\n", ""));
    commands.filter(|command| !command.starts_with("--version") && !command.starts_with("--help")).collect()
}

/// The words of a command as a shell reads them.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' if !is_quoted => words.last_mut().unwrap().extend(chars.next()),
            '\'' => is_quoted = !is_quoted,
            ' ' | '\n' if !is_quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Asserts that the command line of a hint is known: its command, and its options.
fn assert_is_command(command: &Command, words: &[String], hint: &str) {
    static KNOWN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let form: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|word| word.starts_with(|c: char| c == '-' || c.is_lowercase()))
        .collect();
    if !KNOWN.lock().unwrap_or_else(PoisonError::into_inner).insert(form.join(" ")) {
        return;
    }

    let asked = Command::new(command.get_program()).args(words).arg("--help").output().unwrap();
    assert!(asked.status.success(), "{hint}: {}", String::from_utf8_lossy(&asked.stderr));
}
