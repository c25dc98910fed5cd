//! The two shapes of telemetry used by the benchmarks, meters with a reading a quarter of an hour and machines with a hundred
//! metrics, and its size and arrival.

use std::path::Path;

use chrono::NaiveDate;
use tidetable_layout::spec::{ColumnSpec, FamilySpec};
use tidetable_layout::{FieldType, Layout, TableSpec};
use tidetable_source::{ColumnSpec as SourceColumn, SourceSpec};
use tidetable_testkit::{Arrival, Metrics, Readings, Written};

use crate::Result;

/// A source and its table, which generated files of its kind are loaded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A row per meter and day, a column per reading: `{meter:010}#{ts:%Y%m%d}`.
    Meter,
    /// A row per machine and sample, a column per metric, of a hundred: `{host}#{ts:ms}`.
    Metric,
}

/// How much telemetry is generated, and how it arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Telemetry {
    /// Number of meters or machines, each with an id of its own.
    pub entities: u32,
    /// Days of meters, or minutes of machines, with a sample each.
    pub steps: u32,
    /// Readings of a meter and day; a divisor of 1440. Machines ignore it.
    pub per_day: u32,
    /// Seed of ids, values and arrival; another one gives other files of the same size.
    pub seed: u64,
    /// How the telemetry arrives: in order, or late, twice and with gaps.
    pub arrival: Arrival,
}

impl Telemetry {
    /// Telemetry of a size that arrives irregularly, with 96 readings a day from seed 1.
    pub fn new(entities: u32, steps: u32) -> Self {
        Self { entities, steps, per_day: 96, seed: 1, arrival: Arrival::Irregular }
    }

    /// The same with `per_day` readings of a meter and day; a divisor of 1440.
    #[must_use]
    pub fn readings_per_day(self, per_day: u32) -> Self {
        Self { per_day, ..self }
    }

    /// The same in order, without late, duplicate and missing rows.
    #[must_use]
    pub fn ordered(self) -> Self {
        Self { arrival: Arrival::Ordered, ..self }
    }
}

impl Shape {
    /// The shape of this name on a command line: `meter` or `metric`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "meter" => Some(Self::Meter),
            "metric" => Some(Self::Metric),
            _ => None,
        }
    }

    /// The source of its files at `patterns`, relative to their folder.
    pub fn source(self, patterns: &[&str]) -> SourceSpec {
        let columns = match self {
            Self::Meter => vec![
                SourceColumn::new("meter", FieldType::UInt64),
                SourceColumn { format: Some("%Y-%m-%dT%H:%M:%SZ".to_owned()), ..timestamp() },
                SourceColumn::new("kwh", FieldType::Float64),
            ],
            Self::Metric => {
                let mut columns = vec![SourceColumn::new("host", FieldType::Text), timestamp()];
                for (name, is_float) in Metrics::columns() {
                    let kind = if is_float { FieldType::Float64 } else { FieldType::UInt64 };
                    columns.push(SourceColumn::new(name, kind));
                }
                columns
            }
        };

        let files = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
        let (name, time) = ("telemetry".to_owned(), "ts".to_owned());
        SourceSpec { name, files, columns, time, ..SourceSpec::default() }
    }

    /// The table that the source is loaded into: `SENSOR` or `METRIC`, with one family.
    pub fn table(self) -> TableSpec {
        let (name, row_key, columns) = match self {
            Self::Meter => {
                let columns = vec![column("ID", "{meter}"), column("{ts:%H%M}", "{kwh}")];
                ("SENSOR", "{meter:010}#{ts:%Y%m%d}", columns)
            }
            Self::Metric => {
                let except = vec!["host".to_owned(), "ts".to_owned()];
                let each = ColumnSpec { each: true, except, ..column("{column}", "{value}") };
                ("METRIC", "{host}#{ts:ms}", vec![column("HOSTNAME", "{host}"), each])
            }
        };

        let family = FamilySpec { name: "TIDE".to_owned(), columns, ..FamilySpec::default() };
        TableSpec { name: name.to_owned(), row_key: row_key.to_owned(), families: vec![family], ..TableSpec::default() }
    }

    /// The layout of the table over the columns of the source.
    ///
    /// # Errors
    /// Only if the specs above do not fit each other.
    pub fn layout(self) -> Result<Layout> {
        Ok(Layout::compile(&self.table(), &self.source(&[]).schema()).map_err(|errors| format!("{errors:?}"))?)
    }

    /// Writes CSV files of this shape into `folder`, which is made, and returns what they hold.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(self, folder: &Path, telemetry: Telemetry) -> Result<Written> {
        let Telemetry { entities, steps, per_day, seed, arrival } = telemetry;
        let first = NaiveDate::from_ymd_opt(2017, 7, 26).unwrap_or_default();
        Ok(match self {
            Self::Meter => {
                Readings { meters: entities, per_day, first, days: steps, seed, arrival }.write_csv(folder)?
            }
            Self::Metric => Metrics { hosts: entities, instants: steps, first, seed, arrival }.write_csv(folder)?,
        })
    }
}

fn column(qualifier: &str, value: &str) -> ColumnSpec {
    ColumnSpec { qualifier: qualifier.to_owned(), value: value.to_owned(), ..ColumnSpec::default() }
}

fn timestamp() -> SourceColumn {
    SourceColumn::new("ts", FieldType::Timestamp)
}
