//! The records of a table by time: a bar a slice, and the mean of a measure as a line.

use crate::figures::{grouped, length, measure, time};
use crate::view::{TimeChart, TimeSlice};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;
/// Part of a slice's place that its bar takes.
const BAR: f64 = 0.9;
/// Height of the least bar, so that a few records are seen beside many.
const LEAST: f64 = 1.0;
const SECOND: i64 = 1_000_000;

/// What the template draws of a [`TimeChart`].
pub(crate) struct TimeText {
    /// What a bar is: `records, at most 480 in 1 h`.
    pub(crate) caption: String,
    pub(crate) bars: Vec<TimeBar>,
    /// The measure in words; empty without one.
    pub(crate) measure: String,
    /// Lines of the mean, as SVG has points: one for each stretch without a gap.
    pub(crate) lines: Vec<String>,
    pub(crate) from: String,
    pub(crate) until: String,
}

/// The bar of a slice.
pub(crate) struct TimeBar {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) says: String,
}

impl TimeText {
    /// Draws a chart; `None` without slices.
    pub(crate) fn of(chart: &TimeChart) -> Option<Self> {
        let (first, last) = (chart.slices.first()?, chart.slices.last()?);
        let slice = chart.slice.max(1).saturating_mul(SECOND);
        let number = (last.start - first.start) / slice + 1;
        let place = WIDTH / number as f64;
        let at = |slot: &TimeSlice| ((slot.start - first.start) / slice) as f64 * place;

        let most = chart.slices.iter().map(|slot| slot.records).max().unwrap_or_default().max(1);
        let name = if chart.measure.is_empty() { String::new() } else { format!(", mean of {}", chart.measure) };
        let bars = chart.slices.iter().map(|slot| {
            let height = (slot.records as f64 / most as f64 * HEIGHT).max(LEAST);
            let mean = slot.mean.map(|mean| format!("{name} {}", measure(mean))).unwrap_or_default();
            TimeBar {
                x: rounded(at(slot)),
                y: rounded(HEIGHT - height),
                width: rounded(place * BAR),
                height: rounded(height),
                says: format!("{}: {} records{mean}", time(slot.start), grouped(slot.records)),
            }
        });
        let bars = bars.collect();

        let means: Vec<f64> = chart.slices.iter().filter_map(|slot| slot.mean).collect();
        let (least, greatest) =
            means.iter().fold((f64::MAX, f64::MIN), |(low, high), mean| (low.min(*mean), high.max(*mean)));
        let is_drawn = !means.is_empty() && least.is_finite() && greatest.is_finite();
        Some(Self {
            caption: format!("records, at most {} in {}", grouped(most), length(slice)),
            bars,
            measure: match is_drawn {
                true => format!("mean of {}, {} to {}", chart.measure, measure(least), measure(greatest)),
                false => String::new(),
            },
            lines: if is_drawn {
                lines(&chart.slices, slice, (least, greatest), |slot| at(slot) + place / 2.0)
            } else {
                Vec::new()
            },
            from: time(first.start),
            until: time(last.start.saturating_add(slice)),
        })
    }
}

/// The means between `least` and `greatest` as lines, each without a gap.
fn lines(slices: &[TimeSlice], slice: i64, range: (f64, f64), x: impl Fn(&TimeSlice) -> f64) -> Vec<String> {
    let (least, greatest) = range;
    let span = if greatest > least { greatest - least } else { 1.0 };
    let mut lines: Vec<Vec<String>> = Vec::new();
    let mut before: Option<i64> = None;
    for slot in slices {
        let Some(mean) = slot.mean.filter(|mean| mean.is_finite()) else { continue };
        let y = HEIGHT - (mean - least) / span * HEIGHT;
        if before.is_none_or(|before| slot.start - before > slice) {
            lines.push(Vec::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push(format!("{},{}", rounded(x(slot)), rounded(y)));
        }
        before = Some(slot.start);
    }
    lines.into_iter().map(|line| line.join(" ")).collect()
}

/// Two decimals are finer than a pixel.
fn rounded(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_stand_where_their_time_is() {
        let slot = |hour: i64, records, mean| TimeSlice { start: hour * 3_600 * SECOND, records, mean };
        let slices = vec![slot(0, 10, Some(1.0)), slot(1, 5, Some(3.0)), slot(3, 20, Some(2.0))];
        let text = TimeText::of(&TimeChart { slice: 3_600, measure: "kwh".to_owned(), slices }).unwrap();
        let drawn: Vec<(f64, f64)> = text.bars.iter().map(|bar| (bar.x, bar.height)).collect();
        assert_eq!(drawn, [(0.0, 50.0), (250.0, 25.0), (750.0, 100.0)]);
        assert_eq!(text.lines, ["125,100 375,0", "875,50"]);
        assert_eq!(
            (text.caption.as_str(), text.measure.as_str()),
            ("records, at most 20 in 1 h", "mean of kwh, 1 to 3")
        );
        assert_eq!(text.bars[0].says, "1970-01-01 00:00: 10 records, mean of kwh 1");
        assert!(TimeText::of(&TimeChart::default()).is_none());
    }
}
