//! Meter readings in the shape of the reference set: log-normal loads with a daily curve, three
//! decimals, in time order, one CSV file a day.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use chrono::{Days, NaiveDate};

/// A small random number generator (SplitMix64): the same seed, the same numbers.
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in 0..1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A standard normal number, near enough (the sum of twelve uniform ones).
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

/// Readings of meters 1 to `meters` on `days` days from `first`.
#[derive(Debug, Clone)]
pub struct Readings {
    /// Number of meters.
    pub meters: u32,
    /// Readings a meter and day; a divisor of 1440.
    pub per_day: u32,
    /// First day.
    pub first: NaiveDate,
    /// Number of days.
    pub days: u32,
    /// Decides the values.
    pub seed: u64,
}

impl Readings {
    /// How many there are.
    pub fn count(&self) -> u64 {
        u64::from(self.meters) * u64::from(self.per_day) * u64::from(self.days)
    }

    /// Writes a CSV file a day into `folder`; returns their paths in order.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_csv(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::create_dir_all(folder)?;
        let mut random = Seeded::new(self.seed);
        let base: Vec<f64> = (0..self.meters).map(|_| (random.normal() * 0.6 - 1.2).exp()).collect();
        let mut paths = Vec::new();
        for day in 0..self.days {
            let date = self.first + Days::new(u64::from(day));
            let path = folder.join(format!("{date}.csv"));
            self.write_day(&path, date, &base, &mut random)?;
            paths.push(path);
        }
        Ok(paths)
    }

    fn write_day(&self, path: &Path, date: NaiveDate, base: &[f64], random: &mut Seeded) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        out.write_all(b"meter,ts,kwh\n")?;
        let step = 1440 / self.per_day;
        for reading in 0..self.per_day {
            let minute = reading * step;
            let hour = f64::from(minute) / 60.0;
            // Low at night, a peak in the morning and a greater one in the evening.
            let curve = 0.5 + 0.6 * bump(hour, 7.5, 2.0) + bump(hour, 19.0, 3.0);
            for (meter, base) in (1..).zip(base) {
                let kwh = base * curve * (random.normal() * 0.35).exp();
                writeln!(out, "{meter},{date}T{:02}:{:02}:00Z,{kwh:.3}", minute / 60, minute % 60)?;
            }
        }
        out.flush()
    }
}

fn bump(hour: f64, at: f64, width: f64) -> f64 {
    (-((hour - at) / width).powi(2)).exp()
}
