//! Ranges of row keys and of times that options select.

use tidetable_layout::KeyRange;

use crate::error::CliError;
use crate::output::values::time;

/// The row keys of `--prefix`, or of `--start` and `--end`.
///
/// # Errors
/// [`CliError::EmptyRange`] if no key lies between the two, and [`CliError::NoKey`] for bytes that are written wrongly.
pub(crate) fn key_range(prefix: Option<&str>, start: Option<&str>, end: Option<&str>) -> Result<KeyRange, CliError> {
    if let Some(prefix) = prefix {
        return Ok(KeyRange::prefix(&key_bytes("--prefix", prefix)?));
    }
    let from = key_bytes("--start", start.unwrap_or_default())?;
    let to = end.map(|end| key_bytes("--end", end)).transpose()?;
    if let (Some(end), Some(to)) = (end, &to)
        && from >= *to
    {
        let (from, to) = (format!("--start {:?}", start.unwrap_or_default()), format!("--end {end:?}"));
        return Err(CliError::EmptyRange { what: "row key", from, to });
    }
    Ok(KeyRange { start: from, end: to })
}

/// The bytes of a row key or a part of one: `0x00ff`, `b'\x00\xff'` as in SQL, or else the text itself.
///
/// # Errors
/// [`CliError::NoKey`] if digits or escapes are wrong.
fn key_bytes(option: &'static str, text: &str) -> Result<Vec<u8>, CliError> {
    let wrong = || CliError::NoKey { option, text: text.to_owned() };
    if let Some(digits) = text.strip_prefix("0x") {
        return hex::decode(digits).map_err(|_| wrong());
    }
    let quoted = text.strip_prefix("b'").and_then(|rest| rest.strip_suffix('\''));
    let Some(quoted) = quoted else { return Ok(text.as_bytes().to_vec()) };

    let (mut bytes, mut rest) = (Vec::with_capacity(quoted.len()), quoted.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            bytes.push(*byte);
            continue;
        }
        let (escaped, after) = rest.split_first().ok_or_else(wrong)?;
        rest = after;
        match escaped {
            b'x' => {
                let (digits, after) = rest.split_at_checked(2).ok_or_else(wrong)?;
                bytes.extend(hex::decode(digits).map_err(|_| wrong())?);
                rest = after;
            }
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b't' => bytes.push(b'\t'),
            b'\\' | b'\'' => bytes.push(*escaped),
            _ => return Err(wrong()),
        }
    }
    Ok(bytes)
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

    #[test]
    fn keys_are_text_or_bytes() {
        let bytes = |text: &str| key_bytes("--prefix", text).ok();
        assert_eq!(bytes("0x00fF"), Some(vec![0, 255]));
        assert_eq!(bytes(r"b'a\x00\xff\\\''"), Some(b"a\0\xff\\'".to_vec()));
        assert_eq!(bytes("b'0x1'"), Some(b"0x1".to_vec()));
        assert_eq!(bytes("meter#1"), Some(b"meter#1".to_vec()));
        for wrong in ["0x0", "0xzz", r"b'\q'", r"b'\x0'", r"b'a\'"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
        let range = key_range(None, Some("0x01"), Some("0x02")).unwrap();
        assert_eq!((range.start, range.end), (vec![1], Some(vec![2])));
        assert!(key_range(None, Some("0x02"), Some("0x01")).is_err());
    }
}
