//! Proposes a job for a dump of Bigtable: its cells as they are, and the way to records.

use std::fmt::Write;

use tidetable_source::sample::{DumpSample, DumpedFamily};

use crate::scaffold::layout::quoted;

/// A job for a dump, which is nowhere written yet.
pub(crate) struct DumpDraft<'a> {
    pub job: &'a str,
    pub table: &'a str,
    /// As `files` of the job has them.
    pub patterns: &'a [String],
    pub sample: &'a DumpSample,
}

/// The row key of a table that keeps cells as they are.
pub(crate) const ROW_KEY: &str = "{row_key:hex}";

impl DumpDraft<'_> {
    /// The text of the job file.
    pub fn job_file(&self) -> String {
        let columns = columns(&self.sample.families);
        let patterns: Vec<String> = self.patterns.iter().map(|pattern| quoted(pattern)).collect();
        let mut text = format!(
            "name = {}\ndescription = \"The cells of a dump of Bigtable, as they are\"\n\n\
             # A dump is the whole table: of several that `files` matches, the last by name is read, and it replaces the former one.\n\
             [sources.cells]\nfiles = [{}]\nformat = {}\ntime = \"timestamp\"\n\n\
             [sources.cells.columns]\nrow_key = \"text\" # hexadecimal, as all bytes here\nqualifier = \"text\"\n\
             timestamp = \"timestamp\"\n",
            quoted(self.job),
            patterns.join(", "),
            quoted(self.sample.format.key()),
        );
        for column in &columns {
            let _ = writeln!(text, "{column} = \"text\"");
        }
        text.push_str("\n# Each column of values holds the cells of one family.\n[sources.cells.families]\n");
        for (column, family) in columns.iter().zip(&self.sample.families) {
            let _ = writeln!(text, "{column} = {}", quoted(&family.id));
        }

        let Self { table, .. } = self;
        let granularity = if self.keeps_millis() { "" } else { "granularity = \"micros\"\n" };
        let _ = write!(
            text,
            "\n# For records instead of cells, declare in `columns` what was loaded into Bigtable, give the table the row key and the\n\
             # columns that the cells have, and write `layout = \"{table}\"` in place of `families`.\n\
             [tables.{table}]\nfrom = \"cells\"\nrow_key = \"{ROW_KEY}\"\n{granularity}"
        );
        for (column, family) in columns.iter().zip(&self.sample.families) {
            let _ = write!(
                text,
                "\n[tables.{table}.families.{}]\ncolumns = [{{ qualifier = \"{{qualifier:hex}}\", value = \"{{{column}:hex}}\" }}]\n",
                quoted(&family.id)
            );
        }
        text
    }

    /// Whether all timestamps of the dump are milliseconds, as those of Bigtable are by default.
    fn keeps_millis(&self) -> bool {
        self.sample.whole && !self.sample.has_micros
    }

    /// Notes for the user, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = vec![format!(
            "This is a dump of Bigtable: the job keeps its cells as they are. With `layout = \"{}\"` in its source, the layout of that \
             table reads them back into records",
            self.table
        )];
        if !self.sample.whole {
            notes.push(format!(
                "The families are those of the first {} cells: a run stops if there is another, and names it",
                self.sample.cells
            ));
        }
        let columns = columns(&self.sample.families);
        for (column, family) in columns.iter().zip(&self.sample.families).filter(|(_, family)| family.has_eight_bytes) {
            let name = &family.id;
            notes.push(format!(
                "All values of family `{name}` have 8 bytes. If they are integers, such as sums, write `{column} = \"int64\"` and \
                 `value = \"{{{column}}}\"`"
            ));
        }
        notes
    }
}

/// A column for the values of each family, of distinct names.
fn columns(families: &[DumpedFamily]) -> Vec<String> {
    let mut columns: Vec<String> = Vec::new();
    for family in families {
        let name: String = family.id.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = format!("value_{name}");
        let mut names = std::iter::once(base.clone()).chain((2_u32..).map(|number| format!("{base}_{number}")));
        columns.push(names.find(|name| !columns.contains(name)).unwrap_or(base));
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_have_columns_of_distinct_names() {
        let families = ["a-b", "a.b", "c"].map(|id| DumpedFamily { id: id.to_owned(), has_eight_bytes: false });
        assert_eq!(columns(&families), ["value_a_b", "value_a_b_2", "value_c"]);
    }
}
