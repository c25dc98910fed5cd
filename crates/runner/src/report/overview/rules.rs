//! Values of checks over time.

use std::collections::BTreeMap;

use tidetable_record::{RunRecord, Severity};

/// Values of a rule of a check.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleValues {
    /// Name of the check in the job file.
    pub check: String,
    /// The table or export checked.
    pub on: String,
    /// The rule, such as `not_null meter`.
    pub rule: String,
    /// What a failure means, as last recorded.
    pub severity: Severity,
    /// By label of the part or day, ascending: the last value of each.
    pub values: Vec<RuleValue>,
}

/// The value of a rule for a part or day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleValue {
    /// Label of the part, or the day.
    pub label: String,
    /// Rows that broke the rule; for a rule on the number of rows, that number.
    pub measured: i64,
    /// Whether the rule held.
    pub passed: bool,
    /// The run that measured it.
    pub run: String,
}

/// Severity, and the last value of each label.
type LastValues<'a> = (Severity, BTreeMap<&'a str, RuleValue>);

/// The last value of each rule and label. `runs` are records, the oldest first.
pub(super) fn rules(runs: &[RunRecord]) -> Vec<RuleValues> {
    let mut found: BTreeMap<(&str, &str, &str), LastValues<'_>> = BTreeMap::new();
    for (run, check) in runs.iter().flat_map(|run| run.checks.iter().map(move |check| (run, check))) {
        let key = (check.check.as_str(), check.on.as_str(), check.rule.as_str());
        let (severity, values) = found.entry(key).or_default();
        *severity = check.severity;

        let label = check.label.clone();
        let value = RuleValue { label, measured: check.measured, passed: check.passed, run: run.run.clone() };
        values.insert(&check.label, value);
    }

    let mut rules = Vec::with_capacity(found.len());
    for ((check, on, rule), (severity, values)) in found {
        rules.push(RuleValues {
            check: check.to_owned(),
            on: on.to_owned(),
            rule: rule.to_owned(),
            severity,
            values: values.into_values().collect(),
        });
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidetable_record::CheckRecord;

    #[test]
    fn the_last_value_of_a_day_counts() {
        let check = |label: &str, measured| CheckRecord {
            check: "c".to_owned(),
            on: "T".to_owned(),
            label: label.to_owned(),
            rule: "not_null x".to_owned(),
            severity: Severity::Warn,
            measured,
            passed: measured == 0,
        };
        let run = |run: &str, checks| RunRecord { run: run.to_owned(), checks, ..RunRecord::default() };
        let found = rules(&[run("1", vec![check("b", 3), check("a", 0)]), run("2", vec![check("b", 0)])]);
        let [rule] = found.as_slice() else { unreachable!("one rule") };
        let values: Vec<(&str, i64, &str)> =
            rule.values.iter().map(|value| (value.label.as_str(), value.measured, value.run.as_str())).collect();
        assert_eq!(values, [("a", 0, "1"), ("b", 0, "2")]);
    }
}
