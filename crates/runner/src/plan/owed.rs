//! Windows that a run leaves as they are, in words.

use std::collections::BTreeMap;

use tidetable_record::OwedRecord;

use super::days::ranges;

/// Most inputs that a note names.
const NAMED: usize = 5;

/// Notes on windows of `table` that stay as they are, one for each set of missing inputs; `to_remove` are the inputs to
/// remove so that all of them can be rebuilt.
pub fn owed_notes(table: &str, owed: &[OwedRecord], to_remove: &[String]) -> Vec<String> {
    let mut by_gone: Vec<(&[String], Vec<&OwedRecord>)> = Vec::new();
    for window in owed {
        match by_gone.iter_mut().find(|(gone, _)| *gone == window.gone.as_slice()) {
            Some((_, windows)) => windows.push(window),
            None => by_gone.push((&window.gone, vec![window])),
        }
    }
    let note = |(gone, windows): (&[String], Vec<&OwedRecord>)| {
        let names: Vec<&str> = windows.iter().map(|window| window.window.as_str()).collect();
        let (noun, stays) =
            if names.len() == 1 { ("window", "stays as it is") } else { ("windows", "stay as they are") };
        let (is, it) = if gone.len() == 1 { ("is", "it") } else { ("are", "them") };
        let owing = owing(&windows);
        format!(
            "{table}: {noun} {} cannot be rebuilt and {stays}, because {} {is} gone; owed there: {owing}. Put {it} back, or \
             remove rows for good with {}, and run again",
            ranges(&names),
            some(gone),
            without(to_remove)
        )
    };
    by_gone.into_iter().map(note).collect()
}

/// What inputs owe in some windows, such as `3 rows of in/02.csv`.
fn owing(windows: &[&OwedRecord]) -> String {
    let mut rows: BTreeMap<&str, u64> = BTreeMap::new();
    for input in windows.iter().flat_map(|window| &window.inputs) {
        *rows.entry(&input.path).or_default() += input.rows;
    }
    let text = |(path, rows): (&str, u64)| match rows {
        0 => format!("the change of {path}"),
        1 => format!("1 row of {path}"),
        rows => format!("{rows} rows of {path}"),
    };
    some(&rows.into_iter().map(text).collect::<Vec<_>>())
}

/// The options that remove `paths`.
fn without(paths: &[String]) -> String {
    match paths.len() {
        0..=NAMED => paths.iter().map(|path| format!("--without {path}")).collect::<Vec<_>>().join(" "),
        number => format!("--without FILE for each of the {number} missing inputs"),
    }
}

/// Some of `items`; the rest is counted.
fn some(items: &[String]) -> String {
    let named = items.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}
