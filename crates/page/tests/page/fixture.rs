//! A page on the five layouts of the weather balloons, from the sample data: bytes and maps are counted here, by the
//! rules of the layouts; loads and the words of the verdict are made up.

use std::collections::{BTreeMap, BTreeSet};

use tidetable_page::view::*;

const CSV: &str = include_str!("../../../../sample-data/weather-balloons/1999-05-04.csv");
const MINUTE: i64 = 60_000_000;
const FAMILY: u64 = "measurements".len() as u64;

struct Level<'a> {
    station: &'a str,
    micros: i64,
    stamp: String,
    values: Vec<(&'a str, &'a str)>,
}

fn levels() -> Vec<Level<'static>> {
    let mut lines = CSV.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let level = |line: &'static str| {
        let fields: Vec<&str> = line.split(',').collect();
        let time: chrono::DateTime<chrono::Utc> = fields[1].parse().unwrap();
        let values = names.iter().zip(&fields).skip(2).filter(|(_, value)| !value.is_empty());
        Level {
            station: fields[0],
            micros: time.timestamp_micros(),
            stamp: time.format("%Y-%m-%d-%H%M%S%3f").to_string(),
            values: values.map(|(name, value)| (*name, *value)).collect(),
        }
    };
    lines.map(level).collect()
}

/// Row keys of a level in a layout, and of each cell: qualifier and bytes of its value.
fn cells(layout: &str, level: &Level) -> Vec<(String, u64, u64)> {
    let size = |text: &str| text.len() as u64;
    let week = format!("{}#1999-W18", level.station);
    let event = format!("{}#{}", level.station, level.stamp);
    let message: u64 = level.values.iter().map(|(_, value)| 2 + size(value)).sum();
    match layout {
        "new columns" => level
            .values
            .iter()
            .map(|(name, value)| (format!("{}#{name}#1999-W18", level.station), size(value), 0))
            .collect(),
        "new cells" => level.values.iter().map(|(name, value)| (week.clone(), size(name), size(value))).collect(),
        "events" => level.values.iter().map(|(name, value)| (event.clone(), size(name), size(value))).collect(),
        "events blob" => vec![(event, size("measurements_blob"), message)],
        _ => vec![(week, size("measurements_blob"), message + 11)],
    }
}

const LAYOUTS: [(&str, &str); 5] = [
    ("week blob", "{station}#{ts:%G-W%V}, one protobuf cell"),
    ("events blob", "{station}#{ts:%Y-%m-%d-%H%M%S%3f}, one protobuf cell"),
    ("new cells", "{station}#{ts:%G-W%V}, a version a reading"),
    ("new columns", "{station}#{metric}#{ts:%G-W%V}, the value as qualifier"),
    ("events", "{station}#{ts:%Y-%m-%d-%H%M%S%3f}, a column a quantity"),
];

fn parts(layout: &str, levels: &[Level]) -> (u64, u64, PartBytes) {
    let mut sums = [0u64; 5];
    let mut rows: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = 0;
    for level in levels {
        for (key, qualifier, value) in cells(layout, level) {
            let first = !rows.contains_key(&key);
            let bytes = [key.len() as u64, FAMILY, qualifier, value, 8];
            // A row of one cell has its key once, however many levels are in it.
            let counted = if layout == "week blob" && !first { [0, 0, 0, value, 0] } else { bytes };
            sums.iter_mut().zip(counted).for_each(|(sum, bytes)| *sum += bytes);
            count += u64::from(layout != "week blob" || first);
            *rows.entry(key).or_default() += 1;
        }
    }
    let names = ["key", "family", "qualifier", "value", "timestamp"];
    let total: u64 = sums.iter().sum();
    let parts = names.iter().zip(sums).map(|(name, bytes)| ((*name).to_owned(), bytes)).collect();
    let packed = Some((total / 9, total / 5));
    (
        rows.len() as u64,
        count,
        PartBytes { layout: layout.to_owned(), sampled: false, parts, packed, own: Some(total / 11) },
    )
}

