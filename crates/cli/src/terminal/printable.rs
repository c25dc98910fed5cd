//! Text for terminals. File names, columns and values come from elsewhere, and control characters in them could move the cursor,
//! change the window's title or hide what follows: all that is printed passes here.

use std::borrow::Cow;
use std::io::{self, Write};

/// Bytes that an escape sequence of colours takes at most.
const LONGEST_COLOUR: usize = 24;

/// A value or heading: control characters are escaped, line ends stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, Keep { tabs: false, colours: false })
}

/// A message of one or more lines: tabs stay, too, and on a terminal colours, which can do no harm.
pub fn message(text: &str, is_terminal: bool) -> Cow<'_, str> {
    escaped(text, Keep { tabs: true, colours: is_terminal })
}

/// What stays besides line ends.
#[derive(Debug, Clone, Copy)]
struct Keep {
    tabs: bool,
    colours: bool,
}

fn escaped(text: &str, keep: Keep) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && c != '\n' && !(keep.tabs && c == '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }

    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        let (before, after) = rest.split_at(at);
        shown.push_str(before);
        let colour = if keep.colours { colour_length(after) } else { 0 };
        let (kept, tail) = after.split_at(colour);
        shown.push_str(kept);
        rest = tail;
        if colour == 0
            && let Some(c) = after.chars().next()
        {
            shown.extend(c.escape_default());
            rest = &after[c.len_utf8()..];
        }
    }

    shown.push_str(rest);
    Cow::Owned(shown)
}

/// The length of the sequence that sets colours at the start of a text; 0 if there is none.
fn colour_length(text: &str) -> usize {
    let Some(inside) = text.strip_prefix("\x1b[") else { return 0 };
    let end = inside.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(inside.len());
    if inside[end..].starts_with('m') { "\x1b[".len() + end + 1 } else { 0 }
}

/// Standard output, whose control characters are escaped if it is a terminal.
#[derive(Debug)]
pub struct Printed<W: Write> {
    out: W,
    is_terminal: bool,
    /// Bytes of an unfinished character or sequence.
    waiting: Vec<u8>,
}

impl<W: Write> Printed<W> {
    /// Writes to `out`; if that is a terminal, control characters are escaped.
    pub fn new(out: W, is_terminal: bool) -> Self {
        Self { out, is_terminal, waiting: Vec::new() }
    }

    #[cfg(test)]
    pub fn into_inner(self) -> W {
        self.out
    }

    fn print(&mut self, bytes: &[u8]) -> io::Result<()> {
        for chunk in bytes.utf8_chunks() {
            self.out.write_all(message(chunk.valid(), true).as_bytes())?;
            self.out.write_all(chunk.invalid().escape_ascii().to_string().as_bytes())?;
        }
        Ok(())
    }
}

/// The number of bytes before a character or sequence that may go on.
fn finished(bytes: &[u8]) -> usize {
    let begun = bytes.iter().rposition(|byte| *byte == 0x1b).filter(|at| {
        let rest = &bytes[*at..];
        rest.len() < LONGEST_COLOUR && rest.iter().skip(2).all(|byte| byte.is_ascii_digit() || *byte == b';')
    });
    let character = match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => bytes.len(),
    };
    begun.unwrap_or(bytes.len()).min(character)
}

impl<W: Write> Write for Printed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.out.write(bytes);
        }
        self.waiting.extend_from_slice(bytes);
        let mut shown = std::mem::take(&mut self.waiting);
        self.waiting = shown.split_off(finished(&shown));
        self.print(&shown)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.waiting);
        self.print(&rest)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(printable("a\nb\té"), "a\nb\\té");
        assert_eq!(printable("\x1b]0;x\x07\u{9b}2J"), "\\u{1b}]0;x\\u{7}\\u{9b}2J");
        assert_eq!(message("a\tb\r", false), "a\tb\\r");
        assert_eq!(message("\x1b[1;31mred\x1b[0m \x1b[2J", true), "\x1b[1;31mred\x1b[0m \\u{1b}[2J");
        assert_eq!(message("\x1b[31m", false), "\\u{1b}[31m");
        assert!(matches!(printable("plain é"), Cow::Borrowed(_)));
    }

    #[test]
    fn it_does_not_matter_where_writes_are_cut() {
        let text = "é\x1b[38;5;1m▀\x1b[0m\x1b]0;t\x07\u{9b}x\ty\n".as_bytes();
        let shown = |cuts: &[usize], is_terminal| {
            let mut out = Printed::new(Vec::new(), is_terminal);
            let mut from = 0;
            for cut in cuts.iter().copied().chain([text.len()]) {
                out.write_all(&text[from..cut]).unwrap();
                from = cut;
            }
            out.flush().unwrap();
            out.out
        };
        let whole = shown(&[], true);
        assert_eq!(whole, "é\x1b[38;5;1m▀\x1b[0m\\u{1b}]0;t\\u{7}\\u{9b}x\ty\n".as_bytes());
        for cut in 1..text.len() {
            assert_eq!(shown(&[cut], true), whole, "cut at {cut}");
        }
        let each: Vec<usize> = (1..text.len()).collect();
        assert_eq!(shown(&each, true), whole);
        assert_eq!(shown(&each, false), text);
    }
}
