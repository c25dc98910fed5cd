//! Orders of columns and time in a row key, as queries want them.

use tidetable_layout::{Field, FieldType, SourceSchema};

use crate::advice::wants::Want;
use crate::facts::{FieldFacts, ValueFacts};
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
    /// Columns behind it.
    pub(super) after: Vec<String>,
}

impl KeyOrder {
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
    /// How many values columns will have.
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

    /// From common to granular, tenants first.
    fn sorted(&self, mut names: Vec<String>) -> Vec<String> {
        let place = |name: &str| self.schema.fields.iter().position(|field| field.name == name);
        names.sort_by(|one, other| {
            let first = is_tenant(other).cmp(&is_tenant(one));
            let common = self.profile.distinct(one).total_cmp(&self.profile.distinct(other));
            first.then(common).then(place(one).cmp(&place(other)))
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
        let mut found: Vec<KeyOrder> = Vec::new();
        let mut add = |before: Vec<String>, after: Vec<String>| {
            let order = KeyOrder { before, after };
            if !found.contains(&order) {
                found.push(order);
            }
        };
        let fixed: Vec<Vec<String>> =
            wants.iter().map(|want| want.fixed(|name| self.is_key(name))).filter(|fixed| !fixed.is_empty()).collect();
        let without = |all: &[String], some: &[String]| -> Vec<String> {
            all.iter().filter(|name| !some.contains(name)).cloned().collect()
        };
        for own in &fixed {
            let rest = self.sorted(without(self.entity, own));
            let whole = [self.sorted(own.clone()), rest.clone()].concat();
            add(whole.clone(), Vec::new());
            for shared in
                fixed.iter().filter(|other| other.len() < own.len() && other.iter().all(|it| own.contains(it)))
            {
                let own_rest = self.sorted(without(own, shared));
                add([self.sorted(shared.clone()), own_rest, rest.clone()].concat(), Vec::new());
            }
            if !rest.is_empty() {
                add(self.sorted(own.clone()), rest);
            }
        }
        add(self.sorted(self.entity.to_vec()), Vec::new());
        if fixed.is_empty() {
            permutations(self.entity).into_iter().for_each(|order| add(order, Vec::new()));
        }
        add(Vec::new(), self.sorted(self.entity.to_vec()));
        found
    }
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
