//! Operator precedence against DuckDB: random expressions with few parentheses; where both parse one, the results must
//! be equal for every row.

use arrow::util::display::{ArrayFormatter, FormatOptions};
use tidetable_sql::Session;

use super::duckdb::{python_with, run_script};
use super::world::World;

const SEED: u64 = 20_261_122;
const EXPRESSIONS: usize = 700;

/// The rows of the expressions; `n` orders them.
const ROWS: &str = "(VALUES
 (1, true, false, 3, -2, 'abc', 'b', TIMESTAMPTZ '2020-10-25 00:30:00+00:00', TIMESTAMPTZ '2020-03-29 01:30:00+00:00'),
 (2, false, false, 0, 5, '3', 'a%', TIMESTAMPTZ '1999-12-31 23:59:59+00:00', TIMESTAMPTZ '2000-01-01 00:00:00+00:00'),
 (3, CAST(NULL AS BOOLEAN), true, CAST(NULL AS INT), 1, CAST(NULL AS VARCHAR), 'true', CAST(NULL AS TIMESTAMPTZ), \
 TIMESTAMPTZ '2020-06-01 12:00:00+00:00'),
 (4, true, CAST(NULL AS BOOLEAN), -7, CAST(NULL AS INT), '', 'ab', TIMESTAMPTZ '2020-06-01 12:00:00+00:00', \
 TIMESTAMPTZ '2020-06-01 12:00:00+00:00'),
 (5, true, true, 1, 1, 'true', 'true', TIMESTAMPTZ '2020-06-01 14:00:00+00:00', TIMESTAMPTZ '2020-06-01 12:00:00+00:00')
) AS v(n, a, b, i, j, s, t, ts, tu)";

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % most as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Parenthesizes one in `n`.
    fn perhaps(&mut self, n: usize, expr: String) -> String {
        if self.below(n) == 0 { format!("({expr})") } else { expr }
    }

    fn not(&mut self) -> &'static str {
        self.of(&["", "", "NOT "])
    }

    fn truth(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.of(&["a", "b", "a", "b", "true", "false"]).to_owned();
        }
        let below = depth - 1;
        let expr = match self.below(16) {
            0 | 1 => format!("NOT {}", self.truth(below)),
            2 | 3 => format!("{} AND {}", self.truth(below), self.truth(below)),
            4 | 5 => format!("{} OR {}", self.truth(below), self.truth(below)),
            6 => {
                let not = self.not();
                format!("{} IS {not}DISTINCT FROM {}", self.truth(below), self.truth(below))
            }
            7 => {
                let not = self.not();
                format!("{} IS {not}DISTINCT FROM {}", self.number(below), self.number(below))
            }
            8 => format!("{} {} {}", self.number(below), self.of(&["=", "<", ">=", "<>"]), self.number(below)),
            9 => format!("{} {} {}", self.text(below), self.of(&["=", "<", "<>"]), self.text(below)),
            10 => format!("{} {} {}", self.truth(below), self.of(&["=", "<>"]), self.truth(below)),
            11 => {
                let not = self.not();
                let [of, low, high] = [self.number(below), self.number(below), self.number(below)];
                format!("{of} {not}BETWEEN {low} AND {high}")
            }
            12 => {
                let not = self.not();
                format!("{} {not}IN ({}, {})", self.number(below), self.number(below), self.number(0))
            }
            13 => {
                let not = self.not();
                format!("{} {not}{} {}", self.text(below), self.of(&["LIKE", "ILIKE"]), self.text(below))
            }
            14 => {
                let is = self.of(&["IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE"]);
                format!("{} {is}", self.truth(below))
            }
            _ => format!("{} {} {}", self.time(), self.of(&["=", "<", ">="]), self.time()),
        };
        self.perhaps(5, expr)
    }

    fn number(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.of(&["i", "j", "i", "j", "0", "1", "2", "7"]).to_owned();
        }
        let below = depth - 1;
        let expr = match self.below(8) {
            0 => format!("- {}", self.number(below)),
            1 | 2 => format!("{} {} {}", self.number(below), self.of(&["+", "-"]), self.number(below)),
            3 => format!("{} * {}", self.number(below), self.number(below)),
            4 => format!("{} % 7", self.number(below)),
            5 => format!("{} {} {}", self.number(below), self.of(&["|", "&"]), self.number(below)),
            6 => format!("{}::bigint", self.number(below)),
            _ => format!("{}::int", self.truth(0)),
        };
        self.perhaps(4, expr)
    }

    fn text(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.of(&["s", "t", "s", "t", "'a'", "'%'", "'3'"]).to_owned();
        }
        let below = depth - 1;
        let expr = match self.below(4) {
            0 | 1 => format!("{} || {}", self.text(below), self.text(below)),
            2 => format!("'a' || {}", self.number(below)),
            _ => format!("{}::varchar", self.number(below)),
        };
        self.perhaps(4, expr)
    }

    fn time(&mut self) -> String {
        let zone = self.of(&["Europe/Paris", "Asia/Tokyo", "UTC"]);
        let time = self.of(&["ts", "tu", "ts + INTERVAL '1 hour'", "ts::timestamptz"]);
        if time.contains('+') {
            format!("({time}) AT TIME ZONE '{zone}'")
        } else {
            format!("{time} AT TIME ZONE '{zone}'")
        }
    }
}

/// The values of an expression by row, as a line of JSON.
async fn answer(session: &Session, expr: &str) -> String {
    let query = format!("SELECT CAST(({expr}) AS VARCHAR) FROM {ROWS} ORDER BY n");
    let asked = async { Ok::<_, tidetable_sql::SqlError>(session.sql(&query).await?.collect().await?) };
    let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', " "));
    match asked.await {
        Ok(batches) => {
            let options = FormatOptions::new().with_null("NULL");
            let mut rows = Vec::new();
            for batch in &batches {
                let column = ArrayFormatter::try_new(batch.column(0), &options).unwrap();
                rows.extend((0..batch.num_rows()).map(|row| quoted(&column.value(row).to_string())));
            }
            format!("{{\"expr\": {}, \"rows\": [{}]}}\n", quoted(expr), rows.join(", "))
        }
        Err(error) => format!("{{\"expr\": {}, \"error\": {}}}\n", quoted(expr), quoted(&error.to_string())),
    }
}

#[tokio::test]
async fn operators_bind_as_in_duckdb() {
    let Some(python) = python_with("duckdb") else { return };
    let world = World::with_days(1);
    let session = world.session();
    let mut random = Random(SEED);
    let mut lines = String::new();
    for at in 0..EXPRESSIONS {
        let expr = match at % 6 {
            0 => random.number(3),
            1 => random.text(3),
            _ => random.truth(3),
        };
        lines.push_str(&answer(&session, &expr).await);
    }
    run_script(&python, "precedence/check.py", &[ROWS], lines);
}
