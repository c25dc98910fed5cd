//! Random queries in which NULLs meet constants and orders: keys that WHERE fixes, then grouping sets, outer joins and unions with
//! NULL literals, and above them groups, distinct rows, windows and sorts.

/// What every inner query has: the columns of readings, of which a layout may lack some.
const COLUMNS: [&str; 4] = ["k", "t", "g", "v"];

const FILTERS: [&str; 13] = [
    "TRUE",
    "k = 3",
    "k = 3 AND g = 'b'",
    "g = 'a'",
    "t = TIMESTAMPTZ '2018-01-02 05:00:00+00:00'",
    "k = 2 AND CAST(t AS DATE) = DATE '2018-01-02'",
    "CAST(t AS DATE) = DATE '2018-01-03'",
    "k IN (2, 4) AND t >= TIMESTAMPTZ '2018-01-02 00:00:00+00:00'",
    "k BETWEEN 3 AND 3 AND v > 100",
    "k = 99",
    "v = 500 AND k > 1",
    "k IS NULL OR v > 400",
    "g IS NULL",
];

const SETS: [&str; 9] = [
    "ROLLUP (k)",
    "ROLLUP (k, g)",
    "ROLLUP (g, k, t)",
    "CUBE (k, g)",
    "CUBE (g, k, CAST(t AS DATE))",
    "GROUPING SETS ((k, t), (k), (g))",
    "GROUPING SETS ((g, k), (g))",
    "GROUPING SETS ((k), ())",
    "GROUPING SETS ((t, k), (t), ())",
];

const AGGREGATES: [&str; 12] = [
    "count(*)",
    "count(v)",
    "sum(v)",
    "min(v)",
    "max(v)",
    "max(t)",
    "count(DISTINCT g)",
    "count(DISTINCT k)",
    "median(v)",
    "first_value(v ORDER BY v NULLS LAST)",
    "last_value(g ORDER BY g NULLS FIRST)",
    "count(*) FILTER (WHERE g = 'a')",
];

/// A query, and whether the order of its rows counts.
pub struct Generated {
    pub sql: String,
    pub is_ordered: bool,
}

pub struct Generator {
    state: u64,
    /// The columns of readings as the layout has them; others are NULL of their type.
    readings: String,
}

impl Generator {
    /// `has`: whether the table has a column of that name.
    pub fn new(seed: u64, has: impl Fn(&str) -> bool) -> Self {
        let column = |name: &str, alias: &str, kind: &str| match has(name) {
            true => format!("{name} AS {alias}"),
            false => format!("CAST(NULL AS {kind}) AS {alias}"),
        };
        let columns = [
            column("meter", "k", "BIGINT"),
            column("ts", "t", "TIMESTAMPTZ"),
            column("tag", "g", "VARCHAR"),
            column("kwh", "v", "DOUBLE"),
        ];
        Self { state: seed | 1, readings: format!("SELECT {} FROM T", columns.join(", ")) }
    }

