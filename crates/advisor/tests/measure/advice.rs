//! Proposals compared with brute force: all candidates, measured in full.

use std::path::Path;

use tidetable_advisor::advice::{Asking, advise, job_with};
use tidetable_advisor::comparison::{Extent, compare, economy};
use tidetable_advisor::cost::Prices;
use tidetable_advisor::queries::draw_specs;
use tidetable_advisor::trial::{Candidate, Sample, Trial, TrialOptions};
use tidetable_job::Job;
use tidetable_job::workload::Workload;
use tidetable_runner::Stop;

use crate::samples::repository;

/// Row key of the best single table for `queries` over the first table of a job, its price, and the least price of all
/// candidates that no rule refuses, by brute force. `keys` must be among the candidates.
fn best(job: &str, queries: &str, keys: &[&str]) -> (String, f64, f64) {
    let (project, storage) = repository();
    let job = Job::load(&project, job).unwrap();
    let workload = Workload::parse(Path::new("q.toml"), queries.to_owned()).unwrap();
    let prices = Prices::load(None).unwrap();
    let asking = Asking {
        project: &project,
        job: &job,
        storage: &storage,
        workload: &workload,
        prices: &prices,
        sample: Sample { fraction: 0.5 },
        most_tables: 1,
        stop: &Stop::default(),
    };
    let advice = advise(asking).unwrap();
    let at = advice.best();
    let (found, own) = (&advice.comparison.layouts[at], advice.economy.costs[at].month.1);

    let first = Candidate::of_job(&job, &[]).unwrap().remove(0);
    let known: Vec<_> = advice.candidates.iter().collect();
    let proposed: Vec<&str> = known.iter().map(|candidate| candidate.section["row_key"].as_str().unwrap()).collect();
    for key in keys {
        assert!(proposed.contains(key), "{key} of {proposed:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(&job.name).join("job.toml");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    std::fs::write(&path, job_with(&job.text, &job.name, &first.schema, &known).unwrap()).unwrap();
    let whole = Job::load(&project, &path.display().to_string()).unwrap();
    let candidates = Candidate::of_job(&whole, &[]).unwrap();
    let specs = draw_specs(&workload.queries, &first.schema).unwrap();
    let options = TrialOptions { draws: specs.clone(), ..TrialOptions::default() };
    let trial = Trial::load(&whole, &storage, &candidates, &options).unwrap();
    let comparison = compare(&trial, None, Extent::ALL).unwrap();
    let economy = economy(&trial, &comparison, &workload, &specs, &prices).unwrap();
    let is_refused = |name: &str| advice.refused.iter().any(|refused| refused.name == name);
    let layouts = comparison.layouts.iter().zip(&economy.costs);
    let fit = layouts.filter(|(layout, _)| !is_refused(&layout.measured.layout)).map(|(_, cost)| cost);
    let servable = fit.filter(|cost| cost.unservable.is_none() && !cost.is_sequential);
    let least = servable.map(|cost| cost.month.1).fold(f64::INFINITY, f64::min);
    assert!(least.is_finite() && !is_refused(&found.measured.layout), "{least}, {}", found.measured.layout);
    (found.row_key.clone(), own, least)
}

#[test]
fn the_proposal_is_the_cheapest_of_all_candidates() {
    let day = "keep = \"365d\"\n[scale]\nentities = { meter = 10_000_000 }\nevery = \"15m\"\n[query.day]\nper_second = 5000\n\
               where = \"meter = $meter and ts >= $day and ts < $day + interval '1 day'\"\nmust = \"range\"\n";
    let (row_key, own, least) = best("smart-meters", day, &["{meter:010}#{ts:ms}", "{meter:010}#{ts:%Y%m%d}"]);
    assert!(own <= least * 1.01, "{own} instead of {least}");
    assert!(row_key.starts_with("{meter"), "{row_key}");
}

#[test]
fn another_workload_turns_the_proposal() {
    let of = |query: &str, key: &str| {
        best("weather-balloons", &format!("[scale]\nrows_per_second = 5_000\n{query}"), &[key])
    };
    let sounding = of("[query.a]\nper_second = 20000\nwhere = \"station = $station\"\n", "{station:percent}#{ts:ms}");
    assert!(sounding.1 <= sounding.2 * 1.01, "{sounding:?}");
    let minute = of(
        "[query.a]\nper_second = 20000\nwhere = \"station = $station and ts >= $minute and ts < $minute + interval '1 minute'\"\n",
        "{station:percent}#{ts:ms}",
    );
    assert!(minute.1 <= minute.2 * 1.01, "{minute:?}");
    let newest = of(
        "[query.a]\nper_second = 20000\norder = \"newest\"\nlimit = 1\nwhere = \"station = $station\"\n",
        "{station:percent}#{ts:ms-reversed}",
    );
    assert!(newest.1 <= newest.2 * 1.01, "{newest:?}");
    assert_ne!(sounding.0, newest.0);
}
