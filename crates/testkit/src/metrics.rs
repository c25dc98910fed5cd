//! Samples of machines: a row per machine and minute with a hundred metrics, in time order.

use std::f64::consts::TAU;
use std::io;
use std::path::Path;

use chrono::{NaiveDate, TimeDelta};

use crate::seeded::Seeded;
use crate::written::{Text, Written, write_files};

const FLOATS: usize = 60;
const COUNTERS: usize = 30;
const SIZES: usize = 10;
/// Number of files.
const FILES: u32 = 10;
const PAGE: u64 = 4096;

/// Samples of `hosts` machines at `instants` minutes from the start of `first`: 60 floats of two decimals that
/// oscillate about a level, 30 monotonic counters, 10 sizes in bytes, which are whole pages.
#[derive(Debug, Clone)]
pub struct Metrics {
    /// Number of machines.
    pub hosts: u32,
    /// Samples of each.
    pub instants: u32,
    /// Day of the first sample.
    pub first: NaiveDate,
    /// Seed of the values.
    pub seed: u64,
}

/// Parameters of one metric of one machine.
#[derive(Clone, Copy)]
struct Habit {
    level: f64,
    swing: f64,
    /// Samples per oscillation.
    period: f64,
    phase: f64,
}

impl Metrics {
    /// Columns after `host` and `ts`: (name, whether it is a float).
    pub fn columns() -> impl Iterator<Item = (String, bool)> {
        let named = |kind: &'static str, count: usize| (0..count).map(move |at| format!("{kind}_{at:02}"));
        let floats = named("float", FLOATS).map(|name| (name, true));
        floats.chain(named("counter", COUNTERS).chain(named("bytes", SIZES)).map(|name| (name, false)))
    }

    /// Number of values.
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
        let habits: Vec<Vec<Habit>> = (0..self.hosts).map(|host| self.habits(host)).collect();
        let paths = (0..FILES).map(|file| folder.join(format!("samples-{file:02}.csv"))).collect();
        write_files(paths, &header, sums, |file, out| {
            let mut random = Seeded::part(self.seed, u64::from(file));
            let bound = |file: u32| (u64::from(self.instants) * u64::from(file) / u64::from(FILES)) as u32;
            (bound(file)..bound(file + 1))
                .try_for_each(|instant| self.write_instant(instant, &habits, &mut random, out))
        })
    }

    fn habits(&self, host: u32) -> Vec<Habit> {
        let mut random = Seeded::part(!self.seed, u64::from(host));
        let habit = |at: usize| {
            let level = match at {
                ..FLOATS => 2.0 + 90.0 * random.unit(),
                // From a few to thousands a sample.
                _ if at < FLOATS + COUNTERS => (1.0 + 8.0 * random.unit()).exp().floor(),
                _ => (1u64 << (16 + random.below(7))) as f64,
            };
            let (swing, period, phase) = (0.3 * random.unit(), 30.0 + 300.0 * random.unit(), random.unit());
            Habit { level, swing, period, phase }
        };
        (0..FLOATS + COUNTERS + SIZES).map(habit).collect()
    }

    fn write_instant(
        &self,
        instant: u32,
        habits: &[Vec<Habit>],
        random: &mut Seeded,
        out: &mut Text,
    ) -> io::Result<()> {
        let time = self.first.and_hms_opt(0, 0, 0).unwrap_or_default() + TimeDelta::minutes(i64::from(instant));
        let time = time.format(".example.com,%Y-%m-%dT%H:%M:%SZ").to_string();
        for (host, habits) in habits.iter().enumerate() {
            out.line.extend_from_slice(b"server");
            out.integer(host as u64);
            out.line.extend_from_slice(time.as_bytes());
            for (at, habit) in habits.iter().enumerate() {
                out.line.push(b',');
                let value = if at < FLOATS {
                    let value = habit.floating(instant, random);
                    out.fixed::<2>(value);
                    value
                } else {
                    let value = if at < FLOATS + COUNTERS {
                        habit.counted(instant, random)
                    } else {
                        habit.sized(instant, random)
                    };
                    out.integer(value);
                    value
                };
                out.sums[at] += u128::from(value);
            }
            out.end_row()?;
        }
        Ok(())
    }
}

impl Habit {
    /// Oscillation about the level.
    fn curve(&self, instant: u32) -> f64 {
        self.level * (1.0 + self.swing * (TAU * (f64::from(instant) / self.period + self.phase)).sin())
    }

    /// Hundredths of a float.
    fn floating(&self, instant: u32, random: &mut Seeded) -> u64 {
        let noise = self.level * 0.02 * random.normal();
        ((self.curve(instant) + noise).max(0.0) * 100.0).round() as u64
    }

    /// Never less than the sample before.
    fn counted(&self, instant: u32, random: &mut Seeded) -> u64 {
        let (rate, start) = (self.level as u64, (self.phase * 1e8) as u64);
        start + rate * u64::from(instant) + random.below(rate.max(1))
    }

    /// Whole pages.
    fn sized(&self, instant: u32, random: &mut Seeded) -> u64 {
        (self.curve(instant) as u64 + random.below(64)) * PAGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_have_their_shape_and_their_sums() {
        let metrics = Metrics { hosts: 3, instants: 25, first: NaiveDate::from_ymd_opt(2015, 3, 16).unwrap(), seed: 1 };
        let folder = tempfile::tempdir().unwrap();
        let written = metrics.write_csv(folder.path()).unwrap();
        assert_eq!((written.paths.len(), written.rows, metrics.cells()), (10, 75, 7500));
        let mut sums = vec![0.0; 100];
        let mut last = [0u64; 3];
        for (at, path) in written.paths.iter().enumerate() {
            let text = std::fs::read_to_string(path).unwrap();
            for (row, line) in text.lines().skip(1).enumerate() {
                let fields: Vec<&str> = line.split(',').collect();
                assert_eq!(fields.len(), 102);
                assert_eq!(fields[0], format!("server{}.example.com", row % 3));
                assert_eq!(fields[2].split('.').nth(1).map(str::len), Some(2), "{at} {line}");
                sums.iter_mut().zip(&fields[2..]).for_each(|(sum, field)| *sum += field.parse::<f64>().unwrap());
                let counter: u64 = fields[62].parse().unwrap();
                assert!(counter >= last[row % 3], "a counter only grows");
                last[row % 3] = counter;
            }
        }
        for (at, sum) in sums.iter().enumerate() {
            assert!((sum - written.sum(at)).abs() <= sum * 1e-12, "{at}: {sum} {}", written.sum(at));
        }
    }
}
