//! The job of a table that keeps cells as they are: its file is made by the first pull, and follows the families of the
//! table in Bigtable with later ones. What the user added to it stays.

use std::fmt::Write;

use tidetable_job::scaffold::quoted;
use tidetable_job::{Job, Table, TableInput};
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::Granularity;

use crate::client::SourceTable;
use crate::pull::{RAW_COLUMNS, RawFamily};

/// The row key and the qualifiers of such a table.
const ROW_KEY: &str = "{row_key:hex}";
const QUALIFIER: &str = "{qualifier:hex}";
/// The name of the source in a new job file.
const SOURCE: &str = "cells";

/// The families of a table, with the columns of their values, and the granularity of its timestamps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawSchema {
    /// The families that are pulled.
    pub families: Vec<RawFamily>,
    /// Whether timestamps are microseconds.
    pub is_micros: bool,
}

/// A job whose table keeps cells as they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJob {
    /// The name of that table in the job.
    pub table: String,
    /// The name of the source that the table is loaded from.
    pub source: String,
    /// The table of Bigtable that the job was made for, if its description still says so.
    pub made_for: Option<String>,
    /// Families with one column of cells as they are.
    families: Vec<RawFamily>,
    is_micros: bool,
    /// Columns that the source declares.
    columns: Vec<String>,
}

impl RawJob {
    /// The table of `job` that keeps cells as they are; `None` if there is none.
    pub fn of(job: &Job) -> Option<Self> {
        job.tables.iter().find_map(|table| Self::of_table(job, table))
    }

    fn of_table(job: &Job, table: &Table) -> Option<Self> {
        let TableInput::Source(source) = &table.from else { return None };
        let columns: Vec<String> = job.source(source)?.spec.columns.iter().map(|column| column.name.clone()).collect();
        if table.spec.row_key != ROW_KEY || !RAW_COLUMNS.iter().all(|name| columns.iter().any(|column| column == name))
        {
            return None;
        }

        let mut families = Vec::new();
        for family in &table.spec.families {
            let [column] = family.columns.as_slice() else { continue };
            let value = column.value.strip_prefix('{').and_then(|value| value.strip_suffix('}'));
            let value = value.map(|value| value.strip_suffix(":hex").unwrap_or(value));
            let value = value.filter(|value| columns.iter().any(|column| column == value));
            if let (QUALIFIER, Some(value)) = (column.qualifier.as_str(), value) {
                families.push(RawFamily {
                    name: family.name.clone(),
                    column: value.to_owned(),
                    kind: family.kind,
                    rule: None,
                });
            }
        }

        let made_for =
            job.description.strip_prefix("The cells of ").and_then(|rest| rest.strip_suffix(", as they are"));
        Some(Self {
            table: table.spec.name.clone(),
            source: source.clone(),
            made_for: made_for.map(str::to_owned),
            families,
            is_micros: table.spec.granularity == Granularity::Micros,
            columns,
        })
    }

    /// The schema of the files for a job as it is, of the families `wanted`, all of them if that is empty: families keep
    /// their columns, and those that only the job has come last, for a run looks for their columns.
    pub fn schema(&self, table: &SourceTable, wanted: &[String]) -> RawSchema {
        let mut taken = self.columns.clone();
        let mut families = Vec::new();
        for family in table.families.iter().filter(|family| wanted.is_empty() || wanted.contains(&family.name)) {
            let known = self.families.iter().find(|known| known.name == family.name);
            let column = known.map_or_else(|| free_column(&family.name, &mut taken), |known| known.column.clone());
            let (name, kind, rule) = (family.name.clone(), family.kind, family.rule.clone());
            families.push(RawFamily { name, column, kind, rule });
        }
        RawSchema { families, is_micros: table.is_micros }
    }

    /// Families of the job that `table` does not have.
    pub fn gone(&self, table: &SourceTable) -> Vec<RawFamily> {
        let mut gone = self.families.clone();
        gone.retain(|family| !table.families.iter().any(|known| known.name == family.name));
        gone
    }

