//! A page whose names and keys try to be something else: markup, scripts, text from right to left, control characters.

use tidetable_page::view::*;

const KEYS: [&str; 4] = [
    "</script><script>alert(1)</script>",
    "\u{202e}مفتاح#٢",
    "<!--<img src=x onerror=alert(2)>",
    "a\u{0}\u{9b}\"'&amp;",
];

/// The page.
pub fn page() -> LayoutsPage {
    let name = KEYS.join(" ");
    let map = |layout: &str, values| Heatmap {
        layout: layout.to_owned(),
        metric: "rows <b>written</b>".to_owned(),
        sampled: true,
        buckets: KEYS.map(|key| Bucket { key: key.to_owned(), segments: vec![key.to_owned()], keys: 1 }).to_vec(),
        start: 1_600_000_000_000_000,
        slice: 900_000_000,
        values,
        top_share: Vec::new(),
        seen: vec![name.clone()],
    };
    let finding = Finding {
        rule: "K14".to_owned(),
        severity: Severity::Info,
        table: name.clone(),
        message: name.clone(),
        keys: KEYS.map(str::to_owned).to_vec(),
        measured: name.clone(),
        reason: name.clone(),
        source: name.clone(),
        change: Some(Change { place: name.clone(), before: name.clone(), after: format!("{name}\n{name}") }),
    };
    LayoutsPage {
        title: name.clone(),
        subtitle: name.clone(),
        command: name.clone(),
        verdict: Verdict { headline: name.clone(), reasons: vec![name.clone()], turns: vec![name.clone()] },
        comparison: Some(Comparison {
            columns: vec![Column {
                name: name.clone(),
                label: name.clone(),
                unit: Unit::Text,
                better: None,
                meaning: name.clone(),
            }],
            rows: vec![ComparisonRow {
                layout: name.clone(),
                shape: name.clone(),
                marks: vec![name.clone()],
                sampled: true,
                figures: vec![Figure::Text(name.clone())],
            }],
        }),
        bytes: vec![PartBytes { layout: name.clone(), parts: vec![(name.clone(), 7)], ..PartBytes::default() }],
        heatmaps: vec![
            map("real", Matrix::Real((0..40).map(|at| f64::from(at) / 8.0).collect())),
            map(&name, Matrix::Real((0..8).map(f64::from).collect())),
        ],
        queries: Some(QueryMatrix {
            queries: vec![Query { name: name.clone(), clause: name.clone(), per_second: None, draws: 0 }],
            rows: vec![QueryRow {
                layout: name.clone(),
                sampled: true,
                answers: vec![Answer { error: Some(name.clone()), ..Answer::default() }],
            }],
        }),
        findings: vec![finding],
        cost: None,
        method: vec![Note { title: name.clone(), text: name.clone() }],
        data: serde_json::json!({ name.clone(): name }),
    }
}
