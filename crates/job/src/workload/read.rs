//! Reads a file of queries.

use std::ops::Range;
use std::path::Path;

use tidetable_layout::time::{DAY, HOUR, MINUTE, SECOND};
use toml::de::DeValue;

use crate::file::fields::Named;
use crate::file::problem::Mistake;
use crate::file::{Fields, JobError, JobFileError, Reader};
use crate::workload::keys::{DRAWS, QUERY, SCALE, WORKLOAD};

/// Parameters drawn from the data unless the file says otherwise.
const DRAW: usize = 200;
/// Most parameters that a query may draw: each is planned and measured.
const MOST_DRAWS: i64 = 10_000;

/// What a table will be asked, and how much data there will be: by it the advisor compares layouts.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What nodes are sized for: short waits, or much work.
    pub goal: Goal,
    /// Clusters that hold the data, each as a whole.
    pub clusters: u32,
    /// How long data is kept, microseconds; `None` for as long as what was measured.
    pub keep: Option<i64>,
    /// How much data there will be, compared with what was measured.
    pub scale: Scale,
    /// What is asked, in the order of the file.
    pub queries: Vec<Query>,
}

/// What nodes are sized for, which decides how much of their CPU may be used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Goal {
    /// Short waits: a part of the CPU stays idle.
    #[default]
    Latency,
    /// Much work: nodes are loaded as far as Bigtable recommends.
    Throughput,
}

/// How much more there will be than what was measured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scale {
    /// Different values of columns, each with how many there will be.
    pub entities: Vec<(String, f64)>,
    /// Microseconds between two readings of an entity; `None` for as in the sample.
    pub every: Option<i64>,
    /// Source rows a second, on average; `None` for as in the sample.
    pub rows_per_second: Option<f64>,
}

/// A query that is asked again and again with other parameters, and what it may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Key of the query in the workload file, by which reports name it.
    pub name: String,
    /// How often it is asked on average, by all clients together.
    pub per_second: f64,
    /// SQL for the rows that it wants, with `$name` for parameters.
    pub predicate: String,
    /// Where the parameters come from, each set of which is one question.
    pub params: Params,
    /// The columns that it wants; all if empty.
    pub columns: Vec<String>,
    /// Whether it wants the newest first, and so reads in that order.
    pub newest: bool,
    /// Most records that it wants; `None` for all.
    pub limit: Option<u64>,
    /// Whether it must see the rows it reads at one moment.
    pub atomic: bool,
    /// `sum`, `min` or `max`, if it wants nothing but this of the values.
    pub aggregate: Option<&'static str>,
    /// The worst that it may need; `None` if any plan will do.
    pub must: Option<Need>,
    /// Byte range of its predicate in the file, to underline it.
    pub at: Range<usize>,
}

/// Where the parameters of a query come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Params {
    /// Rows that are measured: a parameter is the column of its name, or the event time at the start of its `second`,
    /// `minute`, `hour`, `day`, `week` or `month`.
    Data {
        /// How many rows are drawn, each giving one set of parameters.
        draw: usize,
        /// Seed of the draw: another number draws other rows.
        seed: u64,
        /// At most this much older than the newest row, microseconds.
        age: Option<i64>,
    },
    /// SQL literals by name, in lists of equal length.
    Lists(Vec<(String, Vec<String>)>),
}

/// How much of a table a query needs, from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Single rows by their keys, as a Bigtable client reads one row.
    Point,
    /// Ranges of row keys: what is read grows with the answer.
    Range,
    /// Every row of the table, whatever the answer is.
    Scan,
}

impl Need {
    /// Its name in workload files and in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Range => "range",
            Self::Scan => "scan",
        }
    }
}

