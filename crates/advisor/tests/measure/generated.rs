//! Proposals for generated workloads, judged by a model of their own: growth, limits and prices as the guide "Choose a layout"
//! states them, computed here from the generated rows and from what each layout holds and reads.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use tidetable_advisor::advice::{Advice, Asking, Proposed, advise, job_with};
use tidetable_advisor::comparison::{Compared, Extent, compare, economy};
use tidetable_advisor::cost::Prices;
use tidetable_advisor::queries::{Asked, draw_specs, profiled_of};
use tidetable_advisor::trial::{Candidate, Sample, Trial, TrialOptions};
use tidetable_job::workload::{Need, Workload};
use tidetable_job::{Job, Project};
use tidetable_runner::Stop;
use tidetable_source::Storage;

/// Workloads of a test; four tests run beside each other.
const WORKLOADS: u64 = 10;
/// Seconds of 2026-03-02T00:00:00Z, a Monday.
const MONDAY: f64 = 1_772_409_600.0;

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

/// A source row: region, meter, and milliseconds since Monday.
#[derive(Clone, Copy)]
struct Reading {
    region: u64,
    meter: u64,
    millis: u64,
}

/// A generated source and workload.
struct Case {
    readings: Vec<Reading>,
    /// Whether all meters are read at the same instants.
    is_aligned: bool,
    row_key: &'static str,
    /// Values that columns will have.
    entities: Vec<(&'static str, f64)>,
    /// Rows a second, if they are declared.
    rate: Option<f64>,
    /// Seconds.
    keep: f64,
    queries: String,
}

fn case(seed: u64) -> Case {
    let mut random = Random(seed * 7919 + 17);
    let (meters, regions) = (3 + random.below(6), 1 + random.below(3));
    let (steps, every) = (12 + random.below(16), [60, 300, 900][random.below(3) as usize]);
    let (is_aligned, is_skewed) = (random.below(2) == 0, random.below(3) == 0);
    let mut readings = Vec::new();
    for step in 0..steps {
        for meter in 0..meters {
            // A busy meter is read four times a step.
            for turn in 0..if is_skewed && meter == 0 { 4 } else { 1 } {
                let late = if is_aligned { 0 } else { random.below(every * 250) };
                let millis = step * every * 1000 + turn * every * 250 + late;
                readings.push(Reading { region: meter % regions, meter, millis });
            }
        }
    }

    let mut queries = String::new();
    let days = [1, 30, 365][random.below(3) as usize];
    writeln!(queries, "keep = \"{days}d\"\n[scale]").unwrap();
    let keep = f64::from(days) * 86_400.0;
    let (mut entities, mut rate) = (Vec::new(), None);
    match random.below(3) {
        0 => {}
        1 => {
            let declared = 10_u64.pow(1 + random.below(5) as u32);
            writeln!(queries, "rows_per_second = {declared}").unwrap();
            rate = Some(declared as f64);
        }
        _ => {
            let number = 10_u64.pow(2 + random.below(6) as u32);
            writeln!(queries, "entities = {{ meter = {number} }}\nevery = \"{every}s\"").unwrap();
            entities.push(("meter", number as f64));
            rate = Some(number as f64 / every as f64);
        }
    }
    for at in 0..1 + random.below(3) {
        let predicate = random.of(&[
            "meter = $meter and ts >= $hour and ts < $hour + interval '1 hour'",
            "region = $region and meter = $meter and ts >= $minute and ts < $minute + interval '10 minutes'",
            "region = $region and ts >= $minute and ts < $minute + interval '5 minutes'",
            "meter = $meter",
            "ts >= $minute and ts < $minute + interval '5 minutes'",
        ]);
        let per_second = random.of(&["0.001", "0.1", "5", "300"]);
        let must = random.of(&["", "must = \"range\"\n"]);
        let order = if random.below(4) == 0 { "order = \"newest\"\nlimit = 3\n" } else { "" };
        writeln!(
            queries,
            "[query.q{at}]\nper_second = {per_second}\n{must}{order}params = {{ from = \"data\", draw = 8 }}\n\
             where = \"{predicate}\""
        )
        .unwrap();
    }
    let row_key = random.of(&["{region}#{meter:010}#{ts:ms}", "{meter:010}#{ts:ms}", "{region}#{ts:ms}"]);
    Case { readings, is_aligned, row_key, entities, rate, keep, queries }
}

/// A part of a row key.
#[derive(Debug, Clone, PartialEq)]
enum Part {
    Column(String),
    Time {
        /// Seconds of a step.
        step: f64,
        /// Whether the newest come first.
        descends: bool,
    },
    Salt(f64),
}

fn parts(row_key: &str) -> Vec<Part> {
    let part = |text: &str| {
        let inside = text.trim_matches(['{', '}']);
        if let Some(salt) = inside.strip_prefix("salt(") {
            return Part::Salt(salt.trim_end_matches(')').split(", ").nth(1).unwrap().parse().unwrap());
        }
        let (name, form) = inside.split_once(':').unwrap_or((inside, ""));
        if name != "ts" {
            return Part::Column(name.to_owned());
        }
        assert!(form.starts_with('%') || ["ms", "ms-reversed"].contains(&form), "unknown form of the time: {form}");
        let step = match form {
            "%Y%m%d%H" => 3600.0,
            "%Y%m%d" => 86_400.0,
            "%G-W%V" => 7.0 * 86_400.0,
            "%Y%m" => 31.0 * 86_400.0,
            _ => 0.001,
        };
        Part::Time { step, descends: form == "ms-reversed" }
    };
    row_key.split('#').map(part).collect()
}

/// What follows from a case for any layout.
struct Model<'a> {
    case: &'a Case,
    span: f64,
    rate: f64,
    /// By what the values of columns are multiplied.
    more: HashMap<&'static str, f64>,
    per_entity: f64,
    target: f64,
}

