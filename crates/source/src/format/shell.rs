//! Words of the commands that messages and crontabs name.

/// A word as a POSIX shell reads it: in single quotes if it holds anything but letters, digits and signs that no shell treats
/// specially.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let mut letters = word.chars();
    if !word.is_empty() && letters.all(|letter| letter.is_alphanumeric() || "-_./:=@%+,".contains(letter)) {
        return word.to_owned();
    }

    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_word_that_was_given() {
        assert_eq!(shell_word("/srv/a-b_c.d"), "/srv/a-b_c.d");
        assert_eq!(shell_word("my data"), "'my data'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word("a;b"), "'a;b'");
        assert_eq!(shell_word(""), "''");
    }
}
