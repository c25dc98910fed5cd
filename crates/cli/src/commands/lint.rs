//! `tidetable lint`: checks the tables of a job against the rules of schema design.

use std::io::Write;
use std::path::Path;

use serde_json::Value;
use tidetable_advisor::cost::Prices;
use tidetable_advisor::lint::{
    DataFacts, Finding, Measure, Needs, RULES, Report, Rule, Severity, lint as find, sarif, survey,
};
use tidetable_advisor::queries::{draw_specs, profiled_of};
use tidetable_advisor::trial::{Candidate, Trial, TrialOptions};
use tidetable_job::workload::Workload;
use tidetable_job::{Job, Project};
use tidetable_runner::run::source_storage;
use tidetable_runner::runtime;

use super::project;
use crate::activity::Activity;
use crate::args::{Deny, Global, Lint, Output};
use crate::diagnostics::print_message;
use crate::error::CliError;
use crate::objects;
use crate::output::values::count;
use crate::output::{ResultRows, row, sentences};
use crate::signals::stop_on_signals;

/// Prints the findings of a job, or the rules.
pub fn lint(global: &Global, args: &Lint) -> Result<(), CliError> {
    if let Some(rule) = args.explain {
        return explain(global, rule);
    }
    let Some(name) = args.job.as_ref().filter(|_| !args.rules) else { return rules(global) };

    let project = project(global)?;
    let job = Job::load(&project, name)?;
    let activity = Activity::begin(global, &format!("measuring the data of {name}"));
    let data = if args.data { Some(data_of(&project, &job, args.queries.as_deref())?) } else { None };
    let prices = Prices::load(args.prices.as_deref())?;
    drop(activity);

    let report = find(&job, data.as_ref(), &prices);
    let path = job.shown_path.display().to_string();

    let mut out = sentences(global.output);
    match global.output {
        Output::Table => {
            report.findings.iter().try_for_each(|finding| write!(out, "{}", text(finding, &path, &job)))?
        }
        Output::Sarif => writeln!(out, "{:#}", sarif(&report, &path.replace('\\', "/")))?,
        output => {
            let mut rows = ResultRows::of(objects::LINT);
            report.findings.iter().for_each(|finding| rows.push(object(finding, &path)));
            rows.write(output, &mut out)?;
        }
    }
    out.flush()?;

    print_message(global, &summary(&report, &path, &prices.limits.date));
    let least = match args.deny {
        None => return Ok(()),
        Some(Deny::Warn) => Severity::Warn,
        Some(Deny::Error) => Severity::Error,
    };

    match report.count(least) {
        0 => Ok(()),
        denied => Err(CliError::Denied { findings: count(denied as u64, "finding"), severity: least.word() }),
    }
}

/// What the rows of the job's sources say about its tables. Reads all of them, and changes nothing.
fn data_of(project: &Project, job: &Job, queries: Option<&Path>) -> Result<DataFacts, CliError> {
    let candidates = Candidate::of_job(job, &[])?;
    let workload = queries.map(Workload::load).transpose()?;
    let draws = match (&workload, candidates.first()) {
        (Some(workload), Some(first)) => draw_specs(&workload.queries, &first.schema)?,
        _ => Vec::new(),
    };
    let runtime = runtime()?;
    let stop = stop_on_signals()?;
    let storage = source_storage(project, job, runtime.handle(), &stop)?;
    let profiled = profiled_of(&candidates, workload.as_ref());
    let options = TrialOptions { draws: draws.clone(), profiled, stop, ..TrialOptions::default() };
    let trial = Trial::load(job, &storage, &candidates, &options)?;
    Ok(survey(job, &trial, workload.as_ref().map(|workload| (workload, draws.as_slice())))?)
}

