//! Meter readings in the shape of the reference set: log-normal loads with a daily curve, three decimals, one CSV file
//! per day of arrival.

use std::io;
use std::path::Path;

use chrono::{Days, NaiveDate};

use crate::arrival::Arrival;
use crate::entities::ids;
use crate::grid::{Grid, Rows};
use crate::seeded::Seeded;
use crate::written::{Text, Written, write_files};

/// Readings of meters on `days` days from `first`.
#[derive(Debug, Clone)]
pub struct Readings {
    /// The number of meters, each with readings on every day.
    pub meters: u32,
    /// Readings per meter and day; a divisor of 1440.
    pub per_day: u32,
    /// The day of the first reading.
    pub first: NaiveDate,
    /// The number of days, each with a file.
    pub days: u32,
    /// Seed of ids, values and arrival.
    pub seed: u64,
    /// In which order readings arrive, and whether all do.
    pub arrival: Arrival,
}

/// Parameters of the meters.
struct Meters<'a> {
    readings: &'a Readings,
    /// (id, kWh per interval at a curve of 1).
    meters: Vec<(u32, f64)>,
}

/// What the readings of an instant share.
struct Instant {
    curve: f64,
    time: String,
}

impl Readings {
    /// Number of readings without gaps and duplicates.
    pub fn count(&self) -> u64 {
        u64::from(self.meters) * u64::from(self.per_day) * u64::from(self.days)
    }

    /// Ids of the meters, in the order of their index.
    pub fn ids(&self) -> Vec<u32> {
        match self.arrival {
            Arrival::Irregular => ids(self.meters, self.seed),
            Arrival::Ordered => (1..=self.meters).collect(),
        }
    }

    /// Writes a CSV file per day into `folder`, in parallel.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_csv(&self, folder: &Path) -> io::Result<Written> {
        std::fs::create_dir_all(folder)?;
        let (mut random, ids) = (Seeded::new(self.seed), self.ids());
        let meters = ids.iter().map(|&id| (id, (random.normal() * 0.6 - 1.2).exp())).collect();
        let meters = Meters { readings: self, meters };
        let grid = Grid {
            bounds: (0..=self.days).map(|day| day * self.per_day).collect(),
            slots: self.meters,
            minutes: 1440.0 / f64::from(self.per_day),
            arrival: self.arrival,
            shuffled: self.arrival == Arrival::Irregular,
            seed: self.seed,
        };
        let paths = (0..self.days).map(|day| folder.join(format!("{}.csv", self.date(day)))).collect();
        write_files(paths, ids, "meter,ts,kwh\n", vec![("kwh".to_owned(), 3)], |day, out| grid.write(&meters, day, out))
    }

    fn date(&self, day: u32) -> NaiveDate {
        self.first + Days::new(u64::from(day))
    }
}

impl Rows for Meters<'_> {
    type Instant = Instant;

    fn instant(&self, instant: u32) -> Instant {
        let Readings { per_day, .. } = self.readings;
        let minute = instant % per_day * (1440 / per_day);
        let hour = f64::from(minute) / 60.0;
        // Low at night, a peak in the morning and a greater one in the evening.
        let curve = 0.5 + 0.6 * bump(hour, 7.5, 2.0) + bump(hour, 19.0, 3.0);
        let date = self.readings.date(instant / per_day);
        Instant { curve, time: format!(",{date}T{:02}:{:02}:00Z,", minute / 60, minute % 60) }
    }

    fn row(&self, at: &Instant, slot: u32, random: &mut Seeded, out: &mut Text) {
        let (id, base) = self.meters[slot as usize];
        let watts = (base * at.curve * (random.normal() * 0.35).exp() * 1000.0).round() as u64;
        out.integer(u64::from(id));
        out.line.extend_from_slice(at.time.as_bytes());
        out.fixed::<3>(watts);
        out.count(0, watts);
    }
}

fn bump(hour: f64, at: f64, width: f64) -> f64 {
    (-((hour - at) / width).powi(2)).exp()
}

#[cfg(test)]
mod tests;
