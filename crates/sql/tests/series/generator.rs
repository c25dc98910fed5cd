//! Random queries over time series: ASOF joins, aggregates by time and buckets, over `VALUES` with ties, NULLs, NaN, empty sides
//! and repeated keys. They mean the same in DuckDB.

use std::fmt::Write;

const KEYS: [&str; 5] = ["'a'", "'b'", "'c'", "'d'", "NULL"];
const VALUES: [&str; 7] = ["1.5", "2.25", "-3.0", "0.0", "7.75", "NULL", "'NaN'::double"];
const WIDTHS: [&str; 9] = [
    "INTERVAL '1 hour'",
    "INTERVAL '15 minutes'",
    "INTERVAL '7 minutes'",
    "INTERVAL '1 day'",
    "INTERVAL '5 days'",
    "INTERVAL '14 days'",
    "INTERVAL '1 month'",
    "INTERVAL '3 months'",
    "INTERVAL '1 year'",
];
const OPTIONS: [&str; 6] = [
    "",
    "",
    ", INTERVAL '2 hours'",
    ", INTERVAL '-36 hours'",
    ", TIMESTAMP '2018-01-15 00:00:00'",
    ", TIMESTAMP '2017-11-01 00:00:00'",
];

/// A generator of queries.
pub struct Generator {
    state: u64,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A number below `end`, by xorshift.
    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state % end as u64) as usize
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// Rows of key, minute and value. With `is_distinct`, no two have one key and minute, so that none is arbitrary in DuckDB.
    fn rows(&mut self, most: usize, is_distinct: bool) -> String {
        let mut rows: Vec<String> = Vec::new();
        let mut seen = Vec::new();
        for _ in 0..self.below(most + 1) {
            let (key, minute) = (self.one_of(&KEYS), self.below(40));
            if is_distinct && seen.contains(&(key, minute)) {
                continue;
            }
            seen.push((key, minute));
            let minute = if self.below(12) == 0 { "NULL".to_owned() } else { minute.to_string() };
            let value = self.one_of(&VALUES);
            rows.push(format!("({key}, {minute}, {value})"));
        }
        // The first row gives the types, and is left out again.
        let mut text = "(SELECT k, m, v FROM (VALUES ('-', 0, 0.5::double)".to_owned();
        rows.iter().for_each(|row| write!(text, ", {row}").unwrap());
        text.push_str(") AS r(k, m, v) WHERE k IS NULL OR k <> '-')");
        text
    }

    pub fn query(&mut self) -> String {
        match self.below(4) {
            0 | 1 => self.asof(),
            2 => self.aggregates(),
            _ => self.buckets(),
        }
    }

    fn asof(&mut self) -> String {
        let (left, right) = (self.rows(30, false), self.rows(40, true));
        let kind = self.one_of(&["ASOF JOIN", "ASOF LEFT JOIN", "ASOF LEFT JOIN"]);
        let op = self.one_of(&[">=", ">", "<=", "<"]);
        let keys = self.one_of(&["a.k = b.k AND ", "a.k = b.k AND ", "a.k = b.k AND a.v = b.v AND "]);
        let filter = self.one_of(&["", "", " WHERE a.k = 'a'", " WHERE b.v > 1", " WHERE a.m > 10 AND a.k <> 'b'"]);
        let list = self.one_of(&["a.k, a.m, a.v, b.m, b.v", "b.v, a.m", "a.k, count(*), count(b.m), max(b.m)"]);
        let groups = if list.contains("count") { " GROUP BY a.k" } else { "" };
        format!("WITH a AS {left}, b AS {right} SELECT {list} FROM a {kind} b ON {keys}a.m {op} b.m{filter}{groups}")
    }

    fn aggregates(&mut self) -> String {
        let rows = self.rows(60, true);
        let filter = self.one_of(&["", " FILTER (WHERE m > 12)", " FILTER (WHERE v IS NOT NULL)"]);
        // Of one key, times differ: none of the answers is arbitrary.
        let list = format!(
            "arg_max(v, m){filter}, arg_min(v, m){filter}, max_by(m, m){filter}, min_by(k, m), arg_max(m + 0.5::double, m), \
             count(*)"
        );
        format!("WITH a AS {rows} SELECT k, {list} FROM a GROUP BY k")
    }

    fn buckets(&mut self) -> String {
        // Two years around the epoch of buckets, or around a change of clocks.
        let spread = [600, 60 * 24 * 40, 60 * 24 * 700][self.below(3)];
        let start = chrono::NaiveDate::from_ymd_opt(2018, 3, 24).unwrap().and_hms_opt(22, 7, 0).unwrap();
        let mut rows = Vec::new();
        for _ in 0..1 + self.below(30) {
            let minutes = self.below(spread) as i64 - if spread > 600 { spread as i64 / 2 } else { 0 };
            rows.push(format!("('{}+00:00')", start + chrono::Duration::minutes(minutes)));
        }
        let rows = rows.join(", ");
        let kind = self.below(2);
        let (times, width, option) = match kind {
            0 => ("CAST(t AS TIMESTAMP)", self.one_of(&WIDTHS), self.one_of(&OPTIONS)),
            _ => {
                let zone = self.one_of(&[", 'Europe/Berlin'", ", 'America/New_York'", ", 'UTC'", ", 'Asia/Kolkata'"]);
                ("CAST(t AS TIMESTAMPTZ)", self.one_of(&WIDTHS[3..]), zone)
            }
        };
        // DuckDB takes the first of the month of an origin for buckets of months; here the day of the origin counts.
        let is_of_months = width.contains("month") || width.contains("year");
        let option = if is_of_months && option.contains("2018-01-15") { "" } else { option };
        let to_utc = if kind == 1 { " AT TIME ZONE 'UTC'" } else { "" };
        format!(
            "SELECT time_bucket({width}, {times}{option}){to_utc} AS b, count(*) FROM (VALUES {rows}) AS a(t) GROUP BY 1"
        )
    }
}
