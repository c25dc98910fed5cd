//! The official Bigtable emulator stores the same cells after the same mutations.
//!
//! Not compared, because the emulator differs from the service:
//! - intersections of rules: it ignores them;
//! - min, max and hll families: it keeps the last write;
//! - sums that overflow: it wraps, tidetable refuses;
//! - when rules are applied: it collects only after a change of its families, so they are set last;
//! - the order of families in a row: the service leaves it open, ours is by name;
//! - ranges of time in a delete, and DropRowRange: `cbt` cannot ask for them. A dropped prefix is
//!   deleted there row by row, and a range by writing nothing that lies in it.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tidetable_testkit::Seeded;

use crate::harness::Project;
use crate::harness::cells::{cell_integer, micros};
use crate::harness::system::KilledOnDrop;

/// A call of `cbt` takes about a second; without an answer it retries forever.
const LIMIT: Duration = Duration::from_secs(20);
/// 2020-01-01, microseconds.
const START: i64 = 1_577_836_800_000_000;
const HOUR: i64 = 3_600_000_000;
const DAYS: u64 = 4;
const IDS: u64 = 5;

/// The emulator, where it is installed.
fn emulator() -> Option<PathBuf> {
    let inside = "platform/bigtable-emulator/cbtemulator";
    let sdk = std::env::var_os("CLOUDSDK_ROOT").map(|root| PathBuf::from(root).join(inside));
    let places = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join("cbtemulator"))
        .chain(sdk)
        .chain([Path::new("/usr/lib/google-cloud-sdk").join(inside)])
        .collect::<Vec<_>>();
    places.into_iter().find(|place| place.is_file())
}

/// Whether `cbt` is on the path.
fn has_cbt() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join("cbt").is_file())
}

/// A running emulator, and a directory for the files of its clients.
struct Bigtable {
    _server: KilledOnDrop,
    address: String,
    folder: TempDir,
}

impl Bigtable {
    fn start(program: &Path) -> Self {
        // Free now; another program that takes it first makes the test fail, not pass.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(program);
        command.args(["-host", "127.0.0.1", "-port", &port.to_string()]);
        let server = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let bigtable = Self {
            _server: KilledOnDrop(server),
            address: format!("127.0.0.1:{port}"),
            folder: TempDir::new().unwrap(),
        };
        let begun = Instant::now();
        while std::net::TcpStream::connect(&bigtable.address).is_err() {
            assert!(begun.elapsed() < LIMIT, "the emulator does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        bigtable
    }

    /// Runs `cbt`, which must succeed in time; its standard output.
    fn cbt(&self, args: &[&str]) -> String {
        let mut command = Command::new("cbt");
        command.args(["-project", "p", "-instance", "i"]).args(args).current_dir(self.folder.path());
        command.env("BIGTABLE_EMULATOR_HOST", &self.address).stdin(Stdio::null());
        let (out, err) = (self.folder.path().join("out"), self.folder.path().join("err"));
        // To files: a full pipe would block it.
        command.stdout(std::fs::File::create(&out).unwrap()).stderr(std::fs::File::create(&err).unwrap());
        let mut child = KilledOnDrop(command.spawn().unwrap());
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.0.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < LIMIT, "cbt {args:?} takes too long");
            std::thread::sleep(Duration::from_millis(5));
        };
        let output = Output { status, stdout: std::fs::read(&out).unwrap(), stderr: std::fs::read(&err).unwrap() };
        assert!(output.status.success(), "cbt {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Writes rows of cells, each with its timestamp.
    fn import(&self, table: &str, csv: &str) {
        std::fs::write(self.folder.path().join("rows.csv"), csv).unwrap();
        self.cbt(&["import", table, "rows.csv", "timestamp=value-encoded"]);
    }

    /// Waits until it has collected what `left` no longer holds: it looks at its tables every second or so.
    fn collected(&self, table: &str, left: &[Cell]) {
        let end = Instant::now() + Duration::from_secs(30);
        while self.cells(table).len() > left.len() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(250));
        }
    }

