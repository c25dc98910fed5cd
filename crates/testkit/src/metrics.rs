//! Samples of machines with a hundred metrics, ten CSV files.

use std::f64::consts::TAU;
use std::io;
use std::path::Path;

use chrono::{Datelike, NaiveDate, NaiveDateTime, TimeDelta, Timelike};

use crate::arrival::Arrival;
use crate::entities::{Zipf, ids};
use crate::grid::{Grid, Rows};
use crate::seeded::Seeded;
use crate::written::{Text, Written, write_files};

const FLOATS: usize = 60;
const COUNTERS: usize = 30;
const SIZES: usize = 10;
/// The number of CSV files, which divide the instants.
const FILES: u32 = 10;
const PAGE: u64 = 4096;
/// Milliseconds between instants, at least.
const MINUTE: u32 = 60_000;

/// Samples of `hosts` machines in `instants` minutes from the start of `first`: 60 floats of two decimals that
/// oscillate about a level, 30 monotonic counters, 10 sizes in bytes, which are whole pages.
///
/// A minute has as many samples as there are machines: ordered, each machine's at the minute; otherwise at times of
/// their own, of machines with a Zipf distribution. With more than 60,000 machines, an instant is longer than a minute,
/// a millisecond a sample, so that a machine has no two samples of one time.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// The number of machines.
    pub hosts: u32,
    /// The number of samples of each machine, without gaps and duplicates.
    pub instants: u32,
    /// Day of the first sample.
    pub first: NaiveDate,
    /// Seed of ids, values and arrival.
    pub seed: u64,
    /// In which order samples arrive, and whether all do.
    pub arrival: Arrival,
}

/// Parameters of the machines.
struct Hosts<'a> {
    metrics: &'a Metrics,
    ids: Vec<u32>,
    habits: Vec<Vec<Habit>>,
    /// Absent if every machine has a sample at every instant.
    zipf: Option<Zipf>,
}

/// What the samples of an instant share.
struct Instant {
    number: u32,
    time: NaiveDateTime,
}

/// Parameters of one metric of one machine.
#[derive(Clone, Copy)]
struct Habit {
    level: f64,
    swing: f64,
    /// The number of samples of one oscillation.
    period: f64,
    phase: f64,
}

impl Metrics {
    /// Columns after `host` and `ts`: (name, whether it is a float).
    pub fn columns() -> impl Iterator<Item = (String, bool)> {
        let kinds = [("float", FLOATS, true), ("counter", COUNTERS, false), ("bytes", SIZES, false)];
        kinds
            .into_iter()
            .flat_map(|(kind, count, is_float)| (0..count).map(move |at| (format!("{kind}_{at:02}"), is_float)))
    }

    /// Number of values without gaps and duplicates.
    pub fn cells(&self) -> u64 {
        u64::from(self.hosts) * u64::from(self.instants) * (FLOATS + COUNTERS + SIZES) as u64
    }

    /// Writes ten CSV files into `folder`, in parallel.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_csv(&self, folder: &Path) -> io::Result<Written> {
        std::fs::create_dir_all(folder)?;
        let mut header = String::from("host,ts");
        Self::columns().for_each(|(name, _)| {
            header.push(',');
            header.push_str(&name);
        });
        header.push('\n');

        let sums = Self::columns().map(|(name, float)| (name, if float { 2 } else { 0 })).collect();
        let irregular = self.arrival == Arrival::Irregular;
        let ids = if irregular { ids(self.hosts, self.seed) } else { (0..self.hosts).collect() };
        let hosts = Hosts {
            metrics: self,
            ids: ids.clone(),
            habits: (0..self.hosts).map(|host| self.habits(host)).collect(),
            zipf: irregular.then(|| Zipf::new(self.hosts)),
        };

        let bounds = (0..=u64::from(FILES)).map(|file| (u64::from(self.instants) * file / u64::from(FILES)) as u32);
        let grid = Grid {
            bounds: bounds.collect(),
            slots: self.hosts,
            minutes: f64::from(self.interval()) / f64::from(MINUTE),
            arrival: self.arrival,
            shuffled: false,
            seed: self.seed,
        };
        let paths = (0..FILES).map(|file| folder.join(format!("samples-{file:02}.csv"))).collect();
        write_files(paths, ids, &header, sums, |file, out| grid.write(&hosts, file, out))
    }

    /// Milliseconds from one instant to the next.
    fn interval(&self) -> u32 {
        if self.arrival == Arrival::Irregular { MINUTE.max(self.hosts) } else { MINUTE }
    }

    fn habits(&self, host: u32) -> Vec<Habit> {
        let mut random = Seeded::part(!self.seed, u64::from(host));
        let habits = (0..FLOATS + COUNTERS + SIZES).map(|at| {
            let level = match at {
                ..FLOATS => 2.0 + 90.0 * random.unit(),
                // From a few to thousands a sample.
                _ if at < FLOATS + COUNTERS => (1.0 + 8.0 * random.unit()).exp().floor(),
                _ => (1u64 << (16 + random.below(7))) as f64,
            };
            let (swing, period, phase) = (0.3 * random.unit(), 30.0 + 300.0 * random.unit(), random.unit());
            Habit { level, swing, period, phase }
        });
        habits.collect()
    }
}

