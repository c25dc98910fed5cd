//! The worked cases of the guides at their scales: what `advise` puts first for data that arrives irregularly.

use std::fmt::Write;

use serde_json::Value;

use crate::harness::Project;

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// `2026-03-02T00:00:00.000Z` and so many milliseconds: a Monday.
fn time(millis: u64) -> String {
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (hours, minutes, seconds) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("2026-03-{:02}T{hours:02}:{minutes:02}:{seconds:02}.{millis:03}Z", 2 + days)
}

/// What is advised for a file of rows: the objects of JSON, the text for people, and the job that is written.
struct Advised {
    found: Vec<Value>,
    shown: String,
    job: String,
}

fn advised(rows: &str, queries: &str) -> Advised {
    let project = Project::empty();
    project.write("in/a.csv", rows);
    project.write("q.toml", queries);
    let advise = ["advise", "in/a.csv", "--queries", "q.toml"];
    let found = project.json(&advise);
    let shown = project.ok(&[&advise[..], &["--write", "chosen"]].concat());
    let job = project.read("jobs/chosen/job.toml");
    project.ok(&["check", "chosen"]);
    Advised { found, shown, job }
}

impl Advised {
    /// Row keys of the tables that are chosen.
    fn row_keys(&self) -> Vec<&str> {
        let pair = self.found.iter().find(|it| it["layouts"].as_array().unwrap().len() == 2);
        let single = self.found.iter().find(|it| it["place"] == 1);
        pair.or(single).unwrap()["row_keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap()).collect()
    }
}

#[test]
fn meters_by_day_have_a_table_of_each_day() {
    let mut random = Random(1);
    let mut rows = String::from("meter,ts,kwh\n");
    for quarter in 0..2 * 96 {
        for meter in 0..12 {
            // Not every reading arrives.
            if random.below(20) > 0 {
                writeln!(
                    rows,
                    "{},{},{}.{}",
                    987_000 + 83 * meter,
                    time(quarter * 900_000),
                    random.below(30),
                    random.below(100)
                )
                .unwrap();
            }
        }
    }
    let queries = "keep = \"365d\"\n[scale]\nentities = { meter = 10_000_000 }\nevery = \"15m\"\n\
                   [query.one_day]\nper_second = 50\nmust = \"range\"\n\
                   where = \"meter = $meter and ts >= $day and ts < $day + interval '1 day'\"\n\
                   [query.all_of_a_day]\nper_second = 0.0001\nmust = \"range\"\n\
                   where = \"ts >= $day and ts < $day + interval '1 day'\"\n";
    let advised = advised(&rows, queries);
    // 10,000,000 meters / 900 s = 11,111 rows a second, each below 1 KiB: / 14,000 = 0.79 nodes.
    assert!(
        advised.shown.contains("writes: 11111 rows a second x 1.00 KiB / 14000 a node = 0.79 nodes"),
        "{}",
        advised.shown
    );
    // A day of one meter is a row; a day of all of them is a table.
    assert_eq!(advised.row_keys(), ["{meter:010}#{ts:%Y%m%d}", "{meter:010}"], "{}", advised.shown);
    assert!(
        advised.job.contains("qualifier = \"{ts:%H%M}\"") && advised.job.contains("per = \"day\""),
        "{}",
        advised.job
    );
    // The other way round every meter writes to one place at midnight.
    assert!(advised.shown.contains("not chosen: day_meter_columns ({ts:%Y%m%d}#{meter:010}): K1"), "{}", advised.shown);
}

#[test]
fn servers_have_a_table_of_the_newest() {
    let mut random = Random(2);
    let mut rows = String::from("host,ts,cpu,load,mem\n");
    for step in 0..150 {
        for host in 0..12 {
            let late = random.below(900);
            let values = [random.below(100), random.below(50), random.below(64_000)];
            writeln!(
                rows,
                "server{host}.bbb.com,{},{},{},{}",
                time(step * 5000 + late),
                values[0],
                values[1],
                values[2]
            )
            .unwrap();
        }
    }
    let queries = "keep = \"30d\"\n[scale]\nentities = { host = 100_000 }\nevery = \"5s\"\n\
                   [query.of_host]\nper_second = 20\nmust = \"range\"\n\
                   where = \"host = $host and ts >= $minute and ts < $minute + interval '10 minutes'\"\n\
                   [query.inventory]\nper_second = 0.01\norder = \"newest\"\nwhere = \"ts is not null\"\n";
    let advised = advised(&rows, queries);
    // 100,000 hosts / 5 s = 20,000 rows a second: no row takes more than one of them every 5 s.
    assert!(advised.shown.contains("writes: 20000 rows a second"), "{}", advised.shown);
    let keys = advised.row_keys();
    assert!(
        keys[0].starts_with("{host:percent}#{ts") || keys[0].starts_with("{host:domain}#{ts"),
        "{keys:?} {}",
        advised.shown
    );
    assert!(keys.len() == 2 && !keys[1].contains("{ts") && keys[1].starts_with("{host"), "{keys:?} {}", advised.shown);
    assert!(advised.job.contains("upsert = \"row\""), "{}", advised.job);
    // A row a host for ever: 86,400 / 5 x 30 readings.
    assert!(advised.shown.contains("): K7 ") || advised.shown.contains("): R1 "), "{}", advised.shown);
}

#[test]
fn a_symbol_that_passes_a_node_is_named_and_not_salted() {
    let mut random = Random(3);
    let mut rows = String::from("exchange,symbol,ts,bid,ask\n");
    let symbols = ["ZXZZT", "ZVZZT", "NTEST", "ZWZZT", "ZJZZT", "ZTEST"];
    let mut millis = 0;
    for _ in 0..2500 {
        millis += 1 + random.below(700);
        // A fifth of all is of one symbol, and it is more with its even share of the rest.
        let symbol = if random.below(5) == 0 { 0 } else { random.below(6) as usize };
        let exchange = if symbol % 2 == 0 { "NASDAQ" } else { "NYSE" };
        let price = 60_000 + random.below(200);
        writeln!(
            rows,
            "{exchange},{},{},{}.{:02},{}.{:02}",
            symbols[symbol],
            time(millis),
            price / 100,
            price % 100,
            price / 100 + 1,
            price % 100
        )
        .unwrap();
    }
    let queries = "keep = \"90d\"\n[scale]\nrows_per_second = 100_000\n\
                   [query.of_symbol]\nper_second = 100\nmust = \"range\"\n\
                   where = \"exchange = $exchange and symbol = $symbol and ts >= $minute and ts < $minute + interval '5 minutes'\"\n";
    let advised = advised(&rows, queries);
    let keys = advised.row_keys();
    assert_eq!(keys, ["{exchange:percent}#{symbol:percent}#{ts:ms}"], "{}", advised.shown);
    // A third of 100,000 writes a second is more than the 14,000 of a node.
    assert!(advised.shown.contains("warning: the busiest exchange and symbol takes 3"), "{}", advised.shown);
    assert!(advised.shown.contains("{salt(ts, 3)} in front divides them by 3"), "{}", advised.shown);
}

#[test]
fn users_are_promoted_and_games_have_two_tables() {
    let mut random = Random(4);
    let mut rows = String::from("user,ts,level,state\n");
    let mut millis = 0;
    for _ in 0..1500 {
        millis += random.below(200_000);
        writeln!(rows, "user{},{},{},{}", random.below(40), time(millis), random.below(100), random.below(3)).unwrap();
    }
    let queries = "keep = \"90d\"\n[scale]\nentities = { user = 1_000_000 }\n\
                   [query.of_user]\nper_second = 100\nmust = \"range\"\n\
                   where = \"user = $user and ts >= $minute and ts < $minute + interval '1 minute'\"\n";
    let advised_levels = advised(&rows, queries);
    let keys = advised_levels.row_keys();
    assert!(keys.len() == 1 && keys[0].starts_with("{user:percent}#{ts"), "{keys:?} {}", advised_levels.shown);

    let mut rows = String::from("game,player,ts,win,kda\n");
    for day in 0..20 {
        for player in 0..40 {
            let game = ["LoL", "Go", "Chess"][random.below(3) as usize];
            writeln!(
                rows,
                "{game},player{player},2026-03-{:02},{},{}",
                1 + day,
                random.below(2) == 0,
                random.below(900)
            )
            .unwrap();
        }
    }
    let queries = "keep = \"365d\"\n[scale]\nentities = { player = 10_000_000 }\n\
                   [query.of_player]\nper_second = 200\nmust = \"range\"\nwhere = \"game = $game and player = $player\"\n\
                   [query.of_day]\nper_second = 0.01\nmust = \"range\"\n\
                   where = \"game = $game and ts >= $day and ts < $day + interval '1 day'\"\n";
    let advised = advised(&rows, queries);
    let mut keys = advised.row_keys();
    keys.sort_unstable();
    assert_eq!(
        keys,
        ["{game:percent}#{player:percent}#{ts:%Y%m%d}", "{game:percent}#{ts:%Y%m%d}#{player:percent}"],
        "{}",
        advised.shown
    );
}

#[test]
fn balloons_have_another_layout_for_each_workload() {
    let mut random = Random(5);
    let mut rows = String::from("region,balloon,ts,pressure,temperature,humidity\n");
    for minute in 0..240 {
        for balloon in 0..12 {
            if random.below(10) > 0 {
                let region = ["asia-south2", "us-west2"][balloon % 2];
                let values = [90_000 + random.below(9000), random.below(40), random.below(100)];
                writeln!(
                    rows,
                    "{region},b{},{},{},{},{}",
                    3690 + balloon,
                    time(minute * 60_000),
                    values[0],
                    values[1],
                    values[2]
                )
                .unwrap();
            }
        }
    }
    let scale = "keep = \"365d\"\n[scale]\nentities = { balloon = 10_000 }\nevery = \"1m\"\n";
    let week = format!(
        "{scale}[query.week]\nper_second = 500\nmust = \"range\"\n\
                        where = \"balloon = $balloon and ts >= $week and ts < $week + interval '7 days'\"\n"
    );
    let found = advised(&rows, &week);
    assert_eq!(found.row_keys(), ["{balloon:percent}#{ts:%G-W%V}"], "{}", found.shown);
    // A cell a reading, with all of its values.
    assert!(found.job.contains("qualifier = \"{ts:%m%d%H%M}\""), "{}", found.job);
    assert!(found.job.contains("message = \"Reading\""), "{}", found.job);
    let minute = format!(
        "{scale}[query.minute]\nper_second = 50\nmust = \"range\"\n\
                          where = \"region = $region and ts >= $minute and ts < $minute + interval '1 minute'\"\n"
    );
    let found = advised(&rows, &minute);
    assert!(found.row_keys()[0].starts_with("{region:percent}#{ts"), "{}", found.shown);
    let unknown = format!("{scale}[query.any]\nwhere = \"ts is not null\"\n");
    let found = advised(&rows, &unknown);
    assert!(found.job.contains("message = \"Reading\""), "{}", found.job);
}

#[test]
fn small_keys_are_those_of_the_guides() {
    let mut random = Random(6);
    let mut devices = String::from("tenant,kind,device,ts,used,free\n");
    let mut pages = String::from("domain,ts,views,errors\n");
    let mut orders = String::from("customer,ts,sum,items\n");
    for step in 0..400 {
        let device = random.below(30);
        let kind = ["phone", "tablet"][(device % 2) as usize];
        let tenant = ["altostrat", "examplepetstore", "cymbal"][(device % 3) as usize];
        let at = time(step * 61_000 + random.below(900));
        writeln!(devices, "{tenant},{kind},{device:04x}c4,{at},{},{}", random.below(900), random.below(900)).unwrap();
        let domain =
            ["drive.google.com", "maps.google.com", "en.wikipedia.org", "de.wikipedia.org"][random.below(4) as usize];
        writeln!(pages, "{domain},{at},{},{}", random.below(900), random.below(9)).unwrap();
        writeln!(orders, "{},{at},{},{}", 100_000 + step / 2, random.below(900), random.below(9)).unwrap();
    }
    let of = |rows: &str, predicate: &str| {
        let queries = format!("[query.q]\nper_second = 5\nmust = \"range\"\nwhere = \"{predicate}\"\n");
        advised(rows, &queries).row_keys()[0].to_owned()
    };
    let device = of(&devices, "kind = $kind and device = $device and ts >= $minute");
    assert!(device.starts_with("{kind:percent}#{device:percent}#{ts"), "{device}");
    let tenant = of(&devices, "kind = $kind and tenant = $tenant");
    assert!(tenant.starts_with("{tenant:percent}#{kind:percent}#"), "{tenant}");
    let domain = of(&pages, "domain = $domain");
    assert!(domain.starts_with("{domain:domain}#"), "{domain}");
    let customer = of(&orders, "customer = $customer");
    assert!(customer.starts_with("{customer:reversed}#"), "{customer}");
}
