//! Rows with more values than the header has names: why that may be, and what to do.

use crate::format::conversion;
use crate::sample::error::SampleError;
use crate::sample::head::preamble::HeadRecord;
use crate::sample::head::rows::is_time;
use crate::sample::refusal::{header_above, more_names};
use crate::spec::CsvOptions;

/// The first row with more values than the header has names.
pub(super) struct MoreValues {
    header: Vec<String>,
    row: Vec<String>,
    /// The line of the row, from 1.
    line: u64,
    delimiter: u8,
    /// Whether rows above it have as many values as the header names.
    is_added: bool,
}

impl MoreValues {
    pub fn new(csv: &CsvOptions, header: &HeadRecord, row: &HeadRecord, is_added: bool) -> Self {
        let [header, fields] = [header, row].map(|record| {
            let fields = record.fields.iter().map(|field| String::from_utf8_lossy(field).into_owned());
            fields.collect::<Vec<_>>()
        });
        Self { header, row: fields, line: row.line, delimiter: csv.delimiter, is_added }
    }

    /// The error for the file at `path`.
    pub fn error(self, path: &str) -> SampleError {
        let hint = self.hint(path);
        SampleError::MoreValues {
            path: path.to_owned(),
            names: self.header.len(),
            values: self.row.len(),
            line: self.line,
            hint,
        }
    }

    fn hint(&self, path: &str) -> String {
        let commas_separate = self.delimiter == b',';
        if let Some(time) = self.time_with_comma().filter(|_| commas_separate) {
            let command = conversion(path, &format!("sed '{},$s/, / /'", self.line), true);
            return format!("the comma in '{time}' separates columns too: make a blank of it first: {command}");
        }

        if self.row.iter().any(|value| value.starts_with(" \"")) {
            let command = conversion(path, "sed -E 's/, +\"/,\"/g'", true);
            return format!("a blank before a quote makes it a part of the value: leave it out first: {command}");
        }

        let has_points = self.row.iter().any(|value| value.contains('.') && value.trim().parse::<f64>().is_ok());
        if self.is_added && (has_points || !commas_separate) {
            let header = more_names(self.header.clone(), self.row.len(), char::from(self.delimiter));
            let command = header.map(|header| header_above(path, &header, self.line));
            return command.map_or("name all columns in the header".to_owned(), |command| {
                format!("if a column was added there, name it above the row: {command}")
            });
        }
        match commas_separate && !has_points {
            true => "are commas decimal marks? Write points, or separate the columns by semicolons. Otherwise name all columns \
                     in the header"
                .to_owned(),
            false => "name all columns in the header".to_owned(),
        }
    }

    /// A time with a comma and a blank in it, as `Sun, 14 Jan 2024 22:00` and `14.01.2024, 22:00`.
    fn time_with_comma(&self) -> Option<String> {
        let mut pairs = self.row.windows(2).filter_map(|pair| match pair {
            [start, end] => Some((start.trim(), end.strip_prefix(' ')?.trim_end())),
            _ => None,
        });
        let is_weekday = |text: &str| (2..=12).contains(&text.len()) && text.chars().all(char::is_alphabetic);
        let has_clock = |text: &str| text.contains(':') && text.starts_with(|letter: char| letter.is_ascii_digit());
        let (start, end) = pairs.find(|(start, end)| (is_weekday(start) || is_time(start)) && has_clock(end))?;
        Some(format!("{start}, {end}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(header: &str, row: &str, is_added: bool) -> String {
        let record = |text: &str, line: u64| HeadRecord {
            line,
            fields: text.split(',').map(|field| field.as_bytes().to_vec()).collect(),
        };
        MoreValues::new(&CsvOptions::default(), &record(header, 1), &record(row, 2), is_added).hint("a.csv")
    }

    #[test]
    fn hints_lead_on() {
        let mail = hint("time,v", "Sun, 14 Jan 2024 22:00:00 +0000,5.1", false);
        assert!(mail.contains("'Sun, 14 Jan 2024 22:00:00 +0000'"), "{mail}");
        assert!(mail.ends_with("sed '2,$s/, / /' a.csv > NEW.csv"), "{mail}");
        assert!(hint("zeit,v", "14.01.2024, 22:00,5", false).contains("'14.01.2024, 22:00'"));
        assert!(hint("time,v", "2024-01-14 00:15,20,5", true).starts_with("are commas decimal marks?"));
        let added = hint("time,temp", "2024-01-14 00:15,20.5,41.5", true);
        assert!(added.ends_with("awk 'NR == 2 { print \"time,temp,column_3\" } 1' a.csv > NEW.csv"), "{added}");
        assert_eq!(hint("time,temp", "2024-01-14 00:15,20.5,41.5", false), "name all columns in the header");
        let blank = hint("time,site,v", "2024-01-14 00:15, \"Gent, old\", 5", false);
        assert!(blank.ends_with("sed -E 's/, +\"/,\"/g' a.csv > NEW.csv"), "{blank}");
    }
}
