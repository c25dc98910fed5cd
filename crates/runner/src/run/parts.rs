//! Which parts of an export a run takes. Decides, and touches nothing.

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_record::PartState;
use tidetable_store::Part as ListedPart;

use super::options::{Only, RunOptions};
use crate::period::Period;

/// A part to publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) period: Period,
    /// Such as `2018-01-01`.
    pub(super) label: String,
    /// Name of its folder.
    pub(super) folder: String,
    /// Why, such as `missing`.
    pub(super) reason: String,
    /// For each table, the last version that changed the day.
    pub(super) sources: BTreeMap<String, u64>,
    /// The part as it was listed before.
    pub(super) previous: Option<ListedPart>,
    /// Whether cells of it have passed their retention.
    pub(super) sealed: bool,
    /// Whether its tables hold no record of it: then there is nothing to check and nothing to publish.
    pub(super) is_empty: bool,
}

/// What a run was asked to publish.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    days: Option<&'a RangeInclusive<NaiveDate>>,
    only: Option<&'a [Only]>,
    parts: Option<HashSet<(&'a str, &'a str)>>,
    /// Labels that could not be published when last tried, or whose checks failed.
    pub(super) failed: BTreeMap<String, PartState>,
    /// Whether parts are published though nothing changed.
    pub(super) force: bool,
}

impl<'a> Wanted<'a> {
    /// What `options` ask for; `failed` are the labels of the export that failed when last tried.
    pub(super) fn new(options: &'a RunOptions, failed: BTreeMap<String, PartState>) -> Self {
        let parts = options.parts.as_ref();
        Self {
            days: options.days.as_ref(),
            only: options.only.as_deref(),
            parts: parts.map(|parts| parts.iter().map(|(export, label)| (export.as_str(), label.as_str())).collect()),
            failed,
            force: options.force,
        }
    }

    /// Whether a day of `period` is in the range that was asked for.
    pub(super) fn is_in_range(&self, period: &Period, tz: Tz) -> bool {
        let (first, last) = period.days(tz);
        self.days.is_none_or(|days| *days.start() <= last && first <= *days.end())
    }

    /// Whether the part of `period`, which was or was not published before, is asked for.
    pub(super) fn takes(&self, export: &str, period: &Period, tz: Tz, missing: bool) -> bool {
        let label = period.label();
        let state = |only: &Only| match only {
            Only::Failed => self.failed.contains_key(&label),
            Only::Missing => missing,
        };
        self.is_in_range(period, tz)
            && self.parts.as_ref().is_none_or(|parts| parts.contains(&(export, label.as_str())))
            && self.only.is_none_or(|only| only.iter().any(state))
    }

    /// Whether a day that nobody knows yet may be asked for.
    pub(super) fn may_take_unknown(&self) -> bool {
        self.parts.is_none() && self.only.is_none_or(|only| only.contains(&Only::Missing))
    }
}
