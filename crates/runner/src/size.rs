//! Sizes as people write them.

/// Bytes with an optional unit: KiB, MiB, GiB, or K, M, G for the same.
///
/// # Errors
/// What to write instead.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit.trim() {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err("write a number and KiB, MiB or GiB".to_owned()),
    };
    let number: u64 = number.parse().map_err(|_| "write a number and KiB, MiB or GiB".to_owned())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(|| "that is no usable size".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("256MiB"), Ok(256 << 20));
        assert_eq!(parse_size("1G"), Ok(1 << 30));
        assert_eq!(parse_size("17"), Ok(17));
        assert!(parse_size("MiB").is_err());
        assert!(parse_size("1TB").is_err());
        assert!(parse_size("0").is_err());
        assert!(parse_size("99999999999999999999G").is_err());
    }
}
