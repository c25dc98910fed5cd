//! Families of a table, as Bigtable has them: garbage-collection rules and aggregate types.

use std::collections::BTreeMap;
use std::fmt;

use tidetable_layout::FieldType;
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::Granularity;
use tidetable_store::{GcRule, Snapshot, StoreError};

use crate::error::Result;
use crate::proto::admin::gc_rule::{Intersection, Rule, Union};
use crate::proto::admin::r#type::aggregate::{Aggregator, HyperLogLogPlusPlusUniqueCount, Max, Min, Sum};
use crate::proto::admin::r#type::int64::encoding::{BigEndianBytes, Encoding as IntEncoding};
use crate::proto::admin::r#type::string::encoding::{Encoding as TextEncoding, Utf8Bytes};
use crate::proto::admin::r#type::{Aggregate, Int64, Kind, String as TextType, int64, string};
use crate::proto::admin::{ColumnFamily, GcRule as RemoteRule, Table, Type};

/// Granularity MICROS of a table: newer than the messages of this build.
const MICROS: i32 = 2;

/// The families of a table here.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// By id.
    pub families: BTreeMap<String, FamilySchema>,
    /// Granularity of timestamps.
    pub granularity: Granularity,
}

/// A family.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilySchema {
    /// Its rule, in cbt's notation.
    pub gc: Option<String>,
    /// How its cells merge.
    pub kind: Merge,
    /// Whether what is counted in sketches are integers.
    counts_integers: bool,
    rule: Option<RemoteRule>,
}

/// How a family in Bigtable differs from the one here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FamilyDifference {
    /// It is not there.
    Missing,
    /// It has another garbage-collection rule, which stays.
    Rule,
    /// It is an aggregate family of another kind, or none.
    Kind {
        /// The kind there.
        there: String,
    },
}

impl TableSchema {
    /// The families of the version of `snapshot`.
    ///
    /// # Errors
    /// If this build cannot read a garbage-collection rule.
    pub fn of(snapshot: &Snapshot) -> Result<Self> {
        let version = snapshot.version();
        let spec = &version.table.spec;
        let is_integer = |name: &str| {
            let field = version.table.source.fields.iter().find(|field| name.trim_matches(['{', '}']) == field.name);
            field.is_some_and(|field| matches!(field.kind, FieldType::Int64 | FieldType::UInt64))
        };
        let mut families = BTreeMap::new();
        for family in &spec.families {
            let gc = version.table.gc.get(&family.name).cloned();
            let parsed = gc.as_ref().map(|text| {
                GcRule::parse(text).map_err(|error| StoreError::Layout {
                    table: snapshot.table().name().to_owned(),
                    reason: format!("gc of family {}: {error}", family.name),
                })
            });
            let rule = parsed.transpose()?.and_then(|rule| remote_rule(&rule));
            let counts_integers = family.columns.first().is_some_and(|column| is_integer(&column.value));
            families.insert(family.name.clone(), FamilySchema { gc, kind: family.kind, counts_integers, rule });
        }
        Ok(Self { families, granularity: spec.granularity })
    }

    /// Microseconds of one timestamp.
    pub fn step(&self) -> i64 {
        match self.granularity {
            Granularity::Millis => 1000,
            Granularity::Micros => 1,
        }
    }

    /// Families whose cells merge.
    pub fn aggregates(&self) -> impl Iterator<Item = (&str, Merge)> {
        let families = self.families.iter().filter(|(_, family)| !family.kind.is_newest());
        families.map(|(name, family)| (name.as_str(), family.kind))
    }

    /// The table to create.
    pub(crate) fn table(&self) -> Table {
        let families = self.families.iter().map(|(name, family)| (name.clone(), family.remote()));
        let granularity = match self.granularity {
            Granularity::Millis => 0,
            Granularity::Micros => MICROS,
        };
        Table { column_families: families.collect(), granularity, ..Table::default() }
    }

    /// Whether timestamps of the table here fit into those of `table`.
    pub(crate) fn fits_timestamps(&self, table: &Table) -> bool {
        self.granularity == Granularity::Millis || table.granularity == MICROS
    }

    /// What families of `table` have otherwise, by id.
    pub(crate) fn differences(&self, table: &Table) -> Vec<(String, FamilyDifference)> {
        let of = |(name, family): (&String, &FamilySchema)| {
            let difference = match table.column_families.get(name) {
                None => Some(FamilyDifference::Missing),
                Some(there) if kind_of(there) != family.kind.word() => {
                    Some(FamilyDifference::Kind { there: kind_of(there).to_owned() })
                }
                Some(there) if there.gc_rule.as_ref().and_then(|rule| rule.rule.as_ref()) != family.rule_kind() => {
                    Some(FamilyDifference::Rule)
                }
                Some(_) => None,
            };
            difference.map(|difference| (name.clone(), difference))
        };
        self.families.iter().filter_map(of).collect()
    }
}

impl FamilySchema {
    /// The family to create.
    pub(crate) fn remote(&self) -> ColumnFamily {
        ColumnFamily { gc_rule: self.rule.clone(), value_type: self.value_type(), ..ColumnFamily::default() }
    }

