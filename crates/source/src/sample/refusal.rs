//! Whether a sample suffices for a declaration, and what to do with the file if not.

use std::ops::Range;

use arrow::array::{Array, ArrayRef, AsArray};

use crate::csv::name_by_place;
use crate::format::conversion;
use crate::format::shell_word;
use crate::reject::{RejectReason, Rejected};
use crate::sample::column::SampleColumn;
use crate::sample::error::SampleError;
use crate::sample::kinds::form_of;
use crate::sample::odd;
use crate::sample::pass::{OddRows, Pass};
use crate::spec::SourceSpec;

/// Rows that a run rejects whatever their share, by the job that is proposed, and the share of rows that may be so.
const FLOOR: u64 = 10;
const LARGEST_SHARE: u64 = 10;
/// Rows of which fewer than one has commas that it should not have.
const FEW: u64 = 4;
/// Fewest rows behind which a column was added, and most rows of a footer.
const ADDED: u64 = 3;
const LONGEST_FOOTER: u64 = 5;
/// First rows whose forms are compared.
const COMPARED: usize = 20;
/// Fewest rejected rows on the first lines that are of another table.
const EARLY: u64 = 3;

/// Checks that the sample suffices. `encoding` is what the file has if it is not UTF-8, `files` the number of files.
pub(super) fn enough(spec: &SourceSpec, pass: &Pass, encoding: &'static str, files: usize) -> Result<(), SampleError> {
    let path = spec.files.first().cloned().unwrap_or_default();
    if pass.rows == 0 {
        return Err(SampleError::Empty { path });
    }

    if let Some(first) = &pass.first {
        if first.reason == RejectReason::InvalidUtf8 {
            return Err(SampleError::NotUtf8 { path, line: first.line, encoding });
        }
        let is_of_another_table =
            pass.odd.early >= EARLY || pass.odd.is_at_top || pass.notes.repeated_headers.count > 0;
        let most = if is_of_another_table { odd::tolerated(pass.rows) } else { most_odd(pass.rows) };
        if pass.rejected > most || is_footer(pass) {
            return Err(refused(spec, pass, first, files));
        }
    }
    if pass.rows - pass.rejected < 2 {
        return Err(SampleError::OneRow { path });
    }
    Ok(())
}

/// Checks that columns have types although more rows are rejected than of one table: lines of another one make them text.
pub(super) fn columns_fit(
    spec: &SourceSpec,
    pass: &Pass,
    columns: &[SampleColumn],
    files: usize,
) -> Result<(), SampleError> {
    let is_mixed = columns.iter().any(|column| column.nearly.is_some());
    match &pass.first {
        Some(first) if is_mixed && pass.rejected > odd::tolerated(pass.rows) => Err(refused(spec, pass, first, files)),
        _ => Ok(()),
    }
}

fn refused(spec: &SourceSpec, pass: &Pass, first: &Rejected, files: usize) -> SampleError {
    let path = spec.files.first().cloned().unwrap_or_default();
    let way = way_on(&path, spec, pass, files);
    SampleError::Odd { path, first: Box::new(first.clone()), odd: pass.rejected, rows: pass.rows, way }
}

/// How many of `rows` may be rejected: as many as the job allows that is proposed, unless they are a large share.
fn most_odd(rows: u64) -> u64 {
    odd::tolerated(rows).max(FLOOR.min(rows / LARGEST_SHARE))
}

/// Whether the rows behind the first rejected one, which are the last of the file, are none of the table: one has words in the
/// first column in which all first rows have one form with digits, as times do.
fn is_footer(pass: &Pass) -> bool {
    let (Some(first), Some(last)) = (pass.batches.first(), pass.batches.last()) else { return false };
    let Some(origin) = pass.origins.last().filter(|_| pass.odd.are_counts && pass.odd.first > 0) else { return false };
    let behind = (0..last.num_rows()).rev().take_while(|row| origin.line(*row) > pass.odd.first);
    let count = behind.take(LONGEST_FOOTER as usize + 1).count();
    let rows = first.num_rows().min(COMPARED).min(last.num_rows().saturating_sub(count));
    if count == 0 || count > LONGEST_FOOTER as usize || rows < 2 {
        return false;
    }

    let column = first.columns().iter().position(|column| {
        let forms = forms(column, 0..rows);
        let has_digits = forms.first().is_some_and(|form| form.contains('0') && form.len() > 1);
        has_digits && forms.len() == rows && forms.windows(2).all(|pair| pair[0] == pair[1])
    });
    let values = column.and_then(|at| last.columns().get(at));
    let behind = values.map(|values| forms(values, values.len() - count..values.len())).unwrap_or_default();
    behind.iter().any(|form| !form.contains('0') && !form.is_empty())
}

