//! Pairs of tables: what of them is refused, and whether their loads add up.

use super::Given;
use crate::advice::{Second, TableLoad};

/// Hosts that write every 5 s, where the first writes `busy` times as often as another.
fn hosts(busy: usize, queries: &str) -> Given {
    let mut rows = Vec::new();
    for step in 0..60_u64 {
        for host in 0..6 {
            for event in 0..if host == 0 { busy as u64 } else { 1 } {
                rows.push((step * 5000 + 97 * host + 31 * event, format!("h{host},{}.5,{}", step % 7, host)));
            }
        }
    }
    Given::new("{host}#{ts:ms}", "host = \"text\", cpu = \"float64\", load = \"float64\"", &rows, queries)
}

const NEWEST: &str = "[query.of_host]\nper_second = 200\nmust = \"range\"\n\
                      where = \"host = $host and ts >= $minute and ts < $minute + interval '1 minute'\"\n\
                      [query.inventory]\nper_second = 1\norder = \"newest\"\nwhere = \"ts is not null\"\n";

#[test]
fn a_table_of_the_newest_is_refused_where_one_row_takes_more_than_a_node() {
    let newest = |busy: usize| {
        let given = hosts(busy, &format!("keep = \"365d\"\n[scale]\nrows_per_second = 24_000\n{NEWEST}"));
        let advice = given.advised();
        let is_paired = advice.pairs.iter().any(|pair| pair.second == Second::Newest);
        let refused = advice.refused.iter().find(|refused| refused.name.ends_with("_newest"));
        (is_paired, refused.map(|refused| (refused.rule, refused.message.clone())))
    };
    // A sixth of 24,000 rows a second go to each row.
    assert_eq!(newest(1), (true, None));
    // 10 of 15 go to one: 16,000.
    let message = "one row takes 16000 writes a second: those of the busiest host".to_owned();
    assert_eq!(newest(10), (false, Some(("W2", message))));
}

#[test]
fn a_table_of_days_is_refused_where_its_rows_grow_too_large() {
    let mut rows = Vec::new();
    for step in 0..400_u64 {
        let site = step % 2;
        rows.push((step * 900_000 + 1009 * site, format!("s{site},{}.5,{}.25", step % 7, step % 90)));
    }
    let columns = "site = \"text\", value = \"float64\", level = \"float64\"";
    let days = |rate: &str| {
        let queries = format!(
            "keep = \"365d\"\n[scale]\nrows_per_second = {rate}\n[query.of_site]\nper_second = 100\nmust = \"range\"\n\
             where = \"site = $site and ts >= $minute and ts < $minute + interval '1 minute'\"\n[query.day]\n\
             per_second = 0.1\nwhere = \"ts >= $day and ts < $day + interval '1 day'\"\n"
        );
        let given = Given::new("{site}#{ts:ms}", columns, &rows, &queries);
        let advice = given.advised();
        let is_paired = advice.pairs.iter().any(|pair| pair.second == Second::Days);
        (is_paired, advice.refused.iter().any(|refused| refused.name.ends_with("{day:%Y%m%d}") && refused.rule == "R1"))
    };
    assert_eq!(days("4"), (true, false));
    // 2,000 rows a second of each site: 173 million a day in one row.
    assert_eq!(days("4_000"), (false, true));
}

