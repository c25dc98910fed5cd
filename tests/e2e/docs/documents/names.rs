//! Names in pages exist in the code; the glossary and the decisions are in order.
//!
//! Code is searched as text: a name counts as defined where a keyword of Rust introduces it.

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

/// The text of every Rust file below the directory `root` of the repository.
fn code(root: &str) -> String {
    let (mut code, mut directories) = (String::new(), vec![repository().join(root)]);
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

/// Whether a word of Rust may hold this character.
fn is_in_words(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether `code` has `name` after `before` and in front of something that `follows` accepts.
fn has(code: &str, before: &str, name: &str, follows: impl Fn(&str) -> bool) -> bool {
    let start = format!("{before}{name}");
    code.match_indices(&start).any(|(at, _)| {
        let is_whole = before.ends_with(' ') || !code[..at].ends_with(is_in_words);
        is_whole && follows(&code[at + start.len()..])
    })
}

/// Whether the code defines a function or a type of this name.
fn defines(code: &str, name: &str) -> bool {
    let keywords = ["fn ", "struct ", "enum ", "trait ", "type "];
    keywords.iter().any(|keyword| has(code, keyword, name, |after| !after.starts_with(is_in_words)))
}

/// Types of Arrow that the glossary names.
const FOREIGN: [&str; 1] = ["RecordBatch"];

/// Whether the code defines this name, in any way that the glossary may refer to.
fn knows(code: &str, name: &str) -> bool {
    let ends = |after: &str| !after.starts_with(is_in_words);
    let is_module = ["mod ", "macro_rules! "].iter().any(|keyword| has(code, keyword, name, ends));
    let is_field = has(code, "", name, |after| after.starts_with(": "));
    defines(code, name) || is_module || is_field || FOREIGN.contains(&name)
}

/// The code spans of a cell of a table.
fn spans_of(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// A step of a walk: its functions and types, files, and tests.
struct Step<'a> {
    names: Vec<&'a str>,
    files: Vec<&'a str>,
    tests: Vec<&'a str>,
}

/// The numbered steps of a page of walks.
fn steps(page: &str) -> Vec<Step<'_>> {
    let rows = rows(page).into_iter().filter(|row| row[0].bytes().all(|byte| byte.is_ascii_digit()));
    rows.map(|row| Step { names: spans_of(row[1]), files: spans_of(row[2]), tests: spans_of(row[3]) }).collect()
}

#[test]
fn walks_name_defined_items() {
    let (code, page) = (code("crates"), read("docs/walks.md"));
    let overview = rows(&page).into_iter().filter(|row| !row[0].bytes().all(|byte| byte.is_ascii_digit()));
    // The fourth column of the overview.
    let overview = overview.flat_map(|row| spans_of(row[3]));
    let names: Vec<&str> = overview.chain(steps(&page).into_iter().flat_map(|step| step.names)).collect();
    assert!(names.len() > 30, "{names:?}");
    let names = names.iter().flat_map(|name| name.split("::"));
    let unknown: Vec<&str> = names.filter(|name| !defines(&code, name)).collect();
    assert!(unknown.is_empty(), "docs/walks.md names what the code does not define: {unknown:?}");
}

#[test]
fn walks_name_existing_files_and_tests() {
    let page = read("docs/walks.md");
    let tests = code("crates") + &code("tests");
    let steps = steps(&page);
    assert!(steps.len() > 20, "{}", steps.len());
    for step in steps {
        assert!(!step.files.is_empty() && !step.tests.is_empty(), "a step without file or test: {:?}", step.names);
        let files: String = step.files.iter().map(|file| read(file)).collect();
        for name in &step.names {
            let last = name.rsplit("::").next().unwrap_or(name);
            assert!(defines(&files, last), "docs/walks.md: {:?} do not define {name}", step.files);
        }
        for test in step.tests {
            let begins = ["#[test]\nfn ", "#[test]\n    fn ", "#[tokio::test]\nasync fn "];
            let is_test = begins.iter().any(|begin| has(&tests, begin, test, |after| after.starts_with('(')));
            assert!(is_test, "docs/walks.md names {test}, which is no test");
        }
    }
}

#[test]
fn contributing_names_existing_files_tests_and_recipes() {
    let page = read("CONTRIBUTING.md");
    let (code, recipes) = (code("crates") + &code("tests"), read("justfile"));
    let mut found = 0;
    for span in spans(&page) {
        let is_path = ["crates/", "tests/", "docs/", "jobs/"].iter().any(|root| span.starts_with(root));
        let is_test = span.matches('_').count() >= 3 && span.chars().all(is_in_words);
        found += usize::from(is_path || is_test);
        if is_path && !span.contains("NAME") {
            assert!(repository().join(span).exists(), "CONTRIBUTING.md names {span}, which does not exist");
        } else if is_test {
            assert!(defines(&code, span), "CONTRIBUTING.md names the test {span}, which does not exist");
        } else if let Some(recipe) = span.strip_prefix("just ").and_then(|rest| rest.split(' ').next()) {
            let line = recipes.lines().any(|line| line.split([' ', ':']).next() == Some(recipe));
            assert!(line, "CONTRIBUTING.md names the recipe {recipe}, which does not exist");
        }
    }
    assert!(found > 30, "{found}");
}

#[test]
fn pages_name_existing_files() {
    let roots = ["crates/", "tests/", "docs/", "jobs/", "bench/", "fuzz/", "packaging/", "sample-data/"];
    let mut found = 0;
    // The change log names files as they were; beside data files stand paths in the projects that they are from.
    let is_ours =
        |page: &String| !["CHANGELOG.md", "sample-data/", "tests/data/"].iter().any(|own| page.starts_with(own));
    for page in markdown_files().into_iter().filter(is_ours) {
        let text = read(&page);
        let paths = spans(&text).into_iter().filter(|span| roots.iter().any(|root| span.starts_with(root)));
        // Words such as NAME, patterns and commands are no paths.
        let is_path = |span: &str| !span.contains(['*', '<', '{', ' ']) && !span.contains("NAME");
        for path in paths.filter(|span| is_path(span)) {
            found += 1;
            // Pages of a guide name files of the project and beside themselves.
            let beside = repository().join(&page).parent().map(|folder| folder.join(path));
            let exists = repository().join(path).exists() || beside.is_some_and(|path| path.exists());
            assert!(exists, "{page} names {path}, which does not exist");
        }
    }
    assert!(found > 200, "{found}");
}

#[test]
fn glossary_names_existing_code() {
    let (code, page) = (code("crates"), read("docs/glossary.md"));
    let (options, job, root) =
        (read("docs/reference/cli.md"), read("docs/reference/job-file.md"), read("docs/reference/on-disk.md"));
    let mut unknown = Vec::new();
    for row in rows(&page) {
        let name = row[1].trim_matches('`');
        let exists = if name.starts_with("--") {
            has(&options, "", name, |after| !after.starts_with(is_in_words))
        } else if let Some(table) = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
            job.contains(&format!("\n## `{table}`\n"))
        } else if name.ends_with('/') {
            root.contains(&format!("`{name}`"))
        } else if let Some((owner, member)) = name.split_once("::") {
            defines(&code, owner) && has(&code, "", member, |after| !after.starts_with(is_in_words))
        } else {
            knows(&code, name)
        };
        if !exists {
            unknown.push(format!("{}: {name}", row[0]));
        }
    }
    assert!(unknown.is_empty(), "docs/glossary.md names what does not exist: {unknown:#?}");
    let sample = "mod pages; struct Column { width: u8 }";
    assert!(["pages", "Column", "width"].iter().all(|name| knows(sample, name)));
    assert!(!knows(sample, "ColumnRef") && !knows(sample, "page"));
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

#[test]
fn reliability_counts_the_planted_bugs() {
    let source = fs::read_to_string(repository().join("crates/sstable/src/tools/failpoints.rs")).unwrap();
    let list = source.split("\nbugs! {\n").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
    let bugs = list.lines().filter(|line| !line.trim().starts_with("///")).count();
    let page = read("docs/reliability.md");
    for figure in [format!("| {bugs} planted bugs, "), format!("| {bugs} of {bugs} found ")] {
        assert!(page.contains(&figure), "docs/reliability.md does not say {figure:?}: run `just prove-planted`");
    }
}
