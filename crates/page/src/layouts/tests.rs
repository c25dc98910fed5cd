use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::heat::colours::Scale;
use crate::view::{Bucket, Comparison, ComparisonRow, Finding, Matrix, Severity, Verdict};

const HOSTILE: &str = "</script><img src=x onerror=alert(1)>&\u{202e}مفتاح\0";

fn map(layout: &str, buckets: usize, slices: usize, value: impl Fn(usize, usize) -> u64) -> Heatmap {
    let values = (0..slices).flat_map(|slice| (0..buckets).map(move |bucket| (slice, bucket)));
    Heatmap {
        layout: layout.to_owned(),
        metric: "rows".to_owned(),
        sampled: false,
        buckets: (0..buckets).map(|at| Bucket { key: format!("k{at:04}"), segments: Vec::new(), keys: 1 }).collect(),
        start: 0,
        slice: 60_000_000,
        values: Matrix::Whole(values.map(|(slice, bucket)| value(slice, bucket)).collect()),
        top_share: Vec::new(),
        seen: Vec::new(),
    }
}

fn page(heatmaps: Vec<Heatmap>) -> LayoutsPage {
    LayoutsPage {
        title: HOSTILE.to_owned(),
        subtitle: String::new(),
        command: "tidetable compare".to_owned(),
        verdict: Verdict { headline: HOSTILE.to_owned(), ..Verdict::default() },
        comparison: None,
        bytes: Vec::new(),
        heatmaps,
        queries: None,
        findings: Vec::new(),
        cost: None,
        method: Vec::new(),
        data: json!({ "key": HOSTILE, "number": 0.1 }),
    }
}

/// Spread numbers that need no seed.
fn noise(at: usize) -> u64 {
    let mixed = (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40
}

fn element(html: &str, id: &str) -> Value {
    let (_, rest) = html.split_once(&format!("<script type=\"application/json\" id=\"{id}\">")).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The values of a map, as a reader of the page gets them.
fn values(map: &Value) -> Vec<u64> {
    let packed = STANDARD.decode(map["values"].as_str().unwrap()).unwrap();
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
    let (mut values, mut value, mut shift) = (Vec::new(), 0, 0);
    for byte in bytes {
        value |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            values.push(value);
            (value, shift) = (0, 0);
        }
    }
    values
}

#[test]
fn text_stays_text() {
    let mut given = page(vec![map(HOSTILE, 2, 2, |slice, _| slice as u64)]);
    given.heatmaps[0].buckets[0].key = HOSTILE.to_owned();
    given.comparison = Some(Comparison {
        rows: vec![ComparisonRow { layout: HOSTILE.to_owned(), ..ComparisonRow::default() }],
        columns: Vec::new(),
    });
    given.findings = vec![Finding {
        rule: "K1".to_owned(),
        severity: Severity::Warn,
        table: HOSTILE.to_owned(),
        message: HOSTILE.to_owned(),
        keys: vec![HOSTILE.to_owned()],
        measured: HOSTILE.to_owned(),
        reason: HOSTILE.to_owned(),
        source: HOSTILE.to_owned(),
        change: None,
    }];
    let html = layouts_page(&given).unwrap();
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count(), "no text opens or ends a script");
    assert!(!html.contains("<img src=x"), "no text is markup");
    assert_eq!(element(&html, "data"), given.data);
    assert_eq!(element(&html, "maps")["maps"][0]["keys"][0], HOSTILE);
}

#[test]
fn the_same_page_has_the_same_bytes() {
    let given = page(vec![map("A", 50, 40, |slice, bucket| noise(slice * 50 + bucket) % 9)]);
    assert_eq!(layouts_page(&given).unwrap(), layouts_page(&given.clone()).unwrap());
    let written: LayoutsPage = serde_json::from_str(&serde_json::to_string(&given).unwrap()).unwrap();
    assert_eq!(written, given);
}

#[test]
fn slices_are_joined_until_the_page_fits() {
    let maps: Vec<Heatmap> =
        ["A", "B"].map(|layout| map(layout, 200, 64, |slice, bucket| noise(slice * 200 + bucket) % 1000)).to_vec();
    let given = page(maps.clone());
    let sum = |html: &str| -> Vec<u64> {
        element(html, "maps")["maps"].as_array().unwrap().iter().map(|map| values(map).iter().sum()).collect()
    };
    let whole = within(&given, usize::MAX).unwrap();
    let first = |html: &str| values(&element(html, "maps")["maps"][0]);
    assert_eq!(Matrix::Whole(first(&whole)), maps[0].values);
    let small = within(&given, whole.len() - 1).unwrap();
    assert!(small.len() < whole.len(), "{} < {}", small.len(), whole.len());
    assert_eq!(element(&small, "maps")["maps"][0]["slices"], 32);
    assert!(small.contains("Slices of time were joined, 2 to one"));
    assert_eq!(sum(&small), sum(&whole));
    let least = within(&given, 0).unwrap();
    assert_eq!((element(&least, "maps")["maps"][1]["slices"].clone(), sum(&least)), (json!(1), sum(&whole)));
}

#[test]
fn pixels_are_values() {
    let given = map("A", 70, 90, |slice, bucket| if bucket % 7 == 0 { 0 } else { noise(slice * 70 + bucket) % 500 });
    let html = layouts_page(&page(vec![given.clone()])).unwrap();
    let (_, url) = html.split_once("data:image/png;base64,").unwrap();
    let file = STANDARD.decode(url.split_once('"').unwrap().0).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut levels = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut levels).unwrap();
    let (scale, palette) = (Scale::up_to(given.values.max()), crate::heat::colours::palette());
    let info = reader.info();
    assert_eq!((info.width, info.height), (90, 70));
    assert_eq!(info.palette.as_deref(), Some(palette.as_flattened()));
    for at in 0..100 {
        let (slice, bucket) = (noise(at) as usize % 90, noise(at + 100) as usize % 70);
        assert_eq!(levels[bucket * 90 + slice], scale.level(given.at(slice, bucket)), "slice {slice}, bucket {bucket}");
    }
}

#[test]
fn a_page_without_maps_has_no_chart_library() {
    let html = layouts_page(&page(Vec::new())).unwrap();
    assert!(!html.contains("uPlot") && html.len() < 30_000, "{}", html.len());
    let empty = Heatmap { values: Matrix::Whole(Vec::new()), ..map("A", 3, 0, |_, _| 0) };
    assert!(layouts_page(&page(vec![empty])).unwrap().contains("there are no values"));
}
