//! Bars of bytes by part.

use crate::figures::{bytes, exact_bytes, range};
use crate::view::PartBytes;

/// Width of the longest bar.
const WIDTH: f64 = 1000.0;

/// What the template draws of the bytes of layouts: a bar each, on one scale.
#[derive(Default)]
pub(super) struct Bars {
    /// Names of the parts, as the first layout has them.
    pub(super) parts: Vec<String>,
    pub(super) rows: Vec<BarRow>,
    /// Whether packed bytes, or bytes of tidetable's files, are known of a layout.
    pub(super) packed: bool,
    pub(super) own: bool,
}

/// The bar of a layout.
pub(super) struct BarRow {
    pub(super) layout: String,
    pub(super) total: String,
    pub(super) packed: String,
    pub(super) own: String,
    pub(super) parts: Vec<BarPart>,
    /// Bytes of each part, for the table.
    pub(super) bytes: Vec<String>,
    /// Widths of the least and the most packed bytes.
    pub(super) stored: Option<(f64, f64)>,
    pub(super) height: u32,
    /// The bar in words.
    pub(super) says: String,
}

/// A part of a bar.
pub(super) struct BarPart {
    pub(super) at: usize,
    pub(super) x: f64,
    pub(super) width: f64,
    pub(super) says: String,
}

impl Bars {
    /// The bars of layouts.
    pub(super) fn of(layouts: &[PartBytes]) -> Self {
        let most = layouts.iter().map(|layout| total(layout).max(layout.packed.map_or(0, |(_, most)| most))).max();
        let scale = WIDTH / most.unwrap_or(0).max(1) as f64;
        Self {
            parts: layouts.first().into_iter().flat_map(|layout| &layout.parts).map(|(name, _)| name.clone()).collect(),
            rows: layouts.iter().map(|layout| bar(layout, scale)).collect(),
            packed: layouts.iter().any(|layout| layout.packed.is_some()),
            own: layouts.iter().any(|layout| layout.own.is_some()),
        }
    }
}

fn total(layout: &PartBytes) -> u64 {
    layout.parts.iter().map(|(_, bytes)| bytes).sum()
}

fn bar(layout: &PartBytes, scale: f64) -> BarRow {
    let mark = if layout.sampled { "~" } else { "" };

    let mut x = 0.0;
    let mut parts = Vec::new();
    for (at, (name, number)) in layout.parts.iter().enumerate() {
        let width = *number as f64 * scale;
        if *number > 0 {
            parts.push(BarPart {
                at,
                x: rounded(x),
                width: rounded(width),
                says: format!("{name}: {mark}{} B", exact_bytes(*number)),
            });
        }
        x += width;
    }

    let said: Vec<String> =
        layout.parts.iter().map(|(name, number)| format!("{name} {mark}{}", bytes(*number))).collect();
    let unit = if total(layout) < 10_000_000 { " B" } else { "" };
    BarRow {
        layout: layout.layout.clone(),
        total: format!("{mark}{}{unit}", exact_bytes(total(layout))),
        packed: layout
            .packed
            .map_or(String::new(), |(least, most)| format!("{mark}{}", range(bytes(least), bytes(most)))),
        own: layout.own.map_or(String::new(), |own| format!("{mark}{}", bytes(own))),
        bytes: layout.parts.iter().map(|(_, number)| format!("{mark}{}", exact_bytes(*number))).collect(),
        stored: layout.packed.map(|(least, most)| (rounded(least as f64 * scale), rounded(most as f64 * scale))),
        height: if layout.packed.is_some() { 24 } else { 16 },
        says: format!("{}: {}", layout.layout, said.join(", ")),
        parts,
    }
}

/// Two decimals are finer than a pixel.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_scale() {
        let layout = |layout: &str, key, value| PartBytes {
            layout: layout.to_owned(),
            parts: vec![("key".to_owned(), key), ("value".to_owned(), value)],
            packed: Some((10, 20)),
            ..PartBytes::default()
        };
        let bars = Bars::of(&[layout("A", 300, 100), layout("B", 0, 100)]);
        let drawn: Vec<Vec<(usize, f64, f64)>> =
            bars.rows.iter().map(|row| row.parts.iter().map(|part| (part.at, part.x, part.width)).collect()).collect();
        assert_eq!(drawn, [vec![(0, 0.0, 750.0), (1, 750.0, 250.0)], vec![(1, 0.0, 250.0)]]);
        assert_eq!(bars.rows[0].stored, Some((25.0, 50.0)));
        assert_eq!((bars.rows[0].total.as_str(), bars.rows[0].packed.as_str()), ("400 B", "10 B – 20 B"));
        assert_eq!(Bars::of(&[]).rows.len(), 0);
    }
}
