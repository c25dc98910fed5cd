//! Reference pages are generated: commands, keys of a job file, exit codes.

use std::fmt::Write;

use serde_json::Value;

use super::{assert_page, read};
use crate::harness::{Project, json_lines};

/// The groups of commands in `tidetable --help`, each with its commands.
fn groups(help: &str) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let commands = help.split("Usage:").nth(1).unwrap().split("Global options:").next().unwrap();
    for line in commands.lines() {
        if let Some(name) = line.strip_suffix(':').filter(|name| !name.starts_with(' ')) {
            groups.push((name.to_owned(), Vec::new()));
        } else if let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) {
            let name = name.split_whitespace().next().unwrap().to_owned();
            groups.last_mut().unwrap().1.push(name);
        }
    }
    groups
}

/// Help without the global options, which the page has once.
fn without_global_options(help: &str) -> String {
    let (before, rest) = help.split_once("Global options:\n").unwrap();
    let after = rest.split_once("\n\n").map_or("", |(_, after)| after.trim_start_matches('\n'));
    format!("{}\n\n{after}", before.trim_end())
}

fn block(page: &mut String, text: &str) {
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    writeln!(page, "```text\n{}\n```", lines.join("\n")).unwrap();
}

#[test]
fn command_reference_is_the_help() {
    let project = Project::empty();
    // The binary of the tests has another name.
    let help_of = |args: &[&str]| project.ok(args).replace("tidetable-e2e", "tidetable");
    let help = help_of(&["-h"]);
    let mut page = String::from(
        "# Command line\n\nThe help of every command, as `tidetable COMMAND -h` prints it. Results go to standard output, everything else\n\
         to standard error.\n\n",
    );
    block(&mut page, &help);
    for (group, commands) in groups(&help) {
        writeln!(page, "\n## {group}").unwrap();
        for command in commands.iter().filter(|command| *command != "help") {
            writeln!(page, "\n### {command}\n").unwrap();
            block(&mut page, &without_global_options(&help_of(&[command, "-h"])));
        }
    }
    assert_page("docs/reference/cli.md", &page);
}

/// The TOML type of a value, by its schema.
fn shape(schema: &Value) -> String {
    if let Some(any) = schema["anyOf"].as_array() {
        let shapes: Vec<String> = any.iter().map(shape).collect();
        return shapes.join(" or ");
    }
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`\"{}\"`", word.as_str().unwrap())).collect();
        return words.join(", ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}s", shape(&schema["items"])),
        Value::String(name) if name == "object" => "table".to_owned(),
        Value::String(name) => name.clone(),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
            names.join(" or ").replace("object", "table")
        }
        _ => "any".to_owned(),
    }
}

/// The tables below a schema: those it has itself, of each name, and in a list.
fn below<'schema>(schema: &'schema Value, path: &str, found: &mut Vec<(String, &'schema Value)>) {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().for_each(|one| below(one, path, found));
    }
    if schema["items"].is_object() {
        return below(&schema["items"], path, found);
    }
    if schema["additionalProperties"].is_object() {
        return below(&schema["additionalProperties"], &format!("{path}.NAME"), found);
    }
    if schema["properties"].is_object() {
        found.push((path.to_owned(), schema));
        for (key, value) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            below(value, &path, found);
        }
    }
}

