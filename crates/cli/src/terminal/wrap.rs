//! Text wrapped to the width of a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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

/// Columns by which the second line of a sentence is indented.
const HANGING: usize = 2;
/// Most columns of a label, such as `costs` in `  costs    rows cannot be read`.
const LONGEST_LABEL: usize = 20;
/// The end of a line of a command that goes on in the next.
const CONTINUED: &str = " \\";

/// The lines of a message for people, each of `width` columns at most. Continuation lines are indented, below the text that
/// follows a label. A word that is wider than a line, such as a path, stands on a line of its own. A command stays on one line
/// if it can; otherwise its lines end in a backslash, so that a shell reads them as one.
///
/// Tables, drawings and excerpts of files are left as they are.
pub fn sentence_lines(line: &str, width: usize) -> Vec<String> {
    if line.width() <= width || is_drawn(line) {
        return vec![line.to_owned()];
    }

    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let hanging = hanging(text, indent).min(width / 2);
    let room = width - hanging;

    let mut lines = Vec::new();
    let mut current = " ".repeat(indent);
    let mut is_begun = false;
    for word in words(text, room) {
        let wide = word.text.width();
        let reserve = if word.is_continued { CONTINUED.len() } else { 0 };
        if is_begun && current.width() + word.spaces + wide + reserve > width {
            if word.is_of_command {
                current.push_str(CONTINUED);
            }
            lines.push(std::mem::replace(&mut current, " ".repeat(hanging.min(width.saturating_sub(wide)))));
            is_begun = false;
        }
        if is_begun {
            current.push_str(&" ".repeat(word.spaces));
        }
        current.push_str(word.text);
        is_begun = true;
    }
    lines.push(current);
    lines
}

/// A word of a sentence, or several that must not be torn apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Word<'a> {
    /// Spaces before it.
    spaces: usize,
    text: &'a str,
    /// Whether it continues the command of the word before.
    is_of_command: bool,
    /// Whether the next word continues its command.
    is_continued: bool,
}

/// The words of a sentence. A command, in backticks or as all of the line, is one word if it fits into `room` columns.
fn words(text: &str, room: usize) -> Vec<Word<'_>> {
    let mut words: Vec<Word<'_>> = Vec::new();
    let mut rest = text;
    let is_command = ["tidetable ", "just "].iter().any(|name| text.starts_with(name));
    let mut in_command = is_command;
    loop {
        let word = rest.trim_start_matches(' ');
        let spaces = rest.len() - word.len();
        if word.is_empty() {
            return words;
        }

        let continues = in_command && !words.is_empty();
        if let (true, Some(last)) = (continues, words.last_mut()) {
            last.is_continued = true;
        }
        let mut end = word_end(word, in_command);
        if !in_command && let Some(command) = command_end(word, end) {
            if word[..command].width() <= room {
                end = command;
            } else {
                in_command = true;
            }
        }
        let (text, after) = word.split_at(end);
        words.push(Word { spaces, text, is_of_command: continues, is_continued: false });

        // The backtick after the last word of a command.
        let ends = text.rfind('`').is_some_and(|at| at > 0 && !text[..at].ends_with(['(', ' ']));
        in_command = is_command || (in_command && !ends);
        rest = after;
    }
}

/// The end of a word: the next space, but in a command not one inside quotes.
fn word_end(text: &str, in_command: bool) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, ' ') => return at,
            (None, '\'' | '"') if in_command => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            _ => {}
        }
    }
    text.len()
}

/// The end of the word that a command in backticks ends in, if one begins in the first word and goes on.
fn command_end(text: &str, end: usize) -> Option<usize> {
    let open = text[..end].find('`')?;
    let close = open + 1 + text[open + 1..].find('`')?;
    (close >= end).then(|| close + word_end(&text[close..], false))
}

/// The columns by which the further lines of a text are indented: below what follows its label, if it has one.
fn hanging(text: &str, indent: usize) -> usize {
    let label = text.find("  ").filter(|label| *label <= LONGEST_LABEL);
    let Some(label) = label else { return indent + HANGING };
    let spaces = text[label..].len() - text[label..].trim_start_matches(' ').len();
    indent + text[..label].width() + spaces
}

/// Whether a line belongs to a table, a drawing, a coloured text or an excerpt such as `12 | key = 1`.
fn is_drawn(line: &str) -> bool {
    let gutter = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    gutter.starts_with("| ") || line.contains(|c: char| matches!(c, '\u{2500}'..='\u{259f}' | '\u{1b}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_indented_where_they_go_on() {
        assert_eq!(sentence_lines("one two three four", 10), ["one two", "  three", "  four"]);
        assert_eq!(sentence_lines("  costs    rows of a day", 22), ["  costs    rows of a", "           day"]);
        assert_eq!(sentence_lines("short", 10), ["short"]);
    }

    #[test]
    fn a_path_that_is_wider_than_a_line_stands_alone() {
        let path = "/srv/data/of/meters/2020-01-01.csv:";
        let line = format!("cannot read {path} it is not there");
        assert_eq!(sentence_lines(&line, 20), ["cannot read", path, "  it is not there"]);
        assert_eq!(sentence_lines(&format!("at {}", "x".repeat(19)), 20), ["at", &format!(" {}", "x".repeat(19))]);
    }

    #[test]
    fn a_command_can_be_pasted() {
        let line = "a run left days out; `tidetable retry 01ABC` tries again";
        assert_eq!(sentence_lines(line, 30), ["a run left days out;", "  `tidetable retry 01ABC`", "  tries again"]);
        let long = "failed; `tidetable --root /srv/meters retry 01ABC`, or wait";
        let shown = sentence_lines(long, 30);
        assert_eq!(shown, ["failed; `tidetable --root \\", "  /srv/meters retry 01ABC`, or", "  wait"]);
        let alone = "  tidetable sql -c 'select * from T limit 5' --output csv";
        assert_eq!(
            sentence_lines(alone, 36),
            ["  tidetable sql -c \\", "    'select * from T limit 5' \\", "    --output csv"]
        );
    }

    #[test]
    fn tables_and_excerpts_stay_as_they_are() {
        for line in ["│ a ┆ b c d │", "12 | key = 'a b c d'", "   | ^^^^^^^^ ^^^", "\u{1b}[1mred and more\u{1b}[0m"]
        {
            assert_eq!(sentence_lines(line, 8), [line]);
        }
    }

    #[test]
    fn words_are_kept_together_where_they_fit() {
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
        assert_eq!(wrapped("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("in data/smart-meters/x.csv", 14), ["in data/smart-", "meters/x.csv"]);
    }
}