/// `2 errors, 1 warning and 3 notes in jobs/x/job.toml; 1 silenced; limits of 2026-11-22`
fn summary(report: &Report, path: &str, limits: &str) -> String {
    let [errors, warnings, notes] = [(Severity::Error, "error"), (Severity::Warn, "warning"), (Severity::Info, "note")]
        .map(|(severity, noun)| {
            let number = report.findings.iter().filter(|finding| finding.severity == severity).count();
            count(number as u64, noun)
        });
    let silenced = match report.silenced.len() {
        0 => String::new(),
        number => format!("; {} silenced", count(number as u64, "finding")),
    };
    format!("{errors}, {warnings} and {notes} in {path}{silenced}; limits of {limits}")
}

/// A finding for people: the line, what is wrong with it, why, and the changed line.
fn text(finding: &Finding, path: &str, job: &Job) -> String {
    let place = finding.place;
    let source = job.text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let number = place.line.to_string();
    let margin = " ".repeat(number.len());
    let carets = match place.end_line == place.line {
        true => place.end_column.saturating_sub(place.column).max(1),
        false => source.chars().count().saturating_sub(place.column - 1).max(1),
    };
    let indent: String = source.chars().take(place.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let about = finding.table.as_deref().unwrap_or(&job.name);
    let mut text = format!("{}[{}] {about}: {}\n", finding.severity, finding.rule.id, finding.message);

    let mut lines = vec![
        format!("{margin}--> {path}:{}:{}", place.line, place.column),
        format!("{number} | {source}"),
        format!("{margin} | {indent}{}", "^".repeat(carets)),
    ];
    if let Some(Measure { measured, unit, limit }) = finding.measure {
        lines.push(format!("{margin} = {} {unit}, limit {}", number_text(measured), number_text(limit)));
    }
    if !finding.keys.is_empty() {
        lines.push(format!("{margin} = such as {}", finding.keys.join(", ")));
    }
    lines.push(format!("{margin} = {}", finding.rule.reason));
    lines.push(format!("{margin} = {}", finding.rule.source));
    if let Some(change) = &finding.change {
        lines.push(format!("{margin} change it to"));
        let changed = change.after.lines().enumerate();
        lines.extend(changed.map(|(at, changed)| format!("{} | {changed}", change.place.line + at)));
    }

    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push('\n');
    text
}

/// A number without a fraction where it has none.
pub fn number_text(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn object(finding: &Finding, path: &str) -> Vec<Value> {
    let place = finding.place;
    row![
        finding.rule.id,
        finding.severity.word(),
        finding.table,
        path,
        place.line,
        place.column,
        place.end_line,
        place.end_column,
        finding.message,
        finding.keys,
        finding.measure.map(|measure| measure.measured),
        finding.measure.map(|measure| measure.limit),
        finding.measure.map(|measure| measure.unit),
        finding.rule.reason,
        finding.rule.source,
        finding.change.as_ref().map(|change| change.after.clone()),
    ]
}

/// What one rule finds, why, and how to silence it.
fn explain(global: &Global, rule: &Rule) -> Result<(), CliError> {
    if global.output != Output::Table {
        return rules_of(global, [rule]);
    }
    let needs = match rule.needs {
        Needs::Job => "reads the job file alone",
        Needs::Data => "speaks with --data",
        Needs::Queries => "speaks with --data --queries FILE",
    };
    let mut out = sentences(global.output);
    writeln!(out, "{}[{}]: {}", rule.severity, rule.id, rule.title)?;
    writeln!(out, "  why: {}", rule.reason)?;
    writeln!(out, "  from: {}", rule.source)?;
    writeln!(out, "  it {needs}; `[lint] {} = \"reason\"` in the job file silences it", rule.id)?;
    out.flush()?;
    Ok(())
}

fn rules(global: &Global) -> Result<(), CliError> {
    rules_of(global, RULES.iter().copied())
}

fn rules_of<'r>(global: &Global, chosen: impl IntoIterator<Item = &'r Rule>) -> Result<(), CliError> {
    let mut rows = ResultRows::of(objects::LINT_RULES);
    for rule in chosen {
        rows.push(row![rule.id, rule.severity.word(), rule.needs.word(), rule.title, rule.reason, rule.source]);
    }
    rows.print(global.output)
}