impl<'a> Model<'a> {
    fn new(case: &'a Case) -> Self {
        let seconds = || case.readings.iter().map(|reading| reading.millis / 1000);
        let span = (seconds().max().unwrap() - seconds().min().unwrap() + 1) as f64;
        let meters: BTreeSet<u64> = case.readings.iter().map(|reading| reading.meter).collect();
        let more: HashMap<&str, f64> =
            case.entities.iter().map(|(name, number)| (*name, number / meters.len() as f64)).collect();
        let measured = case.readings.len() as f64 / span;
        let rate = case.rate.unwrap_or(measured);
        let per_entity = rate / measured / more.values().product::<f64>();
        Self { case, span, rate, more, per_entity, target: 0.6 }
    }

    fn beside(&self, columns: &[&str]) -> f64 {
        self.more.iter().filter(|(name, _)| !columns.contains(name)).map(|(_, factor)| factor).product()
    }

    /// Different values of columns together, in the source.
    fn distinct(&self, columns: &[&str]) -> f64 {
        let value = |reading: &Reading, name: &str| if name == "region" { reading.region } else { reading.meter };
        let values = self
            .case
            .readings
            .iter()
            .map(|reading| columns.iter().map(|name| value(reading, name)).collect::<Vec<_>>());
        values.collect::<BTreeSet<_>>().len() as f64
    }

    /// Whether each meter has one region: several regions, and meters that are seen twice.
    fn is_nested(&self) -> bool {
        self.distinct(&["region"]) > 1.0 && self.case.readings.len() as f64 >= 2.0 * self.distinct(&["meter"])
    }

    /// The rows of each value of a column.
    fn counts(&self, name: &str) -> Vec<f64> {
        let mut counts: HashMap<u64, f64> = HashMap::new();
        for reading in &self.case.readings {
            *counts.entry(if name == "region" { reading.region } else { reading.meter }).or_default() += 1.0;
        }
        counts.into_values().collect()
    }

    /// Source rows a second of the values of a drawn row, of those that were measured.
    fn drawn_rate(&self, fixed: &[&str]) -> f64 {
        let rows = self.case.readings.len() as f64;
        let mut rate = rows / self.span;
        for name in fixed {
            if *name == "meter" || !(fixed.contains(&"meter") && self.is_nested()) {
                rate *= self.counts(name).iter().map(|count| (count / rows).powi(2)).sum::<f64>();
            }
        }
        rate
    }

    /// The part of the source rows of the fullest row that could be expected.
    fn expected_part(&self, parts: &[Part], compared: &Compared) -> f64 {
        let events = compared.measured.largest_row.source_rows as f64;
        let step = step(parts).unwrap_or(f64::INFINITY);
        if step <= 1.0 {
            return 1.0;
        }
        let rows = self.case.readings.len() as f64;
        let shares = columns(parts).into_iter().map(|name| self.counts(name).into_iter().fold(0.0, f64::max) / rows);
        let expected = rows / self.span * shares.fold(1.0, f64::min) * step.min(self.span);
        // Poisson's distribution: so many together, in one of all rows.
        let mut terms = vec![(-expected).exp()];
        (1..events as u64).for_each(|at| terms.push(terms[at as usize - 1] * expected / at as f64));
        let tail = (1.0 - terms.iter().sum::<f64>()).max(0.0);
        if 2.0 * expected < events && tail * compared.measured.rows as f64 > 0.01 { expected / events } else { 1.0 }
    }

