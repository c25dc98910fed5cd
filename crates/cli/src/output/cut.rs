//! How text that is wider than its column is cut: values that differ must not look alike.

use std::collections::BTreeSet;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::wrap::wrapped_lines;

/// The mark of what is left out.
pub const MARK: char = '…';
/// Text of more characters is a document, which nobody tells from another by a line: it does not decide how a column is cut.
const DOCUMENT: usize = 400;

/// Where the values of a column are cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// At the end.
    End,
    /// In the middle: they begin alike, and end differently.
    Middle,
    /// Nowhere: they differ in the middle only, so that they are wrapped.
    Nowhere,
}

impl Cut {
    /// The first way in which `values` that differ still do in `width` characters.
    pub fn of<'a>(values: impl Iterator<Item = &'a str>, width: usize) -> Self {
        let values: BTreeSet<&str> = values.filter(|text| text.width() > width && text.width() <= DOCUMENT).collect();

        for way in [Self::End, Self::Middle] {
            let shown: BTreeSet<Vec<String>> = values.iter().map(|text| way.lines(text, width)).collect();
            if shown.len() == values.len() {
                return way;
            }
        }
        Self::Nowhere
    }

    /// The lines of a text that is wider than `width`.
    pub fn lines(self, text: &str, width: usize) -> Vec<String> {
        let kept = width.saturating_sub(1);
        match self {
            Self::End => vec![format!("{}{MARK}", beginning(text.chars(), kept))],
            Self::Middle => {
                let tail = beginning(text.chars().rev(), kept / 2);
                let head = beginning(text.chars(), kept - kept / 2);
                vec![format!("{head}{MARK}{}", tail.chars().rev().collect::<String>())]
            }
            Self::Nowhere => wrapped_lines(text, width),
        }
    }
}

/// The first characters that fit into `width`.
fn beginning(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut shown = String::new();
    let mut left = width;
    for character in characters {
        let wide = character.width().unwrap_or_default();
        if wide > left {
            break;
        }
        left -= wide;
        shown.push(character);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the values, joined.
    fn shown(values: &[&str], width: usize) -> Vec<String> {
        let cut = Cut::of(values.iter().copied(), width);
        values.iter().map(|text| cut.lines(text, width).join("/")).collect()
    }

    #[test]
    fn values_that_differ_do_not_look_alike() {
        assert_eq!(shown(&["abcdefgh", "bbcdefgh"], 5), ["abcd…", "bbcd…"]);
        assert_eq!(shown(&["abcdefg1", "abcdefg2"], 5), ["ab…g1", "ab…g2"]);
        assert_eq!(shown(&["abcd1efgh", "abcd2efgh"], 5), ["abcd1/efgh", "abcd2/efgh"]);
        // The same value twice is no reason to show more of it.
        assert_eq!(shown(&["abcdefgh", "abcdefgh"], 5), ["abcd…", "abcd…"]);
        assert_eq!(
            shown(&["\u{4e00}\u{4e01}\u{4e02}", "\u{4e00}\u{4e01}\u{4e03}"], 5),
            ["\u{4e00}…\u{4e02}", "\u{4e00}…\u{4e03}"]
        );
    }

    #[test]
    fn documents_are_cut_at_their_end() {
        let documents = ["x".repeat(500) + "1" + &"y".repeat(500), "x".repeat(500) + "2" + &"y".repeat(500)];
        assert_eq!(shown(&[&documents[0], &documents[1]], 5), ["xxxx…", "xxxx…"]);
    }
}
