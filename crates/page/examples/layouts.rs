//! Writes the page of the fixture of the tests, to look at it: `cargo run -p tidetable-page --example layouts > page.html`.

#[path = "../tests/page/fixture.rs"]
mod fixture;

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let html = tidetable_page::layouts_page(&fixture::page())?;
    Ok(std::io::stdout().write_all(html.as_bytes())?)
}