#[test]
fn the_nodes_of_a_pair_add_up() {
    let given = hosts(1, &format!("keep = \"365d\"\n[scale]\nrows_per_second = 24_000\n{NEWEST}"));
    let advice = given.advised();
    let pair = &advice.pairs[0];
    let loads: f64 = pair.loads.iter().map(|load| load.nodes(&given.prices)).sum();
    let load = loads + pair.kept.iter().map(TableLoad::nodes).sum::<f64>();
    let stored: f64 = pair.kept.iter().map(|table| table.stored).sum();
    assert_eq!(given.prices.nodes(given.workload.goal, load, stored), pair.nodes);

    // Each table has its writes and its storage, each query its reads, and the sentences make up the nodes.
    let facts = given.explained(&advice).facts;
    for name in &pair.names {
        for what in ["writes: ", "stored: "] {
            assert!(facts.iter().any(|fact| fact.starts_with(&format!("{name} {what}"))), "{facts:#?}");
        }
    }
    let nodes = |fact: &String| -> f64 {
        let number = fact.strip_suffix(" nodes").and_then(|fact| fact.rsplit(' ').next());
        number.map_or(0.0, |number| number.parse().unwrap())
    };
    let sum = facts.iter().find(|fact| fact.starts_with("together: ")).unwrap();
    let said: f64 = sum.split(' ').nth(1).unwrap().parse().unwrap();
    let added: f64 = facts.iter().filter(|fact| !fact.starts_with("together")).map(nodes).sum();
    assert!((added - said).abs() < 0.1, "{added} {facts:#?}");
    assert!(sum.ends_with(&format!("{:.0} nodes", pair.nodes)), "{sum}");
}

#[test]
fn what_is_stored_twice_is_a_part_of_what_one_table_needs() {
    let given = hosts(1, &format!("keep = \"365d\"\n[scale]\nrows_per_second = 24_000\n{NEWEST}"));
    for pair in given.advised().pairs {
        let most = if pair.second == Second::Newest { 1.01 } else { 10.0 };
        assert!(pair.duplication > 1.0 && pair.duplication < most, "{:?} {}", pair.second, pair.duplication);
    }
}

#[test]
fn a_salt_changes_only_what_its_table_answers() {
    let mut rows = Vec::new();
    for step in 0..100_u64 {
        for symbol in 0..20 {
            let exchange = symbol % 2;
            rows.push((step * 1000 + 7 * symbol, format!("e{exchange},s{symbol},{}.5,{}.5", step % 9, step % 8)));
        }
    }
    let columns = "exchange = \"text\", symbol = \"text\", bid = \"float64\", ask = \"float64\"";
    let queries = "keep = \"90d\"\n[scale]\nrows_per_second = 40_000\n[query.of_exchange]\nper_second = 20\nmust = \"range\"\n\
                   where = \"exchange = $exchange and ts >= $second and ts < $second + interval '1 second'\"\n\
                   [query.newest]\nper_second = 10\norder = \"newest\"\nwhere = \"ts is not null\"\n";
    let given = Given::new("{exchange}#{symbol}#{ts:ms}", columns, &rows, queries);
    let advice = given.advised();
    let pair = &advice.pairs[0];
    assert_eq!((pair.second, &pair.by_second[..]), (Second::Newest, &[false, true][..]), "{pair:#?}");
    // 20,000 writes a second behind an exchange.
    let warning = given.explained(&advice).warnings.join("");
    assert!(warning.contains("the busiest exchange takes 20000 writes a second"), "{warning}");
    assert!(
        warning.contains("of_exchange ") && !warning.contains("newest 0") && !warning.contains("newest 1"),
        "{warning}"
    );
}

/// Vehicles of two depots at their own milliseconds.
fn vehicles(row_key: &str, queries: &str) -> Given {
    let mut rows = Vec::new();
    for step in 0..30_u64 {
        rows.extend((0..8).map(|vehicle| {
            (step * 10_000 + 131 * vehicle, format!("d{},v{vehicle},{}.5,{}", vehicle % 2, step % 7, step))
        }));
    }
    let columns = "depot = \"text\", vehicle = \"text\", lat = \"float64\", lon = \"float64\"";
    let scale = "keep = \"365d\"\n[scale]\nentities = { vehicle = 80_000 }\nevery = \"10s\"\n";
    Given::new(row_key, columns, &rows, &format!("{scale}{queries}"))
}

const OF_DEPOT: &str = "[query.of_depot]\nper_second = 5\nmust = \"range\"\n\
                        where = \"depot = $depot and ts >= $minute and ts < $minute + interval '1 minute'\"\n";