impl Workload {
    /// The columns of which it declares how many values there will be.
    pub fn scaled_columns(&self) -> Vec<String> {
        self.scale.entities.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Reads the file at `path`, a path of the command line.
    ///
    /// # Errors
    /// If it cannot be read, or has mistakes (the error lists all of them).
    pub fn load(path: &Path) -> Result<Self, JobError> {
        let text = std::fs::read_to_string(path).map_err(|source| JobError::Read { path: path.to_owned(), source })?;
        Self::parse(path, text)
    }

    /// Reads the text of a file; messages name it `path`.
    ///
    /// # Errors
    /// All its mistakes.
    pub fn parse(path: &Path, text: String) -> Result<Self, JobError> {
        let mut reader = Reader::new(&text);
        let table = reader.parse();
        let workload = table.as_ref().map(|table| {
            let fields = Fields::of_table(&mut reader, &WORKLOAD, table, 0..0);
            read(&mut reader, &fields)
        });
        let problems = reader.into_problems();
        match workload {
            Some(workload) if problems.is_empty() => Ok(workload),
            _ => Err(Box::new(JobFileError::new(path, text, problems)).into()),
        }
    }
}

fn read(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Workload {
    let goal = fields.choice(reader, "goal", &[("latency", Goal::Latency), ("throughput", Goal::Throughput)]);
    let clusters = whole(reader, fields, "clusters", 1..=100).unwrap_or(1);
    let keep = duration(reader, fields, "keep");
    let scale = fields.value("scale").and_then(|value| Fields::of_value(reader, &SCALE, value, fields.key_at("scale")));
    let scale = scale.map(|fields| read_scale(reader, &fields)).unwrap_or_default();
    fields.require(reader, "query");
    let queries: Vec<Query> = fields.named("query").iter().filter_map(|named| query(reader, named)).collect();
    if fields.value("query").is_some() && fields.named("query").is_empty() {
        reader.refuse(fields.key_at("query"), Mistake::Empty { key: "query" });
    }
    Workload { goal, clusters: u32::try_from(clusters).unwrap_or(1), keep, scale, queries }
}

fn read_scale(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Scale {
    let mut entities = Vec::new();
    for named in fields.named("entities") {
        match positive(named.value.get_ref()) {
            Some(number) => entities.push((named.name.to_owned(), number)),
            None => refuse(reader, "entities", named.value.span(), "a number greater than 0"),
        }
    }
    let every = duration(reader, fields, "every");
    let rows_per_second = number(reader, fields, "rows_per_second");
    if every.is_some() && rows_per_second.is_some() {
        refuse(reader, "rows_per_second", fields.value_at("rows_per_second"), "either this or `every`");
    }
    Scale { entities, every, rows_per_second }
}

fn query(reader: &mut Reader<'_>, named: &Named<'_>) -> Option<Query> {
    let fields = Fields::of_value(reader, &QUERY, named.value, named.at.clone())?;
    let predicate = fields.required_text(reader, "where");
    let params = match fields.value("params") {
        None => Params::Data { draw: DRAW, seed: 1, age: None },
        Some(_) => params(reader, &fields),
    };

    let newest = fields.choice(reader, "order", &[("newest", true)]);
    let must = [("point", Some(Need::Point)), ("range", Some(Need::Range)), ("scan", Some(Need::Scan))];
    let must = fields.choice(reader, "must", &must);
    let aggregate = fields.choice(reader, "aggregate", &["sum", "min", "max"].map(|kind| (kind, Some(kind))));
    let limit = whole(reader, &fields, "limit", 1..=i64::MAX).and_then(|limit| u64::try_from(limit).ok());
    let per_second = number(reader, &fields, "per_second").unwrap_or(0.0);

    let predicate = predicate?;
    Some(Query {
        name: named.name.to_owned(),
        per_second,
        at: predicate.at.clone(),
        predicate: predicate.owned(),
        params,
        columns: fields.texts(reader, "columns").iter().map(|column| column.owned()).collect(),
        newest,
        limit,
        atomic: fields.flag("atomic").unwrap_or(false),
        aggregate,
        must,
    })
}

fn params(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Params {
    let named = fields.named("params");
    if !named.iter().any(|named| named.value.get_ref().is_array()) {
        let value = fields.value("params");
        let draws = value.and_then(|value| Fields::of_value(reader, &DRAWS, value, fields.key_at("params")));
        let Some(draws) = draws else { return Params::Lists(Vec::new()) };
        draws.choice(reader, "from", &[("data", ())]);
        let draw = whole(reader, &draws, "draw", 1..=MOST_DRAWS).and_then(|draw| usize::try_from(draw).ok());
        let seed = whole(reader, &draws, "seed", 0..=i64::MAX).unwrap_or(1).unsigned_abs();
        return Params::Data { draw: draw.unwrap_or(DRAW), seed, age: duration(reader, &draws, "age") };
    }

    let mut lists: Vec<(String, Vec<String>)> = Vec::new();
    for named in &named {
        let values = named.value.get_ref().as_array();
        let literals: Option<Vec<String>> =
            values.and_then(|values| values.iter().map(|value| literal(value.get_ref())).collect());
        match literals {
            Some(literals) if !literals.is_empty() => {
                if lists.first().is_some_and(|(_, first)| first.len() != literals.len()) {
                    refuse(reader, "params", named.value.span(), "lists of equal length: the n-th values go together");
                }
                lists.push((named.name.to_owned(), literals));
            }
            _ => refuse(reader, "params", named.value.span(), "a list of strings, numbers or times, not empty"),
        }
    }
    Params::Lists(lists)
}

fn literal(value: &DeValue<'_>) -> Option<String> {
    if let Some(text) = value.as_str() {
        return Some(format!("'{}'", text.replace('\'', "''")));
    }
    if let Some(number) = value.as_integer() {
        return i64::from_str_radix(number.as_str(), number.radix()).ok().map(|number| number.to_string());
    }
    if let Some(number) = value.as_float() {
        return Some(number.as_str().to_owned());
    }
    if let Some(truth) = value.as_bool() {
        return Some(truth.to_string());
    }
    value.as_datetime().map(|time| format!("TIMESTAMP '{time}'"))
}

fn duration(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Option<i64> {
    let text = fields.text(reader, key)?;
    let micros = age(text.value);
    if micros.is_none() {
        refuse(reader, key, text.at, "a number and d, h, m or s, as in `7d`");
    }
    micros
}

/// Parses `7d`, `36h`, `15m` or `10s` into microseconds.
fn age(text: &str) -> Option<i64> {
    let units = [('d', DAY), ('h', HOUR), ('m', MINUTE), ('s', SECOND)];
    let (number, micros) = units.iter().find_map(|(unit, micros)| Some((text.strip_suffix(*unit)?, *micros)))?;
    let number = i64::from(number.parse::<u16>().ok()?);
    (number > 0).then_some(number * micros)
}

fn number(reader: &mut Reader<'_>, fields: &Fields<'_>, key: &'static str) -> Option<f64> {
    let value = fields.value(key)?;
    let number = positive(value.get_ref()).or_else(|| zero(value.get_ref()));
    if number.is_none() {
        refuse(reader, key, value.span(), "a number, not negative");
    }
    number
}

fn zero(value: &DeValue<'_>) -> Option<f64> {
    let text = value.as_integer().map(|number| number.as_str()).or_else(|| value.as_float().map(|it| it.as_str()))?;
    text.parse().ok().filter(|number| *number == 0.0)
}

fn positive(value: &DeValue<'_>) -> Option<f64> {
    let number = match (value.as_integer(), value.as_float()) {
        (Some(number), _) => i64::from_str_radix(number.as_str(), number.radix()).ok()? as f64,
        (_, Some(number)) => number.as_str().parse().ok()?,
        _ => return None,
    };
    (number > 0.0 && number.is_finite()).then_some(number)
}

fn whole(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    key: &'static str,
    within: std::ops::RangeInclusive<i64>,
) -> Option<i64> {
    let number = fields.whole(key)?;
    if !within.contains(&number) {
        refuse(reader, key, fields.value_at(key), "a whole number in its limits");
        return None;
    }
    Some(number)
}

fn refuse(reader: &mut Reader<'_>, key: &'static str, at: Range<usize>, wanted: &'static str) {
    reader.refuse(at, Mistake::Wanted { key, wanted });
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
goal = "throughput"
clusters = 2
keep = "365d"
[scale]
entities = { meter = 10_000_000 }
every = "15m"
[query.one_day]
per_second = 50
where = "meter = $meter and ts >= $day and ts < $day + interval '1 day'"
params = { from = "data", draw = 20, seed = 7, age = "7d" }
columns = ["kwh"]
order = "newest"
limit = 1
must = "range"
[query.two]
where = "meter = $m"
params = { m = [1, 2], name = ["it's", "b"] }
atomic = true
aggregate = "sum"
"#;

    fn problems(text: &str) -> Vec<(usize, String)> {
        match Workload::parse(Path::new("q.toml"), text.to_owned()) {
            Err(JobError::File(error)) => {
                error.problems().iter().map(|it| (it.line_column(error.text()).0, it.to_string())).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_says_what_is_asked_and_how_much_there_is() {
        let found = Workload::parse(Path::new("q.toml"), WHOLE.to_owned()).unwrap();
        assert_eq!((found.goal, found.clusters, found.keep), (Goal::Throughput, 2, Some(365 * DAY)));
        assert_eq!(found.scale.entities, [("meter".to_owned(), 1e7)]);
        assert_eq!(found.scale.every, Some(15 * MINUTE));
        let [one, two] = found.queries.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.per_second, one.limit, one.newest, one.must), (50.0, Some(1), true, Some(Need::Range)));
        assert_eq!(one.params, Params::Data { draw: 20, seed: 7, age: Some(7 * DAY) });
        assert_eq!(one.columns, ["kwh"]);
        assert_eq!((two.per_second, two.atomic, two.must), (0.0, true, None));
        assert_eq!((one.aggregate, two.aggregate), (None, Some("sum")));
        let list = |name: &str, values: [&str; 2]| (name.to_owned(), values.map(str::to_owned).to_vec());
        assert_eq!(two.params, Params::Lists(vec![list("m", ["1", "2"]), list("name", ["'it''s'", "'b'"])]));
    }

    #[test]
    fn every_mistake_has_its_line() {
        let text = "gaol = 1\ngoal = \"fast\"\nkeep = \"a week\"\n[scale]\nentities = { meter = -1 }\nevery = \"1h\"\n\
                    rows_per_second = 5\n[query.a]\nper_second = -1\nwher = \"x\"\nmust = \"best\"\n[query.b]\nwhere = \"\"\n\
                    params = { a = [1], b = [1, 2] }\nlimit = 0\n";
        let lines: Vec<usize> = problems(text).into_iter().map(|(line, _)| line).collect();
        // `a` lacks its predicate, which is said at its name.
        assert_eq!(lines, [1, 2, 3, 5, 7, 8, 9, 10, 11, 13, 14, 15]);
        assert_eq!(problems("")[0].1, "the file of queries has no `query`");
        let Err(JobError::File(error)) = Workload::parse(Path::new("q.toml"), "keep = \"1d\"\n[scale]\n".to_owned())
        else {
            panic!("a file without a query")
        };
        let help = miette::Diagnostic::help(&error.problems()[0]).unwrap().to_string();
        assert!(help.contains("`[query.any]` with `where = \"true\"`") && !help.contains("query.sql"), "{help}");
        assert_eq!(problems("[query]\n").len(), 1);
        assert!(problems("query = 3 3")[0].1.contains("not TOML"));
    }
}
