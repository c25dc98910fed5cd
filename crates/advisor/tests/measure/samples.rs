//! The jobs of the repository, measured on their sample data.

use std::path::Path;

use tidetable_advisor::measure::{Measured, measure};
use tidetable_advisor::spread::{Axis, Spread, WriteLog, spread};
use tidetable_advisor::trial::{Candidate, Trial, TrialOptions};
use tidetable_job::{Job, Project};
use tidetable_source::Storage;

pub fn repository() -> (Project, Storage) {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let project = Project::find(&repository).unwrap();
    let storage = Storage::new(project.dir.clone(), None);
    (project, storage)
}

/// The layouts of a job of the repository.
fn trial(job: &str, options: &TrialOptions) -> Trial {
    let (project, storage) = repository();
    let job = Job::load(&project, job).unwrap();
    Trial::load(&job, &storage, &Candidate::of_job(&job, &[]).unwrap(), options).unwrap()
}

fn measured(job: &str, options: &TrialOptions) -> Vec<Measured> {
    trial(job, options).tables.iter().map(|table| measure(table, true).unwrap()).collect()
}

#[test]
fn weather_balloons_to_the_byte() {
    let found = measured("weather-balloons", &TrialOptions::default());
    let found: Vec<_> = found
        .iter()
        .map(|it| {
            let cells_a_row = (it.cells_a_row.p50, it.cells_a_row.max);
            (it.layout.as_str(), it.rows, it.cells, it.bytes.total(), cells_a_row, it.largest_row.bytes)
        })
        .collect();
    let expected = [
        ("BALLOON_NEW_COLUMNS", 144, 13_925, 678_351, (76, 223), 11_661),
        ("BALLOON_NEW_CELLS", 24, 13_925, 664_426, (512, 1_066), 50_926),
        ("BALLOON_EVENTS", 2_954, 13_925, 831_526, (4, 6), 361),
        ("BALLOON_EVENTS_SERIALIZED", 2_954, 2_954, 279_569, (1, 1), 106),
        ("BALLOON_WEEK_SERIALIZED", 24, 24, 130_115, (1, 1), 9_820),
    ];
    assert_eq!(found, expected);
}

#[test]
fn little_memory_gives_the_same_numbers() {
    for job in ["weather-balloons", "server-metrics", "smart-meters"] {
        // Files depend on when memory was full.
        let apart = |of: Vec<Measured>| of.into_iter().map(|it| Measured { own_bytes: 0, ..it }).collect::<Vec<_>>();
        let whole = apart(measured(job, &TrialOptions::default()));
        assert_eq!(apart(measured(job, &TrialOptions { memory: 16 << 20, ..TrialOptions::default() })), whole);
        assert!(whole.iter().all(|it| it.rows > 0 && it.seconds.is_some()));
    }
}

/// The spread of hourly writes of the CSV days of smart-meters, by row key.
fn meters_by(row_key: &str) -> Spread {
    let (project, storage) = repository();
    let mut job = Job::load(&project, "smart-meters").unwrap();
    job.sources[0].spec.files.truncate(1);
    let mut candidates = Candidate::of_job(&job, &[]).unwrap();
    candidates[0].spec.row_key = row_key.to_owned();
    candidates[0].spec.families[0].columns.remove(0);
    let trial = Trial::load(&job, &storage, &candidates, &TrialOptions::default()).unwrap();
    let axis = Axis::of_trial(&trial, None).unwrap();
    assert_eq!((axis.width, axis.slices), (3600, 336));
    spread(&WriteLog::of_table(&trial.tables[0], axis).unwrap())
}

#[test]
fn meters_first_spread_and_dates_first_do_not() {
    let rounded = |share: f64| (share * 1000.0).round() / 1000.0;
    let meter_first = meters_by("{meter:010}#{ts:%Y%m%d}");
    let shares = &meter_first.few;
    assert_eq!([500, 950, 1000].map(|part| rounded(shares.quantile(part))), [0.1, 0.1, 0.1]);
    let day_first = meters_by("{ts:%Y%m%d}#{meter:010}");
    let shares = &day_first.few;
    let found = [shares.quantile(500), shares.mean(), shares.quantile(1000)].map(rounded);
    assert_eq!(found, [0.8, 0.691, 1.0]);
    let instant_first = meters_by("{ts:ms}#{meter:010}");
    assert_eq!(instant_first.few.quantile(1), 1.0);
    let travels = [meter_first.travel, day_first.travel].map(|travel| (travel * 100.0).round() / 100.0);
    assert_eq!(travels, [0.04, 0.89]);
}
