//! Numbers of things, in words.

/// A number with its noun, in the plural unless it is 1: `1 cell`, `7 cells`. For nouns whose plural ends with an s.
pub fn several(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|number| several(number, "cell")), ["0 cells", "1 cell", "2 cells"]);
    }
}
