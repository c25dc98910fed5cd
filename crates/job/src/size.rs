//! Parsing of sizes such as `512MiB`, and of ages such as `7d`.

use tidetable_layout::time::{DAY, HOUR, MINUTE};

/// Units: powers of 1024 by their IEC names or a letter, powers of 1000 by their SI names.
const UNITS: [(&str, u64); 13] = [
    ("", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

/// Bytes with an optional unit: KiB, MiB, GiB, TiB, or K, M, G, T (the same); KB, MB, GB, TB are powers of 1000.
///
/// # Errors
/// Advice on what to write instead.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find(|(name, _)| *name == unit);
    let (Some((_, unit)), Ok(number)) = (unit, number.parse::<u64>()) else {
        return Err("write a number and a unit, as in 512MiB, 1GiB or 2GB".to_owned());
    };
    number.checked_mul(*unit).filter(|bytes| *bytes > 0).ok_or_else(|| "that size is out of range".to_owned())
}

/// Parses `7d`, `36h` or `90m` into microseconds.
pub(crate) fn parse_age(text: &str) -> Option<i64> {
    let units = [('d', DAY), ('h', HOUR), ('m', MINUTE)];
    let (number, micros) = units.iter().find_map(|(unit, micros)| Some((text.strip_suffix(*unit)?, *micros)))?;
    let number = i64::from(number.parse::<u16>().ok()?);
    (number > 0).then_some(number * micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units() {
        assert_eq!(parse_age("7d"), Some(7 * DAY));
        assert_eq!(parse_age("36h"), parse_age("2160m"));
        for wrong in ["", "7", "d", "0d", "-1d", "1w", "99999d"] {
            assert_eq!(parse_age(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!((parse_size("1G"), parse_size("1 gib"), parse_size("1g")), (Ok(1 << 30), Ok(1 << 30), Ok(1 << 30)));
        assert_eq!((parse_size("1GB"), parse_size("2TB")), (Ok(1_000_000_000), Ok(2_000_000_000_000)));
        assert_eq!(parse_size("17"), Ok(17));
        for wrong in ["MiB", "1PB", "0", "99999999999999999999G", "99999999999G", "1.5GiB", "", "-1G"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
