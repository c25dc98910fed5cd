//! The record of a run, `runs/<run>.json`: written when the run begins, and again when it ends.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tidetable_store::{Blobs, LoadStats, StoreError};

use crate::attempt::AttemptRecord;
use crate::compaction::CompactionRecord;
use crate::load::LoadRecord;
use crate::part::{CheckRecord, ExportRecord, PartState, Severity};

/// Format of run records. Older ones are read too: those of format 1 lack what was not known then, those up to format 2
/// list inputs that did not change.
pub const FORMAT: u32 = 3;

/// Everything a run did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRecord {
    /// Format of this record.
    pub format: u32,
    /// The run.
    pub run: String,
    /// Its job.
    pub job: String,
    /// Its logical time, microseconds since the epoch.
    pub now: i64,
    /// When it began by the clock of the machine, microseconds since the epoch.
    pub started: i64,
    /// When it ended, by the same clock.
    pub finished: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it failed.
    pub error: Option<String>,
    /// What it was asked to do.
    pub asked: Asked,
    /// The run that it goes on from: one of the same job that did not come to its end.
    pub continues: Option<String>,
    /// What a person must know.
    pub notes: Vec<String>,
    /// Loads, in the order of the job file.
    pub loads: Vec<LoadRecord>,
    /// Compactions of tables that were loaded, where they were due.
    pub compactions: Vec<CompactionRecord>,
    /// Published and looked-at parts.
    pub exports: Vec<ExportRecord>,
    /// What the job's checks measured.
    pub checks: Vec<CheckRecord>,
    /// What failed for a reason that might pass, and was tried again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptRecord>,
    /// Where the rejected rows of its sources are, if it has any.
    pub rejected: Option<String>,
    /// How many those are. A row that two tables could not take counts twice.
    pub rows_rejected: u64,
    /// Seconds of each stage, by name.
    pub seconds: BTreeMap<String, f64>,
}

/// What a run was asked to do, beside its job and its logical time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Asked {
    /// The first day.
    pub from: Option<NaiveDate>,
    /// The last day.
    pub to: Option<NaiveDate>,
    /// Publish days anew though nothing changed, and sealed ones.
    pub force: bool,
    /// Build tables anew.
    pub rebuild: bool,
    /// Inputs that may be left out.
    pub without: Vec<String>,
    /// Only these parts, by export and label: those that another run left.
    pub parts: Option<Vec<(String, String)>>,
    /// Inputs that are read again though they are as they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reread: Vec<String>,
    /// Only days in one of these states, such as `failed`; days of any if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Only these tables and exports, such as `export:DAY`, with the tables that they need; all if there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
}

impl Asked {
    /// Whether it was asked for all days of all tables and exports: for what a run that nobody limits does.
    pub fn is_whole(&self) -> bool {
        let of_all_days = self.from.is_none() && self.to.is_none() && self.parts.is_none() && self.only.is_empty();
        of_all_days && self.select.is_empty()
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It has not ended; or it was killed, if its lock is free.
    Running,
    /// All of it was done.
    #[default]
    Ok,
    /// Some parts could not be published; the others were.
    Partial,
    /// A check of severity `error` failed: what it looked at was not published, the rest was.
    Checks,
    /// It stopped; what was committed before stands.
    Failed,
    /// A person or the system asked it to stop.
    Interrupted,
}

impl Outcome {
    /// How messages call it.
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

    /// What the process that ran it ends with, where no error says otherwise.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Checks => 3,
            Self::Partial => 4,
            Self::Running | Self::Failed | Self::Interrupted => 1,
        }
    }

    /// Whether another run has something to go on with.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Running | Self::Failed | Self::Interrupted)
    }
}

impl RunRecord {
    /// Ends it as `unrecorded` says, the same run as far as it could tell without a record.
    pub fn end_as(&mut self, unrecorded: &Self) {
        self.outcome = unrecorded.outcome;
        self.finished = unrecorded.finished;
        self.error.clone_from(&unrecorded.error);
    }

