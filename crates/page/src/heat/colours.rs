//! Colours of values: one scale for all maps of a page that count the same.

/// Colours besides that of nothing.
const STEPS: usize = 255;

/// Nothing: darker than every value, so that a little is not taken for none.
const EMPTY: [u8; 3] = [0x0b, 0x0d, 0x12];

/// Every sixteenth colour of Matplotlib's `viridis` (CC0), which the colour-blind read in the same order.
const VIRIDIS: [[u8; 3]; 17] = [
    [0x44, 0x01, 0x54],
    [0x48, 0x18, 0x6a],
    [0x47, 0x2d, 0x7b],
    [0x42, 0x40, 0x86],
    [0x3b, 0x52, 0x8b],
    [0x33, 0x63, 0x8d],
    [0x2c, 0x72, 0x8e],
    [0x26, 0x82, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x1f, 0xa0, 0x88],
    [0x28, 0xae, 0x80],
    [0x3f, 0xbc, 0x73],
    [0x5e, 0xc9, 0x62],
    [0x84, 0xd4, 0x4b],
    [0xad, 0xdc, 0x30],
    [0xd8, 0xe2, 0x19],
    [0xfd, 0xe7, 0x25],
];

/// Where the scale begins in [`VIRIDIS`], as a part of it: what is before can hardly be told from [`EMPTY`].
const FIRST: f64 = 0.14;

/// The 256 colours: nothing, then from little to much.
pub(crate) fn palette() -> [[u8; 3]; STEPS + 1] {
    let mut colours = [EMPTY; STEPS + 1];
    for (step, colour) in colours.iter_mut().skip(1).enumerate() {
        let place = (FIRST + (1.0 - FIRST) * step as f64 / (STEPS - 1) as f64) * (VIRIDIS.len() - 1) as f64;
        let at = (place as usize).min(VIRIDIS.len() - 2);
        let part = place - at as f64;
        let (from, into) = (VIRIDIS[at], VIRIDIS[at + 1]);
        *colour = std::array::from_fn(|c| {
            (f64::from(from[c]) + (f64::from(into[c]) - f64::from(from[c])) * part).round() as u8
        });
    }
    colours
}

/// Where one colour ends and the next begins, by the logarithm of `1 + value`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    /// Least value of each colour besides that of nothing, ascending.
    pub(crate) least: Vec<f64>,
    /// The largest value of the maps that share the scale, or 1 if it is 0.
    pub(crate) max: f64,
}

impl Scale {
    /// The scale of values from 0 to `max`.
    pub(crate) fn up_to(max: f64) -> Self {
        let max = if max > 0.0 { max } else { 1.0 };
        let top = max.ln_1p();
        let steps = (1..STEPS).map(|step| (top * step as f64 / STEPS as f64).exp_m1());
        Self { least: std::iter::once(f64::MIN_POSITIVE).chain(steps).collect(), max }
    }

    /// The colour of a value, as an index of [`palette`]; 0 only for nothing.
    pub(crate) fn level(&self, value: f64) -> u8 {
        u8::try_from(self.least.partition_point(|least| *least <= value)).unwrap_or(u8::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_not_nothing_and_most_is_brightest() {
        let scale = Scale::up_to(1000.0);
        assert_eq!((scale.level(0.0), scale.level(1e-9), scale.level(1000.0)), (0, 1, 255));
        assert!((0..1000).all(|value| scale.level(f64::from(value)) <= scale.level(f64::from(value + 1))));
        assert_eq!(Scale::up_to(1.0).level(1.0), 255);
        assert_eq!(Scale::up_to(0.0).level(0.0), 0);
    }

    #[test]
    fn colours_become_lighter() {
        let light = |[r, g, b]: [u8; 3]| 0.2126 * f64::from(r) + 0.7152 * f64::from(g) + 0.0722 * f64::from(b);
        let palette = palette();
        assert!(palette.windows(2).all(|pair| light(pair[0]) <= light(pair[1]) + 0.6), "{palette:?}");
        assert_eq!((palette[0], palette[255]), (EMPTY, [0xfd, 0xe7, 0x25]));
    }
}