    fn below(&mut self, most: usize) -> usize {
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.state >> 33) % most as u64) as usize
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    /// Readings of which WHERE may fix a key.
    fn base(&mut self) -> String {
        let filter = self.of(&FILTERS);
        format!("SELECT k, t, g, v FROM ({}) AS r WHERE {filter}", self.readings)
    }

    /// The columns, of which NULL or a constant may take the place of some.
    fn replaced(&mut self) -> String {
        let columns = COLUMNS.map(|column| match (self.below(5), column) {
            (0, "t") => "CAST(NULL AS TIMESTAMPTZ) AS t".to_owned(),
            (0, "g") => "CAST(NULL AS VARCHAR) AS g".to_owned(),
            (0, _) => format!("CAST(NULL AS DOUBLE) AS {column}"),
            (1, "k") => "3 AS k".to_owned(),
            (1, "g") => "'a' AS g".to_owned(),
            _ => column.to_owned(),
        });
        columns.join(", ")
    }

    /// A query of the four columns, of some thousand rows at most.
    fn relation(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.base();
        }
        let input = self.relation(depth - 1);
        match self.below(9) {
            0 | 1 => self.sets(&input),
            2..=4 => self.join(&input),
            5 | 6 => {
                let other = self.base();
                let all = self.of(&["UNION ALL", "UNION ALL", "UNION"]);
                let columns = self.replaced();
                format!("SELECT k, t, g, v FROM ({input}) AS a {all} SELECT {columns} FROM ({other}) AS b")
            }
            7 => {
                let window = self.of(&[
                    "count(*) OVER (PARTITION BY k)",
                    "sum(v) OVER (PARTITION BY g, k)",
                    "rank() OVER (PARTITION BY k ORDER BY t NULLS LAST)",
                    "rank() OVER (ORDER BY k NULLS FIRST, g NULLS FIRST)",
                ]);
                format!("SELECT k, t, g, CAST({window} AS DOUBLE) AS v FROM ({input}) AS a")
            }
            _ => match self.below(3) {
                0 => format!("SELECT DISTINCT k, t, g, v FROM ({input}) AS a"),
                1 => {
                    let filter = self.of(&FILTERS);
                    format!("SELECT k, t, g, v FROM ({input}) AS a WHERE {filter}")
                }
                _ => format!("SELECT k, t, g, v FROM ({input}) AS a ORDER BY {} LIMIT 40", self.order()),
            },
        }
    }

    fn sets(&mut self, input: &str) -> String {
        let sets = self.of(&SETS);
        let column = |name: &str| match sets.contains(name) && !(name == "t" && sets.contains("CAST")) {
            true => name.to_owned(),
            false => format!("max({name}) AS {name}"),
        };
        let keys = ["k", "t", "g"].map(column).join(", ");
        let value = self.of(&["sum(v)", "count(v)", "CAST(count(*) AS DOUBLE)", "min(v)"]);
        let having = self.of(&["", "", "", " HAVING count(*) > 1", " HAVING max(v) > 300 OR count(*) = 1"]);
        format!("SELECT {keys}, {value} AS v FROM ({input}) AS a GROUP BY {sets}{having}")
    }

    fn join(&mut self, input: &str) -> String {
        let other = match self.below(3) {
            0 => format!("SELECT {} FROM ({}) AS c", self.replaced(), self.base()),
            _ => self.base(),
        };
        let kind = self.of(&["LEFT", "RIGHT", "FULL"]);
        let on = self.of(&[
            "x.k = y.k AND x.t = y.t",
            "x.t = y.t AND x.k = y.k AND x.g = y.g",
            "x.t = y.t AND x.k = y.k AND y.v > 300",
            "x.k = y.k AND x.t = y.t + INTERVAL '1 hour'",
        ]);
        let columns = COLUMNS.map(|column| format!("{}.{column}", self.of(&["x", "y", "y"]))).join(", ");
        format!("SELECT {columns} FROM ({input}) AS x {kind} JOIN ({other}) AS y ON {on}")
    }

    /// A total order.
    fn order(&mut self) -> String {
        let mut columns = COLUMNS.to_vec();
        let first = self.below(columns.len());
        columns.swap(0, first);
        let keys = columns.into_iter().map(|column| {
            format!("{column} {} {}", self.of(&["ASC", "DESC"]), self.of(&["NULLS FIRST", "NULLS LAST"]))
        });
        keys.collect::<Vec<_>>().join(", ")
    }

    fn aggregates(&mut self) -> String {
        let first = self.of(&AGGREGATES);
        let second = self.of(&AGGREGATES);
        format!("count(*) AS n, {first} AS a1, {second} AS a2")
    }

    /// The next query.
    pub fn query(&mut self) -> Generated {
        let depth = self.below(3);
        let input = self.relation(depth);
        let aggregates = self.aggregates();
        let unordered = |sql: String| Generated { sql, is_ordered: false };
        match self.below(8) {
            0..=2 => {
                let sets = self.of(&SETS);
                let keys: Vec<&str> = ["k", "t", "g"].into_iter().filter(|key| sets.contains(key)).collect();
                let shown = match sets.contains("CAST") {
                    true => "k, g, CAST(t AS DATE), grouping(g, k)".to_owned(),
                    false => format!("{0}, grouping({0})", keys.join(", ")),
                };
                let having = self.of(&["", "", "", " HAVING count(*) > 1"]);
                unordered(format!("SELECT {shown}, {aggregates} FROM ({input}) AS q GROUP BY {sets}{having}"))
            }
            3..=5 => {
                let keys = self.of(&["k", "g", "k, g", "g, k", "k, t", "t, k", "CAST(t AS DATE), k", "k IS NULL, g"]);
                unordered(format!("SELECT {keys}, {aggregates} FROM ({input}) AS q GROUP BY {keys}"))
            }
            6 => {
                let order = self.order();
                Generated { sql: format!("SELECT k, t, g, v FROM ({input}) AS q ORDER BY {order}"), is_ordered: true }
            }
            _ => {
                let keys = self.of(&["k", "g", "k, g", "t"]);
                let second =
                    self.of(&["ORDER BY v NULLS LAST", "PARTITION BY t ORDER BY g NULLS FIRST, k DESC NULLS LAST"]);
                unordered(format!(
                    "SELECT k, g, count(*) OVER (PARTITION BY {keys}) AS n, sum(v) OVER (PARTITION BY {keys}) AS s, \
                     rank() OVER (PARTITION BY {keys} ORDER BY v NULLS LAST) AS r, rank() OVER ({second}) AS q \
                     FROM ({input}) AS q"
                ))
            }
        }
    }
}