    /// `text`, the job file, with the families of `schema`, and without those that are `gone` and were not edited.
    pub fn follow(&self, text: &str, schema: &RawSchema, gone: &[RawFamily]) -> String {
        let mut file = JobText::of(text);
        for family in gone {
            if file.remove_family(&self.table, &family.name) {
                file.remove_key(&["sources", &self.source, "columns"], &family.column);
            }
        }

        for family in &schema.families {
            let known = self.families.iter().find(|known| known.name == family.name);
            match known {
                Some(known) if known.kind == family.kind => continue,
                Some(_) => drop(file.remove_family(&self.table, &family.name)),
                None => {}
            }
            file.remove_key(&["sources", &self.source, "columns"], &family.column);
            let columns = ["sources", self.source.as_str(), "columns"];
            file.add_key(&columns, &column_line(family));
            file.append(&family_block(&self.table, family));
        }

        if schema.is_micros && !self.is_micros {
            file.remove_key(&["tables", &self.table], "granularity");
            file.add_key(&["tables", &self.table], MICROS_LINE);
        }
        // Files of the pull before lack the columns of new families, until those of this one are listed.
        if !file.has_key(&["sources", &self.source], "schema") {
            file.add_key(&["sources", &self.source], SCHEMA_LINE);
        }
        file.text()
    }
}

impl RawSchema {
    /// The schema of the files for a new job.
    pub fn new(table: &SourceTable, wanted: &[String]) -> Self {
        let job = RawJob {
            table: String::new(),
            source: SOURCE.to_owned(),
            made_for: None,
            families: Vec::new(),
            is_micros: table.is_micros,
            columns: RAW_COLUMNS.map(str::to_owned).to_vec(),
        };
        job.schema(table, wanted)
    }

    /// The job file of a table that keeps the cells of `source`, a table of Bigtable, which `pattern` matches.
    pub fn job_file(&self, job: &str, table: &str, pattern: &str, source: &str) -> String {
        let mut text = format!(
            "name = {}\ndescription = {}\n\n[sources.{SOURCE}]\nfiles = [{}]\ntime = \"timestamp\"\n{SCHEMA_LINE}\n\n\
             [sources.{SOURCE}.columns]\nrow_key = \"text\" # hexadecimal, as all bytes here\nqualifier = \"text\"\n\
             timestamp = \"timestamp\"\n",
            quoted(job),
            quoted(&format!("The cells of {source}, as they are")),
            quoted(pattern)
        );
        for family in &self.families {
            let _ = writeln!(text, "{}", column_line(family));
        }

        let micros = if self.is_micros { format!("{MICROS_LINE}\n") } else { String::new() };
        let _ = write!(
            text,
            "\n# A row of the source is a cell: only one of the columns of values holds something.\n[tables.{}]\nfrom = \
             \"{SOURCE}\"\nrow_key = \"{ROW_KEY}\"\n{micros}",
            key(table)
        );
        for family in &self.families {
            text.push_str(&family_block(table, family));
        }
        text
    }
}

const MICROS_LINE: &str = "granularity = \"micros\"";
const SCHEMA_LINE: &str = "schema = \"evolve\" # families come and go";

/// The declaration of the column of a family's values.
fn column_line(family: &RawFamily) -> String {
    let kind = if family.holds_integers() { "int64" } else { "text" };
    format!("{} = \"{kind}\"", key(&family.column))
}

/// The section of a family.
fn family_block(table: &str, family: &RawFamily) -> String {
    let mut text = format!("\n[tables.{}.families.{}]\n", key(table), quoted(&family.name));
    if let Some(rule) = &family.rule {
        let _ = writeln!(text, "{RULE_COMMENT} {}. Here all versions stay.", quoted(rule));
    }
    let (column, kind) = (&family.column, family.kind);
    if kind != Merge::Newest {
        let _ = writeln!(text, "kind = \"{}\"", kind.word());
    }
    let value = if family.holds_integers() { format!("{{{column}}}") } else { format!("{{{column}:hex}}") };
    let _ = writeln!(text, "columns = [{{ qualifier = \"{QUALIFIER}\", value = \"{value}\" }}]");
    text
}

const RULE_COMMENT: &str = "# There it is";