fn heatmap(layout: &str, levels: &[Level]) -> Heatmap {
    let keys: BTreeSet<String> = levels.iter().flat_map(|level| cells(layout, level)).map(|(key, ..)| key).collect();
    let keys: Vec<&String> = keys.iter().collect();
    let count = keys.len().min(1000);
    let first = |bucket: usize| bucket * keys.len() / count;
    let start = levels.iter().map(|level| level.micros).min().unwrap().div_euclid(MINUTE) * MINUTE;
    let slices = (levels.iter().map(|level| level.micros).max().unwrap() - start) / MINUTE + 1;
    let slices = usize::try_from(slices).unwrap();
    let mut values = vec![0; slices * count];
    for level in levels {
        let slice = usize::try_from((level.micros - start) / MINUTE).unwrap();
        for (key, ..) in cells(layout, level) {
            let rank = keys.partition_point(|other| **other < key);
            let bucket = (0..count).rfind(|bucket| first(*bucket) <= rank).unwrap();
            values[slice * count + bucket] += 1;
        }
    }
    let tenth = |slice: usize| {
        let row = &values[slice * count..(slice + 1) * count];
        let total: u64 = row.iter().sum();
        let most = row.chunks(count.div_ceil(10)).map(|range| range.iter().sum::<u64>()).max().unwrap_or(0);
        (total > 0).then(|| most as f64 / total as f64)
    };
    let bucket = |at: usize| Bucket {
        key: keys[first(at)].clone(),
        segments: keys[first(at)].split('#').map(str::to_owned).collect(),
        keys: (first(at + 1) - first(at)) as u64,
    };
    Heatmap {
        layout: layout.to_owned(),
        metric: "cells written".to_owned(),
        sampled: false,
        buckets: (0..count).map(bucket).collect(),
        start,
        slice: MINUTE,
        top_share: (0..slices).map(tenth).collect(),
        values: Matrix::Whole(values),
        seen: vec![
            "Even: in half the slices the fullest tenth of the keys takes less than 0.25 of the writes.".to_owned(),
        ],
    }
}

fn column(name: &str, label: &str, unit: Unit, better: Option<Better>, meaning: &str) -> Column {
    Column { name: name.to_owned(), label: label.to_owned(), unit, better, meaning: meaning.to_owned() }
}

