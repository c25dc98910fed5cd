//! Pages in a real browser: `TIDETABLE_PYTHON` with Playwright and axe, and Debian's chromium. Without them the test says
//! why it is skipped.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod hostile;
mod reports;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Serialize;
use tidetable_page::{PageError, layouts_page, runs_page, table_page};

const MODULES: &str = "playwright.sync_api, axe_playwright_python.sync_playwright";

/// Python and chromium; `None` after saying what is missing.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let skipped = |reason: &str| writeln!(std::io::stderr().lock(), "skipped: {reason}").unwrap();
    let imports = |python: &PathBuf| {
        Command::new(python).args(["-c", &format!("import {MODULES}")]).output().is_ok_and(|ran| ran.status.success())
    };
    let Some(python) = std::env::var_os("TIDETABLE_PYTHON").map(PathBuf::from).filter(imports) else {
        skipped(&format!("TIDETABLE_PYTHON names no Python that can import {MODULES}"));
        return None;
    };
    let names = ["chromium", "chromium-headless-shell"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    let found =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file());
    if found.is_none() {
        skipped("there is no chromium: install the package chromium");
    }
    Some((python, found?))
}

/// Writes a page, and what it was made from, where the script looks for them.
fn write<P: Serialize>(folder: &Path, name: &str, page: &P, html: fn(&P) -> Result<String, PageError>) {
    fs::write(folder.join(format!("{name}.html")), html(page).unwrap()).unwrap();
    fs::write(folder.join(format!("{name}.json")), serde_json::to_vec(page).unwrap()).unwrap();
}

#[test]
fn a_browser_shows_what_was_given() {
    let Some((python, chromium)) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "layouts", &fixture::page(), layouts_page);
    write(folder.path(), "hostile", &hostile::page(), layouts_page);
    write(folder.path(), "runs", &reports::runs(), runs_page);
    write(folder.path(), "table", &reports::table(), table_page);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/browser.py");
    let ran = Command::new(python).arg("-B").arg(script).arg(chromium).arg(folder.path()).output().unwrap();
    let (said, complaints) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{complaints}");
    assert!(said.contains("all of 4 pages"), "{said}");
}

#[test]
fn five_layouts_fit() {
    let html = layouts_page(&fixture::page()).unwrap();
    assert!(html.len() < 400_000, "{} bytes", html.len());
}
