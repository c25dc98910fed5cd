//! Wide tables: one column for each time, whose names are the times.

use chrono::{NaiveDate, NaiveTime};
use tidetable_source::shell_word;

use crate::scaffold::draft::Draft;
use crate::scaffold::identifier::identifier;

/// Fewest columns with such names, and their share of all columns: half.
const FEWEST: usize = 4;
/// Most other columns that the statement names.
const MOST_OTHERS: usize = 8;
/// Forms of days in names.
const DAYS: [&str; 6] = ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d"];
/// Forms of times of day in names.
const CLOCKS: [&str; 3] = ["%H:%M", "%H:%M:%S", "%H:%M:%S%.f"];

/// The columns that are named by times, and how a row of each reading is made.
pub(super) fn note(draft: &Draft<'_>) -> Option<String> {
    let columns = &draft.sample.spec.columns;
    let (times, others): (Vec<&str>, Vec<&str>) =
        columns.iter().map(|column| column.name.as_str()).partition(|name| is_time(name));
    if times.len() < FEWEST || times.len() < others.len() {
        return None;
    }

    let (first, last) = (times.first()?, times.last()?);
    let path = draft.files.first().map_or("FILE.csv", |file| file.path.as_str()).replace('\'', "''");
    let named: Vec<String> = others.iter().take(MOST_OTHERS).map(|name| identifier(name)).collect();
    let wanted = if named.is_empty() { "*".to_owned() } else { format!("* exclude ({})", named.join(", ")) };
    let sql = format!(
        "copy (unpivot read_csv('{path}', header = true, all_varchar = true) on columns({wanted}) into name \"time\" value \
         reading) to 'NEW.csv'"
    );
    Some(format!(
        "{} columns are named by times, {first} to {last}: this is a wide table. Make a row of each reading first, as DuckDB does: \
         duckdb -c {}",
        times.len(),
        shell_word(&sql)
    ))
}

/// Whether a name is a moment, a day or a time of day.
fn is_time(name: &str) -> bool {
    let name = name.trim();
    let is_day = |text: &str| DAYS.iter().any(|format| NaiveDate::parse_from_str(text, format).is_ok());
    let is_clock = |text: &str| CLOCKS.iter().any(|format| NaiveTime::parse_from_str(text, format).is_ok());
    let is_moment = || {
        let (day, clock) = name.split_once(['T', ' '])?;
        let clock = clock.trim_end_matches('Z');
        let clock = clock.find(['+', '-']).and_then(|offset| clock.get(..offset)).unwrap_or(clock);
        Some(is_day(day) && is_clock(clock))
    };
    is_day(name) || is_clock(name) || name == "24:00" || is_moment() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_times() {
        for name in
            ["2024-03-01T00:00:00Z", "2024-03-01 00:00", "00:15", "24:00", "01.01.2024", "2024-03-01T00:00:00+01:00"]
        {
            assert!(is_time(name), "{name}");
        }
        for name in ["meter", "2024", "v1.2", "12", "1:2 ratio", ""] {
            assert!(!is_time(name), "{name}");
        }
    }
}
