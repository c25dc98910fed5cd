//! Orders of columns and time in a row key, as queries want them.

use tidetable_layout::{Field, FieldType, SourceSchema};

use crate::advice::wants::Want;
use crate::facts::{FieldFacts, ValueFacts};
use crate::growth::QueryBounds;
use crate::lint::{is_domains, is_tenant};
use crate::trial::{ColumnProfile, Profile};

/// Columns of which every order is tried where no query fixes any; more keep their order.
const ORDERED: usize = 3;
/// Digits to which a number is padded at least: keys of one width are kept when there are more of them.
const DIGITS: usize = 10;

/// The columns of a row key on both sides of the time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct KeyOrder {
    /// Columns before the time.
    pub(super) before: Vec<String>,
    /// Columns behind the time; a prefix of the key does not select by them.
    pub(super) after: Vec<String>,
}

impl KeyOrder {
    fn time_last(before: Vec<String>) -> Self {
        Self { before, after: Vec::new() }
    }

    /// All columns, from left to right.
    pub(super) fn columns(&self) -> Vec<String> {
        [self.before.clone(), self.after.clone()].concat()
    }
}

/// What is known of the columns that keys may have.
pub(super) struct Columns<'a> {
    pub(super) schema: &'a SourceSchema,
    pub(super) profile: &'a Profile,
    /// Those that tell what a row is about.
    pub(super) entity: &'a [String],
    /// The number of distinct values that the workload declares for a column, by its name.
    pub(super) scale: &'a [(String, f64)],
}