    /// All cells in the order in which it returns them.
    fn cells(&self, table: &str) -> Vec<Cell> {
        let mut cells: Vec<Cell> = Vec::new();
        let (mut key, mut expects_key) = (String::new(), false);
        for line in self.cbt(&["read", table]).lines() {
            if line.starts_with("-----") {
                expects_key = true;
            } else if expects_key {
                (key, expects_key) = (line.to_owned(), false);
            } else if let Some(value) = line.strip_prefix("    ") {
                let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value);
                cells.last_mut().unwrap().value = value.to_owned();
            } else if let Some(cell) = line.strip_prefix("  ") {
                let (column, time) = cell.split_once(" @ ").unwrap();
                let column = column.trim_end().to_owned();
                cells.push(Cell { key: key.clone(), column, time: time.to_owned(), value: String::new() });
            }
        }
        cells
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Cell {
    key: String,
    /// Family and qualifier.
    column: String,
    /// As `cbt` prints it.
    time: String,
    value: String,
}

/// All cells in the order in which `tidetable read` returns them.
fn cells(project: &Project, table: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    for row in project.json(&["read", table]) {
        for cell in row["cells"].as_array().unwrap() {
            let text = |name: &str| cell[name].as_str().unwrap().to_owned();
            let time = project_time(micros(&cell["timestamp"]));
            let column = format!("{}:{}", text("family"), text("qualifier"));
            cells.push(Cell { key: row["key"].as_str().unwrap().to_owned(), column, time, value: text("value") });
        }
    }
    cells
}

/// A time of January 2020, or of the first second of 1970, in the notation of `cbt`.
fn project_time(micros: i64) -> String {
    if micros == 0 {
        return "1970/01/01-00:00:00.000000".to_owned();
    }
    let since = micros - START;
    let (seconds, rest) = (since / 1_000_000, since % 1_000_000);
    let (day, hour, minute) = (seconds / 86_400 + 1, seconds / 3600 % 24, seconds / 60 % 60);
    format!("2020/01/{day:02}-{hour:02}:{minute:02}:{:02}.{rest:06}", seconds % 60)
}

/// A reading: `a` may be missing, and `q` names a column.
struct Reading {
    id: u64,
    hours: i64,
    a: Option<u64>,
    q: &'static str,
    b: u64,
}

impl Reading {
    fn key(&self) -> String {
        format!("r{:02}#202001{:02}", self.id, self.hours / 24 + 1)
    }

