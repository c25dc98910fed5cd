//! The tables of a job together, and the rules it silences.

use tidetable_job::{Allowance, Table, TableInput, nearest};
use tidetable_layout::TableSpec;

use crate::lint::found::Found;
use crate::lint::limits;
use crate::lint::rule::{Check, DESIGN, GUIDE, Needs, QUOTAS, Rule, Severity};
use crate::lint::subject::{JobSubject, TableSubject};

pub(super) static TABLES: Rule = Rule {
    id: "T1",
    severity: Severity::Error,
    needs: Needs::Job,
    title: "over 100 tables; an error over 1,000, the limit of an instance",
    reason: "Many small tables spread badly over nodes and cost a connection each; what has one shape belongs into one table, told \
             apart by the row key",
    source: QUOTAS,
    check: Check::Job(tables),
};

fn tables(job: &JobSubject<'_>) -> Vec<Found> {
    let count = job.tables.len();
    let Some(passed) = limits::tables(count as u64, job.prices) else { return Vec::new() };
    let Some(first) = job.tables.get(passed.limit as usize) else { return Vec::new() };
    let found = Found::new(passed.severity, first.at(), format!("{count} tables"));
    vec![found.measure(passed.measured, passed.limit, "tables")]
}

pub(super) static ALIKE: Rule = Rule {
    id: "T2",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "tables that differ in nothing but their name and rows",
    reason: "Tables of one shape are better one table, in which a column of the row key tells their rows apart: it is balanced over \
             nodes as a whole, and read and maintained once",
    source: DESIGN,
    check: Check::Job(same_shape),
};

fn same_shape(job: &JobSubject<'_>) -> Vec<Found> {
    let mut found = Vec::new();
    let mut counted = vec![false; job.tables.len()];
    for (at, table) in job.tables.iter().enumerate() {
        if counted.get(at).copied().unwrap_or_default() {
            continue;
        }

        let mut others = Vec::new();
        for (place, other) in job.tables.iter().enumerate().skip(at + 1) {
            if alike(table.table, other.table) {
                others.push(other.name());
                if let Some(seen) = counted.get_mut(place) {
                    *seen = true;
                }
            }
        }

        if !others.is_empty() {
            let message = format!("{} and {} have one row key and the same columns", table.name(), others.join(", "));
            let found_here = Found::new(Severity::Warn, table.at(), message);
            let found_here = found_here.measure((others.len() + 1) as f64, 1.0, "tables");
            found.push(Found { table: Some(table.name().to_owned()), ..found_here });
        }
    }
    found
}

/// Whether two tables of one source have the same layout and garbage collection.
pub(super) fn alike(one: &Table, other: &Table) -> bool {
    let (TableInput::Source(source), TableInput::Source(other_source)) = (&one.from, &other.from) else { return false };
    let unnamed = TableSpec { name: other.spec.name.clone(), ..one.spec.clone() };
    source == other_source && one.gc == other.gc && unnamed == other.spec
}

/// The column and the value of `where = "column = 'value'"`.
pub(super) fn chosen_value(table: &TableSubject<'_>) -> Option<(String, String)> {
    let (column, value) = table.table.predicate.as_deref()?.split_once('=')?;
    let value = value.trim().strip_prefix('\'')?.strip_suffix('\'')?;
    let column = column.trim().trim_matches('"');
    let plain = column.chars().all(|c| c.is_alphanumeric() || c == '_') && !value.contains('\'');
    plain.then(|| (column.to_owned(), value.to_owned()))
}

pub(super) static APART: Rule = Rule {
    id: "T3",
    severity: Severity::Warn,
    needs: Needs::Data,
    title: "families of which no row has both",
    reason: "What is never written or read together shares nothing but a name: two tables can be sized, kept and read apart",
    source: DESIGN,
    check: Check::Table(apart),
};

fn apart(table: &TableSubject<'_>) -> Vec<Found> {
    let pairs = table.facts.iter().flat_map(|facts| &facts.apart);
    let found = pairs.map(|(one, other)| {
        Found::new(Severity::Warn, table.at(), format!("no row has cells of both `{one}` and `{other}`"))
    });
    found.collect()
}

pub(super) static UNKNOWN_RULE: Rule = Rule {
    id: "A1",
    severity: Severity::Warn,
    needs: Needs::Job,
    title: "a key of `lint` in the job file that names no rule",
    reason: "It silences nothing",
    source: GUIDE,
    check: Check::Job(unknown_rule),
};

fn unknown_rule(job: &JobSubject<'_>) -> Vec<Found> {
    let mut found = unknown_rules(job, &job.job.allowances, None);
    for table in &job.tables {
        found.extend(unknown_rules(job, &table.table.allowances, Some(table.name())));
    }
    found
}

/// The rules that `allowances` name and nobody has; `table` declares these, or else the job does.
fn unknown_rules(job: &JobSubject<'_>, allowances: &[Allowance], table: Option<&str>) -> Vec<Found> {
    let mut found = Vec::new();
    for allowance in allowances.iter().filter(|allowance| !job.rules.contains(&allowance.rule.as_str())) {
        let near = nearest(&allowance.rule, job.rules.iter().copied());
        let meant = near.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default();
        let message = format!("there is no rule `{}`{meant}", allowance.rule);
        let unknown = Found::new(Severity::Warn, allowance.at.clone(), message);
        found.push(Found { table: table.map(str::to_owned), ..unknown });
    }
    found
}
