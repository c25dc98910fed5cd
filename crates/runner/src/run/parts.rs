//! Selects the parts of an export that a run takes. Pure functions.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_job::Period;
use tidetable_record::PartState;
use tidetable_store::published::Part as ListedPart;

use crate::options::run_options::{Only, RunOptions};

/// A part to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StalePart {
    pub(crate) period: Period,
    /// Label of the period, such as `2018-01-01`.
    pub(crate) label: String,
    /// Name of its directory.
    pub(crate) folder: String,
    /// Why, such as `missing`.
    pub(crate) reason: String,
    /// For each table, the last version that changed the day.
    pub(crate) sources: BTreeMap<String, u64>,
    /// The part as listed before.
    pub(crate) previous: Option<ListedPart>,
    /// Whether some of its cells have passed their `maxage`.
    pub(crate) sealed: bool,
    /// Whether its tables hold no record of it, so that nothing is checked or published.
    pub(crate) is_empty: bool,
    /// A window of its tables that lost cells: until it is rebuilt, the part stays as it is.
    pub(crate) lost: Option<LostWindow>,
}

/// A window of a table that lost cells with a damaged SST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostWindow {
    pub(crate) table: String,
    /// The job of the table.
    pub(crate) job: String,
    /// Name of the window.
    pub(crate) window: String,
}

/// The parts that a run is asked to publish.
#[derive(Debug)]
pub(crate) struct PartSelection<'a> {
    days: Option<&'a RangeInclusive<NaiveDate>>,
    only: Option<&'a [Only]>,
    parts: Option<HashSet<(&'a str, &'a str)>>,
    /// Labels whose last attempt failed, or whose checks failed.
    pub(crate) failed: BTreeMap<String, PartState>,
    /// Whether unchanged parts are published too.
    pub(crate) force: bool,
}

impl<'a> PartSelection<'a> {
    /// From `options`; `failed` are the labels of the export whose last attempt failed.
    pub(crate) fn new(options: &'a RunOptions, failed: BTreeMap<String, PartState>) -> Self {
        let parts = options.parts.as_ref();
        Self {
            days: options.days.as_ref(),
            only: options.only.as_deref(),
            parts: parts.map(|parts| parts.iter().map(|(export, label)| (export.as_str(), label.as_str())).collect()),
            failed,
            force: options.force,
        }
    }

    /// Whether a day of `period` is in the requested range.
    pub(crate) fn is_in_range(&self, period: &Period, tz: Tz) -> bool {
        self.days.is_none_or(|days| period.overlaps(tz, days))
    }

    /// Whether the part of `period` is requested; `missing` if it was never published.
    pub(crate) fn takes(&self, export: &str, period: &Period, tz: Tz, missing: bool) -> bool {
        let label = period.label();
        self.is_in_range(period, tz)
            && self.parts.as_ref().is_none_or(|parts| parts.contains(&(export, label.as_str())))
            && self.only.is_none_or(|only| only.iter().any(|only| self.is_in_state(*only, &label, missing)))
    }

    /// Whether the part `label` is in a state; `missing` if it was never published.
    fn is_in_state(&self, only: Only, label: &str, missing: bool) -> bool {
        match only {
            Only::Failed => self.failed.contains_key(label),
            Only::Missing => missing,
        }
    }

    /// Whether days that are not known yet may be requested.
    pub(crate) fn may_take_unknown(&self) -> bool {
        self.parts.is_none() && self.only.is_none_or(|only| only.contains(&Only::Missing))
    }
}