    /// By what a row grows; `None` if it depends on chance how many write at one instant.
    fn row_growth(&self, parts: &[Part]) -> Option<f64> {
        let entities = self.beside(&columns(parts));
        let step = step(parts);
        if step.is_some_and(|step| step <= 1.0) {
            return (self.case.is_aligned || entities == 1.0).then_some(entities);
        }
        let step = step.unwrap_or(f64::INFINITY);
        Some(entities * self.per_entity * step.min(self.case.keep) / step.min(self.span))
    }

    /// Source rows a second of the busiest row at scale, as a mean of the time that it covers.
    fn row_rate(&self, parts: &[Part]) -> Option<f64> {
        let step = step(parts)?;
        let columns = columns(parts);
        let mut rows: HashMap<(Option<u64>, Option<u64>, u64), f64> = HashMap::new();
        for reading in &self.case.readings {
            let [region, meter] = [("region", reading.region), ("meter", reading.meter)]
                .map(|(name, of)| columns.contains(&name).then_some(of));
            *rows.entry((region, meter, (reading.millis as f64 / 1000.0 / step) as u64)).or_default() += 1.0;
        }
        let most = rows.into_values().fold(0.0, f64::max);
        Some(
            most / step.min(self.span).max(1.0) * self.row_growth(parts)? * step.min(self.span)
                / step.min(self.case.keep),
        )
    }

    /// The limit that the rows of a layout pass.
    fn broken(&self, parts: &[Part], compared: &Compared) -> Option<String> {
        let growth = self.row_growth(parts)? * self.expected_part(parts, compared);
        let bytes = compared.measured.largest_row.bytes as f64 * growth.max(1.0);
        if bytes > 100e6 {
            return Some(format!("R1: {bytes} bytes"));
        }
        if let Some(rate) = self.row_rate(parts).filter(|rate| *rate > 14_000.0) {
            return Some(format!("W2: {rate} writes a second"));
        }
        // A row for ever: each meter alone is read so many times.
        let meters = self.beside(&[]) * compared.measured.rows as f64;
        let events = self.rate * self.case.keep / meters;
        (step(parts).is_none() && events > 10_000.0).then(|| format!("K7: {events} events a row"))
    }

    /// Nodes that a query takes of a layout.
    fn query(&self, parts: &[Part], asked: &Asked) -> Option<f64> {
        let (mut fixed, mut time) = (Vec::new(), self.case.keep / self.span);
        let (mut measured, mut steps) = (self.span, f64::INFINITY);
        for part in parts {
            match part {
                Part::Salt(_) => {}
                Part::Column(name) if asked.bounds.fixed.contains(name) => fixed.push(name.as_str()),
                Part::Column(_) => break,
                Part::Time { step, .. } => {
                    let Some((first, end)) = asked.bounds.time else { break };
                    let [first, end] = [first as f64 / 1e6, end as f64 / 1e6 - 1e-6];
                    // Weeks begin on Monday.
                    let bucket = |second: f64| ((second - MONDAY) / step).floor();
                    // Steps of a millisecond are told apart exactly only in whole numbers.
                    let covered = if *step < 1.0 {
                        (end - first + 1e-6).max(*step)
                    } else {
                        (bucket(end) - bucket(first) + 1.0) * step
                    };
                    time = covered.min(self.case.keep) / covered.min(self.span);
                    (measured, steps) = (covered.min(self.span), covered / step);
                    if covered / step > 1000.0 {
                        break;
                    }
                }
            }
        }
        let bytes_growth = self.beside(&fixed) * self.per_entity * time;
        let bounded: Vec<&str> = asked.bounds.fixed.iter().map(String::as_str).collect();
        let matching = self.beside(&bounded) * self.per_entity * time;
        // A window that is drawn around a reading holds that one, and what else could be expected grows.
        let drawn = asked.events;
        let expected = (self.drawn_rate(&fixed) * measured).max(drawn - 1.0).min(drawn);
        let events = drawn - expected + expected * bytes_growth;
        let part = if drawn > 0.0 { events / drawn } else { bytes_growth };
        let mut rows = asked.rows.mean * part / self.row_growth(parts)?;
        if let Some(step) = step(parts).filter(|step| *step > 1.0) {
            let buckets = steps.min((self.case.keep / step).max(1.0)).max(1.0);
            let of = |columns: &[&str]| self.distinct(columns) * self.beside(&[]) / self.beside(columns);
            let keys = buckets * of(&columns(parts)) / of(&fixed);
            let met = keys * (1.0 - (-events / keys).exp());
            if self.per_entity > 1.0 && drawn < 3.0 * asked.rows.mean {
                // Few rows fill up the keys that there are.
                rows = met;
            } else if self.per_entity < 1.0 {
                rows = rows.min(met);
            }
        }
        rows = rows.max(asked.rows.mean.min(1.0));
        let mut bytes = asked.bytes.mean * part;
        let is_one_series = parts.iter().take_while(|part| !matches!(part, Part::Time { .. })).all(|part| match part {
            Part::Column(name) => asked.bounds.fixed.contains(name),
            _ => true,
        });
        let reversed = is_one_series && parts.iter().any(|part| matches!(part, Part::Time { descends: true, .. }));
        if let Some(limit) = asked.limit.filter(|_| !asked.newest || reversed) {
            let part = (limit as f64 / (asked.matching * matching).max(1.0)).min(1.0).max(1.0 / rows.max(1.0));
            (rows, bytes) = (rows * part, bytes * part);
        }
        let kib = rows.max(bytes / 1024.0);
        let behind = (kib - asked.ranges.mean).max(0.0) * 1024.0 / 1e6;
        Some(asked.per_second * (asked.ranges.mean / 17_000.0 + behind / 220.0))
    }

