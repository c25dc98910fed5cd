//! Evaluates checks with queries that count the rows that break a rule.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidetable_record::{CheckRecord, FailingRow, Severity};
use tidetable_sql::{ScalarValue, Session, SqlError, first_row_of_integers, first_rows, quoted_name};

use tidetable_job::{Check, Export, Job, Rule};

/// Evaluates the checks of a job; checks of a table once for each day.
pub(crate) struct Checker<'a> {
    job: &'a Job,
    /// The name of the run, or of a check on demand.
    run: String,
    /// Results of checks of tables, by table and day.
    known: Mutex<HashMap<(String, String), Vec<CheckRecord>>>,
    /// A sample of the rows that broke rules.
    failing: Mutex<Vec<FailingRow>>,
}

/// Sample size per rule and part.
const SAMPLE: usize = 5;
const SAMPLES: usize = 1000;

/// The session for the rows of a day, and the parameters of its queries.
pub(crate) struct CheckScope<'a> {
    pub(crate) session: &'a Session,
    pub(crate) label: &'a str,
    pub(crate) params: &'a [(&'a str, ScalarValue)],
}

impl<'a> Checker<'a> {
    pub(crate) fn new(job: &'a Job, run: &str) -> Self {
        Self { job, run: run.to_owned(), known: Mutex::default(), failing: Mutex::default() }
    }

    /// The sample of rows that broke rules so far.
    pub(crate) fn failing(&self) -> Vec<FailingRow> {
        self.failing_rows().clone()
    }

    /// Adds the sample of another process, without the rows that are known: each process checks the tables that its part
    /// reads.
    pub(crate) fn merge(&self, rows: Vec<FailingRow>) {
        let mut failing = self.failing_rows();
        for row in rows {
            if failing.len() < SAMPLES && !failing.contains(&row) {
                failing.push(row);
            }
        }
    }

    fn failing_rows(&self) -> MutexGuard<'_, Vec<FailingRow>> {
        self.failing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates the checks of an export on `relation`, its published rows.
    pub(crate) async fn published(
        &self,
        day: &CheckScope<'_>,
        export: &Export,
        relation: &str,
    ) -> Result<Vec<CheckRecord>, SqlError> {
        self.measure(day, &export.name, relation).await
    }

    /// Evaluates the checks of a part: those of its export and of the tables it reads.
    pub(crate) async fn part(
        &self,
        day: &CheckScope<'_>,
        export: &Export,
        tables: &[String],
    ) -> Result<Vec<CheckRecord>, SqlError> {
        let mut found = Vec::new();
        for table in tables {
            found.extend(self.table(day, table).await?);
        }
        found.extend(self.measure(day, &export.name, &in_parentheses(&export.sql)).await?);
        Ok(found)
    }

    /// The queries of a part: those of its checks, and that of its export.
    pub(crate) fn queries(&self, export: &Export, tables: &[String]) -> Vec<String> {
        let mut queries = Vec::new();
        for table in tables {
            queries.extend(self.queries_on(table, &quoted_name(table)));
        }
        queries.extend(self.queries_on(&export.name, &in_parentheses(&export.sql)));
        queries.push(export.sql.clone());
        queries
    }

    /// The queries of the checks on the table or export `on`, whose rows `relation` gives.
    fn queries_on(&self, on: &str, relation: &str) -> Vec<String> {
        let checks = self.job.checks.iter().filter(|check| check.on == on);
        checks.flat_map(|check| rule_queries(check, relation)).map(|asked| asked.sql).collect()
    }

    /// Evaluates the checks of a table for a day.
    pub(crate) async fn table(&self, day: &CheckScope<'_>, table: &str) -> Result<Vec<CheckRecord>, SqlError> {
        let key = (table.to_owned(), day.label.to_owned());
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        if let Some(known) = known {
            return Ok(known);
        }

        let found = self.measure(day, table, &quoted_name(table)).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(key, found.clone());
        Ok(found)
    }

    /// Evaluates the checks on the table or export `on`, whose rows `relation` gives.
    async fn measure(&self, day: &CheckScope<'_>, on: &str, relation: &str) -> Result<Vec<CheckRecord>, SqlError> {
        let mut found = Vec::new();
        for check in self.job.checks.iter().filter(|check| check.on == on) {
            for RuleQuery { rules, sql } in rule_queries(check, relation) {
                let mut measured = first_row_of_integers(day.session, &sql, day.params).await?;
                measured.resize(rules.len(), 0);

                for (rule, measured) in rules.into_iter().zip(measured) {
                    let record = CheckRecord {
                        check: check.name.clone(),
                        on: on.to_owned(),
                        label: day.label.to_owned(),
                        rule: rule.to_string(),
                        severity: check.severity,
                        measured,
                        passed: holds(rule, measured),
                    };
                    if !record.passed {
                        self.sample(day, rule, &record, relation).await?;
                    }
                    found.push(record);
                }
            }
        }
        Ok(found)
    }