#[test]
fn job_file_reference_is_the_schema() {
    let schema: Value = serde_json::from_str(&Project::empty().ok(&["schema", "job"])).unwrap();
    let mut tables = Vec::new();
    below(&schema, "", &mut tables);
    let mut page = String::from(
        "# Job file\n\nEvery key of a job file (`jobs/NAME/job.toml`), by table. `NAME` is a name that the job file chooses. Unknown keys are\n\
         refused. An editor that knows `#:schema` completes and checks the keys: `tidetable schema job > jobs/job.schema.json`\n\
         prints the JSON Schema, and `#:schema ../job.schema.json` is the first line of a job file.\n\n\
         Guides: [layouts](../guide/layouts.md), [inputs](../guide/inputs.md), [exports](../guide/exports.md),\n\
         [operations](../guide/operations.md). Templates: [templates](templates.md).\n",
    );
    let mut written: Vec<&Value> = Vec::new();
    for (path, table) in &tables {
        let keys = &table["properties"];
        if written.contains(&keys) {
            continue;
        }
        written.push(keys);
        let heading = if path.is_empty() { "Top level".to_owned() } else { format!("`{path}`") };
        writeln!(page, "\n## {heading}\n").unwrap();
        let same = tables.iter().filter(|(at, other)| at != path && other["properties"] == *keys);
        let same: Vec<String> = same.map(|(at, _)| format!("`{at}`")).collect();
        if !same.is_empty() {
            writeln!(page, "The same keys: {}.\n", same.join(", ")).unwrap();
        }
        page.push_str("| key | value | meaning |\n|---|---|---|\n");
        let required = table["required"].as_array().cloned().unwrap_or_default();
        for (key, value) in keys.as_object().unwrap() {
            let name =
                if required.iter().any(|name| name == key) { format!("**`{key}`**") } else { format!("`{key}`") };
            let meaning = value["description"].as_str().unwrap_or_default().replace('|', "\\|");
            writeln!(page, "| {name} | {} | {meaning} |", shape(value)).unwrap();
        }
    }
    page.push_str("\nKeys in bold are required.\n");
    assert_page("docs/reference/job-file.md", &page);
}

#[test]
fn lint_reference_is_the_list_of_rules() {
    let rules = json_lines(&Project::empty().ok(&["lint", "--rules", "--output", "json"]));
    let mut page = String::from(
        "# Lint rules\n\nEvery rule of `tidetable lint`, as `tidetable lint --rules` prints it. The severity is that of the gravest finding.\n\
         Rules that need data speak with `--data` only. Guide: [lint](../guide/lint.md).\n",
    );
    let mut listed = 0;
    for (letter, subject) in [
        ('K', "Row keys"),
        ('R', "Rows"),
        ('C', "Columns"),
        ('T', "Tables"),
        ('W', "Writes"),
        ('Q', "Queries"),
        ('A', "Allowances"),
    ] {
        let of_subject = rules.iter().filter(|rule| rule["rule"].as_str().unwrap().starts_with(letter));
        let of_subject: Vec<&Value> = of_subject.collect();
        if of_subject.is_empty() {
            continue;
        }
        writeln!(page, "\n## {subject}\n\n| rule | severity | needs | finds | because |\n|---|---|---|---|---|")
            .unwrap();
        for rule in of_subject {
            listed += 1;
            let text = |key: &str| rule[key].as_str().unwrap();
            let because = match text("source").strip_prefix("https://cloud.google.com/bigtable/") {
                Some(page) => format!("{} ([{page}]({}))", text("reason"), text("source")),
                None => text("reason").to_owned(),
            };
            writeln!(
                page,
                "| {} | {} | {} | {} | {because} |",
                text("rule"),
                text("severity"),
                text("needs"),
                text("title")
            )
            .unwrap();
        }
    }
    assert_eq!(listed, rules.len(), "a rule has a letter without a heading");
    assert_page("docs/reference/lint.md", &page);
}

/// The codes that stand first in lines, or second after `;`, of the help.
fn exit_codes(help: &str) -> Vec<String> {
    let lines = help.split("Exit codes:\n").nth(1).unwrap().lines();
    let mut codes: Vec<String> = Vec::new();
    for part in lines.flat_map(|line| line.split(';')) {
        let first = part.split_whitespace().next().unwrap_or_default();
        codes.extend((!first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit())).then(|| first.to_owned()));
    }
    codes
}

#[test]
fn exit_code_reference_lists_the_codes_of_the_help() {
    let codes = exit_codes(&Project::empty().ok(&["--help"]));
    assert!(codes.len() >= 8, "{codes:?}");
    let page = read("docs/reference/exit-codes.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")).filter_map(|row| row.split(' ').next());
    let listed: Vec<&str> = rows.filter(|code| code.bytes().all(|byte| byte.is_ascii_digit())).collect();
    assert_eq!(listed, codes, "docs/reference/exit-codes.md and --help name other codes");
}
