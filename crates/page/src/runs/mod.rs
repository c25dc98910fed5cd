//! The page on the runs of a job.

mod calendar;
mod charts;
mod flow;

use askama::Template;

use crate::embed;
use crate::error::PageError;
use crate::frame::{Frame, Parts};
use crate::view::{CalendarDay, DayState, RunsPage};
use calendar::CalendarText;
use charts::{CheckText, RunCharts};
use flow::Drawing;

#[derive(Template)]
#[template(path = "runs.html")]
struct Html<'a> {
    frame: Frame<'a>,
    page: &'a RunsPage,
    calendars: Vec<CalendarText<'a>>,
    /// States that occur, and whether a day has rejected rows.
    legend: Vec<DayState>,
    rejected: bool,
    runs: RunCharts,
    checks: Vec<CheckText<'a>>,
    lineage: Drawing,
    data: String,
}

/// Writes the page.
///
/// # Errors
/// If its data is no JSON.
pub fn runs_page(page: &RunsPage) -> Result<String, PageError> {
    let days: Vec<&CalendarDay> = page.calendars.iter().flat_map(|calendar| &calendar.days).collect();
    let html = Html {
        frame: Frame::of(&page.title, &page.subtitle, &page.command, Parts::default()),
        page,
        calendars: page.calendars.iter().map(CalendarText::of).collect(),
        legend: DayState::ALL.into_iter().filter(|state| days.iter().any(|day| day.state == *state)).collect(),
        rejected: days.iter().any(|day| day.rejected > 0),
        runs: RunCharts::of(&page.runs),
        checks: page.checks.iter().map(CheckText::of).collect(),
        lineage: Drawing::of(&page.lineage),
        data: embed::json(&page.data)?,
    };
    Ok(html.render()?)
}
