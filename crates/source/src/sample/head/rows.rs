//! Which of the first records are rows: they have times and numbers where the records below have such.

use crate::sample::head::preamble::HeadRecord;
use crate::sample::kinds::{form_of, is_like_value};
use crate::spec::CsvOptions;

/// Records with which a line is compared, and the fewest of them.
pub(super) const COMPARED: usize = 20;
const FEWEST: usize = 2;
/// Numbers that make a record a row without a time.
const NUMBERS: usize = 2;

/// Rows above the first record that is as wide as most: their number of fields makes them no preamble.
pub(super) struct RaggedRows {
    /// The index of the header among the records; `None` if the first row has none above it.
    pub header: Option<usize>,
    /// The index of the first row.
    pub first_row: usize,
    /// Whether the first record that is as wide as most is a row too, and no other header.
    pub is_bare: bool,
}

impl RaggedRows {
    /// The rows among the records before the one at `wide`, the first that is as wide as most.
    pub fn find(csv: &CsvOptions, records: &[HeadRecord], wide: usize) -> Option<Self> {
        let (before, rest) = records.split_at_checked(wide)?;
        let (first, below) = rest.split_first()?;
        let below = below.get(..COMPARED).unwrap_or(below);
        let is_bare = below.iter().any(|row| is_like(csv, first, row, false));
        // Above a header, a line with a time may be the title of a report.
        let is_row = |record: &HeadRecord| below.iter().any(|row| is_like(csv, record, row, !is_bare));
        let first_row = before.iter().position(is_row)?;

        let width = before.get(first_row)?.fields.len();
        let header =
            first_row.checked_sub(1).filter(|at| before.get(*at).is_some_and(|header| header.fields.len() == width));
        Some(Self { header, first_row, is_bare })
    }
}

/// Whether a record has values where `row` has such: a time in the same form, or several numbers. With `needs_both` it is a time
/// and a number.
fn is_like(csv: &CsvOptions, record: &HeadRecord, row: &HeadRecord, needs_both: bool) -> bool {
    let (mut times, mut numbers) = (0, 0);
    for (field, other) in record.fields.iter().zip(&row.fields) {
        let (field, other) = (String::from_utf8_lossy(field), String::from_utf8_lossy(other));
        if is_time(&field) {
            times += usize::from(form_of(&field, true) == form_of(&other, true));
        } else {
            numbers += usize::from(is_value(csv, &field) && is_value(csv, &other));
        }
    }
    if needs_both { times > 0 && numbers > 0 } else { times > 0 || numbers >= NUMBERS }
}

/// Whether the first record is a row: it has a time in the form of all others, and a value of their kind wherever all of them
/// are times or numbers.
pub(super) fn begin_with_row(csv: &CsvOptions, records: &[HeadRecord]) -> bool {
    let Some((first, others)) = records.split_first() else { return false };
    let others = others.get(..COMPARED).unwrap_or(others);
    if others.len() < FEWEST {
        return false;
    }

    let mut has_time = false;
    for (at, name) in first.fields.iter().enumerate() {
        let name = String::from_utf8_lossy(name);
        let column = others.iter().filter_map(|row| row.fields.get(at)).map(|field| String::from_utf8_lossy(field));
        let mut values = column.filter(|value| !value.trim().is_empty()).peekable();
        let Some(form) = values.peek().map(|value| form_of(value, true)) else { continue };
        let are_times = values.peek().is_some_and(|value| is_time(value));
        if !values.all(|value| if are_times { form_of(&value, true) == form } else { is_value(csv, &value) }) {
            continue;
        }

        match are_times {
            true if form_of(&name, true) == form => has_time = true,
            false if is_value(csv, &name) && !is_time(&name) => {}
            _ => return false,
        }
    }
    has_time
}

/// Whether a record has values where one of the first `rows` has such.
pub(super) fn is_like_row(csv: &CsvOptions, record: &HeadRecord, rows: &[HeadRecord]) -> bool {
    rows.iter().take(COMPARED).any(|row| is_like(csv, record, row, false))
}

/// The first record, if it has names, and rows below it may lack their last fields: some have all of them, and none has more.
pub(super) fn above_short_rows<'r>(csv: &CsvOptions, records: &'r [HeadRecord]) -> Option<&'r HeadRecord> {
    let (header, rows) = records.split_first()?;
    let width = header.fields.len();
    let are_names = !header.fields.iter().any(|name| {
        let name = String::from_utf8_lossy(name);
        name.trim().is_empty() || is_value(csv, &name)
    });
    let are_short = rows.iter().all(|row| (2..=width).contains(&row.fields.len()));
    let whole = rows.iter().filter(|row| row.fields.len() == width).collect::<Vec<_>>();
    let first = whole.first().filter(|_| are_names && are_short && width > 2)?;
    let are_alike = rows.iter().all(|row| is_like(csv, row, first, false));
    are_alike.then_some(header)
}

