//! GC filter: applies garbage-collection rules to a block.
//!
//! A read applies the rules at the logical time of its version, so that a compaction, which removes expired cells,
//! changes no answer.

use std::collections::BTreeMap;

use arrow::array::{Array, ArrayRef, BooleanArray, BooleanBufferBuilder};
use arrow::compute::{filter, nullif};
use tidetable_layout::block::{GroupProjection, Qualifiers};
use tidetable_layout::schema::{QualifierKind, TimestampKind};
use tidetable_layout::{Block, Group, GroupBlock, Projection, StoredSchema};
use tidetable_sstable::{ReadError, StripeMeta, StripeReader};

use crate::error::Result;
use crate::gc::rule::GcRule;

/// Cells that rules remove from a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovedCells {
    /// Their number.
    pub cells: u64,
    /// The first row that loses one.
    pub first_row: Option<usize>,
}

/// The garbage-collection rules of a table at a logical time.
#[derive(Debug, Clone)]
pub struct GcFilter {
    /// For each group, the rule of each column's family; `None` for a group without rules.
    rules: Vec<Option<Vec<Option<GcRule>>>>,
    now: i64,
}

impl GcFilter {
    /// A filter for the rules `families` of the columns of `schema` at `now`; `None` without rules.
    pub fn new(schema: &StoredSchema, families: &BTreeMap<String, GcRule>, now: i64) -> Option<Self> {
        let mut rules = Vec::with_capacity(schema.groups.len());
        for group in &schema.groups {
            let of_columns: Vec<Option<GcRule>> =
                group.columns.iter().map(|column| families.get(&column.family).cloned()).collect();
            rules.push(of_columns.iter().any(Option::is_some).then_some(of_columns));
        }

        rules.iter().any(Option::is_some).then_some(Self { rules, now })
    }

    /// The same, but for what the rules remove whatever the age of a cell: by the number of newer versions alone. Only of the
    /// groups that `counts` names; `None` if nothing is removed so.
    pub fn of_versions(
        schema: &StoredSchema,
        families: &BTreeMap<String, GcRule>,
        counts: impl Fn(usize) -> bool,
    ) -> Option<Self> {
        let by_versions = families.iter().filter_map(|(family, rule)| Some((family.clone(), rule.of_versions()?)));
        let mut filter = Self::new(schema, &by_versions.collect(), 0)?;
        for (at, (group, rules)) in schema.groups.iter().zip(&mut filter.rules).enumerate() {
            if group.keeps_duplicates() || group.timestamps == TimestampKind::Zero || !counts(at) {
                *rules = None;
            }
        }
        filter.rules.iter().any(Option::is_some).then_some(filter)
    }

    /// Whether any rule has a `maxage`.
    pub fn looks_at_age(&self) -> bool {
        self.rules.iter().flatten().flatten().flatten().any(GcRule::looks_at_age)
    }

    /// Whether the rules certainly keep all cells of a stripe, decided without reading pages: each column of a row
    /// has one version, and the oldest timestamp is within `maxage`. Rules are monotonic: they consist of ages and
    /// counts with `and` and `or` only, so checking the oldest cell suffices.
    pub(crate) fn keeps_all(&self, schema: &StoredSchema, stripe: &StripeReader) -> Result<bool, ReadError> {
        let meta = stripe.meta()?;
        if self.keeps_all_by_stats(schema, meta) {
            return Ok(true);
        }
        self.keeps_all_if(schema, meta, |group| stripe.one_version_each(group))
    }

    /// As [`Self::keeps_all`], by stripe stats only.
    pub(crate) fn keeps_all_by_stats(&self, schema: &StoredSchema, meta: &StripeMeta) -> bool {
        let kept = self.keeps_all_if(schema, meta, |group| Ok(meta.one_version_each.get(group) == Some(&true)));
        kept.unwrap_or(false)
    }

