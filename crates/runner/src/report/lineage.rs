//! Lineage: which inputs and versions tables and published parts were made from, according to manifests and lists.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use chrono_tz::Tz;
use tidetable_job::{Job, Per, Period, Project};
use tidetable_layout::Window;
use tidetable_layout::time::window_name;
use tidetable_record::{InputState, Runs};
use tidetable_store::leave_out;
use tidetable_store::published::Published;
use tidetable_store::{Input, Store, Version};

use crate::fault::error::RunError;
use crate::plan::ranges;
use crate::report::days::{period_of, utc_days};

/// UTC days since the epoch; all days if `None`.
type UtcDays = Option<BTreeSet<i32>>;

/// The kind of an end of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LinkKind {
    /// A file that a source reads.
    Input,
    /// A table of the store.
    Table,
    /// A published part, by its folder.
    Part,
}

/// One step of lineage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Link {
    /// Where the rows come from.
    pub from: (LinkKind, String),
    /// What they were loaded into or published as.
    pub into: (LinkKind, String),
    /// UTC days of its rows; of a part, its label.
    pub days: String,
    /// For a link into a table: the sequence number of the input.
    pub sequence: Option<u64>,
    /// Of an input, the hash of its content; of a part, the checksum of its file.
    pub fingerprint: Option<String>,
    /// Rows read from an input, or published.
    pub rows: u64,
    /// Rows of an input that were rejected.
    pub rejected: u64,
    /// Windows that do not hold the content of the input yet, as a run left them out: see `status`.
    pub owed: String,
    /// The version of the table that loaded the input, or the last one that changed the part.
    pub version: Option<u64>,
    /// The run that did it, if its record is kept.
    pub run: Option<String>,
    /// The logical time of that run, microseconds.
    pub now: Option<i64>,
}

impl LinkKind {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Table => "table",
            Self::Part => "part",
        }
    }
}

/// The tables and lists of a store, from which links are derived.
#[derive(Debug)]
pub struct Lineage {
    versions: BTreeMap<String, Version>,
    lists: Vec<Published>,
    zones: HashMap<String, Tz>,
    /// By table and input.
    loaded: HashMap<(String, String), LoadedBy>,
}

/// The load that brought an input into a table.
#[derive(Debug)]
struct LoadedBy {
    /// Name of the run.
    run: String,
    /// Logical time of the run, microseconds.
    now: i64,
    /// The version of the table that the load made.
    version: u64,
}

impl Lineage {
    /// Reads the newest versions, the lists and the records of `store`; job files of `project` give the time zones.
    ///
    /// # Errors
    /// If the store cannot be listed. Versions, lists and records that cannot be read are left out.
    pub fn read(store: &Store, project: Option<&Project>) -> Result<Self, RunError> {
        let blobs = store.blobs().as_ref();
        let mut versions = BTreeMap::new();
        for name in store.tables()? {
            match store.table(&name).latest() {
                Ok(version) => versions.extend(version.map(|version| (name, version))),
                Err(error) => leave_out(&error),
            }
        }

        let mut zones = HashMap::new();
        if let Some(project) = project {
            for name in project.jobs() {
                zones.extend(Job::load(project, &name).ok().map(|job| (name, job.timezone)));
            }
        }

        let mut loaded = HashMap::new();
        for record in Runs::of(blobs).readable(None)? {
            for load in record.loads.iter().filter(|load| load.version != load.before) {
                for input in load.inputs.iter().filter(|input| brings_rows(input.state)) {
                    let by = LoadedBy { run: record.run.clone(), now: record.now, version: load.version };
                    loaded.entry((load.table.clone(), input.path.clone())).or_insert(by);
                }
            }
        }

        let (lists, damaged) = Published::readable(blobs)?;
        damaged.iter().for_each(leave_out);
        Ok(Self { versions, lists, zones, loaded })
    }

    /// The links of a table, an export or a part, upstream to the inputs and downstream to published parts; only of
    /// `day` if given. `None` if the name is unknown.
    pub fn of(&self, name: &str, day: Option<NaiveDate>) -> Option<Vec<Link>> {
        if let Some(version) = self.versions.get(name) {
            return Some(self.of_table(name, version, day));
        }

        let mut links = BTreeSet::new();
        let mut known = false;
        for list in &self.lists {
            for (label, part) in &list.parts {
                if list.name != name && part.folder != name {
                    continue;
                }
                known = true;

                let period = period_of(label);
                if !self.is_of(&list.job, period.as_ref(), day) {
                    continue;
                }

                let days = period.and_then(|period| self.utc(&list.job, &period));
                for table in part.sources.keys() {
                    links.insert(part_link(table, label, part));
                    self.up(table, &days, &mut links);
                }
            }
        }

        known.then(|| links.into_iter().collect())
    }

    /// The links of a table, upstream and downstream.
    fn of_table(&self, name: &str, version: &Version, day: Option<NaiveDate>) -> Vec<Link> {
        let days = day.and_then(|day| self.utc(&version.table.job, &Period::day(day)));
        let mut links = BTreeSet::new();
        self.up(name, &days, &mut links);
        self.down(name, &days, day, &mut links);
        links.into_iter().collect()
    }

    /// The downstream links of an input, given its path or the end of it. `None`: no table holds it.
    pub fn of_input(&self, path: &str) -> Option<Vec<Link>> {
        let end = format!("/{path}");
        let mut links = BTreeSet::new();
        for (table, version) in &self.versions {
            for input in version.inputs.iter().filter(|input| input.path == path || input.path.ends_with(&end)) {
                links.extend(self.input_links(table, version, input));

                self.down(table, &Some(input.days.iter().copied().collect()), None, &mut links);
            }
        }
        (!links.is_empty()).then(|| links.into_iter().collect())
    }

