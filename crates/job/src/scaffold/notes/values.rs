//! Notes on values of a column that can be read in two ways: numbers, null markers, days alone.

use tidetable_source::ColumnSpec;
use tidetable_source::sample::{FarNumber, SampleColumn, SignForm, TextNumbers};

use crate::scaffold::identifier::identifier;

/// Most numbers that a note names.
const SHOWN: usize = 3;
/// Most characters of a value that notes show.
const LONGEST_VALUE: usize = 40;

/// How numbers of a column of text are made numbers.
pub(crate) fn text_number_note(found: &SampleColumn, column: &ColumnSpec) -> Option<String> {
    let (name, quoted) = (&column.name, identifier(&column.name));
    let (what, sql) = match found.text_numbers.as_ref()? {
        // What begins with a sign is of a code, such as 01-AB.
        TextNumbers::Unit { unit, .. } if unit.starts_with(['-', '_', '/', '.', ':']) => return None,
        TextNumbers::Unit { unit, has_thousands, has_decimal_comma } => {
            let plain = format!("replace({quoted}, '{}', '')", unit.replace('\'', "''"));
            let sql = match (has_thousands, has_decimal_comma) {
                (true, _) => format!("replace({plain}, ',', '')"),
                (false, true) => format!("replace({plain}, ',', '.')"),
                (false, false) => plain,
            };
            (format!("numbers with '{unit}'"), format!("cast({sql} as double)"))
        }
        TextNumbers::Sign(form, first) => {
            let (pattern, marks) = match form {
                SignForm::Trailing => ("%-", "-"),
                SignForm::Parentheses => ("(%", "()"),
            };
            let sql = format!(
                "case when {quoted} like '{pattern}' then -1 else 1 end * cast(btrim({quoted}, '{marks}') as double)"
            );
            (format!("numbers such as '{}'", cut(first)), sql)
        }
        TextNumbers::Plain(first) => {
            let sql = if first.contains(',') { format!("replace({quoted}, ',', '.')") } else { quoted };
            (format!("numbers such as '{}'", cut(first)), format!("cast({sql} as double)"))
        }
    };
    Some(format!("{name}: {what}, read as text; `derive` makes numbers of them: {sql}."))
}

/// What can be read in two ways among the values of a column, and how the other one is had. `commas_separate` tells whether commas
/// separate the columns.
pub(crate) fn value_notes(found: &SampleColumn, column: &ColumnSpec, commas_separate: bool) -> Vec<String> {
    let name = &column.name;
    let mut notes = Vec::new();
    if let Some(value) = &found.ambiguous_separator {
        let is_point = value.contains('.') && !value.contains(',');
        let (mark, as_read, otherwise) = match (column.thousands.is_some(), is_point) {
            (true, true) => (
                "point",
                "separates thousands, since other columns have decimal commas",
                "`decimal = \".\"` without `thousands` reads a fraction",
            ),
            (true, false) => ("comma", "separates thousands", "`decimal = \",\"` reads a fraction"),
            (false, true) => ("point", "precedes a fraction", "`thousands = \".\"` reads thousands"),
            (false, false) => ("comma", "precedes a fraction", "`thousands = \",\"` reads thousands"),
        };
        notes.push(format!("{name}: the {mark} of '{}' {as_read}; {otherwise}.", cut(value)));
    }
    if let Some(value) = &found.decimal_comma {
        let though = if commas_separate { "commas separate the columns" } else { "other columns write points" };
        notes.push(format!(
            "{name}: the comma of '{}' precedes a fraction, though {though}; declare it text if it separates two values.",
            cut(value)
        ));
    }
    if let Some(value) = &found.listed {
        notes.push(format!(
            "{name}: values such as '{}' look like lists, since other columns write decimal points, so it is read as text; \
             `decimal = \",\"` reads numbers.",
            cut(value)
        ));
    }
    if let Some(value) = &found.flagged {
        notes.push(format!(
            "{name}: values such as '{}' look like a code and a flag, so it is read as text; `decimal = \",\"` reads numbers.",
            cut(value)
        ));
    }

    if let Some(kept) = &found.kept_marker {
        let marker = cut(&kept.marker);
        notes.push(format!(
            "{name}: '{marker}' is there {} and stays a value, though it is null in other columns: if it means missing here, \
             add null = [\"\", \"{marker}\"] to the column.",
            times(kept.count)
        ));
    }
    if let Some(far) = &found.far {
        let shown = far.numbers.iter().take(SHOWN);
        let numbers: Vec<String> =
            shown.clone().map(|FarNumber { first, count }| format!("{first} is there {}", times(*count))).collect();
        let markers: Vec<String> = shown.map(|far| format!(", \"{}\"", far.first)).collect();
        let (them, mean) = if markers.len() == 1 { ("it", "means") } else { ("they", "mean") };
        notes.push(format!(
            "{name}: {}, far from the others ({} to {}): if {them} {mean} missing, add null = [\"\"{}] to the column.",
            numbers.join(" and "),
            far.least,
            far.most,
            markers.concat()
        ));
    }
    if let Some(only) = &found.only_nines {
        let only = cut(only);
        notes.push(format!(
            "{name}: every value is {only}: if it means missing, add null = [\"\", \"{only}\"] to the column."
        ));
    }
    if let Some((one, other)) = &found.two_forms {
        notes.push(format!(
            "{name}: times are written in two forms, such as '{}' and '{}': no `format` reads both; write one of them in all \
             rows, or read each in a source of its own.",
            cut(one),
            cut(other)
        ));
    }
    if let Some(days) = &found.midnights {
        notes.push(format!(
            "{name}: days without a time of day are read as their midnight (`%?` in `format`): {}, the first is '{}' in line {}.",
            days.count,
            cut(&days.first),
            days.line
        ));
    }
    notes
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The start of a value, on one line.
pub(crate) fn cut(value: &str) -> String {
    let nulls = value.matches('\0').count();
    if nulls > 0 {
        return format!("{nulls} NUL bytes and {}", cut(&value.replace('\0', "")));
    }
    value.chars().take(LONGEST_VALUE).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