/// The forms of the texts of these rows.
fn forms(column: &ArrayRef, rows: Range<usize>) -> Vec<String> {
    let Some(texts) = column.as_string_opt::<i32>() else { return Vec::new() };
    rows.filter(|row| texts.is_valid(*row)).map(|row| form_of(texts.value(row).trim(), true)).collect()
}

/// What to do with a file whose rows do not fit its header.
fn way_on(path: &str, spec: &SourceSpec, pass: &Pass, files: usize) -> String {
    let OddRows { first, last_accepted, are_counts, expected, least, most, .. } = pass.odd;
    let is_last = first > last_accepted && pass.rejected < pass.rows;
    let delimiter = char::from(spec.csv.delimiter);
    if files != 1 || !are_counts {
        return "correct the file first".to_owned();
    }

    // A column that is added is in all rows from there on.
    if is_last && least == most && most > expected && pass.rejected >= ADDED {
        let names: Vec<String> = spec.columns.iter().map(|column| column.name.clone()).collect();
        let added = format!("from there on rows have {most} values");
        return match more_names(names, most, delimiter).filter(|_| spec.csv.header) {
            Some(header) => {
                format!("{added}; if a column was added, name it above them: {}", header_above(path, &header, first))
            }
            None => format!("{added}; give them in a file of their own, with a header"),
        };
    }
    if is_last && pass.rejected <= LONGEST_FOOTER || is_footer(pass) {
        let command = conversion(path, &format!("head -n {}", first - 1), true);
        return format!("if the rows end there, leave out what follows: {command}");
    }
    if most < expected && least > 1 && spec.csv.header {
        let filter = format!(
            "awk -F'{delimiter}' -v OFS='{delimiter}' '{{ sub(/\\r$/, \"\") }} NF < {expected} {{ NF = {expected} }} 1'"
        );
        let command = conversion(path, &filter, true);
        return format!("if they lack their last values, add these as empty ones: {command}");
    }
    if least > expected && pass.rejected * FEW < pass.rows {
        return format!("put values with `{delimiter}` in them in quotes, or correct the file otherwise first");
    }
    "correct the file first".to_owned()
}

/// A command that writes the line `header` above a line of the file at `path`: rows below it are read by its names.
pub(super) fn header_above(path: &str, header: &str, line: u64) -> String {
    let text = header.replace('\\', "\\\\").replace('"', "\\\"");
    let program = format!("NR == {line} {{ print \"{text}\" }} 1");
    conversion(path, &format!("awk {}", shell_word(&program)), true)
}

/// A header line of these names, and of the places of columns behind them up to `width`; `None` if names need quotes.
pub(super) fn more_names(mut names: Vec<String>, width: usize, delimiter: char) -> Option<String> {
    names.resize(width, String::new());
    name_by_place(&mut names);
    let needs_quotes = names.iter().any(|name| name.contains([delimiter, '"', '\n', '\r']));
    (!needs_quotes).then(|| names.join(&delimiter.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rows_may_be_rejected() {
        assert_eq!([9, 10, 20, 99, 100, 1000, 20_000].map(most_odd), [0, 1, 2, 9, 10, 10, 20]);
    }

    #[test]
    fn names_of_added_columns_are_those_of_places() {
        let names = || vec!["time".to_owned(), "a b".to_owned()];
        assert_eq!(more_names(names(), 3, ';').unwrap(), "time;a b;column_3");
        assert_eq!(more_names(vec!["a;b".to_owned()], 2, ';'), None);
        assert_eq!(header_above("a.csv", "t,\"v\"", 12), "awk 'NR == 12 { print \"t,\\\"v\\\"\" } 1' a.csv > NEW.csv");
    }
}
