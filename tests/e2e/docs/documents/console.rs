//! Runs the commands of a page in order, in a copy of the repository's jobs and sample data, and compares their output.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{copy_directory, read, updating};
use crate::harness::{Project, repository};

/// An instruction of a page to its test, with the number of its first line.
#[derive(Debug, PartialEq, Eq)]
enum Item {
    /// `<!-- setup`: lines of a shell that the reader does not see.
    Setup(usize, String),
    /// `<!-- file PATH -->` before a block: its text is written into this file.
    File(String, String),
    /// `<!-- append to PATH -->` before a block: its text is appended to this file.
    Append(String, String),
    /// `<!-- part of PATH -->` before a block: its text is a part of this file.
    Part(String, String),
    /// A command after `$ `, and the lines of its output with the place of the first.
    Command(usize, String, Vec<String>),
}

/// The items of a page, in order.
fn items(text: &str) -> Vec<Item> {
    let lines: Vec<&str> = text.lines().collect();
    let (mut items, mut at, mut directive) = (Vec::new(), 0, None);
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        if line == "<!-- setup" {
            let length = lines[at..].iter().position(|line| *line == "-->").expect("the end of a setup");
            items.push(Item::Setup(at, lines[at..at + length].join("\n")));
            at += length + 1;
        } else if let Some(inside) = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->")) {
            directive = Some(inside.to_owned());
        } else if let Some(language) = line.strip_prefix("```") {
            let length = lines[at..].iter().position(|line| *line == "```").expect("the end of a block");
            let block = &lines[at..at + length];
            match directive.take() {
                Some(inside) if inside.starts_with("file ") => {
                    items.push(Item::File(inside["file ".len()..].to_owned(), block.join("\n") + "\n"));
                }
                Some(inside) if inside.starts_with("append to ") => {
                    items.push(Item::Append(inside["append to ".len()..].to_owned(), block.join("\n") + "\n"));
                }
                Some(inside) if inside.starts_with("part of ") => {
                    items.push(Item::Part(inside["part of ".len()..].to_owned(), block.join("\n")));
                }
                _ if language == "console" => commands(at, block, &mut items),
                _ => {}
            }
            at += length + 1;
        } else if !line.is_empty() {
            directive = None;
        }
    }
    items
}

/// The commands of a block that begins at a line.
fn commands(first: usize, block: &[&str], items: &mut Vec<Item>) {
    for (offset, line) in block.iter().enumerate() {
        if let Some(command) = line.strip_prefix("$ ") {
            items.push(Item::Command(first + offset + 1, command.to_owned(), Vec::new()));
        } else if let Some(Item::Command(at, command, output)) = items.last_mut() {
            match line.strip_prefix("> ") {
                Some(more) if output.is_empty() => {
                    command.push('\n');
                    command.push_str(more);
                    *at += 1;
                }
                _ => output.push((*line).to_owned()),
            }
        }
    }
}

/// Lines of `sh` blocks that call the command, which only a `console` block may, or one after `<!-- not run: REASON -->`.
pub(super) fn commands_not_run(text: &str) -> Vec<&str> {
    let (mut found, mut inside, mut before) = (Vec::new(), false, "");
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh" && !before.starts_with("<!-- not run: ");
        } else if inside && ["tidetable ", "just sql ", "just tidetable "].iter().any(|word| line.starts_with(word)) {
            found.push(line);
        }
        before = line;
    }
    found
}

/// A line without what varies between runs: names of runs, sizes of files, seconds, instants with a fraction and their
/// days, widths.
fn comparable(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    let timed = line.starts_with("took ");
    let mut day = None;
    for word in line.split_whitespace() {
        let bare = word.trim_end_matches([',', ';', ':', '.', ')']);
        let number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        let size = ["B", "KiB", "MiB", "GiB", "s"].contains(&bare);
        let is_instant = bare.len() >= 24 && bare.ends_with('Z') && bare.get(19..20) == Some(".");
        if size && words.last().is_some_and(|last| last.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')) {
            *words.last_mut().unwrap() = "N".to_owned();
            words.push("UNIT".to_owned());
        } else if timed && number {
            words.push("N".to_owned());
        } else if is_instant {
            day = Some(&bare[..10]);
            words.push("INSTANT".to_owned());
        } else if day == Some(bare) {
            words.push("DAY".to_owned());
        } else {
            words.push(without_runs(&without_width(word)));
        }
    }
    words.join(" ")
}

