//! Meter readings in the shape of the reference set: log-normal loads with a daily curve, three decimals, in time
//! order, one CSV file per day.

use std::io;
use std::path::Path;

use chrono::{Days, NaiveDate};

use crate::seeded::Seeded;
use crate::written::{Text, Written, write_files};

/// Readings of meters 1 to `meters` on `days` days from `first`.
#[derive(Debug, Clone)]
pub struct Readings {
    /// Number of meters.
    pub meters: u32,
    /// Readings per meter and day; a divisor of 1440.
    pub per_day: u32,
    /// First day.
    pub first: NaiveDate,
    /// Number of days.
    pub days: u32,
    /// Seed of the values.
    pub seed: u64,
}

impl Readings {
    /// Number of readings.
    pub fn count(&self) -> u64 {
        u64::from(self.meters) * u64::from(self.per_day) * u64::from(self.days)
    }

    /// Writes a CSV file per day into `folder`, in parallel.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write_csv(&self, folder: &Path) -> io::Result<Written> {
        std::fs::create_dir_all(folder)?;
        let mut random = Seeded::new(self.seed);
        let base: Vec<f64> = (0..self.meters).map(|_| (random.normal() * 0.6 - 1.2).exp()).collect();
        let date = |day: u32| self.first + Days::new(u64::from(day));
        let paths = (0..self.days).map(|day| folder.join(format!("{}.csv", date(day)))).collect();
        write_files(paths, "meter,ts,kwh\n", vec![("kwh".to_owned(), 3)], |day, out| {
            self.write_day(date(day), &base, &mut Seeded::part(self.seed, u64::from(day)), out)
        })
    }

    fn write_day(&self, date: NaiveDate, base: &[f64], random: &mut Seeded, out: &mut Text) -> io::Result<()> {
        let step = 1440 / self.per_day;
        for reading in 0..self.per_day {
            let minute = reading * step;
            let hour = f64::from(minute) / 60.0;
            // Low at night, a peak in the morning and a greater one in the evening.
            let curve = 0.5 + 0.6 * bump(hour, 7.5, 2.0) + bump(hour, 19.0, 3.0);
            let time = format!(",{date}T{:02}:{:02}:00Z,", minute / 60, minute % 60);
            for (meter, base) in (1..).zip(base) {
                let watts = (base * curve * (random.normal() * 0.35).exp() * 1000.0).round() as u64;
                out.integer(meter);
                out.line.extend_from_slice(time.as_bytes());
                out.fixed::<3>(watts);
                out.sums[0] += u128::from(watts);
                out.end_row()?;
            }
        }
        Ok(())
    }
}

fn bump(hour: f64, at: f64, width: f64) -> f64 {
    (-((hour - at) / width).powi(2)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_the_bytes_and_the_sums_are_theirs() {
        let readings = |seed| Readings {
            meters: 7,
            per_day: 4,
            first: NaiveDate::from_ymd_opt(2017, 7, 26).unwrap(),
            days: 3,
            seed,
        };
        let make = |seed| {
            let folder = tempfile::tempdir().unwrap();
            let written = readings(seed).write_csv(folder.path()).unwrap();
            let texts = written.paths.iter().map(|path| std::fs::read_to_string(path).unwrap());
            (texts.collect::<String>(), written.rows, written.sum(0))
        };
        let (text, rows, sum) = make(1);
        assert_eq!((text.clone(), rows, sum), make(1));
        assert_ne!(text, make(2).0);
        let fields: Vec<f64> = text.lines().filter_map(|line| line.rsplit(',').next()?.parse().ok()).collect();
        assert_eq!((rows, fields.len()), (readings(1).count(), 84));
        assert!((fields.iter().sum::<f64>() - sum).abs() < 1e-6);
        assert!(text.starts_with("meter,ts,kwh\n1,2017-07-26T00:00:00Z,0."), "{text}");
    }
}
