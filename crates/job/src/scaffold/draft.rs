//! What was decided about a job, for the texts that are written of it.

use chrono_tz::Tz;
use tidetable_source::sample::Sample;
use tidetable_source::{InputFile, Unread};

use crate::file::StorageSetting;
use crate::scaffold::entity::RowKey;
use crate::scaffold::facts::Facts;
use crate::scaffold::header_zone::HeaderZone;
use crate::scaffold::layout::LayoutPlan;
use crate::scaffold::time::EventTime;

/// Everything that was decided about a job, from which its file, queries and notes are written.
pub(crate) struct Draft<'a> {
    pub job: &'a str,
    pub table: &'a str,
    /// What the user gave, for the description.
    pub given: &'a str,
    pub patterns: &'a [String],
    /// Settings of the project's bucket.
    pub storage: &'a [StorageSetting],
    pub files: &'a [InputFile],
    /// Names that they reach and that are not read.
    pub unread: &'a [Unread],
    pub sample: &'a Sample,
    pub facts: &'a Facts,
    pub time: &'a EventTime,
    pub key: &'a RowKey,
    pub plan: &'a LayoutPlan,
    pub zone: Option<Tz>,
    /// What says the zone, if it is the header.
    pub header_zone: Option<&'a HeaderZone>,
}