impl Columns<'_> {
    /// Whether a row key can hold a column: it has a value in every row, and its texts sort as it does.
    pub(super) fn is_key(&self, name: &str) -> bool {
        let Some(field) = self.field(name) else { return false };
        let kinds = [FieldType::Text, FieldType::UInt64, FieldType::Int64, FieldType::Date, FieldType::Bool];
        let is_filled = self.profile.column(name).is_none_or(|column| column.nulls == 0);
        kinds.contains(&field.kind) && is_filled
    }

    pub(super) fn field(&self, name: &str) -> Option<&Field> {
        self.schema.fields.iter().find(|field| field.name == name)
    }

    /// How many values a column has, or will have.
    pub(super) fn number(&self, name: &str) -> f64 {
        let declared = self.scale.iter().find(|(column, _)| column == name).map_or(0.0, |(_, number)| *number);
        self.profile.distinct(name).max(declared)
    }

    /// The row key of a table that keeps the newest row of each entity, for a query with these bounds: what it fixes, and what
    /// else tells rows apart. Columns that follow from these are left out.
    pub(super) fn newest_key(&self, bounds: &QueryBounds) -> Vec<String> {
        let fixed = bounds.fixed.iter().filter(|name| self.is_key(name)).cloned().collect();
        let mut key = self.sorted(fixed);
        let mut rest = self.sorted(without(self.entity, &key));
        // From granular to common: a vehicle has one depot.
        while let Some(name) = rest.pop() {
            let mut others = key.iter().chain(&rest).filter(|other| **other != name);
            if !others.any(|other| self.profile.is_within(other, &name)) {
                key.push(name);
            }
        }
        let count = bounds.fixed.iter().filter(|name| key.contains(name)).count();
        let granular = key.split_off(count.min(key.len()));
        key.extend(self.sorted(granular));
        key
    }

    /// The columns from common to granular, by their number of distinct values, with tenants first.
    fn sorted(&self, mut names: Vec<String>) -> Vec<String> {
        names.sort_by_cached_key(|name| self.schema.fields.iter().position(|field| field.name == *name));
        names.sort_by(|one, other| {
            let by_tenant = is_tenant(other).cmp(&is_tenant(one));
            by_tenant.then(self.profile.distinct(one).total_cmp(&self.profile.distinct(other)))
        });
        names.dedup();
        names
    }

    /// The template of a column: numbers padded so that they sort, sequential ones reversed at the beginning of a key, domains
    /// reversed, and text escaped where a delimiter follows.
    pub(super) fn template(&self, name: &str, is_first: bool) -> String {
        let Some(field) = self.field(name) else { return String::new() };
        let column = self.profile.column(name);
        let is_signed = column.is_some_and(|column| column.is_signed);
        match field.kind {
            FieldType::UInt64 | FieldType::Int64 if is_signed => format!("{{{name}}}"),
            FieldType::UInt64 | FieldType::Int64 => {
                if is_first && column.is_some_and(is_sequential) {
                    return format!("{{{name}:reversed}}");
                }
                let longest = column.map_or(0, |column| column.longest);
                let digits = format!("{:.0}", self.number(name)).len().max(longest).clamp(DIGITS, 20);
                format!("{{{name}:0{digits}}}")
            }
            FieldType::Text => {
                let values = column.iter().flat_map(|column| &column.values).map(|value| value.text.as_str());
                if is_domains(values) { format!("{{{name}:domain}}") } else { format!("{{{name}:percent}}") }
            }
            _ => format!("{{{name}}}"),
        }
    }

    /// The orders to try: for each query what it fixes first, then the rest of the entity, with the time at the end or right
    /// behind what is fixed; where queries share columns, these first. The last begins with the time.
    pub(super) fn orders(&self, wants: &[Want]) -> Vec<KeyOrder> {
        let mut fixed: Vec<Vec<String>> = wants.iter().map(|want| want.fixed(|name| self.is_key(name))).collect();
        fixed.retain(|columns| !columns.is_empty());

        let mut orders: Vec<KeyOrder> = fixed.iter().flat_map(|columns| self.orders_for(columns, &fixed)).collect();
        orders.push(KeyOrder::time_last(self.sorted(self.entity.to_vec())));
        if fixed.is_empty() {
            orders.extend(permutations(self.entity).into_iter().map(KeyOrder::time_last));
        }
        orders.push(KeyOrder { before: Vec::new(), after: self.sorted(self.entity.to_vec()) });

        let mut distinct: Vec<KeyOrder> = Vec::new();
        for order in orders {
            if !distinct.contains(&order) {
                distinct.push(order);
            }
        }
        distinct
    }

    /// The orders for a query that fixes `columns`; `fixed` are the columns of all queries.
    fn orders_for(&self, columns: &[String], fixed: &[Vec<String>]) -> Vec<KeyOrder> {
        let first = self.sorted(columns.to_vec());
        let rest = self.sorted(without(self.entity, columns));
        let mut orders = vec![KeyOrder::time_last([first.clone(), rest.clone()].concat())];

        for shared in fixed {
            if shared.len() < columns.len() && shared.iter().all(|name| columns.contains(name)) {
                let others = self.sorted(without(columns, shared));
                orders.push(KeyOrder::time_last([self.sorted(shared.clone()), others, rest.clone()].concat()));
            }
        }

        if !rest.is_empty() {
            orders.push(KeyOrder { before: first, after: rest });
        }
        orders
    }
}

/// The names of `all` that are not among `some`, in their order.
fn without(all: &[String], some: &[String]) -> Vec<String> {
    all.iter().filter(|name| !some.contains(name)).cloned().collect()
}

/// Whether the values of a column are numbers that come in sequence.
fn is_sequential(column: &ColumnProfile) -> bool {
    let values = column.values.iter();
    let values = values.map(|value| ValueFacts { text: value.text.clone(), rows: value.rows, first: value.first });
    FieldFacts { name: column.name.clone(), values: values.collect(), complete: true }.is_sequential()
}

/// All orders of a few columns.
fn permutations(columns: &[String]) -> Vec<Vec<String>> {
    if columns.len() > ORDERED || columns.len() < 2 {
        return vec![columns.to_vec()];
    }
    let mut found = Vec::new();
    for (at, first) in columns.iter().enumerate() {
        let mut others = columns.to_vec();
        others.remove(at);
        found.extend(permutations(&others).into_iter().map(|order| [vec![first.clone()], order].concat()));
    }
    found
}