    /// Writes the record, in the place of what it was before. Only what says something is written: a run that found nothing
    /// new takes a few hundred bytes.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, blobs: &dyn Blobs) -> Result<(), StoreError> {
        let path = self.path();
        let written = serde_json::to_value(self).map(without_defaults).and_then(|record| serde_json::to_vec(&record));
        let mut bytes =
            written.map_err(|error| StoreError::Manifest { path: path.clone(), reason: error.to_string() })?;
        bytes.push(b'\n');
        blobs.replace(&path, &bytes)
    }

    /// Where it is written, inside the store.
    pub fn path(&self) -> String {
        path(&self.run)
    }

    /// Counts of all loads together.
    pub fn totals(&self) -> LoadStats {
        let mut totals = LoadStats::default();
        self.loads.iter().for_each(|load| totals.add(&load.stats));
        totals
    }

    /// How it ended, by what became of its parts.
    pub fn outcome_of_parts(&self) -> Outcome {
        let any = |state| self.exports.iter().any(|part| part.state == state);
        let broken = self.checks.iter().any(|check| !check.passed && check.severity == Severity::Error);
        match (any(PartState::Failed), any(PartState::Checks) || broken) {
            (true, _) => Outcome::Partial,
            (false, true) => Outcome::Checks,
            (false, false) => Outcome::Ok,
        }
    }
}

pub(crate) fn path(run: &str) -> String {
    format!("runs/{run}.json")
}

/// The fields of objects that say anything else than a reader assumes of a field that is not there.
fn without_defaults(value: Value) -> Value {
    let says_nothing = |value: &Value| match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    };
    match value {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (name, without_defaults(value)));
            Value::Object(fields.filter(|(_, value)| !says_nothing(value)).collect())
        }
        // Places in a list mean something.
        Value::Array(values) => Value::Array(values.into_iter().map(without_defaults).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidetable_store::LocalBlobs;

    use super::*;
    use crate::load::{InputRecord, InputState};
    use crate::runs::Runs;

    fn saved(record: &RunRecord) -> (RunRecord, usize) {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        record.save(&blobs).unwrap();
        let bytes = blobs.read(&record.path()).unwrap().unwrap().len();
        (Runs::of(&blobs).load(&record.run).unwrap().unwrap(), bytes)
    }

    #[test]
    fn what_says_nothing_is_not_written_and_read_all_the_same() {
        let part = ExportRecord {
            export: "E".to_owned(),
            label: String::new(),
            part: "E".to_owned(),
            reason: "missing".to_owned(),
            state: PartState::Empty,
            rows: 0,
            bytes: 0,
            error: None,
        };
        let check = CheckRecord {
            check: "c".to_owned(),
            on: "E".to_owned(),
            label: "all".to_owned(),
            rule: "r".to_owned(),
            severity: Severity::Warn,
            measured: 0,
            passed: false,
        };
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
            asked: Asked { parts: Some(vec![("E".to_owned(), String::new())]), ..Asked::default() },
            loads: vec![load, LoadRecord::default()],
            compactions: vec![CompactionRecord { table: "T".to_owned(), ..CompactionRecord::default() }],
            exports: vec![part],
            checks: vec![check],
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
    fn records_of_format_2_are_read() {
        let root = tempfile::tempdir().unwrap();
        let blobs = LocalBlobs::new(root.path().to_owned());
        let input = |path: &str, state: &str| json!({ "path": path, "state": state });
        let inputs = [input("a", "unchanged"), input("b", "new"), input("c", "unchanged"), input("d", "gone")];
        let old = json!({ "format": 2, "run": "R", "job": "j", "outcome": "partial", "finished": null, "rows_rejected": 0,
            "loads": [{ "table": "T", "inputs": inputs, "rows_read": 3, "read": 0.5 }],
            "exports": [{ "export": "E", "label": "l", "part": "p", "reason": "r", "state": "failed", "rows": 0, "bytes": 0 }] });
        blobs.replace("runs/R.json", serde_json::to_string_pretty(&old).unwrap().as_bytes()).unwrap();
        let record = Runs::of(&blobs).load("R").unwrap().unwrap();
        let load = record.loads.first().unwrap();
        let paths: Vec<&str> = load.inputs.iter().map(|input| input.path.as_str()).collect();
        assert_eq!((paths, load.count(InputState::Unchanged), load.stats.rows_read), (vec!["b", "d"], 2, 3));
        assert_eq!(record.exports.first().map(|part| part.state), Some(PartState::Failed));
    }
}
