//! Garbage-collection rules, in the API's form and in cbt's notation.

use tidetable_store::GcRule;

use crate::proto::admin::GcRule as RemoteRule;
use crate::proto::admin::gc_rule::{Intersection, Rule, Union};

/// A rule as the API has it; `None` for one that removes nothing.
pub(crate) fn remote_rule(rule: &GcRule) -> Option<RemoteRule> {
    rule.fold(max_versions, max_age, both, either).map(|rule| RemoteRule { rule: Some(rule) })
}

fn max_versions(most: u32) -> Option<Rule> {
    Some(Rule::MaxNumVersions(i32::try_from(most).unwrap_or(i32::MAX)))
}

fn max_age(micros: i64) -> Option<Rule> {
    let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0);
    Some(Rule::MaxAge(prost_types::Duration { seconds: micros.div_euclid(1_000_000), nanos }))
}

/// The intersection of two rules; with a side that removes nothing it removes nothing.
fn both(left: Option<Rule>, right: Option<Rule>) -> Option<Rule> {
    let (left, right) = left.zip(right)?;
    let mut rules = match left {
        Rule::Intersection(both) => both.rules,
        other => vec![RemoteRule { rule: Some(other) }],
    };
    rules.push(RemoteRule { rule: Some(right) });
    Some(Rule::Intersection(Intersection { rules }))
}

/// The union of two rules; a side that removes nothing adds nothing.
fn either(left: Option<Rule>, right: Option<Rule>) -> Option<Rule> {
    let (left, right) = match (left, right) {
        (Some(left), Some(right)) => (left, right),
        (left, right) => return left.or(right),
    };
    let mut rules = match left {
        Rule::Union(union) => union.rules,
        other => vec![RemoteRule { rule: Some(other) }],
    };
    rules.push(RemoteRule { rule: Some(right) });
    Some(Rule::Union(Union { rules }))
}

/// A rule of the API in cbt's notation; `None` for one that removes nothing.
pub(crate) fn rule_text(rule: &RemoteRule) -> Option<String> {
    match rule.rule.as_ref()? {
        Rule::MaxNumVersions(most) => Some(format!("maxversions={most}")),
        Rule::MaxAge(age) => {
            let millis = age.seconds.saturating_mul(1000).saturating_add(i64::from(age.nanos) / 1_000_000);
            let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
            let (unit, size) = units.into_iter().find(|(_, size)| millis % size == 0)?;
            Some(format!("maxage={}{unit}", millis / size))
        }
        Rule::Intersection(both) => joined(&both.rules, " and "),
        Rule::Union(either) => joined(&either.rules, " or "),
    }
}

fn joined(rules: &[RemoteRule], joint: &str) -> Option<String> {
    let texts: Vec<String> = rules.iter().filter_map(rule_text).collect();
    match texts.as_slice() {
        [] => None,
        [only] => Some(only.clone()),
        _ => Some(format!("({})", texts.join(joint))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(text: &str) -> Option<String> {
        remote_rule(&GcRule::parse(text).unwrap()).as_ref().and_then(rule_text)
    }

    #[test]
    fn rules_are_those_of_the_text() {
        for (text, expected) in [
            ("maxversions=3", Some("maxversions=3")),
            ("maxage=90s", Some("maxage=90s")),
            ("maxage=48h", Some("maxage=2d")),
            ("never", None),
            ("never or maxversions=1", Some("maxversions=1")),
            ("never and maxversions=1", None),
            ("maxage=30d and maxversions=2 or maxage=365d", Some("((maxage=30d and maxversions=2) or maxage=365d)")),
            ("maxversions=1 or maxversions=2 or maxage=1ms", Some("(maxversions=1 or maxversions=2 or maxage=1ms)")),
        ] {
            assert_eq!(there_and_back(text).as_deref(), expected, "{text}");
        }
    }
}
