//! Tables that stand below lines of as many fields, as a title with blanks behind it or pairs of a key and a value.

use crate::sample::head::preamble::HeadRecord;
use crate::sample::head::rows::{COMPARED, begin_with_row, is_like_row, is_value};
use crate::sample::kinds::MARKERS;
use crate::spec::CsvOptions;

/// Records among which the first row is.
const LATEST: usize = 40;
/// Fewest digits of a text with a time in it.
const TIME_DIGITS: usize = 6;
/// Fewest lines of keys and values above rows without a header.
const FEWEST_LINES: usize = 5;
/// Columns of numbers that make records rows without a time.
const NUMBERS: usize = 2;

/// Where a table begins below other lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LateTable {
    /// The index of its header among the records.
    Header(usize),
    /// The index of its first row, above which no line has names.
    Rows(usize),
    /// The index of its first row, and the names in the two lines above it, one for groups of columns: `INV1,,INV2` above
    /// `Power,Energy,Power`.
    Groups { first_row: usize, names: Vec<String> },
}

impl LateTable {
    /// The table below the first lines, if these are no part of it: the first of them has a blank or a value where a header has
    /// names, or each has a text where all rows have numbers or times.
    pub fn find(csv: &CsvOptions, records: &[HeadRecord]) -> Option<Self> {
        let most = records.len().min(LATEST);
        let first_row = (2..most).find(|at| {
            let rows = records.get(*at..).unwrap_or_default();
            begin_with_row(csv, rows) || begin_with_numbers(csv, rows)
        })?;
        let (before, rows) = records.split_at_checked(first_row)?;
        let (first, above) = (before.first()?, before.last()?);
        if let Some(names) = before.split_last_chunk::<2>().and_then(|(_, [groups, names])| joined(csv, groups, names))
        {
            return Some(Self::Groups { first_row, names });
        }
        if first.fields.iter().any(|field| is_no_name(csv, field)) && is_header(csv, above, rows) {
            return Some(Self::Header(first_row - 1));
        }
        let are_others = before.len() >= FEWEST_LINES && !before.iter().any(|record| is_like_row(csv, record, rows));
        (are_others && are_texts(csv, before, rows)).then_some(Self::Rows(first_row))
    }
}

/// The names of columns in two records, the first of which names groups of columns: it has a name twice, or blanks behind one that
/// it names, too. The second alone has no name for every column.
fn joined(csv: &CsvOptions, groups: &HeadRecord, names: &HeadRecord) -> Option<Vec<String>> {
    let [groups, names] = [groups, names].map(|record| {
        record.fields.iter().map(|field| String::from_utf8_lossy(field).trim().to_owned()).collect::<Vec<_>>()
    });
    let is_value = |name: &String| is_no_name(csv, name.as_bytes()) && !name.is_empty();
    let are_names = groups.len() == names.len() && !groups.iter().chain(&names).any(is_value);
    let count = names.iter().filter(|name| !name.is_empty()).count();
    if !are_names || are_whole(&names) || count < NUMBERS {
        return None;
    }

    let (mut all, mut group, mut is_grouped) = (Vec::with_capacity(names.len()), "", false);
    for (at, (own, name)) in groups.iter().zip(&names).enumerate() {
        is_grouped |= own.is_empty() && !group.is_empty() && !name.is_empty();
        is_grouped |= !own.is_empty() && groups.iter().take(at).any(|other| other == own);
        group = if own.is_empty() && !name.is_empty() { group } else { own };
        let parts = if group == name { ["", name] } else { [group, name] };
        all.push(parts.join(" ").trim().to_owned());
    }
    (is_grouped && are_whole(&all)).then_some(all)
}

/// Whether every name is there, and none twice.
fn are_whole(names: &[String]) -> bool {
    let are_distinct = names.iter().enumerate().all(|(at, name)| !names.iter().take(at).any(|other| other == name));
    are_distinct && names.iter().all(|name| !name.is_empty())
}

/// Whether a record has a name in every field in which one of the `rows` has something, and none twice.
fn is_header(csv: &CsvOptions, record: &HeadRecord, rows: &[HeadRecord]) -> bool {
    let is_idle = |at: usize| {
        let mut fields = rows.iter().take(COMPARED).filter_map(|row| row.fields.get(at));
        fields.all(|field| field.trim_ascii().is_empty())
    };
    let mut names: Vec<&[u8]> = Vec::with_capacity(record.fields.len());
    for (at, name) in record.fields.iter().enumerate() {
        if name.trim_ascii().is_empty() && is_idle(at) {
            continue;
        }
        if is_no_name(csv, name) || names.contains(&name.as_slice()) {
            return false;
        }
        names.push(name);
    }
    names.len() > 1
}

fn is_no_name(csv: &CsvOptions, field: &[u8]) -> bool {
    let digits = field.iter().filter(|byte| byte.is_ascii_digit()).count();
    field.trim_ascii().is_empty() || digits >= TIME_DIGITS || is_value(csv, &String::from_utf8_lossy(field))
}

