//! A job at a glance as a page.

use std::collections::BTreeMap;

use serde_json::Value;
use tidetable_job::{Job, Project};
use tidetable_layout::time::SECOND;
use tidetable_page::view::{
    Calendar, CalendarDay, CheckPoint, CheckSeries, DayState as ShownState, Flow, FlowEdge, FlowNode, RunBar, RunsPage,
    Verdict,
};
use tidetable_runner::record::{RunRecord, Severity};
use tidetable_runner::report::{DayOf, DayState, Overview, Place, PlaceKind, RuleValues, Step};

use super::stored::{published, seconds};
use super::text::headline;
use crate::output::values::{count, time};

/// The page of a job. `states` are those of its runs, `data` what `--output json` prints.
pub(super) fn of(job: &str, project: Option<&Project>, overview: &Overview, states: &[&str], data: Value) -> RunsPage {
    let declared = project.and_then(|project| Job::load(project, job).ok());
    let zone = declared.as_ref().map_or("UTC".to_owned(), |job| job.timezone.to_string());
    let about = declared.map(|job| job.description).filter(|text| !text.is_empty());
    let about = about.map(|text| format!("{}. ", text.trim_end_matches('.'))).unwrap_or_default();

    let mut calendars: Vec<Calendar> = Vec::new();
    for day in &overview.days {
        match calendars.last_mut().filter(|calendar| calendar.of == day.of) {
            Some(calendar) => calendar.days.push(shown(day)),
            None => calendars.push(Calendar { of: day.of.clone(), days: vec![shown(day)] }),
        }
    }

    RunsPage {
        title: format!("Runs of {job}"),
        subtitle: format!("{about}Days of {zone}."),
        command: format!("tidetable report {job} --report"),
        verdict: Verdict { headline: headline(job, overview), reasons: reasons(overview, states), turns: Vec::new() },
        calendars,
        runs: overview.runs.iter().zip(states).map(|(record, state)| run(record, state)).collect(),
        checks: overview.rules.iter().map(series).collect(),
        lineage: flow(&overview.steps),
        data,
    }
}

fn shown(day: &DayOf) -> CalendarDay {
    let state = match day.state {
        DayState::Published => ShownState::Published,
        DayState::Late => ShownState::Late,
        DayState::Sealed => ShownState::Sealed,
        DayState::Missing => ShownState::Missing,
        DayState::Failed => ShownState::Failed,
    };
    CalendarDay { day: day.day, state, rows: day.rows, rejected: day.rejected }
}

fn reasons(overview: &Overview, states: &[&str]) -> Vec<String> {
    let mut said = Vec::new();
    if let (Some(last), Some(state)) = (overview.runs.last(), states.last()) {
        let began = time(last.started.div_euclid(SECOND) * SECOND).unwrap_or_default();
        let error = last.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        said.push(format!("The last run began at {began} and is {state}{error}."));
    }
    let broken = overview.rules.iter().filter(|rule| rule.values.last().is_some_and(|value| !value.passed));
    let broken: Vec<String> = broken.map(|rule| format!("{} ({})", rule.check, rule.rule)).collect();
    if !broken.is_empty() {
        said.push(format!("Checks that failed last time: {}.", broken.join(", ")));
    }
    let rejected: u64 = overview.steps.iter().map(|step| step.rejected).sum();
    if rejected > 0 {
        said.push(format!("{} of its inputs were rejected.", count(rejected, "row")));
    }
    said
}

fn run(record: &RunRecord, state: &str) -> RunBar {
    RunBar {
        run: record.run.clone(),
        began: record.started,
        seconds: seconds(record),
        outcome: state.to_owned(),
        rows: record.totals().rows_read,
        rejected: record.all_rejected(),
        published: published(record),
        error: record.error.clone(),
    }
}

fn series(rule: &RuleValues) -> CheckSeries {
    CheckSeries {
        check: rule.check.clone(),
        on: rule.on.clone(),
        rule: rule.rule.clone(),
        strict: rule.severity == Severity::Error,
        points: rule
            .values
            .iter()
            .map(|value| CheckPoint { label: value.label.clone(), measured: value.measured, passed: value.passed })
            .collect(),
    }
}

/// Places with what leaves or reaches them: files of a source, rows of a table, parts of an export.
fn flow(steps: &[Step]) -> Flow {
    let mut nodes: BTreeMap<&Place, FlowNode> = BTreeMap::new();
    for step in steps {
        for place in [&step.from, &step.into] {
            nodes.entry(place).or_insert_with(|| FlowNode {
                kind: place.kind.name().to_owned(),
                name: place.name.clone(),
                holds: holds(place, steps),
            });
        }
    }
    let places: Vec<&Place> = nodes.keys().copied().collect();
    let mut edges = Vec::new();
    for step in steps {
        let [from, into] = [&step.from, &step.into].map(|place| places.iter().position(|other| *other == place));
        if let (Some(from), Some(into)) = (from, into) {
            edges.push(FlowEdge { from, into });
        }
    }
    Flow { nodes: nodes.into_values().collect(), edges }
}

fn holds(place: &Place, steps: &[Step]) -> String {
    let into: Vec<&Step> = steps.iter().filter(|step| step.into == *place).collect();
    let out: Vec<&Step> = steps.iter().filter(|step| step.from == *place).collect();
    // Tables of one source read the same files, and tables of one export have the same parts.
    match place.kind {
        PlaceKind::Source => {
            let (files, rows) = (most(&out, |step| step.items), most(&out, |step| step.rows));
            format!("{}, {}", count(files, "file"), count(rows, "row"))
        }
        PlaceKind::Table => count(into.iter().map(|step| step.rows - step.rejected.min(step.rows)).sum(), "source row"),
        PlaceKind::Export => {
            let (parts, rows) = (most(&into, |step| step.items), most(&into, |step| step.rows));
            format!("{}, {}", count(parts, "part"), count(rows, "row"))
        }
    }
}

/// The greatest figure of some steps; 0 of none.
fn most(steps: &[&Step], of: fn(&Step) -> u64) -> u64 {
    steps.iter().map(|step| of(step)).max().unwrap_or(0)
}