    fn rule_kind(&self) -> Option<&Rule> {
        self.rule.as_ref().and_then(|rule| rule.rule.as_ref())
    }

    fn value_type(&self) -> Option<Type> {
        let aggregator = match self.kind {
            Merge::Newest => return None,
            Merge::Sum => Aggregator::Sum(Sum {}),
            Merge::Min => Aggregator::Min(Min {}),
            Merge::Max => Aggregator::Max(Max {}),
            Merge::Hll => Aggregator::HllppUniqueCount(HyperLogLogPlusPlusUniqueCount {}),
        };
        let counts_text = self.kind == Merge::Hll && !self.counts_integers;
        let input = if counts_text { text_type() } else { integer_type() };
        let aggregate =
            Aggregate { input_type: Some(Box::new(input)), aggregator: Some(aggregator), ..Aggregate::default() };
        Some(Type { kind: Some(Kind::AggregateType(Box::new(aggregate))) })
    }
}

impl fmt::Display for FamilySchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rule = self.gc.as_deref().unwrap_or("never");
        if self.kind.is_newest() { write!(f, "{rule}") } else { write!(f, "{rule}, {} of integers", self.kind.word()) }
    }
}

fn integer_type() -> Type {
    let encoding = int64::Encoding { encoding: Some(IntEncoding::BigEndianBytes(BigEndianBytes::default())) };
    Type { kind: Some(Kind::Int64Type(Int64 { encoding: Some(encoding) })) }
}

fn text_type() -> Type {
    let encoding = string::Encoding { encoding: Some(TextEncoding::Utf8Bytes(Utf8Bytes::default())) };
    Type { kind: Some(Kind::StringType(TextType { encoding: Some(encoding) })) }
}

/// The word for how the cells of a family in Bigtable merge.
pub(crate) fn kind_of(family: &ColumnFamily) -> &'static str {
    let aggregator = match family.value_type.as_ref().and_then(|value| value.kind.as_ref()) {
        Some(Kind::AggregateType(aggregate)) => aggregate.aggregator.as_ref(),
        _ => return Merge::Newest.word(),
    };
    match aggregator {
        Some(Aggregator::Sum(_)) => Merge::Sum.word(),
        Some(Aggregator::Min(_)) => Merge::Min.word(),
        Some(Aggregator::Max(_)) => Merge::Max.word(),
        Some(Aggregator::HllppUniqueCount(_)) => Merge::Hll.word(),
        None => "an unknown aggregate",
    }
}

/// A rule as the API has it; `None` for one that removes nothing.
fn remote_rule(rule: &GcRule) -> Option<RemoteRule> {
    let versions = |most: u32| Some(Rule::MaxNumVersions(i32::try_from(most).unwrap_or(i32::MAX)));
    let age = |micros: i64| {
        let nanos = i32::try_from(micros.rem_euclid(1_000_000) * 1000).unwrap_or(0);
        Some(Rule::MaxAge(prost_types::Duration { seconds: micros.div_euclid(1_000_000), nanos }))
    };
    let and = |left: Option<Rule>, right: Option<Rule>| {
        // With a side that removes nothing it removes nothing.
        let (left, right) = left.zip(right)?;
        let mut rules = match left {
            Rule::Intersection(both) => both.rules,
            other => vec![RemoteRule { rule: Some(other) }],
        };
        rules.push(RemoteRule { rule: Some(right) });
        Some(Rule::Intersection(Intersection { rules }))
    };
    let or = |left: Option<Rule>, right: Option<Rule>| match (left, right) {
        (Some(left), Some(right)) => {
            let mut rules = match left {
                Rule::Union(union) => union.rules,
                other => vec![RemoteRule { rule: Some(other) }],
            };
            rules.push(RemoteRule { rule: Some(right) });
            Some(Rule::Union(Union { rules }))
        }
        (left, right) => left.or(right),
    };
    rule.fold(versions, age, and, or).map(|rule| RemoteRule { rule: Some(rule) })
}

/// A rule of the API in cbt's notation; `None` for one that removes nothing.
pub(crate) fn rule_text(rule: &RemoteRule) -> Option<String> {
    let list = |rules: &[RemoteRule], joint: &str| {
        let texts: Vec<String> = rules.iter().filter_map(rule_text).collect();
        match texts.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            _ => Some(format!("({})", texts.join(joint))),
        }
    };
    match rule.rule.as_ref()? {
        Rule::MaxNumVersions(most) => Some(format!("maxversions={most}")),
        Rule::MaxAge(age) => {
            let millis = age.seconds.saturating_mul(1000).saturating_add(i64::from(age.nanos) / 1_000_000);
            let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
            let (unit, size) = units.into_iter().find(|(_, size)| millis % size == 0)?;
            Some(format!("maxage={}{unit}", millis / size))
        }
        Rule::Intersection(both) => list(&both.rules, " and "),
        Rule::Union(either) => list(&either.rules, " or "),
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
