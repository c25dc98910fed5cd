//! Reports for people on standard output, a line at a time.

use std::io::{self, Write};

use super::hints;
use super::printable::{Printed, message};
use super::wrap::sentence_lines;

/// Writes lines of text: completes the commands that they name, and on a terminal wraps them to its width. Tables, drawings
/// and excerpts pass as they are.
#[derive(Debug)]
pub struct Sentences<W: Write> {
    out: Printed<W>,
    /// Columns of the terminal; `None` if lines may have any width.
    width: Option<usize>,
    /// Whether what is written is text for people; bytes for programs pass as they are.
    is_text: bool,
    /// The line that is not finished.
    line: Vec<u8>,
}

impl<W: Write> Sentences<W> {
    /// Writes text for people to `out`, a terminal of `width` columns or something else.
    pub fn new(out: Printed<W>, width: Option<usize>) -> Self {
        Self { out, width, is_text: true, line: Vec::new() }
    }

    /// Writes bytes for programs to `out`.
    pub fn verbatim(out: Printed<W>) -> Self {
        Self { out, width: None, is_text: false, line: Vec::new() }
    }

    /// Writes a line, with its end if it has one.
    fn print(&mut self, line: &[u8]) -> io::Result<()> {
        let Ok(text) = std::str::from_utf8(line) else { return self.out.write_all(line) };
        let completed = hints::completed(text);
        let Some(width) = self.width else { return self.out.write_all(completed.as_bytes()) };

        let shown = message(&completed, true);
        let (shown, end) = shown.strip_suffix('\n').map_or((&*shown, ""), |shown| (shown, "\n"));
        let lines = sentence_lines(shown, width).join("\n");
        self.out.write_all(lines.as_bytes())?;
        self.out.write_all(end.as_bytes())
    }
}

impl<W: Write> Write for Sentences<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_text {
            return self.out.write(bytes);
        }

        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                self.print(&line)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.line);
        self.print(&rest)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: Option<usize>) -> String {
        let mut out = Sentences::new(Printed::new(Vec::new(), width.is_some()), width);
        for bytes in text.as_bytes().chunks(3) {
            out.write_all(bytes).unwrap();
        }
        out.flush().unwrap();
        String::from_utf8(out.out.into_inner()).unwrap()
    }

    #[test]
    fn lines_are_wrapped_on_a_terminal_only() {
        let text = "one two three\n│ a table that is wide │\nend";
        assert_eq!(shown(text, None), text);
        assert_eq!(shown(text, Some(10)), "one two\n  three\n│ a table that is wide │\nend");
    }

    #[test]
    fn bytes_for_programs_pass_as_they_are() {
        let mut out = Sentences::verbatim(Printed::new(Vec::new(), false));
        out.write_all(b"{\"a\": \"\xff`tidetable run`\"}").unwrap();
        out.flush().unwrap();
        assert_eq!(out.out.into_inner(), b"{\"a\": \"\xff`tidetable run`\"}");
    }
}