    /// Adds rows that broke a rule to the sample.
    async fn sample(
        &self,
        day: &CheckScope<'_>,
        rule: &Rule,
        record: &CheckRecord,
        relation: &str,
    ) -> Result<(), SqlError> {
        if self.failing_rows().len() >= SAMPLES {
            return Ok(());
        }
        let Some(sql) = broken_rows(rule, relation) else { return Ok(()) };

        let rows = first_rows(&day.session.sequential(), &sql, day.params, SAMPLE).await?;
        self.failing_rows().extend(rows.into_iter().map(|row| FailingRow {
            run: self.run.clone(),
            job: self.job.name.clone(),
            check: record.check.clone(),
            on: record.on.clone(),
            label: record.label.clone(),
            rule: record.rule.clone(),
            row,
        }));
        Ok(())
    }
}

/// The query for the rows of `relation` that break a rule, or the values they share; `None` for a rule on row counts.
fn broken_rows(rule: &Rule, relation: &str) -> Option<String> {
    match rule {
        Rule::Rows { .. } => None,
        Rule::NotNull(_) | Rule::Range { .. } => {
            Some(format!("SELECT * FROM {relation} AS t WHERE {}", broken_condition(rule).unwrap_or_default()))
        }
        Rule::Unique(columns) => {
            let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
            let columns = columns.join(", ");
            let query = format!("SELECT {columns}, count(*) AS \"count(*)\" FROM {relation} AS t GROUP BY {columns}");
            Some(format!("{query} HAVING count(*) > 1 ORDER BY {columns}"))
        }
        Rule::Query(sql) => Some(format!("SELECT * FROM {} AS q", in_parentheses(sql))),
    }
}

/// A query of a check; its first row has a count for each rule.
struct RuleQuery<'a> {
    rules: Vec<&'a Rule>,
    sql: String,
}

/// The queries of a check on a relation.
fn rule_queries<'a>(check: &'a Check, relation: &str) -> Vec<RuleQuery<'a>> {
    // Counts that can share one pass do.
    let (together, alone): (Vec<&Rule>, Vec<&Rule>) = check.rules.iter().partition(|rule| shared_count(rule).is_some());
    let mut asked = Vec::new();
    if !together.is_empty() {
        let counts: Vec<String> = together.iter().filter_map(|rule| shared_count(rule)).collect();
        let sql = format!("SELECT {} FROM {relation} AS t", numbered(&counts));
        asked.push(RuleQuery { rules: together, sql });
    }
    asked.extend(alone.into_iter().map(|rule| RuleQuery { rules: vec![rule], sql: lone_count(rule, relation) }));
    asked
}

/// The queries of a check, for validation.
pub fn check_queries(check: &Check, export: Option<&Export>) -> Vec<String> {
    let relation = match export {
        Some(export) => in_parentheses(&export.sql),
        None => quoted_name(&check.on),
    };

    let queries = check.rules.iter().map(|rule| match shared_count(rule) {
        Some(count) => format!("SELECT {count} AS n FROM {relation} AS t"),
        None => lone_count(rule, &relation),
    });
    queries.collect()
}

/// Whether a part with these results may be published.
pub(crate) fn may_publish(found: &[CheckRecord]) -> bool {
    found.iter().all(|check| check.passed || check.severity == Severity::Warn)
}

fn holds(rule: &Rule, measured: i64) -> bool {
    match rule {
        Rule::Rows { min, max } => min.is_none_or(|min| measured >= min) && max.is_none_or(|max| measured <= max),
        _ => measured == 0,
    }
}

/// An aggregate that counts the rows that break a rule, to be combined with others in one query.
fn shared_count(rule: &Rule) -> Option<String> {
    match rule {
        Rule::Rows { .. } => Some("count(*)".to_owned()),
        _ => broken_condition(rule).map(|broken| format!("count(*) FILTER (WHERE {broken})")),
    }
}

/// The condition of a rule that a single row can break.
fn broken_condition(rule: &Rule) -> Option<String> {
    match rule {
        Rule::NotNull(column) => Some(format!("{} IS NULL", quoted_name(column))),
        Rule::Range { column, min, max } => {
            let column = quoted_name(column);
            let low = min.as_ref().map(|min| format!("{column} < {min}"));
            let high = max.as_ref().map(|max| format!("{column} > {max}"));
            let outside: Vec<String> = low.into_iter().chain(high).collect();
            Some(outside.join(" OR "))
        }
        Rule::Rows { .. } | Rule::Unique(_) | Rule::Query(_) => None,
    }
}

/// A separate query that counts the rows that break a rule.
fn lone_count(rule: &Rule, relation: &str) -> String {
    match rule {
        Rule::Unique(columns) => {
            let columns: Vec<String> = columns.iter().map(|column| quoted_name(column)).collect();
            let columns = columns.join(", ");
            format!("SELECT sum(n - 1) AS n FROM (SELECT count(*) AS n FROM {relation} AS t GROUP BY {columns}) AS g")
        }
        Rule::Query(sql) => format!("SELECT count(*) AS n FROM {} AS q", in_parentheses(sql)),
        _ => String::new(),
    }
}

fn numbered(counts: &[String]) -> String {
    let named: Vec<String> = counts.iter().enumerate().map(|(at, count)| format!("{count} AS n{at}")).collect();
    named.join(", ")
}

/// The query as a subquery; the line break ends a comment in its last line.
fn in_parentheses(sql: &str) -> String {
    format!("({}\n)", sql.trim_end().trim_end_matches(';'))
}
