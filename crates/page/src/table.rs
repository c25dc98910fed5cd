//! The page on a table.

use askama::Template;

use crate::embed;
use crate::error::PageError;
use crate::figures::{bytes, exact_bytes, grouped, time, visible};
use crate::frame::{Frame, Parts};
use crate::time_chart::TimeText;
use crate::view::TablePage;

/// Most columns with a bar; the rest are summed.
const MOST_COLUMNS: usize = 20;
/// Most windows with a bar, the newest.
const MOST_WINDOWS: usize = 120;

#[derive(Template)]
#[template(path = "table.html")]
struct Html<'a> {
    frame: Frame<'a>,
    page: &'a TablePage,
    keys: Vec<String>,
    columns: Vec<Bar>,
    by_time: Option<TimeText>,
    windows: Vec<WindowText>,
    older_windows: usize,
    shares_files: bool,
    versions: Vec<VersionRow>,
    data: String,
}

struct Bar {
    name: String,
    bytes: String,
    share: String,
    width: f64,
}

struct WindowText {
    window: String,
    files: String,
    rows: String,
    cells: String,
    bytes: String,
    width: f64,
}

struct VersionRow {
    number: String,
    at: String,
    files: String,
    bytes: String,
    inputs: String,
}

/// Writes the page.
///
/// # Errors
/// If its data is no JSON.
pub fn table_page(page: &TablePage) -> Result<String, PageError> {
    let older_windows = page.windows.len().saturating_sub(MOST_WINDOWS);
    let most = page.windows.iter().map(|window| window.bytes).max().unwrap_or(0).max(1);

    let windows = page.windows.iter().skip(older_windows).map(|window| WindowText {
        window: window.window.clone(),
        files: grouped(window.files),
        rows: grouped(window.rows),
        cells: grouped(window.cells),
        bytes: exact_bytes(window.bytes),
        width: width(window.bytes, most),
    });
    let versions = page.versions.iter().rev().map(|version| VersionRow {
        number: version.number.to_string(),
        at: version.at.map_or("–".to_owned(), |at| time(at.div_euclid(1_000_000) * 1_000_000)),
        files: grouped(version.files),
        bytes: bytes(version.bytes),
        inputs: grouped(version.inputs),
    });

    let html = Html {
        frame: Frame::of(&page.title, &page.subtitle, &page.command, Parts::default()),
        page,
        keys: page.keys.iter().map(|key| visible(key)).collect(),
        columns: columns(&page.bytes),
        by_time: page.by_time.as_ref().and_then(TimeText::of),
        windows: windows.collect(),
        older_windows,
        shares_files: page.windows.iter().any(|window| window.shares_files),
        versions: versions.collect(),
        data: embed::json(&page.data)?,
    };
    Ok(html.render()?)
}

fn columns(all: &[(String, u64)]) -> Vec<Bar> {
    let total: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    let mut shown: Vec<(String, u64)> = all.iter().take(MOST_COLUMNS).cloned().collect();
    let rest: u64 = all.iter().skip(MOST_COLUMNS).map(|(_, bytes)| bytes).sum();
    if let Some(more) = all.len().checked_sub(MOST_COLUMNS).filter(|more| *more > 0) {
        shown.push((format!("{} others", grouped(more as u64)), rest));
    }
    let most = shown.iter().map(|(_, bytes)| *bytes).max().unwrap_or(0).max(1);
    let bars = shown.into_iter().map(|(name, number)| Bar {
        name,
        bytes: exact_bytes(number),
        share: format!("{:.1} %", number as f64 * 100.0 / total.max(1) as f64),
        width: width(number, most),
    });
    bars.collect()
}

/// Width of a bar of a hundred, with two decimals.
fn width(number: u64, most: u64) -> f64 {
    (number as f64 * 10_000.0 / most as f64).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_columns_are_summed() {
        let all: Vec<(String, u64)> = (0..25).map(|at| (format!("f:{at}"), 100 - at)).collect();
        let bars = columns(&all);
        assert_eq!((bars.len(), bars[20].name.as_str(), bars[20].bytes.as_str()), (21, "5 others", "390"));
        assert_eq!((bars[20].width, bars[0].width), (100.0, 25.64));
        assert_eq!(columns(&[]).len(), 0);
    }
}