    /// A month of a layout.
    fn month(&self, parts: &[Part], compared: &Compared, asked: &[&Asked]) -> Option<f64> {
        let measured = &compared.measured;
        let rows = measured.source_rows as f64;
        let mut load = self.rate * (measured.bytes_written as f64 / rows / 1024.0).max(1.0) / 14_000.0;
        for asked in asked {
            load += self.query(parts, asked)?;
        }
        let stored = measured.packed.snappy as f64 * self.rate * self.case.keep / rows;
        let nodes = (load / self.target).max(stored / 2.5e12).ceil().max(1.0);
        Some(nodes * 730.0 * 0.65 + stored / 1024_f64.powi(3) * 0.17)
    }
}

fn columns(parts: &[Part]) -> Vec<&str> {
    parts.iter().filter_map(|part| if let Part::Column(name) = part { Some(name.as_str()) } else { None }).collect()
}

fn step(parts: &[Part]) -> Option<f64> {
    parts.iter().find_map(|part| if let Part::Time { step, .. } = part { Some(*step) } else { None })
}

/// The project of a case, with its job.
fn project_of(case: &Case, folder: &Path) -> Project {
    let mut text = String::from("region,meter,ts,kwh,volt\n");
    for Reading { region, meter, millis } in &case.readings {
        let time = chrono::DateTime::from_timestamp_millis(MONDAY as i64 * 1000 + *millis as i64).unwrap();
        let time = time.to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        writeln!(text, "r{region},{meter},{time},{}.5,{}.25", (meter + millis) % 97, millis % 230).unwrap();
    }
    let job = format!(
        "name = \"case\"\n[sources.rows]\nfiles = [\"rows.csv\"]\ntime = \"ts\"\ncolumns = {{ region = \"text\", \
         meter = \"uint64\", ts = \"timestamp\", kwh = \"float64\", volt = \"float64\" }}\n[tables.T]\nrow_key = \"{}\"\n\
         [tables.T.families.F]\ncolumns = [{{ each = \"*\", qualifier = \"{{column}}\", value = \"{{value}}\" }}]\n",
        case.row_key
    );
    fs::write(folder.join("tidetable.toml"), "root = \"data\"\n").unwrap();
    fs::write(folder.join("rows.csv"), text).unwrap();
    fs::create_dir_all(folder.join("jobs/case")).unwrap();
    fs::write(folder.join("jobs/case/job.toml"), job).unwrap();
    Project::find(folder).unwrap()
}