/// Whether the first record and all others have numbers in the same columns, which are at least half of them.
fn begin_with_numbers(csv: &CsvOptions, records: &[HeadRecord]) -> bool {
    let Some((first, others)) = records.split_first() else { return false };
    let others = others.get(..COMPARED).unwrap_or(others);
    let is_number = |record: &HeadRecord, at: usize| {
        record.fields.get(at).is_some_and(|field| is_value(csv, &String::from_utf8_lossy(field)))
    };
    let width = first.fields.len();
    let are_numbers = |at: &usize| is_number(first, *at) && others.iter().all(|row| is_number(row, *at));
    let numbers = (0..width).filter(are_numbers).count();
    others.len() >= NUMBERS && numbers >= NUMBERS && numbers * 2 >= width
}

/// Whether each record has a text in the first column, and not all the same, where all rows have values.
fn are_texts(csv: &CsvOptions, records: &[HeadRecord], rows: &[HeadRecord]) -> bool {
    let rows = rows.get(..COMPARED).unwrap_or(rows);
    let first_of = |record: &HeadRecord| {
        let field = record.fields.first().map(|field| String::from_utf8_lossy(field).trim().to_owned());
        field.unwrap_or_default()
    };
    if !rows.iter().all(|row| is_value(csv, &first_of(row))) {
        return false;
    }

    let texts: Vec<String> = records.iter().map(first_of).collect();
    let is_text = |text: &String| !text.is_empty() && !is_value(csv, text) && !MARKERS.contains(&text.as_str());
    // One word again and again stands for a missing value.
    let are_many = texts.iter().any(|text| Some(text) != texts.first());
    are_many && texts.iter().all(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(rows: &[&str]) -> Vec<HeadRecord> {
        let fields = |row: &&str| row.split(',').map(|field| field.as_bytes().to_vec()).collect();
        rows.iter().zip(1..).map(|(row, line)| HeadRecord { line, fields: fields(row) }).collect()
    }

    fn found(before: &[&str], rows: &[&str]) -> Option<LateTable> {
        LateTable::find(&CsvOptions::default(), &records(&[before, rows].concat()))
    }

    #[test]
    fn lines_of_as_many_fields_may_stand_before_the_header() {
        let rows = ["Libre,14-01-2024 00:03,7.1", "Libre,14-01-2024 00:18,7.2", "Libre,14-01-2024 00:33,7.3"];
        let title = ["Glucose Data,01-02-2024 10:00 UTC,Jane", "Device,Time,mmol/L"];
        assert_eq!(found(&title, &rows), Some(LateTable::Header(1)));
        let pairs = ["Station,1234,", "Latitude,48.1,", "Device,Time,mmol/L"];
        assert_eq!(found(&pairs, &rows), Some(LateTable::Header(2)));
        for before in [&["Device,Time,mmol/L"][..], &["Device,Time,v", "-,s,mmol/L"], &[",Time,v", ",s,mmol/L"]] {
            assert_eq!(found(before, &rows), None, "{before:?}");
        }
        let scope = ["Horizontal Scale,0.0002,,", "Record Length,500,,", "TIME,CH1,CH2,"];
        let numbers = ["-0.0005,1.5,0.25,", "-0.0004,1.6,0.25,", "-0.0003,1.7,0.5,"];
        assert_eq!(found(&scope, &numbers), Some(LateTable::Header(2)));
        let station = ["My Station,,", "Timezone: Europe/Vienna,,", "Date & Time,Temp - C,Wind Dir"];
        let halves = ["1/1/24 12:00 AM,9.6,N", "1/1/24 12:15 AM,--,NNE", "1/1/24 12:30 AM,8.2,SW"];
        assert_eq!(found(&station, &halves), Some(LateTable::Header(2)));
    }

    #[test]
    fn names_of_groups_and_columns_are_joined() {
        let rows =
            ["2024-01-01 00:00,--,2.61,1.84", "2024-01-01 00:15,4.43,8.61,--", "2024-01-01 00:30,4.24,4.85,3.88"];
        let names = |before: &[&str]| match found(before, &rows)? {
            LateTable::Groups { names, first_row: 2 } => Some(names.join("|")),
            _ => None,
        };
        assert_eq!(
            names(&["Time,INV1,,INV2", ",Power,Energy,Power"]).unwrap(),
            "Time|INV1 Power|INV1 Energy|INV2 Power"
        );
        assert_eq!(names(&["time,v,v,w", "time,min,max,min"]).unwrap(), "time|v min|v max|w min");
        for before in [["time,a,b,c", ",V,V,A"], [",a,b,c", ",V,V,A"], ["a,,,b", "time,usr,sys,idl"]] {
            assert_eq!(names(&before), None, "{before:?}");
        }
    }

    #[test]
    fn keys_and_values_above_rows_are_no_rows() {
        let rows = ["2023-01-01,30.4,E", "2023-01-02,47.1,E", "2023-01-03,7.5,E"];
        let pairs = ["file,timestamp,2024-02-01T10:00", "station,id,39001", "station,name,Thames", "data,units,m3/s"];
        let all = [&pairs[..], &["data,first,2023-01-01"]].concat();
        assert_eq!(found(&all, &rows), Some(LateTable::Rows(5)));
        // A header with lines of units and kinds below it is one.
        let header = ["Date,Flow,Flag", "day,m3/s,-", "first,Avg,-"];
        assert_eq!(found(&header, &rows), None);
        // Names without a number are rows.
        let named = ["a,5", "b,6", "c,7"];
        assert_eq!(found(&["name,v", "u,no A", "w,no B", "x,no C", "y,no D", "z,no E"], &named), None);
    }
}