/// A name for the column of a family's values that is not among `taken`.
fn free_column(family: &str, taken: &mut Vec<String>) -> String {
    let name: String = family.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let base = format!("value_{name}");
    let mut names = std::iter::once(base.clone()).chain((2_u32..).map(|number| format!("{base}_{number}")));
    let free = names.find(|name| !taken.contains(name)).unwrap_or(base);
    taken.push(free.clone());
    free
}

/// A key of TOML, in quotes if it needs them.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// A job file in sections, as its lines are.
struct JobText {
    /// Lines up to the next header; the first section has none.
    sections: Vec<TextSection>,
}

struct TextSection {
    /// The keys of the header.
    path: Vec<String>,
    lines: Vec<String>,
}

impl JobText {
    fn of(text: &str) -> Self {
        let mut sections = vec![TextSection { path: Vec::new(), lines: Vec::new() }];
        for line in text.lines() {
            if let Some(path) = header(line) {
                sections.push(TextSection { path, lines: Vec::new() });
            }
            if let Some(section) = sections.last_mut() {
                section.lines.push(line.to_owned());
            }
        }
        Self { sections }
    }

    fn section(&mut self, path: &[&str]) -> Option<&mut TextSection> {
        self.sections.iter_mut().find(|section| section.path == path)
    }

    fn has_key(&mut self, path: &[&str], name: &str) -> bool {
        self.section(path).is_some_and(|section| section.lines.iter().any(|line| is_key(line, name)))
    }

