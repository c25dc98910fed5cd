//! Pages: their commands are run, their links resolve, and reference pages equal the output of the command.
//!
//! `INSTA_UPDATE=always` writes outputs and reference pages again. `docs/README.md` describes the conventions of a page.

mod console;
mod links;
mod names;
mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::repository;

/// Declares a test for each page whose commands are run.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                console::check($path);
            }
        )*
    };
}

pages! {
    the_readme: "README.md",
    first_job: "docs/guide/first-job.md",
    layouts: "docs/guide/layouts.md",
    lint: "docs/guide/lint.md",
    choose_a_layout: "docs/guide/choose-a-layout.md",
    pages: "docs/guide/pages.md",
    inputs: "docs/guide/inputs.md",
    sql: "docs/guide/sql.md",
    time_series_sql: "docs/guide/time-series-sql.md",
    exports: "docs/guide/exports.md",
    iceberg: "docs/guide/iceberg.md",
    checks: "docs/guide/checks.md",
    operations: "docs/guide/operations.md",
    alerts: "docs/guide/alerts.md",
    maintenance: "docs/guide/maintenance.md",
    backups: "docs/guide/backups.md",
    recipes: "docs/guide/recipes.md",
    templates: "docs/reference/templates.md",
    on_disk: "docs/reference/on-disk.md",
    exit_codes: "docs/reference/exit-codes.md",
    server_metrics: "jobs/server-metrics/README.md",
}

/// Every Markdown file of the repository, by its path.
fn markdown_files() -> Vec<String> {
    let (mut files, mut directories) = (Vec::new(), vec![repository()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                if !name.starts_with('.') && !["target", "data", "corpus"].contains(&name) {
                    directories.push(path);
                }
            } else if name.ends_with(".md") {
                files.push(path.strip_prefix(repository()).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    files.sort_unstable();
    files
}

/// A page of the repository.
fn read(page: &str) -> String {
    fs::read_to_string(repository().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// Whether pages are to be written again instead of compared.
fn updating() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always")
}

/// Compares a page with what it must be, or writes it.
fn assert_page(page: &str, expected: &str) {
    if updating() {
        fs::write(repository().join(page), expected).unwrap();
    }
    assert!(read(page) == expected, "{page} is out of date: write it again with INSTA_UPDATE=always");
}

/// Copies a directory with all that is in it.
fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        let copy = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_directory(&path, &copy);
        } else {
            fs::copy(&path, copy).unwrap();
        }
    }
}

#[test]
fn pages_with_commands_are_run() {
    for page in markdown_files() {
        let text = read(&page);
        assert!(
            PAGES.contains(&page.as_str()) || !text.contains("```console"),
            "{page} shows commands: add it to the list of pages"
        );
        let not_run = console::commands_not_run(&text);
        assert!(not_run.is_empty(), "{page}: put these into a block of `console`, which is run: {not_run:?}");
    }
}

#[test]
fn readme_is_short() {
    assert!(
        read("README.md").len() <= 7000,
        "README.md is longer than 7 KB: move what a first reader skips into guides"
    );
}