    /// What a run loaded and published, unless a later run has replaced it.
    pub fn of_run(&self, run: &str) -> Vec<Link> {
        let mut links = BTreeSet::new();
        for (table, version) in &self.versions {
            links.extend(version.inputs.iter().flat_map(|input| self.input_links(table, version, input)));
        }
        for (label, part) in self.lists.iter().flat_map(|list| &list.parts) {
            links.extend(part.sources.keys().map(|table| part_link(table, label, part)));
        }
        links.retain(|link| link.run.as_deref() == Some(run));
        links.into_iter().collect()
    }

    /// The UTC days of a period; `None` for all times.
    fn utc(&self, job: &str, period: &Period) -> UtcDays {
        if period.per == Per::Query {
            return None;
        }
        let bounds = period.bounds(self.zone(job));
        Some(utc_days(&bounds).filter_map(|day| i32::try_from(day).ok()).collect())
    }

    /// Whether a part overlaps `day`, if given.
    fn is_of(&self, job: &str, period: Option<&Period>, day: Option<NaiveDate>) -> bool {
        let Some(day) = day else { return true };
        period.is_none_or(|period| {
            let (first, last) = period.days(self.zone(job));
            (first..=last).contains(&day)
        })
    }

    fn zone(&self, job: &str) -> Tz {
        self.zones.get(job).copied().unwrap_or_default()
    }

    /// Adds upstream links of `table` for `days`.
    fn up(&self, table: &str, days: &UtcDays, links: &mut BTreeSet<Link>) {
        let Some(version) = self.versions.get(table) else { return };
        for input in version.inputs.iter().filter(|input| overlap(&input.days, days)) {
            links.extend(self.input_links(table, version, input));
            for source in self.tables_of(input) {
                self.up(source, &Some(input.days.iter().copied().collect()), links);
            }
        }
    }

    /// Adds downstream links of `table` for `days`.
    fn down(&self, table: &str, days: &UtcDays, label: Option<NaiveDate>, links: &mut BTreeSet<Link>) {
        for list in &self.lists {
            for (name, part) in list.parts.iter().filter(|(_, part)| part.sources.contains_key(table)) {
                let period = period_of(name);
                let of_part = period.as_ref().and_then(|period| self.utc(&list.job, period));
                let touched = of_part.is_none_or(|of_part| overlap(&of_part.into_iter().collect::<Vec<_>>(), days));
                if touched && self.is_of(&list.job, period.as_ref(), label) {
                    links.insert(part_link(table, name, part));
                }
            }
        }

        for (other, version) in &self.versions {
            for input in version.inputs.iter().filter(|input| overlap(&input.days, days)) {
                if self.tables_of(input).contains(&table) {
                    links.extend(self.input_links(other, version, input));
                    self.down(other, &Some(input.days.iter().copied().collect()), label, links);
                }
            }
        }
    }

    /// The tables of an input that is a window, such as `SENSOR@2018-01-05`; empty for a file.
    fn tables_of<'a>(&'a self, input: &'a Input) -> Vec<&'a str> {
        let Some((names, _)) = input.path.rsplit_once('@') else { return Vec::new() };
        let names: Vec<&str> = names.split('+').collect();
        let is_window = names.iter().all(|name| self.versions.contains_key(*name));
        if is_window { names } else { Vec::new() }
    }

    fn input_links(&self, table: &str, version: &Version, input: &Input) -> Vec<Link> {
        let by = self.loaded.get(&(table.to_owned(), input.path.clone()));
        let link = |from: (LinkKind, String)| Link {
            from,
            into: (LinkKind::Table, table.to_owned()),
            days: day_ranges(&input.days),
            sequence: Some(input.input_seqno),
            fingerprint: Some(input.hash.to_string()),
            rows: input.read,
            rejected: input.rejected,
            owed: owed_windows(version.table.spec.window, input),
            version: by.map(|by| by.version),
            run: by.map(|by| by.run.clone()),
            now: by.map(|by| by.now),
        };

        match self.tables_of(input).as_slice() {
            [] => vec![link((LinkKind::Input, input.path.clone()))],
            tables => tables.iter().map(|from| link((LinkKind::Table, (*from).to_owned()))).collect(),
        }
    }
}

fn part_link(table: &str, label: &str, part: &tidetable_store::published::Part) -> Link {
    Link {
        from: (LinkKind::Table, table.to_owned()),
        into: (LinkKind::Part, part.folder.clone()),
        days: label.to_owned(),
        sequence: None,
        fingerprint: Some(part.checksum.clone()),
        rows: part.rows,
        rejected: 0,
        owed: String::new(),
        version: part.sources.get(table).copied(),
        run: Some(part.run.clone()),
        now: Some(part.now),
    }
}

/// The windows of an input that are owed, in words.
fn owed_windows(window: Window, input: &Input) -> String {
    let names: Vec<String> = input.owed.iter().map(|owed| window_name(window, owed.start)).collect();
    ranges(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Whether a load that found an input in this state read rows of it.
fn brings_rows(state: InputState) -> bool {
    matches!(state, InputState::New | InputState::Changed | InputState::Grown | InputState::ReadAgain)
}

fn overlap(days: &[i32], wanted: &UtcDays) -> bool {
    wanted.as_ref().is_none_or(|wanted| days.iter().any(|day| wanted.contains(day)))
}

/// UTC days in words, such as `2018-01-01 to 2018-01-05`.
fn day_ranges(days: &[i32]) -> String {
    let labels: Vec<String> =
        days.iter().filter_map(|day| Some(NaiveDate::from_epoch_days(*day)?.to_string())).collect();
    ranges(&labels.iter().map(String::as_str).collect::<Vec<_>>())
}