    /// As [`Self::keeps_all`]; `one_version_each` says of a group whether each column of a row has one version.
    fn keeps_all_if(
        &self,
        schema: &StoredSchema,
        meta: &StripeMeta,
        one_version_each: impl Fn(usize) -> Result<bool, ReadError>,
    ) -> Result<bool, ReadError> {
        let least = meta.timestamps.map_or(0, |(least, _)| least);
        for (at, (group, rules)) in schema.groups.iter().zip(&self.rules).enumerate() {
            let Some(rules) = rules else { continue };
            let alike = group.keeps_duplicates();
            let oldest = if alike || group.timestamps == TimestampKind::Zero { 0 } else { least };
            if rules.iter().flatten().any(|rule| rule.drops(0, oldest, self.now)) || (!alike && !one_version_each(at)?)
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the columns needed to apply the rules.
    pub(crate) fn widen(&self, schema: &StoredSchema, projection: &mut Projection) {
        for ((group, rules), wanted) in schema.groups.iter().zip(&self.rules).zip(&mut projection.groups) {
            if let (Some(_), Some(wanted)) = (rules, wanted) {
                widen_group(group, wanted);
            }
        }
    }

    /// The number of cells of `block` that the rules remove, and the first row that loses one.
    pub fn count(&self, schema: &StoredSchema, block: &Block) -> RemovedCells {
        let mut removed = RemovedCells::default();
        for ((group, rules), stored) in schema.groups.iter().zip(&self.rules).zip(&block.groups) {
            let (Some(rules), Some(records)) = (rules, stored.as_ref()) else { continue };
            let Some(drops) = self.drops(group, rules, records) else { continue };

            // The columns of a packed group are fields of one cell.
            let columns = if group.packed.is_some() { 1 } else { drops.len() };
            for drops in drops.iter().take(columns).flatten() {
                removed.cells += drops.true_count() as u64;
                let first = drops.values().set_indices().next();
                let row = first.map(|record| records.row_ends.partition_point(|end| *end as usize <= record));
                removed.first_row = removed.first_row.into_iter().chain(row).min();
            }
        }
        removed
    }

    /// The live cells of `block`.
    pub fn apply(&self, schema: &StoredSchema, mut block: Block) -> Result<Block> {
        let mut changed = false;
        for ((group, rules), stored) in schema.groups.iter().zip(&self.rules).zip(&mut block.groups) {
            if let (Some(rules), Some(records)) = (rules, stored.as_mut())
                && let Some(left) = self.apply_to_group(group, rules, records, schema.upsert)?
            {
                *records = left;
                changed = true;
            }
        }
        Ok(if changed { block.without_empty_rows() } else { block })
    }

    /// The live cells of a group; `None` if all are.
    fn apply_to_group(
        &self,
        group: &Group,
        rules: &[Option<GcRule>],
        records: &GroupBlock,
        keeps_empty: bool,
    ) -> Result<Option<GroupBlock>> {
        match self.drops(group, rules, records) {
            Some(drops) => remove(records, &drops, keeps_empty).map(Some),
            None => Ok(None),
        }
    }

    /// For each column of a group with a rule, the records whose cells go; `None` if none goes.
    fn drops(
        &self,
        group: &Group,
        rules: &[Option<GcRule>],
        records: &GroupBlock,
    ) -> Option<Vec<Option<BooleanArray>>> {
        if !group.keeps_duplicates() && !may_drop(rules, records) {
            return None;
        }

        let drops: Vec<Option<BooleanArray>> = if group.packed.is_some() {
            // The columns are fields of one cell of one family, which is kept or removed as a whole.
            let rule = rules.iter().flatten().next();
            vec![rule.map(|rule| self.judge_packed(rule, group, records)); group.columns.len()]
        } else {
            let columns = rules.iter().zip(&records.columns);
            columns.map(|(rule, values)| Some(self.judge(rule.as_ref()?, records, values.as_ref()))).collect()
        };
        drops.iter().flatten().any(BooleanArray::has_true).then_some(drops)
    }

    /// For each record of a packed group, whether the rule removes its cell: either each record is a cell, or all
    /// records of a row and qualifier are one cell with one version and timestamp 0.
    fn judge_packed(&self, rule: &GcRule, group: &Group, records: &GroupBlock) -> BooleanArray {
        if !group.keeps_duplicates() {
            return self.judge(rule, records, None);
        }

        let mut drops = BooleanBufferBuilder::new(records.len());
        drops.append_n(records.len(), rule.drops(0, 0, self.now));
        BooleanArray::new(drops.finish(), None)
    }

    /// For each record, whether the rule removes its cell in a column. Without the column's values every record
    /// counts as a cell.
    fn judge(&self, rule: &GcRule, records: &GroupBlock, values: Option<&ArrayRef>) -> BooleanArray {
        let mut drops = BooleanBufferBuilder::new(records.len());
        for row in 0..records.row_ends.len() {
            let mut newer = 0;
            let mut qualifier = None;
            for record in records.records(row) {
                let code = records.qualifiers.as_ref().map(|qualifiers| qualifiers.codes[record]);
                if code != qualifier {
                    qualifier = code;
                    newer = 0;
                }

                if values.is_some_and(|values| values.is_null(record)) {
                    drops.append(false);
                    continue;
                }
                let timestamp = records.timestamps.as_ref().map_or(0, |timestamps| timestamps[record]);
                drops.append(rule.drops(newer, timestamp, self.now));
                newer += 1;
            }
        }

        BooleanArray::new(drops.finish(), None)
    }
}

/// Adds the columns of a group needed to identify cells: a record stays while any of its cells does.
pub(crate) fn widen_group(group: &Group, wanted: &mut GroupProjection) {
    wanted.timestamps = true;
    wanted.qualifiers = group.qualifier == QualifierKind::Dynamic;
    // In a group of one column, and in a packed group, each record is a cell: values need not be read.
    if group.columns.len() > 1 && group.packed.is_none() {
        wanted.columns.fill(true);
    }
}

/// Whether any rule may remove cells; mostly each column of a row has one version.
fn may_drop(rules: &[Option<GcRule>], records: &GroupBlock) -> bool {
    let mut kept = usize::MAX;
    for rule in rules.iter().flatten() {
        if rule.looks_at_age() {
            return !records.is_empty();
        }
        kept = kept.min(rule.always_kept());
    }
    let Some(qualifiers) = &records.qualifiers else {
        return (0..records.row_ends.len()).any(|row| records.records(row).len() > kept);
    };
    (0..records.row_ends.len()).any(|row| {
        let codes = &qualifiers.codes[records.records(row)];
        codes.len() > kept && codes.windows(kept.saturating_add(1)).any(|codes| codes.first() == codes.last())
    })
}

/// Removes cells, and records without remaining cells; records without cells before stay if `keeps_empty`.
pub(crate) fn remove(records: &GroupBlock, drops: &[Option<BooleanArray>], keeps_empty: bool) -> Result<GroupBlock> {
    let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(records.columns.len());
    let mut lasting = vec![false; records.len()];
    for (values, drop) in records.columns.iter().zip(drops) {
        let left = match (values, drop) {
            (Some(values), Some(drop)) => Some(nullif(values, drop)?),
            (values, _) => values.clone(),
        };
        match (&left, drop) {
            (Some(left), _) => lasting.iter_mut().enumerate().for_each(|(at, lasts)| *lasts |= left.is_valid(at)),
            (None, Some(drop)) => lasting.iter_mut().enumerate().for_each(|(at, lasts)| *lasts |= !drop.value(at)),
            (None, None) => lasting.fill(true),
        }
        columns.push(left);
    }

    if keeps_empty && records.columns.iter().all(Option::is_some) {
        for (record, lasts) in lasting.iter_mut().enumerate().filter(|(_, lasts)| !**lasts) {
            *lasts = records.columns.iter().flatten().all(|values| values.is_null(record));
        }
    }

    let mut kept = 0;
    let mut row_ends = Vec::with_capacity(records.row_ends.len());
    for row in 0..records.row_ends.len() {
        kept += lasting[records.records(row)].iter().filter(|lasts| **lasts).count() as u32;
        row_ends.push(kept);
    }

    let mask = BooleanArray::from(lasting.clone());
    let columns = columns.into_iter().map(|values| values.map(|values| filter(&values, &mask)).transpose());
    let columns = columns.collect::<Result<_, _>>()?;

    Ok(GroupBlock {
        row_ends,
        qualifiers: records.qualifiers.as_ref().map(|qualifiers| Qualifiers {
            dictionary: qualifiers.dictionary.clone(),
            codes: lasting_only(&qualifiers.codes, &lasting),
        }),
        timestamps: records.timestamps.as_ref().map(|timestamps| lasting_only(timestamps, &lasting)),
        columns,
        sums: Vec::new(),
    })
}

/// The values of the records that last.
fn lasting_only<T: Copy>(values: &[T], lasting: &[bool]) -> Vec<T> {
    values.iter().zip(lasting).filter(|(_, lasts)| **lasts).map(|(value, _)| *value).collect()
}