/// A word in which repeated characters of a table's border stand once: widths follow the contents.
fn without_width(word: &str) -> String {
    let mut last = None;
    let mut word = word.to_owned();
    word.retain(|character| {
        let again = last == Some(character) && ['─', '═', '-'].contains(&character);
        last = Some(character);
        !again
    });
    word
}

/// A word in which `RUN` stands for the names of runs: 26 digits and capitals that begin with a time.
fn without_runs(word: &str) -> String {
    let is_run = |part: &&str| {
        part.starts_with("01") && part.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    let (mut text, mut at) = (String::new(), 0);
    while let Some(character) = word[at..].chars().next() {
        if word.get(at..at + 26).as_ref().is_some_and(is_run) {
            text.push_str("RUN");
            at += 26;
        } else {
            text.push(character);
            at += character.len_utf8();
        }
    }
    text
}

/// Whether a line is as documented, where `...` stands for any text.
fn line_fits(pattern: &str, line: &str) -> bool {
    let parts: Vec<&str> = pattern.split("...").collect();
    let [first, middle @ .., last] = parts.as_slice() else { return pattern == line };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Whether lines are as documented, where a line of `...` stands for any lines.
fn fits(pattern: &[String], lines: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => (0..=lines.len()).any(|at| fits(rest, &lines[at..])),
        Some((first, rest)) => {
            lines.split_first().is_some_and(|(line, after)| line_fits(first, line) && fits(rest, after))
        }
    }
}

/// A directory with the jobs and sample data of the repository, `tidetable` and the recipes of `just` that call it.
struct Shell {
    project: Project,
    directory: PathBuf,
    code: i32,
}

/// `just run`, `just sql` and `just tidetable` without building anything.
const JUST: &str = "#!/bin/sh\ncase \"$1\" in\nrun | sql) exec tidetable \"$@\" ;;\ntidetable) shift; exec tidetable \"$@\" ;;\n\
                    *) echo \"just $1 is not for tests\" >&2; exit 1 ;;\nesac\n";

impl Shell {
    fn new() -> Self {
        let project = Project::empty();
        fs::remove_file(project.path("tidetable.toml")).unwrap();
        let directory = project.path("meters");
        for name in ["jobs", "sample-data"] {
            copy_directory(&repository().join(name), &directory.join(name));
        }
        fs::copy(repository().join("tidetable.toml"), directory.join("tidetable.toml")).unwrap();
        project.write("bin/just", JUST);
        fs::set_permissions(project.path("bin/just"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink(project.command(&[]).get_program(), project.path("bin/tidetable")).unwrap();
        Self { project, directory, code: 0 }
    }

    /// Runs a command in the directory where the last one ended; what it prints, with its errors if it failed.
    fn run(&mut self, command: &str) -> Vec<String> {
        let end = self.project.path("end");
        let script = format!("(exit {})\n{command}\ncode=$?\npwd >'{}'\nexit $code\n", self.code, end.display());
        let path = format!("{}:{}", self.project.path("bin").display(), std::env::var("PATH").unwrap());
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).current_dir(&self.directory).stdin(Stdio::null()).env("PATH", path);
        shell.env_remove("TIDETABLE_ROOT").env_remove("RUST_LOG").env("NO_COLOR", "1").env("COLUMNS", "100");
        let output = shell.output().unwrap();
        self.code = output.status.code().unwrap();
        let mut text = String::from_utf8(output.stdout).unwrap();
        if self.code != 0 {
            text.push_str(&String::from_utf8(output.stderr).unwrap());
        }
        self.directory = PathBuf::from(fs::read_to_string(end).unwrap().trim());
        let binary = fs::canonicalize(self.project.path("bin/tidetable")).unwrap();
        for (place, shown) in [
            (binary, "/usr/local/bin/tidetable"),
            (fs::canonicalize(self.project.path("")).unwrap(), "/srv"),
            (self.project.path("bin/tidetable"), "/usr/local/bin/tidetable"),
            (self.project.path(""), "/srv/"),
        ] {
            text = text.replace(place.to_str().unwrap(), shown);
        }
        text.lines().map(|line| line.trim_end().to_owned()).collect()
    }
}

/// Runs the commands of a page. Outputs that differ fail the test, or are written into the page.
pub(super) fn check(page: &str) {
    let text = read(page);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let items = items(&text);
    let mut shell = Shell::new();
    let mut changes: Vec<(usize, usize, Vec<String>)> = Vec::new();
    for (number, item) in items.iter().enumerate() {
        match item {
            Item::Setup(at, script) => {
                let said = shell.run(&format!("set -e\n{script}"));
                assert!(shell.code == 0, "{page}:{at}: the setup fails: {}", said.join("\n"));
            }
            Item::File(path, text) => {
                let path = shell.directory.join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Item::Append(path, text) => {
                let path = shell.directory.join(path);
                let before = fs::read_to_string(&path).unwrap_or_default();
                fs::write(path, before + text).unwrap();
            }
            Item::Part(path, text) => {
                let whole = fs::read_to_string(shell.directory.join(path)).unwrap();
                assert!(whole.contains(text), "{page}: this is no part of {path}:\n{text}");
            }
            Item::Command(at, command, documented) => {
                let said = shell.run(command);
                let explained =
                    matches!(items.get(number + 1), Some(Item::Command(_, next, _)) if next.starts_with("echo $?"));
                assert!(shell.code == 0 || explained, "{page}:{at}: `{command}` fails: {}", said.join("\n"));
                let [expected, found] =
                    [documented, &said].map(|lines| lines.iter().map(|line| comparable(line)).collect::<Vec<_>>());
                if documented.is_empty() || fits(&expected, &found) {
                    continue;
                }
                assert!(
                    updating(),
                    "{page}:{at}: `{command}` prints\n{}\ninstead of\n{}",
                    said.join("\n"),
                    documented.join("\n")
                );
                changes.push((*at, documented.len(), said));
            }
        }
    }
    for (at, length, said) in changes.into_iter().rev() {
        lines.splice(at..at + length, said);
    }
    if updating() {
        fs::write(repository().join(page), lines.join("\n") + "\n").unwrap();
    }
}

#[test]
fn varying_output_is_not_compared() {
    assert_eq!(comparable("took 2.55 s: plan 0.28, load 0.18"), comparable("took 12.1 s: plan 1.0, load 3.10"));
    assert_eq!(comparable("│ 1 ┆ 26.17 KiB │"), comparable("│ 1    ┆ 6.1 KiB   │"));
    assert_eq!(comparable("┌───┬──┐"), comparable("┌─┬─────┐"));
    assert_ne!(comparable("│ 7200 ┆ 0 │"), comparable("│ 7201 ┆ 0 │"));
    let said = |day: &str, on: &str| comparable(&format!("{day}T05:14:19.818Z wrote to it on {on}."));
    assert_eq!(said("2026-11-28", "2026-11-28"), said("2026-12-01", "2026-12-01"));
    assert_ne!(said("2026-11-28", "2026-11-28"), said("2026-11-28", "2026-11-27"));
    assert_eq!(comparable("run 01M7ZWH82YZJY6NYE0A3S2DR0C: 1"), comparable("run 01M81TC7XZPPYGT9T2HTM0YCAH: 1"));
    assert_eq!(comparable("│ {\"run\":\"01M7ZWH82YZJY6NYE0A3S2DR0C\"}"), "│ {\"run\":\"RUN\"}");
    assert!(line_fits("a ... c", "a b b c") && !line_fits("a ... c", "a b") && !line_fits("a", "a b"));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&lines("a\n...\nd"), &lines("a\nb\nc\nd")) && !fits(&lines("a\n...\nd"), &lines("a\nb")));
}

#[test]
fn pages_are_parsed() {
    let text = "<!-- setup\nmkdir in\n-->\n<!-- file a.toml -->\n```toml\nx = 1\n```\n<!-- part of b -->\n\n```sql\ny\n```\n\
                ```console\n$ cat <<'E'\n> z\n> E\nz\n$ true\n```\n```sh\ntidetable run x\n```\n";
    let expected = [
        Item::Setup(1, "mkdir in".to_owned()),
        Item::File("a.toml".to_owned(), "x = 1\n".to_owned()),
        Item::Part("b".to_owned(), "y".to_owned()),
        Item::Command(16, "cat <<'E'\nz\nE".to_owned(), vec!["z".to_owned()]),
        Item::Command(18, "true".to_owned(), Vec::new()),
    ];
    assert_eq!(items(text), expected);
    assert_eq!(commands_not_run(text), ["tidetable run x"]);
    assert!(commands_not_run("<!-- not run: needs a package -->\n```sh\ntidetable run x\n```\n").is_empty());
}