    fn micros(&self) -> i64 {
        START + self.hours * HOUR
    }
}

/// Readings out of order, some of them of the same cells.
fn readings(random: &mut Seeded, count: usize) -> Vec<Reading> {
    let mut below = |bound: u64| random.bits() % bound;
    (0..count)
        .map(|_| Reading {
            id: below(IDS),
            hours: below(24 * DAYS) as i64 / 3 * 3,
            a: (below(4) > 0).then(|| below(1000)),
            q: ["x", "y", "a b", "Z"][below(4) as usize],
            b: below(1000),
        })
        .collect()
}

const JOB: &str = "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"uint64\"\n\
     ts = \"timestamp\"\na = \"uint64\"\nq = \"text\"\nb = \"uint64\"\n[tables.T]\n\
     row_key = \"r{id:02}#{ts:%Y%m%d}\"\n[tables.T.families.F]\nGC_F\ncolumns = [{ qualifier = \"ID\", value = \"{id}\" }, \
     { qualifier = \"a\", value = \"{a}\" }]\n[tables.T.families.G]\nGC_G\ncolumns = [{ qualifier = \"q-{q}\", value = \"{b}\" }]\n";

fn job(gc: &[(&str, &str)]) -> String {
    let mut job = JOB.to_owned();
    for family in ["F", "G"] {
        let rule = gc.iter().find(|(of, _)| *of == family).map(|(_, rule)| format!("gc = \"{rule}\""));
        job = job.replace(&format!("GC_{family}"), &rule.unwrap_or_default());
    }
    job
}

/// Loads readings on both sides. Columns that a reading lacks are left empty, which writes no cell.
fn load(project: &Project, bigtable: &Bigtable, file: usize, readings: &[Reading]) {
    let mut ours = "id,ts,a,q,b\n".to_owned();
    let mut theirs = ",F,,G,,,\n,ID,a,q-x,q-y,q-a b,q-Z\n".to_owned();
    for reading in readings {
        let Reading { id, hours, a, q, b } = reading;
        let a = a.map(|a| a.to_string()).unwrap_or_default();
        ours.push_str(&format!("{id},2020-01-{:02}T{:02}:00:00Z,{a},{q},{b}\n", hours / 24 + 1, hours % 24));
        let at = |value: &str| if value.is_empty() { String::new() } else { format!("{value}@{}", reading.micros()) };
        let place = |name: &str| if *q == name { at(&b.to_string()) } else { String::new() };
        let dynamic: Vec<String> = ["x", "y", "a b", "Z"].map(place).to_vec();
        theirs.push_str(&format!("{},{id}@0,{},{}\n", reading.key(), at(&a), dynamic.join(",")));
    }
    project.write(&format!("in/{file}.csv"), ours);
    project.ok(&["run", "j", "--now", "2020-01-05T00:00:00Z"]);
    bigtable.import("T", &theirs);
}

#[test]
fn emulator_stores_the_same_cells() {
    let Some(program) = emulator().filter(|_| has_cbt()) else {
        println!("skipped: cbtemulator and cbt of the Google Cloud CLI are not on this machine");
        return;
    };
    let bigtable = Bigtable::start(&program);
    bigtable.cbt(&["createtable", "T", "families=F,G"]);
    let project = Project::new("j", &job(&[]));
    let mut random = Seeded::new(20_200_101);
    let same = |what: &str| {
        let (ours, theirs) = (cells(&project, "T"), bigtable.cells("T"));
        assert!(ours.len() > 20, "{what}: {} cells are left", ours.len());
        assert_eq!(ours, theirs, "{what}");
    };

    for file in 0..3 {
        load(&project, &bigtable, file, &readings(&mut random, 80));
    }
    same("three files, with overwrites and out of order");

    let rows: Vec<String> = {
        let mut rows: Vec<String> = cells(&project, "T").into_iter().map(|cell| cell.key).collect();
        rows.dedup();
        rows
    };
    let pick = |at: usize| rows[at * 7 % rows.len()].as_str();
    project.ok(&["delete", "T", "--row", pick(0), "--yes"]);
    bigtable.cbt(&["deleterow", "T", pick(0)]);
    project.ok(&["delete", "T", "--row", pick(1), "--column", "G:q-x", "--yes"]);
    bigtable.cbt(&["deletecolumn", "T", pick(1), "G", "q-x"]);
    project.ok(&["delete", "T", "--row", pick(2), "--column", "F", "--yes"]);
    for qualifier in ["ID", "a"] {
        bigtable.cbt(&["deletecolumn", "T", pick(2), "F", qualifier]);
    }
    project.ok(&["drop-rows", "T", "--prefix", "r03#202001", "--yes"]);
    let listed = bigtable.cbt(&["read", "T", "prefix=r03#202001", "keys-only=true"]);
    let keys: Vec<&str> = listed.split_whitespace().filter(|word| word.starts_with("r03#")).collect();
    assert!(!keys.is_empty(), "{listed}");
    keys.iter().for_each(|key| drop(bigtable.cbt(&["deleterow", "T", key])));
    same("deletes");

    // Cells written after a delete are visible again.
    load(&project, &bigtable, 3, &readings(&mut random, 40));
    same("writes after deletes");
    project.ok(&["compact", "T", "--now", "2020-01-05T00:00:00Z"]);
    same("compacted");

    // The emulator computes ages by the clock: its maxage counts from the present, that of tidetable from `--now`.
    let now = START + 4 * 24 * HOUR;
    // Readings are three hours apart, so the hour that rounding and time passing take makes no difference.
    let kept = START + 49 * HOUR;
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as i64;
    let hours = |from: i64| (from - kept) / HOUR;
    let rules = |age: i64| [("F", "maxversions=2".to_owned()), ("G", format!("maxage={age}h or maxversions=1"))];
    let ours = rules(hours(now));
    let ours: Vec<(&str, &str)> = ours.iter().map(|(family, rule)| (*family, rule.as_str())).collect();
    project.write("jobs/j/job.toml", job(&ours));
    project.ok(&["run", "j", "--now", "2020-01-05T00:00:00Z"]);
    for (family, rule) in rules(hours(clock)) {
        let words: Vec<&str> = rule.split(' ').collect();
        bigtable.cbt(&[&["setgcpolicy", "T", family], words.as_slice()].concat());
    }
    bigtable.collected("T", &cells(&project, "T"));
    same("versions, and a union of age and versions");
    project.ok(&["compact", "T", "--now", "2020-01-05T00:00:00Z"]);
    same("compacted under rules");
    let versions: BTreeMap<String, usize> = cells(&project, "T").into_iter().fold(BTreeMap::new(), |mut all, cell| {
        *all.entry(cell.key + &cell.column).or_default() += 1;
        all
    });
    assert!(versions.values().any(|count| *count == 2), "{:?}", json!(versions));
}

/// The bytes that `cbt` prints between quotes, in Go's notation.
fn unquoted(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let number = |digits: &str| u32::from_str_radix(digits, 16).unwrap();
        let length = if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            c.len_utf8()
        } else {
            match rest.as_bytes()[1] {
                b'x' => {
                    bytes.push(number(&rest[2..4]) as u8);
                    4
                }
                b'u' => {
                    let c = char::from_u32(number(&rest[2..6])).unwrap();
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    6
                }
                escaped => {
                    let known = b"abtnvfr".iter().position(|name| *name == escaped);
                    bytes.push(known.map_or(escaped, |at| [7, 8, 9, 10, 11, 12, 13][at]));
                    2
                }
            }
        };
        rest = &rest[length..];
    }
    bytes
}

