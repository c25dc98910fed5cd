//! Tests of proposals, on small files that are read and encoded.

mod pairs;
mod parts;

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use tidetable_job::workload::Workload;
use tidetable_job::{Job, Project};
use tidetable_runner::Stop;
use tidetable_source::Storage;

use crate::advice::{Advice, Asking, Explanation, advise};
use crate::cost::Prices;
use crate::trial::{Candidate, Sample, Trial, TrialOptions};

/// A job over one file, with a workload.
pub(super) struct Given {
    _folder: TempDir,
    pub(super) project: Project,
    pub(super) job: Job,
    pub(super) storage: Storage,
    pub(super) workload: Workload,
    pub(super) prices: Prices,
    stop: Stop,
}

impl Given {
    /// `columns` are those of the source beside the time `ts`, as the job file declares them; rows begin with the time in
    /// milliseconds.
    pub(super) fn new(row_key: &str, columns: &str, rows: &[(u64, String)], queries: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names: Vec<&str> = columns.split(", ").filter_map(|column| column.split(' ').next()).collect();
        let job = format!(
            "name = \"case\"\n[sources.rows]\nfiles = [\"rows.csv\"]\ntime = \"ts\"\n\
             columns = {{ ts = \"timestamp\", {columns} }}\n[tables.T]\nrow_key = \"{row_key}\"\n[tables.T.families.F]\n\
             columns = [{{ each = \"*\", qualifier = \"{{column}}\", value = \"{{value}}\" }}]\n"
        );
        let mut text = format!("ts,{}\n", names.join(","));
        for (millis, values) in rows {
            let time = chrono::DateTime::from_timestamp_millis(1_600_000_000_000 + *millis as i64).unwrap();
            let time = time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
            writeln!(text, "{time},{values}").unwrap();
        }
        fs::write(folder.path().join("tidetable.toml"), "root = \"data\"\n").unwrap();
        fs::create_dir_all(folder.path().join("jobs/case")).unwrap();
        fs::write(folder.path().join("jobs/case/job.toml"), job).unwrap();
        fs::write(folder.path().join("rows.csv"), text).unwrap();

        let project = Project::find(folder.path()).unwrap();
        Self {
            job: Job::load(&project, "case").unwrap(),
            storage: Storage::new(folder.path().to_owned(), None),
            workload: Workload::parse(Path::new("q.toml"), queries.to_owned()).unwrap(),
            prices: Prices::load(None).unwrap(),
            stop: Stop::default(),
            project,
            _folder: folder,
        }
    }

    pub(super) fn asking(&self) -> Asking<'_> {
        Asking {
            project: &self.project,
            job: &self.job,
            storage: &self.storage,
            workload: &self.workload,
            prices: &self.prices,
            sample: Sample { fraction: 0.5 },
            most_tables: 2,
            stop: &self.stop,
        }
    }

    pub(super) fn advised(&self) -> Advice {
        advise(self.asking()).unwrap()
    }

    pub(super) fn explained(&self, advice: &Advice) -> Explanation {
        advice.explain(&self.workload, &self.prices)
    }
}

#[test]
fn a_choice_among_refused_layouts_is_no_winner() {
    // Two meters of a region at one instant: without the meter in the key one replaces the other.
    let row = |at: u64| (at / 2 * 60_000, format!("r,{at}.5,{}.25", at % 3));
    let rows: Vec<(u64, String)> = (0..60).map(row).collect();
    let queries = "[query.q]\nper_second = 1\nwhere = \"region = $region\"\n";
    let columns = "region = \"text\", kwh = \"float64\", volt = \"float64\"";
    let given = Given::new("{region}#{ts:ms}", columns, &rows, queries);
    let advice = given.advised();
    assert_eq!(advice.refused.len(), advice.candidates.len(), "{:?}", advice.refused);
    let choice = given.explained(&advice).choice;
    assert!(choice.starts_with("rules refuse every layout; "), "{choice}");
}

