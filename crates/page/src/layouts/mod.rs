//! The page on layouts.

mod bars;
mod comparison;
mod cost;
mod findings;
mod maps;
mod queries;

use askama::Template;

use crate::embed;
use crate::error::PageError;
use crate::frame::{Frame, Parts};
use crate::heat::map;
use crate::view::{Heatmap, LayoutsPage};
use bars::Bars;
use comparison::ComparisonTable;
use cost::CostTable;
use findings::FindingText;
use maps::{Maps, ScaleText, ShownMap};
use queries::QueryTable;

/// Bytes of the largest page: beyond that, slices of its heatmaps are joined.
pub const MOST_BYTES: usize = 1_500_000;

#[derive(Template)]
#[template(path = "layouts.html")]
struct Html<'a> {
    frame: Frame<'a>,
    page: &'a LayoutsPage,
    sections: Vec<(&'static str, &'static str)>,
    comparison: Option<ComparisonTable<'a>>,
    bars: Bars,
    maps: Vec<ShownMap>,
    scales: Vec<ScaleText>,
    /// The colours of a drawn scale, and where each begins.
    steps: Vec<(f64, String)>,
    /// How many slices were joined to one.
    halved: usize,
    queries: Option<QueryTable>,
    findings: Vec<FindingText<'a>>,
    cost: Option<CostTable<'a>>,
    data: String,
    maps_json: String,
    cost_json: String,
}

/// Writes the page. Heatmaps keep their slices unless the page would be larger than [`MOST_BYTES`]: then neighbours are
/// joined, two to one, until it fits or nothing is left to join.
///
/// # Errors
/// If a heatmap is no rectangle, or a row of a table has another number of fields than the table has columns.
pub fn layouts_page(page: &LayoutsPage) -> Result<String, PageError> {
    within(page, MOST_BYTES)
}

fn within(page: &LayoutsPage, most: usize) -> Result<String, PageError> {
    page.heatmaps.iter().try_for_each(map::check)?;
    let mut maps = page.heatmaps.clone();
    let mut joined = 1;
    loop {
        let html = write(page, &maps, joined)?;
        if html.len() <= most || maps.iter().all(|map| map.slices() < 2) {
            return Ok(html);
        }
        maps = maps.iter().map(Heatmap::halved).collect();
        joined *= 2;
    }
}

fn write(page: &LayoutsPage, heatmaps: &[Heatmap], halved: usize) -> Result<String, PageError> {
    let Maps { shown, scales, json } = Maps::of(heatmaps)?;
    let parts = Parts { maps: !shown.is_empty(), cost: page.cost.is_some() };
    let html = Html {
        frame: Frame::of(&page.title, &page.subtitle, &page.command, parts),
        page,
        sections: sections(page),
        comparison: page.comparison.as_ref().map(ComparisonTable::of).transpose()?,
        bars: Bars::of(&page.bytes),
        maps: shown,
        scales,
        steps: maps::steps(),
        halved,
        queries: page.queries.as_ref().map(QueryTable::of).transpose()?,
        findings: page.findings.iter().map(FindingText::of).collect(),
        cost: page.cost.as_ref().map(CostTable::of),
        data: embed::json(&page.data)?,
        maps_json: json,
        cost_json: page.cost.as_ref().map(embed::json).transpose()?.unwrap_or_default(),
    };

    Ok(html.render()?)
}

fn sections(page: &LayoutsPage) -> Vec<(&'static str, &'static str)> {
    let all = [
        (page.comparison.is_some(), "comparison", "Comparison"),
        (!page.bytes.is_empty(), "bytes", "Bytes"),
        (!page.heatmaps.is_empty(), "heatmaps", "Heatmaps"),
        (page.queries.is_some(), "queries", "Queries"),
        (!page.findings.is_empty(), "findings", "Findings"),
        (page.cost.is_some(), "cost", "Cost"),
        (!page.method.is_empty(), "method", "Method and limits"),
        (true, "numbers", "Data"),
    ];
    all.into_iter().filter(|(there, ..)| *there).map(|(_, id, name)| (id, name)).collect()
}

#[cfg(test)]
mod tests;
