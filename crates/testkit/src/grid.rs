//! Files of samples in order of arrival.

use std::io;

use crate::arrival::{Arrival, Fate, deviations};
use crate::seeded::Seeded;
use crate::written::Text;

/// Greatest delay, minutes: three days.
const LONGEST: f64 = 3.0 * 1440.0;
/// Separates the random numbers of deviations from those of values.
const DEVIATIONS: u64 = 0x6C61_7465;

/// Rows of a grid of instants and slots: the slots of an instant are its samples.
pub(crate) trait Rows {
    /// What the rows of an instant share.
    type Instant;

    fn instant(&self, instant: u32) -> Self::Instant;

    /// Appends a row, up to its end.
    fn row(&self, at: &Self::Instant, slot: u32, random: &mut Seeded, out: &mut Text);
}

/// Instants and slots, cut into files by instant.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    /// The first instant of each file, and the end of the last.
    pub(crate) bounds: Vec<u32>,
    /// Slots of an instant.
    pub(crate) slots: u32,
    /// Minutes from one instant to the next.
    pub(crate) minutes: f64,
    pub(crate) arrival: Arrival,
    /// Whether the slots of an instant are permuted.
    pub(crate) shuffled: bool,
    pub(crate) seed: u64,
}

/// How a sample that deviates comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coming {
    OnTime,
    Late,
    Again,
}

/// A row that is written apart from the others of its instant.
#[derive(Debug, Clone, Copy)]
struct Apart {
    /// The instant among whose rows it is written.
    due: u32,
    /// Seed of its values; also decides the order among those that are due.
    noise: u64,
    instant: u32,
    slot: u32,
    coming: Coming,
}

/// What deviates in a file.
#[derive(Debug, Default)]
struct Schedule {
    /// (instant, slot) of its own samples that are not written with the others of their instant.
    skipped: Vec<(u32, u32)>,
    apart: Vec<Apart>,
    gaps: u64,
}

impl Grid {
    /// Writes file number `file`.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn write<R: Rows>(&self, rows: &R, file: u32, out: &mut Text) -> io::Result<()> {
        let mut random = Seeded::part(self.seed, u64::from(file));
        let schedule = self.schedule(file as usize);
        out.tally.gaps += schedule.gaps;
        let (mut skipped, mut apart) = (schedule.skipped.as_slice(), schedule.apart.as_slice());
        let mut order: Vec<u32> = (0..self.slots).collect();
        let mut skip = vec![false; self.slots as usize];
        for instant in self.bounds[file as usize]..self.bounds[file as usize + 1] {
            if self.shuffled {
                random.shuffle(&mut order);
            }
            let here = split(&mut skipped, |&(at, _)| at == instant);
            here.iter().for_each(|&(_, slot)| skip[slot as usize] = true);
            let due = split(&mut apart, |row| row.due == instant);

            let (now, mut written) = (rows.instant(instant), 0);
            for (at, &slot) in order.iter().enumerate() {
                // Those that are due are spread evenly among the slots.
                while written < due.len() && at == (2 * written + 1) * order.len() / (2 * due.len()) {
                    write_apart(rows, &due[written], out)?;
                    written += 1;
                }
                if !skip[slot as usize] {
                    rows.row(&now, slot, &mut random, out);
                    out.end_row()?;
                }
            }
            here.iter().for_each(|&(_, slot)| skip[slot as usize] = false);
        }

        // Those that are due after the last instant.
        apart.iter().try_for_each(|row| write_apart(rows, row, out))
    }

    /// What deviates in a file: samples of its own instants, and those of earlier files that arrive in it.
    fn schedule(&self, file: usize) -> Schedule {
        let mut schedule = Schedule::default();
        if self.arrival == Arrival::Ordered {
            return schedule;
        }

        let files = self.bounds.len() - 1;
        let end = self.bounds[files];
        let longest = LONGEST.min(f64::from(end) * self.minutes);
        // What does not arrive in time for the last instant comes after it.
        let first = self.bounds[file];
        let after = if file + 1 == files { end.saturating_add(1) } else { self.bounds[file + 1] };
        for from in 0..=file {
            let (begin, until) = (self.bounds[from], self.bounds[from + 1]);
            if self.late(until, longest) < first {
                continue;
            }

            let samples = u64::from(until - begin) * u64::from(self.slots);
            let random = Seeded::part(self.seed ^ DEVIATIONS, from as u64);
            for found in deviations(random, samples, longest) {
                let instant = begin + (found.index / u64::from(self.slots)) as u32;
                let slot = (found.index % u64::from(self.slots)) as u32;
                let comings = match found.fate {
                    Fate::Late(delay) => vec![(self.late(instant, delay), Coming::Late)],
                    Fate::Twice(delay) => {
                        vec![(instant, Coming::OnTime), (self.late(instant, delay), Coming::Again)]
                    }
                    Fate::Never => Vec::new(),
                };
                schedule.gaps += u64::from(from == file && comings.is_empty());
                for (due, coming) in comings.into_iter().filter(|(due, _)| (first..after).contains(due)) {
                    schedule.apart.push(Apart { due, noise: found.noise, instant, slot, coming });
                }
                if from == file {
                    schedule.skipped.push((instant, slot));
                }
            }
        }

        schedule.apart.sort_unstable_by_key(|row| (row.due, row.noise, row.coming == Coming::Again));
        schedule
    }

    /// The instant at which a sample of `instant` arrives after so many minutes, at most the end of all.
    fn late(&self, instant: u32, delay: f64) -> u32 {
        let end = self.bounds.last().copied().unwrap_or_default();
        instant.saturating_add((delay / self.minutes).ceil() as u32).min(end)
    }
}

fn write_apart<R: Rows>(rows: &R, row: &Apart, out: &mut Text) -> io::Result<()> {
    out.duplicate = row.coming == Coming::Again;
    out.tally.late += u64::from(row.coming == Coming::Late);
    rows.row(&rows.instant(row.instant), row.slot, &mut Seeded::new(row.noise), out);
    out.end_row()?;
    out.duplicate = false;
    Ok(())
}

/// Cuts off the first items of `rest` for which `belongs` holds.
fn split<'a, T>(rest: &mut &'a [T], belongs: impl Fn(&T) -> bool) -> &'a [T] {
    let count = rest.iter().take_while(|item| belongs(item)).count();
    let (here, after) = rest.split_at(count);
    *rest = after;
    here
}
