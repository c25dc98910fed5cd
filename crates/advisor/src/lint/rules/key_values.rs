//! The values of the columns of a row key.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_layout::FieldType;
use tidetable_layout::outline::FieldForm;

use crate::facts::{FieldFacts, NewValues, RejectKind, SEQUENTIAL as IN_ORDER, ValueFacts};
use crate::lint::forms::{is_domain, owner};
use crate::lint::found::Found;
use crate::lint::rule::{Check, DESIGN, Needs, Rule, Severity};
use crate::lint::subject::{KeyField, TableSubject};

/// Share of values, or of rows, that makes a rule speak.
const MOST: f64 = 0.9;
/// Domains that are few for most of the rows.
const FEW_DOMAINS: usize = 10;

pub(super) static SEQUENTIAL: Rule = Rule {
    id: "K2",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "a sequential number first in the row key: 90 % of its values are greater than all seen before",
    reason: "New numbers all go to the end of the table, and what is new is mostly what is busy; the digits in reverse spread them",
    source: DESIGN,
    check: Check::Table(sequential),
};

fn sequential(table: &TableSubject<'_>) -> Vec<Found> {
    let Some((field, data)) = first_field(table) else { return Vec::new() };
    if !matches!(field.form, FieldForm::Text | FieldForm::ZeroPad(_)) {
        return Vec::new();
    }
    let Some(new) = data.in_order().filter(|_| data.is_sequential()) else { return Vec::new() };

    let NewValues { all, greater } = new;
    let share = greater as f64 / all as f64;
    let message = format!("{greater} of {all} new values of `{}` are greater than all seen before", field.name);
    let edit = table.with_field(field, &format!("{{{}:reversed}}", field.name));
    let keys = data.values.iter().rev().map(|value| value.text.clone());
    let found = Found::new(Severity::Warn, table.key_at(field.span.clone()), message);
    vec![found.measure(share, IN_ORDER, "of new values").keys(keys).edit(edit)]
}

/// The column that comes first in the row key, with its values.
fn first_field<'t>(table: &'t TableSubject<'_>) -> Option<(&'t KeyField, &'t FieldFacts)> {
    let field = table.fields().first()?;
    Some((field, table.facts?.field(&field.name)?))
}

pub(super) static DOMAIN: Rule = Rule {
    id: "K5",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "domain names that are not reversed: 90 % of the values are, of several owners, one of them with several",
    reason: "Keys sort from the left, and a domain's owner stands at the right: reversed, the names of one owner are neighbours, \
             read as a range and compressed together",
    source: DESIGN,
    check: Check::Table(domain),
};

fn domain(table: &TableSubject<'_>) -> Vec<Found> {
    let texts = table.fields().iter().filter(|field| matches!(field.form, FieldForm::Text | FieldForm::Percent));
    let found = texts.filter_map(|field| {
        let data = table.facts?.field(&field.name)?;
        let domains: Vec<&str> =
            data.values.iter().map(|value| value.text.as_str()).filter(|text| is_domain(text)).collect();
        let owners: BTreeSet<&str> = domains.iter().map(|domain| owner(domain)).collect();
        let share = domains.len() as f64 / data.values.len().max(1) as f64;
        // Names of a single owner, or one of each, are not brought together by reversing them.
        if share < MOST || owners.len() < 2 || owners.len() == domains.len() {
            return None;
        }
        let message = format!("`{}` holds {} names of {} owners", field.name, domains.len(), owners.len());
        let edit = table.with_field(field, &format!("{{{}:domain}}", field.name));
        let found = Found::new(Severity::Warn, table.key_at(field.span.clone()), message);
        let keys = domains.iter().map(|domain| (*domain).to_owned());
        Some(found.measure(share, MOST, "of values").keys(keys).edit(edit))
    });
    found.collect()
}

pub(super) static HOT_DOMAINS: Rule = Rule {
    id: "K6",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "fewer than 10 domains, first in the row key, with 90 % of the rows",
    reason: "Where few domains have nearly all the data, what is written to one of them goes to neighbouring rows and may overload \
             their node",
    source: DESIGN,
    check: Check::Table(hot_domains),
};