/// Sums only: of the other kinds of aggregate families the emulator keeps the last write, and its sums wrap around.
#[test]
fn emulator_computes_the_same_sums() {
    let Some(program) = emulator().filter(|_| has_cbt()) else {
        println!("skipped: cbtemulator and cbt of the Google Cloud CLI are not on this machine");
        return;
    };
    let bigtable = Bigtable::start(&program);
    bigtable.cbt(&["createtable", "S", "families=C:never:intsum,D:never:intsum"]);
    let column = |qualifier: &str, timestamp: &str| {
        format!("columns = [{{ qualifier = \"{qualifier}\", value = \"{{n}}\"{timestamp} }}]")
    };
    let job = format!(
        "name = \"j\"\n[sources.s]\nfiles = [\"in/*.csv\"]\ntime = \"ts\"\n[sources.s.columns]\nid = \"uint64\"\n\
         ts = \"timestamp\"\nq = \"text\"\nn = \"int64\"\n[tables.S]\nrow_key = \"r{{id:02}}\"\n[tables.S.families.C]\n\
         kind = \"sum\"\n{}\n[tables.S.families.D]\nkind = \"sum\"\n{}\n",
        column("{q}", ", timestamp = 0"),
        column("each", "")
    );
    let project = Project::new("j", &job);
    let mut random = Seeded::new(20_200_102);
    for file in 0..3 {
        let mut ours = "id,ts,q,n\n".to_owned();
        let mut theirs: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
        for _ in 0..60 {
            let mut below = |most: u64| random.bits() % most;
            // Rows that span days, and many values for one cell.
            let (id, day, q, n) = (below(6), below(3), ["a", "b"][below(2) as usize], below(2000) as i64 - 900);
            ours.push_str(&format!("{id},2020-01-{:02}T06:00:00Z,{q},{n}\n", day + 1));
            let at = START + (day as i64 * 24 + 6) * HOUR;
            let row = theirs.entry(format!("r{id:02}")).or_default();
            *row.entry(format!("C:{q}@0")).or_default() += n;
            *row.entry(format!("D:each@{at}")).or_default() += n;
        }
        project.write(&format!("in/{file}.csv"), ours);
        project.ok(&["run", "j", "--now", "2020-01-05T00:00:00Z"]);
        for (row, cells) in &theirs {
            // Summed by file, since each call of cbt is slow.
            let cell = |(place, n): (&String, &i64)| {
                let (column, timestamp) = place.split_once('@').unwrap();
                format!("{column}={n}@{timestamp}")
            };
            let cells: Vec<String> = cells.iter().map(cell).collect();
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            bigtable.cbt(&[&["addtocell", "S", row.as_str()], cells.as_slice()].concat());
        }
        if file == 1 {
            project.ok(&["compact", "S"]);
        }
        let ours: Vec<(String, String, String, i64)> = project
            .json(&["read", "S"])
            .iter()
            .flat_map(|row| {
                let key = row["key"].as_str().unwrap().to_owned();
                let cells = row["cells"].as_array().unwrap().clone();
                cells.into_iter().map(move |cell| {
                    let column =
                        format!("{}:{}", cell["family"].as_str().unwrap(), cell["qualifier"].as_str().unwrap());
                    let time = project_time(micros(&cell["timestamp"]));
                    (key.clone(), column, time, cell_integer(&cell["value"]))
                })
            })
            .collect();
        let sum = |cell: Cell| {
            let value = i64::from_be_bytes(unquoted(&cell.value).try_into().unwrap());
            (cell.key, cell.column, cell.time, value)
        };
        assert_eq!(ours, bigtable.cells("S").into_iter().map(sum).collect::<Vec<_>>());
    }
}

#[test]
fn cbt_imports_what_was_exported() {
    let Some(program) = emulator().filter(|_| has_cbt()) else {
        println!("skipped: cbtemulator and cbt of the Google Cloud CLI are not on this machine");
        return;
    };
    let (project, bigtable) = (Project::new("j", &job(&[])), Bigtable::start(&program));
    let mut random = Seeded::new(11);
    let rows = readings(&mut random, 300);
    bigtable.cbt(&["createtable", "T", "families=F,G"]);
    load(&project, &bigtable, 0, &rows);
    // Through an exported file into another table.
    project.ok(&["export", "T", "--format", "cbt-csv", "-O", "t.csv"]);
    bigtable.cbt(&["createtable", "COPY", "families=F,G"]);
    bigtable.import("COPY", &project.read("t.csv"));
    let (copy, original) = (bigtable.cells("COPY"), bigtable.cells("T"));
    assert!(copy.len() > 20);
    assert_eq!(copy, original);
}
