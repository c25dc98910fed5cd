//! Values of options.

use tidetable_runner::{IfLocked, Selected};

/// What becomes of a run while another goes on: `fail`, `skip`, `wait` or `wait=10m`.
pub(super) fn parse_if_locked(text: &str) -> Result<IfLocked, String> {
    match text.split_once('=') {
        None if text == "fail" => Ok(IfLocked::Fail),
        None if text == "skip" => Ok(IfLocked::Skip),
        None if text == "wait" => Ok(IfLocked::Wait(None)),
        Some(("wait", age)) => {
            let micros = u64::try_from(parse_age(age)?).unwrap_or_default();
            Ok(IfLocked::Wait(Some(std::time::Duration::from_micros(micros))))
        }
        _ => Err("write fail, skip, wait or wait=10m".to_owned()),
    }
}

/// A table or an export: `table:NAME` or `export:NAME`.
pub(super) fn parse_selected(text: &str) -> Result<Selected, String> {
    match text.split_once(':') {
        Some(("table", name)) if !name.is_empty() => Ok(Selected::Table(name.to_owned())),
        Some(("export", name)) if !name.is_empty() => Ok(Selected::Export(name.to_owned())),
        _ => Err("write table:NAME or export:NAME".to_owned()),
    }
}

/// A version, of a table or of the only one.
pub(super) fn parse_version(text: &str) -> Result<(Option<String>, u64), String> {
    let (table, number) = match text.rsplit_once('=') {
        Some((table, number)) => (Some(table.to_owned()), number),
        None => (None, text),
    };
    let number = number.parse().ok().filter(|number| *number > 0);
    number.map(|number| (table, number)).ok_or_else(|| "write a number, or TABLE=NUMBER".to_owned())
}

/// What a record of a run says that it was limited to.
pub fn selected_of(record: &[String]) -> Vec<Selected> {
    record.iter().filter_map(|selected| parse_selected(selected).ok()).collect()
}

/// A moment of RFC 3339, in microseconds since the epoch.
pub fn parse_time(text: &str) -> Result<i64, String> {
    let time = chrono::DateTime::parse_from_rfc3339(text);
    time.map(|time| time.timestamp_micros()).map_err(|error| format!("{error}; write it as 2018-01-31T01:15:00Z"))
}

/// A number of days, hours, minutes or seconds, as microseconds.
pub(super) fn parse_age(text: &str) -> Result<i64, String> {
    let units = [('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];
    let found = units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(*unit)?, *seconds)));
    let age = found.and_then(|(number, seconds)| {
        let number = i64::from(number.parse::<u32>().ok()?);
        number.checked_mul(seconds)?.checked_mul(1_000_000)
    });
    age.ok_or_else(|| "write a number and d, h, m or s, as in 7d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_may_name_a_table() {
        assert_eq!(parse_version("7"), Ok((None, 7)));
        assert_eq!(parse_version("A=7"), Ok((Some("A".to_owned()), 7)));
        assert!(["0", "A", "A=", "A=x", "-1", ""].iter().all(|wrong| parse_version(wrong).is_err()));
    }

    #[test]
    fn tables_and_exports_are_selected_by_kind() {
        assert_eq!(parse_selected("table:A:B"), Ok(Selected::Table("A:B".to_owned())));
        let export = parse_selected("export:DAY");
        assert_eq!(export.clone().map(|selected| selected.to_string()), Ok("export:DAY".to_owned()));
        assert!(["DAY", "export:", ":DAY", "view:DAY", ""].iter().all(|wrong| parse_selected(wrong).is_err()));
    }

    #[test]
    fn ages_have_units() {
        assert_eq!(parse_age("7d"), Ok(7 * 86_400_000_000));
        assert_eq!(parse_age("0s"), Ok(0));
        assert_eq!(parse_age("90m"), parse_age("5400s"));
        for wrong in ["7", "d", "-1d", "1w", "99999999999d", ""] {
            assert!(parse_age(wrong).is_err(), "{wrong}");
        }
    }
}
