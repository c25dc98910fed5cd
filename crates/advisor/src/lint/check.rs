//! Runs all rules over a job.

use tidetable_job::{Job, Table};

use super::finding::Finding;
use super::found::Found;
use super::rule::{Check, Needs, Rule, Severity};
use super::rules::RULES;
use super::subject::JobSubject;
use crate::cost::Prices;
use crate::facts::DataFacts;

/// The findings of a job, by their place in its file.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Those that count: neither the table nor the job allows their rule.
    pub findings: Vec<Finding>,
    /// Those that a person has silenced, with the reason.
    pub silenced: Vec<Finding>,
}

impl Report {
    /// The number of findings at least as grave as `severity`.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity >= severity).count()
    }

    /// The findings that keep a layout from being chosen: errors, rows that grow too large or are written too often, and rows
    /// that are written for ever. A query that reads more than it must is judged by its cost, and another table may answer it.
    pub fn refusals(&self) -> impl Iterator<Item = &Finding> {
        const REFUSED: [&str; 3] = ["R1", "W2", "K7"];
        self.findings.iter().filter(|finding| {
            let is_error = finding.severity == Severity::Error && finding.rule.needs != Needs::Queries;
            is_error || REFUSED.contains(&finding.rule.id)
        })
    }
}

/// Checks tables each by itself, as if it were the only one of the job: alternatives, of which one will be chosen. `text` is
/// that of the file which declares them.
pub fn lint_apart(job: &Job, tables: &[Table], text: &str, data: Option<&DataFacts>, prices: &Prices) -> Vec<Report> {
    let mut reports = Vec::with_capacity(tables.len());
    for table in tables {
        let alone = Job { tables: vec![table.clone()], text: text.to_owned(), ..job.clone() };
        reports.push(lint(&alone, data, prices));
    }
    reports
}

/// Checks the tables of a job against all rules; those that need data are silent without. The limits are those of `prices`.
pub fn lint(job: &Job, data: Option<&DataFacts>, prices: &Prices) -> Report {
    let subject = JobSubject::new(job, data, prices, RULES.iter().map(|rule| rule.id).collect());
    let mut all: Vec<Finding> = Vec::new();
    for rule in RULES {
        all.extend(found_by(rule, &subject).into_iter().map(|found| Finding::new(rule, found, job)));
    }
    // Findings of one place stay in the order of the rules.
    all.sort_by_key(|finding| (finding.place.line, finding.place.column));
    let (silenced, findings) = all.into_iter().partition(|finding| finding.silenced.is_some());
    Report { findings, silenced }
}

/// What a rule finds in the job; what it finds in a table bears the table's name.
fn found_by(rule: &Rule, subject: &JobSubject<'_>) -> Vec<Found> {
    let check = match rule.check {
        Check::Job(check) => return check(subject),
        Check::Table(check) => check,
    };
    let mut all = Vec::new();
    for table in &subject.tables {
        all.extend(check(table).into_iter().map(|found| Found { table: Some(table.name().to_owned()), ..found }));
    }
    all
}
