//! Names in pages exist in the code; the glossary and the decisions are in order.

use std::fs;

use super::{markdown_files, read};
use crate::harness::repository;

/// The cells of each row of the tables of a page, without their heads.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let mut rows = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let is_head = lines.get(at + 1).is_some_and(|next| next.starts_with("|---"));
        if line.starts_with("| ") && !is_head {
            rows.push(line.trim_matches('|').split(" | ").map(str::trim).collect());
        }
    }
    rows
}

/// The text of every Rust file of the crates.
fn code() -> String {
    let (mut code, mut directories) = (String::new(), vec![repository().join("crates")]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                code.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    code
}

/// Whether the code defines a function or a type of this name.
fn defines(code: &str, name: &str) -> bool {
    ["fn", "struct", "enum", "trait", "type"].iter().any(|keyword| {
        let start = format!("{keyword} {name}");
        code.match_indices(&start).any(|(at, _)| {
            let after = code[at + start.len()..].chars().next();
            after.is_some_and(|character| !character.is_alphanumeric() && character != '_')
        })
    })
}

#[test]
fn walks_name_defined_items() {
    let (code, page) = (code(), read("docs/walks.md"));
    // The function is the third column of a step, the fourth of a step of the path of data.
    let mut names = Vec::new();
    for row in rows(&page) {
        let column = if row[0].bytes().all(|byte| byte.is_ascii_digit()) { 2 } else { 3 };
        for span in row[column].split('`').skip(1).step_by(2) {
            names.extend(span.split("::").map(str::to_owned));
        }
    }
    assert!(names.len() > 30, "{names:?}");
    let unknown: Vec<&String> = names.iter().filter(|name| !defines(&code, name)).collect();
    assert!(unknown.is_empty(), "docs/walks.md names what the code does not define: {unknown:?}");
}

#[test]
fn glossary_is_sorted() {
    let page = read("docs/glossary.md");
    let terms: Vec<String> = rows(&page).iter().map(|row| row[0].to_lowercase()).collect();
    assert!(terms.len() > 50);
    for pair in terms.windows(2) {
        assert!(pair[0] < pair[1], "in docs/glossary.md `{}` stands before `{}`", pair[0], pair[1]);
    }
}

#[test]
fn decisions_have_a_number_a_status_and_a_date() {
    let decisions: Vec<String> =
        markdown_files().into_iter().filter(|page| page.starts_with("docs/decisions/")).collect();
    for page in decisions {
        let text = read(&page);
        let number = &page["docs/decisions/".len()..][..4];
        assert!(text.starts_with(&format!("# {number}: ")), "{page} begins with another number");
        let status = text.lines().nth(2).unwrap_or_default();
        let known = ["Status: Proposed", "Status: Accepted", "Status: Superseded"];
        let date = status.split_once("Date: ").map_or("", |(_, date)| date);
        assert!(known.iter().any(|known| status.starts_with(known)), "{page} has no status: {status}");
        assert!(date.len() == 11 && date.ends_with('.'), "{page} has no date: {status}");
    }
}

/// The code spans of a page, outside of blocks.
fn spans(text: &str) -> Vec<&str> {
    let (mut found, mut inside) = (Vec::new(), false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = !inside;
        } else if !inside {
            found.extend(line.split('`').skip(1).step_by(2));
        }
    }
    found
}

/// The options (`--name`) in a span of code.
fn options(span: &str) -> impl Iterator<Item = &str> {
    let words = span.split(|character: char| !character.is_ascii_alphanumeric() && character != '-');
    words.filter(|word| word.len() > 2 && word.starts_with("--"))
}

#[test]
fn commands_and_options_in_pages_exist() {
    let help = read("docs/reference/cli.md");
    let known: Vec<&str> = options(&help).collect();
    let pages = markdown_files()
        .into_iter()
        .filter(|page| page == "README.md" || page.starts_with("docs/guide/") || page.starts_with("docs/reference/"));
    let mut found = 0;
    for page in pages {
        for span in spans(&read(&page)).into_iter().filter(|span| !span.starts_with("cargo ")) {
            for option in options(span) {
                found += 1;
                assert!(known.contains(&option), "{page} names the option {option}, which no command has");
            }
            let command = span.strip_prefix("tidetable ").and_then(|rest| rest.split(' ').next()).unwrap_or("-");
            let is_command = command.starts_with(|first: char| first == '-' || first.is_ascii_uppercase())
                || help.contains(&format!("\n### {command}\n"));
            assert!(is_command, "{page} names the command {command}, which does not exist");
        }
    }
    assert!(found > 50, "{found}");
    let text = "`run JOB --day DAY` and `--all`, `-C`\n```\n`--none`\n```\n";
    let named: Vec<&str> = spans(text).into_iter().flat_map(options).collect();
    assert_eq!(named, ["--day", "--all"]);
}