/// The page.
pub fn page() -> LayoutsPage {
    let levels = levels();
    let measured: Vec<(u64, u64, PartBytes)> = LAYOUTS.iter().map(|(layout, _)| parts(layout, &levels)).collect();
    let total = |bytes: &PartBytes| bytes.parts.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let rows =
        LAYOUTS.iter().zip(&measured).enumerate().map(|(at, ((layout, shape), (rows, cells, bytes)))| ComparisonRow {
            layout: (*layout).to_owned(),
            shape: (*shape).to_owned(),
            marks: if at == 0 { vec!["cheapest".to_owned()] } else { Vec::new() },
            sampled: at == 4,
            figures: vec![
                Figure::Whole(*rows),
                Figure::Whole(*cells),
                Figure::Whole(total(bytes)),
                Figure::Real(*cells as f64 / *rows as f64),
                Figure::Real(0.115 + at as f64 / 50.0),
                if at == 3 { Figure::None } else { Figure::Real(0.31) },
                Figure::Text(if at == 0 { "range".to_owned() } else { "ranges".to_owned() }),
            ],
        });
    let clauses = [
        ("sounding", "station = 'KJSJ'", 0.2, 1),
        ("ten_minutes", "station = $station and ts >= $ts and ts < $ts + interval '10 minutes'", 50.0, 200),
        ("temperature", "station = 'KJSJ'", 5.0, 200),
        ("all", "true", 0.01, 1),
    ];
    let seen = [
        [9_820, 9_820, 9_820, 130_115],
        [21_143, 2_743, 21_143, 279_569],
        [50_926, 50_926, 50_926, 664_426],
        [51_992, 51_992, 4_408, 678_351],
        [63_718, 8_623, 63_718, 831_526],
    ];
    let answer = |layout: usize, query: usize| Answer {
        shape: if query == 3 { Shape::Scan } else { Shape::Range },
        ranges: if layout == 3 { 6 } else { 1 },
        rows: Seen { seen: 1 + 120 * u64::from(layout % 3 == 1), returned: 1 },
        cells: Seen { seen: 512, returned: 86 },
        bytes: Seen { seen: seen[layout][query], returned: seen[layout][query].min(8_000) },
        bytes_p95: seen[layout][query] + if query == 1 { 1_200 } else { 0 },
        error: (layout == 2 && query == 1)
            .then(|| "must be a range of time, reads the whole week of the station".to_owned()),
    };
    let matrix = QueryMatrix {
        queries: clauses
            .iter()
            .map(|(name, clause, rate, draws)| Query {
                name: (*name).to_owned(),
                clause: (*clause).to_owned(),
                per_second: Some(*rate),
                draws: *draws,
            })
            .collect(),
        rows: LAYOUTS
            .iter()
            .enumerate()
            .map(|(at, (layout, _))| QueryRow {
                layout: (*layout).to_owned(),
                sampled: false,
                answers: (0..clauses.len()).map(|query| answer(at, query)).collect(),
            })
            .collect(),
    };
    let loads = LAYOUTS.iter().zip(&measured).enumerate().map(|(at, ((layout, _), (_, _, bytes)))| Load {
        layout: (*layout).to_owned(),
        write_kib: 21_000.0 * (at + 1) as f64,
        read_kib: 4_000.5 * (5 - at) as f64,
        scan_mb: 12.25,
        stored: (total(bytes) as f64 * 3.1e5, total(bytes) as f64 * 6.2e5),
        unservable: (at == 2).then(|| "one row takes 1.4 of a node's target, which no split helps".to_owned()),
    });
    let source = "list prices of the pricing page";
    LayoutsPage {
        title: "Layouts of weather-balloons".to_owned(),
        subtitle: "2,954 levels of 24 soundings, 1999-05-04, measured in full in five layouts".to_owned(),
        command: "tidetable compare weather-balloons --queries q.toml --report page.html".to_owned(),
        verdict: Verdict {
            headline: "Choose week blob: it is the cheapest, and only whole soundings are asked for often.".to_owned(),
            reasons: vec![
                "It holds 130,115 bytes as cells, 5.1 times fewer than new columns.".to_owned(),
                "A sounding is one row: 9,820 bytes read, all of them returned.".to_owned(),
            ],
            turns: vec![
                "Ten minutes of a sounding asked four times as often: events blob reads 2,743 bytes instead of 9,820.".to_owned(),
                "Only temperature asked: new columns reads 4,408 bytes.".to_owned(),
            ],
        },
        comparison: Some(Comparison {
            columns: vec![
                column("rows", "rows", Unit::Count, None, "Row keys."),
                column("cells", "cells", Unit::Count, Some(Better::Lower), ""),
                column("bytes_as_cells", "bytes as cells", Unit::Bytes, Some(Better::Lower), "Key, family, qualifier, value and 8 bytes of timestamp of every cell."),
                column("cells_per_row", "cells a row", Unit::Ratio, None, ""),
                column("top_share", "top share p50", Unit::Share, Some(Better::Lower), "Part of a slice's source rows in the fullest of ten ranges of the keys known before."),
                column("hottest_row", "hottest row", Unit::Share, Some(Better::Lower), "Part of a slice's source rows in one row."),
                column("shape", "sounding", Unit::Text, None, ""),
            ],
            rows: rows.collect(),
        }),
        bytes: measured.iter().map(|(_, _, bytes)| bytes.clone()).collect(),
        heatmaps: LAYOUTS.iter().map(|(layout, _)| heatmap(layout, &levels)).collect(),
        queries: Some(matrix),
        findings: vec![
            Finding {
                rule: "K4".to_owned(),
                severity: Severity::Error,
                table: "new cells".to_owned(),
                message: "an integer in the row key is not padded: 10 sorts before 9".to_owned(),
                keys: vec!["KJSJ#9".to_owned(), "KJSJ#10".to_owned()],
                measured: "2 widths, limit 1".to_owned(),
                reason: "Row keys are sorted by their bytes, so numbers need a fixed width.".to_owned(),
                source: "Schema design best practices".to_owned(),
                change: Some(Change {
                    place: "jobs/weather-balloons/job.toml:31".to_owned(),
                    before: "row_key = \"{station}#{level}\"".to_owned(),
                    after: "row_key = \"{station}#{level:04}\"".to_owned(),
                }),
            },
            Finding {
                rule: "C2".to_owned(),
                severity: Severity::Warn,
                table: "events".to_owned(),
                message: "names of families and qualifiers are 37 % of the bytes".to_owned(),
                keys: Vec::new(),
                measured: "309,452 B of 831,526 B, limit 30 %".to_owned(),
                reason: "Names are stored with every cell; short ones save 248,000 bytes.".to_owned(),
                source: "Schema design best practices".to_owned(),
                change: None,
            },
        ],
        cost: Some(Cost {
            prices: Prices {
                region: "us-central1".to_owned(),
                date: "2026-09-30".to_owned(),
                source: source.to_owned(),
                node_hour: 0.65,
                gib_month: 0.17,
                clusters: 1,
            },
            capacity: Capacity {
                name: "Enterprise with SSD".to_owned(),
                writes: 14_000.0,
                reads: 17_000.0,
                scan_mb: 220.0,
                stored_tb: 2.5,
                target: 0.6,
            },
            loads: loads.collect(),
        }),
        method: vec![
            Note { title: "Bytes as cells".to_owned(), text: "Counted exactly: key, family, qualifier, value and 8 bytes a cell.".to_owned() },
            Note { title: "Not known".to_owned(), text: "What a row of other than 1 KB costs a node.\nHow Bigtable compresses; packed bytes are a range from Snappy to zstd.".to_owned() },
        ],
        data: serde_json::json!({ "layouts": LAYOUTS.iter().zip(&measured).map(|((layout, _), (rows, cells, bytes))| {
            serde_json::json!({ "layout": layout, "rows": rows, "cells": cells, "bytes_as_cells": total(bytes) })
        }).collect::<Vec<_>>() }),
    }
}
