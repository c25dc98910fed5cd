//! A project in a temporary directory, and the command run in it.

pub mod bucket;
pub mod cells;
pub mod hints;
pub mod inputs;
pub mod s3;
pub mod system;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// A job `j` of readings of meters, a row a meter and day in the table `T`: the files, more about the source, and what else it has.
macro_rules! readings_job {
    ($files:literal, $source:literal, $more:literal) => {
        concat!(
            "name = \"j\"\n[sources.readings]\nfiles = [\"",
            $files,
            "\"]\ntime = \"ts\"\n",
            $source,
            "\n[sources.readings.columns]\nmeter = \"uint64\"\nts = \"timestamp\"\nkwh = \"float64\"\n",
            "[tables.T]\nrow_key = \"{meter:03}#{ts:%Y%m%d}\"\n",
            "[tables.T.families.M]\ncolumns = [{ qualifier = \"{ts:%H%M}\", value = \"{kwh}\" }]\n",
            $more
        )
    };
}

/// The command under test.
pub const TIDETABLE: &str = env!("CARGO_BIN_EXE_tidetable-e2e");

/// How long a command may take: far beyond what any needs.
const LIMIT: Duration = Duration::from_secs(600);

/// A text as a frame of Zstandard: one block, stored as it is.
pub fn zst(text: &str) -> Vec<u8> {
    let last_block = u32::try_from(text.len()).unwrap() << 3 | 1;
    [b"\x28\xB5\x2F\xFD\0\xA0", &last_block.to_le_bytes()[..3], text.as_bytes()].concat()
}

/// A text as the only file of a zip archive, stored as it is.
pub fn zip(text: &str) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(text.as_bytes());
    let size = u32::try_from(text.len()).unwrap().to_le_bytes();
    let name = b"a.csv";
    // Version, flags, method, time, date; then what both headers have.
    let common =
        [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0x28], &crc.sum().to_le_bytes()[..], &size, &size, &[5, 0, 0, 0]].concat();
    let file = [b"PK\x03\x04", &common[..], name, text.as_bytes()].concat();
    let directory = [b"PK\x01\x02\x14\0", &common[..], &[0; 14], name].concat();

    let place = u32::try_from(file.len()).unwrap().to_le_bytes();
    let length = u32::try_from(directory.len()).unwrap().to_le_bytes();
    let end = [b"PK\x05\x06", &[0, 0, 0, 0, 1, 0, 1, 0][..], &length, &place, &[0, 0]].concat();
    [file, directory, end].concat()
}

/// Bytes packed by gzip.
pub fn gz(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(bytes.as_ref()).expect("a vector takes all");
    packed.finish().expect("a vector takes all")
}

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ has a parent").to_owned()
}

/// A project in a temporary directory: jobs and sample data of the repository, or files that a test writes.
pub struct Project {
    folder: TempDir,
}

/// What a command did.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Runs a command to its end. What its messages tell to run must be right.
    pub fn of(command: &mut Command) -> Self {
        let output = output_of(command);
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        if command.get_program() == TIDETABLE {
            hints::assert_can_be_pasted(command, &stdout, &stderr);
        }
        Self { code: output.status.code(), stdout, stderr }
    }
}

