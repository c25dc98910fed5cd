//! What follows from a part of the rows is what follows from all of them.

use std::slice;

use super::Given;
use crate::advice::pass::{Part, Pass};
use crate::comparison::{Extent, compare, economy};
use crate::cost::Cost;
use crate::queries::draw_specs;
use crate::trial::{Candidate, Sample, Trial, TrialOptions};

/// `hosts` even hosts that write every 5 s, at times of their own.
fn even(hosts: u64, steps: u64, queries: &str) -> Given {
    let mut rows = Vec::new();
    for step in 0..steps {
        rows.extend((0..hosts).map(|host| (step * 5000 + host * 11, format!("h{host:04},{}.5", step % 9))));
    }
    Given::new("{host}#{ts:ms}", "host = \"text\", cpu = \"float64\"", &rows, queries)
}

fn cost_of(given: &Given, sample: Option<Sample>) -> Cost {
    let candidates = Candidate::of_job(&given.job, &[]).unwrap();
    let specs = draw_specs(&given.workload.queries, &candidates[0].schema).unwrap();
    let options = TrialOptions { sample, draws: specs.clone(), ..TrialOptions::default() };
    let trial = Trial::load(&given.job, &given.storage, &candidates, &options).unwrap();
    let comparison = compare(&trial, None, Extent::ALL).unwrap();
    economy(&trial, &comparison, &given.workload, &specs, &given.prices).unwrap().costs.remove(0)
}

#[test]
fn a_sample_of_entities_costs_what_all_cost() {
    let queries = "keep = \"30d\"\n[scale]\nrows_per_second = 100_000\n[query.of_host]\nper_second = 5000\nmust = \"range\"\n\
                   where = \"host = $host and ts >= $minute and ts < $minute + interval '1 minute'\"\n\
                   [query.all]\nper_second = 0.01\nwhere = \"ts is not null\"\n";
    let given = even(400, 25, queries);
    let [whole, part] = [None, Some(Sample { fraction: 0.05 })].map(|sample| cost_of(&given, sample));
    // 250 rows a second of each host are far from a node, whatever part of the hosts was measured.
    assert_eq!((&part.unservable, part.hot_series), (&None, None), "{part:#?}");
    for (name, whole, part) in [
        ("writes", whole.write_load, part.write_load),
        ("of_host", whole.queries[0].bytes, part.queries[0].bytes),
        ("all", whole.queries[1].bytes, part.queries[1].bytes),
    ] {
        assert!((part / whole - 1.0).abs() < 0.05, "{name}: {part} instead of {whole}");
    }
}

#[test]
fn a_window_of_time_costs_what_all_of_it_costs() {
    // Two hosts: the first half of the time has a fourth of the rows.
    let mut rows = Vec::new();
    for step in 0..1000_u64 {
        for event in 0..if step < 500 { 1 } else { 3 } {
            rows.push((step * 60_000 + 20_011 * event, format!("h{},{}.5", step % 2, step % 9)));
        }
    }
    let queries = "[query.of_host]\nper_second = 1\nwhere = \"host = $host\"\n";
    let given = Given::new("{host}#{ts:ms}", "host = \"text\", cpu = \"float64\"", &rows, queries);
    let first = Candidate::of_job(&given.job, &[]).unwrap().remove(0);
    let specs = draw_specs(&given.workload.queries, &first.schema).unwrap();
    let pass = Pass { asking: given.asking(), specs: &specs, profiled: &["host".to_owned()], entity: &[] };
    let known = pass.known(&first).unwrap();
    let proposed = given.advised().candidates.remove(0);
    let of = |most: f64| {
        let part = Part::new(&known.profile, 2.0, most);
        let found = pass.measured(&first.schema, slice::from_ref(&proposed), known.rows, &part, 20).unwrap();
        (found.economy.demand, found.comparison.layouts[0].measured.source_rows)
    };
    let ((whole, all), (part, some)) = (of(2000.0), of(1000.0));
    assert_eq!((all, some), (2000, 500));
    assert_eq!((part.writes_per_second, part.kept_rows), (whole.writes_per_second, whole.kept_rows));
    assert_eq!(whole.kept_rows.round(), 2000.0);
}
