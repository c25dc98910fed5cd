//! Findings as SARIF 2.1.0, which code review tools show at the line.
//!
//! Source: OASIS, Static Analysis Results Interchange Format version 2.1.0.

use serde_json::{Value, json};

use super::check::Report;
use super::finding::{Finding, Place};
use super::rule::{GUIDE, Rule, Severity};
use super::rules::RULES;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// The report of a job file as one SARIF log. `path` is the job file relative to the root of the repository, with slashes.
/// Silenced findings are in it with their reason, as suppressions.
pub fn sarif(report: &Report, path: &str) -> Value {
    let results: Vec<Value> =
        report.findings.iter().chain(&report.silenced).map(|finding| result(finding, path)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "tidetable",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": RULES.iter().map(|rule| descriptor(rule)).collect::<Vec<_>>(),
            } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Info => "note",
        Severity::Warn => "warning",
        Severity::Error => "error",
    }
}

fn descriptor(rule: &Rule) -> Value {
    let mut descriptor = json!({
        "id": rule.id,
        "shortDescription": { "text": rule.title },
        "fullDescription": { "text": rule.reason },
        "defaultConfiguration": { "level": level(rule.severity) },
    });
    // A help URI is absolute.
    if rule.source != GUIDE {
        descriptor["helpUri"] = json!(rule.source);
    }
    descriptor
}

fn result(finding: &Finding, path: &str) -> Value {
    let about = finding.table.as_ref().map(|table| format!("{table}: ")).unwrap_or_default();
    let examples = match finding.keys.as_slice() {
        [] => String::new(),
        keys => format!(" ({})", keys.join(", ")),
    };
    let text = format!("{about}{}{examples}. {}", finding.message, finding.rule.reason);

    let location = json!({ "uri": uri(path) });
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": RULES.iter().position(|rule| rule.id == finding.rule.id).unwrap_or_default(),
        "level": level(finding.severity),
        "message": { "text": text },
        "locations": [{ "physicalLocation": { "artifactLocation": location, "region": region(finding.place) } }],
    });
    if let Some(change) = &finding.change {
        let replacement = json!({ "deletedRegion": region(change.place), "insertedContent": { "text": change.text } });
        result["fixes"] = json!([{
            "description": { "text": "Change the job file" },
            "artifactChanges": [{ "artifactLocation": location, "replacements": [replacement] }],
        }]);
    }
    if let Some(reason) = &finding.silenced {
        result["suppressions"] = json!([{ "kind": "inSource", "justification": reason }]);
    }
    result
}

fn region(place: Place) -> Value {
    json!({
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    })
}

/// A relative path as a URI reference: bytes that are not allowed in one are percent-encoded.
fn uri(path: &str) -> String {
    let mut uri = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/!$&'()*+,;=@".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn paths_as_uris() {
        assert_eq!(uri("jobs/a b/é.toml"), "jobs/a%20b/%C3%A9.toml");
    }
}