impl Hosts<'_> {
    /// The machine of a slot, its time after the instant in milliseconds, and the number of samples that it may have
    /// made before.
    fn sample(&self, instant: u32, slot: u32, random: &mut Seeded) -> (usize, u32, f64) {
        let Some(zipf) = &self.zipf else { return (slot as usize, 0, f64::from(instant)) };
        let (host, hosts) = (zipf.draw(random), self.metrics.hosts);
        let before = u64::from(instant) * u64::from(hosts) + u64::from(slot);
        (host, slot * (self.metrics.interval() / hosts), before as f64 * zipf.share(host))
    }
}

impl Rows for Hosts<'_> {
    type Instant = Instant;

    fn instant(&self, number: u32) -> Instant {
        let after = TimeDelta::milliseconds(i64::from(number) * i64::from(self.metrics.interval()));
        Instant { number, time: self.metrics.first.and_hms_opt(0, 0, 0).unwrap_or_default() + after }
    }

    fn row(&self, at: &Instant, slot: u32, random: &mut Seeded, out: &mut Text) {
        let (host, after, clock) = self.sample(at.number, slot, random);
        out.line.extend_from_slice(b"server");
        out.integer(u64::from(self.ids[host]));
        out.line.extend_from_slice(b".example.com,");
        write_time(at.time + TimeDelta::milliseconds(i64::from(after)), out);
        for (column, habit) in self.habits[host].iter().enumerate() {
            out.line.push(b',');
            let value = match column {
                ..FLOATS => habit.floating(clock, random),
                _ if column < FLOATS + COUNTERS => habit.counted(clock),
                _ => habit.sized(clock, random),
            };
            if column < FLOATS {
                out.fixed::<2>(value)
            } else {
                out.integer(value)
            }
            out.count(column, value);
        }
    }
}

/// Appends a time with milliseconds.
fn write_time(time: NaiveDateTime, out: &mut Text) {
    out.padded::<4>(time.year().unsigned_abs().into());
    for (before, part) in
        [(b'-', time.month()), (b'-', time.day()), (b'T', time.hour()), (b':', time.minute()), (b':', time.second())]
    {
        out.line.push(before);
        out.padded::<2>(part.into());
    }
    out.line.push(b'.');
    out.padded::<3>((time.nanosecond() / 1_000_000).into());
    out.line.push(b'Z');
}

/// `clock` is the number of samples of the machine before this one, on average.
impl Habit {
    /// Oscillation about the level.
    fn curve(&self, clock: f64) -> f64 {
        self.level * (1.0 + self.swing * (TAU * (clock / self.period + self.phase)).sin())
    }

    /// Hundredths of a float.
    fn floating(&self, clock: f64, random: &mut Seeded) -> u64 {
        let noise = self.level * 0.02 * random.normal();
        ((self.curve(clock) + noise).max(0.0) * 100.0).round() as u64
    }

    /// Never less than at an earlier time: steps of random height, with a straight line between them.
    fn counted(&self, clock: f64) -> u64 {
        let start = (self.phase * 1e8) as u64;
        let (number, rest) = (clock as u64, clock.fract());
        let low = self.step(number);
        let rise = if rest > 0.0 { (self.step(number + 1) - low) as f64 * rest } else { 0.0 };
        start + low + rise as u64
    }

    /// The height of a counter's step: the next one is at least as high.
    fn step(&self, number: u64) -> u64 {
        let rate = self.level as u64;
        rate * number + Seeded::part(self.phase.to_bits(), number).below(rate.max(1))
    }

    /// Bytes about the level, in whole pages.
    fn sized(&self, clock: f64, random: &mut Seeded) -> u64 {
        (self.curve(clock) as u64 + random.below(64)) * PAGE
    }
}

#[cfg(test)]
mod tests;
