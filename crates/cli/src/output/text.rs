//! Results as Markdown, or as a line per value.

use std::io::Write;

use unicode_width::UnicodeWidthStr;

use crate::error::CliError;
use crate::output::columns::Heading;

/// The header of a Markdown table.
pub fn markdown_header(out: &mut impl Write, headings: &[Heading]) -> Result<(), CliError> {
    markdown_row(out, headings.iter().map(|heading| heading.name.as_str()))?;
    let rules = headings.iter().map(|heading| if heading.right { "--:" } else { "---" });
    writeln!(out, "| {} |", rules.collect::<Vec<_>>().join(" | "))?;
    Ok(())
}

/// A row of a Markdown table.
pub fn markdown_row<'a>(out: &mut impl Write, cells: impl Iterator<Item = &'a str>) -> Result<(), CliError> {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|").replace('\n', "<br>");
    writeln!(out, "| {} |", cells.map(escaped).collect::<Vec<_>>().join(" | "))?;
    Ok(())
}

/// A row with a line for each value. Rows are numbered from 1.
pub fn lines(out: &mut impl Write, number: u64, headings: &[Heading], cells: &[String]) -> Result<(), CliError> {
    let width = headings.iter().map(|heading| heading.name.width()).max().unwrap_or_default();
    writeln!(out, "── row {number} {}", "─".repeat(width.max(12)))?;
    for (heading, cell) in headings.iter().zip(cells) {
        let pad = " ".repeat(width.saturating_sub(heading.name.width()));
        let mut values = cell.split('\n');
        writeln!(out, "{}{pad} │ {}", heading.name, values.next().unwrap_or_default())?;
        values.try_for_each(|value| writeln!(out, "{} │ {value}", " ".repeat(width)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings() -> Vec<Heading> {
        vec![Heading::text("name"), Heading { right: true, ..Heading::text("n") }]
    }

    #[test]
    fn markdown_keeps_its_columns() {
        let mut out = Vec::new();
        markdown_header(&mut out, &headings()).unwrap();
        markdown_row(&mut out, ["a|b\nc", "1"].into_iter()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "| name | n |\n| --- | --: |\n| a\\|b<br>c | 1 |\n");
    }

    #[test]
    fn a_value_takes_a_line() {
        let mut out = Vec::new();
        lines(&mut out, 2, &headings(), &["two\nlines".to_owned(), "1".to_owned()]).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "── row 2 ────────────\nname │ two\n     │ lines\nn    │ 1\n");
    }
}
