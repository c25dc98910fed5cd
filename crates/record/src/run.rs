//! The run record, `runs/<run>.json`: written when the run begins, and again when it ends.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidetable_blobs::Blobs;
use tidetable_ingest::LoadStats;
use tidetable_store::StoreError;
use tidetable_store::published::Published;

use crate::attempt::AttemptRecord;
use crate::compaction::CompactionRecord;
use crate::executor::ExecutorRecord;
use crate::load::{LoadRecord, OwedRecord};
use crate::part::{CheckRecord, ExportRecord, PartState};
use crate::push::PushRecord;

/// Format version of run records. Older ones are readable: format 1 lacks newer fields, formats up to 2
/// list unchanged inputs.
pub const FORMAT: u32 = 3;

/// Most things that went wrong to name in a line.
const FAILURES: usize = 5;

/// The record of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Format version of this record.
    pub format: u32,
    /// Name of the run, a ULID.
    pub run: String,
    /// Name of the job that ran.
    pub job: String,
    /// Logical time of the run, microseconds since the epoch.
    pub now: i64,
    /// When it began by the clock, microseconds since the epoch.
    pub started: i64,
    /// When it ended by the clock, microseconds since the epoch; `None` while it runs, or if it was killed.
    pub finished: Option<i64>,
    /// How it ended, as far as it is recorded.
    pub outcome: Outcome,
    /// The error that ended a failed run.
    pub error: Option<String>,
    /// The options of the run.
    pub asked: RunRequest,
    /// The unfinished run of the same job that it continues.
    pub continues: Option<String>,
    /// Notes that the run told the user besides its progress.
    pub notes: Vec<String>,
    /// Loads, in the order of the job file.
    pub loads: Vec<LoadRecord>,
    /// Compactions of loaded tables, where due.
    pub compactions: Vec<CompactionRecord>,
    /// Parts that were published or compared.
    pub exports: Vec<ExportRecord>,
    /// Results of checks, by part or day and rule.
    pub checks: Vec<CheckRecord>,
    /// Tables that were pushed into Bigtable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pushes: Vec<PushRecord>,
    /// What was left undone, because a file of the store is damaged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<DamageRecord>,
    /// Attempts that failed with a transient error and were retried.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Who did the units of the run, by name, if that were other processes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub executors: Vec<ExecutorRecord>,
    /// Path of the rejected rows of its sources, if there are any.
    pub rejected: Option<String>,
    /// Number of those rows. A row that two tables rejected counts twice.
    pub rows_rejected: u64,
    /// Duration of each stage in seconds.
    pub seconds: BTreeMap<String, f64>,
}

/// The options of a run, besides its job and logical time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRequest {
    /// The first day to publish, if the run was limited to some.
    pub from: Option<NaiveDate>,
    /// The last day to publish, if the run was limited to some.
    pub to: Option<NaiveDate>,
    /// Publish unchanged and sealed parts too.
    pub force: bool,
    /// Rebuild all tables of the job from their inputs.
    pub rebuild: bool,
    /// Missing inputs whose cells may be removed.
    pub without: Vec<String>,
    /// Only these parts, by export and label: those that another run left over.
    pub parts: Option<Vec<(String, String)>>,
    /// Unchanged inputs to read again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reread: Vec<String>,
    /// Only parts in one of these states, such as `failed`; of any if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Only these tables and exports, such as `export:DAY`, with the tables that they need; all if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
}

impl RunRequest {
    /// Whether the run was not limited to some days, tables or exports.
    pub fn is_whole(&self) -> bool {
        let of_all_days = self.from.is_none() && self.to.is_none() && self.parts.is_none() && self.only.is_empty();
        of_all_days && self.select.is_empty()
    }
}

/// Something that a run left undone, because a file of the store is damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DamageRecord {
    /// What, such as `derive T@2018-01-05`, `compact T` or `commit plant.T of https://catalog`.
    pub undone: String,
    /// The file, and what to do.
    pub error: String,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It has not ended, or was killed if its lock is free.
    Running,
    /// Everything that the run was asked for was done.
    #[default]
    Ok,
    /// Some parts could not be published, or some windows of a table could not be rebuilt.
    Partial,
    /// A check of severity `error` failed: the part was not published, the others were.
    Checks,
    /// It failed; what was committed before stays.
    Failed,
    /// It was interrupted by a signal.
    Interrupted,
}

