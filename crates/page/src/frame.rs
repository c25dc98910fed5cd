//! What every page has around its content.

use crate::embed::policy;

const STYLE: &str = include_str!("../assets/page.css");
const CHART_STYLE: &str = include_str!("../assets/uPlot.min.css");
const CHART: &str = include_str!("../assets/uPlot.iife.min.js");
const MAP: &str = include_str!("../assets/map.js");
const COST: &str = include_str!("../assets/cost.js");
const SAVE: &str = include_str!("../assets/save.js");

/// Title, styles, scripts and the policy that allows just these.
pub(crate) struct Frame<'a> {
    pub(crate) title: &'a str,
    pub(crate) subtitle: &'a str,
    pub(crate) command: &'a str,
    pub(crate) version: &'static str,
    pub(crate) style: String,
    pub(crate) scripts: Vec<&'static str>,
    pub(crate) policy: String,
}

/// Which scripts a page needs besides the one that saves its data.
#[derive(Clone, Copy, Default)]
pub(crate) struct Parts {
    pub(crate) maps: bool,
    pub(crate) cost: bool,
}

impl<'a> Frame<'a> {
    /// The frame of a page with these parts.
    pub(crate) fn of(title: &'a str, subtitle: &'a str, command: &'a str, parts: Parts) -> Self {
        let mut scripts = vec![SAVE];
        if parts.maps {
            scripts.extend([CHART, MAP]);
        }
        if parts.cost {
            scripts.push(COST);
        }
        let style = if parts.maps { format!("{CHART_STYLE}\n{STYLE}") } else { STYLE.to_owned() };
        let policy = policy(&style, &scripts);
        Self { title, subtitle, command, version: env!("CARGO_PKG_VERSION"), style, scripts, policy }
    }
}
