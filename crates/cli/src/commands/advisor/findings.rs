//! The rules of schema design that layouts break, in a comparison.

use std::io::Write;

use serde_json::{Value, json};
use tidetable_advisor::comparison::Comparison;
use tidetable_advisor::lint::{Finding, Report, Severity};
use tidetable_page::view;

use crate::commands::lint::number_text;
use crate::error::CliError;

/// A finding as `--output json` prints it.
pub fn linted(finding: &Finding) -> Value {
    json!({
        "rule": finding.rule.id,
        "severity": finding.severity.word(),
        "message": finding.message,
        "keys": finding.keys,
    })
}

/// Shows the errors of each layout.
pub fn show_errors(comparison: &Comparison, reports: &[Report], out: &mut impl Write) -> Result<(), CliError> {
    for (layout, report) in comparison.layouts.iter().zip(reports) {
        let name = &layout.measured.layout;
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        for finding in errors {
            writeln!(out, "{name}: error[{}] {}", finding.rule.id, finding.message)?;
        }
    }
    Ok(())
}

/// All findings, the worst first; those of a severity in the order of the layouts. `path` is the file of the layouts.
pub fn page_findings(reports: &[Report], path: &str) -> Vec<view::Finding> {
    let mut all: Vec<&Finding> = reports.iter().flat_map(|report| &report.findings).collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    all.into_iter().map(|finding| page_finding(finding, path)).collect()
}

fn page_finding(finding: &Finding, path: &str) -> view::Finding {
    let severity = match finding.severity {
        Severity::Error => view::Severity::Error,
        Severity::Warn => view::Severity::Warn,
        Severity::Info => view::Severity::Info,
    };
    let measured = finding.measure.map(|measure| {
        format!("{} {}, limit {}", number_text(measure.measured), measure.unit, number_text(measure.limit))
    });
    let change = finding.change.as_ref().map(|change| view::Change {
        place: format!("{path}:{}", change.place.line),
        before: change.before.clone(),
        after: change.after.clone(),
    });
    view::Finding {
        rule: finding.rule.id.to_owned(),
        severity,
        table: finding.table.clone().unwrap_or_default(),
        message: finding.message.clone(),
        keys: finding.keys.clone(),
        measured: measured.unwrap_or_default(),
        reason: format!("{}.", finding.rule.reason),
        source: finding.rule.source.to_owned(),
        change,
    }
}
