//! Writes the pages on runs and on a table of the tests into a folder: `cargo run -p tidetable-page --example reports FOLDER`.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../tests/page/reports.rs"]
mod reports;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("usage: reports FOLDER")?);
    std::fs::write(folder.join("runs.html"), tidetable_page::runs_page(&reports::runs())?)?;
    Ok(std::fs::write(folder.join("table.html"), tidetable_page::table_page(&reports::table())?)?)
}
