//! Families of a table, as Bigtable has them: garbage-collection rules and aggregate types.

use std::collections::BTreeMap;
use std::fmt;

use tidetable_cells::CellScan;
use tidetable_layout::FieldType;
use tidetable_layout::hll::{Distinct, Sketch};
use tidetable_layout::schema::Merge;
use tidetable_layout::spec::Granularity;
use tidetable_store::{GcRule, Snapshot, StoreError};

use crate::client::kinds::{MICROS, merge_of};
use crate::client::rules::remote_rule;
use crate::error::Result;
use crate::proto::admin::gc_rule::Rule;
use crate::proto::admin::r#type::aggregate::{Aggregator, HyperLogLogPlusPlusUniqueCount, Max, Min, Sum};
use crate::proto::admin::r#type::int64::encoding::{BigEndianBytes, Encoding as IntEncoding};
use crate::proto::admin::r#type::string::encoding::{Encoding as TextEncoding, Utf8Bytes};
use crate::proto::admin::r#type::{Aggregate, Int64, Kind, String as TextType, int64, string};
use crate::proto::admin::{ColumnFamily, GcRule as RemoteRule, Table, Type};
use crate::rows::LocalRows;

/// The families of a table here.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSchema {
    /// The families by their ids.
    pub families: BTreeMap<String, FamilySchema>,
    /// The granularity in which timestamps are stored.
    pub granularity: Granularity,
}

/// A family of a table here, with what it is in Bigtable.
#[derive(Debug, Clone, PartialEq)]
pub struct FamilySchema {
    /// Its rule, in cbt's notation.
    pub gc: Option<String>,
    /// How its cells merge.
    pub kind: Merge,
    /// Whether what is counted in sketches are integers.
    counts_integers: bool,
    /// Whether its sketches were made elsewhere, so that only they tell what they count.
    holds_states: bool,
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
        /// The word for its kind in Bigtable.
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

            let value = family.columns.first().map(|column| column.value.as_str()).unwrap_or_default();
            let mut fields = version.table.source.fields.iter();
            let field = fields.find(|field| value.trim_matches(['{', '}']) == field.name);
            let counts_integers = field.is_some_and(|field| matches!(field.kind, FieldType::Int64 | FieldType::UInt64));
            let holds_states = value.ends_with(":hex}") && family.kind == Merge::Hll;
            let known = FamilySchema { gc, kind: family.kind, counts_integers, holds_states, rule };
            families.insert(family.name.clone(), known);
        }
        Ok(Self { families, granularity: spec.granularity })
    }

    /// Finds out what the sketches count that were made elsewhere: the first one of each family tells.
    ///
    /// # Errors
    /// If the version of `snapshot` cannot be read.
    pub(crate) fn look_at_sketches(&mut self, snapshot: &Snapshot) -> Result<()> {
        let families = self.families.iter().filter(|(_, family)| family.holds_states);
        let mut open: Vec<String> = families.map(|(name, _)| name.clone()).collect();
        if open.is_empty() {
            return Ok(());
        }
        for row in LocalRows::new(CellScan::new(snapshot.clone())) {
            for cell in row?.cells {
                let Some(at) = open.iter().position(|name| **name == *cell.family) else { continue };
                let family = self.families.get_mut(&open.swap_remove(at));
                // Only a sketch of integers takes one.
                let counts_integers =
                    Sketch::read(&cell.value).is_ok_and(|mut sketch| sketch.add(Distinct::Integer(0)).is_ok());
                family.into_iter().for_each(|family| family.counts_integers = counts_integers);
            }
            if open.is_empty() {
                break;
            }
        }
        Ok(())
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
        let mut differences = Vec::new();
        for (name, family) in &self.families {
            let difference = match table.column_families.get(name) {
                None => FamilyDifference::Missing,
                Some(there) if merge_of(there) != Some(family.kind) => {
                    FamilyDifference::Kind { there: kind_of(there).to_owned() }
                }
                Some(there) if there.gc_rule.as_ref().and_then(|rule| rule.rule.as_ref()) != family.rule_kind() => {
                    FamilyDifference::Rule
                }
                Some(_) => continue,
            };
            differences.push((name.clone(), difference));
        }
        differences
    }
}

impl FamilySchema {
    /// The family to create.
    pub(crate) fn remote(&self) -> ColumnFamily {
        ColumnFamily { gc_rule: self.rule.clone(), value_type: self.value_type() }
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
fn kind_of(family: &ColumnFamily) -> &'static str {
    merge_of(family).map_or("an unknown aggregate", Merge::word)
}