#[test]
fn what_a_workload_counts_is_told_apart_by_the_key() {
    // Six meters of two regions at the same instants, by the region alone in the job; there will be 10 million.
    let row = |at: u64| (at / 6 * 60_000, format!("r{},{},{}.5,{}.25", at % 2, at % 6, at % 7, at % 3));
    let rows: Vec<(u64, String)> = (0..240).map(row).collect();
    let queries = "keep = \"30d\"\n[scale]\nentities = { meter = 10_000_000 }\nevery = \"1m\"\n[query.q]\nper_second = 0.001\n\
                   where = \"region = $region and ts >= $minute and ts < $minute + interval '1 minute'\"\n";
    let columns = "region = \"text\", meter = \"uint64\", kwh = \"float64\", volt = \"float64\"";
    let given = Given::new("{region}#{ts:ms}", columns, &rows, queries);
    let advice = given.advised();
    let key = &advice.comparison.layouts[advice.best()].row_key;
    assert_eq!((key.contains("{region:percent}"), key.contains("{meter:010}")), (true, true), "{key}");
    // 10,000,000 / 6 as many meters, whether a query names them or not.
    assert_eq!(advice.economy.demand.entities_beside(&["region"]).round(), 1_666_667.0);
}

/// Quotes and trades of six symbols in one file.
fn market(queries: &str) -> Given {
    let row = |at: u64| {
        let (exchange, symbol) = (at % 2, at % 6);
        let values = if at.is_multiple_of(3) {
            format!("T,,,{}.25,{}", at % 9, at % 50)
        } else {
            format!("Q,{}.5,{}.5,,", at % 9, at % 8)
        };
        (at * 731, format!("e{exchange},s{symbol},{values}"))
    };
    let columns = "exchange = \"text\", symbol = \"text\", kind = \"text\", bid = \"float64\", ask = \"float64\", \
                   price = \"float64\", size = \"uint64\"";
    Given::new("{exchange}#{symbol}#{ts:ms}", columns, &(0..600).map(row).collect::<Vec<_>>(), queries)
}

#[test]
fn kinds_of_events_have_a_table_each() {
    let range = "exchange = $exchange and symbol = $symbol and ts >= $minute and ts < $minute + interval '1 minute'";
    let of = |columns: &str, predicate: &str| {
        format!("[query.q{}]\nper_second = 100\nmust = \"range\"\n{columns}where = \"{predicate}\"\n", predicate.len())
    };
    let by_kind = of("", &format!("{range} and kind = $kind"));
    let by_columns = of("columns = [\"bid\", \"ask\"]\n", range);
    let given = market(&format!("{by_kind}{by_columns}"));
    let advice = given.advised();
    assert!(advice.pairs.is_empty(), "{:?}", advice.pairs);
    let text = advice.job_of_winners(&given.job.text, "chosen").unwrap();
    let job: toml::Table = toml::from_str(&text).unwrap();
    let tables = job["tables"].as_table().unwrap();
    let of_tables = |key: &str| -> Vec<&str> { tables.values().map(|table| table[key].as_str().unwrap()).collect() };
    assert_eq!(of_tables("where"), ["\"kind\" = 'Q'", "\"kind\" = 'T'"], "{text}");
    for key in of_tables("row_key") {
        assert!(key.starts_with("{exchange:percent}#{symbol:percent}#{ts") && !key.contains("kind"), "{key}");
    }
    let facts = given.explained(&advice).facts;
    let said = "`kind` decides what is filled: bid, ask where it is Q (400 rows); price, size where it is T (200 rows)";
    let fact = facts.last().unwrap();
    assert!(fact.contains(said) && fact.contains("the job has a table of each"), "{facts:#?}");

    // The job is one that loads, and its tables hold all rows and no column without a value.
    let folder = given.project.dir.join("jobs/chosen");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("job.toml"), &text).unwrap();
    let chosen = Job::load(&given.project, "chosen").unwrap();
    let candidates = Candidate::of_job(&chosen, &[]).unwrap();
    let trial = Trial::load(&chosen, &given.storage, &candidates, &TrialOptions::default()).unwrap();
    let accepted: Vec<u64> = trial.tables.iter().map(|table| table.stats.rows_accepted).collect();
    assert_eq!(accepted, [400, 200]);

    // A query that wants both reads one table.
    let both = market(&of("", range));
    let advice = both.advised();
    let text = advice.job_of_winners(&both.job.text, "chosen").unwrap();
    assert!(!text.contains("where") && !both.explained(&advice).facts.last().unwrap().contains("decides"), "{text}");
}
