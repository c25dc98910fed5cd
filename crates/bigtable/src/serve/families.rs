//! The families of a table as the Table Admin API describes them: garbage-collection rules and types.

use std::collections::HashMap;

use prost_types::Duration;
use tidetable_layout::schema::Merge;
use tidetable_store::{GcRule, Snapshot};

use crate::proto::admin::gc_rule::{Intersection, Rule, Union};
use crate::proto::admin::r#type::{self, Kind};
use crate::proto::admin::{ColumnFamily, GcRule as Sent, Type};

const MICROS: i64 = 1_000_000;

/// The families of a version, by name.
pub(crate) fn families(snapshot: &Snapshot) -> HashMap<String, ColumnFamily> {
    let layout = snapshot.layout();
    let declared = layout.spec().families.iter().map(|family| (family.name.clone(), ColumnFamily::default()));
    let mut families: HashMap<String, ColumnFamily> = declared.collect();
    for column in layout.stored().groups.iter().flat_map(|group| &group.columns) {
        let family = families.entry(column.family.clone()).or_default();
        if family.value_type.is_none() {
            family.value_type = value_type(column.merge);
        }
    }
    for (name, rule) in &snapshot.version().table.gc {
        let rule = GcRule::parse(rule).ok().and_then(|rule| sent(&rule));
        families.entry(name.clone()).or_default().gc_rule = rule;
    }
    families
}

/// A rule as a message; nothing for one that keeps all cells.
fn sent(rule: &GcRule) -> Option<Sent> {
    let of = |rule: Rule| Some(Sent { rule: Some(rule) });
    let rules = |one: Option<Sent>, other: Option<Sent>| one.into_iter().chain(other).collect::<Vec<_>>();
    rule.fold(
        |versions| of(Rule::MaxNumVersions(i32::try_from(versions).unwrap_or(i32::MAX))),
        |age| {
            let nanos = i32::try_from(age % MICROS * 1_000).unwrap_or_default();
            of(Rule::MaxAge(Duration { seconds: age / MICROS, nanos }))
        },
        // Both sides must remove a cell, and one that keeps all never does.
        |one, other| match rules(one, other) {
            rules if rules.len() == 2 => of(Rule::Intersection(Intersection { rules })),
            _ => None,
        },
        |one, other| match rules(one, other) {
            rules if rules.len() == 2 => of(Rule::Union(Union { rules })),
            rules => rules.into_iter().next(),
        },
    )
}

/// The type of an aggregate family.
fn value_type(merge: Merge) -> Option<Type> {
    use r#type::aggregate::{Aggregator, HyperLogLogPlusPlusUniqueCount, Max, Min, Sum};
    let big_endian = || r#type::int64::encoding::Encoding::BigEndianBytes(Default::default());
    let int64 = || Type {
        kind: Some(Kind::Int64Type(r#type::Int64 {
            encoding: Some(r#type::int64::Encoding { encoding: Some(big_endian()) }),
        })),
    };
    let raw = || r#type::bytes::encoding::Encoding::Raw(Default::default());
    let bytes = || Type {
        kind: Some(Kind::BytesType(r#type::Bytes {
            encoding: Some(r#type::bytes::Encoding { encoding: Some(raw()) }),
        })),
    };
    let (state, aggregator) = match merge {
        Merge::Newest => return None,
        Merge::Sum => (int64(), Aggregator::Sum(Sum {})),
        Merge::Min => (int64(), Aggregator::Min(Min {})),
        Merge::Max => (int64(), Aggregator::Max(Max {})),
        Merge::Hll => (bytes(), Aggregator::HllppUniqueCount(HyperLogLogPlusPlusUniqueCount {})),
    };
    let (input_type, state_type) = (Some(Box::new(int64())), Some(Box::new(state)));
    let aggregate = r#type::Aggregate { input_type, state_type, aggregator: Some(aggregator) };
    Some(Type { kind: Some(Kind::AggregateType(Box::new(aggregate))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Sent> {
        sent(&GcRule::parse(text).unwrap())
    }

    fn versions(number: i32) -> Sent {
        Sent { rule: Some(Rule::MaxNumVersions(number)) }
    }

    #[test]
    fn rules_are_those_of_the_job_file() {
        let age = Sent { rule: Some(Rule::MaxAge(Duration { seconds: 86_400, nanos: 0 })) };
        assert_eq!(of("maxversions=2"), Some(versions(2)));
        assert_eq!(
            of("maxage=1500ms"),
            Some(Sent { rule: Some(Rule::MaxAge(Duration { seconds: 1, nanos: 500_000_000 })) })
        );
        assert_eq!(of("never"), None);
        let union = Sent { rule: Some(Rule::Union(Union { rules: vec![versions(2), age.clone()] })) };
        assert_eq!(of("maxversions=2 or maxage=1d"), Some(union.clone()));
        let both = Sent { rule: Some(Rule::Intersection(Intersection { rules: vec![union, versions(9)] })) };
        assert_eq!(of("(maxversions=2 or maxage=1d) and maxversions=9"), Some(both));
        assert_eq!(of("maxversions=2 and never"), None);
        assert_eq!(of("never or maxage=1d"), Some(age));
    }
}