/// Checks what is advised for a case: the first breaks no limit, and no candidate that could be first costs less. Whether there
/// was one that could.
fn check(seed: u64) -> bool {
    let case = case(seed);
    let folder = tempfile::tempdir().unwrap();
    let project = project_of(&case, folder.path());
    let job = Job::load(&project, "case").unwrap();
    let storage = Storage::new(folder.path().to_owned(), None);
    let workload = Workload::parse(Path::new("q.toml"), case.queries.clone()).unwrap();
    let prices = Prices::load(None).unwrap();
    let sample = Sample { fraction: 0.5 };
    let stop = Stop::default();
    let asking = Asking {
        project: &project,
        job: &job,
        storage: &storage,
        workload: &workload,
        prices: &prices,
        sample,
        most_tables: 1,
        stop: &stop,
    };
    let advice: Advice = advise(asking).unwrap();
    let first = &advice.comparison.layouts[advice.best()].measured.layout;

    // All candidates, measured in full.
    let schema = Candidate::of_job(&job, &[]).unwrap().remove(0).schema;
    let proposed: Vec<&Proposed> = advice.candidates.iter().collect();
    fs::create_dir_all(folder.path().join("jobs/all")).unwrap();
    fs::write(folder.path().join("jobs/all/job.toml"), job_with(&job.text, "all", &schema, &proposed).unwrap())
        .unwrap();
    let all = Job::load(&project, "all").unwrap();
    let candidates = Candidate::of_job(&all, &[]).unwrap();
    let draws = draw_specs(&workload.queries, &schema).unwrap();
    let profiled = profiled_of(&candidates, Some(&workload));
    let options = TrialOptions { draws: draws.clone(), profiled, ..TrialOptions::default() };
    let trial = Trial::load(&all, &storage, &candidates, &options).unwrap();
    let comparison = compare(&trial, None, Extent::ALL).unwrap();
    let economy = economy(&trial, &comparison, &workload, &draws, &prices).unwrap();

    let model = Model::new(&case);
    let is_refused = |name: &str| advice.refused.iter().any(|refused| refused.name == name);
    let (mut own, mut least) = (None, (f64::INFINITY, ""));
    for (at, compared) in comparison.layouts.iter().enumerate() {
        let (name, parts) = (compared.measured.layout.as_str(), parts(&compared.row_key));
        let asked: Vec<&Asked> = economy.answers[at].iter().filter_map(|answer| answer.asked.as_ref()).collect();
        assert_eq!(asked.len(), workload.queries.len(), "seed {seed}: {name} answers all queries");
        let Some(month) = model.month(&parts, compared, &asked) else { continue };
        let priced = economy.costs[at].month.1;
        assert!(
            (month / priced - 1.0).abs() < 1e-6,
            "seed {seed}: {name} costs {month}, not {priced}\n{}",
            case.queries
        );

        let broken = model.broken(&parts, compared);
        let must = |query: &tidetable_job::workload::Query| query.must.unwrap_or(Need::Scan);
        let is_served = workload.queries.iter().zip(&asked).all(|(query, asked)| asked.need <= must(query));
        let is_sequential = !matches!(parts[0], Part::Column(_) | Part::Salt(_));
        // Where rules refuse every candidate, none can be first.
        if name == first && advice.refused.len() < advice.candidates.len() {
            assert_eq!((&broken, is_refused(name)), (&None, false), "seed {seed}: {name}\n{}", case.queries);
            own = Some(month);
        }
        let could_be_first = broken.is_none() && is_served && !is_sequential && !is_refused(name);
        if could_be_first && month < least.0 {
            least = (month, name);
        }
        // What a limit refuses passes it here, too.
        if let Some(refused) = advice.refused.iter().find(|refused| refused.name == name && refused.rule == "R1") {
            assert!(broken.is_some(), "seed {seed}: {name}: {}", refused.message);
        }
    }
    let Some(own) = own.filter(|_| least.0.is_finite()) else { return false };
    assert!(own <= least.0 * 1.01, "seed {seed}: {first} costs {own}, {least:?}\n{}", case.queries);
    true
}

/// Checks the workloads of one of four parts.
fn check_part(part: u64) {
    let judged = (part * WORKLOADS..(part + 1) * WORKLOADS).filter(|seed| check(*seed)).count();
    assert!(judged >= 4, "{judged} of {WORKLOADS} workloads have a layout that can be first");
}

#[test]
fn proposals_for_workloads_of_part_0() {
    check_part(0);
}

#[test]
fn proposals_for_workloads_of_part_1() {
    check_part(1);
}

#[test]
fn proposals_for_workloads_of_part_2() {
    check_part(2);
}

#[test]
fn proposals_for_workloads_of_part_3() {
    check_part(3);
}
