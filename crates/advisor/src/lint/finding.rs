//! A finding at its line of the job file, with the line as it should be.

use tidetable_job::Job;

use super::found::{Edit, Found, Measure};
use super::rule::{Rule, Severity};

/// A rule that a job breaks at one place of its file: what, where, by how much, and the change that mends it.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule that is broken, with its reason and the page that says so.
    pub rule: &'static Rule,
    /// How grave it is here; at most as grave as the rule.
    pub severity: Severity,
    /// The table; `None` for the job as a whole.
    pub table: Option<String>,
    /// What is wrong here.
    pub message: String,
    /// Its place in the job file.
    pub place: Place,
    /// Real row keys or values from the data; none without data.
    pub keys: Vec<String>,
    /// A number against its limit.
    pub measure: Option<Measure>,
    /// The changed lines, where a change of one place mends it.
    pub change: Option<Change>,
    /// Why a person has silenced it, if so.
    pub silenced: Option<String>,
}

/// A range of the job file. Lines and columns count from 1, columns in characters; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line in which it begins.
    pub line: usize,
    /// The column of its first character.
    pub column: usize,
    /// The line in which it ends.
    pub end_line: usize,
    /// Column behind the last character.
    pub end_column: usize,
}

/// Lines of the job file, and what they should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The text that is replaced.
    pub place: Place,
    /// The text that replaces it.
    pub text: String,
    /// The whole lines that it touches, as they are.
    pub before: String,
    /// The same lines with the change made.
    pub after: String,
}

impl Finding {
    pub(crate) fn new(rule: &'static Rule, found: Found, job: &Job) -> Self {
        let Found { severity, message, at, table, keys, measure, edit } = found;
        let silenced = allowed(rule, table.as_deref(), job);
        let place = Place::of(&job.text, at.start, at.end);
        let change = edit.and_then(|edit| Change::of(&job.text, &edit));
        Self { rule, severity, table, message, place, keys, measure, change, silenced }
    }
}

/// The reason why the rule does not hold: that of the table, else that of the job.
fn allowed(rule: &Rule, table: Option<&str>, job: &Job) -> Option<String> {
    let of_table = table.and_then(|name| job.table(name)).map(|table| table.allowances.as_slice());
    let all = of_table.unwrap_or_default().iter().chain(&job.allowances);
    all.into_iter().find(|allowance| allowance.rule == rule.id).map(|allowance| allowance.reason.clone())
}

impl Place {
    pub(crate) fn of(text: &str, start: usize, end: usize) -> Self {
        let (line, column) = line_column(text, start);
        let (end_line, end_column) = line_column(text, end.max(start));
        Self { line, column, end_line, end_column }
    }
}

fn line_column(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()) + 1;
    (line, column)
}

impl Change {
    fn of(text: &str, edit: &Edit) -> Option<Self> {
        let first = text.get(..edit.at.start)?.rfind('\n').map_or(0, |at| at + 1);
        let last = text.get(edit.at.end..)?.find('\n').map_or(text.len(), |at| edit.at.end + at);
        let before = text.get(first..last)?;
        let after = format!("{}{}{}", text.get(first..edit.at.start)?, edit.text, text.get(edit.at.end..last)?);
        let place = Place::of(text, edit.at.start, edit.at.end);
        Some(Self { place, text: edit.text.clone(), before: before.to_owned(), after })
    }

    /// The job file with the change made in it.
    pub fn applied(&self, text: &str) -> String {
        let mut lines: Vec<&str> = text.split('\n').collect();
        let range = self.place.line.saturating_sub(1)..self.place.end_line.min(lines.len());
        lines.splice(range, [self.after.as_str()]);
        lines.join("\n")
    }
}