impl Outcome {
    /// Its name in messages and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Checks => "checks",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    /// The exit code of the process, unless an error has another.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Checks => 3,
            Self::Partial => 4,
            Self::Running | Self::Failed | Self::Interrupted => 1,
        }
    }

    /// Whether the next run continues it.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Failed | Self::Interrupted)
    }
}

impl RunRecord {
    /// Takes the end of the run from `unrecorded`, known from the lock file.
    pub fn end_as(&mut self, unrecorded: &Self) {
        self.outcome = unrecorded.outcome;
        self.finished = unrecorded.finished;
        self.error.clone_from(&unrecorded.error);
        // A record that was written before its end has no parts yet.
        if self.exports.is_empty() {
            self.exports.clone_from(&unrecorded.exports);
        }
    }

    /// Adds the parts that the run published, by the lists of exports, to a record that was written before its end: a killed run
    /// has no other. A list that cannot be read is left out.
    pub fn add_published(&mut self, blobs: &dyn Blobs) {
        if self.exports.iter().any(|part| part.state == PartState::Published) {
            return;
        }
        let Ok((lists, _)) = Published::readable(blobs) else { return };
        for list in lists {
            let own = list.parts.iter().filter(|(_, part)| part.run == self.run);
            self.exports.extend(own.map(|(label, part)| ExportRecord::published(&list.name, label, part)));
        }
    }

    /// Writes the record, replacing its former content.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = self.path();
        let mut bytes =
            self.to_bytes().map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        Ok(blobs.replace(&path, &bytes)?)
    }

    /// The record as JSON. Default values are omitted, so that a run without news takes a few hundred bytes, unless the record
    /// could not be read back without them.
    fn to_bytes(&self) -> serde_json::Result<Vec<u8>> {
        let whole = serde_json::to_value(self)?;
        let short = without_defaults(whole.clone());
        let read_back = Self::deserialize(&short).and_then(serde_json::to_value);
        let is_whole = read_back.is_ok_and(|read| read == whole);
        serde_json::to_vec(if is_whole { &short } else { &whole })
    }

    /// Path of the record inside the store.
    pub fn path(&self) -> String {
        path(&self.run)
    }

    /// Counts and durations of all loads together.
    pub fn totals(&self) -> LoadStats {
        let mut totals = LoadStats::default();
        self.loads.iter().for_each(|load| totals.add(&load.stats));
        totals
    }

    /// The warnings among its notes, without that word.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.notes.iter().filter_map(|note| note.strip_prefix("warning: "))
    }

    /// What went wrong, in a line: the error of a failed run, or what the others could not do. `None` if nothing did.
    pub fn failure(&self) -> Option<String> {
        if self.error.is_some() {
            return self.error.clone();
        }

        let mut wrong = Vec::new();
        for load in &self.loads {
            wrong.extend(load.owed.iter().map(|owed| cannot_be_rebuilt(&load.table, owed)));
        }
        wrong.extend(self.damage.iter().map(|damage| format!("{} was left undone: {}", damage.undone, damage.error)));
        for part in self.exports.iter().filter(|part| part.state == PartState::Failed) {
            let error = part.error.as_deref().unwrap_or("no reason is known");
            wrong.push(format!("{} was not published: {error}", part.part));
        }
        for check in self.checks.iter().filter(|check| check.is_broken()) {
            let CheckRecord { check, on, label, rule, measured, .. } = check;
            wrong.push(format!("check {check} failed for {on} of {label}: {rule}: {measured}"));
        }
        for push in &self.pushes {
            wrong.extend(push.error.as_ref().map(|error| format!("push {} failed: {error}", push.push)));
        }

        let more = wrong.len().saturating_sub(FAILURES);
        wrong.truncate(FAILURES);
        if more > 0 {
            wrong.push(format!("and {more} more"));
        }
        (!wrong.is_empty()).then(|| wrong.join("; "))
    }

    /// The outcome that follows from the results of its parts.
    pub fn outcome_of_parts(&self) -> Outcome {
        let (mut is_partial, mut fails_checks) = (!self.damage.is_empty(), false);
        for part in &self.exports {
            is_partial |= part.state == PartState::Failed;
            fails_checks |= part.state == PartState::Checks;
        }
        is_partial |= self.loads.iter().any(|load| !load.owed.is_empty());
        is_partial |= self.pushes.iter().any(|push| push.error.is_some());
        fails_checks |= self.checks.iter().any(CheckRecord::is_broken);

        match (is_partial, fails_checks) {
            (true, _) => Outcome::Partial,
            (false, true) => Outcome::Checks,
            (false, false) => Outcome::Ok,
        }
    }
}