/// Whether a field is a number, also with a decimal comma where no comma separates the columns, or a time.
pub(super) fn is_value(csv: &CsvOptions, text: &str) -> bool {
    let text = without_half(text);
    is_like_value(text) || csv.delimiter != b',' && is_like_value(&text.replacen(',', ".", 1))
}

/// Whether a field is a day or a time with signs between its digits.
pub(super) fn is_time(text: &str) -> bool {
    let text = without_half(text);
    is_like_value(text) && text.contains([':', '/', '-', '.']) && text.trim().parse::<f64>().is_err()
}

/// A time of a clock of twelve hours without its AM or PM.
fn without_half(text: &str) -> &str {
    let text = text.trim();
    let (start, end) = text.split_at_checked(text.len().saturating_sub(2)).unwrap_or((text, ""));
    if (end.eq_ignore_ascii_case("am") || end.eq_ignore_ascii_case("pm")) && start.contains(':') { start } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(rows: &[&str]) -> Vec<HeadRecord> {
        let fields = |row: &&str| row.split(',').map(|field| field.as_bytes().to_vec()).collect();
        rows.iter().zip(1..).map(|(row, line)| HeadRecord { line, fields: fields(row) }).collect()
    }

    #[test]
    fn rows_of_another_width_are_no_preamble() {
        let csv = CsvOptions::default();
        let found = |rows: &[&str], wide: usize| {
            let found = RaggedRows::find(&csv, &records(rows), wide)?;
            Some((found.header, found.first_row, found.is_bare))
        };
        let ended =
            ["n,Time,C,Serial", "1,14/01/2024 00:00,20.5,07", "2,14/01/2024 00:05,20.6", "3,14/01/2024 00:10,20.7"];
        assert_eq!(found(&ended, 2), Some((Some(0), 1, true)));
        let added = ["t,a", "2024-01-14,1", "t,a,b", "2024-01-15,1,2", "2024-01-16,1,2"];
        assert_eq!(found(&added, 2), Some((Some(0), 1, false)));
        let bare = ["2024-01-14 00:00,20.5,boot", "2024-01-14 00:15,20.6", "2024-01-14 00:30,20.7"];
        assert_eq!(found(&bare, 1), Some((None, 0, true)));
        for preamble in [
            &["Made,2024-01-14", "t,v,w", "2024-01-14,1,2", "2024-01-15,1,2"][..],
            &["Plant,7", "Report", "t,v,w", "2024-01-14,1,2", "2024-01-15,1,2"],
            &["2024-01-14,Report", "t,v,w", "2024-01-14,1,2", "2024-01-15,1,2"],
        ] {
            let wide = preamble.iter().position(|row| row.matches(',').count() == 2).unwrap();
            assert_eq!(found(preamble, wide), None, "{preamble:?}");
        }
    }

    #[test]
    fn rows_may_lack_their_last_fields() {
        let csv = CsvOptions { delimiter: b';', ..CsvOptions::default() };
        let found = |rows: &[&str]| {
            let fields = |row: &&str| row.split(';').map(|field| field.as_bytes().to_vec()).collect();
            let records: Vec<_> =
                rows.iter().zip(1..).map(|(row, line)| HeadRecord { line, fields: fields(row) }).collect();
            above_short_rows(&csv, &records).is_some()
        };
        assert!(found(&["Datum;Wert;Bemerkung", "01.01.2024;18,5;neu", "02.01.2024;22,0", "03.01.2024;20,5"]));
        assert!(!found(&["Bericht;Werk;X", "Datum;Wert", "01.01.2024;18,5", "02.01.2024;22,0"]));
        assert!(!found(&["Datum;Wert;Bemerkung", "01.01.2024;18,5;neu", "02.01.2024;22,0;alt;1"]));
    }

    #[test]
    fn a_first_record_of_values_is_a_row() {
        let begins = |rows: &[&str]| begin_with_row(&CsvOptions::default(), &records(rows));
        let hex = ["A1B2C3,2024/01/01,00:00:00,2024/01/01,1000", "4CA2D6,2024/01/01,00:00:01,2024/01/01,1100"];
        assert!(begins(&[hex[0], hex[1], hex[0]]));
        for other in [
            ["t,v", "2024-01-01,1", "2024-01-02,2"],
            ["id,2024-01-01,2024-01-02", "a,1,2", "b,3,4"],
            ["2024-01-01,v", "2024-01-01,1", "2024-01-02,2"],
            ["1990,1991", "1,2", "3,4"],
        ] {
            assert!(!begins(&other), "{other:?}");
        }
    }
}
