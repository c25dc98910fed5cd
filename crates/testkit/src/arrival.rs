//! Late, duplicate and missing samples.

use crate::seeded::Seeded;

/// Share of samples that arrive late.
pub const LATE: f64 = 0.01;
/// Share of samples that arrive twice, the second time late.
pub const DUPLICATES: f64 = 0.001;
/// Share of samples that never arrive.
pub const GAPS: f64 = 0.005;
/// Share of all of these.
const DEVIANT: f64 = LATE + DUPLICATES + GAPS;

/// In which order samples arrive, and whether all do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Arrival {
    /// As those of devices do: random ids, in random order within each instant, [`LATE`], [`DUPLICATES`] and [`GAPS`].
    #[default]
    Irregular,
    /// Ascending ids in order, each sample once and on time.
    Ordered,
}

/// What happens to a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Fate {
    /// It arrives so many minutes late.
    Late(f64),
    /// It arrives on time, and again so many minutes later.
    Twice(f64),
    /// It does not arrive.
    Never,
}

/// A sample that is late, duplicate or missing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deviation {
    /// Index among the samples of its file's instants.
    pub(crate) index: u64,
    pub(crate) fate: Fate,
    /// Seed of its values, which every copy has.
    pub(crate) noise: u64,
}

/// The deviations among `samples` samples, ascending. Delays are of a minute to `longest` minutes, log-uniform.
pub(crate) fn deviations(mut random: Seeded, samples: u64, longest: f64) -> impl Iterator<Item = Deviation> {
    let mut next = 0u64;
    std::iter::from_fn(move || {
        // A geometric number of samples lies before the next deviation.
        next += ((1.0 - random.unit()).ln() / (1.0 - DEVIANT).ln()) as u64;
        let share = random.unit() * DEVIANT;
        let delay = longest.max(1.0).powf(random.unit());
        let fate = match share {
            ..LATE => Fate::Late(delay),
            _ if share < LATE + DUPLICATES => Fate::Twice(delay),
            _ => Fate::Never,
        };
        let found = Deviation { index: next, fate, noise: random.bits() };
        next += 1;
        (found.index < samples).then_some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_have_their_rates_and_delays() {
        let samples = 1_000_000;
        let found: Vec<Deviation> = deviations(Seeded::new(5), samples, 4320.0).collect();
        assert!(found.is_sorted_by(|one, other| one.index < other.index));
        let share = |of: fn(&Fate) -> bool| found.iter().filter(|at| of(&at.fate)).count() as f64 / samples as f64;
        assert!((share(|fate| matches!(fate, Fate::Late(_))) / LATE - 1.0).abs() < 0.05);
        assert!((share(|fate| matches!(fate, Fate::Twice(_))) / DUPLICATES - 1.0).abs() < 0.15);
        assert!((share(|fate| *fate == Fate::Never) / GAPS - 1.0).abs() < 0.05);
        let delays = found.iter().filter_map(|at| match at.fate {
            Fate::Late(delay) | Fate::Twice(delay) => Some(delay),
            Fate::Never => None,
        });
        let (mut minutes, mut days) = (0, 0);
        for delay in delays {
            assert!((1.0..=4320.0).contains(&delay));
            minutes += usize::from(delay < 60.0);
            days += usize::from(delay > 1440.0);
        }
        assert!(minutes > 3000 && days > 1000, "{minutes} {days}");
    }
}
