//! Text wrapped to the width of a terminal.

use std::io::Write;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::error::CliError;
use crate::output::screen::Screen;

/// Writes a sentence to standard output, wrapped where that is a terminal.
///
/// # Errors
/// If `out` cannot be written.
pub fn write_sentence(out: &mut impl Write, text: &str) -> Result<(), CliError> {
    let width = Screen::of_stdout(None).width.unwrap_or(usize::MAX);
    wrapped(text, width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
    Ok(())
}

/// The lines of a text, each wrapped to a width.
pub fn wrapped_lines(text: &str, width: usize) -> Vec<String> {
    text.split('\n').flat_map(|line| wrapped(line, width)).collect()
}

/// Characters after which a word that is wider than a line goes on in the next: those of paths and names.
const JOINTS: [char; 4] = ['/', '_', '-', ','];

/// Wraps a line to a width, at spaces where possible.
pub fn wrapped(line: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let (mut lines, mut current, mut taken) = (Vec::new(), String::new(), 0);
    let words = line.split_inclusive(' ').flat_map(|word| match word.trim_end().width() > width {
        true => word.split_inclusive(JOINTS).collect(),
        false => vec![word],
    });
    for word in words {
        let wide = word.trim_end().width();
        if taken > 0 && taken + wide > width && wide <= width {
            lines.push(std::mem::take(&mut current).trim_end().to_owned());
            taken = 0;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or_default();
            if taken + wide > width && c != ' ' {
                lines.push(std::mem::take(&mut current).trim_end().to_owned());
                taken = 0;
            }
            current.push(c);
            taken += wide;
        }
    }
    lines.push(current.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_together_where_they_fit() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("in data/smart-meters/x.csv", 14), ["in data/smart-", "meters/x.csv"]);
    }
}