/// Why a window of `table` stays as it is, in words.
fn cannot_be_rebuilt(table: &str, owed: &OwedRecord) -> String {
    let window = &owed.window;
    let (first, others) = match owed.gone.split_first() {
        Some((first, rest)) => (first.as_str(), rest.len()),
        None => ("", 0),
    };
    let more = match others {
        0 => String::new(),
        1 => " and 1 more input".to_owned(),
        _ => format!(" and {others} more inputs"),
    };
    format!("window {window} of {table} cannot be rebuilt without the missing {first}{more}")
}

/// Path of the record of a run, inside the store.
pub(crate) fn path(run: &str) -> String {
    format!("runs/{run}.json")
}

/// Removes fields with default values.
fn without_defaults(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_defaults(value)));
            Value::Object(fields.filter(|(_, value)| !is_default(value)).collect())
        }
        // Positions in a list matter.
        Value::Array(values) => Value::Array(values.into_iter().map(without_defaults).collect()),
        other => other,
    }
}

/// Whether a value is what a missing field means.
fn is_default(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidetable_blobs::LocalBlobs;
    use tidetable_ingest::{EmptyRow, NotedRows, ReplacedCells};
    use tidetable_store::LargestRow;

    use super::*;
    use crate::Severity;
    use crate::load::{Added, InputRecord, InputState, OwingInput};
    use crate::runs::Runs;

    fn saved(record: &RunRecord) -> (RunRecord, usize) {
        let root = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        record.save(blobs).unwrap();
        let bytes = blobs.read(&record.path()).unwrap().unwrap().len();
        (Runs::of(blobs).load(&record.run).unwrap().unwrap(), bytes)
    }

    fn empty_part() -> ExportRecord {
        ExportRecord {
            export: "E".to_owned(),
            label: String::new(),
            part: "E".to_owned(),
            reason: "missing".to_owned(),
            state: PartState::Empty,
            rows: 0,
            bytes: 0,
            error: None,
        }
    }

    fn failed_check() -> CheckRecord {
        CheckRecord {
            check: "c".to_owned(),
            on: "E".to_owned(),
            label: "all".to_owned(),
            rule: "r".to_owned(),
            severity: Severity::Warn,
            measured: 0,
            passed: false,
        }
    }

    #[test]
    fn what_says_nothing_is_not_written_and_read_all_the_same() {
        let gone = InputRecord::new("a.csv", InputState::Gone);
        let load = LoadRecord {
            table: "T".to_owned(),
            inputs: vec![gone],
            standing: BTreeMap::from([(InputState::SameContent, 2), (InputState::Unchanged, 20_000)]),
            stats: LoadStats { rows_read: 7, ..LoadStats::default() },
            ..LoadRecord::default()
        };
        let record = RunRecord {
            format: FORMAT,
            run: "R".to_owned(),
            outcome: Outcome::Partial,
            finished: Some(5),
            asked: RunRequest { parts: Some(vec![("E".to_owned(), String::new())]), ..RunRequest::default() },
            loads: vec![load, LoadRecord::default()],
            compactions: vec![CompactionRecord { table: "T".to_owned(), ..CompactionRecord::default() }],
            exports: vec![empty_part()],
            checks: vec![failed_check()],
            seconds: BTreeMap::from([("plan".to_owned(), 0.25)]),
            ..RunRecord::default()
        };
        assert_eq!(saved(&record).0, record);
        let counts = |state| record.loads.first().map(|load| load.count(state)).unwrap();
        assert_eq!((counts(InputState::Gone), counts(InputState::Unchanged)), (1, 20_000));
        assert_eq!(record.loads.first().map(LoadRecord::count_all), Some(20_003));
        let idle = RunRecord { format: FORMAT, run: "R".to_owned(), ..RunRecord::default() };
        assert_eq!(saved(&idle), (idle, "{\"format\":3,\"outcome\":\"ok\",\"run\":\"R\"}\n".len()));
    }

    #[test]
    fn a_record_that_cannot_do_without_a_default_is_written_whole() {
        // A part must say its export, also where that is empty.
        let unnamed = ExportRecord { export: String::new(), ..empty_part() };
        let record = RunRecord { format: FORMAT, run: "R".to_owned(), exports: vec![unnamed], ..RunRecord::default() };
        let (read, bytes) = saved(&record);
        assert_eq!(read, record);
        assert!(bytes > saved(&RunRecord { exports: vec![empty_part()], ..record }).1);
    }

    /// The record without one of its numbers or truths, for each of them: a zero or false is not written.
    fn without_one(value: &Value) -> Vec<Value> {
        let mut all = Vec::new();
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let put = |changed: Option<Value>| {
                        let mut fields = fields.clone();
                        match changed {
                            Some(changed) => fields.insert(name.clone(), changed),
                            None => fields.remove(name),
                        };
                        Value::Object(fields)
                    };
                    match value {
                        Value::Number(_) | Value::Bool(_) => all.push(put(None)),
                        value => all.extend(without_one(value).into_iter().map(|changed| put(Some(changed)))),
                    }
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    all.extend(without_one(value).into_iter().map(|changed| {
                        let mut values = values.clone();
                        values[at] = changed;
                        Value::Array(values)
                    }));
                }
            }
            _ => {}
        }
        all
    }

    #[test]
    fn every_number_may_be_missing() {
        let added = Some(Added { bytes: 1, rows: 0 });
        let grown = InputRecord { added, ..InputRecord::new("a.csv", InputState::Grown) };
        let inputs = vec![OwingInput { path: "a.csv".to_owned(), rows: 1 }];
        let owed = vec![OwedRecord { inputs, ..OwedRecord::default() }];
        let noted = Some(NotedRows { count: 1, file: "a.csv".to_owned(), line: 2 });
        let stats = LoadStats {
            first_empty: Some(EmptyRow { file: "a.csv".to_owned(), line: 2 }),
            several_lines: noted.clone(),
            repeated_headers: noted.clone(),
            changed_headers: noted.clone(),
            bare_returns: noted,
            replaced: Some(ReplacedCells { cells: 1, changed: 1, ..ReplacedCells::default() }),
            largest_row: Some(LargestRow { key: "k".to_owned(), bytes: 1 }),
            ..LoadStats::default()
        };
        let load = LoadRecord { inputs: vec![grown], owed, stats, ..LoadRecord::default() };
        let record = RunRecord {
            format: FORMAT,
            run: "R".to_owned(),
            loads: vec![load],
            exports: vec![empty_part()],
            checks: vec![failed_check()],
            compactions: vec![CompactionRecord::default()],
            pushes: vec![PushRecord::default()],
            damage: vec![DamageRecord::default()],
            attempts: vec![AttemptRecord::default()],
            executors: vec![ExecutorRecord::default()],
            seconds: BTreeMap::from([("plan".to_owned(), 0.25)]),
            ..RunRecord::default()
        };
        assert_eq!(saved(&record).0, record);

        // As it is before defaults are left out.
        let full = serde_json::to_value(&record).unwrap();
        let all = without_one(&full);
        assert!(all.len() > 50, "{}", all.len());
        for value in all {
            let read: Result<RunRecord, _> = serde_json::from_value(value.clone());
            assert!(read.is_ok(), "{:?}: {value}", read.err());
        }
    }

    #[test]
    fn records_of_format_2_are_read() {
        let root = tempfile::tempdir().unwrap();
        let blobs: &dyn Blobs = &LocalBlobs::new(root.path().to_owned());
        let input = |path: &str, state: &str| json!({ "path": path, "state": state });
        let inputs = [input("a", "unchanged"), input("b", "new"), input("c", "unchanged"), input("d", "gone")];
        let old = json!({ "format": 2, "run": "R", "job": "j", "outcome": "partial", "finished": null, "rows_rejected": 0,
            "loads": [{ "table": "T", "inputs": inputs, "rows_read": 3, "read": 0.5 }],
            "exports": [{ "export": "E", "label": "l", "part": "p", "reason": "r", "state": "failed", "rows": 0, "bytes": 0 }] });
        blobs.replace("runs/R.json", serde_json::to_string_pretty(&old).unwrap().as_bytes()).unwrap();
        let record = Runs::of(blobs).load("R").unwrap().unwrap();
        let load = record.loads.first().unwrap();
        let paths: Vec<&str> = load.inputs.iter().map(|input| input.path.as_str()).collect();
        assert_eq!((paths, load.count(InputState::Unchanged), load.stats.rows_read), (vec!["b", "d"], 2, 3));
        assert_eq!(record.exports.first().map(|part| part.state), Some(PartState::Failed));
    }
}