fn hot_domains(table: &TableSubject<'_>) -> Vec<Found> {
    let Some((field, data)) = first_field(table) else { return Vec::new() };
    let is_domains = matches!(field.form, FieldForm::Domain) || data.values.iter().all(|value| is_domain(&value.text));
    let mut counts: Vec<&ValueFacts> = data.values.iter().collect();
    counts.sort_by(|one, other| other.rows.cmp(&one.rows).then_with(|| one.text.cmp(&other.text)));
    let total: u64 = counts.iter().map(|value| value.rows).sum();
    let mut sum = 0;
    let few = counts.iter().take_while(|value| {
        let more = (sum as f64) < MOST * total as f64;
        sum += value.rows;
        more
    });
    let few = few.count();
    if !is_domains || total == 0 || few >= FEW_DOMAINS {
        return Vec::new();
    }
    let message = format!("{few} of {} values of `{}` have 90 % of the rows", counts.len(), field.name);
    let keys = counts.iter().take(few).map(|value| value.text.clone());
    let found = Found::new(Severity::Warn, table.key_at(field.span.clone()), message);
    vec![found.measure(few as f64, FEW_DOMAINS as f64, "domains").keys(keys)]
}

pub(super) static GRANULAR: Rule = Rule {
    id: "K11",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "a granular column before a common one that follows from it",
    reason: "A prefix of the key is the cheapest question: with the common column first a continent, a country or a city are each \
             one range, the other way round only the city is",
    source: DESIGN,
    check: Check::Table(granular),
};

fn granular(table: &TableSubject<'_>) -> Vec<Found> {
    let Some(facts) = table.facts else { return Vec::new() };
    let fields = table.fields();
    let found = fields.windows(2).enumerate().filter_map(|(at, pair)| {
        let [left, right] = pair else { return None };
        let of_pair = facts.pairs.iter().find(|pair| pair.left == left.name && pair.right == right.name)?;
        let (left_data, right_data) = (facts.field(&left.name)?, facts.field(&right.name)?);
        let [granular, common] = [left_data, right_data].map(|data| data.values.len() as u64);
        // Each value on the left has one on the right, and not the other way round.
        let follows = of_pair.pairs == granular && common < granular && common > 1;
        if !follows || !left_data.complete || !right_data.complete {
            return None;
        }

        let mut order = table.written_all(fields);
        order.swap(at, at + 1);
        let message = format!(
            "each of {granular} values of `{}` has one of {common} of `{}`, which comes after it",
            left.name, right.name
        );
        let found = Found::new(Severity::Warn, table.key_at(left.span.clone()), message).edit(table.with_order(&order));
        Some(found.keys(left_data.values.iter().map(|value| value.text.clone())))
    });
    found.collect()
}

pub(super) static DELIMITER: Rule = Rule {
    id: "K14",
    severity: Severity::Error,
    needs: Needs::Data,
    title: "values that hold the delimiter of the row key",
    reason: "Such a key could be read in two ways, so the row is rejected; percent-encoded, the value cannot hold the delimiter",
    source: DESIGN,
    check: Check::Table(delimiter),
};

fn delimiter(table: &TableSubject<'_>) -> Vec<Found> {
    let rejects = table.facts.iter().flat_map(|facts| &facts.rejects);
    let mut of_column: BTreeMap<&str, (u64, Vec<String>)> = BTreeMap::new();
    for reject in rejects.filter(|reject| reject.kind == RejectKind::Delimiter) {
        let (rows, examples) = of_column.entry(&reject.column).or_default();
        *rows += reject.rows;
        examples.push(reject.example.clone());
    }
    let found = of_column.into_iter().map(|(column, (rows, examples))| {
        let field = table.fields().iter().find(|field| field.name == column);
        let at = field.map_or_else(|| table.at(), |field| table.key_at(field.span.clone()));
        let text = field.filter(|field| field.kind == FieldType::Text);
        let edit = text.and_then(|field| table.with_field(field, &format!("{{{column}:percent}}")));
        let message = format!("{rows} rows are rejected: their `{column}` holds the delimiter");
        Found::new(Severity::Error, at, message).measure(rows as f64, 0.0, "rows").keys(examples).edit(edit)
    });
    found.collect()
}