    /// Puts a line behind the others of a section.
    fn add_key(&mut self, path: &[&str], line: &str) {
        let Some(section) = self.section(path) else { return };
        let mut lines = section.lines.iter();
        let last = lines.rposition(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
        let after = last.map_or(section.lines.len(), |last| last + 1);
        section.lines.insert(after, line.to_owned());
    }

    fn remove_key(&mut self, path: &[&str], name: &str) {
        if let Some(section) = self.section(path) {
            section.lines.retain(|line| !is_key(line, name));
        }
    }

    /// Removes the section of a family, unless it has lines of the user. Returns whether it is gone.
    fn remove_family(&mut self, table: &str, family: &str) -> bool {
        let path = ["tables", table, "families", family];
        let Some(at) = self.sections.iter().position(|section| section.path == path) else { return false };
        let is_made = self.sections.get(at).is_some_and(|section| section.lines.iter().all(|line| is_made(line)));
        if is_made {
            self.sections.remove(at);
        }
        is_made
    }

    fn append(&mut self, text: &str) {
        let mut more = Self::of(text).sections;
        if let (Some(last), false) = (self.sections.last_mut(), more.is_empty()) {
            last.lines.append(&mut more.remove(0).lines);
        }
        self.sections.append(&mut more);
    }

    fn text(&self) -> String {
        let lines = self.sections.iter().flat_map(|section| &section.lines);
        lines.fold(String::new(), |text, line| text + line + "\n")
    }
}

/// Whether a line of a family's section is one that [`family_block`] writes.
fn is_made(line: &str) -> bool {
    let line = line.trim();
    let is_entry = line.starts_with(RULE_COMMENT) || is_key(line, "kind") || is_key(line, "columns");
    line.is_empty() || header(line).is_some() || is_entry
}

/// Whether a line gives the key `name` a value.
fn is_key(line: &str, name: &str) -> bool {
    let before = line.split_once('=').map(|(before, _)| before.trim());
    before.is_some_and(|before| before == name || before == quoted(name))
}

/// The keys of a header, `[tables."a.b".families.f]`; `None` for another line.
fn header(line: &str) -> Option<Vec<String>> {
    let inside = line.trim().strip_prefix('[').filter(|rest| !rest.starts_with('['))?;
    let (mut path, mut name) = (Vec::new(), String::new());
    let mut quote = None;
    for letter in inside.chars() {
        match (letter, quote) {
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => quote = Some(letter),
            ('.', None) => path.push(std::mem::take(&mut name)),
            (']', None) => {
                path.push(name);
                return Some(path);
            }
            (' ' | '\t', None) => {}
            (letter, _) => name.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::SourceFamily;

    fn source(families: &[(&str, Merge)], is_micros: bool) -> SourceTable {
        let family = |(name, kind): &(&str, Merge)| SourceFamily { name: (*name).to_owned(), kind: *kind, rule: None };
        SourceTable { families: families.iter().map(family).collect(), is_micros }
    }

    fn raw_job(schema: &RawSchema) -> RawJob {
        RawJob {
            table: "a.b-c".to_owned(),
            source: SOURCE.to_owned(),
            made_for: None,
            families: schema.families.clone(),
            is_micros: schema.is_micros,
            columns: schema.families.iter().map(|family| family.column.clone()).collect(),
        }
    }

    #[test]
    fn names_are_distinct_and_quoted() {
        let table = source(&[("a-b", Merge::Newest), ("a.b", Merge::Hll), ("a_b", Merge::Sum)], true);
        let schema = RawSchema::new(&table, &[]);
        let columns: Vec<&str> = schema.families.iter().map(|family| family.column.as_str()).collect();
        assert_eq!(columns, ["value_a_b", "value_a_b_2", "value_a_b_3"]);
        let text = schema.job_file("j", "a.b-c", "pulled/j/*.parquet", "projects/p/instances/i/tables/a.b-c");
        for expected in [
            "[tables.\"a.b-c\"]\n",
            "granularity = \"micros\"\n",
            "[tables.\"a.b-c\".families.\"a.b\"]\nkind = \"hll\"\ncolumns = [{ qualifier = \"{qualifier:hex}\", value = \
             \"{value_a_b_2:hex}\" }]\n",
            "value_a_b_3 = \"int64\"\n",
            "kind = \"sum\"\ncolumns = [{ qualifier = \"{qualifier:hex}\", value = \"{value_a_b_3}\" }]\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn a_job_follows_the_families_and_keeps_what_was_added() {
        let before = RawSchema::new(&source(&[("a", Merge::Newest), ("b", Merge::Newest)], false), &[]);
        let text = before.job_file("j", "a.b-c", "p/*.parquet", "t") + "\n[exports.E]\nper = \"day\"\n";
        let table = source(&[("a", Merge::Newest), ("b", Merge::Sum), ("new", Merge::Newest)], true);
        let job = raw_job(&before);
        let schema = job.schema(&table, &[]);
        let followed = job.follow(&text, &schema, &job.gone(&table));
        for expected in [
            "value_b = \"int64\"\nvalue_new = \"text\"\n",
            "row_key = \"{row_key:hex}\"\ngranularity = \"micros\"\n",
            "[exports.E]\nper = \"day\"\n",
            "[tables.\"a.b-c\".families.\"b\"]\nkind = \"sum\"\n",
            "[tables.\"a.b-c\".families.\"new\"]\n",
        ] {
            assert!(followed.contains(expected), "{expected}\n{followed}");
        }
        assert_eq!(followed.matches("families.\"b\"").count(), 1);
        // A family that is gone takes its column with it, and nothing changes a second time.
        let job = raw_job(&schema);
        let table = source(&[("new", Merge::Newest)], true);
        let left = job.follow(&followed, &job.schema(&table, &[]), &job.gone(&table));
        assert!(!left.contains("value_a") && !left.contains("families.\"b\""), "{left}");
        let job = raw_job(&job.schema(&table, &[]));
        assert_eq!(job.follow(&left, &job.schema(&table, &[]), &job.gone(&table)), left);
    }

    #[test]
    fn sections_that_were_edited_stay() {
        let schema = RawSchema::new(&source(&[("a", Merge::Newest), ("b", Merge::Newest)], false), &[]);
        let text = schema.job_file("j", "T", "p/*.parquet", "t");
        let text = text.replace("[tables.T.families.\"a\"]\n", "[tables.T.families.\"a\"]\ngc = \"maxversions=1\"\n");
        let job = RawJob { table: "T".to_owned(), ..raw_job(&schema) };
        let table = source(&[("b", Merge::Newest)], false);
        let followed = job.follow(&text, &job.schema(&table, &[]), &job.gone(&table));
        assert!(followed.contains("value_a = ") && followed.contains("gc = \"maxversions=1\""), "{followed}");
    }
}
