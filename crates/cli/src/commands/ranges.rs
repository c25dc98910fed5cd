//! Ranges of row keys and of times that options select.

use tidetable_layout::KeyRange;

use crate::error::CliError;
use crate::output::values::time;

/// The row keys of `--prefix`, or of `--start` and `--end`.
///
/// # Errors
/// [`CliError::EmptyRange`] if no key lies between the two.
pub(crate) fn key_range(prefix: Option<&str>, start: Option<&str>, end: Option<&str>) -> Result<KeyRange, CliError> {
    if let Some(prefix) = prefix {
        return Ok(KeyRange::prefix(prefix.as_bytes()));
    }
    let start = start.unwrap_or_default();
    if let Some(end) = end.filter(|end| start >= *end) {
        let (from, to) = (format!("--start {start:?}"), format!("--end {end:?}"));
        return Err(CliError::EmptyRange { what: "row key", from, to });
    }
    Ok(KeyRange { start: start.as_bytes().to_vec(), end: end.map(|end| end.as_bytes().to_vec()) })
}

/// Refuses times of `--from` and `--to`, microseconds since the epoch, that nothing lies between. The second is exclusive.
///
/// # Errors
/// [`CliError::EmptyRange`].
pub(crate) fn check_times(from: Option<i64>, to: Option<i64>) -> Result<(), CliError> {
    match (from, to) {
        (Some(from), Some(to)) if from >= to => {
            let [from, to] = [("--from", from), ("--to", to)]
                .map(|(option, micros)| format!("{option} {}", time(micros).unwrap_or_else(|| micros.to_string())));
            Err(CliError::EmptyRange { what: "time", from, to })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_keys_is_refused() {
        for (start, end) in [("z", "a"), ("a", "a"), ("", "")] {
            let error = key_range(None, Some(start), Some(end)).unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains(&format!("--start {start:?} and --end {end:?}")), "{error}");
        }
        let range = key_range(None, Some("a"), Some("b")).unwrap();
        assert_eq!((range.start.as_slice(), range.end.as_deref()), (&b"a"[..], Some(&b"b"[..])));
        assert_eq!(key_range(None, Some("a"), None).unwrap().end, None);
        assert_eq!(key_range(Some("a"), None, None).unwrap().end.as_deref(), Some(&b"b"[..]));
    }

    #[test]
    fn times_without_an_instant_between_are_refused() {
        assert!(check_times(Some(1), Some(1)).is_err() && check_times(Some(2), Some(1)).is_err());
        assert!(check_times(Some(1), Some(2)).is_ok() && check_times(Some(1), None).is_ok());
    }
}