/// What a command wrote, and its end. One that does not end in [`LIMIT`] is killed, which its test sees as no exit code.
fn output_of(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = child.id().to_string();
    let (ended, end) = channel::<()>();
    let watcher = std::thread::spawn(move || {
        if end.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
            let _ = Command::new("kill").args(["-KILL", &process]).status();
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    watcher.join().unwrap();
    output
}

impl Project {
    /// An empty project with this job.
    pub fn new(job: &str, text: &str) -> Self {
        let project = Self { folder: TempDir::new().unwrap() };
        project.write("tidetable.toml", "root = \"data\"\n");
        project.write(&format!("jobs/{job}/job.toml"), text);
        project
    }

    /// A project without jobs.
    pub fn empty() -> Self {
        let project = Self { folder: TempDir::new().unwrap() };
        project.write("tidetable.toml", "root = \"data\"\n");
        project
    }

    /// The smart-meters job on its sample data.
    pub fn smart_meters() -> Self {
        let job = repository().join("jobs/smart-meters");
        let project = Self::new("smart-meters", &fs::read_to_string(job.join("job.toml")).unwrap());
        for query in ["sensor_day.sql", "sensor_rollup.sql"] {
            fs::copy(job.join(query), project.path(&format!("jobs/smart-meters/{query}"))).unwrap();
        }
        let sample = repository().join("sample-data/smart-meters");
        fs::create_dir_all(project.path("sample-data/smart-meters")).unwrap();
        for file in fs::read_dir(sample).unwrap() {
            let file = file.unwrap();
            let name = file.file_name().into_string().unwrap();
            if name.ends_with(".csv") || name.ends_with(".parquet") {
                fs::copy(file.path(), project.path(&format!("sample-data/smart-meters/{name}"))).unwrap();
            }
        }
        project
    }

    pub fn path(&self, inside: &str) -> PathBuf {
        self.folder.path().join(inside)
    }

    /// Removes the last manifest of a table.
    pub fn lose_newest_manifest(&self, table: &str) {
        let folder = self.path(&format!("data/tables/{table}/manifest"));
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        fs::remove_file(files.max().expect("a table has manifests")).unwrap();
    }

    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap()
    }

    /// The command, not yet run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(TIDETABLE);
        command.args(args).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env_remove("TIDETABLE_ROOT").env_remove("RUST_LOG").env("NO_COLOR", "1").env("COLUMNS", "100");
        command.env("XDG_CACHE_HOME", self.path("cache"));
        // Servers of tests are on this machine.
        command.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        command
    }

    /// Runs the command to its end.
    pub fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    /// Runs the command, which must succeed.
    pub fn succeeds(&self, args: &[&str]) -> Ran {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// Runs the command, which must succeed; its standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        self.succeeds(args).stdout
    }

    /// Runs the command, which must succeed; its messages on standard error.
    pub fn messages(&self, args: &[&str]) -> String {
        self.succeeds(args).stderr
    }

    /// Runs the command, which must succeed; the objects it prints as JSON.
    pub fn json(&self, args: &[&str]) -> Vec<Value> {
        json_lines(&self.ok(&[args, &["--output", "json"]].concat()))
    }

    /// Runs the command, which must fail with `code`; its standard error.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stderr
    }

    /// The rows of a query.
    pub fn sql(&self, query: &str) -> Vec<Value> {
        self.json(&["sql", "-c", query])
    }

    /// The rows of a query, as CSV.
    pub fn csv(&self, query: &str) -> String {
        self.ok(&["sql", "--output", "csv", "-c", query])
    }

    /// Runs the job; its record.
    pub fn run_job(&self, job: &str) -> Value {
        self.json(&["run", job]).remove(0)
    }

    /// The record of a run as it is stored.
    pub fn stored_record(&self, run: &Value) -> Value {
        serde_json::from_str(&self.read(&format!("data/runs/{}.json", run.as_str().unwrap()))).unwrap()
    }

    /// The rejected rows of a run, by its record.
    pub fn rejected(&self, record: &Value) -> Vec<Value> {
        json_lines(&self.read(&format!("data/{}", record["rejected"].as_str().unwrap())))
    }

    /// Every file below `folder` with its bytes, except run records, locks and seen inputs.
    pub fn files(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.path(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let name = path.strip_prefix(self.folder.path()).unwrap().display().to_string();
                    files.insert(name, fs::read(path).unwrap());
                }
            }
        }
        files.retain(|name, _| !["/runs/", "/locks/", "/seen/"].iter().any(|folder| name.contains(folder)));
        files
    }
}

/// The objects of a text, one a line.
pub fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Flips a bit in the middle of a file.
pub fn flip_bit(path: impl AsRef<Path>) {
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}