#[test]
fn the_newest_are_keyed_by_what_the_query_fixes() {
    let newest = "[query.now]\nper_second = 4000\norder = \"newest\"\nlimit = 1\nmust = \"range\"\nwhere = \"vehicle = $vehicle\"\n";
    let given = vehicles("{depot}#{vehicle}#{ts:ms}", &format!("{OF_DEPOT}{newest}"));
    let advice = given.advised();
    let pair = &advice.pairs[0];
    assert_eq!((pair.second, pair.row_keys[1].as_str()), (Second::Newest, "{vehicle:percent}"), "{pair:#?}");
    assert_eq!(pair.by_second, [false, true]);
    // One row of 80,000: 4,000 / 17,000 nodes.
    let load = &pair.loads[1];
    assert!(load.rows == 1.0 && (load.nodes(&given.prices) - 4000.0 / 17_000.0).abs() < 1e-9, "{load:?}");
    assert!(pair.kept[1].stored < pair.kept[0].stored / 1e4, "{:?}", pair.kept);
    // The job is one that loads.
    let text = advice.job_of_winners(&given.job.text, "chosen").unwrap();
    let job: toml::Table = toml::from_str(&text).unwrap();
    let table = &job["tables"][&pair.names[1]];
    assert_eq!(table["row_key"].as_str(), Some("{vehicle:percent}"), "{text}");
    let except = &table["families"]["d"]["columns"][1]["except"];
    assert_eq!(except.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect::<Vec<_>>(), ["vehicle", "ts"]);
    let folder = given.project.dir.join("jobs/chosen");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("job.toml"), &text).unwrap();
    tidetable_job::Job::load(&given.project, "chosen").unwrap();
}

#[test]
fn a_table_of_the_newest_answers_no_query_for_ten_of_one_and_none_of_a_depot_behind_the_vehicle() {
    let is_newest = |query: &str| {
        let given = vehicles("{depot}#{vehicle}#{ts:ms}", &format!("{OF_DEPOT}{query}"));
        given.advised().pairs.iter().any(|pair| pair.second == Second::Newest)
    };
    let of = |limit: &str, predicate: &str| {
        format!(
            "[query.now]\nper_second = 4000\norder = \"newest\"\n{limit}must = \"range\"\nwhere = \"{predicate}\"\n"
        )
    };
    assert!(is_newest(&of("limit = 1\n", "vehicle = $vehicle")));
    assert!(!is_newest(&of("limit = 10\n", "vehicle = $vehicle")));
    // A row of each vehicle, behind its depot.
    assert!(is_newest(&of("", "depot = $depot")));
    // The newest of an earlier hour is in no such table.
    assert!(!is_newest(&of("limit = 1\n", "vehicle = $vehicle and ts < $hour")));
    // Nor the newest of those that satisfy a condition on a value.
    assert!(!is_newest(&of("limit = 1\n", "vehicle = $vehicle and lat = $lat")));
}

#[test]
fn days_beyond_the_tables_of_an_instance_are_refused() {
    let queries = "[query.of_vehicle]\nper_second = 20\nmust = \"range\"\n\
                   where = \"vehicle = $vehicle and ts >= $minute and ts < $minute + interval '1 minute'\"\n\
                   [query.day]\nper_second = 0.0001\nmust = \"range\"\n\
                   where = \"ts >= $day and ts < $day + interval '1 day'\"\n";
    let of = |days: i64| {
        let given = vehicles("{vehicle}#{ts:ms}", queries);
        let workload = tidetable_job::workload::Workload {
            keep: Some(days * tidetable_layout::time::DAY),
            ..given.workload.clone()
        };
        let given = Given { workload, ..given };
        let advice = given.advised();
        let is_daily = advice.pairs.first().is_some_and(|pair| pair.second == Second::Days);
        let is_refused = advice.refused.iter().any(|refused| refused.rule == "T1");
        let keys = advice.comparison.layouts[advice.chosen()].row_key.clone();
        (is_daily, is_refused, given.explained(&advice).warnings.join(" ").contains("T1"), keys.contains("salt"))
    };
    assert_eq!(of(365), (true, false, true, false));
    // 1,095 tables are over the 1,000 of an instance, and nothing that is promoted serves all vehicles of a day.
    assert_eq!(of(1095), (false, true, false, true));
}
